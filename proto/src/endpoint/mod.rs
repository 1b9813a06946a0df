//! Where to listen and where to connect, as people type it: `scheme:rest`, with `scheme://rest` meaning the same.
//!
//! The short form is printed. What a program can do with an endpoint is its own matter: it refuses the others by name.

mod path;
mod tcp;
mod vsock;

use std::{fmt, path::PathBuf, str::FromStr};

pub(crate) use path::MAX_SOCKET_PATH;
pub use path::SocketPath;
pub use tcp::{TcpEndpoint, TcpHost};
pub use vsock::{MuxEndpoint, VsockCid, VsockEndpoint};

/// An address of either end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `unix:/PATH`: a Unix socket.
    Unix(SocketPath),
    /// `tcp:HOST:PORT`.
    Tcp(TcpEndpoint),
    /// `vsock:CID:PORT`: between a virtual machine and its host.
    Vsock(VsockEndpoint),
    /// `vsock-mux:/PATH:PORT`: the host's end of a VMM that carries a guest's vsock over Unix sockets.
    VsockMux(MuxEndpoint),
    /// `fd:N`: a descriptor that was inherited.
    Fd(u32),
    /// `sd:NAME`: a socket that systemd passes on, by its name.
    Systemd(String),
    /// `stdio:`: standard input and output.
    Stdio,
    /// `exec:COMMAND`: the input and output of a command.
    Exec(String),
}

/// Why a text is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No `scheme:` in front.
    #[error("\"{0}\" has no scheme: write tcp:127.0.0.1:7179 or unix:/path/to.sock")]
    NoScheme(String),
    /// A scheme that is not known.
    #[error("unknown scheme \"{0}\": unix, tcp, vsock, vsock-mux, fd, sd, stdio and exec are known")]
    UnknownScheme(String),
    /// `tcp:` without a usable host.
    #[error("\"{0}\" is not an IP address or localhost: names are not looked up, write tcp:127.0.0.1:PORT")]
    BadHost(String),
    /// `tcp:` without a usable port.
    #[error("\"{0}\" is not a port: write a number from 0 to 65535")]
    BadPort(String),
    /// `vsock:` without a usable context id.
    #[error("\"{0}\" is not a context id: write a number, host, local or any, as in vsock:host:7179")]
    BadCid(String),
    /// `vsock-mux:` with a path alone.
    #[error("vsock-mux:{0} names no port: write vsock-mux:/path/v.sock:PORT")]
    NoMuxPort(String),
    /// `vsock:` or `vsock-mux:` without a usable port.
    #[error("\"{0}\" is not a vsock port: write a number from 0 to 4294967294")]
    BadVsockPort(String),
    /// `unix:` alone.
    #[error("the socket's path is empty: write unix:/path/to.sock")]
    EmptyPath,
    /// An abstract socket.
    #[error("abstract sockets have no permissions: write a path, as in unix:/path/to.sock")]
    Abstract,
    /// A path that depends on the working folder.
    #[error("the socket's path {} is not absolute: write it from / on, as in unix:/path/to.sock", .0.display())]
    RelativePath(PathBuf),
    /// A path that no socket address can hold.
    #[error("the socket's path {} has {length} bytes and at most {MAX_SOCKET_PATH} fit: use a shorter folder", path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its bytes.
        length: usize,
    },
    /// `fd:` without a usable number.
    #[error("\"{0}\" is not the number of a descriptor: write fd:3")]
    BadFd(String),
    /// `sd:` without a usable name.
    #[error("\"{0}\" is not the name of a systemd socket: write FileDescriptorName's value, as in sd:footbridge")]
    BadName(String),
    /// `stdio:` with more after it.
    #[error("\"{0}\" follows stdio:, which takes nothing")]
    StdioTakesNothing(String),
    /// `exec:` alone.
    #[error("there is no command: write exec:COMMAND")]
    EmptyCommand,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let (scheme, rest) = text.split_once(':').ok_or_else(|| EndpointError::NoScheme(text.to_owned()))?;
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        match scheme {
            "unix" => SocketPath::new(rest).map(Self::Unix),
            "tcp" => rest.parse().map(Self::Tcp),
            "vsock" => rest.parse().map(Self::Vsock),
            "vsock-mux" | "hvsock" => rest.parse().map(Self::VsockMux),
            "fd" => number(rest).map(Self::Fd).ok_or_else(|| EndpointError::BadFd(rest.to_owned())),
            "sd" => socket_name(rest).map(Self::Systemd),
            "stdio" if rest.is_empty() => Ok(Self::Stdio),
            "stdio" => Err(EndpointError::StdioTakesNothing(rest.to_owned())),
            "exec" if rest.trim().is_empty() => Err(EndpointError::EmptyCommand),
            "exec" => Ok(Self::Exec(rest.to_owned())),
            _ if scheme.contains('/') || scheme.is_empty() => Err(EndpointError::NoScheme(text.to_owned())),
            _ => Err(EndpointError::UnknownScheme(scheme.to_owned())),
        }
    }
}

/// A number of digits alone: no sign, no space.
fn number<N: FromStr>(text: &str) -> Option<N> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A name as systemd.socket(5) allows it: 1 to 255 characters of ASCII without control characters and `:`.
fn socket_name(text: &str) -> Result<String, EndpointError> {
    let known = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b':';
    let fits = (1..=255).contains(&text.len()) && text.bytes().all(known);
    if fits { Ok(text.to_owned()) } else { Err(EndpointError::BadName(text.to_owned())) }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.as_path().display()),
            Self::Tcp(tcp) => tcp.fmt(f),
            Self::Vsock(vsock) => vsock.fmt(f),
            Self::VsockMux(mux) => mux.fmt(f),
            Self::Fd(number) => write!(f, "fd:{number}"),
            Self::Systemd(name) => write!(f, "sd:{name}"),
            Self::Stdio => f.write_str("stdio:"),
            Self::Exec(command) => write!(f, "exec:{command}"),
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
            ("vsock:host:7179", "vsock:host:7179"),
            ("vsock://2:7179", "vsock:host:7179"),
            ("vsock:1:7179", "vsock:local:7179"),
            ("vsock:4294967295:7179", "vsock:any:7179"),
            ("vsock::7179", "vsock::7179"),
            ("vsock:42:4294967294", "vsock:42:4294967294"),
            ("vsock-mux:/run/v.sock:7179", "vsock-mux:/run/v.sock:7179"),
            ("hvsock:///run/a:b.sock:0", "vsock-mux:/run/a:b.sock:0"),
            ("fd:3", "fd:3"),
            ("sd:footbridge.socket", "sd:footbridge.socket"),
            ("stdio:", "stdio:"),
            ("stdio://", "stdio:"),
            ("exec:ssh host footbridge-relay", "exec:ssh host footbridge-relay"),
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
            ("vsock:7179", "not a context id"),
            ("vsock:me:7179", "\"me\" is not a context id"),
            ("vsock:-1:7179", "not a context id"),
            ("vsock:2:", "not a vsock port"),
            ("vsock:2:4294967295", "not a vsock port"),
            ("vsock:2:+1", "not a vsock port"),
            ("vsock-mux:/run/v.sock", "names no port"),
            ("vsock-mux:v.sock:1", "not absolute"),
            ("vsock-mux::1", "empty"),
            ("fd:", "not the number"),
            ("fd:-1", "not the number"),
            ("sd:", "not the name"),
            ("sd:a:b", "not the name"),
            ("stdio:x", "takes nothing"),
            ("exec: ", "no command"),
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_sockets_of_a_multiplexer_have_to_fit_too() {
        let path = format!("/{}", "x".repeat(MAX_SOCKET_PATH - 6));
        let endpoint: Endpoint = format!("vsock-mux:{path}:7179").parse().unwrap();
        let Endpoint::VsockMux(mux) = endpoint else { panic!("not a multiplexer") };
        assert_eq!(mux.listening().as_path().to_str().unwrap(), format!("{path}_7179"));
        let error = format!("vsock-mux:{path}:71790").parse::<Endpoint>().unwrap_err().to_string();
        assert!(error.contains("108 bytes") && error.contains("_71790"), "{error}");
    }

    #[test]
    fn the_longest_path_fits_and_one_more_does_not() {
        let path = format!("/{}", "x".repeat(MAX_SOCKET_PATH - 1));
        assert!(SocketPath::new(&path).is_ok());
        let error = SocketPath::new(format!("{path}x")).unwrap_err().to_string();
        assert!(error.contains("108 bytes"), "{error}");
    }
}
