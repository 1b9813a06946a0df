//! The host side of Footbridge: holds MCP sessions and serves them to a sandbox through one port.
//!
//! The stages of a call are in `footbridge-calls`, what guests talk to in `footbridge-edge`, MCP servers in
//! `footbridge-mcp`; here is what puts them together: configuration, [`store`], `control`, [`harness`], `run`,
//! `serve` and the commands. It refuses to decide anything about a call.
//!
//! Other programs use it as a library: [`Server`] serves any [`ToolProvider`] on any listener and gives endpoint and
//! token. [`InProcess`] is a provider of functions, [`footbridge_mcp::Servers`] one of MCP servers; `footbridge` itself is
//! the second behind the same stages.
//!
//! ```
//! use footbridge::{InProcess, Server, ToolContext, ToolDefinition, ToolResult, VolatileJournal};
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let double = |arguments: Value, _: ToolContext| async move {
//!     ToolResult::json(json!({"twice": arguments["n"].as_i64().unwrap_or(0) * 2}))
//! };
//! let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
//! let tools = InProcess::new("maths").tool(ToolDefinition::new("double").input_schema(schema), double).build()?;
//!
//! // In earnest: FileJournal::create(folder)?
//! let server = Server::over(tools).start(VolatileJournal::new())?;
//! let served = server.serve("agent-1", &"tcp:127.0.0.1:0".parse()?)?;
//! assert!(served.environment().iter().any(|(name, _)| *name == "TOOL_CLI_PORT"));
//! server.stop().await?;
//! # Ok(())
//! # }
//! ```

pub mod approvers;
mod catalogues;
pub mod cli;
mod composition;
pub mod config;
mod control;
mod demo_server;
pub mod harness;
mod head_command;
pub mod hidden;
mod log;
mod oneshot;
mod report;
mod run;
mod serve;
mod server;
mod server_logs;
mod step;
pub mod store;
mod waiting;

pub use footbridge_audit::{FileJournal, RecordLost, Recorder, VolatileJournal};
pub use footbridge_calls::{
    pins::Pins,
    provider::{InProcess, Several, ToolContext, ToolDefinition, ToolProvider, ToolResult},
};
pub use footbridge_core::{gate::Policy, limits::Limits};
pub use footbridge_proto::{endpoint::Endpoint, token::Token};
pub use server::{Served, Server};
pub use store::sqlite::Store;
