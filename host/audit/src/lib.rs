//! The record: lines in a chain of digests, written and durable in the order they must be, with signed heads.
//!
//! [`Trail`] is what others hand records to; one thread writes them (`writer`). What a record is about is theirs to
//! know: here an intent is something that keeps room for its outcome, and everything else is a line. `read` takes
//! nothing for granted and shares no code that writes.

mod chain;
mod chain_writer;
mod head;
mod head_file;
mod heads;
mod journal;
pub mod lock_file;
mod outcome;
pub mod private_folder;
mod queue;
pub mod read;
mod record;
mod recorder;
mod settings;
mod shared;
mod to_sync;
mod trail;
mod volatile;
mod writer;

pub use head::{HeadKey, KeyError, NoPublicKey, SignedHead, parse_public_key};
pub use head_file::forget_heads;
pub use heads::{HeadSink, NotKept, lines_of};
pub use journal::{ChainEnd, FileJournal, Journal, JournalError};
pub use outcome::RecordedOutcome;
pub use record::{ExchangeRecord, OutcomeRecord, Record, UsageRecord};
pub use recorder::Recorder;
pub use settings::{ArgumentsRecorded, AuditSettings};
pub use shared::SharedJournal;
pub use to_sync::ToSync;
pub use trail::Trail;
pub use volatile::VolatileJournal;
pub use writer::RecordLost;

#[cfg(test)]
mod tests;
