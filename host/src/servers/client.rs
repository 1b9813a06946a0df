//! What we are to an MCP server: a client without abilities.
//!
//! Pings are answered. Everything else that a server may ask for is declined: sampling would spend the operator's
//! money, an answered roots list would replace the folders a file server was configured with, and elicitation has
//! nobody to answer it. Nothing is declared, so that servers do not offer tools that need it.

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation,
        ProtocolVersion,
    },
    service::{ClientLifecycleMode, RequestContext},
};
use serde_json::json;

use super::ProtocolChoice;

/// The handler of everything a server sends that passed the tap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quiet;

impl ClientHandler for Quiet {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("footbridge", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "elicitation/create" => Ok(CustomResult::new(json!({"action": "decline"}))),
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client does not offer that", None)),
        }
    }
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
