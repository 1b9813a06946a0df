//! What `run` and `serve` start and end alike, in one order.
//!
//! Start: the store, the control socket, the record, then the stages and servers. A front opens its sessions next, and
//! then answers commands. End: no new commands, the front with its harness, the store.
//!
//! Failure paths: where a step fails, what was started before is dropped; nothing was served yet.

use std::{io, path::Path, sync::Arc};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::Config,
    control::server::{Control, Handler},
    harness::Harness,
    server_logs::ServerLogs,
    store::{StateStore, StoreError, StoreKind},
};
use footbridge_audit::Recorder;
use footbridge_calls::pins::Pins;
use footbridge_processes::{launch::Launcher, priority::take_short_turns, threads::file_limit};

/// What is started.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) config: Config,
    /// The state folder.
    pub(crate) state: &'a Path,
    /// `run` or `serve`.
    pub(crate) front: &'static str,
    /// Where the control socket is to be.
    pub(crate) socket: &'a Path,
}

/// What was started: the harness is its front's, the rest stays together.
pub(crate) struct Started {
    pub(crate) harness: Harness,
    pub(crate) rest: Rest,
}

/// What is around a harness.
pub(crate) struct Rest {
    store: Arc<dyn StateStore>,
    /// Bound, and not answered yet.
    control: Option<Control>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

/// Starts everything but sessions and the answering of commands. People are asked unless the configuration says no.
///
/// # Errors
/// When a step fails.
pub(crate) async fn start(wanted: Wanted<'_>) -> anyhow::Result<Started> {
    let Wanted { config, state, front, socket } = wanted;
    let store = open_store(config.store, state).await?;
    let control = Control::bind(socket)?;
    let recorder = Recorder::open(&state.join("audit"), &config.audit)?.sink(store.head_sink());
    let recorder = recorder.on_thread_start(take_short_turns);
    let pins = Some(Pins::in_store(Arc::clone(&store) as _));
    let asks_people = config.approval.watch.unwrap_or(true);
    let launcher = Launcher::Kept { helper: None, folders: config.own_folders.clone() };
    let harness = Harness::start(config, recorder, launcher, pins, Some(Arc::new(ServerLogs::new(state, front))));
    let harness = harness.map_err(|error| cannot_record(state, error))?;
    if asks_people {
        harness.approvals().people_answer();
    }
    let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
    Ok(Started { harness, rest: Rest { store, control: Some(control), shutdown, tasks } })
}

/// What is said where the record takes nothing; the kernel's reason follows.
pub(crate) fn cannot_record(state: &Path, error: impl Into<anyhow::Error>) -> anyhow::Error {
    let (audit, error) = (state.join("audit"), error.into());
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let what = causes.find_map(file_limit).unwrap_or(SEE_TO_THE_PLACE);
    let said = format!("cannot write the record in {}, and without it nothing is called: {what}", audit.display());
    error.context(said)
}

/// What helps where something cannot be written.
pub(crate) const SEE_TO_THE_PLACE: &str = "make room there, or make it writable";

/// Opens the store of a state folder, and says it where one is gone that was there.
pub(crate) async fn open_store(kind: StoreKind, state: &Path) -> Result<Arc<dyn StateStore>, StoreError> {
    let is_lost = kind.is_empty(state) && has_a_record(&state.join("audit"));
    let store = kind.open(state).await?;
    if is_lost {
        tracing::warn!(
            state = %state.display(),
            "the store of this state folder is gone, though there is a record of earlier runs: the sessions and pins that \
             were in it are gone too, and what servers define now is pinned as if it were seen first. If it was not you, \
             look at \"footbridge audit tail\", and at the tools before you use them"
        );
    }
    Ok(store)
}

/// Whether there is a chain of an earlier run.
fn has_a_record(audit: &Path) -> bool {
    let chains = std::fs::read_dir(audit).into_iter().flatten().flatten();
    chains.into_iter().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

impl Rest {
    /// The store.
    pub(crate) fn store(&self) -> &Arc<dyn StateStore> {
        &self.store
    }

    /// Answers commands from now on.
    pub(crate) fn answer(&mut self, handler: Arc<impl Handler>) {
        if let Some(control) = self.control.take() {
            self.tasks.spawn(control.serve(handler, self.shutdown.clone()));
        }
    }

    /// Ends everything, with the front when its turn comes; gives what that says.
    pub(crate) async fn end<T>(self, front: impl Future<Output = T>) -> T {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        drop(self.control);
        let ended = front.await;
        self.store.close().await;
        ended
    }
}

#[cfg(test)]
mod tests {
    use nix::libc::{EMFILE, ENOSPC};

    use super::*;

    #[test]
    fn what_helps_fits_why_there_is_no_record() {
        let said = |errno| cannot_record(Path::new("/s"), io::Error::from_raw_os_error(errno)).to_string();
        assert!(said(ENOSPC).ends_with("make room there, or make it writable"), "{}", said(ENOSPC));
        assert!(said(EMFILE).contains("ulimit -n") && !said(EMFILE).contains("room"), "{}", said(EMFILE));
    }
}
