//! The forms of `tool-cli` that cost an agent little: what is asked for, and what is printed of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;

use bridge::{Bridge, id_of, ok, run, tool_cli};
use serde_json::{Value, json};

/// A bridge that answers each method with its own result, and others with an error.
fn answering(results: Value) -> Bridge {
    Bridge::raw(move |got| {
        let answer = match results.get(got.method()) {
            Some(result) => json!({"jsonrpc": "2.0", "result": result, "id": id_of(got)}),
            None => {
                json!({"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": id_of(got)})
            }
        };
        ok(&answer)
    })
}

fn params(bridge: &Bridge, at: usize) -> Value {
    let got = bridge.got.lock().unwrap()[at].clone();
    serde_json::from_str::<Value>(&got.body).unwrap()["params"].clone()
}

fn weather() -> Value {
    json!({"name": "get_weather", "description": "Current weather. It is measured\nevery hour.",
        "inputSchema": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "minLength": 2, "description": "Which"},
            "days": {"type": "integer", "default": 1, "maximum": 12345678901234567890123.0},
            "unit": {"enum": ["metric", "imperial"]}}},
        "outputSchema": {"type": "object", "properties": {"tempC": {"type": "number"}}},
        "annotations": {"readOnlyHint": true}})
}

const SIGNATURE: &str = r#"get_weather(city: str, days?: int = 1, unit?: "metric"|"imperial")"#;

#[test]
fn an_agent_reads_a_signature_a_tool_and_a_script_what_it_always_read() {
    let tools = json!({"server": "w", "tools": [weather(), {"name": "old"}], "decisions": {"get_weather": "ask"},
        "partial": ["one is left out"]});
    let bridge = answering(json!({"listTools": tools, "describeTool": weather()}));
    let (code, stdout, stderr) = run(tool_cli(&bridge, &["w"]).env("TOOL_CLI_STYLE", "agent"));
    let expected = format!("w — 2 tool(s): tool-cli w TOOL ARGS\n{SIGNATURE} [asks] - Current weather\nold(...)\n");
    assert_eq!((code, stdout), (Some(0), expected), "{stderr}");
    assert_eq!(stderr, "Warning: w — one is left out\n");
    assert_eq!(params(&bridge, 0), json!({"server": "w", "full": true}));
    for style in ["", "other"] {
        let (_, stdout, _) = run(tool_cli(&bridge, &["w"]).env("TOOL_CLI_STYLE", style));
        assert!(stdout.starts_with("w — 2 tool(s):\n  get_weather                    Current"), "{stdout}");
        assert_eq!(params(&bridge, 1), json!({"server": "w"}));
    }
    let (_, stdout, _) = run(tool_cli(&bridge, &["w", "--json"]).env("TOOL_CLI_STYLE", "agent"));
    assert!(stdout.starts_with("{\"server\""), "JSON is JSON: {stdout}");
}

#[test]
fn a_tool_in_full_loses_nothing_of_its_schema() {
    let bridge = answering(json!({"describeTool": weather()}));
    let (code, stdout, stderr) = run(tool_cli(&bridge, &["w", "get_weather"]).env("TOOL_CLI_STYLE", "agent"));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with(&format!("{SIGNATURE}\nCurrent weather. It is measured\nevery hour.\n")), "{stdout}");
    for part in ["inputSchema", "outputSchema", "annotations"] {
        assert!(stdout.contains(&weather()[part].to_string()), "{part}: {stdout}");
    }
    let (_, stdout, _) = run(&mut tool_cli(&bridge, &["w", "get_weather"]));
    assert!(stdout.contains("\nInput schema:\n  city (string, required): Which\n"), "{stdout}");
}

#[test]
fn tools_are_found_by_words_with_their_server() {
    let found = json!({"server": "w", "name": "get_weather", "definition": weather(), "decision": "deny"});
    let older = json!({"server": "o", "name": "x\u{1b}", "description": "Does. More"});
    let bridge = answering(json!({"searchTools": {"tools": [found, older]}}));
    let (code, stdout, _) = run(&mut tool_cli(&bridge, &["search", "weather", "in", "Bern"]));
    let expected = format!("w {SIGNATURE} [denied] - Current weather\no x\\u{{1b}} - Does\n");
    assert_eq!((code, stdout), (Some(0), expected));
    assert_eq!(params(&bridge, 0), json!({"query": "weather in Bern", "server": null, "full": true}));
    let (_, stdout, _) = run(&mut tool_cli(&answering(json!({"searchTools": {"tools": []}})), &["search", "x"]));
    assert_eq!(stdout, "No tool has any of these words. tool-cli lists the servers\n");
    let (code, _, stderr) = run(&mut tool_cli(&answering(json!({})), &["search", "x"]));
    assert_eq!((code, stderr.as_str()), (Some(1), "Error: Method not found\n"));
}
