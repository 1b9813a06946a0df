//! From a body to a request of the bridge.

use std::collections::BTreeMap;

use footbridge_proto::{
    rpc::{ErrorCode, ErrorObject, Reason, raw},
    wire::{MAX_SEARCH_LIMIT, SEARCH_LIMIT, method},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json_rpc::{self, Envelope, call_meta, completed, envelope_error, required};
use footbridge_calls::request::{CallRequest, Target, repeated};

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
    Tools { server: String, full: bool },
    Tool { server: String, tool: String },
    Resources { server: String },
    Templates { server: String },
    Prompts { server: String },
    Search { query: String, server: Option<String>, limit: usize, full: bool },
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
    #[serde(borrow, default)]
    full: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// What has to have an id, whatever else is wrong with it: nobody would hear of its effects.
const ANSWERED: [&str; 5] =
    [method::CALL_TOOL, method::CHECK_CALL, method::COMPLETE, method::GET_PROMPT, method::READ_RESOURCE];

/// Reads a body that is nested no deeper than this.
pub(super) fn parse(body: &[u8], depth: usize) -> Parsed {
    let Envelope { id, method, params } = json_rpc::read(body, depth);
    let request = method.and_then(|method| {
        if id.is_none() && ANSWERED.contains(&&*method) {
            return Err(envelope_error(ErrorCode::InvalidRequest, "Invalid Request"));
        }
        request(&method, &read_params(params)?)
    });
    Parsed { id, request }
}

fn read_params(raw: Option<&RawValue>) -> Result<Params<'_>, ErrorObject> {
    match json_rpc::object(raw)? {
        None => Ok(Params::default()),
        Some(text) => serde_json::from_str(text).map_err(|_| json_rpc::not_named()),
    }
}

fn request(name: &str, params: &Params<'_>) -> Result<Request, ErrorObject> {
    let server = || required("server", params.server);
    let call = |target: Target, arguments: Option<&RawValue>| {
        let arguments = arguments.map(ToOwned::to_owned);
        Ok(CallRequest { server: server()?, target, arguments, meta: call_meta(params.meta)?, held: None })
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
        method::LIST_TOOLS => Ok(Listing::Tools { server: server()?, full: is_full(params.full)? }),
        method::DESCRIBE_TOOL => Ok(Listing::Tool { server: server()?, tool: required("tool", params.tool)? }),
        method::LIST_RESOURCES => Ok(Listing::Resources { server: server()? }),
        method::LIST_RESOURCE_TEMPLATES => Ok(Listing::Templates { server: server()? }),
        method::LIST_PROMPTS => Ok(Listing::Prompts { server: server()? }),
        method::SEARCH_TOOLS => Ok(Listing::Search {
            query: required("query", params.query)?,
            server: params.server.map(|_| server()).transpose()?,
            limit: search_limit(params.limit)?,
            full: is_full(params.full)?,
        }),
        method::AWAIT_APPROVAL => Ok(Listing::AwaitApproval { id: required("id", params.id)? }),
        unknown => Err(envelope_error(ErrorCode::MethodNotFound, format!("Method not found: {}", repeated(unknown)))),
    }
}

fn is_full(raw: Option<&RawValue>) -> Result<bool, ErrorObject> {
    match raw.map(RawValue::get) {
        None | Some("null" | "false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => {
            Err(ErrorObject::new(Reason::BadRequest, "Missing or invalid parameter: \"full\" (true or false required)"))
        }
    }
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
