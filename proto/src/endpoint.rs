//! Where to listen and where to connect, as people type it: `scheme:rest`, with `scheme://rest` meaning the same.
//!
//! The short form is printed. `tcp:HOST:PORT` and `unix:/PATH` are known.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
};

/// Longest path of a Unix socket, in bytes (`sun_path` less its final NUL, unix(7)).
pub const MAX_SOCKET_PATH: usize = 107;

/// An address of either end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(SocketPath),
    /// TCP on a host and port.
    Tcp(TcpEndpoint),
}

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

/// A TCP host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TcpEndpoint {
    /// What to bind or connect to.
    pub host: TcpHost,
    /// The port; 0 asks the system for a free one, which only a listener can.
    pub port: u16,
}

/// The host of a [`TcpEndpoint`]: an address, or the name `localhost`. Other names are not looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TcpHost {
    /// Exactly this address.
    Ip(IpAddr),
    /// Both loopback addresses: `127.0.0.1`, which must work, and `::1` where there is one.
    Localhost,
}

impl TcpEndpoint {
    /// `127.0.0.1` with a port.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        Self { host: TcpHost::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)), port }
    }

    /// Whether only this machine (or network namespace) can reach it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.host {
            TcpHost::Localhost => true,
            TcpHost::Ip(ip) => ip.is_loopback(),
        }
    }

    /// The address that must work.
    #[must_use]
    pub fn primary(&self) -> SocketAddr {
        match self.host {
            TcpHost::Ip(ip) => SocketAddr::new(ip, self.port),
            TcpHost::Localhost => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.port),
        }
    }
}

/// Why a text is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No `scheme:` in front.
    #[error("\"{0}\" has no scheme: write tcp:127.0.0.1:7179 or unix:/path/to.sock")]
    NoScheme(String),
    /// A scheme that is not known.
    #[error("unknown scheme \"{0}\": tcp and unix are known")]
    UnknownScheme(String),
    /// `tcp:` without a usable host.
    #[error("\"{0}\" is not an IP address or localhost: names are not looked up, write tcp:127.0.0.1:PORT")]
    BadHost(String),
    /// `tcp:` without a usable port.
    #[error("\"{0}\" is not a port: write a number from 0 to 65535")]
    BadPort(String),
    /// `unix:` alone.
    #[error("the socket's path is empty: write unix:/path/to.sock")]
    EmptyPath,
    /// An abstract socket.
    #[error("abstract sockets have no permissions: write a path, as in unix:/path/to.sock")]
    Abstract,
    /// A path that depends on the working folder.
    #[error("the socket's path {} is not absolute", .0.display())]
    RelativePath(PathBuf),
    /// A path that no socket address can hold.
    #[error("the socket's path {} has {length} bytes and at most {MAX_SOCKET_PATH} fit: use a shorter folder", path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its bytes.
        length: usize,
    },
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let (scheme, rest) = text.split_once(':').ok_or_else(|| EndpointError::NoScheme(text.to_owned()))?;
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        match scheme {
            "unix" => SocketPath::new(rest).map(Self::Unix),
            "tcp" => parse_tcp(rest).map(Self::Tcp),
            _ if scheme.contains('/') || scheme.is_empty() => Err(EndpointError::NoScheme(text.to_owned())),
            _ => Err(EndpointError::UnknownScheme(scheme.to_owned())),
        }
    }
}

fn parse_tcp(rest: &str) -> Result<TcpEndpoint, EndpointError> {
    let (host, port) = rest.rsplit_once(':').ok_or_else(|| EndpointError::BadPort(rest.to_owned()))?;
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let port = port.parse().ok().filter(|_| digits).ok_or_else(|| EndpointError::BadPort(port.to_owned()))?;
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let host = match (host, bare) {
        ("localhost", _) => TcpHost::Localhost,
        (_, Some(v6)) => TcpHost::Ip(IpAddr::V6(v6.parse().map_err(|_| EndpointError::BadHost(host.to_owned()))?)),
        (v4, None) => TcpHost::Ip(IpAddr::V4(v4.parse().map_err(|_| EndpointError::BadHost(v4.to_owned()))?)),
    };
    Ok(TcpEndpoint { host, port })
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.as_path().display()),
            Self::Tcp(tcp) => tcp.fmt(f),
        }
    }
}

impl fmt::Display for TcpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            TcpHost::Localhost => write!(f, "tcp:localhost:{}", self.port),
            TcpHost::Ip(_) => write!(f, "tcp:{}", self.primary()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_print_as_the_short_one() {
        for (text, printed) in [
            ("tcp:127.0.0.1:7179", "tcp:127.0.0.1:7179"),
            ("tcp://127.0.0.1:0", "tcp:127.0.0.1:0"),
            ("tcp:[::1]:80", "tcp:[::1]:80"),
            ("tcp:localhost:7179", "tcp:localhost:7179"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
            ("unix:///run/x.sock", "unix:/run/x.sock"),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), printed);
            assert_eq!(printed.parse::<Endpoint>().unwrap(), endpoint);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("7179", "no scheme"),
            ("/run/x.sock", "no scheme"),
            ("udp:127.0.0.1:1", "unknown scheme \"udp\""),
            ("tcp:example.org:80", "not an IP address"),
            ("tcp:127.0.0.1", "not a port"),
            ("tcp:127.0.0.1:65536", "not a port"),
            ("tcp:127.0.0.1:+80", "not a port"),
            ("tcp:127.0.0.1:", "not a port"),
            ("unix:", "empty"),
            ("unix:@name", "abstract"),
            ("unix:x.sock", "not absolute"),
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_longest_path_fits_and_one_more_does_not() {
        let path = format!("/{}", "x".repeat(MAX_SOCKET_PATH - 1));
        assert!(SocketPath::new(&path).is_ok());
        let error = SocketPath::new(format!("{path}x")).unwrap_err().to_string();
        assert!(error.contains("108 bytes"), "{error}");
    }
}
