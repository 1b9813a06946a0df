//! Which store keeps the state: a choice of the configuration, and the one place that looks at it. Another one is a
//! module beside `sqlite`, a variant, and the arms here that the compiler then asks for.

use std::{ops::Not as _, path::Path, sync::Arc};

use serde::Deserialize;

use super::{StateStore, StoreError, sqlite};
use footbridge_audit::SignedHead;

/// Where state is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// In a file of the state folder.
    #[default]
    Sqlite,
}

impl StoreKind {
    /// Opens that of a state folder, and makes it where it is missing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open(self, state: &Path) -> Result<Arc<dyn StateStore>, StoreError> {
        match self {
            Self::Sqlite => Ok(Arc::new(sqlite::Store::open(state).await?)),
        }
    }

    /// Opens it, if there ever was a harness that made it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) async fn open_if_there(self, state: &Path) -> Result<Option<Arc<dyn StateStore>>, StoreError> {
        let is_there = match self {
            Self::Sqlite => state.join(sqlite::FILE).symlink_metadata().is_ok(),
        };
        if is_there { self.open(state).await.map(Some) } else { Ok(None) }
    }

    /// Whether nothing is kept: there is no store, or an empty one, as a lost file leaves it.
    #[must_use]
    pub fn is_empty(self, state: &Path) -> bool {
        match self {
            Self::Sqlite => state.join(sqlite::FILE).symlink_metadata().is_ok_and(|meta| meta.len() > 0).not(),
        }
    }

    /// The signed heads that are kept, oldest first. Nothing is made or changed.
    ///
    /// # Errors
    /// When it cannot be trusted or read.
    pub(crate) async fn read_heads(self, state: &Path) -> Result<Vec<SignedHead>, StoreError> {
        match self {
            Self::Sqlite => sqlite::Store::heads_in(state).await,
        }
    }
}
