//! Why a server cannot be used.

use std::sync::Arc;

use footbridge_core::redact::Redactor;

/// Why a server cannot be used, for the guest: it names the server, the cause and the next step, and no path, address
/// or credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unavailable {
    why: Arc<str>,
    starting: bool,
}

impl Unavailable {
    /// It does not run.
    #[must_use]
    pub fn because(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into(), starting: false }
    }

    /// It does not run yet.
    #[must_use]
    pub fn starting(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into(), starting: true }
    }

    /// The same, without the values of configured secrets.
    pub(crate) fn scrubbed(self, redactor: &Redactor) -> Self {
        Self { why: redactor.scrub(&self.why).into(), starting: self.starting }
    }

    /// Whether it will run without anybody doing anything.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        self.starting
    }
}
