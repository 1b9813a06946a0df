//! What the modes do when a tool is called.

use std::{
    io::{self, Lines, StdinLock, Write},
    process::{Command, ExitCode, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    Mode, elicits, tasks, vectors,
    wire::{Wire, text},
};

/// How many tools the mode `list-changed` has grown.
pub(crate) static GROWN: AtomicUsize = AtomicUsize::new(0);

/// Answers a call, or not. A code ends the program.
pub(crate) fn answer(
    mode: &Mode,
    message: &Value,
    wire: &Wire,
    lines: &mut Lines<StdinLock<'static>>,
) -> io::Result<Option<ExitCode>> {
    let id = &message["id"];
    let params = &message["params"];
    match mode.name.as_str() {
        "exits-mid-call" => {
            io::stderr().write_all(b"Segmentation fault\n")?;
            return Ok(Some(ExitCode::from(139)));
        }
        "grandchild-holds-stdout" => {
            Command::new("sleep").arg("600").stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
            return Ok(Some(ExitCode::from(5)));
        }
        "long-line" => long_line(mode.number(20 * 1024 * 1024), id, wire)?,
        "endless-line" => {
            wire.part(b"{\"result\":\"")?;
            loop {
                wire.part(&[b'x'; 65536])?;
            }
        }
        "long-result" => wire.result(id, &text(&"y".repeat(mode.number(1024 * 1024))))?,
        "wrong-id" => wire.result(&json!(4_000_000), &text("stolen"))?,
        "text-id" => wire.result(&Value::from(id.to_string()), &text("as text"))?,
        "duplicate-answers" => {
            for n in 0..3 {
                wire.result(id, &text(&format!("answer {n}")))?;
            }
        }
        "floods-progress" | "slow-with-progress" | "progress-without-end" => progress(mode, params, id, wire)?,
        "never-answers-call" => {}
        "broken-json" => {
            wire.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[").as_bytes())?
        }
        "not-utf-8" => {
            let before = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"text\":\"");
            wire.raw(&[before.as_bytes(), b"\xff\xfe\"}]}}"].concat())?
        }
        "not-an-object" => wire.result(id, &json!([1, 2]))?,
        "list-changed" => {
            GROWN.fetch_add(1, Ordering::Relaxed);
            wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))?;
            wire.result(id, &text("grown"))?;
        }
        "listing-of-a-file" => {
            // What it was given, if that was anything.
            let given = params["arguments"].as_object().filter(|given| !given.is_empty());
            wire.result(id, &text(&given.map_or("called".to_owned(), |given| json!(given).to_string())))?;
            if params["name"] == "nudge" {
                wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))?;
            }
        }
        "asks-back" => asks_back(id, wire, lines)?,
        "wants-input" => elicits::wants(params, id, wire)?,
        "tells-meta" => wire.result(id, &json!({"content": [], "structuredContent": params["_meta"]}))?,
        "tasks" => tasks::call(params, id, wire)?,
        "elicits" => elicits::answer(params, id, wire, lines)?,
        "asks-without-end" => loop {
            wire.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}))?;
        },
        "big-integers" => wire.raw(
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"new\",\"x\":1e400}}],\
                 \"structuredContent\":{{\"n\":123456789012345678901234567890}},\"unheard\":{{\"of\":0.10}}}}}}"
            )
            .as_bytes(),
        )?,
        "deep-json" => {
            let depth = mode.number(100_000);
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            wire.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"deep\":{deep}}}}}").as_bytes())?;
        }
        "batch" => wire.send(&json!([
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}},
            {"jsonrpc": "2.0", "id": id, "result": text("in a batch")},
        ]))?,
        "vectors" => match vectors::call(params["name"].as_str().unwrap_or_default(), &params["arguments"]) {
            Ok(result) => wire.result(id, &result)?,
            Err(message) => wire.error(id, -32603, message)?,
        },
        _ => plain(params, id, wire)?,
    }
    Ok(None)
}

fn plain(params: &Value, id: &Value, wire: &Wire) -> io::Result<()> {
    let arguments = &params["arguments"];
    match params["name"].as_str() {
        Some("env") => {
            let all: Vec<String> = std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
            wire.result(id, &text(&all.join("\n")))
        }
        Some("add") => {
            let sum = arguments["a"].as_i64().unwrap_or(0) + arguments["b"].as_i64().unwrap_or(0);
            wire.result(id, &text(&sum.to_string()))
        }
        Some("fail") => wire.error(id, -32000, "it failed"),
        _ => wire.result(id, &text(&arguments.to_string())),
    }
}

/// A line of about `length` bytes in small pieces, its id at the end.
fn long_line(length: usize, id: &Value, wire: &Wire) -> io::Result<()> {
    wire.part(b"{\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"")?;
    for _ in 0..length.div_ceil(65536) {
        wire.part(&[b'z'; 65536])?;
    }
    wire.raw(format!("\"}}]}},\"jsonrpc\":\"2.0\",\"id\":{id}}}").as_bytes())
}

fn progress(mode: &Mode, params: &Value, id: &Value, wire: &Wire) -> io::Result<()> {
    let token = &params["_meta"]["progressToken"];
    let (steps, pause) = match mode.name.as_str() {
        "floods-progress" => (mode.number(100_000), Duration::ZERO),
        "slow-with-progress" => (mode.number(10), Duration::from_millis(50)),
        _ => (usize::MAX, Duration::from_millis(20)),
    };
    let mut done = 0.0;
    for _ in 0..steps {
        if !pause.is_zero() {
            thread::sleep(pause);
        }
        done += 1.0;
        wire.progress(token, done)?;
    }
    wire.result(id, &text("done at last"))
}

/// Asks the client for everything it might offer, and answers the call with what it was told.
fn asks_back(id: &Value, wire: &Wire, lines: &mut Lines<StdinLock<'static>>) -> io::Result<()> {
    let requests = [
        ("ping", json!({})),
        ("roots/list", json!({})),
        ("sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
        (
            "elicitation/create",
            json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"password": {"type": "string"}}}}),
        ),
    ];
    let mut told = serde_json::Map::new();
    for (method, params) in requests {
        wire.send(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))?;
        for line in lines.by_ref() {
            let Ok(answer) = serde_json::from_str::<Value>(&line?) else { continue };
            if answer["id"] == method {
                let what = answer.get("result").or(answer.get("error")).cloned().unwrap_or_default();
                told.insert(method.to_owned(), what);
                break;
            }
        }
    }
    wire.result(id, &json!({"content": [], "structuredContent": told}))
}
