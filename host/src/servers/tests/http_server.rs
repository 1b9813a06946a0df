//! A tiny MCP server over HTTP on loopback, with traps.
