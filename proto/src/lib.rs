//! The contract between the two sides of Footbridge: what crosses the one port, and the names that people type.
//!
//! It knows no I/O, no async and no clock, so that both sides, and anyone who reads it, can rely on it as data.
//!
//! - [`approval`]: how an approval is, in a word.
//! - [`endpoint`]: where to listen and where to connect, as text.
//! - [`events`]: streams of server-sent events, from bytes in any pieces.
//! - [`json`]: the strict reading of JSON that a hostile sender makes necessary, and its canonical text.
//! - [`rpc`]: the JSON-RPC envelope, error codes and reasons.
//! - [`wire`]: methods, and what their answers look like.
//! - [`exit`]: the exit codes of `tool-cli`.
//! - [`text`]: making somebody else's text safe to show.
//! - [`token`]: the bearer token.
//! - [`vars`]: environment variables and defaults.

pub mod approval;
pub mod endpoint;
pub mod events;
pub mod exit;
pub mod json;
pub mod rpc;
pub mod text;
pub mod token;
pub mod vars;
pub mod wire;
