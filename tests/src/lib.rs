//! The parties of the end-to-end tests, a builder each, so that a test reads as a sentence.
//!
//! [`Host`] runs the real `footbridge` with folders of its own, [`Daemon`] is its `serve`; [`Servers`] says which MCP
//! servers stand behind it; [`Guest`] talks to it, with the real `tool-cli` or in plain HTTP; [`Person`] sits at a
//! terminal; [`Tape`] is what a misbehaving server heard. Everything waits for events with a deadline, and nothing for
//! time to pass. When a [`Host`] goes, no process that came of it may be left: that is checked at the end of every
//! test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "what fails here fails a test"
)]

mod authority;
mod caller;
mod daemon;
mod docker_daemon;
mod engine;
pub mod figures;
mod guest;
mod host;
mod kept;
#[path = "../terminal.rs"]
mod local_terminal;
pub mod microvm;
mod model;
mod person;
pub mod processes;
pub mod programs;
mod real;
pub mod recipes;
mod running;
pub mod sandboxes;
mod servers;
mod sys;
mod tape;
pub mod tasks;
pub mod vectors;

use std::time::Duration;

pub use authority::Authority;
pub use daemon::{Daemon, goes};
pub use engine::Engine;
pub use guest::{Address, Answer, Guest, Sent};
pub use host::{Bridge, Host, NOBODY};
pub use kept::{HttpClient, KeptConnection};
pub use model::{Heard, ScriptedModel, Step};
pub use person::Person;
pub use real::{HttpServer, Real, skipped};
pub use running::{Ran, Running, Stream, starting};
pub use servers::Servers;
pub use tape::Tape;

/// Longest that a test waits for something that should happen at once, on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The Rust of the documentation, compiled. A test sees to it that no page with Rust is missing.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
pub struct Documented;
