//! Why the store cannot be used, and what to do.

use std::{io, path::PathBuf};

use footbridge_audit::private_folder::FolderError;

/// The store cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the store {} {problem}", path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with the store.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Its folder is not this user's alone, or cannot be made.
    #[error("cannot be opened: {0}")]
    Folder(#[from] FolderError),
    /// It is a link, a folder, another user's, or open to others.
    #[error("cannot be trusted: it {0}; move it away, or fix its owner and mode (0600)")]
    Unsafe(&'static str),
    /// It is no database, or a broken one.
    #[error(
        "is damaged ({0}): move it away, with its -wal and -shm files, and start again; sessions and pins in it are lost"
    )]
    Damaged(String),
    /// It belongs to another program.
    #[error("is another program's database: move it away, or name another folder with FOOTBRIDGE_STATE")]
    Foreign,
    /// A newer Footbridge wrote it.
    #[error(
        "was written by a newer footbridge (its version is {found}, this program knows {known}): use that one, or name another folder with FOOTBRIDGE_STATE"
    )]
    Newer {
        /// The version of the file.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// Somebody else is writing, and does not stop.
    #[error("is locked by another process: end what holds it open, then try again")]
    Locked,
    /// There is no room.
    #[error("cannot be written: the disk is full; make room, then try again")]
    Full,
    /// It must not be written.
    #[error(
        "cannot be written: it is read-only; mount its file system writable, or give it and its -wal and -shm files mode 0600"
    )]
    ReadOnly,
    /// That name is in it already.
    #[error("has a session of that name already")]
    Taken,
    /// A server that defines other tools all the time.
    #[error(
        "keeps at most {pins} definitions of one server, of {bytes} bytes in all, and as many bytes of changed ones: \"footbridge servers pins forget\" makes room"
    )]
    TooManyPins {
        /// How many.
        pins: i64,
        /// Their bytes.
        bytes: i64,
    },
    /// The file system refuses.
    #[error("cannot be used: {0}")]
    Io(#[from] io::Error),
    /// Anything else that the database says.
    #[error("cannot be used: {0}")]
    Database(sqlx::Error),
}

/// Primary result codes of SQLite.
mod code {
    pub(super) const BUSY: u32 = 5;
    pub(super) const LOCKED: u32 = 6;
    pub(super) const READONLY: u32 = 8;
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
                    code::READONLY => Self::ReadOnly,
                    code::CORRUPT | code::NOTADB => Self::Damaged(database.message().to_owned()),
                    code::FULL => Self::Full,
                    _ if database.is_unique_violation() => Self::Taken,
                    _ => Self::Database(error),
                }
            }
            sqlx::Error::PoolTimedOut => Self::Locked,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Damaged(error.to_string()),
            _ => Self::Database(error),
        }
    }
}
