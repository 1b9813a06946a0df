//! What the control socket of a run takes, which is in the run's folder, outside of what the sandbox sees: what is about
//! approvals, servers and budgets. A run has one session, which ends with it.

use crate::{
    control::{
        approvals,
        server::{ControlPeer, Handler, Notices, sent},
        servers::{self, Overseen},
        wire::{
            AllowApproval, ApprovalRequest, ControlRequest, DenyApproval, HarnessInfo, HarnessRequest, Hello, Refusal,
            RefusalKind, SessionRequest,
        },
    },
    harness::{
        Harness, OperatorCalls,
        budgets_by_control::{NewBudgets, OpenBudgets},
        calls_by_control,
    },
};
use footbridge_calls::approval::Approvals;

/// Answers commands of a run.
pub(super) struct RunHandler {
    approvals: Approvals,
    /// Whether others than the person in front of the run may answer.
    others: bool,
    overseen: Overseen,
    calls: OperatorCalls,
    budgets: OpenBudgets,
}

impl RunHandler {
    /// With `others`, people answer over the control socket.
    pub(super) fn new(harness: &Harness, others: bool) -> Self {
        let (overseen, calls) = (harness.overseen(), harness.operator_calls());
        let budgets = harness.open_budgets();
        Self { approvals: harness.approvals().clone(), others, overseen, calls, budgets }
    }
}

impl Handler for RunHandler {
    async fn handle(
        &self,
        request: ControlRequest,
        peer: ControlPeer,
        notices: Notices,
    ) -> Result<serde_json::Value, Refusal> {
        match request {
            ControlRequest::Harness(HarnessRequest::Hello(Hello { .. })) => sent(HarnessInfo::this("run")),
            ControlRequest::Session(SessionRequest::LimitSession(asked)) => {
                NewBudgets::read(&asked).and_then(|asked| self.budgets.set(&peer.operator(), asked)).and_then(sent)
            }
            ControlRequest::Approval(asked) => self.approval(asked, peer),
            ControlRequest::Server(asked) => servers::handle(&self.overseen, asked, peer).await,
            ControlRequest::Tool(asked) => calls_by_control::handle(&self.calls, asked, peer, notices).await,
            ControlRequest::Daemon(_) => {
                Err(Refusal::new(RefusalKind::Invalid, "this is a run, whose only session ends with its command"))
            }
        }
    }
}

impl RunHandler {
    fn approval(&self, asked: ApprovalRequest, peer: ControlPeer) -> Result<serde_json::Value, Refusal> {
        match &asked {
            ApprovalRequest::AllowApproval(AllowApproval { id, .. })
            | ApprovalRequest::DenyApproval(DenyApproval { id, .. })
                if !self.others =>
            {
                Err(self.not_for_others(id))
            }
            _ => approvals::handle(&self.approvals, self.others, asked, peer),
        }
    }

    /// What is said where others answer nothing. What is not here may be elsewhere: that is said as everywhere.
    fn not_for_others(&self, id: &str) -> Refusal {
        if let Err(refusal) = approvals::check_live(&self.approvals, id) {
            return refusal;
        }
        let message = "only who sits in front of this run answers: \"watch = false\" in [approval] of footbridge.toml, or no \
                       terminal, says so";
        Refusal::new(RefusalKind::Failed, message)
    }
}
