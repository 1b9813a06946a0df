//! Programs and their confinement: started, kept, sandboxed, given a terminal, and ended with all that came of them.
//!
//! [`launch::Launcher`] starts a server or a program of the operator, [`keeper::Kept`] is one under the small process
//! that leaves nothing of it behind, [`sandbox`] is what the command of a run sees, [`pty`] its terminal. All of the
//! host's unsafe code is in [`sys`].
//!
//! It refuses to know MCP, HTTP, and what a program is for.

pub mod descriptors;
mod file_plan;
mod isolation;
pub mod keeper;
pub mod launch;
pub mod mount_table;
pub mod priority;
pub mod process;
pub mod pty;
mod refusal;
pub mod regular_file;
pub mod remove_tree;
pub mod sandbox;
pub mod signals;
pub mod sys;
pub mod terminal;
pub mod threads;
