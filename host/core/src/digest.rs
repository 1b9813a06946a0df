//! Digests: SHA-256, and BLAKE3 of long bodies, which is made where they pass.

use std::{fmt, str::FromStr};

use ring::digest::{SHA256, digest};
use serde::{Serialize, Serializer, ser::Error as _};

/// How a digest is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// BLAKE3, of 32 bytes.
    Blake3,
}

impl Algorithm {
    /// What stands before the digits: of one length.
    const fn prefix(self) -> [u8; PREFIX_BYTES] {
        match self {
            Self::Sha256 => *b"sha256:",
            Self::Blake3 => *b"blake3:",
        }
    }
}

const PREFIX_BYTES: usize = 7;
const TEXT_BYTES: usize = PREFIX_BYTES + 64;
const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// A digest; prints as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: [u8; 32],
}

impl Digest {
    /// The SHA-256 of some bytes.
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        let mut out = [0; 32];
        out.copy_from_slice(digest(&SHA256, bytes.as_ref()).as_ref());
        Self::made(Algorithm::Sha256, out)
    }

    /// A SHA-256 that was kept as its bytes; nothing unless there are 32.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self::made(Algorithm::Sha256, bytes))
    }

    /// One that was made elsewhere.
    #[must_use]
    pub fn made(algorithm: Algorithm, bytes: [u8; 32]) -> Self {
        Self { algorithm, bytes }
    }

    /// It as records and people see it, [`digest_text`]. Records are full of these, and digit by digit they cost more than
    /// the digests.
    fn text(&self) -> [u8; TEXT_BYTES] {
        let mut text = [0; TEXT_BYTES];
        let (prefix, digits) = text.split_at_mut(PREFIX_BYTES);
        prefix.copy_from_slice(&self.algorithm.prefix());
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(self.bytes) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        text
    }

    /// Its 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest is \"sha256:\" and 64 hexadecimal digits")]
pub struct BadDigest;

impl FromStr for Digest {
    type Err = BadDigest;

    /// As commands take it: `sha256:` and 64 hexadecimal digits. Of long bodies none is asked for.
    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let digits = text.strip_prefix("sha256:").filter(|digits| digits.len() == 64).ok_or(BadDigest)?;
        let mut out = [0; 32];
        for (byte, pair) in out.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| BadDigest)?;
            let is_hex = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
            *byte = u8::from_str_radix(pair, 16).ok().filter(|_| is_hex).ok_or(BadDigest)?;
        }
        Ok(Self::made(Algorithm::Sha256, out))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()[PREFIX_BYTES..]).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    /// As [`digest_text`].
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.text()).map_err(S::Error::custom)?)
    }
}

/// A digest as records and people see it: its algorithm before it.
#[must_use]
pub fn digest_text(digest: Digest) -> String {
    // Digits of ASCII always are a text.
    std::str::from_utf8(&digest.text()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_bytes_make_it_again_and_no_other_number_of_bytes_does() {
        let digest = Digest::of("x");
        assert_eq!(Digest::from_bytes(digest.as_bytes()), Some(digest));
        assert_eq!(Digest::from_bytes(&[0; 31]), None);
    }

    #[test]
    fn it_is_read_as_it_is_written_and_nothing_else_is() {
        let digest = Digest::of("x");
        assert_eq!(format!("sha256:{digest}").parse(), Ok(digest));
        for bad in [digest.to_string(), "sha256:".into(), format!("sha256:+{}", "0".repeat(63)), "sha256:é".repeat(32)]
        {
            assert_eq!(bad.parse::<Digest>(), Err(BadDigest), "{bad}");
        }
    }

    #[test]
    fn its_algorithm_stands_before_it() {
        let digits = "11".repeat(32);
        for (algorithm, text) in [(Algorithm::Sha256, "sha256"), (Algorithm::Blake3, "blake3")] {
            let digest = Digest::made(algorithm, [0x11; 32]);
            assert_eq!((digest_text(digest), digest.to_string()), (format!("{text}:{digits}"), digits.clone()));
        }
        assert_ne!(Digest::made(Algorithm::Blake3, [1; 32]), Digest::made(Algorithm::Sha256, [1; 32]));
    }

    #[test]
    fn the_empty_text_has_its_known_digest() {
        assert_eq!(Digest::of("").to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
