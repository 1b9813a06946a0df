//! MCP servers.
mod outcome;
mod spec;
pub use outcome::*;
pub use spec::*;
