//! What the control socket of a run takes, which is in the run's folder, outside of what the sandbox sees: what is about
//! approvals and servers. A run has one session, which ends with it.

use crate::{
    control::{
        self, approvals,
        server::{ControlPeer, Handler, Notices, sent},
        servers::{self, Overseen},
        wire::{AllowApproval, ControlRequest, DenyApproval, Refusal, RefusalKind},
    },
    harness::{Harness, OperatorCalls, calls_by_control},
};
use footbridge_calls::approval::Approvals;

/// Answers commands of a run.
pub(super) struct RunHandler {
    approvals: Approvals,
    /// Whether others than the person in front of the run may answer.
    others: bool,
    overseen: Overseen,
    calls: OperatorCalls,
}

impl RunHandler {
    /// With `others`, people answer over the control socket.
    pub(super) fn new(harness: &Harness, others: bool) -> Self {
        let (overseen, calls) = (harness.overseen(), harness.operator_calls());
        Self { approvals: harness.approvals().clone(), others, overseen, calls }
    }
}

impl Handler for RunHandler {
    async fn handle(
        &self,
        request: ControlRequest,
        peer: ControlPeer,
        notices: Notices,
    ) -> Result<serde_json::Value, Refusal> {
        let answered = match &request {
            ControlRequest::AllowApproval(AllowApproval { id, .. })
            | ControlRequest::DenyApproval(DenyApproval { id, .. }) => Some(id),
            _ => None,
        };
        // What is not here may be elsewhere: that is said as everywhere.
        if !self.others && answered.is_some_and(|id| approvals::has(&self.approvals, id)) {
            let message = "only who sits in front of this run answers: \"watch = false\" in [approval] of footbridge.toml, \
                           or no terminal, says so";
            return Err(Refusal::new(RefusalKind::Failed, message));
        }
        if let Some(id) = answered.filter(|_| !self.others) {
            return Err(approvals::unknown(id));
        }
        let request = match approvals::handle(&self.approvals, self.others, request, peer) {
            Ok(answer) => return answer,
            Err(other) => *other,
        };
        let request = match calls_by_control::handle(&self.calls, request, peer, notices).await {
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
