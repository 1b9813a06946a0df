//! The digest of a body as it passes.
//!
//! It is SHA-256: so lock files, registries and lists of known files name what they mean. To make it takes as long as half
//! of what else is done to a body, so one that is announced as long has BLAKE3, which takes a quarter of that.

use blake3::Hasher;
use bytes::Bytes;
use footbridge_core::digest::{Algorithm, Digest};
use ring::digest::{Context as Sha, SHA256};

/// A body that says that it is longer than this is a long one, bytes.
const LONG: u64 = 16 * 1024 * 1024;
/// What BLAKE3 is given at once, bytes. It digests pieces of whole blocks side by side; those that come begin and end
/// anywhere, and take it up to four times as long.
const BLOCK: usize = 32 * 1024;

/// The digest of a body as it passes.
pub(crate) struct BodyDigest {
    is_long: bool,
    /// Of what passed, once something did.
    made: Option<Made>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are the large one, and one more allocation each would be felt"
)]
enum Made {
    Sha256(Sha),
    Blake3(Box<InBlocks>),
}

/// A BLAKE3, and what is no whole block yet.
struct InBlocks {
    hasher: Hasher,
    rest: Vec<u8>,
}

impl InBlocks {
    fn new() -> Self {
        Self { hasher: Hasher::new(), rest: Vec::with_capacity(BLOCK) }
    }

    fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let (now, later) = data.split_at(data.len().min(BLOCK - self.rest.len()));
            if now.len() == BLOCK {
                self.hasher.update(now);
            } else {
                self.rest.extend_from_slice(now);
            }
            if self.rest.len() == BLOCK {
                self.hasher.update(&self.rest);
                self.rest.clear();
            }
            data = later;
        }
    }

    fn so_far(&self) -> [u8; 32] {
        *self.hasher.clone().update(&self.rest).finalize().as_bytes()
    }
}

impl BodyDigest {
    /// Of a body that says how long it is, or does not.
    pub(crate) fn of(announced: Option<u64>) -> Self {
        Self { is_long: announced.is_some_and(|length| length > LONG), made: None }
    }

    /// Takes what comes next of the body.
    pub(crate) fn push(&mut self, data: &Bytes) {
        let begin =
            || if self.is_long { Made::Blake3(Box::new(InBlocks::new())) } else { Made::Sha256(Sha::new(&SHA256)) };
        match self.made.get_or_insert_with(begin) {
            Made::Sha256(sha) => sha.update(data),
            Made::Blake3(blake3) => blake3.update(data),
        }
    }

    /// The digest of all that passed so far; none where nothing did.
    pub(crate) fn so_far(&self) -> Option<Digest> {
        match self.made.as_ref()? {
            Made::Sha256(sha) => Digest::from_bytes(sha.clone().finish().as_ref()),
            Made::Blake3(blake3) => Some(Digest::made(Algorithm::Blake3, blake3.so_far())),
        }
    }
}

#[cfg(test)]
mod tests {
    use footbridge_core::digest::digest_text;

    use super::*;

    #[test]
    fn what_is_announced_as_long_has_blake3_and_all_else_sha_256_however_it_comes() {
        let body: Vec<u8> = (0..100_000_u32).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect();
        let blake3 = Digest::made(Algorithm::Blake3, *blake3::hash(&body).as_bytes());
        for (announced, expected) in [
            (None, Digest::of(&body)),
            (Some(100_000), Digest::of(&body)),
            (Some(LONG), Digest::of(&body)),
            (Some(LONG + 1), blake3),
            (Some(u64::MAX), blake3),
        ] {
            for size in [1, 63, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 100_000] {
                let mut digest = BodyDigest::of(announced);
                assert_eq!(digest.so_far(), None);
                body.chunks(size).for_each(|part| digest.push(&Bytes::copy_from_slice(part)));
                assert_eq!(digest.so_far(), Some(expected), "{announced:?} {size}");
                digest.push(&Bytes::from_static(b"more"));
                assert_ne!(digest.so_far(), Some(expected));
            }
        }
    }

    #[test]
    fn blake3_is_that_of_b3sum() {
        let mut digest = BodyDigest::of(Some(u64::MAX));
        digest.push(&Bytes::from_static(b"abc"));
        // Of its authors' test vectors.
        let known = "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(digest.so_far().map(digest_text).as_deref(), Some(known));
    }
}
