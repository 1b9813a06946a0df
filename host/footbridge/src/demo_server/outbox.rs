//! The way out: whole lines, one at a time, whichever thread they come from.

use std::{
    io::{self, Write},
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::message::RpcError;

/// Writes messages. Shared by all threads.
pub(super) struct Outbox<W> {
    output: Mutex<W>,
}

impl<W: Write> Outbox<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output: Mutex::new(output) }
    }

    /// Answers a request.
    pub(super) fn answer(&self, id: &Value, result: &Value) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// Answers with an error; without an id where none could be read.
    pub(super) fn refuse(&self, id: Option<&Value>, error: &RpcError) -> io::Result<()> {
        let error = json!({"code": error.code, "message": error.message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    /// Says something that nobody answers.
    pub(super) fn notify(&self, method: &str, params: &Value) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn send(&self, message: &Value) -> io::Result<()> {
        let line = format!("{message}\n");
        // A thread that panicked while it wrote left at worst half a line behind.
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(line.as_bytes())?;
        output.flush()
    }
}
