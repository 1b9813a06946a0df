//! `tool-cli mcp`, as a client that speaks over its standard input and output.

use footbridge_tests::{Guest, Running};
use serde_json::{Value, json};

/// `tool-cli mcp`, as a client starts it.
pub(crate) struct StdioClient(pub(crate) Running);

impl StdioClient {
    pub(crate) fn start(guest: &Guest, words: &[&str]) -> Self {
        Self(Running::start(&mut guest.tool_cli(&[&["mcp"], words].concat())))
    }

    pub(crate) fn says(&mut self, message: &Value) {
        self.0.hears(&format!("{message}\n"));
    }

    /// The next message that fits; what comes before it is read past.
    pub(crate) fn hears(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.0.stdout.line();
            let message = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
            if fits(&message) {
                return message;
            }
        }
    }

    pub(crate) fn asks(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.says(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.hears(|message| message["id"] == id)
    }

    /// What it is told at first.
    pub(crate) fn begins(&mut self) -> Value {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let told = self.asks(1, "initialize", params)["result"].clone();
        assert_eq!(told["protocolVersion"], "2025-11-25");
        self.says(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        told
    }

    pub(crate) fn hears_of_other_tools(&mut self) {
        self.hears(|message| message["method"] == "notifications/tools/list_changed");
    }

    /// Its input ends, and so does it.
    pub(crate) fn ends(mut self) {
        self.0.hears_no_more();
        assert_eq!(self.0.ends().status, 0);
    }
}
