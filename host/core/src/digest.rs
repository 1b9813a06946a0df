//! SHA-256 digests.

use std::{fmt, str::FromStr};

use ring::digest::{SHA256, digest};
use serde::{Serialize, Serializer, ser::Error as _};

/// What stands before the digits.
const ALGORITHM: &str = "sha256:";
const TEXT_BYTES: usize = ALGORITHM.len() + 64;
const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// A SHA-256 digest; prints as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        let mut out = [0; 32];
        out.copy_from_slice(digest(&SHA256, bytes.as_ref()).as_ref());
        Self(out)
    }

    /// A digest that was kept as its bytes; nothing unless there are 32.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// It as records and people see it, [`digest_text`]. Records are full of these, and digit by digit they cost more than
    /// the digests.
    fn text(&self) -> [u8; TEXT_BYTES] {
        let mut text = [0; TEXT_BYTES];
        let (algorithm, digits) = text.split_at_mut(ALGORITHM.len());
        algorithm.copy_from_slice(ALGORITHM.as_bytes());
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        text
    }

    /// Its 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest is \"sha256:\" and 64 hexadecimal digits")]
pub struct BadDigest;

impl FromStr for Digest {
    type Err = BadDigest;

    /// As records and commands write it: `sha256:` and 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let digits = text.strip_prefix(ALGORITHM).filter(|digits| digits.len() == 64).ok_or(BadDigest)?;
        let mut out = [0; 32];
        for (byte, pair) in out.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| BadDigest)?;
            let is_hex = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
            *byte = u8::from_str_radix(pair, 16).ok().filter(|_| is_hex).ok_or(BadDigest)?;
        }
        Ok(Self(out))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()[ALGORITHM.len()..]).map_err(|_| fmt::Error)?)
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
    fn the_empty_text_has_its_known_digest() {
        assert_eq!(Digest::of("").to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
