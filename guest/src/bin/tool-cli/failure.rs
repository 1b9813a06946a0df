//! Every way a run can fail, its message and its exit code; the one place that prints errors.

use footbridge_cli::{output::NotWritten, result::NotPrinted, typed::BadTypedArguments};
use footbridge_guest::{ClientError, SettingsError};
use footbridge_proto::{
    exit::ExitCode,
    rpc::{ErrorCode, ErrorObject},
    text::Escaped,
};
use serde_json::{Value, json};

use crate::args::ArgsError;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Args(#[from] ArgsError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Arguments(#[from] BadTypedArguments),
    #[error("{source}")]
    Client { source: ClientError, call: bool },
    #[error(transparent)]
    Printed(#[from] NotPrinted),
    /// Nobody said yes; the state's word and what it means.
    #[error("approval {id} is {state}: {}", approval_message(state))]
    Approval { id: String, state: String },
    /// The tool reported an error, which has been printed.
    #[error("the tool reported an error")]
    Tool,
}

impl From<NotWritten> for Failure {
    fn from(error: NotWritten) -> Self {
        Self::Printed(error.into())
    }
}

impl Failure {
    /// A failed request; whether it was one that has effects decides what a lost answer means.
    pub(crate) fn request(source: ClientError, call: bool) -> Self {
        Self::Client { source, call }
    }

    /// The detailed exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Arguments(BadTypedArguments::StdinTooLarge) => ExitCode::OverLimit,
            Self::Args(_) | Self::Settings(_) | Self::Arguments(_) => ExitCode::Usage,
            Self::Client { source, call } => client_code(source, *call),
            Self::Approval { state, .. } if state == "denied" => ExitCode::Denied,
            Self::Approval { .. } => ExitCode::ApprovalPending,
            Self::Printed(_) | Self::Tool => ExitCode::ToolError,
        }
    }

    /// What does not fit about the arguments, one a line, where the bridge said so.
    pub(crate) fn details(&self) -> String {
        let Self::Client { source: ClientError::Refused(error), .. } = self else { return String::new() };
        let found = error.data.as_ref().and_then(|data| data["validationErrors"].as_array());
        let lines = found.into_iter().flatten().filter_map(Value::as_str);
        lines.map(|line| format!("  {}\n", Escaped(line))).collect()
    }

    /// What a program reads: the bridge's own error where there is one.
    pub(crate) fn to_json(&self) -> Value {
        let bridge = if let Self::Client { source, .. } = self { source.object() } else { None };
        let code = bridge.map(|error| error.code);
        let data = bridge.and_then(|error| error.data.clone());
        let status = match self {
            Self::Client { source: ClientError::Status { status, .. }, .. } => Some(*status),
            Self::Client { source: ClientError::Unauthorized, .. } => Some(401),
            _ => None,
        };
        json!({
            "code": code,
            "message": self.to_string(),
            "data": data,
            "httpStatus": status,
            "exitCode": self.exit_code() as u8,
        })
    }
}

fn approval_message(state: &str) -> &'static str {
    match state {
        "pending" => "nobody has answered yet; wait for it again",
        "denied" => "a person said no; the call was not made",
        _ => "nothing was called; make the call again to ask again",
    }
}

fn client_code(error: &ClientError, call: bool) -> ExitCode {
    match error {
        ClientError::Params(_) => ExitCode::Usage,
        ClientError::RequestTooLarge(_) | ClientError::AnswerTooLarge(_) => ExitCode::OverLimit,
        ClientError::Cut { .. } if call => ExitCode::OutcomeUnknown,
        ClientError::Connect { .. } | ClientError::Cut { .. } | ClientError::NotBridge(_) => ExitCode::Unreachable,
        ClientError::Stranger { .. } | ClientError::WrongId { .. } | ClientError::Shape { .. } => ExitCode::Unreachable,
        ClientError::TimedOut { .. } | ClientError::Silent { .. } => ExitCode::TimedOut,
        ClientError::Unauthorized => ExitCode::Unauthenticated,
        ClientError::Status { status, error, .. } => status_code(*status, error.as_deref()),
        ClientError::Refused(error) => ExitCode::from_error(error.code, error.reason()),
    }
}

fn status_code(status: u16, error: Option<&ErrorObject>) -> ExitCode {
    let limit = error.is_some_and(|error| ErrorCode::from_number(error.code) == Some(ErrorCode::Limit));
    match status {
        413 | 429 => ExitCode::OverLimit,
        _ if limit => ExitCode::OverLimit,
        _ => ExitCode::Unreachable,
    }
}
