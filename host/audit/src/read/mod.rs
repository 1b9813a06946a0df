//! The record as it is read: chains and their files, records of one call, and whether a chain is whole.
//!
//! Reading takes nothing for granted: whoever can write to the state folder can write anything there.

mod files;
mod heads;
mod record;
mod report;
mod verify;
mod walk;

pub use files::{ChainFolder, ChainLines, Lines, RawLine, chains, find, folders};
pub use heads::{KnownHeads, NoHead, parse_heads};
pub use record::{Calls, ReadRecord, TYPES};
pub use report::{ChainProblem, ProblemKind, Report};
pub use verify::verify;
