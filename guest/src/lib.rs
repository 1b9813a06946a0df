//! The guest side of Footbridge: what runs inside a sandbox.
//!
//! The library is a blocking client of the bridge for programs that would otherwise start `tool-cli`; the binaries
//! are `tool-cli` and `footbridge-relay`. All of it starts no thread, knows no TLS and needs nothing else in the
//! image.
//!
//! ```no_run
//! use footbridge_guest::{Client, answers::ServerList};
//! let mut client = Client::from_env()?;
//! let servers: ServerList = client.list_servers()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`settings`]: where the bridge is and what token to show, from the environment.
//! - [`client`]: one request, one answer.
//! - [`answers`]: the shapes of answers, read leniently so that both generations of bridges fit.
//! - [`sys`]: the few calls that Rust cannot check.

pub mod answers;
pub mod client;
mod error;
mod http;
pub mod settings;
pub mod sys;
mod wire;

pub use client::Client;
pub use error::ClientError;
pub use settings::{Settings, SettingsError, Target};
