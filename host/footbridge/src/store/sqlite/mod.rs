//! The store in SQLite: `state.db` in the state folder.
//!
//! Several harnesses may have it open at once. Every change is on disk when it is done. Nothing outside knows SQL.
//!
//! Failure paths: a file that is damaged, another program's or of a newer Footbridge is refused at the start and left
//! as it is; a change that cannot be written has not happened.

mod heads;
mod open;
mod pins;
mod problem;
mod sessions;
mod time;

use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use sqlx::SqlitePool;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::store::{Problem, StateStore, StoreError};

/// The name of the file in the state folder.
pub const FILE: &str = "state.db";

/// The store, open. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    pool: SqlitePool,
    path: PathBuf,
    /// Where it was opened: a connection that another runtime gives back never comes back.
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
        let pool = open::open(state, &path).await.map_err(|problem| error_at(&path, problem))?;
        Ok(Self { pool, path, home: Handle::current(), tasks: TaskTracker::new() })
    }

    /// Closes it. What was done before is on disk either way.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Its connection, for tests of other modules that need what it never does.
    #[cfg(test)]
    pub(crate) async fn raw(&self) -> sqlx::pool::PoolConnection<sqlx::Sqlite> {
        self.pool.acquire().await.unwrap()
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
