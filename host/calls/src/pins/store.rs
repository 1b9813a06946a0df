//! What pins need of the place that keeps them. One in SQLite is in the binary; another is another implementation.

use std::{error::Error, fmt};

use futures::future::BoxFuture;

use footbridge_core::{digest::Digest, names::ServerName};

/// A definition that a server offers.
#[derive(Debug, Clone, Copy)]
pub struct Definition<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The digest of the text.
    pub digest: Digest,
    /// The canonical text.
    pub text: &'a str,
}

/// A server, as pins know it: another origin is another server, also by the same name.
#[derive(Debug, Clone, Copy)]
pub struct PinnedServer<'a> {
    /// Its name.
    pub name: &'a ServerName,
    /// How it is reached, as one canonical text.
    pub origin: &'a str,
}

/// How what a server offers compares with its pins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Grows when a pin is accepted, changes or is forgotten, whoever does it.
    pub revision: i64,
    /// Whether the server had a pin before.
    pub was_known: bool,
    /// Whether another server had one by the same name.
    pub name_was_known: bool,
    /// Tools that were pinned just now.
    pub new: Vec<String>,
    /// Tools that are not what was pinned, with the definition that was.
    pub changed: Vec<(String, String)>,
}

/// A place that keeps pins, durably, for several harnesses at once.
pub trait PinStore: fmt::Debug + Send + Sync + 'static {
    /// Grows when a pin is accepted, changes or is forgotten, whoever does it. None where this process is just doing
    /// something else with the store, and that is not waited for.
    fn pins_revision(&self, waits: bool) -> BoxFuture<'_, Result<Option<i64>, NoPins>>;

    /// Compares what a server offers with its pins: what is new is pinned, what differs is kept beside its pin.
    /// `listed` says that the server was just asked, so that a definition that is what was pinned ends a change.
    fn compare_pins<'a>(
        &'a self,
        server: PinnedServer<'a>,
        offered: &'a [Definition<'a>],
        listed: bool,
    ) -> BoxFuture<'a, Result<Compared, NoPins>>;

    /// Whether this definition is pinned of a tool, of any server of this name.
    fn is_pinned<'a>(&'a self, server: &'a str, tool: &'a str, digest: Digest) -> BoxFuture<'a, Result<bool, NoPins>>;
}

/// Pins could not be read or written. The text is the operator's.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoPins(Box<dyn Error + Send + Sync>);

impl NoPins {
    /// Because of this.
    #[must_use]
    pub fn because(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}
