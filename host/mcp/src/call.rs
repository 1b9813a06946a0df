//! A call of a guest: what is sent for it, and what became of it.
//!
//! It is sent once, see `ask`, but with the input that its server asked for in place of a result, see `input_required`.
//! Where it is answered with a task it goes on, see `tasks`.

use footbridge_proto::rpc::ErrorCode;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompleteRequest, GetMeta as _, GetPromptRequest,
    GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Events, NoAnswer, NotSent, Outcome, Outgoing, OutgoingRequest, RawResult,
    ask::{Ended, Forgotten, Times, sent},
    input_required::{BadInput, Input, InputRequired, MAX_ROUNDS},
    live::Live,
    pending_request::{Answer, Beside, PendingRequest},
    tasks::Task,
};
use footbridge_core::limits::CallLimits;
use footbridge_core::names::ServerName;

/// What a server without a handshake is to log of a request, of which it logs nothing otherwise.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

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
    let redactor = live.interceptor.redactor().sparing(outgoing.texts());
    let (meta, session) = (outgoing.meta().cloned(), outgoing.session());
    let mut request = outgoing.into_parts().1;
    let is_task = matches!(request, OutgoingRequest::CallTool { as_task: true, .. }) && live.interceptor.tasks().calls;
    // Where nobody can be asked, a server of this kind was told so.
    let may_ask = live.is_stateless() && live.interceptor.takes_questions();
    let (mut input, mut left) = (Input::default(), times.total);
    for round in 0..MAX_ROUNDS {
        let Ok((mut wire, arguments)) = to_wire(&mut request, live.is_stateless(), input) else {
            let why = format!("The call for server \"{}\" could not be written; nothing was sent", live.name);
            return Outcome::NotSent(NotSent::Unavailable(why));
        };
        if let Some(level) = events.logs().filter(|_| live.is_stateless()) {
            wire.get_meta_mut().insert(LOG_LEVEL.to_owned(), level.as_str().into());
        }
        let beside = Beside { arguments, meta: meta.clone(), task: is_task.then_some(times.total), session };
        let pending = PendingRequest::of_call(events.clone(), beside, elicitor.clone(), Some(redactor.clone()));
        let since = Instant::now();
        let ended = ask_call(live, wire, pending, Times { total: left, ..times }, cancel).await;
        left = left.saturating_sub(since.elapsed());
        let Some(asked) = input_asked_for(live, &ended) else {
            let outcome = judge(ended, &live.name, limits.result_bytes);
            return if round == 0 { outcome } else { later(outcome) };
        };
        let answering = async { asked?.answered(elicitor.as_deref().filter(|_| may_ask)).await };
        // It is rare, and has its own place for that: most calls need none for it.
        let answered = Box::pin(async {
            tokio::select! {
                answered = answering => Ok(answered),
                () = cancel.cancelled() => Err(NoAnswer::Cancelled),
                () = live.gone.cancelled() => Err(NoAnswer::ServerGone),
            }
        });
        input = match answered.await {
            Ok(Ok(input)) => input,
            Ok(Err(why)) => return in_vain(&live.name, why),
            Err(why) => return Outcome::Unknown(why),
        };
    }
    in_vain(&live.name, BadInput::TooOften)
}

/// What the server asks for in place of a result. In revisions before 2026-07-28 it asks by requests of its own, and what
/// says so in a result is none to anybody.
fn input_asked_for(live: &Live, ended: &Ended) -> Option<Result<InputRequired, BadInput>> {
    let Ended::Answered(Answer::Result(text, _)) = ended else { return None };
    let asked = InputRequired::of(text, live.interceptor.redactor())?;
    Some(if live.is_stateless() { asked } else { Err(BadInput::OtherRevision) })
}

/// The server wants what it does not get.
fn in_vain(server: &ServerName, why: BadInput) -> Outcome {
    let message = format!(
        "Server \"{server}\" asked for more input before it could answer, {why}. Call the tool with complete arguments, or \
         ask the operator"
    );
    Outcome::ServerError { code: ErrorCode::Internal.number(), message }
}

/// Whether the server says that it completes: no other is asked to (MCP 2025-11-25, completion, capabilities).
fn completes(live: &Live) -> bool {
    live.peer.peer_info().is_some_and(|info| info.capabilities.completions.is_some())
}

/// Sends a call and waits for its end. One that its server runs as a task ends with that.
async fn ask_call(
    live: &Live,
    request: ClientRequest,
    pending: PendingRequest,
    times: Times,
    cancel: &CancellationToken,
) -> Ended {
    let _forgotten = Forgotten { live, pending: &pending };
    let since = Instant::now();
    let ended = sent(live, request, &pending, times, cancel).await;
    let task = match &ended {
        Ended::Answered(Answer::Result(text, _)) if pending.may_be_task() => {
            Task::begun(live, &pending, text, times.idle)
        }
        _ => None,
    };
    let ended = match task {
        Some(Ok(task)) => {
            // Its part of the budget is not the task's for as long as that runs.
            drop(ended);
            of_task(Box::pin(task.ended(times.total.saturating_sub(since.elapsed()), cancel)).await)
        }
        Some(Err(ended)) => ended,
        None => ended,
    };
    if matches!(ended, Ended::Answered(_)) {
        live.interceptor.task_ended(&pending);
    }
    ended
}

/// The end of a call that runs as a task. Where a request about that is not taken, it is not known what became of the call.
fn of_task(ended: Ended) -> Ended {
    match ended {
        Ended::Answered(Answer::Refused(_) | Answer::Declined(_) | Answer::Throttled(_)) => {
            Ended::Unanswered { left: true, why: NoAnswer::ServerGone }
        }
        Ended::Unanswered { why, .. } => Ended::Unanswered { left: true, why },
        ended @ Ended::Answered(_) => ended,
    }
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
        Ended::Answered(Answer::Declined(why)) => Outcome::Declined(format!("Server \"{server}\" {why}")),
        Ended::Answered(Answer::Throttled(retry_after)) => Outcome::Throttled(retry_after),
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
        Outcome::NotSent(_) | Outcome::Declined(_) | Outcome::Throttled(_) => Outcome::Unknown(NoAnswer::ServerGone),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_task_that_is_not_heard_of_any_more_nothing_is_known() {
        for ended in [
            Ended::Answered(Answer::Refused("cannot be reached")),
            Ended::Answered(Answer::Declined("did nothing")),
            Ended::Unanswered { left: false, why: NoAnswer::ServerGone },
        ] {
            let outcome = judge(of_task(ended), &"x".parse().unwrap(), 100);
            assert!(matches!(outcome, Outcome::Unknown(NoAnswer::ServerGone)), "{outcome:?}");
        }
    }

    #[test]
    fn what_never_left_is_told_apart_from_what_may_have_arrived() {
        let judged = |left, why| judge(Ended::Unanswered { left, why }, &"x".parse().unwrap(), 100);
        assert!(matches!(judged(true, NoAnswer::Cancelled), Outcome::Unknown(NoAnswer::Cancelled)));
        assert!(matches!(judged(false, NoAnswer::Cancelled), Outcome::NotSent(NotSent::Cancelled)));
        assert!(matches!(judged(false, NoAnswer::ServerGone), Outcome::NotSent(NotSent::Unavailable(_))));
    }
}
