//! A call by way of a harness that runs: by the policy of one of its sessions, and recorded there.
//!
//! Every harness of this user is asked until one has the session; nothing was called by those that have not. The call ends
//! with this process, since its connection does.

use std::{path::Path, time::Duration};

use footbridge_proto::text::Escaped;
use serde_json::value::RawValue;

use super::{failure::OneShotFailure, running::Chosen};
use crate::control::{
    self,
    client::{ControlClient, ControlClientError},
    wire::{CallTool, CalledTool, MAX_REQUEST, Refusal, RefusalKind},
};
use footbridge_cli::typed::BadTypedArguments;

/// How long an answer is waited for where nothing was said: longer than any limit on calls and approvals.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// Room in a request for all but the arguments.
const BESIDES: usize = 8 * 1024;

/// Calls a tool of a server as this session would.
pub(crate) fn call(
    runtime: &Path,
    session: &str,
    server: &str,
    chosen: Chosen,
    timeout: Option<Duration>,
) -> Result<Box<RawValue>, OneShotFailure> {
    let Chosen { tool, arguments } = chosen;
    if arguments.as_ref().is_some_and(|text| text.len() > (MAX_REQUEST - BESIDES) / 2) {
        return Err(BadTypedArguments::TooLarge("of this call".to_owned()).into());
    }
    let asked = CallTool { session: session.to_owned(), server: server.to_owned(), tool, arguments };
    let mut sockets = control::all(runtime).map_err(anyhow::Error::from)?;
    // Most sessions are the daemon's.
    sockets.sort_by_key(|socket| *socket != control::of_serve(runtime));
    let mut silent = None;
    for socket in sockets {
        let connected = ControlClient::connect(&socket);
        let mut client = match connected {
            Ok(client) => client.with_patience(timeout.unwrap_or(PATIENCE))?,
            // What a harness left that is gone.
            Err(ControlClientError::NotRunning(_)) => continue,
            Err(error) => {
                silent = Some(error);
                continue;
            }
        };
        match client.call(&asked) {
            Ok(CalledTool { result: Some(text), .. }) => {
                return RawValue::from_string(text).map_err(|error| OneShotFailure::Harness(error.into()));
            }
            Ok(CalledTool { error, .. }) => return Err(refused(error)),
            Err(ControlClientError::Refusal(Refusal { kind: RefusalKind::NotFound, .. })) => {}
            Err(ControlClientError::Refusal(Refusal { kind: RefusalKind::Invalid, message })) => {
                return Err(OneShotFailure::Usage(message));
            }
            Err(ControlClientError::Busy { .. }) if timeout.is_some() => {
                return Err(OneShotFailure::TimedOut(timeout.unwrap_or_default()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    match silent {
        Some(error) => Err(error.into()),
        None => Err(OneShotFailure::NoSession(Escaped(session).to_string())),
    }
}

fn refused(error: Option<footbridge_proto::rpc::ErrorObject>) -> OneShotFailure {
    match error {
        Some(error) => OneShotFailure::Refused(Box::new(error), None),
        None => OneShotFailure::Harness(anyhow::anyhow!("the harness gave neither a result nor a reason")),
    }
}
