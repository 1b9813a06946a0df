//! What a client may ask for: the enums here are the only way in.

use std::{borrow::Cow, collections::BTreeMap};

use footbridge_proto::rpc::{ErrorCode, ErrorObject, Reason, raw};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::cursor;
use crate::json_rpc::{self, completed, envelope_error, required};
use footbridge_calls::{
    events::LogLevel,
    meta::CallMeta,
    request::{Completed, repeated},
};

/// A request.
#[derive(Debug)]
pub(super) enum Message {
    Ping,
    SetLevel(LogLevel),
    List(Listing),
    /// A stream of what changes, in the revision without a handshake.
    Listen(Wanted),
    Call(McpCall),
}

/// What is asked about calls that are tasks, by their ids.
#[derive(Debug)]
pub(super) enum TaskMessage {
    Get(String),
    Result(String),
    Cancel(String),
    List,
}

/// What is answered without asking a server.
#[derive(Debug)]
pub(super) enum Listing {
    /// What there is to be spoken, for clients without a handshake.
    Discover,
    /// Entries of one kind, from behind a key on.
    Entries(ListedKind, Option<String>),
}

/// What a client wants to be told of listings that change.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
    /// The id of the request that asked for it, in the revision in which one does.
    pub(super) subscription: Option<Box<RawValue>>,
}

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

/// What is sent to a server, by the names that the client knows.
#[derive(Debug)]
pub(super) enum McpCall {
    Tool { name: String, arguments: Option<Box<RawValue>> },
    Resource { uri: String },
    Prompt { name: String, arguments: Option<Box<RawValue>> },
    Completion { about: Completed, params: Box<RawValue> },
}

/// Parameters of any request, none of them looked at.
#[derive(Debug, Deserialize, Default)]
pub(super) struct Params<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<&'a RawValue>,
    /// What a call wants to be a task by.
    #[serde(borrow, default)]
    pub(super) task: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "taskId")]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ref")]
    about: Option<&'a RawValue>,
    #[serde(borrow, default)]
    argument: Option<&'a RawValue>,
    #[serde(borrow, default)]
    context: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cursor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    level: Option<&'a RawValue>,
    #[serde(borrow, default)]
    notifications: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestId")]
    pub(super) request_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(skip)]
    read_meta: Meta<'a>,
}

/// What is read of `_meta`.
#[derive(Debug, Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    level: Option<&'a RawValue>,
}

/// Longest token of progress, bytes: it is repeated with each event.
const MAX_TOKEN: usize = 1024;

impl<'a> Params<'a> {
    /// Reads parameters.
    pub(super) fn read(params: Option<&'a RawValue>) -> Result<Self, ErrorObject> {
        let Some(text) = json_rpc::object(params)? else { return Ok(Self::default()) };
        let mut read: Self = serde_json::from_str(text).map_err(|_| json_rpc::not_named())?;
        let meta = read.meta.filter(|meta| meta.get().starts_with('{'));
        read.read_meta = meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
        Ok(read)
    }

    /// A parameter that is a text.
    pub(super) fn text(&self, raw: Option<&RawValue>) -> Option<String> {
        serde_json::from_str(raw?.get()).ok()
    }

    /// What of it goes to the server with a call.
    pub(super) fn call_meta(&self) -> Result<Option<CallMeta>, ErrorObject> {
        json_rpc::call_meta(self.meta)
    }

    /// What `initialize` wants to speak.
    pub(super) fn protocol_version(&self) -> Option<String> {
        self.text(self.version)
    }

    /// What a request without a handshake says it speaks.
    pub(super) fn protocol_version_of_meta(&self) -> Option<String> {
        self.text(self.read_meta.version)
    }

    /// Whether a request says what its client can do.
    pub(super) fn has_client_capabilities(&self) -> bool {
        self.read_meta.capabilities.is_some_and(|raw| raw.get().starts_with('{'))
    }

    /// What of logs a request without a handshake wants to hear.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        serde_json::from_str(self.read_meta.level?.get()).ok()
    }

    /// What progress is told by, where the client wants to hear of it: a text or a number.
    pub(super) fn progress_token(&self) -> Option<Box<RawValue>> {
        let is_token = |raw: &&RawValue| {
            raw.get().len() <= MAX_TOKEN && raw.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
        };
        self.read_meta.progress_token.filter(is_token).map(ToOwned::to_owned)
    }
}

/// Reads a request of a revision that has a handshake, or has none.
pub(super) fn read(method: &str, params: &Params<'_>, has_handshake: bool) -> Result<Message, ErrorObject> {
    let arguments = || params.arguments.map(ToOwned::to_owned);
    let call = match method {
        "tools/call" => McpCall::Tool { name: required("name", params.name)?, arguments: arguments() },
        "resources/read" => McpCall::Resource { uri: required("uri", params.uri)? },
        "prompts/get" => McpCall::Prompt { name: required("name", params.name)?, arguments: arguments() },
        "completion/complete" => {
            let said = [("argument", params.argument), ("context", params.context)];
            let said: BTreeMap<&str, &RawValue> =
                said.into_iter().filter_map(|(name, raw)| Some((name, raw?))).collect();
            McpCall::Completion { about: completed(params.about)?, params: raw(&said) }
        }
        "ping" if has_handshake => return Ok(Message::Ping),
        "logging/setLevel" if has_handshake => {
            let level = params.level.and_then(|raw| serde_json::from_str(raw.get()).ok());
            let unknown = || ErrorObject::new(Reason::BadRequest, "\"level\" is none of those that there are");
            return level.map(Message::SetLevel).ok_or_else(unknown);
        }
        "subscriptions/listen" if !has_handshake => {
            #[derive(Deserialize, Default)]
            #[serde(rename_all = "camelCase", default)]
            struct Filter {
                tools_list_changed: bool,
                resources_list_changed: bool,
                prompts_list_changed: bool,
            }
            let filter = params.notifications.and_then(|raw| serde_json::from_str::<Filter>(raw.get()).ok());
            let filter = filter.ok_or_else(|| ErrorObject::new(Reason::BadRequest, "\"notifications\" is missing"))?;
            return Ok(Message::Listen(Wanted {
                tools: filter.tools_list_changed,
                resources: filter.resources_list_changed,
                prompts: filter.prompts_list_changed,
                subscription: None,
            }));
        }
        "server/discover" if !has_handshake => return Ok(Message::List(Listing::Discover)),
        other => return listed(other, params).map(Message::List),
    };
    Ok(Message::Call(call))
}

/// Reads what is asked about tasks; none where it is something else.
pub(super) fn about_task(method: &str, params: &Params<'_>) -> Option<Result<TaskMessage, ErrorObject>> {
    let message = match method {
        "tasks/get" => TaskMessage::Get,
        "tasks/result" => TaskMessage::Result,
        "tasks/cancel" => TaskMessage::Cancel,
        "tasks/list" => return Some(Ok(TaskMessage::List)),
        _ => return None,
    };
    Some(required("taskId", params.task_id).map(message))
}

fn listed(method: &str, params: &Params<'_>) -> Result<Listing, ErrorObject> {
    let kind = match method {
        "tools/list" => ListedKind::Tools,
        "resources/list" => ListedKind::Resources,
        "resources/templates/list" => ListedKind::Templates,
        "prompts/list" => ListedKind::Prompts,
        unknown => {
            let message: Cow<'_, str> = repeated(unknown);
            return Err(envelope_error(ErrorCode::MethodNotFound, format!("Method not found: {message}")));
        }
    };
    let unknown = || ErrorObject::new(Reason::BadRequest, "\"cursor\" is none that was given here");
    let cursor = params.cursor.filter(|raw| raw.get() != "null").map(|raw| params.text(Some(raw)));
    let key = cursor.map(|text| text.as_deref().and_then(cursor::key).ok_or_else(unknown)).transpose()?;
    Ok(Listing::Entries(kind, key))
}
