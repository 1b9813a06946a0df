//! The stages of a call, from whoever asks to the recorded answer: the only crate that makes what the next stage takes.
//!
//! A [`auth::Principal`] asks, [`resolve`] finds what is meant, [`decide`] gives a verdict, [`approval`] clears it,
//! [`admit`] admits it once that is on disk, [`upstream::Upstream`] carries it out, and `close` gives the [`reply`].
//! [`call::Stages`] is the life of a call on one screen, and all that other crates have of it: what one stage hands the
//! next has no name outside. [`sessions::Sessions`] is the table of who may call. What it needs of others it states as
//! traits: [`provider::ToolProvider`], [`approval::Approver`], [`pins::PinStore`], and the journal of the record.
//!
//! It refuses to know MCP, HTTP and SQL.

mod admit;
pub mod approval;
pub mod auth;
pub mod call;
pub mod catalogue;
pub mod catalogues;
pub mod cause;
mod close;
mod decide;
pub mod events;
pub mod low_threads;
pub mod meta;
pub mod operator;
pub mod pause;
pub mod pins;
pub mod provider;
pub mod record;
pub mod replay;
pub mod reply;
pub mod request;
pub mod resolve;
pub mod service;
mod service_call;
pub mod session;
pub mod sessions;
pub mod upstream;
pub mod watcher;

#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;
