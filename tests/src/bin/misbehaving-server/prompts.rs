//! Prompts of the mode `prompts`: some that are usable, some that are none, and answers of every quality.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use crate::wire::Wire;

/// How many prompts have grown.
static GROWN: AtomicUsize = AtomicUsize::new(0);

/// Answers `prompts/list`, on two pages.
pub(crate) fn list(message: &Value, wire: &Wire) -> io::Result<()> {
    let first = json!([
        {"name": "told", "title": "Told", "arguments": [{"name": "a", "required": true}, {"name": "b"}]},
        {"name": "rubbish"}, {"name": 7}, "no object", {"title": "no name"}, {"name": "told"},
        {"name": "bad-arguments", "arguments": "all"}, {"name": "nameless-argument", "arguments": [{"required": true}]},
    ]);
    let page = if message["params"]["cursor"] == "2" {
        let mut names = vec!["env".to_owned(), "cut".to_owned(), "grow".to_owned(), "refused".to_owned()];
        names.extend((0..GROWN.load(Ordering::Relaxed)).map(|n| format!("grown{n}")));
        json!({"prompts": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
    } else {
        json!({"prompts": first, "nextCursor": "2"})
    };
    wire.result(&message["id"], &page)
}

/// Answers `prompts/get`.
pub(crate) fn get(message: &Value, wire: &Wire) -> io::Result<()> {
    let (id, params) = (&message["id"], &message["params"]);
    match params["name"].as_str().unwrap_or_default() {
        "rubbish" => wire.result(id, &json!([1, 2])),
        "cut" => wire.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"messages\":[").as_bytes()),
        "refused" => wire.error(id, -32602, "no such prompt"),
        "env" => {
            let all = std::env::vars().map(|(name, value)| format!("{name}={value}\n")).collect::<String>();
            wire.result(id, &said(&all))
        }
        "grow" => {
            GROWN.fetch_add(1, Ordering::Relaxed);
            wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}))?;
            wire.result(id, &said("grown"))
        }
        _ => wire.result(id, &said(&params["arguments"].to_string())),
    }
}

fn said(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "unheard": 0.10})
}

/// Answers `completion/complete` with what it was asked; the argument `rubbish` with what is no answer.
pub(crate) fn complete(message: &Value, wire: &Wire) -> io::Result<()> {
    let (id, params) = (&message["id"], &message["params"]);
    if params["argument"]["name"] == "rubbish" {
        return wire.result(id, &json!("rubbish"));
    }
    let asked = json!([params["ref"], params["argument"], params["context"]]);
    wire.result(id, &json!({"completion": {"values": [asked.to_string()], "hasMore": true}}))
}
