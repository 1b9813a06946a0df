//! What the server does with each message.

use std::{
    io::{self, Write},
    thread::Scope,
};

use serde_json::{Map, Value, json};

use super::{
    arguments::Arguments,
    clock::Clock,
    message::{Call, Message, RpcError},
    notes::Notes,
    outbox::Outbox,
    resources,
    slow::Counts,
    tools::{self, Done},
};

/// Revisions of MCP that it speaks, the newest first. What it says is the same in all of them.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str =
    "Made-up weather, the time, notes that are forgotten when the server ends, and a slow count.";

/// A server and its state.
pub(super) struct Server<'scope, 'env, W, C> {
    outbox: &'env Outbox<W>,
    counts: Counts<'scope, 'env, W>,
    notes: Notes,
    clock: C,
}

impl<'scope, 'env, W: Write + Send, C: Clock> Server<'scope, 'env, W, C> {
    pub(super) fn new(outbox: &'env Outbox<W>, scope: &'scope Scope<'scope, 'env>, clock: C) -> Self {
        Self { outbox, counts: Counts::new(outbox, scope), notes: Notes::default(), clock }
    }

    /// Takes one message, and answers it unless a count does that later.
    pub(super) fn take(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Answer => Ok(()),
            Message::Notification(call) => {
                if call.method == "notifications/cancelled"
                    && let Some(id) = call.params.get("requestId")
                {
                    self.counts.cancel(id);
                }
                Ok(())
            }
            Message::Request(id, Call { method, params }) if method == "tools/call" => self.call_tool(&id, params),
            Message::Request(id, call) => match self.look_up(&call) {
                Ok(result) => self.outbox.answer(&id, &result),
                Err(error) => self.outbox.refuse(Some(&id), &error),
            },
        }
    }

    /// Requests that change nothing.
    fn look_up(&self, call: &Call) -> Result<Value, RpcError> {
        match call.method.as_str() {
            "initialize" => Ok(initialize(&call.params)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": tools::definitions()})),
            "resources/list" => Ok(resources::list(&self.notes)),
            "resources/templates/list" => Ok(resources::templates()),
            "resources/read" => resources::read(&self.notes, &call.params),
            method => Err(RpcError::method_not_found(method)),
        }
    }

    fn call_tool(&mut self, id: &Value, mut params: Map<String, Value>) -> io::Result<()> {
        let Some(Value::String(name)) = params.remove("name") else {
            return self.outbox.refuse(Some(id), &RpcError::invalid_params("\"name\" is missing"));
        };
        let arguments = params.remove("arguments");
        let done = Arguments::new(arguments)
            .and_then(|arguments| tools::call(&name, arguments, &mut self.notes, &self.clock))
            .unwrap_or_else(|wrong| Done::Failed(wrong.to_string()));
        match done {
            Done::Unknown => {
                let error = RpcError::invalid_params(format!("Unknown tool: {name}"));
                self.outbox.refuse(Some(id), &error)
            }
            Done::Failed(why) => self.outbox.answer(id, &tools::failure(&why.to_string())),
            Done::Structured(value) => self.outbox.answer(id, &tools::structured(&value)),
            Done::NotesChanged(value) => {
                // Before the answer: who has read the answer may rely on having been told.
                self.outbox.notify("notifications/resources/list_changed", &json!({}))?;
                self.outbox.answer(id, &tools::structured(&value))
            }
            Done::Later { to, step } => {
                let progress = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
                match self.counts.start(super::slow::Count { to, step, id: id.clone(), progress }) {
                    Ok(()) => Ok(()),
                    Err(why) => self.outbox.answer(id, &tools::failure(&why.to_string())),
                }
            }
        }
    }
}

/// Agrees to the client's revision where it is known, and offers the newest where it is not.
fn initialize(params: &Map<String, Value>) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let agreed = REVISIONS.iter().find(|revision| asked == Some(**revision)).unwrap_or(&REVISIONS[0]);
    json!({
        "protocolVersion": agreed,
        "capabilities": {"tools": {"listChanged": false}, "resources": {"subscribe": false, "listChanged": true}},
        "serverInfo": {
            "name": "footbridge-demo",
            "title": "Footbridge demo server",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "instructions": INSTRUCTIONS,
    })
}
