//! The guest side of Footbridge: what runs inside a sandbox.
//!
//! The library is a blocking client of the bridge for programs that would otherwise start `tool-cli`; the binaries
//! are `tool-cli` and `footbridge-relay`. All of it starts no thread, knows no TLS and needs nothing else in the
//! image.
//!
//! ```no_run
//! use footbridge_guest::Client;
//! use serde_json::json;
//!
//! let mut client = Client::from_env()?;
//! for server in client.servers()? {
//!     println!("{} has {} tools", server.name, server.tool_count);
//! }
//! match client.call("weather", "get_weather", &json!({"city": "Bern"})) {
//!     Ok(result) if result.is_error => println!("the tool failed: {}", result.text()),
//!     Ok(result) => println!("{}", result.text()),
//!     Err(error) => println!("{error} ({:?}, record {:?})", error.reason(), error.audit_id()),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`settings`]: where the bridge is and what token to show, from the environment.
//! - [`client`]: one request, one answer.
//! - [`events`]: what happens before the answer, for [`Client::call_watched`].
//! - [`input`]: input that is read while requests are under way.
//! - [`many`]: requests side by side, on connections that are kept.
//! - [`answers`]: the shapes of answers, read leniently so that both generations of bridges fit.
//! - [`sockets`]: whose a socket is that the kernel lists.
//! - [`stdio_mcp`]: MCP over standard input and output, for clients that start a program.
//! - [`sys`]: the few calls that Rust cannot check.

pub mod client;
mod error;
pub mod events;
mod exchange;
mod http;
pub mod input;
pub mod many;
mod methods;
mod request;
mod response;
pub mod settings;
mod socket_diag;
pub mod sockets;
mod sse;
pub mod stdio_mcp;
pub mod sys;
mod wire;

pub use client::Client;
pub use error::ClientError;
pub use events::Event;
pub use footbridge_cli::answers;
pub use footbridge_proto::{rpc::Reason, token::Token};
pub use settings::{BridgeAddress, ClientSettings, SettingsError};
