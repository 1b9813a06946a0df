//! What SQLite says is wrong, as what is wrong with a store.

use crate::store::Problem;

/// Result codes of SQLite.
mod code {
    pub(super) const BUSY: u32 = 5;
    pub(super) const LOCKED: u32 = 6;
    pub(super) const READONLY: u32 = 8;
    /// An extended one.
    pub(super) const READONLY_DBMOVED: u32 = 1032;
    /// Another: the file that a journal is to be made beside is not found by its name.
    pub(super) const IOERR_FSTAT: u32 = 1802;
    pub(super) const CORRUPT: u32 = 11;
    pub(super) const FULL: u32 = 13;
    pub(super) const NOTADB: u32 = 26;
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) => {
                // Extended codes hold the primary one in their lowest byte.
                let extended: u32 = database.code().and_then(|code| code.parse().ok()).unwrap_or(0);
                match extended & 0xff {
                    code::BUSY | code::LOCKED => Self::Locked,
                    _ if [code::READONLY_DBMOVED, code::IOERR_FSTAT].contains(&extended) => Self::Moved,
                    code::READONLY => Self::ReadOnly,
                    code::CORRUPT | code::NOTADB => Self::Damaged(database.message().to_owned()),
                    code::FULL => Self::Full,
                    _ if database.is_unique_violation() => Self::Taken,
                    _ => Self::Database(error.into()),
                }
            }
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Damaged(error.to_string()),
            _ => Self::Database(error.into()),
        }
    }
}
