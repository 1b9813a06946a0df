//! Opening the store: the file and who may touch it, its health, its version.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{
    errno::Errno,
    fcntl::{FallocateFlags, fallocate},
    libc::O_NOFOLLOW,
};
use sqlx::{
    Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

use super::connection::{BUSY, JOURNAL_ROOM, SharedConnection, use_rollback_journal};
use crate::store::Problem;
use footbridge_audit::private_folder::make_private;

/// Marks the file as ours: "fbrg".
const APPLICATION: u32 = 0x6662_7267;

/// How often a file is looked at that looks like another program's, and the time between.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(30);

/// What brings a file from one version to the next; the version is the number of those applied.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_sessions.sql"),
    include_str!("migrations/0002_session_limits.sql"),
    include_str!("migrations/0003_heads.sql"),
    include_str!("migrations/0004_pins.sql"),
    include_str!("migrations/0005_pin_origins.sql"),
    include_str!("migrations/0006_session_services.sql"),
    include_str!("migrations/0007_session_spent.sql"),
];

pub(super) async fn open(state: &Path, path: &Path) -> Result<SharedConnection, Problem> {
    make_private(state)?;
    make_file(state, path)?;
    refuse_foreign(path).await?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    match prepare(&mut connection).await {
        Ok(()) => {
            keep_room_of_journal(&beside(path, "-journal"));
            Ok(SharedConnection::new(options, connection))
        }
        Err(problem) => {
            // Why it cannot be used says more than why it cannot be closed.
            let _ = connection.close().await;
            Err(problem)
        }
    }
}

/// Bytes of a database with a log beside it that are copied to find out whose it is: ours is small.
const MAX_COPIED: u64 = 64 * 1024 * 1024;
/// Where a database says whose it is.
const APPLICATION_AT: usize = 68;

/// Refuses another program's database before anything of it is touched: it is read as if it never changed, without
/// locks and the files beside it, or, where it may be all in its log, as a copy. What cannot be told in this way is
/// found out when it is opened.
///
/// A new store looks foreign for the moment in which another process makes it, half of it read before that and half
/// after. So only what goes on looking so is.
async fn refuse_foreign(path: &Path) -> Result<(), Problem> {
    for _ in 1..LOOKS {
        if !looks_foreign(path).await {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    if looks_foreign(path).await { Err(Problem::Foreign) } else { Ok(()) }
}

async fn looks_foreign(path: &Path) -> bool {
    let log = beside(path, "-wal");
    if log.metadata().is_ok_and(|log| log.len() > 0) {
        return looks_foreign_with(path, &log).await;
    }
    is_foreign(SqliteConnectOptions::new().filename(path).read_only(true).immutable(true)).await
}

/// The same of one with a log beside it, in which all that says whose it is may stand: opening it would put that into
/// the database, and end with the log gone.
async fn looks_foreign_with(path: &Path, log: &Path) -> bool {
    if is_marked(path) {
        return false;
    }
    let length = |path: &Path| path.metadata().map_or(u64::MAX, |file| file.len());
    if length(path).saturating_add(length(log)) > MAX_COPIED {
        return true;
    }
    let Ok(folder) = tempfile::tempdir() else { return false };
    let copy = folder.path().join("copy");
    if fs::copy(path, &copy).and_then(|_| fs::copy(log, beside(&copy, "-wal"))).is_err() {
        return false;
    }
    is_foreign(SqliteConnectOptions::new().filename(copy)).await
}

/// Whether the file itself says that it is ours.
fn is_marked(path: &Path) -> bool {
    let mut head = [0; APPLICATION_AT + 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.ends_with(&APPLICATION.to_be_bytes())
}

/// A file that SQLite has beside a database.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(ending);
    beside.into()
}

async fn is_foreign(options: SqliteConnectOptions) -> bool {
    let Ok(mut connection) = SqliteConnection::connect_with(&options.create_if_missing(false)).await else {
        return false;
    };
    let found = version(&mut connection).await;
    // Nothing was written that anybody reads.
    let _ = connection.close().await;
    matches!(found, Err(Problem::Foreign))
}

/// Makes the file with its mode, or checks the one that is there. It is never opened here if it exists: closing it
/// again would drop the locks that another connection of this process has on it.
fn make_file(state: &Path, path: &Path) -> Result<(), Problem> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => File::open(state)?.sync_all()?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_to_write(path)?,
        Err(error) => return Err(of_io(error)),
    }
    for ending in ["-wal", "-shm", "-journal"] {
        let beside = beside(path, ending);
        if beside.symlink_metadata().is_ok() {
            check_to_write(&beside)?;
        }
    }
    Ok(())
}

/// Takes the room that the journal of any change may need, while there is some. Zeros behind its end are no journal.
fn keep_room_of_journal(journal: &Path) {
    let options =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).custom_flags(O_NOFOLLOW).open(journal);
    let room = i64::try_from(JOURNAL_ROOM).unwrap_or(i64::MAX);
    match options.map(|file| fallocate(&file, FallocateFlags::empty(), 0, room)) {
        // Where a file system keeps no room, a full disk is in the way of every change.
        Ok(Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS)) => {}
        Ok(Err(errno)) => no_room_kept(journal, &errno),
        Err(error) => no_room_kept(journal, &error),
    }
}

fn no_room_kept(journal: &Path, error: &dyn std::fmt::Display) {
    tracing::warn!(%error, path = %journal.display(), "no room is kept there: on a full disk the end of a session cannot be stored");
}

fn of_io(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::StorageFull => Problem::Full,
        io::ErrorKind::ReadOnlyFilesystem => Problem::ReadOnly,
        _ => error.into(),
    }
}

pub(super) fn check(path: &Path) -> Result<(), Problem> {
    let meta = path.symlink_metadata()?;
    if !meta.is_file() {
        return Err(Problem::Unsafe("is a link or no plain file"));
    }
    if meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err(Problem::Unsafe("belongs to another user"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(Problem::Unsafe("can be read or written by other users"));
    }
    Ok(())
}

/// As [`check`], for a store that is written to.
fn check_to_write(path: &Path) -> Result<(), Problem> {
    check(path)?;
    // SQLite would open it all the same, and make the files beside it with the same mode, for good.
    if path.symlink_metadata()?.mode() & 0o600 == 0o600 { Ok(()) } else { Err(Problem::ReadOnly) }
}

/// Checks that the file is whole and ours, and brings it to this program's version.
async fn prepare(connection: &mut SqliteConnection) -> Result<(), Problem> {
    let health: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut *connection).await?;
    if health != "ok" {
        return Err(Problem::Damaged(health));
    }
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let applied = version(connection).await?;
    if applied > known {
        return Err(Problem::Newer { found: applied, known });
    }
    use_rollback_journal(connection).await?;
    if applied < known {
        migrate(connection, MIGRATIONS).await?;
    }
    Ok(())
}

/// A store as an earlier program left it: with the first of the migrations only.
#[cfg(test)]
pub(super) async fn leave_older(path: &Path, migrations: usize) {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    let options = SqliteConnectOptions::new().filename(path).journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    migrate(&mut connection, &MIGRATIONS[..migrations]).await.unwrap();
    connection.close().await.unwrap();
}

/// How many of the migrations it has; [`Problem::Foreign`] where another program made it. One without any content is
/// nobody's yet.
async fn version(connection: &mut SqliteConnection) -> Result<i64, Problem> {
    // In one statement, so that another process that makes it comes before all of it or after.
    let marks = "SELECT v.user_version, a.application_id, (SELECT count(*) FROM sqlite_master) \
                 FROM pragma_user_version v, pragma_application_id a";
    let row: (i64, i64, i64) = sqlx::query_as(marks).fetch_one(connection).await?;
    match row {
        (version, application, _) if application == i64::from(APPLICATION) => Ok(version),
        (0, 0, 0) => Ok(0),
        _ => Err(Problem::Foreign),
    }
}

/// Applies what is missing of these, all of it or nothing.
async fn migrate(connection: &mut SqliteConnection, migrations: &[&'static str]) -> Result<(), Problem> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Read again: another process may just have done it.
    let applied = version(&mut transaction).await?;
    let missing = usize::try_from(applied).ok().and_then(|from| migrations.get(from..)).unwrap_or_default();
    for migration in missing {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
    }
    // A pragma takes no parameters; both are numbers of this program.
    let mark = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {}", migrations.len());
    sqlx::raw_sql(sqlx::AssertSqlSafe(mark)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}
