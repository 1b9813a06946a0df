//! What we are to an MCP server: a client that can at most have a person asked.
//!
//! Pings are answered. Elicitation, in forms and by addresses, is declared where somebody can be asked, and goes to whoever is asked about
//! calls. Everything else that a server may ask for is declined: sampling would spend the operator's money, and an
//! answered roots list would replace the folders a file server was configured with. It is not declared either, so that
//! servers do not offer tools that need it.

use std::sync::Arc;

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation,
        ProtocolVersion,
    },
    service::{ClientLifecycleMode, RequestContext},
};
use serde_json::json;

use super::{ProtocolChoice, elicitation, interceptor::Interceptor};

/// The handler of everything a server sends that passed the interceptor.
#[derive(Debug, Clone)]
pub(super) struct ServerMessageHandler {
    interceptor: Arc<Interceptor>,
}

impl ServerMessageHandler {
    /// Of a connection.
    pub(super) fn new(interceptor: &Arc<Interceptor>) -> Self {
        Self { interceptor: Arc::clone(interceptor) }
    }
}

impl ClientHandler for ServerMessageHandler {
    fn get_info(&self) -> ClientConfig {
        us(self.interceptor.takes_questions())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            elicitation::METHOD if self.interceptor.takes_questions() => {
                Ok(CustomResult::new(match self.interceptor.question(&context.id) {
                    Some(question) => question.answer().await,
                    None => json!({"action": "decline"}),
                }))
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client does not offer that", None)),
        }
    }
}

/// What we say that we are, to a server that may ask people or not.
pub(super) fn us(takes_questions: bool) -> ClientConfig {
    let us = Implementation::new("footbridge", env!("CARGO_PKG_VERSION"));
    let declared = if takes_questions { json!({"elicitation": {"form": {}, "url": {}}}) } else { json!({}) };
    let capabilities: ClientCapabilities = serde_json::from_value(declared).unwrap_or_default();
    ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// How the library is to open a connection.
pub(super) fn lifecycle(choice: ProtocolChoice) -> ClientLifecycleMode {
    let stateless = || vec![ProtocolVersion::V_2026_07_28];
    match choice {
        ProtocolChoice::Initialize => ClientLifecycleMode::Initialize,
        ProtocolChoice::Discover => ClientLifecycleMode::Discover { preferred_versions: stateless() },
        ProtocolChoice::Auto => ClientLifecycleMode::Auto {
            preferred_versions: stateless(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

/// What a connection turned out to speak.
pub(super) fn found(revision: &str) -> ProtocolChoice {
    if revision >= "2026-07-28" { ProtocolChoice::Discover } else { ProtocolChoice::Initialize }
}
