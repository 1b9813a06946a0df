//! Addresses of vsock(7), and of VMMs that carry it over Unix sockets.

use std::{fmt, path::Path, str::FromStr};

use super::{EndpointError, SocketPath, number};

/// A context id and port of vsock(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VsockEndpoint {
    /// Which machine.
    pub cid: VsockCid,
    /// The port; those up to 1023 need a capability to listen on.
    pub port: u32,
}

/// A context id: it names a virtual machine or its host, never a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VsockCid {
    /// Left out: any to listen on, the host to connect to.
    Unnamed,
    /// Every one of this machine, to listen on.
    Any,
    /// This machine itself, by the loopback transport.
    Local,
    /// The host of this virtual machine.
    Host,
    /// This number: 0 is the hypervisor, guests are above 2.
    Number(u32),
}

impl VsockCid {
    const LOCAL: u32 = 1;
    const HOST: u32 = 2;
    const ANY: u32 = u32::MAX;

    /// The number to bind.
    #[must_use]
    pub fn to_listen(self) -> u32 {
        match self {
            Self::Unnamed => Self::ANY,
            other => other.to_connect(),
        }
    }

    /// The number to connect to.
    #[must_use]
    pub fn to_connect(self) -> u32 {
        match self {
            Self::Unnamed | Self::Host => Self::HOST,
            Self::Any => Self::ANY,
            Self::Local => Self::LOCAL,
            Self::Number(number) => number,
        }
    }
}

impl From<u32> for VsockCid {
    fn from(number: u32) -> Self {
        match number {
            Self::ANY => Self::Any,
            Self::LOCAL => Self::Local,
            Self::HOST => Self::Host,
            number => Self::Number(number),
        }
    }
}

impl FromStr for VsockCid {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        match text {
            "" => Ok(Self::Unnamed),
            "any" => Ok(Self::Any),
            "local" => Ok(Self::Local),
            "host" => Ok(Self::Host),
            text => number(text).map(u32::into).ok_or_else(|| EndpointError::BadCid(text.to_owned())),
        }
    }
}

impl fmt::Display for VsockCid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unnamed => Ok(()),
            Self::Any => f.write_str("any"),
            Self::Local => f.write_str("local"),
            Self::Host => f.write_str("host"),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl FromStr for VsockEndpoint {
    type Err = EndpointError;

    fn from_str(rest: &str) -> Result<Self, EndpointError> {
        let (cid, port) = rest.split_once(':').ok_or_else(|| EndpointError::BadCid(rest.to_owned()))?;
        Ok(Self { cid: cid.parse()?, port: parse_port(port)? })
    }
}

impl fmt::Display for VsockEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vsock:{}:{}", self.cid, self.port)
    }
}

/// The socket of a VMM and a vsock port. The VMM connects to `PATH_PORT` for its guest; whoever wants to reach the
/// guest connects to `PATH` and says `CONNECT PORT`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MuxEndpoint {
    path: SocketPath,
    listening: SocketPath,
    port: u32,
}

impl MuxEndpoint {
    /// Checks both paths.
    ///
    /// # Errors
    /// [`EndpointError`] where one does not fit.
    pub fn new(path: &Path, port: u32) -> Result<Self, EndpointError> {
        let path = SocketPath::new(path)?;
        let mut listening = path.as_path().as_os_str().to_owned();
        listening.push(format!("_{port}"));
        Ok(Self { listening: SocketPath::new(listening)?, path, port })
    }

    /// The VMM's own socket, to connect to.
    #[must_use]
    pub fn connecting(&self) -> &SocketPath {
        &self.path
    }

    /// `PATH_PORT`, to listen on.
    #[must_use]
    pub fn listening(&self) -> &SocketPath {
        &self.listening
    }

    /// The vsock port.
    #[must_use]
    pub fn port(&self) -> u32 {
        self.port
    }
}

impl FromStr for MuxEndpoint {
    type Err = EndpointError;

    fn from_str(rest: &str) -> Result<Self, EndpointError> {
        let (path, port) = rest.rsplit_once(':').ok_or_else(|| EndpointError::NoMuxPort(rest.to_owned()))?;
        Self::new(Path::new(path), parse_port(port)?)
    }
}

impl fmt::Display for MuxEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vsock-mux:{}:{}", self.path.as_path().display(), self.port)
    }
}

/// A port; the highest number means "any" to the kernel.
fn parse_port(text: &str) -> Result<u32, EndpointError> {
    number(text).filter(|port| *port != u32::MAX).ok_or_else(|| EndpointError::BadVsockPort(text.to_owned()))
}
