//! What people need of the place that keeps pins: to look at them, accept changes, and forget. What a harness needs of
//! it is [`PinStore`](footbridge_calls::pins::PinStore).

use std::time::SystemTime;

use futures::future::BoxFuture;

use super::StoreError;
use footbridge_core::digest::Digest;

/// A pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPin {
    /// The server's name.
    pub server: String,
    /// How the server is reached, as one canonical text; empty where that is not known. By the same name there may be
    /// others.
    pub origin: String,
    /// The tool's name.
    pub tool: String,
    /// What may be called.
    pub pinned: StoredDefinition,
    /// What its server offered last, where that is something else.
    pub changed: Option<StoredDefinition>,
}

/// A definition, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDefinition {
    /// The digest of the text.
    pub digest: Digest,
    /// The canonical text.
    pub text: String,
    /// When it was pinned, or seen first, to the millisecond.
    pub since: SystemTime,
}

/// A change that somebody accepts, by the digest of what they saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// The server's name.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// The digest of the definition to be pinned.
    pub digest: Digest,
}

/// Why a change was not accepted. Nothing was.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    /// It is not what is offered any more, or somebody else accepted it.
    #[error(
        "tool {:?} of server {:?} changed again, or was accepted already, and nothing was accepted: look at it again with \
         \"footbridge servers pins diff\"", .0.tool, .0.server
    )]
    Other(Acceptance),
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Pins, for people.
pub trait PinReview: Send + Sync {
    /// All pins, or those of one server, by name.
    fn pins<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<StoredPin>, StoreError>>;

    /// Pins what somebody accepted: all of it, or nothing.
    fn accept_pins<'a>(&'a self, accepted: &'a [Acceptance]) -> BoxFuture<'a, Result<(), NotAccepted>>;

    /// Forgets the pins of a server, by its name and origin, all or those of these tools: what it offers is pinned anew
    /// when it is seen next. Says how many there were.
    fn forget_pins<'a>(
        &'a self,
        server: &'a str,
        origin: &'a str,
        tools: &'a [String],
    ) -> BoxFuture<'a, Result<u64, StoreError>>;
}
