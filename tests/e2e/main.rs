//! Footbridge's programs from outside, against real MCP servers, services and clients, a module for each part. Virtual
//! machines and container engines are programs of their own: they take what the machine has.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod agents_command;
mod approvals;
mod asking;
mod audit;
mod boundaries;
mod bwrap;
mod configuration;
mod confined;
mod conformance;
mod demo;
mod devices;
mod doctor;
mod documents;
mod elicitation;
mod endings;
mod hardening;
mod killed;
mod left_behind;
mod library;
mod mcp;
mod mcp_tool;
mod mistakes;
mod models;
mod one_shot;
mod outside;
mod pins;
mod policies;
mod presets;
mod real_servers;
mod rebinding;
mod record;
mod recorded_command;
mod recorded_wire;
mod registries;
mod running;
mod sandboxes;
mod serve;
mod server_logs;
mod sessions;
mod sockets;
mod steps;
mod troubled_servers;
mod websockets;
mod wrapped;
