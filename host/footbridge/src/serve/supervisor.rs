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

/// Says that the daemon works, twice in each interval, as often as `look` finds that it does. Never ends.
pub(super) async fn tell_that_it_works<F: Future<Output = Result<(), String>>>(
    interval: Duration,
    look: impl Fn() -> F,
    tell: impl Fn(&str),
) {
    loop {
        match look().await {
            Ok(()) => tell(WORKS),
            Err(why) => tracing::error!(%why, "the service manager is not told that the daemon works, for it does not"),
        }
        tokio::time::sleep(interval / 2).await;
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
    use std::cell::Cell;

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

    #[tokio::test(start_paused = true)]
    async fn a_watchdog_hears_of_work_and_of_nothing_else() {
        let (looks, told) = (Cell::new(0), Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            let look = looks.get();
            async move {
                match look {
                    3 => Err("it does not".to_owned()),
                    5 => std::future::pending().await,
                    _ => Ok(()),
                }
            }
        };
        let tell = |said: &str| {
            assert_eq!(said, "WATCHDOG=1");
            told.set(told.get() + 1);
        };
        let pings = tell_that_it_works(Duration::from_secs(10), look, tell);
        assert!(tokio::time::timeout(Duration::from_secs(19), pings).await.is_err());
        assert_eq!((looks.get(), told.get()), (4, 3), "twice in each interval, and not where something is wrong");
    }
}
