//! Every way a run can fail, its message and its exit code; the one place that prints errors.

use std::io::ErrorKind;

use footbridge_cli::{output::NotWritten, result::NotPrinted, suggest::sentence, typed::BadTypedArguments};
use footbridge_guest::{ClientError, SettingsError};
use footbridge_proto::{
    approval::ApprovalStatus,
    exit::ExitCode,
    rpc::{ErrorCode, ErrorObject},
    text::Escaped,
};
use serde_json::{Map, Value, json};

use crate::words::{ArgsError, NotTyped};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Args(#[from] ArgsError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Arguments(#[from] BadTypedArguments),
    #[error(
        "{}{}",
        client_message(source, |name| std::env::var_os(name).is_some_and(|value| !value.is_empty())),
        if *call { call_message(source) } else { "" }
    )]
    Client {
        source: ClientError,
        call: bool,
        /// What may have been meant.
        hint: Option<String>,
    },
    /// What was typed behind a tool makes no arguments.
    #[error("{} Nothing was called: see {help}", sentence(&why.to_string()))]
    Typed { why: NotTyped, help: String },
    /// No prompt has the name, and flags behind it say nothing.
    #[error("{} Nothing was called: see tool-cli prompt list {}", no_prompt(server, prompt, instead), Escaped(server))]
    NoPrompt { server: String, prompt: String, instead: String },
    #[error("\"{}\" is more than one tool: say which by {}", Escaped(.0), Escaped(.1))]
    WhichTool(String, String),
    /// Of `tool-cli mcp`: what it reads or writes broke.
    #[error("standard input or output: {0}")]
    Stdio(std::io::Error),
    #[error(transparent)]
    Printed(#[from] NotPrinted),
    /// Nobody said yes; the state's word and what it means.
    #[error("approval {id} is {state}: {}", approval_message(state))]
    Approval { id: String, state: ApprovalStatus },
    #[error("no MCP server is connected, so there is nothing to read from")]
    NoServer,
    #[error(
        "several servers are connected: name one, as in tool-cli resource read SERVER URI. Connected: {}",
        Escaped(&.0.join(", "))
    )]
    WhichServer(Vec<String>),
    /// It has been told, and ends like this.
    #[error("it has been told")]
    Told(ExitCode),
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
        Self::Client { source, call, hint: None }
    }

    /// The message as it is shown. Somebody else may have written a part of it: what is on further lines is indented, so
    /// that it looks like no message of this command.
    pub(crate) fn shown(&self) -> String {
        self.to_string().trim_end().replace('\n', "\n  ")
    }

    /// The detailed exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Arguments(BadTypedArguments::TooLarge(..)) => ExitCode::OverLimit,
            Self::Args(_) | Self::Settings(_) | Self::Arguments(_) => ExitCode::Usage,
            Self::NoServer | Self::WhichServer(_) | Self::WhichTool(..) => ExitCode::Usage,
            Self::Typed { .. } | Self::NoPrompt { .. } => ExitCode::Usage,
            Self::Told(code) => *code,
            Self::Client { source, call, .. } => client_code(source, *call),
            Self::Approval { state: ApprovalStatus::Denied, .. } => ExitCode::Denied,
            Self::Approval { state: ApprovalStatus::Unknown, .. } => ExitCode::Usage,
            Self::Approval { .. } => ExitCode::ApprovalPending,
            Self::Printed(_) | Self::Stdio(_) | Self::Tool => ExitCode::ToolError,
        }
    }

    /// What does not fit about the arguments, one a line, where the bridge said so and its message does not; and what
    /// may have been meant.
    pub(crate) fn details(&self) -> String {
        let Self::Client { source: ClientError::Refused(error), hint, .. } = self else { return String::new() };
        let found = error.data.as_ref().and_then(|data| data["validationErrors"].as_array());
        let lines = found.into_iter().flatten().filter_map(|found| {
            let text = |name: &str| found[name].as_str().unwrap_or_default();
            let place = Some(text("instancePath")).filter(|path| !path.is_empty()).unwrap_or("/");
            let line = found.as_str().map_or_else(|| format!("{place}: {}", text("message")), str::to_owned);
            (!error.message.contains(&line)).then_some(line)
        });
        let lines = lines.map(|line| format!("  {}\n", Escaped(&line)));
        lines.chain(hint.iter().map(|hint| format!("Hint: {hint}\n"))).collect()
    }

    /// What a program reads, with the public command's members: the kind of error, its message, and the bridge's own
    /// error where there is one.
    pub(crate) fn to_json(&self) -> Value {
        let (client, hint) = match self {
            Self::Client { source, hint, .. } => (Some(source), hint.as_ref()),
            _ => (None, None),
        };
        let bridge = client.and_then(ClientError::object);
        let members = [
            ("type", Some(json!(client.map_or("Error", kind_of)))),
            ("message", Some(json!(self.to_string()))),
            ("httpStatus", client.and_then(http_status).map(Value::from)),
            ("rpcCode", bridge.map(|error| json!(error.code))),
            ("rpcData", bridge.and_then(|error| error.data.clone())),
            ("hint", hint.map(|hint| json!(hint))),
            ("exitCode", Some(json!(self.exit_code() as u8))),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect::<Map<_, _>>().into()
    }
}

/// What Codex sets in its own sandbox, which lets nothing connect, not even to a Unix socket.
const CODEX: [&str; 2] = ["CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_SANDBOX"];

/// The error, or what is behind it where the environment knows that.
fn client_message(error: &ClientError, is_set: impl Fn(&str) -> bool) -> String {
    let codex = CODEX.into_iter().find(|name| is_set(name));
    match (error, codex) {
        (ClientError::Connect { target, source }, Some(name)) if source.kind() == ErrorKind::PermissionDenied => {
            format!(
                "cannot reach the bridge at {target}: Codex's own sandbox lets nothing connect ({name} is set). Set \
             network_access = true in [sandbox_workspace_write] of Codex's config.toml; in a sandbox of Footbridge that opens \
             the bridge and no network"
            )
        }
        _ => error.to_string(),
    }
}

/// What is said besides of a call whose answer could not be used. The other errors say it themselves.
fn call_message(error: &ClientError) -> &'static str {
    if is_unusable(error) { ". The call may have happened: look before it is made again" } else { "" }
}

/// Whether there was an answer, which is not the request's. Whoever wrote it may have done what was asked.
fn is_unusable(error: &ClientError) -> bool {
    match error {
        ClientError::NotBridge(_) | ClientError::WrongId { .. } | ClientError::Shape { .. } => true,
        ClientError::Status { is_foreign, .. } => !is_foreign && error.may_have_happened(),
        _ => false,
    }
}

/// The public command's name for it.
fn kind_of(error: &ClientError) -> &'static str {
    match error {
        ClientError::Params(_) | ClientError::RequestTooLarge(_) | ClientError::AnswerTooLarge(_) => "Error",
        ClientError::Connect { .. } | ClientError::Stranger { .. } | ClientError::Cut { .. } => "RpcTransportError",
        ClientError::TimedOut { .. } | ClientError::Silent { .. } | ClientError::Unanswered { .. } => "RpcTimeoutError",
        ClientError::Unauthorized | ClientError::Status { .. } => "RpcHttpError",
        ClientError::NotBridge(_) | ClientError::WrongId { .. } | ClientError::Shape { .. } => {
            "RpcInvalidResponseError"
        }
        ClientError::Refused(_) => "RpcProtocolError",
    }
}

fn http_status(error: &ClientError) -> Option<u16> {
    match error {
        ClientError::Status { status, .. } => Some(*status),
        ClientError::Unauthorized => Some(401),
        ClientError::Refused(_) => Some(200),
        _ => None,
    }
}

fn approval_message(state: &ApprovalStatus) -> &'static str {
    match state {
        ApprovalStatus::Pending => "nobody has answered yet; wait for it again",
        ApprovalStatus::Denied => "a person said no; the call was not made",
        ApprovalStatus::Unknown => "this session has none of that id: check it, or make the call again to ask again",
        _ => "nothing was called; make the call again to ask again",
    }
}

fn client_code(error: &ClientError, call: bool) -> ExitCode {
    match error {
        ClientError::Params(_) => ExitCode::Usage,
        ClientError::RequestTooLarge(_) | ClientError::AnswerTooLarge(_) => ExitCode::OverLimit,
        ClientError::Cut { .. } if call => ExitCode::OutcomeUnknown,
        error if call && is_unusable(error) => ExitCode::OutcomeUnknown,
        ClientError::Connect { .. } | ClientError::Cut { .. } | ClientError::NotBridge(_) => ExitCode::Unreachable,
        ClientError::Stranger { .. } | ClientError::WrongId { .. } | ClientError::Shape { .. } => ExitCode::Unreachable,
        ClientError::TimedOut { .. } | ClientError::Silent { .. } => ExitCode::TimedOut,
        ClientError::Unanswered { .. } => ExitCode::ApprovalPending,
        ClientError::Unauthorized => ExitCode::Unauthenticated,
        ClientError::Status { status, error, .. } => status_code(*status, error.as_deref()),
        ClientError::Refused(error) => ExitCode::from_error(error.code, error.reason()),
    }
}

fn status_code(status: u16, error: Option<&ErrorObject>) -> ExitCode {
    let limit = error.is_some_and(|error| ErrorCode::from_number(error.code) == Some(ErrorCode::Limit));
    match status {
        413 | 429 => ExitCode::OverLimit,
        403 => error.map_or(ExitCode::Unreachable, |error| ExitCode::from_error(error.code, error.reason())),
        _ if limit => ExitCode::OverLimit,
        _ => ExitCode::Unreachable,
    }
}

/// What is said where no prompt has the name.
fn no_prompt(server: &str, prompt: &str, instead: &str) -> String {
    sentence(&format!("\"{}\" is no prompt of {}{instead}", Escaped(prompt), Escaped(server)))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_connection_that_codex_refuses_is_said_to_be_that() {
        let error = |number| {
            let source = io::Error::from_raw_os_error(number);
            ClientError::Connect { target: "127.0.0.1:7179".to_owned(), source }
        };
        let (eperm, refused) = (error(nix::libc::EPERM), error(nix::libc::ECONNREFUSED));
        for name in CODEX {
            let said = client_message(&eperm, |asked| asked == name);
            assert!(said.contains(&format!("({name} is set)")) && said.contains("network_access = true"), "{said}");
            assert!(!client_message(&refused, |asked| asked == name).contains("Codex"));
        }
        assert!(!client_message(&eperm, |_| false).contains("Codex"));
    }
}
