//! Environment variables that the two sides and the public clients agree on, and their defaults.

/// The bridge's TCP port, 1 to 65535; anything else means [`DEFAULT_PORT`].
pub const PORT: &str = "TOOL_CLI_PORT";
/// The bridge's host; default [`DEFAULT_HOST`].
pub const HOST: &str = "TOOL_CLI_HOST";
/// The bearer token.
pub const TOKEN: &str = "TOOL_CLI_TOKEN";
/// A file that holds the bearer token, to keep it out of the environment.
pub const TOKEN_FILE: &str = "TOOL_CLI_TOKEN_FILE";
/// Absolute path of a Unix socket to use instead of TCP.
pub const SOCKET: &str = "TOOL_CLI_SOCKET";
/// The user whose bridge may listen on the TCP port, besides root, the client's own and the relay's in a sandbox.
pub const LISTENER_UID: &str = "TOOL_CLI_LISTENER_UID";
/// How long a call may take, in milliseconds.
pub const TIMEOUT_MS: &str = "TOOL_CLI_TIMEOUT_MS";
/// `1` turns on the detailed exit codes of [`crate::exit`].
pub const EXIT_CODES: &str = "TOOL_CLI_EXIT_CODES";
/// [`STYLE_AGENT`] turns on the forms that cost an agent little to read.
pub const STYLE: &str = "TOOL_CLI_STYLE";
/// The value of [`STYLE`] for agents.
pub const STYLE_AGENT: &str = "agent";
/// Where the relay connects to; the same as `--to`.
pub const RELAY_TO: &str = "FOOTBRIDGE_TO";
/// Where the relay listens; the same as `--listen`.
pub const RELAY_LISTEN: &str = "FOOTBRIDGE_LISTEN";

/// Every variable of this prefix is stripped from the environment of MCP servers.
pub const GUEST_PREFIX: &str = "TOOL_CLI_";

/// The port of the bridge inside a sandbox.
pub const DEFAULT_PORT: u16 = 7179;
/// The address of the bridge inside a sandbox.
pub const DEFAULT_HOST: &str = "127.0.0.1";
/// Default of [`TIMEOUT_MS`], milliseconds.
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// Largest value of [`TIMEOUT_MS`], milliseconds.
pub const MAX_TIMEOUT_MS: u64 = 300_000;
