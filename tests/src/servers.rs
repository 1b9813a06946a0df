//! A servers file in the making.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::{programs, tape::Tape};

/// The MCP servers behind a host, as its servers file names them.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    entries: Map<String, Value>,
}

impl Servers {
    /// No server.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The demo server, as `demo`.
    #[must_use]
    pub fn demo() -> Self {
        Self::none().and("demo", json!({"command": programs::footbridge(), "args": ["demo-server"]}))
    }

    /// The three servers of the recorded vectors.
    #[must_use]
    pub fn recorded() -> Self {
        ["weather", "github", "empty"]
            .into_iter()
            .fold(Self::none(), |all, name| all.misbehaving(name, &["vectors", name]))
    }

    /// One more, as it would be written.
    #[must_use]
    pub fn and(mut self, name: &str, entry: Value) -> Self {
        self.entries.insert(name.to_owned(), entry);
        self
    }

    /// One more that misbehaves: its mode, and what belongs to that.
    #[must_use]
    pub fn misbehaving(self, name: &str, mode: &[&str]) -> Self {
        self.and(name, json!({"command": programs::misbehaving_server(), "args": mode}))
    }

    /// One more that misbehaves, and keeps a tape of what it hears.
    #[must_use]
    pub fn recording(self, name: &str, mode: &[&str], tape: &Tape) -> Self {
        let env = json!({"MISBEHAVING_RECORD": tape.path()});
        self.and(name, json!({"command": programs::misbehaving_server(), "args": mode, "env": env}))
    }

    /// The text of the file. Every program among them gets the folder of its test into its environment, so that it
    /// can be found again.
    #[must_use]
    pub fn text(&self, folder: &Path) -> String {
        let mut entries = self.entries.clone();
        for entry in entries.values_mut().filter(|entry| entry.get("command").is_some()) {
            entry["env"]["TEST_FOLDER"] = json!(folder);
        }
        json!({ "mcpServers": entries }).to_string()
    }
}
