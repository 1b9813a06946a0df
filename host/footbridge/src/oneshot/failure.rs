//! Every way a one-shot call or list can fail, its exit status and what programs read of it.

use std::time::Duration;

use footbridge_proto::{
    exit::ExitCode,
    rpc::{ErrorObject, Reason},
    text::{Escaped, EscapedLines},
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{
    config::{ConfigError, folders::FoldersError},
    control::client::ControlClientError,
    log::BadLogSetting,
    run::HARNESS_FAILED,
};
use footbridge_cli::{
    output::NotWritten,
    result::NotPrinted,
    suggest::{instead, sentence},
    typed::{BadTimeout, BadTypedArguments},
};

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OneShotFailure {
    /// What was typed cannot be meant, and what can.
    #[error("{0}")]
    Usage(String),
    /// Typed arguments are none.
    #[error(transparent)]
    Typed(#[from] BadTypedArguments),
    /// A time is none.
    #[error(transparent)]
    Timeout(#[from] BadTimeout),
    /// The stages say no, or the call failed; and what only the operator may know of it.
    #[error("{}", .0.message)]
    Refused(Box<ErrorObject>, Option<String>),
    /// Nobody waits longer.
    #[error("there was no answer within {0:?}; the call was cancelled, and may have had its effect")]
    TimedOut(Duration),
    /// Nobody waits longer, and the server has not heard of it.
    #[error("there was no answer within {0:?}; the call was cancelled before it was sent. Call again with more time")]
    NotSentInTime(Duration),
    /// Nobody waits longer, and the server was not even ready.
    #[error("the server was not ready within {0:?}, and nothing was sent. Call again with more time")]
    NotReadyInTime(Duration),
    /// A signal said to end, before anything was sent.
    #[error("ended by {0}; nothing was sent")]
    Interrupted(Signal),
    /// A signal said to end, and the server may have the call.
    #[error("ended by {0}; the call was cancelled, and may have had its effect")]
    InterruptedCall(Signal),
    /// The running harness cannot be asked.
    #[error(transparent)]
    Via(#[from] ControlClientError),
    /// The running harness was asked, and nothing came back.
    #[error(transparent)]
    Unanswered(ControlClientError),
    /// The same of a call.
    #[error("{0}. The call may have had its effect: see \"footbridge audit tail\" before you make it again")]
    CallUnanswered(ControlClientError),
    /// No harness that runs has the session, and what there is instead.
    #[error("no harness of this user has an open session {0}")]
    NoSession(String),
    /// The result cannot be shown.
    #[error(transparent)]
    Printed(#[from] NotPrinted),
    /// The tool reported an error, which has been printed.
    #[error("the tool reported an error")]
    Tool,
    /// It could not even begin.
    #[error(transparent)]
    Harness(#[from] anyhow::Error),
}

impl From<NotWritten> for OneShotFailure {
    fn from(error: NotWritten) -> Self {
        Self::Printed(error.into())
    }
}

impl OneShotFailure {
    /// The status, as `tool-cli --exit-codes` has it; 125 where the harness itself failed.
    pub(crate) fn status(&self) -> i32 {
        let code = match self {
            Self::Typed(BadTypedArguments::TooLarge(..)) => ExitCode::OverLimit,
            Self::Usage(_) | Self::Typed(_) | Self::Timeout(_) => ExitCode::Usage,
            Self::Refused(error, _) => ExitCode::from_error(error.code, error.reason()),
            Self::TimedOut(_) | Self::NotSentInTime(_) | Self::NotReadyInTime(_) => ExitCode::TimedOut,
            Self::Interrupted(signal) | Self::InterruptedCall(signal) => return 128 + *signal as i32,
            Self::Via(_) | Self::Unanswered(_) | Self::NoSession(_) => ExitCode::Unreachable,
            Self::CallUnanswered(_) => ExitCode::OutcomeUnknown,
            Self::Tool => ExitCode::ToolError,
            // It says nothing of the tool.
            Self::Printed(_) => return HARNESS_FAILED,
            Self::Harness(error)
                if error.is::<ConfigError>() || error.is::<FoldersError>() || error.is::<BadLogSetting>() =>
            {
                ExitCode::Usage
            }
            Self::Harness(_) => return HARNESS_FAILED,
        };
        code as i32
    }

    /// Why a call has no answer that was cancelled when its time was up, by what was said of it then.
    pub(crate) fn out_of_time(time: Duration, error: &ErrorObject) -> Self {
        let approval = error.data.as_ref().and_then(|data| data["approvalId"].as_str());
        match (error.reason(), approval) {
            (Some(Reason::Cancelled), Some(id)) => {
                let message = format!(
                    "nobody answered approval {id} within {time:?}: the call was cancelled, and nothing was sent. Call again \
                     with more time, and answer meanwhile: footbridge approvals watch"
                );
                let held = ErrorObject::new(Reason::ApprovalExpired, message).with("approvalId", id);
                Self::Refused(Box::new(held), None)
            }
            (Some(Reason::Cancelled), None) => Self::NotSentInTime(time),
            _ => Self::TimedOut(time),
        }
    }

    /// That no harness that runs has this session, but these.
    pub(crate) fn no_session(session: &str, others: &[String]) -> Self {
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let otherwise = "none that runs here has any";
        let instead = sentence(&instead(session, &others, otherwise));
        Self::NoSession(format!(
            "\"{}\"{instead} \"footbridge session list\" shows those of the daemon, and the one of a run is called run- and \
             its process id",
            Escaped(session)
        ))
    }

    /// Whether it has been said already, or nobody wants to hear it.
    pub(crate) fn is_said(&self) -> bool {
        match self {
            Self::Tool => true,
            Self::Printed(NotPrinted::Written(error)) => error.is_left(),
            _ => false,
        }
    }

    /// What is wrong; of a tool that there is none of, with those that there are.
    pub(crate) fn with_tools(&self) -> String {
        let data = if let Self::Refused(error, _) = self { error.data.as_ref() } else { None };
        let known = data.and_then(|data| data["discoveredTools"].as_array());
        match (known, data.and_then(|data| data["tool"].as_str())) {
            (Some(known), Some(tool)) => {
                let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
                format!("{self}{}", instead(tool, &known, "it has none"))
            }
            _ => self.to_string(),
        }
    }

    /// What a person reads.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("Error: {}\n", EscapedLines(&self.with_tools()));
        match self {
            Self::Refused(error, because) => {
                let found = error.data.as_ref().and_then(|data| data["validationErrors"].as_array());
                let lines = found.into_iter().flatten().filter_map(Value::as_str);
                lines.for_each(|line| text.push_str(&format!("  {}\n", Escaped(line))));
                if let Some(because) = because {
                    text.push_str(&format!("  because: {}\n", Escaped(because)));
                }
                if error.reason() == Some(Reason::DefinitionChanged) {
                    text.push_str("  see what changed: footbridge servers pins diff\n");
                }
            }
            Self::Harness(error) => {
                for cause in error.chain().skip(1).map(ToString::to_string) {
                    let cause = EscapedLines(&cause).to_string();
                    if !text.contains(&cause) {
                        text.push_str(&format!("  because: {cause}\n"));
                    }
                }
            }
            _ => {}
        }
        text
    }

    /// What a program reads, as `tool-cli --json` has it.
    pub(crate) fn to_json(&self) -> Value {
        let refused = if let Self::Refused(error, because) = self { Some((error, because)) } else { None };
        json!({
            "code": refused.map(|(error, _)| error.code),
            "message": self.to_string(),
            "data": refused.and_then(|(error, _)| error.data.clone()),
            "because": refused.and_then(|(_, because)| because.clone()),
            "httpStatus": null,
            "exitCode": self.status(),
        })
    }
}
