//! What the modes answer to `tools/list`.

use std::{io, sync::atomic::Ordering};

use serde_json::{Value, json};

use crate::{Mode, calls::GROWN, detach, tasks, vectors, wire::Wire};

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name}"), "inputSchema": {"type": "object"}})
}

/// Answers a listing of resources or templates.
pub(crate) fn resources(mode: &Mode, message: &Value, wire: &Wire) -> io::Result<()> {
    let id = &message["id"];
    let templates = message["method"] == "resources/templates/list";
    match mode.name.as_str() {
        "listings-fail" if templates && message["params"]["cursor"].is_null() => {
            wire.result(id, &json!({"resourceTemplates": [{"uriTemplate": "test:{x}", "name": "x"}], "nextCursor": "2"}))
        }
        "listings-fail" => wire.error(id, -32000, "the disk is gone\u{1b}"),
        _ if templates => wire.result(id, &json!({"resourceTemplates": []})),
        "resources-of-a-file" => {
            let text = std::fs::read_to_string(&mode.argument)?;
            let listed: Vec<Value> = text.lines().map(|uri| json!({"uri": uri, "name": uri, "description": uri})).collect();
            wire.result(id, &json!({ "resources": listed }))
        }
        _ => wire.result(
            id,
            &json!({"resources": [{"uri": "test:one", "name": "One", "unknown": 18446744073709551616_u128.to_string()}, {"name": "no uri"}]}),
        ),
    }
}

/// Answers a listing of tools.
pub(crate) fn answer(mode: &Mode, message: &Value, wire: &Wire) -> io::Result<()> {
    let id = &message["id"];
    let cursor = message["params"]["cursor"].as_str().unwrap_or_default();
    let page = match mode.name.as_str() {
        "vectors" => json!({"tools": vectors::tools(&mode.argument)}),
        "one-bad-tool" => json!({"tools": [
            tool("good"), {"name": 7}, "no object", {"name": "no-schema"}, {"inputSchema": {"type": "object"}}, tool("fine"),
        ]}),
        "broken-schema" => json!({"tools": [
            {"name": "echo", "inputSchema": {"type": "object", "properties": {"anything": {"type": "nothing"}}}}, tool("fine"),
        ]}),
        "duplicate-tools" => json!({"tools": [tool("twice"), tool("twice"), tool("once")]}),
        "endless-pages" => {
            let number: usize = cursor.parse().unwrap_or(0);
            json!({"tools": [tool(&format!("t{number}"))], "nextCursor": (number + 1).to_string()})
        }
        "number-as-cursor" => json!({"tools": [tool("first")], "nextCursor": 2}),
        "looping-cursor" if cursor.is_empty() => json!({"tools": [tool("first")], "nextCursor": "again"}),
        "looping-cursor" => json!({"tools": [tool("second")], "nextCursor": "again"}),
        "tiny-entries" => json!({"tools": vec![0; mode.number(100_000)]}),
        "list-changed" => {
            let mut tools = vec![tool("grow")];
            tools.extend((0..GROWN.load(Ordering::Relaxed)).map(|n| tool(&format!("grown{n}"))));
            json!({"tools": tools})
        }
        "listing-of-a-file" => {
            let text = std::fs::read_to_string(&mode.argument)?;
            json!({"tools": serde_json::from_str::<Value>(&text)?})
        }
        "forks-and-detaches" => json!({"tools": [tool(&format!("pid{}", detach()?))]}),
        "tasks" => json!({"tools": [tasks::tool()]}),
        "ok" => json!({"tools": [tool("echo"), tool("add"), tool("env"), tool("fail")]}),
        _ => json!({"tools": [tool("echo")]}),
    };
    match mode.name.as_str() {
        "text-id" => wire.result(&Value::from(id.to_string()), &page),
        "batch" => wire.send(&json!([{"jsonrpc": "2.0", "id": id, "result": page}])),
        _ => wire.result(id, &page),
    }
}
