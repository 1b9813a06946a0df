//! Connections to the outside: to what the operator configured, and to nothing else.
//!
//! What all of them share: [`CheckedResolver`] leaves out the addresses that a name may not lead to; [`tls()`] says which
//! certificates are trusted; [`tcp()`] has it noticed that the other end is gone; [`InterimAnswers`] bounds what comes
//! before an answer.
//!
//! [`web`] is the HTTP client of one address, for MCP servers and whoever is asked for approvals: `address` says which it
//! may have, `connect` where its connections lead. Services have a client of their own, for bodies that pass.
//!
//! It refuses to know who asks, what is sent, and what an answer means.

mod address;
mod connect;
mod interim;
mod resolver;
mod tcp;
mod tls;
pub mod web;

pub use address::{BadAddress, HttpSpec};
pub use interim::{InterimAnswers, head_bytes};
pub use resolver::{CheckedResolver, Lookup, OnlyPrivate, SystemLookup};
pub use tcp::tcp;
pub use tls::tls;
