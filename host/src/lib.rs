//! The host side of Footbridge: holds MCP sessions and serves them to a sandbox through one port.
//!
//! A request goes one way through the stages, each a module: [`listener`], [`edge`] (head, then JSON-RPC), [`auth`],
//! [`resolve`], [`gate`], [`approval`], [`audit`], [`provider`], [`audit`]. [`call`] shows the life of one call.
//!
//! Other programs use it as a library: [`Server`] serves any [`ToolProvider`] on any listener and gives endpoint and
//! token. [`InProcess`] is a provider of functions, [`servers::Servers`] one of MCP servers; `footbridge` itself is
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
//! server.stop().await;
//! # Ok(())
//! # }
//! ```

pub mod approval;
pub mod audit;
pub mod auth;
pub mod budget;
pub mod call;
pub mod catalogue;
pub mod cli;
pub mod config;
pub mod control;
pub mod demo_server;
pub mod digest;
pub mod edge;
pub mod gate;
pub mod harness;
pub mod hidden;
pub mod keeper;
pub mod limits;
pub mod listener;
pub mod log;
pub mod pins;
pub mod process;
pub mod provider;
pub mod pty;
pub mod redact;
pub mod report;
pub mod resolve;
pub mod run;
pub mod sandbox;
pub mod schema;
pub mod secret;
pub mod serve;
pub mod server;
pub mod servers;
pub mod session;
pub(crate) mod signals;
pub mod store;
pub mod sys;
pub mod watcher;

#[cfg(test)]
#[path = "../tests/skipped/mod.rs"]
mod skipped;

pub use audit::{FileJournal, Recorder, VolatileJournal};
pub use footbridge_proto::{endpoint::Endpoint, token::Token};
pub use gate::Policy;
pub use limits::Limits;
pub use pins::Pins;
pub use provider::{InProcess, Several, ToolContext, ToolDefinition, ToolProvider, ToolResult};
pub use server::{Served, Server};
pub use store::Store;
