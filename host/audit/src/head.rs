//! Signed heads: short statements of what a chain's line was, which can be kept elsewhere.
//!
//! Whoever can write to the state folder can forge a chain as a whole, but not what a head kept elsewhere says. The key
//! is made once, lies in the audit folder, and is never replaced: a key that is gone while there are heads is an error.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nix::libc::{ELOOP, O_NOFOLLOW, O_NONBLOCK};
use ring::{
    rand::SystemRandom,
    signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey},
};
use serde::{Deserialize, Serialize};

use footbridge_core::digest::{Digest, digest_text};

/// The key's file in the audit folder.
const KEY: &str = "key";
/// The file of all heads in the audit folder.
pub(super) const HEADS: &str = "heads.jsonl";
/// What comes before a public key's text.
const SCHEME: &str = "ed25519:";
/// Bytes of a public key.
const ED25519_PUBLIC_KEY_LEN: usize = 32;
/// Longest key file that is read, bytes.
const MAX_KEY: u64 = 1024;

/// What one line of a chain was, signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedHead {
    /// The chain's name.
    pub chain: String,
    /// The number of the line.
    pub seq: u64,
    /// The digest of the line without its line break: `sha256:` and 64 hexadecimal digits.
    pub hash: String,
    /// When it was signed, RFC 3339 in UTC.
    pub time: String,
    /// The public key: `ed25519:` and base64url.
    pub key: String,
    /// The signature over all of the above, base64url.
    pub signature: String,
}

impl SignedHead {
    /// Whether the signature is that of its own key. Whose key that is, is another question.
    #[must_use]
    pub(crate) fn is_signed(&self) -> bool {
        let signature = URL_SAFE_NO_PAD.decode(&self.signature).ok();
        key_bytes(&self.key).zip(signature).is_some_and(|(key, signature)| {
            UnparsedPublicKey::new(&ED25519, key).verify(&self.said(), &signature).is_ok()
        })
    }

    fn said(&self) -> Vec<u8> {
        format!("footbridge head 1\n{}\n{}\n{}\n{}\n", self.chain, self.seq, self.hash, self.time).into_bytes()
    }
}

fn key_bytes(public: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(public.strip_prefix(SCHEME)?).ok()?;
    (bytes.len() == ED25519_PUBLIC_KEY_LEN).then_some(bytes)
}

/// A text that is no public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no public key: write it as heads have it, ed25519: and 43 characters")]
pub struct NoPublicKey;

/// Reads a public key as heads have it.
///
/// # Errors
/// [`NoPublicKey`].
pub fn parse_public_key(text: &str) -> Result<String, NoPublicKey> {
    key_bytes(text).map(|_| text.to_owned()).ok_or(NoPublicKey)
}

/// The key that signs heads.
pub struct HeadKey {
    pair: Ed25519KeyPair,
    public: String,
}

impl std::fmt::Debug for HeadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeadKey({})", self.public)
    }
}

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It is gone, and what it signed is not.
    #[error(
        "the key {} is gone, but there are heads that it signed in {HEADS} beside it: put it back; to go on with a new \
         key, keep the old chains and {HEADS} in another folder first", .0.display()
    )]
    Gone(PathBuf),
    /// Others may know or change it.
    #[error("the key {} must be a file of this user that nobody else can read (mode 600), and no link", .0.display())]
    Unsafe(PathBuf),
    /// It is no key.
    #[error("the key {} is no Ed25519 key in PKCS#8: restore it from a copy", .0.display())]
    Broken(PathBuf),
    /// The system has no randomness.
    #[error("a key cannot be made: the system gives no random numbers")]
    Randomness,
    /// The file system refuses.
    #[error("cannot use the key {}: {source}", path.display())]
    Io {
        /// The key's file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl HeadKey {
    /// Reads the key of an audit folder, or makes it where nothing was ever signed.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn open(audit: &Path) -> Result<Self, KeyError> {
        let path = audit.join(KEY);
        // Looked at first: whoever writes heads has made the key before.
        let has_heads = fs::symlink_metadata(audit.join(HEADS)).is_ok_and(|meta| meta.len() > 0);
        if let Some(key) = Self::read(audit)? {
            return Ok(key);
        }
        if has_heads {
            return Err(KeyError::Gone(path));
        }
        make(audit, &path)?;
        // Another harness may have been first: whose key is there counts.
        Self::read(audit)?.ok_or(KeyError::Gone(path))
    }

    /// Reads the key of an audit folder, if there is one.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn read(audit: &Path) -> Result<Option<Self>, KeyError> {
        let path = audit.join(KEY);
        let failed = |source| KeyError::Io { path: path.clone(), source };
        let mut file = match OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(ELOOP) => return Err(KeyError::Unsafe(path)),
            Err(error) => return Err(failed(error)),
        };
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() || meta.uid() != nix::unistd::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
            return Err(KeyError::Unsafe(path));
        }
        let mut bytes = zeroize::Zeroizing::new(Vec::new());
        (&mut file).take(MAX_KEY).read_to_end(&mut bytes).map_err(failed)?;
        let pair = Ed25519KeyPair::from_pkcs8(&bytes).map_err(|_| KeyError::Broken(path))?;
        let public = format!("{SCHEME}{}", URL_SAFE_NO_PAD.encode(pair.public_key()));
        Ok(Some(Self { pair, public }))
    }

    /// The public key's text.
    #[must_use]
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Signs what a line was.
    pub(super) fn sign(&self, chain: &str, seq: u64, hash: Digest, time: String) -> SignedHead {
        let (key, hash) = (self.public.clone(), digest_text(hash));
        let mut head = SignedHead { chain: chain.to_owned(), seq, hash, time, key, signature: String::new() };
        head.signature = URL_SAFE_NO_PAD.encode(self.pair.sign(&head.said()));
        head
    }
}

/// Makes a key: whole in a file of its own, then under its name, unless there is one by now.
fn make(audit: &Path, path: &Path) -> Result<(), KeyError> {
    let failed = |source| KeyError::Io { path: path.to_owned(), source };
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| KeyError::Randomness)?;
    let random = footbridge_core::random::random_text::<6>().map_err(|_| KeyError::Randomness)?;
    let aside = audit.join(format!("{KEY}.{random}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside).map_err(failed)?;
    let linked = file.write_all(document.as_ref()).and_then(|()| file.sync_all()).and_then(|()| {
        match fs::hard_link(&aside, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    let removed = fs::remove_file(&aside);
    linked.and(removed).and_then(|()| File::open(audit)?.sync_all()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_owner_alone_and_signs() {
        let folder = tempfile::tempdir().unwrap();
        let key = HeadKey::open(folder.path()).unwrap();
        let file = folder.path().join(KEY);
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        assert_eq!(HeadKey::open(folder.path()).unwrap().public(), key.public());
        let head = key.sign("c", 7, Digest::of("line"), "2026-11-22T00:00:00Z".into());
        assert!(head.is_signed());
        for changed in [
            SignedHead { seq: 8, ..head.clone() },
            SignedHead { chain: "d".into(), ..head.clone() },
            SignedHead { hash: digest_text(Digest::of("other")), ..head.clone() },
            SignedHead { time: "x".into(), ..head.clone() },
            SignedHead { key: "ed25519:".into(), ..head.clone() },
            SignedHead { signature: String::new(), ..head },
        ] {
            assert!(!changed.is_signed(), "{changed:?}");
        }
    }

    #[test]
    fn a_key_that_is_gone_a_link_open_or_broken_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, elsewhere) = (folder.path().join(KEY), folder.path().join("elsewhere"));
        HeadKey::open(folder.path()).unwrap();
        fs::rename(&file, &elsewhere).unwrap();
        fs::write(folder.path().join(HEADS), "{}\n").unwrap();
        assert!(matches!(HeadKey::open(folder.path()), Err(KeyError::Gone(_))));
        assert!(!file.exists());
        symlink(&elsewhere, &file).unwrap();
        assert!(matches!(HeadKey::open(folder.path()), Err(KeyError::Unsafe(_))));
        fs::remove_file(&file).unwrap();
        fs::copy(&elsewhere, &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(HeadKey::open(folder.path()), Err(KeyError::Unsafe(_))));
        fs::write(&file, "no key").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(HeadKey::open(folder.path()), Err(KeyError::Broken(_))));
        assert_eq!(fs::read(&file).unwrap(), b"no key");
    }
}
