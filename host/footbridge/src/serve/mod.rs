//! `footbridge serve`: the daemon, many sessions.
//!
//! Order of a start: the lock of the state folder, the store, the control socket, the record, the stages and servers,
//! the sessions of the store; then it is ready. Order of the end, on SIGTERM or SIGINT: no new commands, no new
//! connections, what runs gets a moment, servers end, the record and the store are closed. SIGHUP reads the
//! configuration again, as a command does; see `reload`.
//!
//! Killed, it leaves its sessions in the store and its sockets' files behind; the next start takes both over. Its
//! servers end by their keepers.

mod as_asked;
mod asked;
mod folder;
mod handler;
mod kept;
mod lock;
mod reload;
mod restore;
mod sessions;
mod spent;
mod supervisor;

use std::{path::PathBuf, pin::pin, sync::Arc};

use nix::sys::signal::Signal;
use tokio_util::sync::CancellationToken;

use crate::{
    composition::{self, Started, Wanted},
    config::{Config, folders::Folders},
    control, report,
};
use footbridge_audit::private_folder::make_private;
use footbridge_processes::signals::Signals;
use lock::StateLock;
use reload::Reloader;
pub(crate) use sessions::MAX_SESSIONS;
use sessions::Sessions;

/// What to serve.
#[derive(Debug)]
pub(crate) struct Serve {
    /// The files that were asked for, to read them again.
    pub(crate) files: Vec<PathBuf>,
    /// What they say.
    pub(crate) config: Config,
}

/// Serves until a signal says to end.
///
/// # Errors
/// When the daemon cannot start, or what happened could not be kept until its end.
pub(crate) async fn serve(serve: Serve, folders: &Folders) -> anyhow::Result<()> {
    // First: whoever sends a signal from now on expects it to count.
    let mut signals = Signals::listen(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])?;
    make_private(&folders.state)?;
    let _lock = StateLock::take(&folders.state)?;
    let socket = control::of_serve(&folders.runtime);
    make_private(&folders.runtime)?;
    let place = socket.parent().unwrap_or(&folders.runtime);
    make_private(place)?;
    let _of_sockets = lock::of_sockets(place)?;
    reload::log_notes(&serve.config);
    let reloader = Reloader::new(serve.files, folders.clone(), &serve.config);
    let named = serve.config.named_limits.clone();
    let wanted = Wanted { config: serve.config, state: &folders.state, front: "serve", socket: &socket };
    // A store may have to wait for another process.
    let Started { harness, mut rest } = tokio::select! {
        started = composition::start(wanted) => started?,
        () = asked_to_end(&mut signals) => return Ok(()),
    };
    let sessions = Sessions::new(harness, Arc::clone(rest.store()), &folders.runtime, reloader, named);
    let restored = match sessions.restore().await {
        Ok(count) => count,
        Err(error) => {
            // Why it cannot start comes before what is not kept in the end.
            let _ended = rest.end(sessions.stop()).await;
            return Err(error.into());
        }
    };
    rest.answer(Arc::new(sessions.clone()));
    sessions.are_watched(&socket);
    sessions.keep_store();
    let restored = report::counted(restored as u64, "session");
    report::note(&format!("footbridge: ready: {restored}, control socket {}", socket.display()));
    supervisor::notify(supervisor::READY);
    let reload = |stop| async { drop(sessions.reload(stop).await) };
    until_the_end(&mut signals, reload).await;
    tracing::info!("ending");
    supervisor::notify(supervisor::STOPPING);
    let hurry = sessions.hurry();
    let mut ended = pin!(rest.end(sessions.stop()));
    loop {
        tokio::select! {
            ended = &mut ended => return ended,
            signal = signals.next() => if signal != Signal::SIGHUP && !hurry.is_cancelled() {
                tracing::warn!("told to end once more: calls that still run are not waited for");
                hurry.cancel();
            },
        }
    }
}

/// Waits for the signal to end. What SIGHUP asks for is about to be read anyway.
async fn asked_to_end(signals: &mut Signals) {
    while signals.next().await == Signal::SIGHUP {}
}

/// Waits for the signal to end; SIGHUP asks to read the configuration again. However many come while it is read, it is
/// read once more after that; the signal to end ends the reading.
async fn until_the_end<F: Future<Output = ()>>(signals: &mut Signals, reload: impl Fn(CancellationToken) -> F) {
    let mut asked = signals.next().await;
    while asked == Signal::SIGHUP {
        let stop = CancellationToken::new();
        let _stopped_in_the_end = stop.clone().drop_guard();
        let mut reading = pin!(reload(stop));
        let mut again = None;
        asked = loop {
            tokio::select! {
                next = signals.next() => match next {
                    Signal::SIGHUP => {
                        tracing::info!("the configuration is still being read: it is read once more after that");
                        again = Some(next);
                    }
                    end => break end,
                },
                () = &mut reading => break match again {
                    Some(again) => again,
                    None => signals.next().await,
                },
            }
        };
    }
}
