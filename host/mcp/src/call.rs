//! One request of ours: sent once, watched until there is an answer or a reason why there is none.
//!
//! Ends: an answer; the idle time without a sign of life; the total time; cancelled by the caller; the server gone. In
//! all but the first the request is withdrawn if it has not left, which is certain, and otherwise the server is told
//! with `notifications/cancelled` and the outcome is unknown. Nothing is ever sent again, but with the input that its
//! server asked for in place of a result, see `input_required`.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientRequest,
        CompleteRequest, GetExtensions, GetPromptRequest, GetPromptRequestParams, ReadResourceRequest,
        ReadResourceRequestParams, RequestId,
    },
    service::{Peer, PeerRequestOptions, RequestHandle},
};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Events, NoAnswer, NotSent, Outcome, Outgoing, OutgoingRequest, RawResult,
    input_required::{BadInput, Input, InputRequired, MAX_ROUNDS},
    live::Live,
    pending_request::{Answer, PendingRequest},
};
use footbridge_core::limits::CallLimits;
use footbridge_core::names::ServerName;

/// How long a caller waits until the server was told that its request is cancelled; the telling goes on without it.
const TELLING: Duration = Duration::from_millis(200);

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Without a sign of life.
    pub(super) idle: Duration,
    /// In all.
    pub(super) total: Duration,
}

/// How a request ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// With something from the server or its connection.
    Answered(Answer),
    /// Without; whether it had left.
    Unanswered { left: bool, why: NoAnswer },
}

/// Sends a call of a guest and turns what became of it into an outcome.
pub(super) async fn carry_out(
    live: &Live,
    outgoing: Outgoing,
    limits: &CallLimits,
    cancel: &CancellationToken,
    events: Events,
) -> Outcome {
    let times = Times { idle: limits.idle_time, total: limits.total_time };
    let elicitor = outgoing.elicitor().cloned();
    if matches!(outgoing.request(), OutgoingRequest::Complete { .. }) && !completes(live) {
        return Outcome::not_offered(&live.name);
    }
    // What the call itself says is no secret to whoever made it, and its answer must not tell a right guess.
    let redactor = live.interceptor.redactor().sparing(outgoing.request().texts());
    let mut request = outgoing.into_parts().1;
    // Where nobody can be asked, a server of this kind was told so.
    let may_ask = live.is_stateless() && live.interceptor.takes_questions();
    let (mut input, mut left) = (Input::default(), times.total);
    for round in 0..MAX_ROUNDS {
        let Ok((wire, arguments)) = to_wire(&mut request, live.is_stateless(), input) else {
            let why = format!("The call for server \"{}\" could not be written; nothing was sent", live.name);
            return Outcome::NotSent(NotSent::Unavailable(why));
        };
        let pending = PendingRequest::of_call(events.clone(), arguments, elicitor.clone(), Some(redactor.clone()));
        let since = Instant::now();
        let ended = ask(live, wire, pending, Times { total: left, ..times }, cancel).await;
        left = left.saturating_sub(since.elapsed());
        let asked = match &ended {
            Ended::Answered(Answer::Result(text, _)) => InputRequired::of(text, live.interceptor.redactor()),
            _ => None,
        };
        let Some(asked) = asked else {
            let outcome = judge(ended, &live.name, limits.result_bytes);
            return if round == 0 { outcome } else { later(outcome) };
        };
        let answering = async { asked?.answered(elicitor.as_deref().filter(|_| may_ask)).await };
        input = tokio::select! {
            answered = answering => match answered {
                Ok(input) => input,
                Err(why) => return in_vain(&live.name, why),
            },
            () = cancel.cancelled() => return Outcome::Unknown(NoAnswer::Cancelled),
            () = live.gone.cancelled() => return Outcome::Unknown(NoAnswer::ServerGone),
        };
    }
    in_vain(&live.name, BadInput::TooOften)
}

/// The server wants what it does not get.
fn in_vain(server: &ServerName, why: BadInput) -> Outcome {
    let message = format!(
        "Server \"{server}\" asked for more input before it could answer, {why}. Call the tool with complete arguments, or \
         ask the operator"
    );
    Outcome::ServerError { code: -32603, message }
}

/// Whether the server says that it completes: no other is asked to (MCP 2025-11-25, completion, capabilities).
fn completes(live: &Live) -> bool {
    live.peer.peer_info().is_some_and(|info| info.capabilities.completions.is_some())
}

/// Sends one request and waits for its end.
pub(super) async fn ask(
    live: &Live,
    mut request: ClientRequest,
    pending: PendingRequest,
    times: Times,
    cancel: &CancellationToken,
) -> Ended {
    request.extensions_mut().insert(pending.clone());
    let _forgotten = Forgotten { live, pending: &pending };
    // A question of the server to a person ends with it.
    let _over = pending.over().clone().drop_guard();
    let pause = pending.pause();
    let total = pause.pass(times.total);
    tokio::pin!(total);
    let sent = tokio::select! {
        sent = live.peer.send_request_with_option(request, PeerRequestOptions::no_options()) => sent,
        () = cancel.cancelled() => return unanswered(&pending, NoAnswer::Cancelled),
        () = live.gone.cancelled() => return unanswered(&pending, NoAnswer::ServerGone),
        () = &mut total => return unanswered(&pending, NoAnswer::Timeout),
    };
    let Ok(mut handle) = sent else {
        return pending.take().map_or_else(|| unanswered(&pending, NoAnswer::ServerGone), Ended::Answered);
    };
    let why = watch(live, &mut handle, &pending, (times.idle, &mut total), cancel).await;
    if let Some(answer) = pending.take() {
        return Ended::Answered(answer);
    }
    let ended = unanswered(&pending, why);
    if let Ended::Unanswered { left: true, why: NoAnswer::Timeout | NoAnswer::Cancelled } = ended {
        tell(&live.peer, handle.id, why).await;
    }
    ended
}

/// Has the connection forget a request, however the wait for it ends: nothing of it is kept for an answer that may never
/// come.
struct Forgotten<'a> {
    live: &'a Live,
    pending: &'a PendingRequest,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        // One that has not left will not, so that it cannot be noted after this.
        self.pending.withdraw();
        self.live.interceptor.forget_pending(self.pending);
    }
}

/// Waits until the library is done with the request, or something ends the waiting.
async fn watch(
    live: &Live,
    handle: &mut RequestHandle<RoleClient>,
    pending: &PendingRequest,
    (idle_time, mut total): (Duration, impl Future<Output = ()> + Unpin),
    cancel: &CancellationToken,
) -> NoAnswer {
    let pause = pending.pause();
    let idle = pause.pass(idle_time);
    tokio::pin!(idle);
    loop {
        tokio::select! {
            biased;
            _ = &mut handle.rx => return NoAnswer::ServerGone,
            () = cancel.cancelled() => return NoAnswer::Cancelled,
            () = live.gone.cancelled() => return NoAnswer::ServerGone,
            () = &mut total => return NoAnswer::Timeout,
            () = pending.sign_of_life() => idle.set(pause.pass(idle_time)),
            () = &mut idle => return NoAnswer::Timeout,
        }
    }
}

fn unanswered(pending: &PendingRequest, why: NoAnswer) -> Ended {
    Ended::Unanswered { left: !pending.withdraw(), why }
}

async fn tell(peer: &Peer<RoleClient>, id: RequestId, why: NoAnswer) {
    let reason = if why == NoAnswer::Cancelled { "the caller left" } else { "it took too long" };
    let param = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
    let notification = CancelledNotification::new(param);
    let _told = tokio::time::timeout(TELLING, peer.send_notification(notification.into())).await;
}

/// The library's own form of a request, and the arguments that its transport writes; they are kept only where it may
/// go `again`. The library has to know them itself only where it repeats some in headers. It fails only if they are no
/// object, which resolving rules out.
fn to_wire(
    request: &mut OutgoingRequest,
    again: bool,
    Input { responses, state }: Input,
) -> serde_json::Result<(ClientRequest, Option<Box<RawValue>>)> {
    let given = |arguments: &mut Box<RawValue>| if again { arguments.clone() } else { std::mem::take(arguments) };
    Ok(match request {
        OutgoingRequest::CallTool { name, arguments, in_headers, .. } => {
            let known = if *in_headers { serde_json::from_str(arguments.get())? } else { serde_json::Map::new() };
            let mut params = CallToolRequestParams::new(name.clone()).with_arguments(known);
            (params.input_responses, params.request_state) = (responses, state);
            (ClientRequest::CallToolRequest(CallToolRequest::new(params)), Some(given(arguments)))
        }
        OutgoingRequest::ReadResource { uri } => {
            let mut params = ReadResourceRequestParams::new(uri.clone());
            (params.input_responses, params.request_state) = (responses, state);
            (ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params)), None)
        }
        OutgoingRequest::GetPrompt { name, arguments } => {
            let mut params = GetPromptRequestParams::new(name.clone());
            (params.input_responses, params.request_state) = (responses, state);
            (ClientRequest::GetPromptRequest(GetPromptRequest::new(params)), Some(given(arguments)))
        }
        OutgoingRequest::Complete { params, .. } => {
            let params = serde_json::from_str(params.get())?;
            (ClientRequest::CompleteRequest(CompleteRequest::new(params)), None)
        }
        OutgoingRequest::Service(_) => return Err(serde::de::Error::custom("a request to a service is none of MCP")),
    })
}

fn judge(ended: Ended, server: &ServerName, limit: usize) -> Outcome {
    match ended {
        // The stage in front checks its size and that it is an object.
        Ended::Answered(Answer::Result(text, held)) => Outcome::Result(RawResult { text, held }),
        Ended::Answered(Answer::Error { code, message }) => Outcome::ServerError { code, message },
        Ended::Answered(Answer::TooLarge) => Outcome::too_large(limit),
        Ended::Answered(Answer::Unusable) => Outcome::Unknown(NoAnswer::Unusable),
        Ended::Answered(Answer::Busy) => Outcome::Unknown(NoAnswer::Busy),
        Ended::Answered(Answer::Lost) => Outcome::Unknown(NoAnswer::ServerGone),
        Ended::Answered(Answer::Refused(why)) => {
            Outcome::NotSent(NotSent::Unavailable(format!("Server \"{server}\" {why}")))
        }
        Ended::Unanswered { left: true, why } => Outcome::Unknown(why),
        Ended::Unanswered { left: false, why: NoAnswer::Cancelled } => Outcome::NotSent(NotSent::Cancelled),
        Ended::Unanswered { left: false, .. } => Outcome::NotSent(NotSent::Unavailable(format!(
            "Server \"{server}\" does not take requests at the moment. Nothing was sent; try again"
        ))),
    }
}

/// What became of a request that the server had asked more input for before: it may have done some of it then.
fn later(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::NotSent(NotSent::Cancelled) => Outcome::Unknown(NoAnswer::Cancelled),
        Outcome::NotSent(_) => Outcome::Unknown(NoAnswer::ServerGone),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_left_is_told_apart_from_what_may_have_arrived() {
        let judged = |left, why| judge(Ended::Unanswered { left, why }, &"x".parse().unwrap(), 100);
        assert!(matches!(judged(true, NoAnswer::Cancelled), Outcome::Unknown(NoAnswer::Cancelled)));
        assert!(matches!(judged(false, NoAnswer::Cancelled), Outcome::NotSent(NotSent::Cancelled)));
        assert!(matches!(judged(false, NoAnswer::ServerGone), Outcome::NotSent(NotSent::Unavailable(_))));
    }
}
