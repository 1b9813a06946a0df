//! What a guest is told of a call that has no result: causes of the stages in the words of all dialects. One table; nothing
//! else words them.
//!
//! A guest's own words are repeated short: nobody needs a megabyte of them back.

use footbridge_calls::{
    cause::{BadArguments, BadPromptArguments, Broken, BudgetOf, Cause, DecidedBy, Failure},
    provider::NoAnswer,
    request::repeated,
    session::OverLimit,
};
use footbridge_core::{gate::Decision, limits::MAX_RESULT_BYTES, names::ServerName, service::TUNNELS};
use footbridge_proto::rpc::ErrorObject;
use serde_json::{Value, json};

/// How long to wait where a moment is enough, milliseconds.
const A_MOMENT: u64 = 1000;

const NOT_REPEATED_BLINDLY: &str = "The call was sent, and may have had its effect; do not repeat it blindly";

/// The error for a refusal, with the record and the approval that it can be asked about by.
#[must_use]
pub fn error_of(refusal: &Failure) -> ErrorObject {
    let mut error = of_cause(&refusal.cause);
    if let Some(approval) = &refusal.approval {
        error = error.with("approvalId", approval.as_str());
        if let Cause::ApprovalRequired { until, grant_time } = &*refusal.cause {
            error.message = format!(
                "This call waits for a person's approval, {approval}, until {until}. Wait for it with \"tool-cli wait \
                 {approval}\"; once it is allowed, make exactly the same call again within {grant_time:?}"
            );
        }
    }
    match &refusal.record {
        Some(record) => error.with("auditId", record.as_str()),
        None => error,
    }
}

/// The same for an operator whose own call it was, without a session: what they can do is theirs to do.
#[must_use]
pub fn error_of_own_call(refusal: &Failure) -> ErrorObject {
    let error = error_of(refusal);
    let Cause::ResultTooLarge { server, limit, setting } = &*refusal.cause else { return error };
    let message = format!(
        "The result of server \"{server}\" is over {limit} bytes (limit {setting}): ask for less at a time, or set more, up to \
         {} MiB: result_bytes in [limits.calls] of footbridge.toml",
        MAX_RESULT_BYTES >> 20
    );
    ErrorObject { message, ..error }
}

fn of_cause(cause: &Cause) -> ErrorObject {
    let error = ErrorObject::new(cause.reason(), message_of(cause));
    match cause {
        Cause::UnknownTool { server, tool, discovered } => error
            .with("server", server.as_str())
            .with("tool", repeated(tool).as_ref())
            .with("discoveredTools", discovered.as_slice()),
        Cause::UnknownPrompt { server, prompt, discovered } => error
            .with("server", server.as_str())
            .with("prompt", repeated(prompt).as_ref())
            .with("discoveredPrompts", discovered.as_slice()),
        Cause::NotAsPinned { server, tool } => error.with("server", server.as_str()).with("tool", tool.as_str()),
        Cause::Arguments { server, name, why } => {
            let found = if let BadArguments::Violations(found) = why { found.as_slice() } else { &[] };
            let found: Vec<Value> = found.iter().map(|one| json!(one)).collect();
            error.with("server", server.as_str()).with("tool", name.as_str()).with("validationErrors", found)
        }
        Cause::InvalidSchema { server, tool, why } => {
            error.with("server", server.as_str()).with("tool", tool.as_str()).with("schemaError", why.as_str())
        }
        Cause::OverLimit(OverLimit::Rate { retry_after_ms }) => error.with("retryAfterMs", *retry_after_ms),
        Cause::OverLimit(OverLimit::Busy) | Cause::BytesHeld | Cause::NoThread | Cause::ServerBusy(_) => {
            error.with("retryAfterMs", A_MOMENT)
        }
        Cause::ApprovalsPending(count) => error.with("retryAfterMs", A_MOMENT).with("pendingApprovals", *count),
        Cause::Policy { by: Some(DecidedBy { policy, rule }), .. } => {
            error.with("policy", policy.as_str()).with("rule", rule.as_deref())
        }
        Cause::Throttled { retry_after, .. } => error
            .with("retryAfterMs", retry_after.map_or(A_MOMENT, |time| time.as_millis().try_into().unwrap_or(u64::MAX))),
        Cause::ApprovalRequired { until, .. } => error.with("expiresAt", until.as_str()),
        Cause::ServerError { code, .. } => error.with("serverCode", *code),
        _ => error,
    }
}

fn message_of(cause: &Cause) -> String {
    match cause {
        Cause::UnknownServer { .. }
        | Cause::UnknownTool { .. }
        | Cause::UnknownPrompt { .. }
        | Cause::UnknownResource { .. }
        | Cause::NotAsPinned { .. } => of_names(cause),
        Cause::Arguments { server, name, why } => bad_arguments(&format!("{server}/{name}"), why),
        Cause::PromptArguments { server, prompt, why } => {
            format!("Invalid arguments for the prompt \"{server}/{prompt}\": {}", bad_prompt_arguments(why))
        }
        Cause::CompletionArguments { server, name } => format!(
            "Invalid arguments for completing \"{server}/{}\": \"argument\" has a \"name\" and a \"value\", and \
             \"context\", if any, has \"arguments\"; all are strings",
            repeated(name)
        ),
        Cause::InvalidSchema { server, tool, why } => {
            format!("Tool \"{tool}\" on server \"{server}\" has an invalid input schema: {why}")
        }
        Cause::OverLimit(OverLimit::Rate { retry_after_ms }) => {
            format!("Too many calls: try again in {retry_after_ms} ms")
        }
        Cause::ApprovalsPending(count) => {
            format!("{count} calls of this session wait for a person already: wait for their answers first")
        }
        Cause::Policy { server, kind, name, decision, by } => {
            let name = repeated(name);
            let what = match *kind {
                "http" => format!("The request \"{name}\" to service \"{server}\""),
                "tunnel" => format!("The tunnel to \"{name}\""),
                _ => format!("This call to {kind} \"{name}\" on server \"{server}\""),
            };
            denied(&what, *decision, by.as_ref())
        }
        Cause::DeniedBefore { seconds } => {
            format!("This call was denied a moment ago, and is refused without asking for another {seconds} s")
        }
        Cause::ApprovalRequired { until, .. } => format!("This call waits for a person's approval until {until}"),
        Cause::BudgetSpent(of) => match limit_of(*of) {
            Some(_) => format!("{}. Nothing was sent. {}", spent(*of), more(*of)),
            None => format!("{} does not cover this call. It was not made; ask the operator", budget(*of)),
        },
        Cause::Unavailable(_)
        | Cause::NotProcessed(_)
        | Cause::NotListed { .. }
        | Cause::ServerError { .. }
        | Cause::ResultTooLarge { .. }
        | Cause::ServerBusy(_)
        | Cause::Throttled { .. }
        | Cause::NoAnswer { .. } => of_server(cause),
        other => of_services(other),
    }
}

/// Of causes that lie with a server.
fn of_server(cause: &Cause) -> String {
    match cause {
        Cause::Unavailable(why) | Cause::NotProcessed(why) => why.clone(),
        Cause::NotListed { server, kind, why } => {
            format!("Server \"{server}\" did not list its {}: {why}", kind.what())
        }
        Cause::ServerError { message, .. } => message.clone(),
        Cause::ResultTooLarge { server, limit, setting } => format!(
            "The result of server \"{server}\" is over {limit} bytes (limit {setting}): ask for less at a time. The operator \
             can give this session more, up to {} MiB, with --limit calls.result_bytes=...",
            MAX_RESULT_BYTES >> 20
        ),
        Cause::ServerBusy(server) => {
            format!("Server \"{server}\" has too many calls at once: try again in a moment")
        }
        Cause::Throttled { server, retry_after } => {
            let when = retry_after.map_or("a moment".to_owned(), |time| format!("{} s", time.as_secs()));
            format!("Server \"{server}\" is asked too often, it says (HTTP 429), and did nothing: try again in {when}")
        }
        Cause::NoAnswer { why: NoAnswer::OverBudget(of), .. } => {
            format!(
                "{}. The request was made, as far as that went, and may have had its effect; its answer is not handed on. {}",
                spent(*of),
                more(*of)
            )
        }
        Cause::NoAnswer { server, why } => format!("{}. {NOT_REPEATED_BLINDLY}", no_answer(server, *why)),
        other => said_alike(other).to_owned(),
    }
}

/// Of causes that are about names.
fn of_names(cause: &Cause) -> String {
    match cause {
        Cause::UnknownServer { server, known } => {
            format!("Server \"{}\" not found. Connected: {}", repeated(server), connected(known))
        }
        Cause::UnknownTool { server, tool, .. } => {
            format!("Tool \"{}\" not found on server \"{server}\"", repeated(tool))
        }
        Cause::UnknownPrompt { server, prompt, .. } => {
            format!("Prompt \"{}\" not found on server \"{server}\"", repeated(prompt))
        }
        Cause::UnknownResource { server, uri } => {
            format!("Resource \"{}\" not found on server \"{server}\"", repeated(uri))
        }
        Cause::NotAsPinned { server, tool } => format!(
            "Tool \"{tool}\" on server \"{server}\" is not what it was: its definition changed, and nobody accepted \
             the change. It cannot be called until the operator does (footbridge servers pins)"
        ),
        other => said_alike(other).to_owned(),
    }
}

/// Of causes that only requests to services have.
fn of_services(cause: &Cause) -> String {
    match cause {
        Cause::UnknownService { service, is_gone: true, .. } => format!(
            "Service \"{}\" is not configured any more: the operator took it out of footbridge.toml. Nothing was sent",
            repeated(service)
        ),
        Cause::UnknownService { service, request, .. } if service == TUNNELS => format!(
            "\"{}\" is asked for as of a proxy, and this session has no tunnels: the operator gives it them with --service \
             tunnels, and names their hosts in [tunnels] of footbridge.toml. Nothing was sent",
            repeated(request)
        ),
        Cause::UnknownService { service, known, .. } => format!(
            "This session has no service \"{}\". It has: {}. The operator gives it one with --service",
            repeated(service),
            connected(known)
        ),
        Cause::BadHead { why } => why.clone(),
        Cause::RequestNotAllowed { service, request, .. } if service.as_str() == TUNNELS => {
            let own = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| request.contains(host));
            let hint = if own {
                ". What is asked of the bridge itself needs no proxy: set NO_PROXY, or leave it out"
            } else {
                ""
            };
            format!(
                "\"{}\" is not among the hosts of [tunnels] in footbridge.toml. Nothing was sent{hint}",
                repeated(request)
            )
        }
        Cause::RequestNotAllowed { service, request, .. } => format!(
            "Service \"{service}\" does not take \"{}\": it is none of the requests that it lets through (its \
             \"requests\" in footbridge.toml, or else those of its preset). Nothing was sent",
            repeated(request)
        ),
        Cause::NoWebSockets { service } => format!(
            "Service \"{service}\" takes no WebSockets: the operator can set websocket = true for it in \
             footbridge.toml. Nothing was sent"
        ),
        Cause::BodyTooLarge { limit, asked: true } => format!(
            "The body is over {limit} bytes, and a person cannot be asked about more (limit services.asked_bytes). \
             Nothing was sent"
        ),
        Cause::BodyTooLarge { limit, .. } => format!("The body is over {limit} bytes (limit services.request_bytes)"),
        other => said_alike(other).to_owned(),
    }
}

/// Of causes whose words hang on nothing.
fn said_alike(cause: &Cause) -> &'static str {
    match cause {
        Cause::ChangedWhileAsked => {
            "The tool, the service or the policy changed since a person was asked, and the call was not made"
        }
        Cause::ChangedOnTheWay => {
            "The tool or the service changed while the call was on its way, and it was not made: look at it again"
        }
        Cause::Internal(broken) => of_broken(*broken),
        Cause::Cancelled => "The call was cancelled before it was sent",
        Cause::SessionReplaced => {
            "The call was not made: its session has ended, or its token or policy was replaced; try again"
        }
        Cause::OverLimit(_) => "Too many calls at once: try again in a moment",
        Cause::BodyBroken => "The request did not arrive whole. Nothing was sent",
        Cause::NoThread => "The machine has no thread or memory for it: try again in a moment",
        Cause::BytesHeld => "Too many bytes are held at once: try again in a moment",
        Cause::DeniedByPerson | Cause::ApprovalExpired | Cause::NoUsableAnswer => of_people(cause),
        Cause::NotRecorded
        | Cause::GrantNotRecorded
        | Cause::KeptBack
        | Cause::OutcomeNotRecorded
        | Cause::AnswersUnread
        | Cause::HarnessFailed => of_the_record(cause),
        // Those with data of their own have their words above. All are named, so that a new one is not said like this.
        Cause::UnknownServer { .. }
        | Cause::UnknownService { .. }
        | Cause::RequestNotAllowed { .. }
        | Cause::NoWebSockets { .. }
        | Cause::BadHead { .. }
        | Cause::BodyTooLarge { .. }
        | Cause::UnknownTool { .. }
        | Cause::UnknownPrompt { .. }
        | Cause::UnknownResource { .. }
        | Cause::NotAsPinned { .. }
        | Cause::Unavailable(_)
        | Cause::NotProcessed(_)
        | Cause::NotListed { .. }
        | Cause::Arguments { .. }
        | Cause::PromptArguments { .. }
        | Cause::CompletionArguments { .. }
        | Cause::InvalidSchema { .. }
        | Cause::ApprovalsPending(_)
        | Cause::Policy { .. }
        | Cause::DeniedBefore { .. }
        | Cause::ApprovalRequired { .. }
        | Cause::BudgetSpent(_)
        | Cause::ServerError { .. }
        | Cause::ResultTooLarge { .. }
        | Cause::ServerBusy(_)
        | Cause::Throttled { .. }
        | Cause::NoAnswer { .. } => "The result could not be handed on",
    }
}

/// Of causes that lie with whoever was asked.
fn of_people(cause: &Cause) -> &'static str {
    match cause {
        Cause::DeniedByPerson => "This call was denied by whoever was asked: do not repeat it",
        Cause::NoUsableAnswer => {
            "Whoever was to be asked about this call gave no usable answer, so it was not made: tell the operator before it \
             is repeated"
        }
        _ => "Nobody allowed this call in time, so it was not made: ask the operator before it is repeated",
    }
}

fn of_broken(broken: Broken) -> &'static str {
    match broken {
        Broken::Reading => "The arguments could not be checked",
        Broken::LookingUp => "It could not be looked up",
        Broken::Writing => "The arguments could not be written",
        Broken::Randomness => "The system has no random bytes",
        Broken::Result => "The result could not be handed on",
    }
}

/// Of causes that lie in the record, the budget or the harness itself.
fn of_the_record(cause: &Cause) -> &'static str {
    match cause {
        Cause::NotRecorded => "The call was not made: it cannot be recorded. Ask the operator; it can be repeated",
        Cause::GrantNotRecorded => {
            "The call was not made: the use of its approval cannot be recorded. Ask the operator"
        }
        Cause::KeptBack => {
            "The call was made, but its result is more than is left of this session's budget, and is kept back. Do \
             not repeat it; ask for less, or ask the operator"
        }
        Cause::OutcomeNotRecorded => "The call ran, but could not be recorded; do not repeat it",
        Cause::AnswersUnread => {
            "The call was made, but there is no room for its answer: answers of this session are unread. Do not \
             repeat it blindly"
        }
        _ => "Something failed in the harness; the call may have had its effect, do not repeat it blindly",
    }
}

fn connected(known: &[ServerName]) -> String {
    let names: Vec<&str> = known.iter().map(ServerName::as_str).collect();
    if names.is_empty() { "(none)".to_owned() } else { names.join(", ") }
}

fn bad_arguments(label: &str, why: &BadArguments) -> String {
    let invalid = format!("Invalid arguments for \"{label}\"");
    match why {
        BadArguments::NotAnObject => format!("{invalid}: an object is required"),
        BadArguments::TooDeep(depth) => format!("{invalid}: an object is required, nested at most {depth} deep"),
        BadArguments::Inexact(number) => format!("{invalid}: the number {number} would not keep its value"),
        BadArguments::Violations(found) => {
            let unfit = format!("Arguments do not match the input schema for \"{label}\"");
            // All that some clients show.
            match found.as_slice() {
                [] => unfit,
                [only] => format!("{unfit}: {only}"),
                [first, others @ ..] => format!("{unfit}: {first} (and {} more)", others.len()),
            }
        }
        BadArguments::TooCostly => {
            format!("Checking these arguments for \"{label}\" against its schema would cost too much")
        }
        BadArguments::TooLarge => {
            format!(
                "Arguments for \"{label}\" are over the limit: as values they take too much memory; send fewer at a time"
            )
        }
    }
}

fn bad_prompt_arguments(why: &BadPromptArguments) -> String {
    match why {
        BadPromptArguments::NotStrings => "an object whose values are strings is required".to_owned(),
        BadPromptArguments::Unknown { name, takes } => {
            let takes = if takes.is_empty() { "no arguments".to_owned() } else { listed(takes) };
            format!("\"{}\" is none of them, it takes {takes}", repeated(name))
        }
        BadPromptArguments::Missing(names) => format!("it needs {}", listed(names)),
    }
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{}\"", repeated(name))).collect::<Vec<_>>().join(", ")
}

fn denied(what: &str, decision: Decision, by: Option<&DecidedBy>) -> String {
    let (why, then) = match decision {
        Decision::Ask => (
            "needs a person's approval, and nobody can be asked here",
            "ask the operator to run this where somebody can answer, or under a policy that allows it",
        ),
        Decision::Allow | Decision::Deny => ("is denied by policy", "ask the operator if it is needed"),
    };
    let rule = match by {
        Some(DecidedBy { policy, rule: Some(rule) }) => format!(" (rule \"{rule}\" of policy \"{policy}\")"),
        Some(DecidedBy { policy, rule: None }) => format!(" (no rule of policy \"{policy}\" matches)"),
        None => String::new(),
    };
    format!("{what} {why}. It was not made; {then}{rule}")
}

/// What a budget is of.
fn budget(of: BudgetOf) -> String {
    let what = match of {
        BudgetOf::Arguments => "for bytes of arguments",
        BudgetOf::Results => "for bytes of results",
        BudgetOf::Requests => "of requests to services",
        BudgetOf::Tokens => "of tokens",
        BudgetOf::ServiceBytes => "of bytes of services",
        BudgetOf::TunnelBytes => "of bytes through tunnels",
    };
    format!("This session's budget {what}")
}

/// The limit that a budget is; policies have the others.
fn limit_of(of: BudgetOf) -> Option<&'static str> {
    Some(of.word()).filter(|word| word.starts_with("budget."))
}

/// That a budget of services does not reach any further.
fn spent(of: BudgetOf) -> String {
    format!(
        "{} is spent, or what is left of it does not cover this (limit {})",
        budget(of),
        limit_of(of).unwrap_or("-")
    )
}

fn more(of: BudgetOf) -> String {
    let name = limit_of(of).unwrap_or("-");
    format!("Do not repeat it: ask the operator to raise it (footbridge session limit ... {name}=...)")
}

/// What ends a stream in the middle, as a budget is spent.
pub(crate) fn ended_by_budget(of: BudgetOf) -> String {
    format!("{} is spent (limit {}), so the answer ends here. {}", budget(of), limit_of(of).unwrap_or("-"), more(of))
}

fn no_answer(server: &ServerName, why: NoAnswer) -> String {
    match why {
        NoAnswer::ServerGone => format!("Server \"{server}\" ended before it answered"),
        NoAnswer::Timeout => {
            format!("Server \"{server}\" did not answer in time (limit calls.total_time; the operator can raise it)")
        }
        NoAnswer::Silent => format!(
            "Server \"{server}\" did not answer in time, and told no progress (limit calls.idle_time; the operator can \
             raise it)"
        ),
        NoAnswer::Cancelled => "The call was cancelled after it was sent".to_owned(),
        NoAnswer::Unusable => format!("The answer of server \"{server}\" cannot be used"),
        NoAnswer::TooMuchSent => format!("The body that was sent to \"{server}\" is over its limit, and was cut"),
        NoAnswer::OverBudget(of) => spent(of),
        NoAnswer::BodyBroken => format!("The body for \"{server}\" did not arrive whole"),
        NoAnswer::Busy => format!("The answer of server \"{server}\" did not fit into memory set aside for answers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_took_too_long_names_the_limit_that_ended_it() {
        let server: ServerName = "s".parse().unwrap();
        for (why, limit) in [(NoAnswer::Timeout, "calls.total_time"), (NoAnswer::Silent, "calls.idle_time")] {
            let said = no_answer(&server, why);
            assert!(said.contains("did not answer in time") && said.contains(limit), "{said}");
        }
    }

    #[test]
    fn long_words_of_a_guest_are_repeated_short() {
        let server: ServerName = "s".parse().unwrap();
        let long = "é".repeat(100_000);
        for cause in [
            Cause::UnknownServer { server: long.clone(), known: vec![server.clone()] },
            Cause::UnknownTool { server: server.clone(), tool: long.clone(), discovered: Vec::new() },
            Cause::UnknownPrompt { server: server.clone(), prompt: long.clone(), discovered: Vec::new() },
            Cause::UnknownResource { server: server.clone(), uri: long.clone() },
            Cause::CompletionArguments { server, name: long },
        ] {
            let error = serde_json::to_string(&error_of(&cause.into())).unwrap();
            assert!(error.len() < 2_000, "{error}");
        }
    }

    #[test]
    fn what_waits_for_a_person_says_what_to_do_next() {
        let until = "2026-11-22T13:43:52Z".to_owned();
        let cause = Cause::ApprovalRequired { until, grant_time: std::time::Duration::from_secs(60) };
        let approval = Some("ap-0123456789abcdef".to_owned());
        let error = error_of(&Failure { cause: Box::new(cause), approval, record: Some("r".to_owned()) });
        assert_eq!(
            error.message,
            "This call waits for a person's approval, ap-0123456789abcdef, until 2026-11-22T13:43:52Z. Wait for it with \
             \"tool-cli wait ap-0123456789abcdef\"; once it is allowed, make exactly the same call again within 60s"
        );
        let data = serde_json::to_string(&error.data).unwrap();
        let at = |name: &str| data.find(name).unwrap();
        assert!(at("expiresAt") < at("approvalId") && at("approvalId") < at("auditId"), "{data}");
    }
}
