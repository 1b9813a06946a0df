//! Random texts: ids, and the tokens that open sessions.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use footbridge_proto::token::{PREFIX, Token};
use ring::{
    digest::{Context, SHA256},
    rand::{SecureRandom, SystemRandom},
};

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

/// Makes ids that nobody can guess and that do not come twice, without asking the system for each.
pub struct Ids {
    key: [u8; 32],
    next: AtomicU64,
}

impl Ids {
    /// Ids of a key that is new.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn new() -> Result<Self, NoRandomness> {
        let mut key = [0; 32];
        SystemRandom::new().fill(&mut key).map_err(|_| NoRandomness)?;
        Ok(Self { key, next: AtomicU64::new(0) })
    }

    /// The next one, of 12 bytes, as [`random_text`] writes them: what follows a number by the key.
    #[must_use]
    pub fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut context = Context::new(&SHA256);
        context.update(&self.key);
        context.update(&number.to_be_bytes());
        URL_SAFE_NO_PAD.encode(&context.finish().as_ref()[..12])
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ids").finish_non_exhaustive()
    }
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
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ_and_so_do_those_of_another_key() {
        let (ids, others) = (Ids::new().unwrap(), Ids::new().unwrap());
        let all: HashSet<String> = (0..1000).flat_map(|_| [ids.next(), others.next()]).collect();
        assert!(all.len() == 2000 && all.iter().all(|id| id.len() == 16), "{all:?}");
    }

    #[test]
    fn tokens_are_43_characters_after_the_prefix_and_differ() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert!(a.expose().starts_with(PREFIX) && a.expose().len() == PREFIX.len() + 43 && a != b);
    }
}
