//! Writing messages, well-formed and otherwise, one whole line at a time.

use std::io::{self, Write};

use serde_json::{Value, json};

/// Standard output.
pub(crate) struct Wire(());

impl Wire {
    pub(crate) fn new() -> Self {
        Self(())
    }

    /// Bytes and a line break, as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Bytes without a line break.
    pub(crate) fn part(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    pub(crate) fn send(&self, message: &Value) -> io::Result<()> {
        self.raw(message.to_string().as_bytes())
    }

    pub(crate) fn result(&self, id: &Value, result: &Value) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    pub(crate) fn error(&self, id: &Value, code: i64, message: &str) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    pub(crate) fn progress(&self, token: &Value, progress: f64) -> io::Result<()> {
        let params = json!({"progressToken": token, "progress": progress, "message": "working"});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
    }
}

/// A result of one text.
pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
