//! Calls over a journal in a real file: its modes, folders of others, and a disk that is full.

use std::{
    fmt, fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex},
};

use footbridge_proto::rpc::Reason;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use super::{Fault, Ledger, World};
use crate::record::Audit;
use crate::skipped::skipped;
use footbridge_audit::{FileJournal, Journal as _, JournalError, private_folder::FolderError};
use footbridge_core::limits::AuditLimits;
use footbridge_core::redact::Redactor;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

#[test]
fn the_record_is_for_this_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("state/audit");
    let mut journal = FileJournal::create(&audit).unwrap();
    journal.commit(b"line\n").unwrap();
    let file = journal.path().to_owned();
    for folder in [&folder.path().join("state"), &audit, &file.parent().unwrap().to_owned()] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    assert_eq!((mode(&file), fs::read(&file).unwrap().as_slice()), (0o600, &b"line\n"[..]));
    let other = FileJournal::create(&audit).unwrap();
    assert_ne!(other.path(), file, "each run has a file of its own");
}

#[test]
fn a_folder_that_is_a_link_or_that_others_can_write_to_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link, open) = (folder.path().join("real"), folder.path().join("link"), folder.path().join("open"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    fs::create_dir(&open).unwrap();
    for bits in [0o770, 0o707, 0o1777] {
        fs::set_permissions(&open, fs::Permissions::from_mode(bits)).unwrap();
        assert!(
            matches!(FileJournal::create(&open), Err(JournalError::Folder(FolderError::Unsafe(path))) if path == open),
            "{bits:o}"
        );
        assert_eq!(mode(&open), bits);
    }
    assert!(matches!(FileJournal::create(&link), Err(JournalError::Folder(FolderError::Link(path))) if path == link));
    let dangling = folder.path().join("dangling");
    symlink(folder.path().join("nowhere"), &dangling).unwrap();
    assert!(FileJournal::create(&dangling).is_err());
    assert!(!folder.path().join("nowhere").exists());
    for folder in [&real, &open] {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "nothing was made in {}", folder.display());
    }
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let others = if nix::unistd::geteuid().is_root() {
        chown(folder.path(), Some(65534), Some(65534)).unwrap();
        folder.path().to_owned()
    } else {
        PathBuf::from("/usr")
    };
    assert!(
        matches!(FileJournal::create(&others), Err(JournalError::Folder(FolderError::Unsafe(path))) if path == others)
    );
}

#[test]
fn a_commit_that_fails_half_way_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$PART\" --ignored --exact \"$0\" --nocapture";
    let part = Command::new("sh")
        .args(["-c", limited, &whole_name("over_a_file_size_limit")])
        .env("DISK", folder.path())
        .env("PART", std::env::current_exe().unwrap())
        .output()
        .unwrap();
    assert!(part.status.success() && has_run(&part), "{}", String::from_utf8_lossy(&part.stdout));
}

#[test]
#[ignore = "a part that another test starts"]
fn over_a_file_size_limit() {
    let folder = PathBuf::from(std::env::var_os("DISK").unwrap());
    let mut journal = FileJournal::create(&folder.join("audit")).unwrap();
    journal.commit(b"one\n").unwrap();
    assert!(journal.commit(&[b'x'; 1 << 20]).is_err());
    assert_eq!(fs::read(journal.path()).unwrap(), b"one\n", "what was written of it is cut off again");
    journal.commit(b"two\n").unwrap();
    assert_eq!(fs::read(journal.path()).unwrap(), b"one\ntwo\n");
    journal.append(b"three\n").unwrap();
    assert!(journal.append(&[b'x'; 1 << 20]).is_err() && journal.commit(&[b'x'; 1 << 20]).is_err());
    assert!(journal.reserve(1 << 20).is_err(), "what may not be written is no room, whatever the disk has");
    journal.reserve(1_000).unwrap();
    // As if the disk had lost what was not synced: it is written once more.
    fs::OpenOptions::new().write(true).open(journal.path()).unwrap().set_len(8).unwrap();
    journal.sync().unwrap();
    assert_eq!(fs::read(journal.path()).unwrap(), b"one\ntwo\nthree\n");
}

/// Runs a test of this file with a small disk of its own, which the variable `DISK` names.
/// The name of a part, as the program of these tests has it.
fn whole_name(part: &str) -> String {
    format!("{}::{part}", module_path!().split_once("::").unwrap().1)
}

/// Whether the program of these tests ran a part: of a name that is none it runs nothing, and ends well.
fn has_run(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stdout).contains("\nrunning 1 test\n")
}

fn on_a_small_disk(test: &str, part: &str) {
    let part = whole_name(part);
    let disk = tempfile::tempdir().unwrap();
    let mount =
        "mount -t tmpfs -o size=96k none \"$DISK\" || exit 77; exec \"$PART\" --ignored --exact \"$0\" --nocapture";
    let ran = Command::new("unshare")
        .args(["-Urm", "sh", "-c", mount, &part])
        .env("DISK", disk.path())
        .env("PART", std::env::current_exe().unwrap())
        .output();
    match ran {
        Ok(output) if output.status.success() => assert!(has_run(&output), "{part}"),
        Ok(output) => {
            let (status, errors) = (output.status, String::from_utf8_lossy(&output.stderr));
            let no_disk = status.code() == Some(77) || errors.starts_with("unshare:");
            assert!(no_disk, "{status}\n{}\n{errors}", String::from_utf8_lossy(&output.stdout));
            skipped(test, format!("no disk of its own here: {}", errors.trim()));
        }
        Err(error) => skipped(test, format!("unshare: {error}")),
    }
}

/// The small disk, and what fills it.
struct Disk {
    folder: PathBuf,
}

impl Disk {
    fn find() -> Self {
        Self { folder: std::env::var_os("DISK").unwrap().into() }
    }

    /// Takes all that is left; false where nothing was.
    fn fill(&self) {
        let ballast = fs::File::create(self.folder.join("ballast")).unwrap();
        for at in 0..64 {
            if std::os::unix::fs::FileExt::write_all_at(&ballast, &[7; 4096], at * 4096).is_err() {
                return;
            }
        }
        panic!("the disk is larger than it should be");
    }

    fn empty(&self) {
        fs::remove_file(self.folder.join("ballast")).unwrap();
    }

    /// A record on it, that the server of the world sees.
    fn record(&self, world: &World) -> (Audit, PathBuf) {
        let journal = FileJournal::create(&self.folder.join("audit")).unwrap();
        let path = journal.path().to_owned();
        drop(world.journal(Fault::Nothing));
        fs::remove_file(world.path("journal")).unwrap();
        symlink(&path, world.path("journal")).unwrap();
        (Audit::start(journal, Redactor::default(), AuditLimits::default()).unwrap(), path)
    }
}

/// What is logged as a warning or an error, a line each: what it says, then its other fields.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?} "),
            "error" => {}
            name => self.fields += &format!("{name}={value:?} "),
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line.message + &line.fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn on_a_full_disk_no_call_leaves_and_room_is_all_it_takes_to_go_on() {
    let test = "on_a_full_disk_no_call_leaves_and_room_is_all_it_takes_to_go_on";
    on_a_small_disk(test, "on_a_full_disk");
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn on_a_full_disk() {
    let (disk, world, log) = (Disk::find(), World::start(), Log::default());
    // The writer has a thread of its own; this process has no other test.
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let (audit, path) = disk.record(&world);
    assert!(world.call(&audit, "before").await.is_ok());
    disk.fill();
    // The room reserved for the outcomes so far may hold a few records more.
    let mut tries = 0;
    while world.call(&audit, &format!("full-{tries}")).await.is_ok() {
        tries += 1;
        assert!(tries < 500);
    }
    let left = world.left_tags();
    for tag in ["still-full", "full-for-long", "full-for-ever"] {
        let error = world.call(&audit, tag).await.unwrap_err();
        assert_eq!(error.cause.reason(), Reason::AuditUnavailable);
    }
    assert_eq!(world.left_tags(), left);
    disk.empty();
    assert!(world.call(&audit, "after").await.is_ok());
    // One line while it is full, and one with the rest once it is not.
    let lines = log.0.lock().unwrap().clone();
    let [first, last] = lines.as_slice() else { panic!("{lines:#?}") };
    assert!(first.contains("calls are refused: they cannot be recorded calls=1 "), "{first}");
    assert!(last.contains("records can be written again") && last.ends_with("calls=3 "), "{last}");
    audit.close().unwrap();
    Ledger::read(fs::read_to_string(path).unwrap()).must_account_for(&world.left());
    assert_eq!(world.left_tags().len(), left.len() + 1);
    world.end().await;
}

#[test]
fn an_outcome_fits_on_a_disk_that_filled_up_after_its_intent() {
    let test = "an_outcome_fits_on_a_disk_that_filled_up_after_its_intent";
    on_a_small_disk(test, "filled_up_after_the_intent");
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn filled_up_after_the_intent() {
    let (disk, world) = (Disk::find(), World::start());
    world.verdict("warm").await;
    let (audit, path) = disk.record(&world);
    fs::write(world.path("hold"), "").unwrap();
    let calls = async { tokio::join!(world.call(&audit, "a"), world.call(&audit, "b")) };
    let trouble = async {
        // The server takes one call at a time: the other one's intent is written all the same.
        while Ledger::read(fs::read_to_string(&path).unwrap()).of("intent").len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        disk.fill();
        fs::remove_file(world.path("hold")).unwrap();
    };
    let ((a, b), ()) = tokio::join!(calls, trouble);
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
    audit.close().unwrap();
    Ledger::read(fs::read_to_string(path).unwrap()).must_account_for(&world.left());
    world.end().await;
}
