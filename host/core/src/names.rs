//! What servers and sessions are called, and the labels that an operator finds a session by.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc};

use footbridge_proto::text::needs_escape;

/// The name of a server: what a guest types. Clones share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(Arc<str>);

/// Why a text is no server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a server's name has 1 to 64 bytes, no control or invisible characters, and does not start with \"-\"")]
pub struct BadServerName;

impl FromStr for ServerName {
    type Err = BadServerName;

    fn from_str(text: &str) -> Result<Self, BadServerName> {
        let fits = (1..=64).contains(&text.len()) && !text.starts_with('-') && !text.chars().any(needs_escape);
        if fits { Ok(Self(text.into())) } else { Err(BadServerName) }
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

/// The name of a session: `[a-z0-9][a-z0-9-]{0,31}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(String);

/// What an operator finds a session by: keys and values of their own.
pub type Labels = BTreeMap<String, String>;

/// Why a text is no session name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a session's name is 1 to 32 of a-z, 0-9 and -, and does not start with -")]
pub struct BadSessionName;

impl SessionName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionName {
    type Err = BadSessionName;

    fn from_str(text: &str) -> Result<Self, BadSessionName> {
        let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let fits = (1..=32).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(known);
        if fits { Ok(Self(text.to_owned())) } else { Err(BadSessionName) }
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_form() {
        for good in ["a", "0", "a-b-9", &"x".repeat(32)] {
            assert!(good.parse::<SessionName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "A", "a_b", "a/b", "ä", &"x".repeat(33)] {
            assert!(bad.parse::<SessionName>().is_err(), "{bad}");
        }
    }
}
