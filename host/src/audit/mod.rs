//! The record of every call: written and durable before anything leaves, and again when it came back.
//!
//! This stage makes what the next ones demand: an [`Admitted`] is a call whose intent is on disk, and a [`Reply`] is an
//! answer whose outcome (or refusal) is. Neither can be made elsewhere, so an unrecorded call or denial does not
//! build.

mod admitted;
mod approval;
mod chain;
mod events;
mod head;
mod heads;
mod journal;
mod pen;
mod queue;
pub mod read;
mod record;
mod recorder;
mod redaction;
mod reply;
mod settings;
mod stage;
mod volatile;
mod writer;

pub use admitted::{Admitted, Receipt};
pub(crate) use approval::ApprovalStep;
pub use head::{HeadKey, KeyError, SignedHead};
pub use heads::HeadSink;
pub use journal::{FileJournal, Journal, OpenError};
pub use recorder::Recorder;
pub use reply::Reply;
pub(crate) use reply::denied;
pub use settings::{ArgumentsRecorded, AuditSettings};
pub use stage::Audit;
pub(crate) use stage::is_covered;
pub use volatile::VolatileJournal;

#[cfg(test)]
mod tests;
