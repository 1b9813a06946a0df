//! The control socket of a run: in the run's folder, outside of what the sandbox sees. It takes what is about
//! approvals; a run has one session, which ends with it.

use std::sync::Arc;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::folder::RunFolder;
use crate::{
    approval::Approvals,
    control::{
        self, approvals,
        server::{Control, ControlError, Handler, sent},
        wire::{Kind, Refusal, Request},
    },
};

struct OfRun(Approvals);

impl Handler for OfRun {
    async fn handle(&self, request: Request) -> Result<serde_json::Value, Refusal> {
        match approvals::handle(&self.0, request) {
            Ok(answer) => answer,
            Err(other) if matches!(*other, Request::Hello(_)) => sent(control::wire::Harness::this("run")),
            Err(_) => Err(Refusal::new(Kind::Invalid, "this is a run, whose only session ends with its command")),
        }
    }
}

/// A control socket that is served.
pub(super) struct Answering {
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Answering {
    /// Binds it in the run's folder and serves it.
    pub(super) fn start(folder: &RunFolder, approvals: &Approvals) -> Result<Self, ControlError> {
        let control = Control::bind(&control::in_folder(folder.path()))?;
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(control.serve(Arc::new(OfRun(approvals.clone())), shutdown.clone()));
        Ok(Self { shutdown, tasks })
    }

    /// Ends it.
    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
