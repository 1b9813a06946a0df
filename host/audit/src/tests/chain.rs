//! The chain: it goes through all files, and whatever is done to it behind the writer's back is named.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::super::read::{ChainFolder, ChainProblem, KnownHeads, ProblemKind, Report, chains, verify};
use crate::{AuditSettings, FileJournal, Journal as _, Record, Recorder, Trail};
use footbridge_core::limits::AuditLimits;

/// A signed chain of small files in a folder of its own, written by the real stage.
pub(super) struct Chain {
    folder: tempfile::TempDir,
}

impl Chain {
    /// With so many records between the first and the last, in files of about this size.
    pub(super) fn of(records: usize, file_bytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let chain = Self { folder };
        let settings = AuditSettings { file_bytes, ..AuditSettings::default() };
        let trail = Trail::start(Recorder::open(&chain.audit(), &settings).unwrap(), AuditLimits::default()).unwrap();
        record(&trail, records);
        trail.close().unwrap();
        chain
    }

    pub(super) fn audit(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    pub(super) fn chain(&self) -> ChainFolder {
        chains(&self.audit()).unwrap().remove(0)
    }

    pub(super) fn known(&self) -> KnownHeads {
        KnownHeads::of(&self.audit(), &[], Vec::new())
    }

    pub(super) fn verify(&self) -> Report {
        verify(&self.chain(), &self.known()).unwrap()
    }

    /// As if nothing were known but the files of the chain.
    fn verify_alone(&self) -> Report {
        verify(&self.chain(), &KnownHeads::default()).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.chain().files().unwrap().into_iter().map(|(_, path)| path).collect()
    }

    /// All lines, each with its file.
    fn lines(&self) -> Lines {
        let of = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap();
            text.lines().map(|line| (path.clone(), line.to_owned())).collect::<Vec<_>>()
        };
        self.files().into_iter().flat_map(of).collect()
    }

    /// Puts other lines in place of all.
    fn write(&self, lines: &[(PathBuf, String)]) {
        for path in self.files() {
            let own: Vec<String> =
                lines.iter().filter(|(p, _)| *p == path).map(|(_, line)| format!("{line}\n")).collect();
            fs::write(path, own.concat()).unwrap();
        }
    }
}

/// Writes so many records that belong to no call, each with a refusal's room reserved.
pub(super) fn record(trail: &Trail, records: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..records {
        let record =
            Record::new("limited", &serde_json::json!({"session": "run-1", "reason": "rate_limited", "count": 3}));
        assert!(runtime.block_on(trail.note(record)));
    }
}

fn named(problem: &Option<ChainProblem>) -> (ProblemKind, u64) {
    let problem = problem.as_ref().unwrap();
    (problem.kind, problem.seq)
}

#[test]
fn a_chain_goes_through_all_its_files_and_is_signed_to_the_end() {
    let chain = Chain::of(40, 2_000);
    let report = chain.verify();
    assert_eq!((&report.problem, report.ended, report.torn, report.key_known), (&None, true, 0, true));
    assert_eq!(report.chain, report.folder);
    assert!(report.files > 3, "{report:?}");
    // Started, the records, the first lines of further files, the end and its head.
    assert_eq!(report.records, 40 + 3 + report.files as u64 - 1);
    assert!(report.heads >= 3 && report.covered == report.records, "{report:?}");
    for path in chain.files() {
        assert!(fs::metadata(&path).unwrap().len() < 4_000, "{}", path.display());
    }
}

#[test]
fn calls_without_an_outcome_are_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain { folder };
    let recorder = Recorder::open(&chain.audit(), &AuditSettings::default()).unwrap();
    let trail = Trail::start(recorder, AuditLimits::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let note = |kind: &'static str, id: &str| {
        assert!(runtime.block_on(trail.note(Record::new(kind, &serde_json::json!({ "id": id })))));
    };
    (0..12).for_each(|id| note("intent", &format!("id-{id:02}")));
    note("outcome", "id-01");
    trail.close().unwrap();
    let report = chain.verify();
    assert!(report.is_good() && report.unknown == 11, "{report:?}");
    let (first, last) = (report.unknown_calls.first().unwrap(), report.unknown_calls.last().unwrap());
    assert_eq!((&**first, &**last, report.unknown_calls.len()), ("id-00", "id-10", 10));
}

/// Lines of a chain, each with its file.
type Lines = Vec<(PathBuf, String)>;

/// An edit of a chain at one line, what it may be called, and at which records it may be found.
struct Edit {
    what: &'static str,
    lines: Lines,
    kinds: &'static [ProblemKind],
    found: [u64; 2],
}

fn edits(lines: &Lines, at: usize) -> Vec<Edit> {
    let seq = at as u64 + 1;
    let mut edits = Vec::new();
    let mut add = |what, kinds, found, edit: &dyn Fn(&mut Lines)| {
        let mut lines = lines.clone();
        edit(&mut lines);
        edits.push(Edit { what, lines, kinds, found });
    };
    add("changed", &[ProblemKind::Changed], [seq; 2], &|l| l[at].1 = l[at].1.replacen("\"mono\":", "\"mono\":1", 1));
    add("broken", &[ProblemKind::Changed], [seq; 2], &|l| l[at].1.truncate(20));
    add("missing", &[ProblemKind::Missing], [seq; 2], &|l| drop(l.remove(at)));
    add("twice", &[ProblemKind::Inserted], [seq, seq + 1], &|l| l.insert(at, l[at].clone()));
    add("moved", &[ProblemKind::Reordered], [seq; 2], &|l| {
        (l[at].1, l[at + 1].1) = (l[at + 1].1.clone(), l[at].1.clone());
    });
    add("inserted", &[ProblemKind::Inserted, ProblemKind::Changed], [seq + 1; 2], &|l| {
        let next = l[at].1.replacen(&format!("\"seq\":{seq}"), &format!("\"seq\":{}", seq + 1), 1);
        l.insert(at + 1, (l[at].0.clone(), next));
    });
    edits
}

#[test]
fn every_line_that_is_changed_missing_twice_moved_or_new_is_named() {
    let chain = Chain::of(12, 1_200);
    let lines = chain.lines();
    for at in 0..lines.len() - 2 {
        // The first and last lines of a file are also out of place elsewhere: that may be what is said.
        let turns =
            lines[at].0 != lines[at + 1].0 || at.checked_sub(1).is_some_and(|before| lines[before].0 != lines[at].0);
        for Edit { what, lines, kinds, found: [first, last] } in edits(&lines, at) {
            chain.write(&lines);
            for report in [chain.verify_alone(), chain.verify()] {
                let (kind, found) = named(&report.problem);
                assert!(kinds.contains(&kind) || turns, "{what} {at}: {report:?}");
                assert!((first..=last).contains(&found), "{what} {at}: {report:?}");
            }
        }
    }
    chain.write(&lines);
    assert_eq!(chain.verify().problem, None);
}

#[test]
fn no_byte_can_change_unseen() {
    let chain = Chain::of(3, 1_200);
    let files = chain.files();
    for (number, path) in files.iter().enumerate() {
        let bytes = fs::read(path).unwrap();
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        // Only the very last line, the head itself, has nothing behind it: when it was written is its own.
        let of_last = |what: &str| last_line + String::from_utf8_lossy(&bytes[last_line..]).find(what).unwrap();
        let own = if number + 1 == files.len() { of_last("\"time\"")..of_last(",\"type\"") } else { 0..0 };
        for at in (0..bytes.len() - 1).filter(|at| !own.contains(at)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(path, &changed).unwrap();
            let report = chain.verify();
            assert!(report.problem.is_some() || report.torn > 0, "{} byte {at}", path.display());
        }
        for more in [" ", "\r", "\t", ",\"evil\":1}"] {
            let mut longer = bytes.clone();
            let line_break = longer.len() - 1;
            let at = if more.ends_with('}') { line_break - 1..line_break } else { line_break..line_break };
            longer.splice(at, more.bytes());
            fs::write(path, &longer).unwrap();
            assert!(chain.verify_alone().problem.is_some(), "{} {more:?}", path.display());
        }
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_chain_that_is_cut_shows_against_its_heads_and_a_torn_line_is_no_crime() {
    let chain = Chain::of(10, 1 << 20);
    let path = chain.files().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    // The last line is the head; what it covers was written to the file of heads as well.
    let cut = ends[ends.len() - 3];
    fs::write(&path, &text[..cut]).unwrap();
    assert_eq!(chain.verify_alone().problem, None, "nothing within the chain shows it");
    assert_eq!(named(&chain.verify().problem).0, ProblemKind::Cut);
    let torn = |whole: usize, half: usize| {
        fs::write(&path, &text[..ends[whole - 1] + half]).unwrap();
        chain.verify_alone()
    };
    let report = torn(ends.len() - 3, 7);
    assert_eq!((report.problem, report.torn, report.ended), (None, 7, false));
    let report = torn(ends.len() - 1, 7);
    assert_eq!((report.problem, report.torn, report.ended), (None, 7, true), "the last head can be torn too");
    assert_eq!(torn(ends.len(), 0).problem, None);
    for behind in ["{\"seq\":", "\0\0"] {
        fs::write(&path, format!("{text}{behind}")).unwrap();
        assert_eq!(named(&chain.verify_alone().problem).0, ProblemKind::Inserted, "nothing is written there any more");
    }
    fs::write(&path, format!("{}\nx\n", &text[..cut + 7])).unwrap();
    assert_eq!(named(&chain.verify_alone().problem).0, ProblemKind::Changed);
    fs::write(&path, &text[..3]).unwrap();
    assert_eq!(chain.verify_alone().problem, None, "killed within its first line");
    assert_eq!(named(&chain.verify().problem).0, ProblemKind::Missing, "but its first line is signed");
}

#[test]
fn files_that_are_missing_or_swapped_are_named() {
    let chain = Chain::of(20, 1_200);
    let files = chain.files();
    let aside = files[0].with_extension("aside");
    for file in &files[..files.len() - 1] {
        fs::rename(file, &aside).unwrap();
        let problem = chain.verify().problem.unwrap();
        assert_eq!(problem.kind, ProblemKind::Missing, "{problem:?}");
        assert!(problem.what.contains(file.file_name().unwrap().to_str().unwrap()), "{problem:?}");
        fs::rename(&aside, file).unwrap();
    }
    fs::rename(files.last().unwrap(), &aside).unwrap();
    assert_eq!(named(&chain.verify().problem).0, ProblemKind::Cut);
    fs::rename(&aside, files.last().unwrap()).unwrap();
    let swap = |a: &Path, b: &Path| {
        fs::rename(a, &aside).unwrap();
        fs::rename(b, a).unwrap();
        fs::rename(&aside, b).unwrap();
    };
    swap(&files[1], &files[2]);
    assert_eq!(named(&chain.verify().problem).0, ProblemKind::Reordered);
}

#[test]
fn files_that_are_done_take_no_more_room_than_what_is_in_them() {
    let chain = Chain::of(30, 4096);
    let files = chain.files();
    assert!(files.len() > 1);
    for file in files {
        let meta = file.metadata().unwrap();
        assert!(meta.blocks() * 512 < meta.len() + 16 * 1024, "{}: {} blocks", file.display(), meta.blocks());
    }
}

#[test]
fn a_file_that_cannot_be_followed_by_another_grows_on() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { file_bytes: 600, ..AuditSettings::default() };
    let journal = FileJournal::create(&folder.path().join("audit")).unwrap().with(&settings);
    let (path, name) = (journal.path().to_owned(), journal.chain().unwrap());
    // A folder is in the way of the next file.
    fs::create_dir(path.with_file_name("000002.jsonl")).unwrap();
    let trail = Trail::start(journal, AuditLimits::default()).unwrap();
    record(&trail, 10);
    trail.close().unwrap();
    fs::remove_dir(path.with_file_name("000002.jsonl")).unwrap();
    let chain = ChainFolder { name, path: path.parent().unwrap().to_owned() };
    let report = verify(&chain, &KnownHeads::default()).unwrap();
    assert_eq!((report.problem, report.records, report.files), (None, 12, 1));
}

#[test]
fn where_nothing_is_synced_a_file_that_is_gone_takes_no_record_and_one_that_was_replaced_soon_none() {
    let settings = AuditSettings { sync: false, file_bytes: 1, ..AuditSettings::default() };
    let begun = |folder: &tempfile::TempDir| {
        let mut journal = FileJournal::create(&folder.path().join("audit")).unwrap().with(&settings);
        journal.commit(b"one\n").unwrap();
        journal
    };
    let folder = tempfile::tempdir().unwrap();
    let mut journal = begun(&folder);
    fs::File::options().write(true).open(journal.path()).unwrap().set_len(2).unwrap();
    assert!(journal.commit(b"two\n").is_err());
    let folder = tempfile::tempdir().unwrap();
    let mut journal = begun(&folder);
    fs::remove_file(journal.path()).unwrap();
    assert!(journal.commit(b"two\n").is_err());
    let folder = tempfile::tempdir().unwrap();
    let mut journal = begun(&folder);
    fs::rename(journal.path(), journal.path().with_extension("aside")).unwrap();
    assert!(journal.next_file(1).is_err(), "the next file is begun behind one that is gone");
    fs::write(journal.path(), "another\n").unwrap();
    let since = Instant::now();
    while journal.commit(b"two\n").is_ok() {
        assert!(since.elapsed() < Duration::from_secs(10), "it goes on in a file that nobody finds");
    }
    assert!(journal.commit(b"two\n").is_err());
}

#[test]
fn nothing_is_recorded_in_a_file_that_was_replaced_and_all_of_it_once_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = FileJournal::create(&folder.path().join("audit")).unwrap();
    journal.commit(b"one\n").unwrap();
    let path = journal.path().to_owned();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    for put_there in [None, Some("another\n")] {
        if let Some(text) = put_there {
            fs::write(&path, text).unwrap();
        }
        for refused in [journal.commit(b"two\n"), journal.append(b"two\n")] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains(path.to_str().unwrap()) && said.contains("removed, replaced or cut"), "{said}");
        }
    }
    fs::rename(&aside, &path).unwrap();
    journal.commit(b"two\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    fs::File::options().write(true).open(&path).unwrap().set_len(4).unwrap();
    assert!(journal.commit(b"three\n").is_err());
}

#[test]
fn a_chain_that_has_no_record_leaves_nothing_behind_and_one_that_has_some_stays() {
    let place = tempfile::tempdir().unwrap();
    let audit = place.path().join("audit");
    let chains = || std::fs::read_dir(&audit).unwrap().count();
    FileJournal::create(&audit).unwrap().abandon();
    assert_eq!(chains(), 0);
    let mut journal = FileJournal::create(&audit).unwrap();
    journal.commit(b"{}\n").unwrap();
    journal.abandon();
    assert_eq!((chains(), std::fs::read(journal.path()).unwrap().as_slice()), (1, b"{}\n".as_slice()));
}
