//! The commands' end of a control socket: blocking, one request at a time.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::{fd::AsRawFd as _, unix::net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use footbridge_proto::rpc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::wire::{HarnessInfo, Hello, MAX_ANSWER, Method, PROTOCOL, Refusal, RefusalKind};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a harness may take to say who it is, which takes it nothing: others wait for that.
const GREETING: Duration = Duration::from_secs(5);

/// A connection to a harness.
#[derive(Debug)]
pub(crate) struct ControlClient {
    stream: BufReader<UnixStream>,
    path: PathBuf,
    patience: Duration,
    /// Who is there.
    pub(crate) harness: HarnessInfo,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlClientError {
    /// Nobody listens.
    #[error("no footbridge daemon is running (nobody answers at {}): start one with \"footbridge serve\"", .0.display())]
    NotRunning(PathBuf),
    /// It does not let us in.
    #[error(
        "the daemon at {} hung up: it talks only to commands of its own user, in its own user, pid and network namespaces, and to a few at a time",
        .0.display()
    )]
    Refused(PathBuf),
    /// Whoever listens there is not this user.
    #[error("what answers at {} is a process of user {uid}, not yours: nothing was sent to it; find out who put it there", path.display())]
    Impostor {
        /// The socket.
        path: PathBuf,
        /// Who listens.
        uid: u32,
    },
    /// It speaks another protocol.
    #[error("the running footbridge ({version}) speaks another protocol than this one ({ours}): restart it with the same version", ours = env!("CARGO_PKG_VERSION"))]
    OtherProtocol {
        /// Its version.
        version: String,
    },
    /// It says no.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// It takes too long.
    #[error(
        "the harness is busy: at {} it gave no answer within {patience:?}; try again, and if that goes on, see its log and end other commands that talk to it, such as \"footbridge approvals watch\"",
        path.display()
    )]
    Busy {
        /// The socket.
        path: PathBuf,
        /// How long it had.
        patience: Duration,
    },
    /// The connection broke.
    #[error("the daemon at {} does not answer: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[derive(Deserialize)]
struct ErrorData {
    kind: RefusalKind,
}

impl ControlClient {
    /// Connects, and learns who is there.
    ///
    /// # Errors
    /// [`ControlClientError`].
    pub(crate) fn connect(path: &Path) -> Result<Self, ControlClientError> {
        let mut client = Self::connect_within(path, GREETING)?;
        let stream = client.stream.get_ref();
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .map_err(|source| ControlClientError::Io { path: path.to_owned(), source })?;
        client.patience = PATIENCE;
        Ok(client)
    }

    /// The same, with this time for each answer, and no more of it to connect: who cannot wait is kept for no longer.
    ///
    /// # Errors
    /// [`ControlClientError`].
    pub(crate) fn connect_within(path: &Path, patience: Duration) -> Result<Self, ControlClientError> {
        let io_error = |source| ControlClientError::Io { path: path.to_owned(), source };
        let stream = connect_in_time(path, patience).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ControlClientError::NotRunning(path.to_owned())
            }
            // So many wait there already that no more can.
            io::ErrorKind::WouldBlock => ControlClientError::Busy { path: path.to_owned(), patience },
            _ => io_error(error),
        })?;
        // In a folder such as /tmp anybody could have been there first.
        check_listener(&stream, nix::unistd::geteuid().as_raw(), path)?;
        stream.set_read_timeout(Some(patience)).map_err(io_error)?;
        let nobody = HarnessInfo {
            harness: String::new(),
            version: String::new(),
            protocol: PROTOCOL,
            pid: 0,
            reload_failed: None,
            record_failed: None,
        };
        let mut client = Self { stream: BufReader::new(stream), path: path.to_owned(), patience, harness: nobody };
        let hello = Hello { version: env!("CARGO_PKG_VERSION").to_owned() };
        client.harness = client.call(&hello).map_err(|error| match error {
            ControlClientError::Io { path, source } if hung_up(&source) => ControlClientError::Refused(path),
            other => other,
        })?;
        if client.harness.protocol != PROTOCOL {
            return Err(ControlClientError::OtherProtocol { version: client.harness.version });
        }
        Ok(client)
    }

    /// The same, with this time for each answer.
    ///
    /// # Errors
    /// [`ControlClientError::Io`].
    pub(crate) fn with_patience(self, patience: Duration) -> Result<Self, ControlClientError> {
        let done = self.stream.get_ref().set_read_timeout(Some(patience));
        done.map_err(|source| ControlClientError::Io { path: self.path.clone(), source })?;
        Ok(Self { patience, ..self })
    }

    /// Asks for something and waits for the answer.
    ///
    /// # Errors
    /// [`ControlClientError`].
    pub(crate) fn call<M: Method>(&mut self, params: &M) -> Result<M::Answer, ControlClientError> {
        self.call_hearing(params, |_, _| {})
    }

    /// The same, and hears the method and the parameters of each notice that comes before the answer.
    ///
    /// # Errors
    /// [`ControlClientError`].
    pub(crate) fn call_hearing<M: Method>(
        &mut self,
        params: &M,
        mut hear: impl FnMut(&str, &RawValue),
    ) -> Result<M::Answer, ControlClientError> {
        let mut line = self.exchange(M::NAME, params).map_err(|source| self.broken(source))?;
        loop {
            match serde_json::from_slice::<rpc::IncomingMessage<'_>>(&line) {
                Ok(rpc::IncomingMessage { method: Some(method), params, .. }) => {
                    hear(&method, params.unwrap_or(RawValue::NULL));
                }
                _ => return self.read::<M::Answer>(&line),
            }
            line = self.line().map_err(|source| self.broken(source))?;
        }
    }

    fn exchange<M: Method>(&mut self, method: &str, params: &M) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(&rpc::Request::new(1, method, params))?;
        text.push(b'\n');
        match self.stream.get_mut().write_all(&text) {
            // Whoever turns us away says why, and does not wait to hear what for.
            Err(error) if !hung_up(&error) => return Err(error),
            _ => {}
        }
        self.line()
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let limit = u64::try_from(MAX_ANSWER).unwrap_or(u64::MAX);
        (&mut self.stream).take(limit).read_until(b'\n', &mut line)?;
        if line.ends_with(b"\n") { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn read<A: DeserializeOwned>(&self, line: &[u8]) -> Result<A, ControlClientError> {
        let bad = |error: serde_json::Error| self.broken(error.into());
        let answer: rpc::Response = serde_json::from_slice(line).map_err(bad)?;
        if let Some(error) = answer.error {
            let data = error.data.map(serde_json::from_value::<ErrorData>).transpose().map_err(bad)?;
            return Err(Refusal::new(data.map_or(RefusalKind::Other, |data| data.kind), error.message).into());
        }
        let result = answer.result.as_deref().map_or("null", RawValue::get);
        serde_json::from_str(result).map_err(bad)
    }

    fn broken(&self, source: io::Error) -> ControlClientError {
        let path = self.path.clone();
        match source.kind() {
            // A time that is over shows as either.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                ControlClientError::Busy { path, patience: self.patience }
            }
            _ => ControlClientError::Io { path, source },
        }
    }
}

/// Connects, and waits at most this long where so many wait already that no more can: a harness that is stopped takes
/// none. What is sent then has as long.
fn connect_in_time(path: &Path, time: Duration) -> io::Result<UnixStream> {
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let stream = UnixStream::from(socket);
    stream.set_write_timeout(Some(time))?;
    connect(stream.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(stream)
}

fn check_listener(stream: &UnixStream, ours: u32, path: &Path) -> Result<(), ControlClientError> {
    let listener = getsockopt(stream, sockopt::PeerCredentials);
    match listener.map_err(io::Error::from) {
        Ok(listener) if listener.uid() == ours => Ok(()),
        Ok(listener) => Err(ControlClientError::Impostor { path: path.to_owned(), uid: listener.uid() }),
        Err(source) => Err(ControlClientError::Io { path: path.to_owned(), source }),
    }
}

fn hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{Backlog, bind, listen};

    use super::*;

    #[test]
    fn a_listener_of_another_user_is_told_nothing() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let own = nix::unistd::geteuid().as_raw();
        check_listener(&ours, own, Path::new("/x")).unwrap();
        let text = check_listener(&ours, own + 1, Path::new("/x")).unwrap_err().to_string();
        assert!(text.contains("/x") && text.contains(&format!("user {own}")), "{text}");
    }

    #[test]
    fn a_harness_that_does_not_answer_is_called_busy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let text = ControlClient::connect_within(&path, Duration::from_millis(50)).unwrap_err().to_string();
        assert!(text.starts_with("the harness is busy") && text.contains("within 50ms; try again"), "{text}");
    }

    #[test]
    fn one_where_no_more_can_wait_keeps_nobody_for_longer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None).unwrap();
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        let time = Duration::from_millis(50);
        let waiting: Vec<_> = std::iter::from_fn(|| connect_in_time(&path, time).ok()).collect();
        assert!((1..10).contains(&waiting.len()), "{}", waiting.len());
        let text = ControlClient::connect_within(&path, time).unwrap_err().to_string();
        assert!(text.starts_with("the harness is busy") && text.contains("within 50ms"), "{text}");
    }
}
