//! What sessions are called, and the random texts that open them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use footbridge_proto::token::{PREFIX, Token};
use ring::rand::{SecureRandom, SystemRandom};

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

/// The system has no random bytes.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

/// Random bytes in a text of `[A-Za-z0-9_-]`.
///
/// # Errors
/// [`NoRandomness`].
pub fn random_text<const BYTES: usize>() -> Result<String, NoRandomness> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A new token: [`PREFIX`] and 32 random bytes.
///
/// # Errors
/// [`NoRandomness`].
pub fn new_token() -> Result<Token, NoRandomness> {
    Token::parse(&format!("{PREFIX}{}", random_text::<32>()?)).map_err(|_| NoRandomness)
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

    #[test]
    fn tokens_are_43_characters_after_the_prefix_and_differ() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert!(a.expose().starts_with(PREFIX) && a.expose().len() == PREFIX.len() + 43 && a != b);
    }
}
