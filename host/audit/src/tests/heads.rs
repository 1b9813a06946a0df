//! Signed heads: where they go, and what they show that a chain alone does not.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    sync::mpsc::{Sender, channel},
    time::{Duration, Instant},
};

use super::chain::{Chain, record};
use crate::{
    AuditSettings, FileJournal, HeadSink, Journal, JournalError, KeyError, NotKept, Recorder, SharedJournal,
    SignedHead, Trail,
    chain_writer::ChainWriter,
    head::HeadKey,
    heads::{Heads, Schedule},
    journal::ChainEnd,
    read::{KnownHeads, ProblemKind, parse_heads, verify},
    record::Record,
    to_sync::{Synced, ToSync},
};
use footbridge_core::limits::AuditLimits;
use futures::future::BoxFuture;

/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(30);

struct Store(Sender<SignedHead>);

impl HeadSink for Store {
    fn keep<'a>(&'a mut self, heads: &'a [SignedHead]) -> BoxFuture<'a, Result<(), NotKept>> {
        Box::pin(async move {
            for head in heads {
                self.0.send(head.clone())?;
            }
            Ok(())
        })
    }
}

#[test]
fn heads_go_to_the_file_and_to_a_store_and_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let settings = AuditSettings { head_time: Duration::from_millis(1), ..AuditSettings::default() };
    let (sender, heads) = channel();
    let recorder = Recorder::open(&audit, &settings).unwrap().sink(Store(sender));
    let trail = Trail::start(recorder, AuditLimits::default()).unwrap();
    let first = heads.recv_timeout(LONG).unwrap();
    record(&trail, 2);
    // Due by its time, without another record.
    let second = heads.recv_timeout(LONG).unwrap();
    trail.close().unwrap();
    let mut all = vec![first, second];
    all.extend(heads.try_iter());
    assert!(all.iter().all(SignedHead::is_signed));
    assert_eq!((all[0].seq, all[1].seq > 1), (1, true));
    assert_eq!(parse_heads(&fs::read_to_string(audit.join("heads.jsonl")).unwrap()).unwrap(), all);
}

#[test]
fn a_chain_made_anew_as_a_whole_shows_against_a_head_that_was_kept() {
    let (chain, other) = (Chain::of(5, 1 << 20), Chain::of(5, 1 << 20));
    let kept = fs::read_to_string(chain.audit().join("heads.jsonl")).unwrap();
    let kept = parse_heads(&kept).unwrap();
    // Another chain, with another key and other heads, under the name of the first.
    let (real, forged) = (chain.chain().path, other.chain());
    fs::remove_dir_all(&real).unwrap();
    let file = "000001.jsonl";
    fs::create_dir(&real).unwrap();
    let text = fs::read_to_string(forged.path.join(file)).unwrap();
    fs::write(real.join(file), text.replace(&forged.name, &chain.chain().name)).unwrap();
    for name in ["heads.jsonl", "key"] {
        fs::copy(other.audit().join(name), chain.audit().join(name)).unwrap();
    }
    let known = KnownHeads::of(&chain.audit(), &[], kept.clone());
    assert_eq!(verify(&chain.chain(), &known).unwrap().problem.unwrap().kind, ProblemKind::Changed);
    assert!(known.bad[0].contains("signed with another key"), "{:?}", known.bad);
}

#[test]
fn where_a_key_is_named_the_one_in_the_folder_counts_for_nothing() {
    let (forged, real) = (Chain::of(2, 1 << 20), HeadKey::open(tempfile::tempdir().unwrap().path()).unwrap());
    assert!(forged.verify().is_good(), "nothing in it shows who should have signed");
    let named = KnownHeads::of(&forged.audit(), &[real.public().to_owned()], Vec::new());
    assert_eq!(verify(&forged.chain(), &named).unwrap().problem.unwrap().kind, ProblemKind::Forged);
    assert_eq!(named.bad.len(), 2, "each head beside it: {:?}", named.bad);
    // Without a key beside it and one that is named, whoever signed what was kept is known.
    fs::remove_file(forged.audit().join("key")).unwrap();
    let digest = footbridge_core::digest::Digest::of("x");
    let kept = KnownHeads::of(&forged.audit(), &[], vec![real.sign("c", 1, digest, "t".into())]);
    assert_eq!((kept.bad.len(), kept.bad[0].starts_with("heads.jsonl line 1")), (2, true), "{:?}", kept.bad);
    assert_eq!(verify(&forged.chain(), &kept).unwrap().problem.unwrap().kind, ProblemKind::Forged);
}

#[test]
fn another_chain_in_a_folder_shows_where_heads_are_of_its_own() {
    let chain = Chain::of(3, 1 << 20);
    let (audit, real) = (chain.audit(), chain.chain());
    // A second one of the same folder and key, and one that was made up.
    let trail = Trail::start(Recorder::open(&audit, &AuditSettings::default()).unwrap(), AuditLimits::default());
    trail.unwrap().close().unwrap();
    let other = crate::read::chains(&audit).unwrap().into_iter().find(|one| *one != real).unwrap();
    let text = fs::read(other.path.join("000001.jsonl")).unwrap();
    let made_up = br#"{"seq":1,"genesis":"x","time":"t","mono":1,"type":"started"}"#;
    for text in [text.as_slice(), &[made_up.as_slice(), b"\n"].concat()] {
        fs::write(real.path.join("000001.jsonl"), text).unwrap();
        let problem = verify(&real, &chain.known()).unwrap().problem.unwrap();
        assert_eq!((problem.kind, problem.seq), (ProblemKind::Changed, 1), "{problem:?}");
    }
    // A copy elsewhere may have any name.
    let copy = crate::read::ChainFolder { name: "copy".to_owned(), path: other.path };
    assert_eq!(verify(&copy, &chain.known()).unwrap().problem, None);
}

#[test]
fn a_head_of_another_key_is_not_taken() {
    let (chain, other) = (Chain::of(2, 1 << 20), Chain::of(2, 1 << 20));
    let heads = chain.audit().join("heads.jsonl");
    let theirs = fs::read_to_string(other.audit().join("heads.jsonl")).unwrap();
    fs::write(&heads, fs::read_to_string(&heads).unwrap() + &theirs + "{\"half\n").unwrap();
    let known = chain.known();
    assert_eq!((known.bad.len(), known.notes.len()), (2, 1), "half a line is none: {known:?}");
    assert!(known.notes[0].starts_with("heads.jsonl line 5 is no head"), "{known:?}");
    fs::remove_file(&heads).unwrap();
    nix::unistd::mkfifo(&heads, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(chain.known().bad[0].contains("heads.jsonl is no file"), "and nobody waits for it");
    fs::copy(other.audit().join("key"), chain.audit().join("key")).unwrap();
    assert_eq!(chain.verify().problem.unwrap().kind, ProblemKind::Forged);
}

#[test]
fn without_its_key_nothing_is_recorded_and_no_chain_begun() {
    let chain = Chain::of(1, 1 << 20);
    fs::remove_file(chain.audit().join("key")).unwrap();
    let opened = Recorder::open(&chain.audit(), &AuditSettings::default());
    assert!(matches!(opened.err(), Some(JournalError::Key(KeyError::Gone(_)))));
    assert_eq!(crate::read::chains(&chain.audit()).unwrap().len(), 1);
    assert!(!chain.audit().join("key").exists());
}

/// A place whose file cannot be synced, as long as nothing is sent here.
struct Unsynced(std::sync::mpsc::Receiver<()>, Synced);

impl Journal for Unsynced {
    fn reserve(&mut self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn to_sync(&mut self) -> io::Result<Option<ToSync>> {
        let file = match self.0.try_recv() {
            Ok(()) => tempfile::tempfile()?,
            // Of a pipe there is nothing to sync.
            Err(_) => OwnedFd::from(io::pipe()?.0).into(),
        };
        Ok(Some(ToSync::new(file, &self.1)))
    }
}

#[test]
fn a_head_is_handed_on_once_what_it_says_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let schedule = Schedule { records: 1, time: Duration::ZERO };
    let ((sender, heads), (syncs, is_synced)) = (channel(), channel());
    let key = HeadKey::open(folder.path()).unwrap();
    let of_chain = Heads::start(key, schedule, vec![Box::new(Store(sender))]).unwrap();
    let chain = crate::chain::Chain::new("c".to_owned());
    let mut writer = ChainWriter::new(Box::new(Unsynced(is_synced, Synced::default())), chain, Some(of_chain), 0);
    syncs.send(()).unwrap();
    writer.begin(false).unwrap();
    let limited = || Record::limited("s", "rate", 1);
    writer.commit([&limited()], Some(0)).unwrap();
    // One that cannot be synced: what it says may be lost, and each that follows says it, too.
    writer.commit([&limited()], Some(0)).unwrap();
    syncs.send(()).unwrap();
    writer.commit([&limited()], Some(0)).unwrap();
    drop(writer);
    assert_eq!(heads.iter().map(|head| head.seq).collect::<Vec<_>>(), [1]);
}

#[test]
fn what_is_not_synced_says_what_is_to_be() {
    let folder = tempfile::tempdir().unwrap();
    for sync in [true, false] {
        let settings = AuditSettings { sync, file_bytes: 1, ..AuditSettings::default() };
        let audit = folder.path().join(sync.to_string());
        let mut of_run = FileJournal::create(&audit).unwrap().with(&settings);
        let first = of_run.path().to_owned();
        let mut shared = SharedJournal::open(&audit, &settings).unwrap();
        let shared_first = shared.folder().join("000001.jsonl");
        for (journal, first) in [(&mut of_run as &mut dyn Journal, first), (&mut shared, shared_first)] {
            for name in ["000001.jsonl", "000002.jsonl"] {
                journal.take_turn().unwrap();
                drop(journal.next_file(0).unwrap());
                journal.commit(b"{\"seq\":1}\n").unwrap();
                let there = fs::metadata(first.with_file_name(name)).unwrap();
                let given = journal.to_sync().unwrap().map(|to_sync| to_sync.file().metadata().unwrap().ino());
                assert_eq!(given, (!sync).then_some(there.ino()), "{name}");
            }
        }
    }
}

/// A place that gives this many turns.
struct FewTurns(usize);

impl Journal for FewTurns {
    fn reserve(&mut self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn take_turn(&mut self) -> io::Result<Option<ChainEnd>> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::ResourceBusy)?;
        Ok(None)
    }
}

#[test]
fn a_head_that_there_is_no_turn_for_is_not_tried_again_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let schedule = Schedule { records: 1, time: Duration::from_millis(500) };
    let heads = Heads::start(HeadKey::open(folder.path()).unwrap(), schedule, Vec::new()).unwrap();
    let chain = crate::chain::Chain::new("c".to_owned());
    let mut writer = ChainWriter::new(Box::new(FewTurns(2)), chain, Some(heads), 0);
    writer.begin(true).unwrap();
    writer.commit([&Record::limited("s", "rate", 1)], Some(0)).unwrap();
    let deadline = Instant::now() + LONG;
    while !writer.head_is_due() {
        assert!(Instant::now() < deadline, "it is never due");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(writer.commit(&[], Some(0)).is_err());
    assert!(!writer.head_is_due(), "whoever writes would try without a pause");
    assert!(writer.head_wait().is_some_and(|wait| !wait.is_zero()));
}
