//! What the server does with each request.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::{
    ErrorData, RoleServer, Service,
    model::{
        CallToolRequestParams, CallToolResult, ClientNotification, ClientRequest, ErrorCode, Implementation,
        ListToolsResult, ProtocolVersion, ResourcesCapability, ServerCapabilities, ServerConfig, ServerResult,
        ToolsCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    arguments::Arguments,
    clock::Clock,
    notes::Notes,
    notify::tell,
    resources,
    slow::Counts,
    tools::{self, Done},
};

/// Revisions of MCP that it speaks. What it says is the same in all of them.
const REVISIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2024_11_05,
];

/// Methods that it knows. What reaches [`refusal`] under one of them has params that could not be read.
const METHODS: [&str; 7] =
    ["initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"];

const INSTRUCTIONS: &str =
    "Made-up weather, the time, notes that are forgotten when the server ends, and a slow count.";

/// A server and its state.
pub(super) struct Server<C> {
    notes: Mutex<Notes>,
    counts: Counts,
    clock: C,
}

/// Not rmcp's `ServerHandler`, which would answer for lists that are not here, and look at revisions in each request.
impl<C: Clock + Send + Sync + 'static> Service<RoleServer> for Server<C> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let mut result = match request {
            ClientRequest::InitializeRequest(request) => {
                let agreed = agreed(request.params.protocol_version);
                ServerResult::InitializeResult(self.get_info().with_protocol_version(agreed))
            }
            ClientRequest::PingRequest(_) => ServerResult::empty(()),
            ClientRequest::ListToolsRequest(_) => {
                ServerResult::ListToolsResult(ListToolsResult::with_all_items(tools::definitions()))
            }
            ClientRequest::CallToolRequest(request) => {
                ServerResult::CallToolResult(self.call_tool(request.params, &context).await?)
            }
            ClientRequest::ListResourcesRequest(_) => ServerResult::ListResourcesResult(resources::list(&self.notes())),
            ClientRequest::ListResourceTemplatesRequest(_) => {
                ServerResult::ListResourceTemplatesResult(resources::templates())
            }
            ClientRequest::ReadResourceRequest(request) => {
                ServerResult::ReadResourceResult(resources::read(&self.notes(), &request.params.uri)?)
            }
            other => return Err(refusal(other.method())),
        };
        // A member of later revisions.
        result.strip_result_type_for_legacy_peer();
        Ok(result)
    }

    /// rmcp itself cancels requests; there is nothing else to be told.
    async fn handle_notification(
        &self,
        _: ClientNotification,
        _: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ServerConfig {
        let (mut tools, mut resources) = (ToolsCapability::default(), ResourcesCapability::default());
        tools.list_changed = Some(false);
        (resources.subscribe, resources.list_changed) = (Some(false), Some(true));
        let capabilities =
            ServerCapabilities::builder().enable_tools_with(tools).enable_resources_with(resources).build();
        let this = Implementation::new("footbridge-demo", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(this.with_title("Footbridge demo server"))
            .with_instructions(INSTRUCTIONS)
    }
}

impl<C: Clock> Server<C> {
    /// Counts stop when it is `over`.
    pub(super) fn new(clock: C, over: CancellationToken) -> Self {
        Self { notes: Mutex::default(), counts: Counts::new(over), clock }
    }

    /// Notes that a panicking task left behind are whole.
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let arguments = Arguments::new(params.arguments);
        let done = tools::call(&params.name, arguments, &mut self.notes(), &self.clock)
            .unwrap_or_else(|wrong| Done::Failed(wrong.to_string()));
        match done {
            Done::Unknown => Err(ErrorData::invalid_params(format!("Unknown tool: {}", params.name), None)),
            Done::Failed(why) => Ok(tools::failure(why)),
            Done::Structured(value) => Ok(tools::structured(value)),
            Done::NotesChanged(value) => {
                // Before the answer: who has read the answer may rely on having been told.
                tell(&context.peer, "notifications/resources/list_changed", json!({})).await;
                Ok(tools::structured(value))
            }
            Done::Later { to, step } => self.counts.count(to, step, context).await,
        }
    }
}

/// Agrees to the client's revision where it is known, and offers the newest where it is not.
fn agreed(asked: ProtocolVersion) -> ProtocolVersion {
    if REVISIONS.contains(&asked) { asked } else { ProtocolVersion::V_2025_11_25 }
}

fn refusal(method: &str) -> ErrorData {
    if METHODS.contains(&method) {
        return ErrorData::invalid_params(format!("Invalid params of {method}"), None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("Method not found: {method}"), None)
}
