//! Which store a state folder has: the one place that looks at that. There is one kind; another is another variant, and
//! [`StoreKind::of`] is where a setting would choose it.

use std::{
    ops::Not as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{StateStore, StoreError, sqlite};
use footbridge_audit::SignedHead;

/// Where state is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreKind {
    /// In a file of this folder.
    Sqlite(PathBuf),
}

impl StoreKind {
    /// That of a state folder.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self::Sqlite(state.to_owned())
    }

    /// Opens it, and makes it where it is missing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open(&self) -> Result<Arc<dyn StateStore>, StoreError> {
        match self {
            Self::Sqlite(folder) => Ok(Arc::new(sqlite::Store::open(folder).await?)),
        }
    }

    /// Opens it, if there ever was a harness that made it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_if_there(&self) -> Result<Option<Arc<dyn StateStore>>, StoreError> {
        let is_there = match self {
            Self::Sqlite(folder) => folder.join(sqlite::FILE).symlink_metadata().is_ok(),
        };
        if is_there { self.open().await.map(Some) } else { Ok(None) }
    }

    /// Whether nothing is kept: there is no store, or an empty one, as a lost file leaves it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Sqlite(folder) => folder.join(sqlite::FILE).symlink_metadata().is_ok_and(|meta| meta.len() > 0).not(),
        }
    }

    /// The signed heads that are kept, oldest first. Nothing is made or changed.
    ///
    /// # Errors
    /// When it cannot be trusted or read.
    pub async fn read_heads(&self) -> Result<Vec<SignedHead>, StoreError> {
        match self {
            Self::Sqlite(folder) => sqlite::Store::heads_in(folder).await,
        }
    }
}
