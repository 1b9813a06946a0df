//! What outlives a harness: the sessions of `serve`, the pins of what servers define, and signed heads of the record.
//!
//! Each kind of thing has a trait, so that another database is another folder beside `sqlite`, and a variant of
//! [`StoreKind`], which the configuration chooses. No token is ever in a store, only digests.
//!
//! Failure paths: a store that is damaged, another program's or of a newer Footbridge is refused at the start and left as
//! it is; a change that cannot be written has not happened.

mod error;
mod heads;
mod kind;
#[cfg(test)]
pub(crate) mod memory_tests;
mod pins;
mod sessions;
pub mod sqlite;

use futures::future::BoxFuture;

pub use error::{Problem, StoreError};
use footbridge_calls::pins::PinStore;
pub use heads::HeadStore;
pub use kind::StoreKind;
pub use pins::{Acceptance, NotAccepted, PinReview, StoredDefinition, StoredPin};
pub use sessions::{SessionStore, StoredSession};

/// All that is kept of a state folder, open.
pub trait StateStore: SessionStore + PinStore + PinReview + HeadStore {
    /// Closes it. What was done before is on disk either way.
    fn close(&self) -> BoxFuture<'_, ()>;
}
