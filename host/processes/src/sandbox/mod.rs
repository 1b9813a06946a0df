//! Where CMD of `footbridge run` lives: what it sees, what it inherits, and what it can reach.
//!
//! Each kind of sandbox gives a [`crate::keeper::KeptCommand`], ready for streams and spawning. A sandbox knows paths
//! and names and nothing of sessions, servers or policies.

pub mod bwrap;
pub mod container;
pub mod engine;
pub mod engine_args;
mod environment;
pub mod files;
mod git_index;
pub mod git_left;
pub mod git_links;
pub mod git_links_aside;
mod git_names;
mod git_replaced;
mod git_rerere;
mod git_settings;
pub mod guarded;
pub mod held_folder;
pub mod kept_names;
pub mod layer;
pub mod net;
pub mod new_links;
pub mod none;
pub mod places;
pub mod sockets;
pub mod streams;

pub use environment::{Asked, EnvironmentError, Environments, SandboxKind, environment};
pub use footbridge_domains::{FilterError, Nesting, filter_bytes};
