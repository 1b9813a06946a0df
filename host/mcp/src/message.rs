//! The parts of JSON-RPC messages that are looked at, and what the MCP library gets in place of an answer.

use std::{collections::BTreeMap, time::Duration};

use footbridge_proto::{
    rpc::{IncomingMessage, OutgoingAnswer, Request, raw},
    text::needs_escape,
};
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ConstString as _, ErrorData,
    GetExtensions, GetMeta as _, InputResponses, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    header_params,
    pending_request::{Beside, PendingRequest},
};
use footbridge_calls::meta::CallMeta;
use footbridge_core::catalogue::PROMOTED;

/// Largest message that is read into the library's own types (handshake, subscriptions): those take 35 times the text.
pub(super) const MAX_TYPED: usize = 256 * 1024;
/// Longest id of a server's request. The library logs it, so it has to be plain text too.
const MAX_ID: usize = 128;

/// `params` of a progress notification.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress {
    progress_token: serde_json::Value,
    pub(super) progress: f64,
    #[serde(default)]
    pub(super) total: Option<f64>,
    #[serde(default)]
    pub(super) message: Option<String>,
}

impl Progress {
    /// The token as a number; some servers echo it as text.
    pub(super) fn token(&self) -> Option<i64> {
        self.progress_token.as_i64().or_else(|| self.progress_token.as_str()?.parse().ok())
    }
}

/// A message of ours as it leaves. The arguments of a call come from its pending request, where they are text: the
/// library has a placeholder for them; and so does what the library does not know of.
pub(super) fn written(message: &ClientJsonRpcMessage) -> serde_json::Result<Vec<u8>> {
    let Some(beside) = pending(message).and_then(|pending| pending.take_beside()) else {
        return serde_json::to_vec(message);
    };
    if let ClientJsonRpcMessage::Request(request) = message
        && let ClientRequest::CallToolRequest(call) = &request.request
    {
        return tool_call(&request.id, &call.params, request.request.get_meta(), &beside);
    }
    let Beside { arguments, meta, task, session: _ } = beside;
    let text = serde_json::to_string(message)?;
    let call: IncomingMessage<'_> = serde_json::from_str(&text)?;
    let mut params: BTreeMap<&str, &RawValue> =
        call.params.map_or(Ok(BTreeMap::new()), |raw| serde_json::from_str(raw.get()))?;
    let task = task.map(|time| raw(&TaskWanted::within(time)));
    let meta = meta.map(|meta| merged(&meta, params.get("_meta").copied())).transpose()?;
    for (name, value) in [("arguments", &arguments), ("task", &task), ("_meta", &meta)] {
        params.extend(value.as_deref().map(|value| (name, value)));
    }
    serde_json::to_vec(&Request::new(call.id, call.method.as_deref().unwrap_or_default(), params))
}

/// The commonest message, written at once: the library would make values of all of it first.
fn tool_call(
    id: &RequestId,
    call: &CallToolRequestParams,
    ours: &RequestMetaObject,
    beside: &Beside,
) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(rename = "_meta")]
        meta: &'a RawValue,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        input_responses: Option<&'a InputResponses>,
        #[serde(skip_serializing_if = "Option::is_none")]
        request_state: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<TaskWanted>,
    }
    let ours = to_raw_value(ours)?;
    let meta = beside.meta.as_ref().map(|guest| merged(guest, Some(&ours))).transpose()?;
    let params = Params {
        meta: meta.as_deref().unwrap_or(&ours),
        name: &call.name,
        arguments: beside.arguments.as_deref(),
        input_responses: call.input_responses.as_ref(),
        request_state: call.request_state.as_deref(),
        task: beside.task.map(TaskWanted::within),
    };
    serde_json::to_vec(&Request::new(id, CallToolRequestMethod::VALUE, params))
}

/// `task` of a call that its server is to run as one.
#[derive(Serialize)]
struct TaskWanted {
    ttl: u64,
}

impl TaskWanted {
    fn within(time: Duration) -> Self {
        Self { ttl: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }
    }
}

/// What a guest says of its call, and what we do, which is what counts where both say something.
fn merged(guest: &CallMeta, ours: Option<&RawValue>) -> serde_json::Result<Box<RawValue>> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(guest.text().get())?;
    if let Some(ours) = ours {
        members.extend(serde_json::from_str::<BTreeMap<String, &RawValue>>(ours.get())?);
    }
    to_raw_value(&members)
}

/// The pending form of a request of ours.
pub(super) fn pending(message: &ClientJsonRpcMessage) -> Option<PendingRequest> {
    match message {
        ClientJsonRpcMessage::Request(request) => request.request.extensions().get::<PendingRequest>().cloned(),
        _ => None,
    }
}

/// An id of ours as a number; some servers echo it as text.
pub(super) fn number(id: &RawValue) -> Option<i64> {
    id.get().trim_matches('"').parse().ok()
}

/// The id of a server's request, if it may show in a log.
pub(super) fn plain_id(id: &RawValue) -> Option<RequestId> {
    if id.get().len() > MAX_ID {
        return None;
    }
    let id = serde_json::from_str::<RequestId>(id.get()).ok()?;
    match &id {
        RequestId::String(text) if text.chars().any(needs_escape) => None,
        _ => Some(id),
    }
}

/// What the library gets for an answer that is kept from it.
pub(super) fn placeholder(id: i64) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id))
}

/// What the library gets for a result: nothing of it, but the tools whose parameters it has to repeat in headers.
pub(super) fn stand_in(id: i64, result: &RawValue) -> ServerJsonRpcMessage {
    #[derive(Deserialize, Serialize)]
    struct Tools<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    if !result.get().contains(PROMOTED) {
        return placeholder(id);
    }
    let Ok(Tools { mut tools }) = serde_json::from_str::<Tools<'_>>(result.get()) else { return placeholder(id) };
    // One that is marked wrongly is not listed, and the library would log its name as it is.
    tools.retain(|tool| tool.get().contains(PROMOTED) && header_params::check(tool).is_ok());
    // Of a long page these may be few.
    let text = serde_json::to_string(&OutgoingAnswer::new(id, Ok(Tools { tools })));
    let text = text.ok().filter(|text| text.len() <= MAX_TYPED);
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| placeholder(id))
}

/// What the library gets for an answer that it waits for itself and that cannot be used.
pub(super) fn unusable(id: i64) -> ServerJsonRpcMessage {
    let error = ErrorData::internal_error("the server's answer cannot be used", None);
    ServerJsonRpcMessage::error(error, Some(RequestId::Number(id)))
}

/// An answer that the library reads itself: the handshake's.
pub(super) fn typed(id: i64, text: &str) -> ServerJsonRpcMessage {
    if text.len() > MAX_TYPED {
        return unusable(id);
    }
    serde_json::from_str(text).unwrap_or_else(|_| unusable(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn arguments_leave_as_the_text_that_was_recorded() {
        use footbridge_calls::events::Events;
        use rmcp::model::CallToolRequest;

        let text = r#"{"b":123456789012345678901234567890,"a":1.0}"#;
        let params = CallToolRequestParams::new("t").with_arguments(serde_json::Map::new());
        let mut call = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let meta = CallMeta::of(Some(&raw(r#"{"traceparent":"00-1","x":1.50}"#))).unwrap();
        let beside = Beside { arguments: Some(raw(text)), meta, task: Some(Duration::from_secs(60)), session: 1 };
        call.extensions_mut().insert(PendingRequest::of_call(Events::default(), beside, None, None));
        call.get_meta_mut().set_progress_token(rmcp::model::ProgressToken(rmcp::model::NumberOrString::Number(3)));
        let message = ClientJsonRpcMessage::request(call, RequestId::Number(7));
        let left = String::from_utf8(written(&message).unwrap()).unwrap();
        assert!(left.contains(&format!(r#""arguments":{text}"#)) && left.contains(r#""id":7"#), "{left}");
        assert_eq!(left.matches("arguments").count(), 1);
        assert!(left.contains(r#""_meta":{"progressToken":3,"traceparent":"00-1","x":1.50}"#), "{left}");
        assert!(left.contains(r#""task":{"ttl":60000}"#), "{left}");
    }

    #[test]
    fn ids_that_could_deceive_a_reader_of_logs_are_not_taken() {
        assert!(plain_id(&raw("\"abc\"")).is_some() && plain_id(&raw("7")).is_some());
        for id in [r#""\u001b[31m""#, r#""\u202e""#, "null", "[]", &format!("\"{}\"", "x".repeat(200))] {
            assert!(plain_id(&raw(id)).is_none(), "{id}");
        }
    }

    #[test]
    fn the_library_sees_only_tools_with_parameters_for_headers() {
        let plain = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
        let promoted =
            r#"{"name":"b","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"P"}}}}"#;
        // However long their page is.
        let long = vec![plain; MAX_TYPED / plain.len() + 1].join(",");
        for page in [plain, &long] {
            let page = raw(&format!(r#"{{"tools":[{page},{promoted}]}}"#));
            let ServerJsonRpcMessage::Response(answer) = stand_in(1, &page) else { panic!("no response") };
            let ServerResult::ListToolsResult(list) = answer.result else { panic!("no list") };
            assert_eq!(list.tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), ["b"]);
        }
        let nothing = serde_json::to_string(&stand_in(1, &raw(&format!(r#"{{"tools":[{plain}]}}"#)))).unwrap();
        assert_eq!(nothing, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    }
}
