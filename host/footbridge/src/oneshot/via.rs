//! What goes by way of a harness that runs: calls, by the policy of one of its sessions and recorded there, and lists of
//! what that session sees.
//!
//! Every harness of this user is asked until one has the session; nothing was called by those that have not. A call ends
//! with this process, since its connection does.

use std::{path::Path, time::Duration};

use serde_json::{json, value::RawValue};

use super::{failure::OneShotFailure, running::Chosen};
use crate::control::{
    self,
    client::{ControlClient, ControlClientError},
    wire::{
        CALL_HELD, CallHeld, CallTool, CalledTool, ListSessionNames, ListTools, ListedServer, MAX_REQUEST, Method,
        Refusal, RefusalKind,
    },
};
use crate::{
    report,
    waiting::{self, WaitLine},
};
use footbridge_cli::{output, typed::BadTypedArguments};
use footbridge_proto::approval::ApprovalStatus;

/// How long an answer is waited for where nothing was said: longer than any limit on calls and approvals.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// How long after its time the answer of a call is waited for: the harness says then whether it was sent.
const GRACE: Duration = Duration::from_secs(5);
/// Room in a request for all but the arguments.
const BESIDES: usize = 8 * 1024;

/// An open session of a harness that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfHarness<'a> {
    /// The runtime folder, where harnesses listen for commands.
    pub(crate) runtime: &'a Path,
    pub(crate) session: &'a str,
}

impl OfHarness<'_> {
    /// Asks the harness that has the session.
    pub(crate) fn ask<M: Method>(
        self,
        asked: &M,
        patience: Duration,
        mut hear: impl FnMut(&str, &RawValue),
    ) -> Result<M::Answer, OneShotFailure> {
        let mut sockets = control::all(self.runtime).map_err(anyhow::Error::from)?;
        // Most sessions are the daemon's.
        sockets.sort_by_key(|socket| *socket != control::of_serve(self.runtime));
        let (mut silent, mut others) = (None, Vec::new());
        for socket in sockets {
            let connected = ControlClient::connect(&socket);
            let mut client = match connected {
                Ok(client) => client.with_patience(patience)?,
                // What a harness left that is gone.
                Err(ControlClientError::NotRunning(_)) => continue,
                Err(error) => {
                    silent = Some(error);
                    continue;
                }
            };
            match client.call_hearing(asked, &mut hear) {
                Ok(answer) => return Ok(answer),
                Err(ControlClientError::Refusal(Refusal { kind: RefusalKind::NotFound, .. })) => {
                    // Of an older harness nothing more is known.
                    others.extend(client.call(&ListSessionNames {}).unwrap_or_default());
                }
                Err(ControlClientError::Refusal(Refusal { kind: RefusalKind::Invalid, message })) => {
                    return Err(OneShotFailure::Usage(message));
                }
                Err(error @ (ControlClientError::Io { .. } | ControlClientError::Busy { .. })) => {
                    return Err(OneShotFailure::Unanswered(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        match silent {
            Some(error) => Err(error.into()),
            None => Err(OneShotFailure::no_session(self.session, &others)),
        }
    }
}

/// Calls a tool of a server as this session would. With `json` what is said meanwhile is JSON.
pub(crate) fn call(
    of: OfHarness<'_>,
    server: &str,
    chosen: Chosen,
    timeout: Option<Duration>,
    json: bool,
) -> Result<Box<RawValue>, OneShotFailure> {
    let Chosen { tool, arguments } = chosen;
    let most = (MAX_REQUEST - BESIDES) / 2;
    if arguments.as_ref().is_some_and(|text| text.len() > most) {
        return Err(BadTypedArguments::TooLarge("of a call by --via".to_owned(), most).into());
    }
    let timeout_ms = timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let asked = CallTool {
        session: of.session.to_owned(),
        server: server.to_owned(),
        tool,
        arguments,
        timeout_ms,
        hears_of_waiting: true,
    };
    let patience = timeout.map_or(PATIENCE, |time| time.saturating_add(GRACE));
    let what = format!("Calling {} of {server} by way of {}", asked.tool, of.session);
    let _line = WaitLine::shown(move || what.clone());
    match of.ask(&asked, patience, |method, params| heard(method, params, json)) {
        Ok(CalledTool { result: Some(text), .. }) => {
            RawValue::from_string(text).map_err(|error| OneShotFailure::Harness(error.into()))
        }
        Ok(CalledTool { error: Some(error), timed_out: true, .. }) => {
            Err(OneShotFailure::out_of_time(timeout.unwrap_or_default(), &error))
        }
        Ok(CalledTool { error, .. }) => Err(refused(error)),
        Err(OneShotFailure::Unanswered(ControlClientError::Busy { .. })) if timeout.is_some() => {
            Err(OneShotFailure::TimedOut(timeout.unwrap_or_default()))
        }
        Err(OneShotFailure::Unanswered(error)) => Err(OneShotFailure::CallUnanswered(error)),
        Err(failure) => Err(failure),
    }
}

/// What this session sees: the names of the tools of all servers, or one server's with their definitions. With `refresh`
/// servers are asked once more.
pub(crate) fn tools(
    of: OfHarness<'_>,
    server: Option<&str>,
    refresh: bool,
    patience: Duration,
) -> Result<Vec<ListedServer>, OneShotFailure> {
    let asked = ListTools { session: of.session.to_owned(), server: server.map(str::to_owned), refresh };
    of.ask(&asked, patience, |_, _| {})
}

/// Says that the call is held.
fn heard(method: &str, params: &RawValue, json: bool) {
    let Some(held) = serde_json::from_str::<CallHeld>(params.get()).ok().filter(|_| method == CALL_HELD) else {
        return;
    };
    if json {
        return waiting::aside(|| output::print_error(&format!("{}\n", json!({ "approval": held }))));
    }
    let CallHeld { id, state, expires_at, summary } = held;
    if state != ApprovalStatus::Pending {
        return report::note(&format!("Approval {id} is {state}"));
    }
    let until = expires_at.map_or_else(String::new, |time| format!(", until {time}"));
    report::note(&format!(
        "Held: a person has to allow this call, approval {id}{until}: {summary}. Answer it by \"footbridge approvals watch\" or \
         \"footbridge approvals allow {id}\"; whoever leaves has it cancelled"
    ));
}

fn refused(error: Option<footbridge_proto::rpc::ErrorObject>) -> OneShotFailure {
    match error {
        Some(error) => OneShotFailure::Refused(Box::new(error), None),
        None => OneShotFailure::Harness(anyhow::anyhow!("the harness gave neither a result nor a reason")),
    }
}
