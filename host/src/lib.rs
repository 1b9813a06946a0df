//! The host side of Footbridge: holds MCP sessions and serves them to a sandbox through one port.
//!
//! A request goes one way through the stages, each a module: [`listener`], [`edge`] (head, then JSON-RPC), [`auth`],
//! [`resolve`], [`gate`], [`audit`], [`servers`], [`audit`]. [`call`] shows the life of one call.

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
pub mod servers;
pub mod session;
pub mod store;
pub mod sys;

#[cfg(test)]
#[path = "../tests/skipped/mod.rs"]
mod skipped;
