//! The forms of `tool-cli` that cost an agent little: what is asked for, and what is printed of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;
#[path = "../../tests/skipped.rs"]
mod skipped;
mod terminal;

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use bridge::{Bridge, id_of, ok, run, tool_cli};
use serde_json::{Value, json};
use terminal::terminal;

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
    assert!(!stdout.contains("Call it:"), "it needs arguments: {stdout}");
    let (_, stdout, _) = run(&mut tool_cli(&bridge, &["w", "get_weather"]));
    assert!(stdout.contains("\nInput schema:\n  city (string, required): Which\n"), "{stdout}");
}

#[test]
fn a_tool_that_needs_no_arguments_says_how_it_is_called_where_no_script_reads_it() {
    let tool = json!({"name": "now", "inputSchema": {"type": "object", "properties": {"zone": {"type": "string"}}}});
    let bridge = answering(json!({ "describeTool": tool }));
    let call = "Call it: tool-cli w now '{}'";
    let (_, stdout, _) = run(tool_cli(&bridge, &["w", "now"]).env("TOOL_CLI_STYLE", "agent"));
    assert!(stdout.ends_with(&format!("\n{call}\n")), "{stdout}");
    let (_, stdout, _) = run(&mut tool_cli(&bridge, &["w", "now"]));
    assert!(!stdout.contains("Call it"), "{stdout}");
    let (mut master, slave) = terminal();
    let mut child = tool_cli(&bridge, &["w", "now"]).stdout(slave).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    let mut seen = Vec::new();
    // It ends with an error once nobody holds the other end.
    let _ = master.read_to_end(&mut seen);
    let seen = String::from_utf8(seen).unwrap();
    assert!(seen.ends_with(&format!("\r\n{call}\r\n")), "{seen}");
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
        (["--citty", "x"].as_slice(), "Error: unknown flag --citty; did you mean \"city\"? Nothing was called: see"),
        (
            &["--unit", "metrik", "--city", "x"],
            "Error: --unit: \"metrik\" is none of its values; did you mean \"metric\"?",
        ),
        (&["--days", "1.5"], "\"1.5\" is not what it takes: a whole number"),
        (&["--days", "1"], "required and missing: --city"),
        (&["--city"], "--city needs a value"),
        (
            &["--city", "x", "--city", "y"],
            "Error: --city: it is given 2 times, and takes one value. Nothing was called",
        ),
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
fn an_option_behind_a_tool_is_none_where_an_argument_may_be_meant() {
    let schema = json!({"type": "object", "properties": {"max_bytes": {"type": "integer"}, "q": {"type": "string"},
        "wait": {"type": "boolean"}, "out": {"type": "string"}}});
    let tool = json!({"name": "t", "inputSchema": schema});
    let bridge =
        || answering(json!({"describeTool": tool, "callTool": {"content": [{"type": "text", "text": "done"}]}}));
    for (words, way) in [
        (["s", "t", "--q", "x", "--max-bytes", "2"].as_slice(), "--arg.max_bytes"),
        (&["s", "t", "{}", "--max-bytes=2"], "--arg.max_bytes"),
        (&["s", "t", "{}", "--no-wait"], "--wait=false"),
    ] {
        let bridge = bridge();
        let (code, stdout, stderr) = run(tool_cli(&bridge, words).arg("--exit-codes"));
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{words:?}: {stderr}");
        let said = format!("write {way} for the argument, and the option in front of all names");
        assert!(stderr.contains(&said), "{words:?}: {stderr}");
        assert!(bridge.got.lock().unwrap().iter().all(|got| got.method() != "callTool"), "{words:?}");
    }
    for (words, sent) in [
        (["s", "t", "--max_bytes", "2"].as_slice(), r#"{"max_bytes":2}"#),
        (&["s", "t", "--arg.max-bytes", "2"], r#"{"max_bytes":2}"#),
        (&["--no-wait", "--max-bytes", "100", "s", "t", "--q", "x"], r#"{"q":"x"}"#),
        (&["--max-bytes=100", "s", "t", "--max_bytes=3"], r#"{"max_bytes":3}"#),
    ] {
        let bridge = bridge();
        let (code, stdout, stderr) = run(&mut tool_cli(&bridge, words));
        assert_eq!((code, stdout.as_str(), called(&bridge)), (Some(0), "done\n", sent.into()), "{words:?}: {stderr}");
    }
    let (_, help, _) = run(&mut tool_cli(&bridge(), &["s", "t", "--help"]));
    assert!(help.contains("  --arg.max_bytes int\n") && help.contains("  --arg.out str"), "{help}");
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
    for words in [["w__", "{}"].as_slice(), &["w__"], &["w__", "--city", "Bern"], &["check", "w__"]] {
        let (code, _, stderr) = run(&mut tool_cli(&weather_bridge(), words));
        let lacks = "\"w__\" lacks the name of a tool: write it behind the __; tool-cli w shows those that there are";
        assert!(code == Some(1) && stderr.contains(lacks), "{words:?}: {stderr}");
    }
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
fn a_wrong_name_behind_any_subcommand_is_told_with_what_is_meant() {
    let refuse = |got: &bridge::Got, reason: &str| {
        let error = json!({"code": -32602, "message": "no", "data": {"reason": reason}});
        ok(&json!({"jsonrpc": "2.0", "error": error, "id": id_of(got)}))
    };
    let bridge = Bridge::raw(move |got| {
        let result = match got.method().as_str() {
            "listServers" => json!({"servers": [{"name": "weather", "toolCount": 1}]}),
            "listPrompts" if got.body.contains("weather") => {
                json!({"server": "weather", "prompts": [{"name": "args-prompt", "arguments": [{"name": "city"}]}]})
            }
            "getPrompt" if got.body.contains("weather") => return refuse(got, "unknown_prompt"),
            "describeTool" if got.body.contains("weather") => weather(),
            _ => return refuse(got, "unknown_server"),
        };
        ok(&json!({"jsonrpc": "2.0", "result": result, "id": id_of(got)}))
    });
    let of_server = "Error: no\nHint: No server has this name; did you mean \"weather\"?\n";
    let of_prompt = "; did you mean \"args-prompt\"?";
    for (words, says) in [
        (["resource", "list", "wether"].as_slice(), of_server.to_owned()),
        (&["resource", "templates", "wether"], of_server.to_owned()),
        (&["resource", "read", "wether", "a:b"], of_server.to_owned()),
        (&["prompt", "list", "wether"], of_server.to_owned()),
        (&["prompt", "get", "wether", "args-prompt"], of_server.to_owned()),
        (&["search", "read", "--server", "wether"], of_server.to_owned()),
        (&["check", "wether", "get_weather", "{}"], of_server.to_owned()),
        (&["serch", "read"], "Error: no\nHint: No server has this name; did you mean tool-cli search?\n".to_owned()),
        (&["serch", "read", "files"], "Error: no\nHint: No server has this name; did you mean tool-cli search?\n".to_owned()),
        (&["resource", "list", "serch"], "Error: no\nHint: No server has this name: there are weather\n".to_owned()),
        (&["prompt", "get", "weather", "args-promt", "{}"], format!("Error: no\nHint: No prompt has this name{of_prompt}\n")),
        (
            &["prompt", "get", "weather", "args-promt", "--city", "x"],
            format!("Error: \"args-promt\" is no prompt of weather{of_prompt} Nothing was called: see tool-cli prompt list weather\n"),
        ),
        (
            &["prompt", "get", "weather", "args-prompt", "--town", "x"],
            "Error: unknown flag --town: there are city. Nothing was called: see tool-cli prompt list weather\n".to_owned(),
        ),
        (
            &["weather", "get_weather", "--ouput", "json"],
            "Error: unknown flag --ouput; did you mean \"output\"? Nothing was called: see tool-cli weather get_weather \
             --help\n".to_owned(),
        ),
    ] {
        let (code, stdout, stderr) = run(tool_cli(&bridge, words).env("TOOL_CLI_STYLE", "agent"));
        assert_eq!((code, stdout.as_str(), stderr), (Some(1), "", says), "{words:?}");
        let (_, _, stderr) = run(&mut tool_cli(&bridge, words));
        assert!(!stderr.contains("Hint"), "scripts read what they always did: {words:?}: {stderr}");
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
fn a_pipe_gets_long_cells_of_a_table_whole() {
    let long = "0123456789".repeat(7);
    let result = format!(r#"{{"content":[],"structuredContent":[{{"a":"{long}"}}]}}"#);
    let (_, stdout, stderr) = run(tool_cli(&answers(&result), &["s", "t", "{}"]).args(["--output", "table"]));
    assert_eq!((stdout, stderr), (format!("a\n{long}\n"), String::new()));
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
    assert!(
        stdout.contains("1234567890123456789") && stderr.contains("nothing is at m: there are l, n. The"),
        "{stderr}"
    );
    let misspelt = json!({"callTool": {"content": [], "structuredContent": {"temperature": 1}}});
    let (_, _, stderr) = run(tool_cli(&answering(misspelt), &["s", "t", "{}"]).args(["--pick", ".temperatur"]));
    assert!(stderr.contains("did you mean \"temperature\"? The call was made"), "{stderr}");
    for (args, says) in [
        (["s", "--pick", ".a"].as_slice(), "go with a call, which '{}' makes where there are no arguments"),
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
        format!("The first 21 of {} bytes were printed; all 10000 lines are in {}\n", text.len(), path.display());
    assert_eq!(stderr, told);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let line = answering(json!({"callTool": {"content": [{"type": "text", "text": "one line of text"}]}}));
    let (_, _, stderr) = run(tool_cli(&line, &["s", "t", "{}", "--max-bytes", "3"]).env("TMPDIR", folder.path()));
    assert!(stderr.starts_with("The first 3 of 17 bytes were printed; the whole line is in "), "{stderr}");
    let small = answering(json!({"callTool": {"content": [{"type": "text", "text": "short"}]}}));
    let (_, stdout, stderr) = run(&mut tool_cli(&small, &["s", "t", "{}", "--max-bytes", "21"]));
    assert_eq!((stdout.as_str(), stderr.as_str()), ("short\n", ""));
}

#[test]
fn a_text_that_ends_its_last_line_gets_no_other_end() {
    for (text, printed) in
        [("one\ntwo\n", "one\ntwo\n"), ("one\ntwo", "one\ntwo\n"), ("one\n\n", "one\n\n"), ("\n", "\n")]
    {
        let of = |is_error: bool| json!({"content": [{"type": "text", "text": text}], "isError": is_error});
        let bridge = answering(json!({"callTool": of(false)}));
        for more in [&[][..], &["--output", "text"], &["--output", "table"], &["--max-bytes", "100"]] {
            for style in ["", "agent"] {
                let mut call = tool_cli(&bridge, &[&["s", "t", "{}"], more].concat());
                assert_eq!(run(call.env("TOOL_CLI_STYLE", style)).1, printed, "{more:?}, {style}");
            }
        }
        assert_eq!(run(&mut tool_cli(&bridge, &["s", "t", "{}", "--output", "raw"])).1, text);
        let fails = answering(json!({"callTool": of(true)}));
        assert_eq!(run(&mut tool_cli(&fails, &["s", "t", "{}"])).2, printed);
    }
}

#[test]
fn where_what_is_too_much_cannot_be_kept_the_first_bytes_are_printed_all_the_same() {
    let bridge = answering(json!({"callTool": {"content": [{"type": "text", "text": "línea\none more"}]}}));
    let mut call = tool_cli(&bridge, &["s", "t", "{}", "--max-bytes", "3", "--exit-codes"]);
    let (code, stdout, stderr) = run(call.env("TMPDIR", "/nonexistent"));
    assert_eq!((code, stdout.as_str()), (Some(0), "lí\n"), "{stderr}");
    let told =
        "The first 3 of 16 bytes were printed; the rest could not be kept in /nonexistent, and is lost: No such file";
    assert!(stderr.starts_with(told) && stderr.contains("TMPDIR"), "{stderr}");
}

#[test]
fn how_far_a_call_is_and_what_its_server_logs_is_told_where_it_is_asked_for() {
    let events = "event: progress\ndata: {\"progress\":1,\"total\":4,\"message\":\"a\\u001b\"}\n\nevent: log\ndata: \
                  {\"level\":\"warning\",\"message\":\"hot\u{9b}\"}\n\nevent: progress\ndata: {\"progress\":2}\n\nevent: result\ndata: \
                  {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let bridge = Bridge::raw(move |_| format!("{head}{events}").into_bytes());
    for (args, told) in [
        ([].as_slice(), ""),
        (&["--progress"], "Progress: 25% a\\u{1b}\n"),
        (&["-v"], "warning: hot\\u{9b}\n"),
        (&["--progress", "--verbose"], "Progress: 25% a\\u{1b}\nwarning: hot\\u{9b}\n"),
        (&["--json", "-v"], "{\"log\":{\"level\":\"warning\",\"message\":\"hot\\u009b\"}}\n"),
    ] {
        let (code, _, stderr) = run(tool_cli(&bridge, &["s", "t", "{}"]).args(args));
        assert_eq!((code, stderr.as_str()), (Some(0), told), "{args:?}");
    }
}

#[test]
fn prompts_are_listed_and_filled_in_by_flags() {
    let prompts = json!({"server": "s", "prompts": [{"name": "greet", "description": "Greets. Well",
        "arguments": [{"name": "who", "required": true}, {"name": "how"}]}]});
    let filled = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}},
        {"role": "assistant", "content": {"type": "text", "text": "Yes"}}]});
    let bridge = answering(json!({"listPrompts": prompts, "getPrompt": filled}));
    let (code, stdout, _) = run(&mut tool_cli(&bridge, &["prompt", "list", "s"]));
    assert_eq!((code, stdout.as_str()), (Some(0), "s — 1 prompt(s):\n  greet(who, how?) — Greets\n"));
    let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &["prompt", "get", "s", "greet", "--who", "42"]));
    assert_eq!((code, stdout.as_str()), (Some(0), "# user\nHello\n# assistant\nYes\n"), "{stderr}");
    assert_eq!(params(&bridge, 2), json!({"server": "s", "prompt": "greet", "arguments": {"who": "42"}}));
    let (code, _, stderr) = run(tool_cli(&bridge, &["prompt", "get", "s", "greet", "--how", "x"]).arg("--exit-codes"));
    assert!(code == Some(2) && stderr.contains("required and missing: --who"), "{stderr}");
    for words in [["prompt"].as_slice(), &["prompt", "get", "s"], &["prompt", "list", "s", "x"], &["prompt", "x"]] {
        assert_eq!(run(tool_cli(&bridge, words).arg("--exit-codes")).0, Some(2), "{words:?}");
    }
}

fn with_much_to_complete() -> Bridge {
    let servers = json!({"servers": [{"name": "w", "toolCount": 2}, {"name": "$(x)", "toolCount": 0}]});
    let tools = json!({"server": "w", "tools": [{"name": "get_weather"}, {"name": "`rm`"}]});
    let prompts = json!({"server": "w", "prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]});
    let resources = json!({"server": "w", "resources": [{"uri": "demo://now"}, {"uri": "demo://x;y"}]});
    let templates = json!({"server": "w", "templates": [{"uriTemplate": "demo://of/{city}"}]});
    answering(json!({"listServers": servers, "listTools": tools, "describeTool": weather(), "listPrompts": prompts,
        "listResources": resources, "listResourceTemplates": templates}))
}

#[test]
fn a_shell_completes_what_is_there_now_and_nothing_that_it_would_run() {
    let bridge = with_much_to_complete();
    let options_with_n = "--no-wait\n";
    for (words, offered) in [
        (["w"].as_slice(), "w\nwait\n"),
        (&["w", ""], "get_weather\n"),
        (&["w", "get_weather", "--un"], "--unit\n"),
        (&["w", "get_weather", "--unit", ""], "metric\nimperial\n"),
        (&["w", "get_weather", "--unit=m"], "--unit=metric\n"),
        (&["w", "get_weather", "--city", ""], ""),
        (&["w", "get_weather", "--city", "--un"], "--unit\n"),
        (&["w", "get_weather", "--no"], options_with_n),
        (&["check", "w", "get_weather", "--ci"], "--city\n"),
        (&["w__get_weather", "--da"], "--days\n"),
        (&["check", "w__get_weather", "--da"], "--days\n"),
        (&["w__"], "w__get_weather\n"),
        (&["check", "w__g"], "w__get_weather\n"),
        (&["resource", "re"], "read\n"),
        (&["resource", "templates", ""], "w\n"),
        (&["resource", "list", "w", ""], ""),
        (&["resource", "read", "w", ""], "demo://now\ndemo://of/\n"),
        (&["resource", "read", "--server", "w", "demo://n"], "demo://now\n"),
        (&["resource", "read", "w", "--uri=demo://n"], "--uri=demo://now\n"),
        (&["resource", "--u"], "--uri\n"),
        (&["prompt", "get", ""], "w\n"),
        (&["prompt", "get", "w", ""], "greet\n"),
        (&["prompt", "get", "w", "greet", "--wh"], "--who\n"),
        (&["--ti"], "--timeout\n"),
        (&["--json", "--timeout", "5s", "w", ""], "get_weather\n"),
        (&["--output", ""], "text\njson\nraw\ntable\nyaml\n"),
        (&["w", "get_weather", "--output=t"], "--output=text\n--output=table\n"),
        (&["w", "get_weather", "--out", ""], ""),
        (&["stubs", "--lang", ""], "py\nts\n"),
        (&["stubs", "--la"], "--lang\n"),
        (&["stubs", ""], ""),
        (&["search", "--server", ""], "w\n"),
        (&["search", ""], ""),
        (&["--", "w"], "w\n"),
        (&["--", "w", ""], "get_weather\n"),
        (&["--frob", ""], ""),
        (&["batch", "--"], "--exit-codes\n--help\n--json\n--progress\n--timeout\n--verbose\n--version\n--parallel\n"),
        (
            &["search", "--"],
            "--exit-codes\n--help\n--json\n--output\n--progress\n--timeout\n--verbose\n--version\n--server\n",
        ),
        (&["resource", "--out"], "--out\n--out-dir\n--output\n"),
    ] {
        let (code, stdout, stderr) = run(tool_cli(&bridge, &["__complete"]).args(words));
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), offered, ""), "{words:?}");
    }
    let asked = bridge.got.lock().unwrap().iter().map(bridge::Got::method).collect::<Vec<_>>();
    assert!(asked.iter().all(|method| method.starts_with("list") || method == "describeTool"), "{asked:?}");
    assert_eq!(run(&mut bare_of(&["__complete", "w", ""])).1, "", "without a bridge nothing is offered");
    for shell in ["bash", "zsh", "fish"] {
        let (code, stdout, _) = run(&mut bare_of(&["completion", shell]));
        assert!(code == Some(0) && stdout.contains("tool-cli __complete"), "{stdout}");
    }
}

/// A shell with the command on its path, and what its script says.
fn shell(bridge: &Bridge, name: &str) -> Option<(std::process::Command, String)> {
    let mut command = program(name, "completion")?;
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tool-cli"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(program.parent().unwrap().to_owned()).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    command.env("TOOL_CLI_PORT", bridge.port.to_string()).env("TOOL_CLI_TOKEN", bridge::TOKEN);
    Some((command, run(&mut bare_of(&["completion", name])).1))
}

#[test]
fn bash_completes_words_that_it_splits_itself() {
    let bridge = with_much_to_complete();
    // What bash makes of a line: the words, split at = and : too, and what is offered for the last one.
    for (words, line, offered) in [
        (["tool-cli", "w", ""].as_slice(), "tool-cli w ", "get_weather"),
        (&["tool-cli", "w", "get_weather", "--unit", "="], "tool-cli  w get_weather --unit=", "metric imperial"),
        (&["tool-cli", "w", "get_weather", "--unit", "=", "i"], "tool-cli w get_weather --unit=i", "imperial"),
        (&["tool-cli", "w", "get_weather", "--unit", "i"], "tool-cli w get_weather --unit i", "imperial"),
        (
            &["tool-cli", "w", "get_weather", "'{\"a\": 1}'", "--ci"],
            "tool-cli w get_weather '{\"a\": 1}' --ci",
            "--city",
        ),
        (&["tool-cli", "resource", "read", "w", "d"], "tool-cli resource read w d", "demo://now demo://of/"),
        (&["tool-cli", "resource", "read", "w", "demo", "://n"], "tool-cli resource read w demo://n", "//now"),
        (
            &["tool-cli", "resource", "read", "w", "--uri", "=", "demo", ":"],
            "tool-cli resource read w --uri=demo:",
            "//now //of/",
        ),
        (&["tool-cli", "w", "get_weather", "@", "f"], "tool-cli w get_weather @f", ""),
    ] {
        let Some((mut bash, script)) = shell(&bridge, "bash") else { return };
        let main = "COMP_WORDBREAKS=$' \\t\\n\"\\'@><=;|&(:'; COMP_LINE=$1; COMP_POINT=${#1}; shift; COMP_WORDS=(\"$@\"); \
                    COMP_CWORD=$(($# - 1)); _tool_cli; echo \"${COMPREPLY[*]}\"";
        bash.args(["--norc", "-c", &format!("{script}{main}"), "bash", line]).args(words);
        let (code, stdout, stderr) = run(&mut bash);
        assert_eq!((code, stdout.trim_end(), stderr.as_str()), (Some(0), offered, ""), "{line}");
    }
}

#[test]
fn fish_completes_words_and_mixes_no_files_among_them() {
    let bridge = with_much_to_complete();
    let folder = tempfile::tempdir().unwrap();
    for file in ["get_file", "page.png"] {
        std::fs::write(folder.path().join(file), "").unwrap();
    }
    for (line, offered) in [
        ("tool-cli w ", "get_weather\n"),
        ("tool-cli w get_weather --unit=i", "--unit=imperial\n"),
        ("tool-cli resource read w demo://n", "demo://now\n"),
        ("tool-cli w get_weather --out p", "page.png\n"),
    ] {
        let Some((mut fish, script)) = shell(&bridge, "fish") else { return };
        fish.current_dir(&folder).env("HOME", folder.path());
        let (code, stdout, stderr) = run(fish.args(["--no-config", "-c", &format!("{script}complete -C '{line}'")]));
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), offered, ""), "{line}");
    }
}

/// Without a bridge.
fn bare_of(args: &[&str]) -> std::process::Command {
    let mut command = bridge::bare(args);
    command.env("TOOL_CLI_PORT", "1");
    command
}

#[test]
fn the_manual_and_the_skill_say_how_it_is_used() {
    let (code, page, _) = run(&mut bare_of(&["man"]));
    assert_eq!(code, Some(0));
    for part in [".TH TOOL\\-CLI 1", ".SH NAME\ntool\\-cli \\- call", ".SH USAGE", ".SH OPTIONS", ".SH EXIT STATUS"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let servers =
        json!({"servers": [{"name": "w", "toolCount": 20}, {"name": "x", "toolCount": 0, "status": "starting"}]});
    let names: Vec<Value> = (0..20).map(|n| json!({"name": format!("t{n}")})).collect();
    let bridge = answering(json!({"listServers": servers, "listTools": {"tools": names}}));
    let (code, skill, _) = run(&mut tool_cli(&bridge, &["skill"]));
    assert_eq!(code, Some(0));
    assert!(skill.starts_with("---\nname: tool-cli\ndescription: \"Calls the tools"), "{skill}");
    assert!(skill.contains("### w\n\n```text\nt0(") && skill.contains("\n### x (starting)\n"), "{skill}");
    assert!(skill.len() < 2_500, "{}", skill.len());
}

#[test]
fn a_report_is_one_object_whatever_fails() {
    let bridge = answering(json!({"callTool": {"content": [{"type": "text", "text": "ü"}]}}));
    let report = |command: &mut std::process::Command| {
        let (code, stdout, stderr) = run(command.arg("--report"));
        assert_eq!((stdout.lines().count(), stderr.as_str()), (1, ""), "{stdout}");
        (code, stdout)
    };
    let golden = include_str!("report.jsonl").lines().map(str::to_owned).collect::<Vec<_>>();
    let failing = answering(json!({"callTool": {"content": [{"type": "text", "text": "broke"}], "isError": true}}));
    let refusing = Bridge::error(json!({"code": -32001, "message": "no", "data": {"reason": "denied_by_policy"}}));
    let call = ["s", "t", "{}"];
    let got = [
        report(&mut tool_cli(&bridge, &call)),
        report(&mut tool_cli(&failing, &call)),
        report(&mut tool_cli(&refusing, &call)),
        report(&mut tool_cli(&bridge, &["s", "t", "[]"])),
        report(&mut tool_cli(&weather_bridge(), &["w", "t", "--nope", "1"])),
    ];
    for ((code, line), (expected, status)) in got.iter().zip(golden.iter().zip([0, 1, 1, 1, 1])) {
        assert_eq!((line.trim_end(), *code), (expected.as_str(), Some(status)));
    }
    let (code, line) = report(&mut bare_of(&call));
    let down: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((code, &down["schema"], &down["success"]), (Some(1), &json!("mcp-client/1"), &json!(false)));
    assert_eq!(down["data"], json!({"content": []}));
}

#[test]
fn a_report_takes_no_option_that_shapes_a_result() {
    for words in [["--out", "f"], ["--out-dir", "d"], ["--pick", ".a"], ["--max-bytes", "3"], ["--output", "json"]] {
        let bridge = answering(json!({"callTool": {"content": []}}));
        let folder = tempfile::tempdir().unwrap();
        let mut command = tool_cli(&bridge, &["--report", "--exit-codes"]);
        let (code, stdout, stderr) = run(command.args(words).args(["s", "t", "{}"]).current_dir(&folder));
        assert_eq!((code, stderr.as_str()), (Some(2), ""), "{words:?}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert!(report["error"].as_str().unwrap().contains("do not go with it"), "{words:?}: {report}");
        let left = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!((bridge.got.lock().unwrap().len(), left), (0, 0), "{words:?}");
    }
}

/// A program of this machine, where it is there.
fn program(name: &str, what: &str) -> Option<std::process::Command> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        skipped::skipped(what, format!("{name} is not there"));
    }
    found.map(std::process::Command::new)
}

fn place() -> Value {
    let number = json!({"type": "number"});
    let place = json!({"type": "object", "required": ["lat", "lon"],
        "properties": {"lat": number, "lon": number, "name": {"type": ["string", "null"]}}});
    let nullable = json!({"anyOf": [place, {"type": "null"}]});
    json!({"name": "list", "inputSchema": {"type": "object", "properties":
        {"places": {"type": "array", "items": place}, "place": place, "last": nullable}}})
}

/// Python itself finds what the names in quotes stand for.
fn assert_python_knows_the_types_of(folder: &Path) {
    let Some(mut python) = program("python3", "types of stubs") else { return };
    let code = "import typing, my_weather\nh = typing.get_type_hints(my_weather.get_weather)\n\
                p = typing.get_type_hints(my_weather.list_2)\n\
                print(h['return'].__annotations__, sorted(p['place'].__required_keys__), sorted(p['place'].__optional_keys__))";
    let (code, stdout, stderr) = run(python.args(["-B", "-c", code]).current_dir(folder));
    let expected = "{'tempC': <class 'float'>} ['lat', 'lon'] ['name']\n";
    assert_eq!((code, stdout.as_str()), (Some(0), expected), "{stderr}");
}

#[test]
fn stubs_are_functions_that_python_and_node_call() {
    let servers = json!({"servers": [{"name": "my-weather", "toolCount": 1}]});
    let bridge = Bridge::raw(move |got| {
        assert_eq!(got.headers["authorization"], format!("Bearer {}", bridge::TOKEN));
        let body: Value = serde_json::from_str(&got.body).unwrap();
        let result = match got.method().as_str() {
            "listServers" => servers.clone(),
            "listTools" => json!({"server": "my-weather", "tools": [weather(), place()]}),
            _ if body["params"]["arguments"]["city"] == "Atlantis" => {
                json!({"content": [{"type": "text", "text": "it lies under water"}], "isError": true})
            }
            _ => json!({"content": [], "structuredContent": {"tempC": 21, "asked": body["params"]}}),
        };
        ok(&json!({"jsonrpc": "2.0", "result": result, "id": id_of(got)}))
    });
    let folder = tempfile::tempdir().unwrap();
    let into = |language: &str| {
        let place = folder.path().join(language);
        let words = ["stubs", "--lang", language, place.to_str().unwrap()];
        let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &words));
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.lines().all(|line| line.starts_with("Written to: ")), "{stdout}");
        place
    };
    let python = "import my_weather, bridge\nr = my_weather.get_weather(city='Zürich', days=2)\n\
                  print(r['tempC'], r['asked']['arguments'])\ntry: my_weather.get_weather(city='Atlantis')\n\
                  except bridge.ToolError as e: print(e)\n";
    let node = "import { get_weather } from './my_weather.mjs';\nconst r = await get_weather({ city: 'Zürich', days: 2 });\n\
                console.log(r.tempC, JSON.stringify(r.asked.arguments));\n\
                await get_weather({ city: 'Atlantis' }).catch((e) => console.log(e.message));\n";
    for (language, name, args, code, arguments) in [
        ("py", "python3", vec!["-B", "-c", python], "", "{'city': 'Zürich', 'days': 2}"),
        ("ts", "node", vec!["try.mjs"], node, r#"{"city":"Zürich","days":2}"#),
    ] {
        let place = into(language);
        let Some(mut command) = program(name, "stubs") else { continue };
        if !code.is_empty() {
            std::fs::write(place.join("try.mjs"), code).unwrap();
        }
        command.args(args).current_dir(&place).env("PYTHONIOENCODING", "utf-8");
        command.env("TOOL_CLI_PORT", bridge.port.to_string()).env("TOOL_CLI_HOST", "${TOOL_CLI_HOST}");
        // As for tool-cli, a token beats a file; and what was left unfilled is none.
        let (file, unfilled) = (folder.path().join("token"), "${TOOL_CLI_TOKEN}");
        for (token, in_file) in [(bridge::TOKEN, "another"), (unfilled, bridge::TOKEN)] {
            std::fs::write(&file, in_file).unwrap();
            let (code, stdout, stderr) = run(command.env("TOOL_CLI_TOKEN", token).env("TOOL_CLI_TOKEN_FILE", &file));
            assert_eq!((code, stdout), (Some(0), format!("21 {arguments}\nit lies under water\n")), "{name}: {stderr}");
        }
    }
    assert_python_knows_the_types_of(&folder.path().join("py"));
    let types = std::fs::read_to_string(folder.path().join("ts/my_weather.d.mts")).unwrap();
    let expected = "export function get_weather(args: { \"city\": string; \"days\"?: number; \"unit\"?: (\"metric\" | \
                    \"imperial\") }): Promise<{ \"tempC\"?: number }>;";
    assert!(types.contains(expected), "{types}");
}
