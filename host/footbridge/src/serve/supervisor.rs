//! Tells the service manager how far we are, as in `sd_notify(3)`: one datagram to the socket that `NOTIFY_SOCKET`
//! names. The crate sd-notify, which reads what systemd passes on, knows no abstract names, so this is ours. Where the
//! manager watches over us (`WATCHDOG_USEC`), it hears in time that we work, and nothing once we do not: then it starts
//! us anew.

use std::{
    ffi::OsStr,
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::Duration,
};

/// The daemon is ready.
pub(super) const READY: &str = "READY=1";
/// The daemon is ending.
pub(super) const STOPPING: &str = "STOPPING=1";
/// The daemon works.
const WORKS: &str = "WATCHDOG=1";

/// Says something to the service manager, if there is one.
pub(super) fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, "the socket that NOTIFY_SOCKET names does not take \"{state}\"");
    }
}

/// How often the service manager wants to hear that this process works, if it does.
pub(super) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero())
}

/// Says that the daemon works, twice in each interval, as often as `look` finds that it does. Where it does not, it may
/// soon: it is looked at again while there is time. Never ends.
pub(super) async fn tell_that_it_works<F: Future<Output = Result<(), String>>>(
    interval: Duration,
    look: impl Fn() -> F,
    tell: impl Fn(&str),
) {
    loop {
        let pause = match look().await {
            Ok(()) => {
                tell(WORKS);
                interval / 2
            }
            Err(why) => {
                tracing::error!(%why, "the service manager is not told that the daemon works, for it does not");
                interval / 10
            }
        };
        tokio::time::sleep(pause).await;
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(socket)?,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a path nor an abstract name")),
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn both_kinds_of_names_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("footbridge-test-{}", std::process::id());
        let listening = [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (socket, address) in listening {
            send(&address, READY).unwrap();
            let mut buffer = [0; 64];
            let count = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"READY=1");
        }
        assert!(send(OsStr::new("relative"), READY).is_err());
    }

    /// The seconds at which a watchdog of 30 s is told, where each look takes so many seconds and ends so.
    async fn told(looks: &[(u64, bool)]) -> Vec<u64> {
        let (began, looked, told) = (Instant::now(), Cell::new(0), RefCell::new(Vec::new()));
        let look = || {
            let look = looks.get(looked.replace(looked.get() + 1)).copied();
            async move {
                let Some((takes, works)) = look else { return std::future::pending().await };
                tokio::time::sleep(Duration::from_secs(takes)).await;
                if works { Ok(()) } else { Err("it does not".to_owned()) }
            }
        };
        let tell = |said: &str| {
            assert_eq!(said, "WATCHDOG=1");
            told.borrow_mut().push(began.elapsed().as_secs());
        };
        let pings = tell_that_it_works(Duration::from_secs(30), look, tell);
        assert!(tokio::time::timeout(Duration::from_secs(600), pings).await.is_err());
        told.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_watchdog_hears_of_work_and_of_nothing_else() {
        assert_eq!(told(&[(0, true), (1, true), (0, true)]).await, [0, 16, 31], "twice in each interval");
        assert_eq!(told(&[(0, false), (0, false)]).await, [0; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_look_that_fails_is_made_again_in_time() {
        // A command has five seconds to be answered.
        assert_eq!(told(&[(0, true), (5, false), (0, true), (0, true)]).await, [0, 23, 38]);
        assert_eq!(told(&[(0, true), (0, false), (0, false), (5, true)]).await, [0, 26]);
    }
}
