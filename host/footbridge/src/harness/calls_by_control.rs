//! Calls of operators by way of a harness that runs, the same for every harness: recorded there, by the policy of one of
//! its sessions.

use super::operator_call::{NotCalled, OperatorCall, OperatorCalls};
use crate::control::{
    server::{ControlPeer, sent},
    wire::{CallTool, CalledTool, ControlRequest, MAX_ANSWER, Refusal, RefusalKind},
};
use footbridge_core::names::SessionName;
use footbridge_edge::error_of;

/// Carries a request out, if it is a call; gives it back otherwise.
pub(crate) async fn handle(
    calls: &OperatorCalls,
    request: ControlRequest,
    peer: ControlPeer,
) -> Result<Result<serde_json::Value, Refusal>, Box<ControlRequest>> {
    match request {
        ControlRequest::CallTool(asked) => Ok(call(calls, asked, peer).await.and_then(sent)),
        other => Err(Box::new(other)),
    }
}

async fn call(calls: &OperatorCalls, asked: CallTool, peer: ControlPeer) -> Result<CalledTool, Refusal> {
    let CallTool { session, server, tool, arguments } = asked;
    let refusal = |kind, text: String| Refusal::new(kind, text);
    let none = || refusal(RefusalKind::NotFound, format!("there is no open session {session:?} here"));
    let name: SessionName = session.parse().map_err(|_| none())?;
    let call = OperatorCall { server, tool, arguments, policy: None };
    match calls.call_like(&peer.operator(), &name, call).await.ok_or_else(none)? {
        // Escapes of a text in a text may be as long again.
        Ok(result) if result.text.get().len() > MAX_ANSWER / 2 => Err(refusal(
            RefusalKind::Failed,
            format!(
                "the call was made, and its result has more than {} bytes, which do not go this way",
                MAX_ANSWER / 2
            ),
        )),
        Ok(result) => Ok(CalledTool { result: Some(result.text.get().to_owned()), error: None }),
        Err(NotCalled::Failed(failure)) => Ok(CalledTool { result: None, error: Some(error_of(&failure)) }),
        Err(why @ NotCalled::Arguments(_)) => Err(refusal(RefusalKind::Invalid, why.to_string())),
        Err(why @ NotCalled::Busy) => Err(refusal(RefusalKind::Taken, why.to_string())),
        Err(why @ NotCalled::Session(_)) => Err(refusal(RefusalKind::Failed, why.to_string())),
    }
}
