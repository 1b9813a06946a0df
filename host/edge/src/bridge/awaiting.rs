//! `awaitApproval`: waits for an answer and says the state. It runs nothing.
//!
//! In one body it is answered after a while, whatever the state is, since clients give up. As a stream of events it says
//! first what is asked, and ends with the state once the approval is not pending any more.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use footbridge_proto::{approval::ApprovalStatus, rpc::raw, wire::ApprovalState};
use futures::{
    StreamExt as _,
    future::ready,
    stream::{self, BoxStream},
};
use serde_json::value::RawValue;

use super::answers::RpcEncoder;
use crate::{dialect::Encoder as _, json_rpc::text_of_event};
use footbridge_calls::{
    approval::ApprovalId,
    auth::Principal,
    call::Stages,
    cause::Cause,
    events::{ApprovalEvent, CallEvent},
    request::repeated,
};

/// Longest time that one body is waited for: clients give up after 30 s, and can ask again.
const AWAITED: Duration = Duration::from_secs(20);

/// As long as nobody asks for: every approval ends before, and so does its session.
const TO_THE_END: Duration = Duration::from_secs(30 * 24 * 3600);

/// The state, as one body.
pub(super) async fn answered(stages: &Stages, principal: &Principal, id: &str) -> Box<RawValue> {
    raw(&state(stages, principal, id, AWAITED).await)
}

/// The same as events.
pub(super) fn told(
    stages: Arc<Stages>,
    principal: Principal,
    id: String,
    encoder: RpcEncoder,
) -> BoxStream<'static, Bytes> {
    let asks = (Arc::clone(&stages), principal.clone(), id.clone());
    let begins = async move {
        let (stages, principal, id) = asks;
        let now = state(&stages, &principal, &id, Duration::ZERO).await;
        pending(&stages, now)
    };
    let ends = async move {
        let known = state(&stages, &principal, &id, TO_THE_END).await;
        // Another may have the session's token by now.
        let answer = if principal.is_current() { Ok(raw(&known)) } else { Err(Cause::SessionReplaced.into()) };
        stream::iter(encoder.last_event(answer).into_known())
    };
    stream::once(begins).filter_map(ready).chain(stream::once(ends).flatten()).boxed()
}

/// What waits for a person, as an event.
fn pending(stages: &Stages, now: ApprovalState) -> Option<Bytes> {
    let id = (now.state == ApprovalStatus::Pending).then(|| now.id.parse().ok())??;
    let shown = stages.approvals.show(id).ok()?;
    Some(text_of_event(&CallEvent::Approval(ApprovalEvent {
        summary: format!("{}/{} waits for a person", shown.info.server, repeated(&shown.info.name)),
        expires_in: Some(Duration::from_secs(shown.info.seconds_left)),
        expires_at: now.expires_at,
        state: now.state,
        id: now.id,
    })))
}

/// How an approval is once it is not pending any more, or after so long. Another session's is as one that never was.
async fn state(stages: &Stages, principal: &Principal, id: &str, wait: Duration) -> ApprovalState {
    let unknown = || ApprovalState { id: repeated(id).into_owned(), state: ApprovalStatus::Unknown, expires_at: None };
    let Ok(known) = id.parse::<ApprovalId>() else { return unknown() };
    match stages.approvals.state(principal.session(), known, wait).await {
        Some((state, expires_at)) => ApprovalState { id: known.to_string(), state: state.status(), expires_at },
        None => unknown(),
    }
}
