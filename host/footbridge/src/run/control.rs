//! The control socket of a run: in the run's folder, outside of what the sandbox sees. It takes what is about
//! approvals and servers; a run has one session, which ends with it.

use std::sync::Arc;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::folder::RunFolder;
use crate::{
    control::{
        self, approvals,
        server::{Control, ControlError, ControlPeer, Handler, sent},
        servers::{self, Overseen},
        wire::{ControlRequest, Refusal, RefusalKind},
    },
    harness::Harness,
};
use footbridge_calls::approval::Approvals;

struct RunHandler {
    approvals: Approvals,
    /// Whether others than the person in front of the run may answer.
    others: bool,
    overseen: Overseen,
}

impl Handler for RunHandler {
    async fn handle(&self, request: ControlRequest, peer: ControlPeer) -> Result<serde_json::Value, Refusal> {
        if !self.others && matches!(request, ControlRequest::AllowApproval(_) | ControlRequest::DenyApproval(_)) {
            let message = "only who sits in front of this run answers: \"watch = false\" in [approval] of footbridge.toml, \
                           or no terminal, says so";
            return Err(Refusal::new(RefusalKind::Failed, message));
        }
        let request = match approvals::handle(&self.approvals, self.others, request, peer) {
            Ok(answer) => return answer,
            Err(other) => *other,
        };
        match servers::handle(&self.overseen, request, peer).await {
            Ok(answer) => answer,
            Err(other) if matches!(*other, ControlRequest::Hello(_)) => sent(control::wire::HarnessInfo::this("run")),
            Err(_) => {
                Err(Refusal::new(RefusalKind::Invalid, "this is a run, whose only session ends with its command"))
            }
        }
    }
}

/// A control socket that is served.
pub(super) struct RunControl {
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl RunControl {
    /// Binds it in the run's folder and serves it. With `others`, people answer over it.
    pub(super) fn start(folder: &RunFolder, harness: &Harness, others: bool) -> Result<Self, ControlError> {
        let control = Control::bind(&control::in_folder(folder.path()))?;
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let of_run = RunHandler { approvals: harness.approvals().clone(), others, overseen: harness.overseen() };
        tasks.spawn(control.serve(Arc::new(of_run), shutdown.clone()));
        Ok(Self { shutdown, tasks })
    }

    /// Ends it.
    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
