//! Paths of Unix sockets.

use std::path::{Path, PathBuf};

use super::EndpointError;

/// Longest path of a Unix socket, in bytes (`sun_path` less its final NUL, unix(7)).
pub(crate) const MAX_SOCKET_PATH: usize = 107;

/// An absolute path that fits into a socket address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SocketPath(PathBuf);

impl SocketPath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`EndpointError`] for a relative path, an abstract name, or one over [`MAX_SOCKET_PATH`] bytes.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, EndpointError> {
        let path = path.into();
        let bytes = path.as_os_str().as_encoded_bytes();
        match bytes.first() {
            None => return Err(EndpointError::EmptyPath),
            Some(b'@' | 0) => return Err(EndpointError::Abstract),
            Some(b'/') => {}
            Some(_) => return Err(EndpointError::RelativePath(path)),
        }
        if bytes.contains(&0) {
            return Err(EndpointError::Abstract);
        }
        if bytes.len() > MAX_SOCKET_PATH {
            let length = bytes.len();
            return Err(EndpointError::PathTooLong { path, length });
        }
        Ok(Self(path))
    }

    /// The path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}
