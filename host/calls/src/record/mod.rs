//! The record of every call: written and durable before anything leaves, and again when it came back.
//!
//! This stage makes what the next ones demand: an [`Admitted`] is a call whose intent is on disk, and a [`Reply`] is an
//! answer whose outcome (or refusal) is. Neither can be made elsewhere, so an unrecorded call or denial does not
//! build.

mod admitted;
mod again;
mod approval_step;
mod events;
mod lines;
mod redaction;
mod reply;
mod stage;

pub use admitted::{Admitted, Receipt};
pub use again::{Again, Missing, PastCall};
pub(crate) use approval_step::ApprovalStep;
pub use reply::Reply;
pub(crate) use reply::denied;
pub use stage::Audit;
pub(crate) use stage::is_covered;

#[cfg(test)]
mod tests;
