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

fn called(bridge: &Bridge) -> Value {
    let all = bridge.got.lock().unwrap().clone();
    let got =
        all.iter().find(|got| got.method() == "callTool").unwrap_or_else(|| panic!("nothing was called: {all:?}"));
    let body = &got.body[got.body.find("\"arguments\":").unwrap() + 12..];
    Value::from(body.trim_end_matches("}}"))
}

fn weather_bridge() -> Bridge {
    let servers = json!({"servers": [{"name": "w", "toolCount": 1}, {"name": "w__x", "toolCount": 0}]});
    answering(json!({"describeTool": weather(), "callTool": {"content": [{"type": "text", "text": "done"}]},
        "listServers": servers}))
}

#[test]
fn arguments_come_as_json_as_flags_and_from_files_and_lose_no_digit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arguments.json");
    std::fs::write(&file, "{\"city\": \"Bern\", \"days\": 12345678901234567890123}\n").unwrap();
    let at_file = format!("@{}", file.display());
    for (words, sent, requests) in [
        (["w", "get_weather", "--city", "Bern", "--days=-3"].as_slice(), r#"{"city":"Bern","days":-3}"#, 2),
        (
            &["w", "get_weather", "--days", "-12345678901234567890123", "--city=-"],
            r#"{"city":"-","days":-12345678901234567890123}"#,
            2,
        ),
        (
            &["w", "get_weather", &at_file, "--city", "Chur", "--unit", "metric"],
            r#"{"city":"Chur","days":12345678901234567890123,"unit":"metric"}"#,
            2,
        ),
        (&["w", "get_weather", "--city", "Chur", &at_file], r#"{"city":"Chur","days":12345678901234567890123}"#, 2),
        (&["w", "get_weather", &at_file], r#"{"city": "Bern", "days": 12345678901234567890123}"#, 1),
        (&["w__get_weather", "--city", "Bern"], r#"{"city":"Bern"}"#, 3),
        (&["w__get_weather", r#"{"city": "Bern"}"#], r#"{"city": "Bern"}"#, 2),
    ] {
        let bridge = weather_bridge();
        let (code, stdout, stderr) = run(&mut tool_cli(&bridge, words));
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "done\n", ""), "{words:?}");
        assert_eq!(called(&bridge), sent, "{words:?}");
        assert_eq!(bridge.got.lock().unwrap().len(), requests, "{words:?}");
    }
}

#[test]
fn flags_that_do_not_fit_are_named_and_nothing_is_called() {
    for (words, says) in [
        (["--citty", "x"].as_slice(), "Error: unknown flag --citty; did you mean \"city\"?"),
        (
            &["--unit", "metrik", "--city", "x"],
            "Error: --unit: \"metrik\" is none of its values; did you mean \"metric\"?",
        ),
        (&["--days", "1.5"], "\"1.5\" is not what it takes: a whole number"),
        (&["--days", "1"], "required and missing: --city"),
        (&["--city"], "--city needs a value"),
        (&["--city", "x", "{}", "{}"], "\"{}\" is one word too many"),
        (&["--city", "x", "@/nowhere"], "cannot read the arguments from /nowhere: No such file"),
        (&["{\"city\": \"x\", }", "--days", "1"], "line 1, column 15: expected a name"),
    ] {
        let bridge = weather_bridge();
        let (code, stdout, stderr) = run(tool_cli(&bridge, &["w", "get_weather", "--exit-codes"]).args(words));
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{words:?}: {stderr}");
        assert!(stderr.contains(says), "{words:?}: {stderr}");
        assert!(bridge.got.lock().unwrap().iter().all(|got| got.method() != "callTool"));
    }
}

#[test]
fn help_of_a_tool_says_how_to_call_it() {
    let (code, stdout, _) = run(&mut tool_cli(&weather_bridge(), &["w", "get_weather", "--help"]));
    assert_eq!(code, Some(0));
    for part in [
        "Usage: tool-cli w get_weather [FLAGS]",
        "--city str ",
        "required. Which\n",
        "--unit \"metric\"|\"imperial\"",
        "\n  tool-cli w get_weather --city text\n  tool-cli w get_weather '{\"city\":\"text\"}'\n",
        "\n  .tempC  num\n",
        "As its server says: it only reads.",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let (_, of_joined, _) = run(&mut tool_cli(&weather_bridge(), &["w__get_weather", "-h"]));
    assert_eq!(of_joined, stdout);
}

#[test]
fn a_word_with_the_sign_between_names_is_what_the_servers_say() {
    let asked = |word: &str| {
        let bridge = weather_bridge();
        let _ = run(&mut tool_cli(&bridge, &[word]));
        let at = bridge.got.lock().unwrap().len() - 1;
        params(&bridge, at)
    };
    assert_eq!(asked("w__x"), json!({"server": "w__x"}), "a server of this name");
    assert_eq!(asked("w__t"), json!({"server": "w", "tool": "t"}));
    let (_, _, stderr) = run(&mut tool_cli(&weather_bridge(), &["w__x__y"]));
    assert!(stderr.contains("more than one tool: say which by tool-cli w x__y, or tool-cli w__x y"), "{stderr}");
}

#[test]
fn who_reads_errors_is_told_what_was_meant_and_scripts_read_what_they_always_did() {
    let refusal = |reason: &str, data: Value| {
        let mut data = data;
        data["reason"] = reason.into();
        json!({"code": -32602, "message": "no", "data": data})
    };
    let tool = refusal("unknown_tool", json!({"discoveredTools": ["get_weather", "other"]}));
    let violations = json!([{"instancePath": "", "keyword": "additionalProperties", "message": "m",
        "params": {"additionalProperty": "citty"}}]);
    let arguments = refusal("invalid_arguments", json!({ "validationErrors": violations }));
    for (error, says) in [
        (refusal("unknown_server", json!({})), "Hint: No server has this name; did you mean \"weather\"?\n"),
        (tool, "Hint: No tool has this name; did you mean \"get_weather\"?\n"),
        (
            arguments,
            "Hint: get_wether takes (city: str, days?: int = 1, unit?: \"metric\"|\"imperial\")\n  for \"citty\", did you mean \"city\"?\n",
        ),
    ] {
        let refused = error.clone();
        let bridge = Bridge::raw(move |got| {
            let answer = match got.method().as_str() {
                "callTool" => json!({"jsonrpc": "2.0", "error": refused, "id": id_of(got)}),
                "listServers" => {
                    json!({"jsonrpc": "2.0", "result": {"servers": [{"name": "weather", "toolCount": 1}]}, "id": id_of(got)})
                }
                _ => json!({"jsonrpc": "2.0", "result": weather(), "id": id_of(got)}),
            };
            ok(&answer)
        });
        let call = ["wether", "get_wether", "{}"];
        let (_, _, stderr) = run(tool_cli(&bridge, &call).env("TOOL_CLI_STYLE", "agent"));
        assert!(stderr.starts_with("Error: no\n") && stderr.ends_with(says), "{stderr}");
        let (_, _, stderr) = run(tool_cli(&bridge, &call).arg("--json").env("TOOL_CLI_STYLE", "agent"));
        assert!(serde_json::from_str::<Value>(&stderr).unwrap()["hint"].is_string(), "{stderr}");
        let (_, _, stderr) = run(&mut tool_cli(&bridge, &call));
        assert!(stderr.starts_with("Error: no\n") && !stderr.contains("Hint"), "{stderr}");
    }
}

#[test]
fn a_call_is_checked_without_making_it() {
    for (decision, code) in [("allow", 0), ("ask", 0), ("deny", 5)] {
        let bridge = answering(json!({"checkCall": {"decision": decision}, "describeTool": weather()}));
        let words = ["check", "w", "get_weather", "--city", "Bern", "--exit-codes"];
        let (status, stdout, _) = run(&mut tool_cli(&bridge, &words));
        assert_eq!(status, Some(code), "{stdout}");
        assert!(stdout.starts_with(&format!("the arguments fit; {decision}: ")), "{stdout}");
        assert_eq!(params(&bridge, 1), json!({"server": "w", "tool": "get_weather", "arguments": {"city": "Bern"}}));
    }
}

const READ: &str =
    r#"{"content":[{"type":"text","text":"one\ntwo\u001b[2J"}],"structuredContent":{"content":"one\ntwo\u001b[2J"}}"#;

fn answers(result: &str) -> Bridge {
    answering(json!({ "callTool": serde_json::from_str::<Value>(result).unwrap() }))
}

#[test]
fn an_agent_reads_text_and_scripts_the_structured_copy() {
    let call = ["s", "t", "{}"];
    let (_, stdout, _) = run(tool_cli(&answers(READ), &call).env("TOOL_CLI_STYLE", "agent"));
    assert_eq!(stdout, "one\ntwo\u{1b}[2J\n", "a pipe gets what a tool wrote");
    let (_, stdout, _) = run(&mut tool_cli(&answers(READ), &call));
    assert!(stdout.starts_with("{\n  \"content\": "), "{stdout}");
    let (_, stdout, _) = run(tool_cli(&answers(READ), &call).args(["--output", "raw"]));
    assert_eq!(stdout, "one\ntwo\u{1b}[2J", "nothing is added");
    let image = r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}"#;
    let (_, stdout, _) = run(tool_cli(&answers(image), &call).env("TOOL_CLI_STYLE", "agent"));
    assert_eq!(stdout, "[image image/png, 8 bytes: use --out FILE]\n");
    let output = tool_cli(&answers(image), &call).args(["--output=raw"]).output().unwrap();
    assert_eq!(output.stdout, b"\x89PNG\r\n\x1a\n");
}

#[test]
fn a_part_of_a_result_is_printed_in_the_form_that_is_asked_for() {
    let result = r#"{"content":[],"structuredContent":{"n":1234567890123456789,"l":[{"a":"x"},{"a":"y"}]}}"#;
    for (args, printed) in [
        (["--pick", ".n"].as_slice(), "1234567890123456789\n"),
        (&["--pick", ".l[].a"], "x\ny\n"),
        (&["--pick", ".l[].a", "--output", "json"], "\"x\"\n\"y\"\n"),
        (&["--output", "table"], "a\nx\ny\n"),
        (&["--output=yaml", "--pick", ".l"], "-\n  a: x\n-\n  a: \"y\"\n"),
    ] {
        let (code, stdout, stderr) = run(tool_cli(&answers(result), &["s", "t", "{}"]).args(args));
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), printed, ""), "{args:?}");
    }
    let (code, stdout, stderr) = run(tool_cli(&answers(result), &["s", "t", "{}"]).args(["--pick", ".m"]));
    assert_eq!(code, Some(1));
    assert!(stdout.contains("1234567890123456789") && stderr.contains("nothing is at m: there are l, n"), "{stderr}");
    for (args, says) in [
        (["s", "--pick", ".a"].as_slice(), "go with a call"),
        (&["s", "t", "{}", "--pick", "a["], "\"a[\" is no path"),
        (&["s", "t", "{}", "--output", "xml"], "text, json, raw, table or yaml"),
    ] {
        let (code, _, stderr) = run(tool_cli(&answers(result), args).arg("--exit-codes"));
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
}

#[test]
fn what_is_too_much_to_read_is_in_a_file_of_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..10_000).map(|n| format!("línea {n}\n")).collect();
    let bridge = answering(json!({"callTool": {"content": [{"type": "text", "text": text}]}}));
    let mut call = tool_cli(&bridge, &["s", "t", "{}", "--max-bytes", "21"]);
    let (code, stdout, stderr) = run(call.env("TMPDIR", folder.path()));
    assert_eq!((code, stdout.as_str()), (Some(0), "línea 0\nlínea 1\nlí\n"));
    let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let told =
        format!("The first 21 of {} bytes were printed; all 10001 lines are in {}\n", text.len() + 1, path.display());
    assert_eq!(stderr, told);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text + "\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let small = answering(json!({"callTool": {"content": [{"type": "text", "text": "short"}]}}));
    let (_, stdout, stderr) = run(&mut tool_cli(&small, &["s", "t", "{}", "--max-bytes", "21"]));
    assert_eq!((stdout.as_str(), stderr.as_str()), ("short\n", ""));
}

#[test]
fn how_far_a_call_is_and_what_its_server_logs_is_told_where_it_is_asked_for() {
    let events = "event: progress\ndata: {\"progress\":1,\"total\":4,\"message\":\"a\\u001b\"}\n\nevent: log\ndata: \
                  {\"level\":\"warning\",\"message\":\"hot\"}\n\nevent: progress\ndata: {\"progress\":2}\n\nevent: result\ndata: \
                  {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let bridge = Bridge::raw(move |_| format!("{head}{events}").into_bytes());
    for (args, told) in [
        ([].as_slice(), ""),
        (&["--progress"], "Progress: 25% a\\u{1b}\n"),
        (&["-v"], "warning: hot\n"),
        (&["--progress", "--verbose"], "Progress: 25% a\\u{1b}\nwarning: hot\n"),
        (&["--json", "-v"], "{\"log\":{\"level\":\"warning\",\"message\":\"hot\"}}\n"),
    ] {
        let (code, _, stderr) = run(tool_cli(&bridge, &["s", "t", "{}"]).args(args));
        assert_eq!((code, stderr.as_str()), (Some(0), told), "{args:?}");
    }
}
