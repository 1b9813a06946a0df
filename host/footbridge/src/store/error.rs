//! Why the store cannot be used, and what to do.

use std::{error::Error, io};

use footbridge_audit::private_folder::FolderError;

/// The store cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the store {place} {problem}")]
pub struct StoreError {
    /// Where it is: of SQLite, the file.
    pub place: String,
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
        "is damaged ({0}): move it away, with the files beside it, and start again; sessions and pins in it are lost"
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
    /// This program's own work on it takes too long.
    #[error("does not answer: what is before in line takes too long, as on a slow disk; try again")]
    Slow,
    /// It was closed, as when the program ends.
    #[error("is closed")]
    Closed,
    /// There is no room.
    #[error("cannot be written: the disk is full; make room, then try again")]
    Full,
    /// It must not be written.
    #[error(
        "cannot be written: it is read-only; mount its file system writable, or give it and the files beside it mode 0600"
    )]
    ReadOnly,
    /// Its file has no name any more, or another one.
    #[error("was removed or moved away while it was open: put it back, or start this anew, and find out who did it")]
    Moved,
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
    Database(Box<dyn Error + Send + Sync>),
}
