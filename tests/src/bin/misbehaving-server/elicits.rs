//! The mode that asks a person, whenever and as often as it is told to.

use std::io::{self, Lines, StdinLock};

use serde_json::{Value, json};

use crate::wire::Wire;

/// Asks each of the call's `questions`, one after the other, and answers the call with what it was told. A call that
/// comes meanwhile is told what became of its own question, or with `takeBack` that the first one was taken back. One with
/// `unanswered` has no answer, whoever waits for it.
pub(crate) fn answer(params: &Value, id: &Value, wire: &Wire, lines: &mut Lines<StdinLock<'static>>) -> io::Result<()> {
    if params["arguments"]["unanswered"] == true {
        return Ok(());
    }
    let mut told = Vec::new();
    for (number, question) in params["arguments"]["questions"].as_array().into_iter().flatten().enumerate() {
        let asked = format!("q{number}");
        ask(&asked, question, wire)?;
        let mut other = Value::Null;
        for line in lines.by_ref() {
            let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
            if message["id"] == asked.as_str() {
                told.push(what(&message));
                break;
            }
            if message["id"] == "other" {
                result(&other, &what(&message), wire)?;
            } else if message["params"]["arguments"]["takeBack"] == true {
                let params = json!({"requestId": asked, "reason": "no more"});
                wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))?;
                result(&message["id"], &json!("taken back"), wire)?;
            } else if message["method"] == "tools/call" {
                other = message["id"].clone();
                ask("other", question, wire)?;
            }
        }
    }
    result(id, &json!(told), wire)
}

/// Answers that each of the call's `rounds` is wanted first, one after the other, and in the end what came of them: the
/// answers to the last, and how often it was asked. The round is in the state alone.
pub(crate) fn wants(params: &Value, id: &Value, wire: &Wire) -> io::Result<()> {
    let round =
        params["requestState"].as_str().map_or(0, |state| state.trim_start_matches("round ").parse().unwrap_or(0));
    let Some(wanted) = params["arguments"]["rounds"].get(round) else {
        let told = json!({"rounds": round, "answers": params["inputResponses"], "arguments": params["arguments"]});
        return wire.result(id, &json!({"resultType": "complete", "content": [], "structuredContent": told}));
    };
    let state = format!("round {}", round + 1);
    let mut result = json!({"resultType": "input_required", "requestState": state});
    if !wanted.is_null() {
        result["inputRequests"] = wanted.clone();
    }
    wire.result(id, &result)
}

/// The result, or the error.
fn what(answer: &Value) -> Value {
    answer.get("result").or(answer.get("error")).cloned().unwrap_or_default()
}

fn ask(id: &str, question: &Value, wire: &Wire) -> io::Result<()> {
    wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": question}))
}

fn result(id: &Value, told: &Value, wire: &Wire) -> io::Result<()> {
    wire.result(id, &json!({"content": [], "structuredContent": {"told": told}}))
}
