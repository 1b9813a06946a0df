//! From a body to a request: the envelope of JSON-RPC, strictly.

use std::collections::BTreeMap;

use footbridge_proto::{
    json,
    rpc::{ErrorCode, ErrorObject, IncomingRequest, Reason, raw},
    wire::{MAX_SEARCH_LIMIT, SEARCH_LIMIT, method},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use footbridge_calls::request::{CallRequest, Completed, PROMPT, TEMPLATE, Target, repeated};

/// What a guest may ask for: this enum is the only way in.
#[derive(Debug)]
pub(super) enum Request {
    List(Listing),
    Call(CallRequest),
    Check(CallRequest),
}

/// What is answered without asking a server.
#[derive(Debug)]
pub(super) enum Listing {
    BridgeInfo,
    Servers,
    Tools { server: String },
    Tool { server: String, tool: String },
    Resources { server: String },
    Templates { server: String },
    Prompts { server: String },
    Search { query: String, server: Option<String>, limit: usize },
    AwaitApproval { id: String },
}

/// A request, or why it is none, and the id to answer with.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) id: Option<Box<RawValue>>,
    pub(super) request: Result<Request, ErrorObject>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow, default)]
    server: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ref")]
    about: Option<&'a RawValue>,
    #[serde(borrow, default)]
    argument: Option<&'a RawValue>,
    #[serde(borrow, default)]
    context: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    query: Option<&'a RawValue>,
    #[serde(borrow, default)]
    limit: Option<&'a RawValue>,
}

/// Reads a body that is nested no deeper than this.
pub(super) fn parse(body: &[u8], depth: usize) -> Parsed {
    let Ok(text) = json::check(body, depth) else {
        return Parsed { id: None, request: Err(envelope_error(ErrorCode::Parse, "Parse error")) };
    };
    let invalid = || envelope_error(ErrorCode::InvalidRequest, "Invalid Request");
    let envelope = match serde_json::from_str::<IncomingRequest<'_>>(text) {
        Ok(envelope) if text.trim_start().starts_with('{') => envelope,
        _ => return Parsed { id: None, request: Err(invalid()) },
    };
    let id = envelope.id.filter(|raw| is_id(raw)).map(ToOwned::to_owned);
    let bad_id = envelope.id.is_some() && id.is_none();
    let request = match envelope.method() {
        Some(method) if envelope.has_version() && !bad_id => {
            read_params(envelope.params).and_then(|params| request(&method, &params, id.is_some()))
        }
        _ => Err(invalid()),
    };
    Parsed { id, request }
}

/// Longest id, bytes: it is kept while the call runs, and sent back.
const MAX_ID: usize = 1024;

fn is_id(raw: &RawValue) -> bool {
    let text = raw.get();
    text.len() <= MAX_ID && text.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}

fn string(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

fn envelope_error(code: ErrorCode, message: impl Into<String>) -> ErrorObject {
    ErrorObject::with_code(code, Reason::BadRequest, message)
}

fn read_params(raw: Option<&RawValue>) -> Result<Params<'_>, ErrorObject> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(Params::default()),
        Some(text) if text.starts_with('{') => serde_json::from_str(text).map_err(|_| not_named()),
        Some(_) => Err(not_named()),
    }
}

fn not_named() -> ErrorObject {
    ErrorObject::new(Reason::BadRequest, "Invalid params: named object required")
}

fn request(name: &str, params: &Params<'_>, has_id: bool) -> Result<Request, ErrorObject> {
    let server = || required("server", params.server);
    let call = |target: Target, arguments: Option<&RawValue>| {
        if !has_id {
            return Err(envelope_error(ErrorCode::InvalidRequest, "Invalid Request"));
        }
        let arguments = arguments.map(ToOwned::to_owned);
        Ok(CallRequest { server: server()?, target, arguments, held: None })
    };
    let tool_call = || {
        server()?;
        call(Target::Tool(required("tool", params.tool)?), params.arguments)
    };
    match name {
        method::GET_PROMPT => {
            server()?;
            call(Target::Prompt(required("prompt", params.prompt)?), params.arguments).map(Request::Call)
        }
        method::COMPLETE => {
            server()?;
            let about = Target::Completion(completed(params.about)?);
            let said = [("argument", params.argument), ("context", params.context)];
            let said: BTreeMap<&str, &RawValue> =
                said.into_iter().filter_map(|(name, raw)| Some((name, raw?))).collect();
            call(about, Some(&raw(&said))).map(Request::Call)
        }
        method::CALL_TOOL => tool_call().map(Request::Call),
        method::CHECK_CALL => tool_call().map(Request::Check),
        method::READ_RESOURCE => {
            server()?;
            call(Target::Resource(required("uri", params.uri)?), None).map(Request::Call)
        }
        other => listing(other, params).map(Request::List),
    }
}

fn listing(name: &str, params: &Params<'_>) -> Result<Listing, ErrorObject> {
    let server = || required("server", params.server);
    match name {
        method::GET_BRIDGE_INFO => Ok(Listing::BridgeInfo),
        method::LIST_SERVERS => Ok(Listing::Servers),
        method::LIST_TOOLS => Ok(Listing::Tools { server: server()? }),
        method::DESCRIBE_TOOL => Ok(Listing::Tool { server: server()?, tool: required("tool", params.tool)? }),
        method::LIST_RESOURCES => Ok(Listing::Resources { server: server()? }),
        method::LIST_RESOURCE_TEMPLATES => Ok(Listing::Templates { server: server()? }),
        method::LIST_PROMPTS => Ok(Listing::Prompts { server: server()? }),
        method::SEARCH_TOOLS => Ok(Listing::Search {
            query: required("query", params.query)?,
            server: params.server.map(|_| server()).transpose()?,
            limit: search_limit(params.limit)?,
        }),
        method::AWAIT_APPROVAL => Ok(Listing::AwaitApproval { id: required("id", params.id)? }),
        unknown => Err(envelope_error(ErrorCode::MethodNotFound, format!("Method not found: {}", repeated(unknown)))),
    }
}

/// Longest name or URI, bytes: it is kept, shown and recorded, where arguments are digested.
const MAX_NAME: usize = 8 * 1024;

fn required(name: &str, raw: Option<&RawValue>) -> Result<String, ErrorObject> {
    let message = match string(raw) {
        Some(text) if text.len() > MAX_NAME => format!("Parameter \"{name}\" has over {MAX_NAME} bytes"),
        Some(text) if !text.is_empty() => return Ok(text),
        _ => format!("Missing or invalid parameter: \"{name}\" (string required)"),
    };
    Err(ErrorObject::new(Reason::BadRequest, message))
}

/// What a completion is about.
fn completed(raw: Option<&RawValue>) -> Result<Completed, ErrorObject> {
    #[derive(Deserialize)]
    struct Ref {
        r#type: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        uri: String,
    }
    let read = raw.and_then(|raw| serde_json::from_str::<Ref>(raw.get()).ok());
    let about = read.and_then(|about| match about.r#type.as_str() {
        PROMPT => Some(Completed::Prompt { name: about.name }),
        TEMPLATE => Some(Completed::Template { uri: about.uri }),
        _ => None,
    });
    about.filter(|about| (1..=MAX_NAME).contains(&about.name().len())).ok_or_else(|| {
        let message = format!(
            "Missing or invalid parameter: \"ref\" (\"type\": \"{PROMPT}\" with a \"name\", or \"{TEMPLATE}\" with a \
             \"uri\", required)"
        );
        ErrorObject::new(Reason::BadRequest, message)
    })
}

fn search_limit(raw: Option<&RawValue>) -> Result<usize, ErrorObject> {
    let Some(raw) = raw else { return Ok(SEARCH_LIMIT) };
    let limit = raw.get().parse::<u64>().ok().filter(|limit| *limit > 0);
    let limit = limit.ok_or_else(|| {
        ErrorObject::new(Reason::BadRequest, "Missing or invalid parameter: \"limit\" (number from 1 on required)")
    })?;
    Ok(usize::try_from(limit).map_or(MAX_SEARCH_LIMIT, |limit| limit.min(MAX_SEARCH_LIMIT)))
}

#[cfg(test)]
mod tests;
