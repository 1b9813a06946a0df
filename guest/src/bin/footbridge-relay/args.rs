//! The command line and the environment, and what they mean.

use std::{
    ffi::{OsStr, OsString},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use footbridge_domains::Nesting;
use footbridge_proto::{
    endpoint::{Endpoint, EndpointError, TcpEndpoint, TcpHost, VsockCid},
    vars,
};
use lexopt::{Arg, Parser, ValueExt};

use crate::mounted::Mounted;

const USAGE: &str = "\
footbridge-relay: carry a loopback port of this sandbox to the harness outside

Usage:
  footbridge-relay [OPTIONS] --to ENDPOINT [-- CMD...]

  --to ENDPOINT            the harness: unix:/path/to.sock, tcp:127.0.0.1:PORT, vsock:host:PORT from inside a
                           virtual machine, or vsock-mux:/path/v.sock:PORT from outside (also FOOTBRIDGE_TO)
  --listen ENDPOINT        where clients connect, tcp:127.0.0.1:7179 by default (also FOOTBRIDGE_LISTEN);
                           tcp:localhost:PORT also takes ::1 where there is one; port 0 takes a free one
  --allow-wide-listen      let --listen be reachable from other machines
  --max-connections N      connections at a time, 1024 by default, and no more than the limit on open files leaves room
                           for, at two each; more wait
  --patience TIME          how long clients wait for a harness that is not there (yet), 10s by default, counted from
                           when it was first missed; after that they are answered 502 at once
  --ready-fd N             once listening, write the address and a line's end to descriptor N and close it
  --lifeline-grace TIME    with CMD: how long the harness may be gone before CMD is ended, 10s by default;
                           0 never ends it
  --path-first DIR         with CMD: put DIR before all others on CMD's PATH
  --write-below PATH       have CMD, and the relay, write nowhere else; for each folder or file where they may, as far
                           as the kernel knows how (Landlock); nothing can be mounted then
  --mounted DEV:INO:PATH   with CMD: start it only where PATH is the file of these numbers; for each that is; where the
                           first one is not, numbers mean nothing here, and it is started all the same
  --filter                 refuse CMD, and the relay, the system calls that no sandbox of Footbridge has: sockets of
                           vsock, keyrings, io_uring, user namespaces, set-user-id files; not with --to vsock:
  --allow-user-namespaces  with --filter: let CMD make user namespaces and set-user-id files, as far as it may
  -h, --help               show this
  -V, --version            show the version

TIME is 5s, 500ms or a number of seconds. With CMD it is the sandbox's init: it listens, then runs CMD with TOOL_CLI_PORT set, passes signals on, reaps
orphans, and exits with CMD's status.

Exit status: CMD's, or 128 and the number of the signal that ended it; 1 cannot listen, 2 usage, 125 the harness is
gone or a mount is another, 126 CMD cannot be run, 127 there is no such CMD.
";

/// What a command line asks for.
pub(crate) enum Parsed {
    /// Print this and leave.
    Say(String),
    Run(Box<Options>),
}

/// What to do.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) listen: TcpEndpoint,
    pub(crate) to: Endpoint,
    pub(crate) ready_fd: Option<i32>,
    pub(crate) max_connections: usize,
    pub(crate) patience: Duration,
    /// Zero means for ever.
    pub(crate) lifeline_grace: Duration,
    /// What goes first on the command's PATH.
    pub(crate) path_first: Option<OsString>,
    /// Where alone it may write, unless this is empty.
    pub(crate) write_below: Vec<OsString>,
    /// What is to be where, before the command starts; the first cannot have been replaced.
    pub(crate) mounted: Vec<Mounted>,
    /// The system call filter, where it is to have one.
    pub(crate) filter: Option<Nesting>,
    /// Empty where there is none.
    pub(crate) command: Vec<OsString>,
}

/// Most connections that can be asked for; each takes two descriptors.
const MAX_CONNECTIONS: usize = 1_000_000;

/// Connections at a time where nobody says otherwise; a Firecracker VM has 1,023.
const DEFAULT_CONNECTIONS: usize = 1024;
/// How long the harness may be away where nobody says otherwise.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

/// Why a command line means nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgsError {
    #[error("{0}; see footbridge-relay --help")]
    Syntax(#[from] lexopt::Error),
    #[error("where to connect is missing: give --to ENDPOINT or set {}", vars::RELAY_TO)]
    NoTo,
    #[error("{0:?} is no option: the command goes behind --, as in footbridge-relay --to ENDPOINT -- CMD")]
    BareWord(OsString),
    #[error("there is no command behind --: name one, or leave -- out for a relay by itself")]
    NoCommand,
    #[error("{name}: {source}")]
    Endpoint { name: &'static str, source: EndpointError },
    #[error("{name}: \"{text}\" has no scheme: write {meant}")]
    NoScheme { name: &'static str, text: String, meant: String },
    #[error("{0} is not UTF-8")]
    NotUnicode(&'static str),
    #[error(
        "cannot listen on {0}: clients that can use a Unix socket need no relay, TOOL_CLI_SOCKET takes them to the \
         harness's own; listen on tcp:127.0.0.1:PORT"
    )]
    UnixListen(Endpoint),
    #[error(
        "{0} can be reached from other machines: listen on tcp:127.0.0.1:PORT, or add --allow-wide-listen if that is \
         what you want"
    )]
    WideListen(TcpEndpoint),
    #[error("what connects to --to {0} comes out at --listen: the relay would connect to itself")]
    Loop(Endpoint),
    #[error("cannot listen on {0}: the relay gives clients a port of their own machine, tcp:127.0.0.1:PORT")]
    OtherListen(Endpoint),
    #[error(
        "cannot connect to {0}: it is one stream, and the relay needs one for each client; use unix:, tcp:, vsock: or \
         vsock-mux:"
    )]
    OneStream(Endpoint),
    #[error("cannot connect to {0}: it is something to listen on; write vsock:host:PORT")]
    AnyCid(Endpoint),
    #[error("cannot connect to {0} with --filter, which refuses AF_VSOCK: leave --filter out, or use unix:PATH")]
    Filtered(Endpoint),
    #[error("--allow-user-namespaces is for --filter, which refuses them: without it nothing does")]
    NoFilter,
    #[error("port 0 stands for a free port, which only --listen can ask for")]
    ToPortZero,
    #[error("--path-first is empty, and an empty part of PATH is the working folder: name a folder, or leave it out")]
    NoPath,
    #[error("{flag} {text:?} is not {what}")]
    Number { flag: &'static str, text: String, what: &'static str },
}

#[derive(Default)]
struct Typed {
    to: Option<OsString>,
    listen: Option<OsString>,
    wide: bool,
    ready_fd: Option<i32>,
    max_connections: Option<usize>,
    patience: Option<Duration>,
    lifeline_grace: Option<Duration>,
    path_first: Option<OsString>,
    write_below: Vec<OsString>,
    mounted: Vec<Mounted>,
    filter: bool,
    nesting: Nesting,
    command: Vec<OsString>,
}

/// Reads a command line without the program's name; `look` finds variables.
pub(crate) fn parse(args: &[OsString], look: &dyn Fn(&str) -> Option<OsString>) -> Result<Parsed, ArgsError> {
    let mut typed = Typed::default();
    let mut parser = Parser::from_args(args);
    loop {
        // What follows `--` is the command, whatever it looks like.
        if parser.try_raw_args().is_some_and(|raw| raw.peek() == Some(OsStr::new("--"))) {
            typed.command = parser.raw_args()?.skip(1).collect();
            if typed.command.is_empty() {
                return Err(ArgsError::NoCommand);
            }
            break;
        }
        match parser.next()? {
            None => break,
            Some(Arg::Short('h') | Arg::Long("help")) => return Ok(Parsed::Say(USAGE.to_owned())),
            Some(Arg::Short('V') | Arg::Long("version")) => {
                return Ok(Parsed::Say(concat!("footbridge-relay ", env!("CARGO_PKG_VERSION"), "\n").to_owned()));
            }
            Some(Arg::Long("to")) => typed.to = Some(parser.value()?),
            Some(Arg::Long("listen")) => typed.listen = Some(parser.value()?),
            Some(Arg::Long("allow-wide-listen")) => typed.wide = true,
            Some(Arg::Long("ready-fd")) => typed.ready_fd = Some(ready_fd(parser.value()?.string()?)?),
            Some(Arg::Long("max-connections")) => typed.max_connections = Some(connections(parser.value()?.string()?)?),
            Some(Arg::Long("patience")) => typed.patience = Some(duration("--patience", parser.value()?.string()?)?),
            Some(Arg::Long("lifeline-grace")) => {
                typed.lifeline_grace = Some(duration("--lifeline-grace", parser.value()?.string()?)?);
            }
            Some(Arg::Long("path-first")) => typed.path_first = Some(not_empty(parser.value()?)?),
            Some(Arg::Long("write-below")) => typed.write_below.push(parser.value()?),
            Some(Arg::Long("mounted")) => typed.mounted.push(mounted(parser.value()?)?),
            Some(Arg::Long("filter")) => typed.filter = true,
            Some(Arg::Long("allow-user-namespaces")) => typed.nesting = Nesting::Allowed,
            Some(Arg::Value(word)) => return Err(ArgsError::BareWord(word)),
            Some(other) => return Err(other.unexpected().into()),
        }
    }
    typed.mean(look).map(|options| Parsed::Run(Box::new(options)))
}

impl Typed {
    fn mean(self, look: &dyn Fn(&str) -> Option<OsString>) -> Result<Options, ArgsError> {
        let set = |name| look(name).filter(|value| !value.is_empty());
        let to = match (self.to, set(vars::RELAY_TO)) {
            (Some(text), _) => endpoint("--to", text)?,
            (None, Some(text)) => endpoint(vars::RELAY_TO, text)?,
            (None, None) => return Err(ArgsError::NoTo),
        };
        let listen = match (self.listen, set(vars::RELAY_LISTEN)) {
            (Some(text), _) => listen_endpoint("--listen", text)?,
            (None, Some(text)) => listen_endpoint(vars::RELAY_LISTEN, text)?,
            (None, None) => Endpoint::Tcp(TcpEndpoint::loopback(vars::DEFAULT_PORT)),
        };
        let listen = match listen {
            Endpoint::Tcp(tcp) => tcp,
            unix @ Endpoint::Unix(_) => return Err(ArgsError::UnixListen(unix)),
            other => return Err(ArgsError::OtherListen(other)),
        };
        if !listen.is_loopback() && !self.wide {
            return Err(ArgsError::WideListen(listen));
        }
        check_to(&to, &listen)?;
        if self.filter && matches!(to, Endpoint::Vsock(_)) {
            return Err(ArgsError::Filtered(to));
        }
        if !self.filter && self.nesting == Nesting::Allowed {
            return Err(ArgsError::NoFilter);
        }
        Ok(Options {
            listen,
            to,
            ready_fd: self.ready_fd,
            max_connections: self.max_connections.unwrap_or(DEFAULT_CONNECTIONS),
            patience: self.patience.unwrap_or(DEFAULT_PATIENCE),
            lifeline_grace: self.lifeline_grace.unwrap_or(DEFAULT_PATIENCE),
            path_first: self.path_first,
            write_below: self.write_below,
            mounted: self.mounted,
            filter: self.filter.then_some(self.nesting),
            command: self.command,
        })
    }
}

/// Whether the relay can connect to `to` again and again, without meeting itself.
fn check_to(to: &Endpoint, listen: &TcpEndpoint) -> Result<(), ArgsError> {
    match to {
        Endpoint::Unix(_) | Endpoint::VsockMux(_) => Ok(()),
        Endpoint::Tcp(tcp) if tcp.port == 0 => Err(ArgsError::ToPortZero),
        Endpoint::Tcp(tcp) if tcp.port == listen.port && meets(tcp.host, listen.host) => {
            Err(ArgsError::Loop(to.clone()))
        }
        Endpoint::Tcp(_) => Ok(()),
        Endpoint::Vsock(vsock) if vsock.cid == VsockCid::Any => Err(ArgsError::AnyCid(to.clone())),
        Endpoint::Vsock(_) => Ok(()),
        Endpoint::Fd(_) | Endpoint::Systemd(_) | Endpoint::Stdio | Endpoint::Exec(_) => {
            Err(ArgsError::OneStream(to.clone()))
        }
    }
}

/// Whether who connects to one host comes out at a listener of the other, at the same port.
fn meets(to: TcpHost, listen: TcpHost) -> bool {
    let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let all = |host| match host {
        TcpHost::Ip(ip) => vec![ip],
        TcpHost::Localhost => vec![v4, IpAddr::V6(Ipv6Addr::LOCALHOST)],
    };
    // To connect to no address is to connect to this machine.
    let reached = |ip: IpAddr| if ip.is_unspecified() { v4 } else { ip };
    let takes = |listen: IpAddr, ip: IpAddr| {
        // One for all IPv6 addresses takes IPv4, too.
        listen == ip || (listen.is_unspecified() && ip.is_loopback() && (listen.is_ipv6() || ip.is_ipv4()))
    };
    all(to).into_iter().any(|ip| all(listen).into_iter().any(|listen| takes(listen, reached(ip))))
}

fn endpoint(name: &'static str, text: OsString) -> Result<Endpoint, ArgsError> {
    let text = text.into_string().map_err(|_| ArgsError::NotUnicode(name))?;
    text.parse().map_err(|source| ArgsError::Endpoint { name, source })
}

/// What is nearly always meant by a bare port or address.
fn listen_endpoint(name: &'static str, text: OsString) -> Result<Endpoint, ArgsError> {
    let meant = text.to_str().and_then(|text| match text.parse::<u16>() {
        Ok(port) => Some(format!("tcp:127.0.0.1:{port}")),
        Err(_) => text.parse::<SocketAddr>().ok().map(|address| format!("tcp:{address}")),
    });
    match meant {
        Some(meant) => Err(ArgsError::NoScheme { name, text: text.to_string_lossy().into_owned(), meant }),
        None => endpoint(name, text),
    }
}

fn ready_fd(text: String) -> Result<i32, ArgsError> {
    let number = text.parse().ok().filter(|number| *number > 2);
    number.ok_or(ArgsError::Number { flag: "--ready-fd", text, what: "a descriptor beyond 2" })
}

fn connections(text: String) -> Result<usize, ArgsError> {
    // Each of two listeners holds a place while it waits.
    let number = text.parse().ok().filter(|number| (2..=MAX_CONNECTIONS).contains(number));
    number.ok_or(ArgsError::Number { flag: "--max-connections", text, what: "a number from 2 to 1000000" })
}

fn mounted(text: OsString) -> Result<Mounted, ArgsError> {
    Mounted::read(&text).ok_or_else(|| ArgsError::Number {
        flag: "--mounted",
        text: text.to_string_lossy().into_owned(),
        what: "DEVICE:INODE:PATH, with a whole path",
    })
}

fn not_empty(path: OsString) -> Result<OsString, ArgsError> {
    if path.is_empty() { Err(ArgsError::NoPath) } else { Ok(path) }
}

fn duration(flag: &'static str, text: String) -> Result<Duration, ArgsError> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 1000),
        (None, None) => (text.as_str(), 1000),
    };
    let ms = number.parse::<u32>().ok().map(|number| u64::from(number) * unit);
    ms.map(Duration::from_millis).ok_or(ArgsError::Number { flag, what: "a time such as 10s or 500ms", text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options, ArgsError> {
        with_env(words, &[])
    }

    fn with_env(words: &[&str], vars: &[(&str, &str)]) -> Result<Options, ArgsError> {
        let args: Vec<_> = words.iter().map(OsString::from).collect();
        let look = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        match parse(&args, &look)? {
            Parsed::Run(options) => Ok(*options),
            Parsed::Say(text) => panic!("{text}"),
        }
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let env = [("FOOTBRIDGE_TO", "unix:/a"), ("FOOTBRIDGE_LISTEN", "tcp:127.0.0.1:9")];
        let got = with_env(&["--to", "unix:/b"], &env).unwrap();
        assert_eq!((got.to.to_string(), got.listen.to_string()), ("unix:/b".into(), "tcp:127.0.0.1:9".into()));
        assert_eq!(options(&["--to=unix:/b"]).unwrap().listen.to_string(), "tcp:127.0.0.1:7179");
    }

    #[test]
    fn a_command_keeps_its_own_flags() {
        let got = options(&["--to", "unix:/b", "--", "sh", "-c", "--", "--help"]).unwrap();
        assert_eq!(got.command, ["sh", "-c", "--", "--help"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (words, part) in [
            (["--listen", "tcp:127.0.0.1:1"].as_slice(), "--to ENDPOINT"),
            (&["--to", "udp:x"], "--to: unknown scheme"),
            (&["--to", "unix:/b", "--listen", "unix:/c"], "need no relay"),
            (&["--to", "unix:/b", "--listen", "tcp:0.0.0.0:1"], "--allow-wide-listen"),
            (&["--to", "tcp:127.0.0.1:7179"], "connect to itself"),
            (&["--to", "tcp:localhost:7179"], "connect to itself"),
            (&["--to", "tcp:localhost:5", "--listen", "tcp:[::1]:5"], "connect to itself"),
            (&["--to", "tcp:127.0.0.1:5", "--listen", "tcp:0.0.0.0:5", "--allow-wide-listen"], "connect to itself"),
            (&["--to", "tcp:127.0.0.1:5", "--listen", "tcp:[::]:5", "--allow-wide-listen"], "connect to itself"),
            (&["--to", "tcp:127.0.0.1:0"], "port 0"),
            (&["--to", "unix:/b", "--listen", "vsock::1"], "a port of their own machine"),
            (&["--to", "vsock:any:1"], "vsock:host:PORT"),
            (&["--to", "fd:3"], "one for each client"),
            (&["--to", "sd:x"], "one for each client"),
            (&["--to", "stdio:"], "one for each client"),
            (&["--to", "exec:x"], "one for each client"),
            (&["--to", "unix:/b", "--ready-fd", "1"], "beyond 2"),
            (&["--to", "unix:/b", "--lifeline-grace", "soon"], "10s or 500ms"),
            (&["--to", "unix:/b", "--mounted", "1:/p"], "DEVICE:INODE:PATH"),
            (&["--to", "unix:/b", "--path-first", ""], "name a folder"),
            (&["--to", "unix:/b", "--path-first="], "name a folder"),
            (&["--to", "vsock:host:1", "--filter"], "refuses AF_VSOCK"),
            (&["--to", "unix:/b", "--allow-user-namespaces"], "is for --filter"),
            (&["--to", "unix:/b", "word"], "the command goes behind --"),
        ] {
            let error = options(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words:?}: {error}");
        }
        assert!(options(&["--to", "unix:/b", "--listen", "tcp:0.0.0.0:1", "--allow-wide-listen"]).is_ok());
    }

    #[test]
    fn places_to_write_are_as_many_as_are_named() {
        let got = options(&["--to", "unix:/b", "--write-below", "/a", "--write-below=/b c", "--", "sh"]).unwrap();
        assert_eq!(got.write_below, ["/a", "/b c"]);
    }

    #[test]
    fn times_have_units() {
        for (text, ms) in [("10s", 10_000), ("500ms", 500), ("2", 2000), ("0", 0)] {
            assert_eq!(duration("--patience", text.to_owned()).unwrap(), Duration::from_millis(ms), "{text}");
        }
    }
}
