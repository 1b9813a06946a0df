//! The one connection of a store, lent to one user at a time: writes go one after the other anyway, and each connection
//! costs a thread.
//!
//! It is back the moment that its user is done. A pool of sqlx takes one back in a task of its own, which may stand
//! behind whatever its thread does next; meanwhile the store seems to be locked by somebody, and nobody is.
//!
//! States: not connected; idle; lent; closed. One whose user failed, or was dropped half way, is thrown away, and the
//! next user connects anew: a commit that fails has ended its transaction, which sqlx does not know.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};

use crate::store::Problem;

/// How long a write waits for another process's.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// How long one waits for the connection: its user may wait for another process, and so may whoever connects.
const PATIENCE: Duration = Duration::from_secs(2 * BUSY.as_secs());

/// What the journal keeps on the disk between changes, bytes: a change of what is there already, as the end of a session,
/// needs no more, and so no room of a disk that is full.
pub(super) const JOURNAL_ROOM: u64 = 128 * 1024;

/// Where it is while nobody has it. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct SharedConnection {
    options: Arc<SqliteConnectOptions>,
    idle: Arc<Mutex<Option<SqliteConnection>>>,
    closed: Arc<AtomicBool>,
}

/// The right to put a connection back.
#[derive(Debug)]
pub(super) struct Turn(OwnedMutexGuard<Option<SqliteConnection>>);

impl SharedConnection {
    /// This one, and others like it.
    pub(super) fn new(options: SqliteConnectOptions, first: SqliteConnection) -> Self {
        let (idle, closed) = (Arc::new(Mutex::new(Some(first))), Arc::new(AtomicBool::new(false)));
        Self { options: Arc::new(options), idle, closed }
    }

    /// The connection, once those before are done with it.
    ///
    /// # Errors
    /// [`Problem::Closed`]; [`Problem::Slow`] where those before take too long; or why there is no connection.
    pub(super) async fn lend(&self) -> Result<(SqliteConnection, Turn), Problem> {
        let lent = async { self.lent(Arc::clone(&self.idle).lock_owned().await).await };
        timeout(PATIENCE, lent).await.unwrap_or(Err(Problem::Slow))
    }

    /// The connection, if nobody has it now.
    ///
    /// # Errors
    /// As [`Self::lend`].
    pub(super) async fn lend_at_once(&self) -> Result<Option<(SqliteConnection, Turn)>, Problem> {
        let Ok(idle) = Arc::clone(&self.idle).try_lock_owned() else { return Ok(None) };
        timeout(PATIENCE, self.lent(idle)).await.unwrap_or(Err(Problem::Slow)).map(Some)
    }

    async fn lent(
        &self,
        mut idle: OwnedMutexGuard<Option<SqliteConnection>>,
    ) -> Result<(SqliteConnection, Turn), Problem> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Problem::Closed);
        }
        let connection = match idle.take() {
            Some(connection) => connection,
            None => {
                let mut connection = SqliteConnection::connect_with(&self.options).await?;
                use_rollback_journal(&mut connection).await?;
                connection
            }
        };
        Ok((connection, Turn(idle)))
    }

    /// Closes it, once whoever has it is done. Who takes too long is left behind: what is done is on disk either way.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let close = async {
            if let Some(connection) = self.idle.lock().await.take() {
                // Nothing is left to be written.
                let _ = connection.close().await;
            }
        };
        let _in_time = timeout(PATIENCE, close).await;
    }
}

impl Turn {
    /// Ends the turn: the connection is kept if all went well.
    pub(super) fn over<T>(mut self, connection: SqliteConnection, done: Result<T, Problem>) -> Result<T, Problem> {
        if done.is_ok() {
            *self.0 = Some(connection);
        }
        done
    }
}

/// The journal of this connection, whose room stays on the disk; what an earlier version used, a write-ahead log, ends with
/// it. While a harness of that version has the file open it stays, and this one can use it too.
pub(super) async fn use_rollback_journal(connection: &mut SqliteConnection) -> Result<(), Problem> {
    let mode = format!("PRAGMA journal_mode = PERSIST; PRAGMA journal_size_limit = {JOURNAL_ROOM}");
    let left = sqlx::raw_sql(sqlx::AssertSqlSafe(mode)).execute(connection).await.map_err(Problem::from);
    match left {
        Ok(_) | Err(Problem::Locked) => Ok(()),
        Err(problem) => Err(problem),
    }
}
