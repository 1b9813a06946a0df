//! What a guest calls a server by, and why one cannot be used.

use std::{fmt, str::FromStr, sync::Arc};

use crate::redact::Redactor;

use footbridge_proto::text::needs_escape;

/// The name of a server: what a guest types.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(String);

/// Why a text is no server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a server's name has 1 to 64 bytes, no control or invisible characters, and does not start with \"-\"")]
pub struct BadServerName;

impl FromStr for ServerName {
    type Err = BadServerName;

    fn from_str(text: &str) -> Result<Self, BadServerName> {
        let fits = (1..=64).contains(&text.len()) && !text.starts_with('-') && !text.chars().any(needs_escape);
        if fits { Ok(Self(text.to_owned())) } else { Err(BadServerName) }
    }
}

impl ServerName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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
    pub(super) fn scrubbed(self, redactor: &Redactor) -> Self {
        Self { why: redactor.scrub(&self.why).into(), starting: self.starting }
    }

    /// Whether it will run without anybody doing anything.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        self.starting
    }
}
