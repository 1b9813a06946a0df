//! The bearer token: what a sandbox shows to be let in.

use std::fmt;

/// Every token that Footbridge makes starts with this, so that scanners and redaction can find it.
pub const PREFIX: &str = "fbt_";

/// A bearer token. Its value appears only through [`Token::expose`]; `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes the text of a token as it stands in an environment or a file.
    ///
    /// Any non-empty text of visible ASCII is a token: bridges other than Footbridge make their own shapes.
    ///
    /// # Errors
    /// [`TokenError`] when the text could not be put into an HTTP header.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(TokenError::NotVisibleAscii);
        }
        Ok(Self(text.to_owned()))
    }

    /// The token's text, for the one place that sends or hashes it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// Why a text is no token. Never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// There is nothing.
    #[error("the token is empty")]
    Empty,
    /// Blanks, line breaks or other characters that no header may hold.
    #[error("the token holds characters other than visible ASCII")]
    NotVisibleAscii,
}
