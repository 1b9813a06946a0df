//! What the store keeps, and how it refuses.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::PathBuf,
    time::{Duration, UNIX_EPOCH},
};

use futures::FutureExt as _;
use sqlx::{
    Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};
use tempfile::TempDir;

use super::*;
use crate::store::{SessionStore as _, StoredSession};
use footbridge_calls::session::BudgetOf;
use footbridge_core::{
    digest::Digest,
    limits::overrides::{Override, Overrides},
};
use footbridge_edge::listener::{Access, Listen};
use footbridge_processes::process::ProcessIdentity;

fn session(name: &str) -> StoredSession {
    StoredSession {
        name: name.parse().unwrap(),
        token: Digest::of(name),
        created: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        expires: Some(UNIX_EPOCH + Duration::from_millis(1_700_000_009_456)),
        policy: "open".into(),
        labels: [("team".to_owned(), "ä \"search\"".to_owned())].into(),
        limits: ["calls.burst=5", "calls.idle_time=90s"].iter().map(|text| text.parse::<Override>().unwrap()).collect(),
        services: ["git", "model"].iter().map(|name| name.parse().unwrap()).collect(),
        listens: vec![
            Listen {
                endpoint: "unix:/run/x.sock".parse().unwrap(),
                access: Access { mode: 0o666, owner: Some(u32::MAX - 1), allowed_uids: Some([100_000, 7].into()) },
                peer_cid: None,
            },
            Listen { peer_cid: Some(4_000_000_000), ..Listen::at("vsock:any:7179".parse().unwrap()) },
        ],
        process: Some(ProcessIdentity { pid: 42, started: u64::MAX, boot: "a-b".into() }),
        spent: [(BudgetOf::Tokens, u64::MAX), (BudgetOf::Arguments, 7)].into_iter().collect(),
        unread: None,
    }
}

fn plain(name: &str) -> StoredSession {
    StoredSession {
        expires: None,
        labels: Default::default(),
        limits: Default::default(),
        services: Default::default(),
        listens: Vec::new(),
        process: None,
        spent: Default::default(),
        ..session(name)
    }
}

async fn refusal(folder: &TempDir) -> String {
    Store::open(folder.path()).await.unwrap_err().to_string()
}

/// A connection without any of the store's care.
async fn raw(folder: &TempDir) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join(FILE)).create_if_missing(true);
    SqliteConnection::connect_with(&options).await.unwrap()
}

#[tokio::test]
async fn sessions_come_back_as_they_were_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    store.add_session(&session("one")).await.unwrap();
    store.add_session(&plain("two")).await.unwrap();
    store.close().await;
    let store = Store::open(folder.path()).await.unwrap();
    assert_eq!(store.sessions().await.unwrap(), [session("one"), plain("two")]);
    let (one, nobody) = ("one".parse().unwrap(), "nobody".parse().unwrap());
    let other = Digest::of("other");
    assert!(store.set_token(&one, other).await.unwrap() && !store.set_token(&nobody, Digest::of("z")).await.unwrap());
    assert_eq!(store.sessions().await.unwrap()[0].token, other);
    let limits: Overrides = ["budget.tokens=7".parse().unwrap()].into_iter().collect();
    assert!(store.set_limits(&one, &limits).await.unwrap() && !store.set_limits(&nobody, &limits).await.unwrap());
    assert_eq!(store.sessions().await.unwrap()[0].limits, limits);
    assert!(store.remove_session(&one).await.unwrap() && !store.remove_session(&one).await.unwrap());
    assert_eq!(store.sessions().await.unwrap(), [plain("two")]);
    // Its listeners went with it: the name can be used again.
    store.add_session(&session("one")).await.unwrap();
}

#[tokio::test]
async fn a_session_of_another_version_is_there_by_itself_and_can_be_forgotten() {
    for (column, written, what) in [
        ("limits", "{\"calls.no_such\":\"5\"}", "limits"),
        ("services", "[\"\"]", "services"),
        ("spent", "{\"parrots\":5}", "budgets"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        store.add_session(&session("odd")).await.unwrap();
        store.add_session(&plain("other")).await.unwrap();
        let mut raw = raw(&folder).await;
        let change = format!("UPDATE sessions SET {column} = ? WHERE name = 'odd'");
        sqlx::query(sqlx::AssertSqlSafe(change)).bind(written).execute(&mut raw).await.unwrap();
        let all = store.sessions().await.unwrap();
        let unread: Vec<_> = all.iter().map(|session| (session.name.as_str(), session.unread)).collect();
        assert_eq!(unread, [("odd", Some(what)), ("other", None)]);
        assert!(store.remove_session(&"odd".parse().unwrap()).await.unwrap());
        assert_eq!(store.sessions().await.unwrap(), [plain("other")]);
    }
}

#[tokio::test]
async fn what_sessions_spend_comes_back_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    store.add_session(&plain("one")).await.unwrap();
    let spent = |requests| [(BudgetOf::Requests, requests)].into_iter().collect();
    let one = StoredSession { spent: spent(3), ..plain("one") };
    let before = StoredSession { spent: spent(4), created: one.created - Duration::from_millis(1), ..plain("one") };
    store.set_spent(&[plain("nobody"), one.clone(), before]).await.unwrap();
    store.close().await;
    let store = Store::open(folder.path()).await.unwrap();
    assert_eq!(store.sessions().await.unwrap(), [one]);
}

#[tokio::test]
async fn a_name_is_there_once_and_nothing_of_the_second_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    store.add_session(&plain("one")).await.unwrap();
    let again = StoredSession { token: Digest::of("again"), ..session("one") };
    let error = store.add_session(&again).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Taken), "{error}");
    assert_eq!(store.sessions().await.unwrap(), [plain("one")]);
}

#[tokio::test]
async fn its_files_are_for_this_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    store.add_session(&session("one")).await.unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
    store.close().await;
    let path = folder.path().join(FILE);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refusal(&folder).await.contains("other users"));
}

#[tokio::test]
async fn a_link_is_never_followed() {
    for name in [FILE.to_owned(), format!("{FILE}-wal"), format!("{FILE}-shm")] {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path().join("target"), folder.path().join(&name)).unwrap();
        let text = refusal(&folder).await;
        assert!(text.contains("is a link") && text.contains(FILE), "{name}: {text}");
        assert!(!elsewhere.path().join("target").exists());
    }
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let rubbish = "this is no database. ".repeat(500);
    fs::write(&path, &rubbish).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let text = refusal(&folder).await;
    assert!(text.contains("is damaged") && text.contains("move it away"), "{text}");
    assert_eq!(fs::read_to_string(&path).unwrap(), rubbish);
}

#[tokio::test]
async fn a_database_with_torn_pages_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    for n in 0..200 {
        store.add_session(&session(&format!("s{n}"))).await.unwrap();
    }
    store.close().await;
    let path = folder.path().join(FILE);
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > 40_000, "{}", bytes.len());
    bytes[8192..32768].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let text = refusal(&folder).await;
    assert!(text.contains("is damaged"), "{text}");
}

#[tokio::test]
async fn a_newer_one_and_another_programs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    Store::open(folder.path()).await.unwrap().close().await;
    let mut connection = raw(&folder).await;
    sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut connection).await.unwrap();
    let text = refusal(&folder).await;
    assert!(text.contains("newer footbridge") && text.contains("99"), "{text}");
    sqlx::raw_sql("PRAGMA application_id = 5; PRAGMA user_version = 1").execute(&mut connection).await.unwrap();
    let text = refusal(&folder).await;
    assert!(text.contains("another program's"), "{text}");
}

#[tokio::test]
async fn another_programs_database_is_not_touched() {
    for mark in ["", "PRAGMA application_id = 5;", "PRAGMA user_version = 3;"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let mut connection = raw(&folder).await;
        let theirs = format!("CREATE TABLE notes (text); INSERT INTO notes VALUES ('x'); {mark}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(theirs)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let before = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
        let text = refusal(&folder).await;
        assert!(text.contains("another program's"), "{mark}: {text}");
        assert_eq!((fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap()), before, "{mark}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{mark}: nothing is beside it");
    }
}

#[tokio::test]
async fn another_programs_database_is_not_touched_while_all_of_it_is_in_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options.journal_mode(SqliteJournalMode::Wal)).await.unwrap();
    sqlx::raw_sql("CREATE TABLE notes (text); INSERT INTO notes VALUES ('x')").execute(&mut connection).await.unwrap();
    let all = || ["", "-wal", "-shm"].map(|ending| PathBuf::from(format!("{}{ending}", path.display())));
    for file in all() {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    // As a program that was killed leaves it: the log is there, and nobody has it open.
    let left = tempfile::tempdir().unwrap();
    for file in all() {
        fs::copy(&file, left.path().join(file.file_name().unwrap())).unwrap();
    }
    connection.close().await.unwrap();
    fs::set_permissions(left.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let as_they_are = || {
        let mut files: Vec<_> = fs::read_dir(left.path()).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|file| (fs::read(&file).unwrap(), file)).collect::<Vec<_>>()
    };
    let before = as_they_are();
    assert!(before.len() == 3 && before.iter().all(|(content, _)| !content.is_empty()), "all of it is in the log");
    let text = refusal(&left).await;
    assert!(text.contains("another program's"), "{text}");
    assert_eq!(as_they_are(), before);
}

#[tokio::test]
async fn the_connection_is_back_when_its_user_is_done_or_was_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    // Its runtime does nothing but this: what was left to a task would not be done.
    store.add_session(&plain("one")).await.unwrap();
    assert!(store.connection.lend().now_or_never().unwrap().is_ok());
    // Dropped in the middle of a change: all of it is there or nothing, and nothing stays locked.
    for name in ["two", "three", "four"] {
        let session = plain(name);
        let mut adding = Box::pin(store.add_session(&session));
        assert!(futures::poll!(adding.as_mut()).is_pending());
        drop(adding);
        store.remove_session(&"nobody".parse().unwrap()).await.unwrap();
    }
    let kept = store.sessions().await.unwrap();
    assert!(kept.contains(&plain("one")) && kept.iter().all(|one| *one == plain(one.name.as_str())), "{kept:?}");
    store.close().await;
    let error = store.sessions().await.unwrap_err();
    assert!(matches!(error.problem, Problem::Closed), "{error}");
}

#[tokio::test]
async fn no_memory_is_shared_by_a_file_that_a_full_disk_could_take_away() {
    let folder = tempfile::tempdir().unwrap();
    // An earlier version's, in its mode.
    open::leave_older(&folder.path().join(FILE), 2).await;
    let stores = [Store::open(folder.path()).await.unwrap(), Store::open(folder.path()).await.unwrap()];
    stores[0].add_session(&plain("one")).await.unwrap();
    assert_eq!(stores[1].sessions().await.unwrap(), [plain("one")]);
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, [FILE.to_owned(), format!("{FILE}-journal")]);
    let path = folder.path().join(&names[1]);
    let own = fs::OpenOptions::new().write(true).open(&path).unwrap();
    if nix::fcntl::fallocate(&own, nix::fcntl::FallocateFlags::empty(), 0, 1) == Err(nix::errno::Errno::EOPNOTSUPP) {
        return eprintln!("the room of the journal is not looked at: this file system keeps none");
    }
    let journal = fs::metadata(path).unwrap();
    assert_eq!((journal.len(), journal.mode() & 0o777), (connection::JOURNAL_ROOM, 0o600), "its room stays");
    assert!(journal.blocks() * 512 >= connection::JOURNAL_ROOM, "on the disk");
}

#[tokio::test]
async fn a_session_that_makes_no_sense_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    store.add_session(&session("one")).await.unwrap();
    sqlx::raw_sql("UPDATE sessions SET labels = 'nonsense'").execute(&mut store.raw().await).await.unwrap();
    let text = store.sessions().await.unwrap_err().to_string();
    assert!(text.contains("labels of session \"one\""), "{text}");
}

#[tokio::test]
async fn one_that_was_removed_or_moved_away_is_told_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let store = Store::open(&state).await.unwrap();
    store.add_session(&plain("one")).await.unwrap();
    let (file, aside) = (state.join(FILE), state.join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    let error = store.add_session(&plain("two")).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Moved), "{error}");
    std::fs::rename(&aside, &file).unwrap();
    store.add_session(&plain("two")).await.unwrap();
    std::fs::remove_dir_all(&state).unwrap();
    let error = store.add_session(&plain("three")).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Moved), "{error}");
}

#[tokio::test]
async fn several_may_have_it_open_and_one_that_never_lets_go_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (Store::open(folder.path()).await.unwrap(), Store::open(folder.path()).await.unwrap());
    first.add_session(&plain("one")).await.unwrap();
    second.add_session(&plain("two")).await.unwrap();
    assert_eq!(first.sessions().await.unwrap().len(), 2);
    let mut connection = raw(&folder).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut connection).await.unwrap();
    let error = first.add_session(&plain("three")).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Locked), "{error}");
    sqlx::raw_sql("ROLLBACK").execute(&mut connection).await.unwrap();
    assert_eq!(second.sessions().await.unwrap().len(), 2, "nothing of it is there");
}

#[tokio::test]
async fn many_may_open_a_new_one_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let opened = futures::future::join_all((0..4).map(|_| Store::open(folder.path()))).await;
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
}
