//! The store in SQLite: `state.db` in the state folder.
//!
//! Several harnesses may have it open at once. Every change is on disk when it is done. Nothing outside knows SQL. It is
//! no write-ahead log: that is shared by memory over a file, and where the disk is full when a block of it is touched the
//! kernel ends the process (SIGBUS).
//!
//! Failure paths: a file that is damaged, another program's or of a newer Footbridge is refused at the start and left
//! as it is; a change that cannot be written has not happened.

mod connection;
mod heads;
mod open;
mod pins;
mod problem;
mod sessions;
mod time;

use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use sqlx::{Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::store::{Problem, StateStore, StoreError};
use connection::{SharedConnection, Turn};

/// The name of the file in the state folder.
pub const FILE: &str = "state.db";

/// The store, open. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    connection: SharedConnection,
    path: PathBuf,
    /// Where it was opened: work for it goes on there when whoever asked for it has gone.
    home: Handle,
    tasks: TaskTracker,
}

impl Store {
    /// Opens the store of a state folder, and makes both where they are missing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open(state: &Path) -> Result<Self, StoreError> {
        let path = state.join(FILE);
        let connection = open::open(state, &path).await.map_err(|problem| error_at(&path, problem))?;
        Ok(Self { connection, path, home: Handle::current(), tasks: TaskTracker::new() })
    }

    /// Closes it. What was done before is on disk either way.
    pub async fn close(&self) {
        self.connection.close().await;
    }

    /// Its connection, for tests of other modules that need what it never does.
    #[cfg(test)]
    pub(crate) async fn raw(&self) -> SqliteConnection {
        self.connection.lend().await.unwrap().0
    }

    /// The connection, and the right to put it back by [`Turn::over`].
    async fn lend(&self) -> Result<(SqliteConnection, Turn), StoreError> {
        self.connection.lend().await.map_err(|problem| self.failed(problem))
    }

    /// The same, if nobody has it now.
    async fn lend_at_once(&self) -> Result<Option<(SqliteConnection, Turn)>, StoreError> {
        self.connection.lend_at_once().await.map_err(|problem| self.failed(problem))
    }

    /// Executes one statement, and says how many rows it changed.
    async fn changes(&self, query: Query<'_, Sqlite, SqliteArguments>) -> Result<u64, StoreError> {
        let (mut connection, turn) = self.lend().await?;
        let done = query.execute(&mut connection).await.map_err(Problem::from);
        turn.over(connection, done).map(|done| done.rows_affected()).map_err(|problem| self.failed(problem))
    }

    fn failed(&self, problem: impl Into<Problem>) -> StoreError {
        error_at(&self.path, problem.into())
    }
}

impl StateStore for Store {
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::close(self))
    }
}

fn error_at(path: &Path, problem: Problem) -> StoreError {
    StoreError { place: path.display().to_string(), problem }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vetting_tests;
