//! The mode whose tool has to be called as a task. What becomes of it is said by the call's arguments: `steps` looks that
//! find it working, a `question` to a person, and its `end` (`completed`, if it is missing).

use std::{
    io::{self, Lines, StdinLock},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use crate::wire::{Wire, text};

/// The one task: the call's parameters, how often it was looked at, what it was told, and whether it was cancelled.
static TASK: Mutex<Task> = Mutex::new(Task { params: Value::Null, looks: 0, told: Value::Null, is_cancelled: false });

fn task_now() -> MutexGuard<'static, Task> {
    TASK.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Task {
    params: Value,
    looks: u64,
    told: Value,
    is_cancelled: bool,
}

impl Task {
    fn argument(&self, name: &str) -> &Value {
        &self.params["arguments"][name]
    }

    fn state(&self) -> Value {
        let steps = self.argument("steps").as_u64().unwrap_or(0);
        let is_asking = !self.argument("question").is_null() && self.told.is_null();
        let (status, message) = match self.argument("end").as_str() {
            _ if self.is_cancelled => ("cancelled", "as you like".to_owned()),
            _ if self.looks < steps => ("working", format!("step {}", self.looks)),
            _ if is_asking => ("input_required", "a person is asked".to_owned()),
            Some("cancelled") => ("cancelled", "no time".to_owned()),
            Some("rubbish") => ("who knows", String::new()),
            Some("failed") => ("failed", "it failed".to_owned()),
            _ => ("completed", "done".to_owned()),
        };
        json!({
            "taskId": "the task", "status": status, "statusMessage": message, "createdAt": "2025-11-25T10:30:00Z",
            "lastUpdatedAt": "2025-11-25T10:30:00Z", "ttl": self.params["task"]["ttl"], "pollInterval": 100,
        })
    }
}

pub(crate) fn tool() -> Value {
    json!({"name": "work", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}})
}

pub(crate) fn capabilities() -> Value {
    json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}})
}

/// Answers a call: with a task, if it was asked for one.
pub(crate) fn call(params: &Value, id: &Value, wire: &Wire) -> io::Result<()> {
    if params["task"].is_null() {
        return wire.error(id, -32601, "work has to be a task");
    }
    let mut task = task_now();
    *task = Task { params: params.clone(), looks: 0, told: Value::Null, is_cancelled: false };
    let created = if *task.argument("end") == "unreadable" { json!({"taskId": 7}) } else { task.state() };
    wire.result(id, &json!({ "task": created }))
}

/// Answers what is asked about the task. False if it is something else.
pub(crate) fn answer(message: &Value, wire: &Wire, lines: &mut Lines<StdinLock<'static>>) -> io::Result<bool> {
    let id = &message["id"];
    match message["method"].as_str() {
        Some("tasks/get") => look(id, wire)?,
        Some("tasks/result") => result(id, wire, lines)?,
        Some("tasks/cancel") => {
            task_now().is_cancelled = true;
            wire.result(id, &task_now().state())?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn look(id: &Value, wire: &Wire) -> io::Result<()> {
    let mut task = task_now();
    task.looks += 1;
    // What progress of the call is told by goes on being so.
    if task.looks == 1 {
        wire.progress(&task.params["_meta"]["progressToken"], 1000.0)?;
    }
    wire.result(id, &task.state())
}

fn result(id: &Value, wire: &Wire, lines: &mut Lines<StdinLock<'static>>) -> io::Result<()> {
    let (question, end) = {
        let task = task_now();
        (task.argument("question").clone(), task.argument("end").clone())
    };
    if !question.is_null() {
        wire.send(&json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question}))?;
        for line in lines.by_ref() {
            let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
            if message["id"] == "q" {
                task_now().told = message["result"].clone();
                break;
            }
            if message["method"] == "tasks/get" {
                look(&message["id"], wire)?;
            }
        }
    }
    if end == "failed" {
        return wire.error(id, -32000, "it failed, as was said");
    }
    let task = task_now();
    let mut result = text("worked");
    result["structuredContent"] = json!({"ttl": task.params["task"]["ttl"], "looks": task.looks, "told": task.told});
    result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": "the task"}});
    wire.result(id, &result)
}
