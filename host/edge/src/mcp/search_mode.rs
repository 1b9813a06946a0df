//! `?mode=search`: three tools that find, describe and call all others, for models that would otherwise read hundreds of
//! definitions. Names are those of the endpoint without it.

use footbridge_proto::{
    rpc::{ErrorObject, Reason, raw},
    wire::{MAX_SEARCH_LIMIT, SEARCH_LIMIT},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    endpoint::{Endpoint, Viewer},
    names,
    request::McpCall,
    route,
};
use crate::{
    dialect::{Found, Lookup},
    json_rpc::required,
    search::{self, Sought},
};
use std::{sync::Arc, time::Duration};

use footbridge_calls::{auth::Principal, call::Stages, request::repeated};

const SEARCH: &str = "search_tools";
const DESCRIBE: &str = "describe_tool";
const CALL: &str = "call_tool";

/// What `tools/list` answers.
pub(super) fn listed() -> Box<RawValue> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let reads = json!({"readOnlyHint": true, "openWorldHint": false});
    raw(&json!({"tools": [
        {
            "name": SEARCH,
            "description": "Finds tools by words of their names and descriptions. The best match comes first.",
            "inputSchema": {"type": "object", "properties": {
                "query": text("Words, such as \"read file\""),
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_SEARCH_LIMIT, "default": SEARCH_LIMIT},
            }, "required": ["query"]},
            "annotations": reads,
        },
        {
            "name": DESCRIBE,
            "description": "All that is known of a tool: its description, and the schemas of its arguments and results.",
            "inputSchema": {"type": "object", "properties": {"name": text("Its name, as search_tools gives it")},
                "required": ["name"]},
            "annotations": reads,
        },
        {
            "name": CALL,
            "description": "Calls a tool. Describe it first.",
            "inputSchema": {"type": "object", "properties": {
                "name": text("Its name, as search_tools gives it"),
                "arguments": {"type": "object", "description": "What its schema asks for"},
            }, "required": ["name"]},
        },
    ]}))
}

/// What a call of one of the three is.
pub(super) enum Searched {
    /// A call of the tool that is meant.
    Call(McpCall),
    /// Something that is looked up, and answered as a tool's result.
    LookUp(Lookup),
}

#[derive(Deserialize, Default)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    query: Option<&'a RawValue>,
    #[serde(borrow, default)]
    limit: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Reads a call of one of the three.
pub(super) fn read(
    name: &str,
    arguments: Option<&RawValue>,
    endpoint: Endpoint,
    wait: Duration,
) -> Result<Searched, ErrorObject> {
    let text = arguments.map_or("{}", RawValue::get);
    let object = || ErrorObject::new(Reason::BadRequest, "Invalid arguments: an object is required");
    let given: Arguments<'_> = if text.starts_with('{') {
        serde_json::from_str(text).map_err(|_| object())?
    } else {
        return Err(object());
    };
    match name {
        SEARCH => {
            let query = required("query", given.query)?;
            let limit = given.limit.and_then(|raw| raw.get().parse::<usize>().ok()).unwrap_or(SEARCH_LIMIT);
            let limit = limit.clamp(1, MAX_SEARCH_LIMIT);
            Ok(Searched::LookUp(Box::new(move |stages, principal| {
                Box::pin(async move {
                    let viewer = Viewer { stages: &stages, principal: &principal, endpoint: &endpoint, wait };
                    found(viewer, query, limit).await
                })
            })))
        }
        DESCRIBE => {
            let name = required("name", given.name)?;
            Ok(Searched::LookUp(Box::new(move |stages, principal| {
                Box::pin(async move { described(&stages, &principal, endpoint, name, wait).await })
            })))
        }
        CALL => {
            let name = required("name", given.name)?;
            Ok(Searched::Call(McpCall::Tool { name, arguments: given.arguments.map(ToOwned::to_owned) }))
        }
        other => {
            let message = format!("Tool \"{}\" not found: there are {SEARCH}, {DESCRIBE} and {CALL}", repeated(other));
            Err(ErrorObject::new(Reason::UnknownTool, message))
        }
    }
}

async fn found(viewer: Viewer<'_>, query: String, limit: usize) -> Found {
    let within = viewer.seen().await?;
    let sought = Sought { query, limit, full: false };
    let found = search::tools(viewer.stages, viewer.principal, within, sought).await?;
    let joined = viewer.endpoint.server.is_none();
    let tools = found.into_iter().map(|found| {
        let server = found.server.parse().ok().filter(|_| joined);
        let name = match server {
            Some(server) => names::joined(&server, &found.tool.name),
            None => found.tool.name,
        };
        json!({"name": name, "description": found.tool.description})
    });
    Ok(result(json!({"tools": tools.collect::<Vec<_>>()})))
}

async fn described(
    stages: &Arc<Stages>,
    principal: &Principal,
    endpoint: Endpoint,
    name: String,
    wait: Duration,
) -> Found {
    let (server, tool) = route::tool_named(stages, principal, endpoint, &name, wait).await;
    let visible = stages.resolver.visible(&principal.session().rules(), &server).await?;
    let mut text = String::new();
    visible.tool(&tool)?.write_as(&name, &mut text);
    Ok(raw(&json!({"content": [{"type": "text", "text": text}]})))
}

/// A result that is structured, and its text for whoever reads no structured ones.
fn result(value: Value) -> Box<RawValue> {
    raw(&json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value}))
}
