//! Calls of operators by way of a harness that runs, the same for every harness: recorded there, by the policy of one of
//! its sessions; and the lists of what can be called so.

use std::time::Duration;

use super::operator_call::{NotCalled, OperatorCall, OperatorCalls};
use crate::control::{
    server::{ControlPeer, Notices, sent},
    wire::{
        CALL_HELD, CallHeld, CallTool, CalledTool, ListSessionNames, ListTools, ListedServer, MAX_ANSWER, Refusal,
        RefusalKind, ToolRequest,
    },
};
use footbridge_calls::{
    events::{ApprovalEvent, CallEvent},
    watcher::Watcher,
};
use footbridge_core::names::SessionName;
use footbridge_edge::error_of;
use footbridge_proto::rpc::{ErrorObject, Reason};

/// Carries a request out.
pub(crate) async fn handle(
    calls: &OperatorCalls,
    request: ToolRequest,
    peer: ControlPeer,
    notices: Notices,
) -> Result<serde_json::Value, Refusal> {
    match request {
        ToolRequest::CallTool(asked) => call(calls, asked, peer, notices).await.and_then(sent),
        ToolRequest::ListTools(asked) => list(calls, &asked).await.and_then(sent),
        ToolRequest::ListSessionNames(ListSessionNames {}) => sent(calls.session_names()),
    }
}

async fn call(
    calls: &OperatorCalls,
    asked: CallTool,
    peer: ControlPeer,
    notices: Notices,
) -> Result<CalledTool, Refusal> {
    let CallTool { session, server, tool, arguments, timeout_ms, hears_of_waiting } = asked;
    let refusal = |kind, text: String| Refusal::new(kind, text);
    let none = || no_session(&session);
    let name: SessionName = session.parse().map_err(|_| none())?;
    let call = OperatorCall { server, tool, arguments, policy: None, timeout: timeout_ms.map(Duration::from_millis) };
    // Listening in any case, so that a person has as long as the limits say.
    let (watcher, mut events) = Watcher::listening();
    let operator = peer.operator();
    let calling = calls.call_like(&operator, &name, call, watcher);
    tokio::pin!(calling);
    let called = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => {
                if let CallEvent::Approval(event) = *event && hears_of_waiting {
                    notices.say(CALL_HELD, &held(event));
                }
            }
            called = &mut calling => break called,
        }
    };
    match called.ok_or_else(none)? {
        // Escapes of a text in a text may be as long again.
        Ok(result) if result.text.get().len() > MAX_ANSWER / 2 => {
            let most = MAX_ANSWER / 2;
            let why = format!("The call was made, and its result has more than {most} bytes, which do not go this way");
            Ok(CalledTool { result: None, error: Some(ErrorObject::new(Reason::TooLarge, why)), timed_out: false })
        }
        Ok(result) => Ok(CalledTool { result: Some(result.text.get().to_owned()), error: None, timed_out: false }),
        Err(NotCalled::Failed(failure)) => {
            Ok(CalledTool { result: None, error: Some(error_of(&failure)), timed_out: false })
        }
        Err(NotCalled::OutOfTime(failure)) => {
            Ok(CalledTool { result: None, error: Some(error_of(&failure)), timed_out: true })
        }
        Err(why @ NotCalled::Arguments(_)) => Err(refusal(RefusalKind::Invalid, why.to_string())),
        Err(why @ NotCalled::Busy) => Err(refusal(RefusalKind::Taken, why.to_string())),
        Err(why @ NotCalled::Session(_)) => Err(refusal(RefusalKind::Failed, why.to_string())),
    }
}

async fn list(calls: &OperatorCalls, asked: &ListTools) -> Result<Vec<ListedServer>, Refusal> {
    let none = || no_session(&asked.session);
    let name: SessionName = asked.session.parse().map_err(|_| none())?;
    let seen = calls.seen_by(&name).ok_or_else(none)?;
    let _place = calls.place().map_err(|busy| Refusal::new(RefusalKind::Taken, busy.to_string()))?;
    seen.tools(asked).await
}

/// That this harness has no such session; another one may.
pub(super) fn no_session(name: &str) -> Refusal {
    Refusal::new(RefusalKind::NotFound, format!("there is no open session {name:?} here"))
}

fn held(event: ApprovalEvent) -> CallHeld {
    let ApprovalEvent { id, state, expires_at, summary, .. } = event;
    CallHeld { id, state, expires_at, summary }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::harness::Harness;
    use footbridge_audit::VolatileJournal;
    use footbridge_calls::{provider::InProcess, session::SessionSpec};
    use footbridge_core::{gate::Policy, limits::Limits, random::new_token};

    #[tokio::test]
    async fn lists_have_the_places_of_calls_and_no_more() {
        let tools = InProcess::new("x").build().unwrap();
        let harness = Harness::over(Arc::new(tools), Limits::default(), &[], VolatileJournal::new(), None).unwrap();
        let spec = SessionSpec::new("one".parse().unwrap(), &new_token().unwrap(), Policy::open());
        harness.open(spec, Vec::new()).unwrap();
        let calls = harness.operator_calls();
        let asked = ListTools { session: "one".to_owned(), server: None, refresh: false };
        let mut taken: Vec<_> = std::iter::from_fn(|| calls.place().ok()).collect();
        let refused = list(&calls, &asked).await.unwrap_err();
        assert!(refused.kind == RefusalKind::Taken && refused.message.contains("try again"), "{refused}");
        drop(taken.pop());
        assert_eq!(list(&calls, &asked).await.unwrap().len(), 1);
        drop(taken);
        drop(calls);
        harness.stop().await.unwrap();
    }
}
