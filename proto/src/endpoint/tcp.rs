//! TCP addresses.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
};

use super::EndpointError;

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

impl FromStr for TcpEndpoint {
    type Err = EndpointError;

    fn from_str(rest: &str) -> Result<Self, EndpointError> {
        let (host, port) = rest.rsplit_once(':').ok_or_else(|| EndpointError::BadPort(rest.to_owned()))?;
        let port = super::number(port).ok_or_else(|| EndpointError::BadPort(port.to_owned()))?;
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let host = match (host, bare) {
            ("localhost", _) => TcpHost::Localhost,
            (_, Some(v6)) => TcpHost::Ip(IpAddr::V6(v6.parse().map_err(|_| EndpointError::BadHost(host.to_owned()))?)),
            (v4, None) => TcpHost::Ip(IpAddr::V4(v4.parse().map_err(|_| EndpointError::BadHost(v4.to_owned()))?)),
        };
        Ok(TcpEndpoint { host, port })
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
