//! Random texts: ids, and the tokens that open sessions.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use footbridge_proto::token::{PREFIX, Token};
use ring::rand::{SecureRandom, SystemRandom};

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
    fn tokens_are_43_characters_after_the_prefix_and_differ() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert!(a.expose().starts_with(PREFIX) && a.expose().len() == PREFIX.len() + 43 && a != b);
    }
}
