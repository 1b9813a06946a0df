//! Reaching the harness: trying again while it may be about to appear, and no longer.
//!
//! An outage starts with the first failure after a success, or with the relay. For a while (ten seconds by default)
//! from then on a connection is tried again with growing pauses; after that each new client costs one try and is
//! answered at once, until one succeeds. So a harness that is a little late loses nobody, and one that is gone holds
//! nobody up.
//!
//! That this machine has nothing left to connect with is no outage, and says nothing of the harness.

use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    io,
    time::Duration,
};

use footbridge_guest::settings::{ENDED, is_in_removed_folder};
use footbridge_proto::endpoint::Endpoint;
use nix::libc;
use tokio::time::{Instant, sleep, timeout};

use crate::{say, stream::Stream};

/// Longest single try: some transports do not refuse, they say nothing.
const TRY_LIMIT: Duration = Duration::from_secs(3);
/// First pause between tries.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause between tries.
const LAST_PAUSE: Duration = Duration::from_millis(500);

/// The way to the harness, and how it has been lately.
pub(crate) struct Reach {
    to: Endpoint,
    /// How long after the start of an outage connections are tried again.
    patience: Duration,
    state: Cell<State>,
    /// The last try failed for want of descriptors or memory, which has been said.
    is_exhausted: Cell<bool>,
}

/// Why a client has no connection to the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreached {
    /// It does not answer.
    Harness,
    /// There is nothing left to connect with here.
    Exhausted,
}

#[derive(Clone, Copy)]
enum State {
    Up,
    Down { since: Instant, said: bool },
}

impl Reach {
    pub(crate) fn new(to: Endpoint, patience: Duration) -> Self {
        let state = Cell::new(State::Down { since: Instant::now(), said: false });
        Self { to, patience, state, is_exhausted: Cell::new(false) }
    }

    /// Connects, trying again while the outage is young.
    pub(crate) async fn connect(&self) -> Result<Stream, Unreached> {
        let (began, mut pause) = (Instant::now(), Pause::new());
        loop {
            let error = match self.connect_once().await {
                Ok(stream) => return Ok(stream),
                Err(e) => e,
            };
            let (since, unreached) = match self.state.get() {
                _ if is_exhausted(&error) => (began, Unreached::Exhausted),
                State::Down { since, .. } => (since, Unreached::Harness),
                State::Up => return Err(Unreached::Harness),
            };
            let wait = pause.next();
            if !may_pass(&error) || since.elapsed() + wait > self.patience {
                if unreached == Unreached::Harness {
                    self.say_once(&error);
                }
                return Err(unreached);
            }
            sleep(wait).await;
        }
    }

    /// Connects without trying again.
    pub(crate) async fn connect_once(&self) -> io::Result<Stream> {
        let tried = timeout(TRY_LIMIT, Stream::connect(&self.to)).await;
        let tried = tried.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        self.note(tried.as_ref().err());
        tried
    }

    /// What a try says of the harness: it failed by this, or it did not.
    fn note(&self, error: Option<&io::Error>) {
        match (error, self.state.get()) {
            (None, state) => {
                if let State::Down { said: true, .. } = state {
                    say(&format_args!("reached {} again", self.to));
                }
                self.state.set(State::Up);
                self.is_exhausted.set(false);
            }
            (Some(error), _) if is_exhausted(error) => {
                if !self.is_exhausted.replace(true) {
                    let to = &self.to;
                    say(&format_args!(
                        "cannot connect to the harness at {to} for now: {error}; that is this machine's or the relay's own limit \
                         (ulimit -n), and says nothing of the harness; waiting"
                    ));
                }
            }
            (Some(_), State::Up) => self.state.set(State::Down { since: Instant::now(), said: false }),
            (Some(_), State::Down { .. }) => {}
        }
    }

    /// One line an outage, however many clients meet it.
    fn say_once(&self, error: &io::Error) {
        if let State::Down { since, said: false } = self.state.get() {
            let advice = match &self.to {
                Endpoint::Unix(path) if is_in_removed_folder(path.as_path()) => ENDED.to_owned(),
                _ => advice(&self.to, error).map(|advice| format!(" ({advice})")).unwrap_or_default(),
            };
            say(&format_args!(
                "cannot reach the harness at {}: {error}{advice}; clients are answered 502 until it is back",
                self.to
            ));
            self.state.set(State::Down { since, said: true });
        }
    }
}

/// Whether there was nothing left to accept or to connect with.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let errnos = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|errno| errnos.contains(&errno))
}

/// Whether the error is one that passes when the harness or the virtual machine starts, or when connections end that
/// hold the relay's own descriptors.
fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, TimedOut};
    // Before Linux 5.6 a transport that is not there yet is ENETUNREACH.
    let passing = [libc::ENODEV, libc::ENETUNREACH, libc::ENOENT, libc::EAGAIN];
    matches!(error.kind(), ConnectionRefused | ConnectionReset | TimedOut)
        || is_exhausted(error)
        || error.raw_os_error().is_some_and(|errno| passing.contains(&errno))
}

/// What an error means that says little by itself, and what to do.
fn advice(to: &Endpoint, error: &io::Error) -> Option<&'static str> {
    let Endpoint::Vsock(_) = to else { return None };
    Some(match error.raw_os_error()? {
        libc::ENODEV | libc::ENETUNREACH => {
            "there is no vsock device here: give the virtual machine one, and load vmw_vsock_virtio_transport in it"
        }
        libc::EPERM | libc::EACCES => {
            "a system call filter refuses AF_VSOCK, as sandboxes of Footbridge do: mount the folder of the harness's \
             Unix socket, and use unix:PATH"
        }
        libc::EAFNOSUPPORT => "this kernel has no vsock: load its module vsock, or use unix:PATH",
        libc::ECONNRESET => "nothing listens on this port there, or the host does not answer for it",
        libc::ETIMEDOUT => "the host did not answer: check the context id and port, and that the harness listens there",
        _ => return None,
    })
}

/// Pauses that double, each shortened by a random part so that clients do not come back all at once.
pub(crate) struct Pause(Duration);

impl Pause {
    pub(crate) fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let full = self.0;
        self.0 = (full * 2).min(LAST_PAUSE);
        let percent = RandomState::new().hash_one(()) % 50;
        full - full * u32::try_from(percent).unwrap_or(0) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vsock_errors_say_what_to_do_and_whether_to_wait() {
        let vsock: Endpoint = "vsock:host:7179".parse().unwrap();
        let unix: Endpoint = "unix:/x".parse().unwrap();
        for (errno, passes, part) in [
            (libc::ENODEV, true, "no vsock device"),
            (libc::EPERM, false, "use unix:PATH"),
            (libc::EAFNOSUPPORT, false, "module vsock"),
            (libc::ECONNRESET, true, "nothing listens"),
            (libc::ETIMEDOUT, true, "did not answer"),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(may_pass(&error), passes, "{error}");
            assert!(advice(&vsock, &error).unwrap().contains(part), "{error}");
            assert_eq!(advice(&unix, &error), None);
        }
        assert!(may_pass(&io::Error::from_raw_os_error(libc::EAGAIN)), "a full backlog empties");
    }

    #[test]
    fn want_of_descriptors_is_no_outage_of_the_harness() {
        let reach = Reach::new("unix:/x".parse().unwrap(), Duration::ZERO);
        let is_up = || matches!(reach.state.get(), State::Up);
        reach.note(None);
        for errno in [libc::EMFILE, libc::ENFILE] {
            let error = io::Error::from_raw_os_error(errno);
            reach.note(Some(&error));
            assert!(is_up() && may_pass(&error), "{error}");
        }
        reach.note(Some(&io::Error::from_raw_os_error(libc::ECONNREFUSED)));
        assert!(!is_up());
    }

    #[test]
    fn pauses_grow_to_half_a_second() {
        let mut pause = Pause::new();
        let pauses: Vec<_> = (0..20).map(|_| pause.next()).collect();
        assert!(pauses[0] <= FIRST_PAUSE && pauses[0] > FIRST_PAUSE / 3);
        assert!(pauses.iter().all(|pause| *pause <= LAST_PAUSE));
        assert!(pauses[19] > LAST_PAUSE / 3);
    }
}
