//! The edge as a hostile guest sees it: raw bytes over a socket, to a harness with the demo server behind it.
//!
//! `bridge` is the harness and `client` a client that says whatever it is told to. Each other file is one kind of
//! attack.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says no more than that it failed, and where"
)]

mod bodies;
mod bridge;
mod client;
mod crowds;
mod framing;
mod fuzz;
mod names;
mod policies;
mod process;
mod prompts;
mod schemas;
mod services;
mod sessions;
mod slowness;
mod streaming;
mod tokens;
mod world;
