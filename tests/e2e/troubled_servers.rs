//! Servers in trouble, all behind one harness: each is named with what to do next, none disturbs the others.

use std::time::{Duration, Instant};

use footbridge_tests::{Bridge, Host, PATIENCE, Servers, Tape};
use serde_json::{Value, json};

/// Short limits, so that what never comes is not waited for.
const SHORT: &str = "[limits.calls]\nidle_time = \"3s\"\ntotal_time = \"6s\"\nserver_wait = \"12s\"\nlist_wait = \"3s\"\n\
                     result_bytes = \"2 MiB\"\n[limits.servers]\nline_bytes = \"4 MiB\"\nstart_time = \"10s\"\n";

#[test]
fn a_listing_that_a_server_fails_is_partial_with_the_reason() {
    let servers = Servers::none().misbehaving("bad", &["one-bad-tool"]).misbehaving("fails", &["listings-fail"]);
    let bridge = Host::with(&servers).settings(SHORT).opens();
    let asks = |method: &str, server: &str| bridge.guest.asks(method, json!({ "server": server }));
    for (method, what, why) in [
        ("listResources", "resources", "\"the disk is gone\\u{1b}\" (code -32000)"),
        ("listPrompts", "prompts", "does not know how to list them"),
    ] {
        let error = asks(method, "fails")["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("Server \"fails\" did not list its {what}: ")), "{message}");
        assert!(message.contains(why) && error["data"]["reason"] == "provider_error", "{error}");
    }
    let templates = asks("listResourceTemplates", "fails")["result"].clone();
    assert_eq!(templates["templates"].as_array().unwrap().len(), 1, "{templates}");
    assert!(templates["partial"][0].as_str().unwrap().contains("the disk is gone"), "{templates}");
    let tools = asks("listTools", "bad")["result"].clone();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 2, "{tools}");
    let left_out = tools["partial"][0].as_str().unwrap();
    assert!(left_out.starts_with("4 entries were left out: ") && !left_out.contains("no-schema"), "{left_out}");
    assert!(asks("listTools", "fails")["result"]["partial"].is_null());
    let missing = |listed: &Value| listed["result"]["_meta"]["footbridge/partial"].clone();
    let all = lists(&bridge, "/mcp", "resources/list");
    assert!(
        all["result"]["resources"].is_array()
            && missing(&all)[0].as_str().unwrap().contains("did not list its resources")
    );
    let error = lists(&bridge, "/mcp/fails", "resources/list")["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("did not list its resources: "), "{error}");
    let templates = missing(&lists(&bridge, "/mcp/fails", "resources/templates/list"));
    assert!(templates[0].as_str().unwrap().contains("the disk is gone"), "{templates}");
    let tools = missing(&lists(&bridge, "/mcp", "tools/list"));
    assert_eq!(tools, json!([format!("Server \"bad\": {left_out}")]));
    assert!(missing(&lists(&bridge, "/mcp/fails", "tools/list")).is_null());
    let ran = bridge.guest.runs(&["resource", "list"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("fails — Server \"fails\" did not list its resources") && ran.stderr.contains("(1/2"));
    let report = bridge.guest.runs(&["resource", "list", "--json"]).well();
    assert!(report.contains("\"status\":\"partial\""), "{report}");
    let ran = bridge.guest.runs(&["bad"]);
    assert!(ran.stderr.starts_with("Warning: bad — 4 entries were left out: "), "{ran:?}");
}

#[test]
fn resources_that_appear_without_a_word_are_there_when_they_are_asked_for() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let servers = Servers::none().misbehaving("x", &["resources-of-a-file", file.path().to_str().unwrap()]);
    let bridge = Host::with(&servers).opens();
    let uris = || {
        let answer = bridge.guest.asks("listResources", json!({"server": "x"}));
        let listed = answer["result"]["resources"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        listed.iter().map(|one| one["uri"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let by_mcp = || lists(&bridge, "/mcp", "resources/list")["result"]["resources"].as_array().map(Vec::len);
    assert!(uris().is_empty() && by_mcp() == Some(0));
    // Through MCP too, whoever asks first.
    std::fs::write(file.path(), "test:first").unwrap();
    let start = Instant::now();
    while by_mcp() != Some(1) {
        assert!(start.elapsed() < Duration::from_secs(5), "it does not show");
        std::thread::sleep(Duration::from_millis(100));
    }
    // More of them than 4 MiB: the limit that is set is the one that holds.
    let long = "y".repeat(1_000);
    let all: Vec<String> = (0..1_900).map(|n| format!("test:{n:04}-{long}")).collect();
    std::fs::write(file.path(), all.join("\n")).unwrap();
    let start = Instant::now();
    let mut asked = 0;
    while uris() != all {
        asked += 1;
        assert!(start.elapsed() < PATIENCE, "asked {asked} times");
        // Listings have a rate.
        std::thread::sleep(Duration::from_millis(100));
    }
    let read = bridge.guest.asks("readResource", json!({"server": "x", "uri": all[7]}));
    assert_eq!(read["result"]["contents"][0]["text"], "what was read");
}

/// What MCP's listing of this endpoint has.
fn lists(bridge: &Bridge, path: &str, method: &str) -> Value {
    let meta = "io.modelcontextprotocol/";
    let meta = json!({format!("{meta}protocolVersion"): "2026-07-28", format!("{meta}clientCapabilities"): {}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}).to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
         Content-Length: {}\r\n\r\n",
        bridge.guest.token,
        body.len()
    );
    bridge.guest.sends(format!("{head}{body}").as_bytes()).answer().json()
}

/// That a healthy server still answers.
fn others_go_on(bridge: &Bridge) {
    assert_eq!(bridge.guest.runs(&["ok", "add", "{\"a\":40,\"b\":2}"]).well(), "42\n");
}

#[test]
fn a_server_that_does_not_start_is_named_with_a_reason_and_without_its_secrets() {
    let servers = Servers::none()
        .misbehaving("ok", &["ok"])
        .and("missing", json!({"command": "/no/such/program", "args": ["--key", "s3cret-in-arguments"]}))
        .misbehaving("dies", &["exits-at-start"])
        .misbehaving("leaves", &["exits-after-initialize"])
        .misbehaving("mute", &["never-initializes"])
        .and(
            "unreachable",
            json!({"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer s3cret-in-header"}}),
        );
    let mut bridge = Host::with(&servers).settings(SHORT).opens();
    let rows = [
        ("missing", "its program or its working folder was not found; ask the operator"),
        ("dies", "it ended while starting; try again, or ask the operator"),
        ("leaves", "it ended while starting; try again, or ask the operator"),
        ("mute", "try again"),
        ("unreachable", "it could not be reached or does not speak the protocol; try again, or ask the operator"),
    ];
    std::thread::scope(|scope| {
        for (server, why) in rows {
            let guest = &bridge.guest;
            scope.spawn(move || {
                let answer = guest.calls(server, "echo", json!({}));
                assert_eq!(answer["error"]["code"], -32003, "{answer}");
                assert_eq!(answer["error"]["data"]["reason"], "server_unavailable");
            });
            // Each request would wait for the one that never answers.
            let steps: &[&[&str]] =
                if server == "mute" { &[&["mute"]] } else { &[&[server], &[server, "echo"], &[server, "echo", "{}"]] };
            for args in steps {
                let ran = guest.runs(&[*args, &["--exit-codes"]].concat());
                ran.fails(3, &[&format!("Server \"{server}\" is not available: "), why]);
                assert!(!ran.stderr.contains("/no/such") && !ran.stderr.contains("127.0.0.1:1/"), "{ran:?}");
            }
            others_go_on(&bridge);
        }
    });
    let list = bridge.guest.runs(&[]).well();
    for (server, _) in rows {
        let line = list.lines().find(|line| line.trim_start().starts_with(server)).unwrap();
        assert!(line.contains("0 tool(s)") && line.ends_with(']'), "{list}");
    }
    assert!(list.contains("  ok                   4 tool(s)"), "{list}");
    // The operator reads more, and nothing that steers a terminal.
    let log = bridge.ends().stderr;
    assert!(log.contains("/no/such/program") && log.contains("no licence"), "{log}");
    assert!(!log.contains('\u{1b}') && !log.contains("s3cret-in"), "{log:?}");
}

#[test]
fn a_server_that_dies_in_the_middle_of_a_call_is_said_so_at_once_and_starts_again_when_used() {
    for mode in ["exits-mid-call", "grandchild-holds-stdout"] {
        let bridge = Host::with(&Servers::none().misbehaving("x", &[mode]).misbehaving("ok", &["ok"])).opens();
        let _ready = bridge.guest.runs(&["x"]).well();
        for _ in 0..2 {
            let since = Instant::now();
            let ran = bridge.guest.runs(&["--exit-codes", "x", "echo", "{}"]);
            ran.fails(9, &["Server \"x\" ended before it answered", "do not repeat it blindly"]);
            assert!(since.elapsed() < PATIENCE / 4, "{mode}: {:?}", since.elapsed());
            others_go_on(&bridge);
        }
    }
}

#[test]
fn a_server_that_dies_all_the_time_is_left_alone_for_a_while() {
    let bridge = Host::with(&Servers::none().misbehaving("x", &["exits-mid-call"]).misbehaving("ok", &["ok"])).opens();
    let mut said = String::new();
    for _ in 0..8 {
        said = bridge.guest.runs(&["x", "echo", "{}"]).stderr;
        others_go_on(&bridge);
    }
    assert!(
        said.contains("Server \"x\" is not available: it ended too often and is left alone; try again in"),
        "{said}"
    );
}

#[test]
fn a_call_without_a_usable_answer_ends_with_what_is_known_and_is_never_sent_again() {
    let modes: [(&str, &[&str], &str); 7] = [
        ("silent", &["never-answers-call"], "did not answer in time"),
        ("busybody", &["progress-without-end"], "did not answer in time"),
        ("broken", &["broken-json"], "The answer of server \"broken\" cannot be used"),
        ("list", &["not-an-object"], "The answer of server \"list\" cannot be used"),
        ("stray", &["wrong-id"], "did not answer in time"),
        ("deaf", &["never-reads"], "did not answer in time"),
        ("dies", &["exits-mid-call"], "Server \"dies\" ended before it answered"),
    ];
    let mut tapes: Vec<Tape> = modes.iter().map(|_| Tape::new()).collect();
    let servers =
        modes.iter().zip(&tapes).fold(Servers::none().misbehaving("ok", &["ok"]), |all, ((name, mode, _), tape)| {
            all.recording(name, mode, tape)
        });
    let bridge = Host::with(&servers).settings(SHORT).opens();
    std::thread::scope(|scope| {
        for (name, _, says) in &modes {
            let guest = &bridge.guest;
            scope.spawn(move || {
                let ran = guest.runs(&["--exit-codes", name, "echo", "{}"]);
                ran.fails(9, &["do not repeat it blindly"]);
                assert!(ran.stderr.to_lowercase().contains(&says.to_lowercase()), "{name}: {ran:?}");
            });
        }
        for _ in 0..10 {
            others_go_on(&bridge);
        }
    });
    for ((name, ..), tape) in modes.iter().zip(&mut tapes) {
        if *name != "deaf" {
            assert_eq!(tape.count("tools/call"), 1, "{name}");
        }
    }
    let outcomes = bridge.host.record().into_iter().filter(|line| line["outcome"] == "unknown").count();
    assert_eq!(outcomes, modes.len());
}

#[test]
fn an_answer_whose_line_never_ends_is_too_large_before_its_call_is_out_of_time() {
    let mut tape = Tape::new();
    let bridge = Host::with(&Servers::none().recording("x", &["endless-line"], &tape)).opens();
    let since = Instant::now();
    bridge.guest.runs(&["--exit-codes", "x", "echo", "{}"]).fails(7, &["The result of server \"x\" is over"]);
    assert!(since.elapsed() < PATIENCE, "{:?}", since.elapsed());
    assert_eq!(tape.count("tools/call"), 1);
}

#[test]
fn a_call_that_ran_out_of_time_is_cancelled_at_its_server() {
    let mut tape = Tape::new();
    let bridge = Host::with(&Servers::none().recording("x", &["never-answers-call"], &tape)).settings(SHORT).opens();
    bridge.guest.runs(&["--exit-codes", "x", "echo", "{}"]).fails(9, &["did not answer in time"]);
    let call = tape.hears("tools/call");
    assert_eq!(tape.hears("notifications/cancelled"), call);
    let ran = bridge.guest.runs(&["--exit-codes", "x", "echo", "{}", "--timeout", "200ms"]);
    ran.fails(8, &["no answer within 200 ms", "--timeout"]);
}

#[test]
fn a_server_that_prints_rubbish_floods_or_asks_back_still_works() {
    let modes: [&[&str]; 9] = [
        &["rubbish-lines"],
        &["binary-noise"],
        &["stderr-flood"],
        &["duplicate-answers"],
        &["floods-progress", "3000"],
        &["asks-back"],
        &["one-bad-tool"],
        &["duplicate-tools"],
        &["slow-with-progress", "5"],
    ];
    let servers =
        modes.iter().fold(Servers::none().misbehaving("ok", &["ok"]), |all, mode| all.misbehaving(mode[0], mode));
    let mut bridge = Host::with(&servers).opens();
    for mode in modes {
        let tool = match mode[0] {
            "one-bad-tool" => "good",
            "duplicate-tools" => "once",
            _ => "echo",
        };
        let ran = bridge.guest.runs(&[mode[0], tool, "{}"]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{mode:?}: {ran:?}");
        others_go_on(&bridge);
    }
    let log = bridge.ends().stderr;
    assert!(!log.contains('\u{1b}') && log.len() < 100_000, "{} bytes", log.len());
}

#[test]
fn a_result_that_is_too_large_is_an_error_and_never_cut() {
    let servers = Servers::none()
        .misbehaving("ok", &["ok"])
        .misbehaving("large", &["long-result", "3000000"])
        .misbehaving("wide", &["long-line", "9000000"]);
    let bridge = Host::with(&servers).settings(SHORT).opens();
    for server in ["large", "wide"] {
        let ran = bridge.guest.runs(&["--exit-codes", server, "echo", "{}"]);
        ran.fails(
            7,
            &[&format!(
                "The result of server \"{server}\" is over 2097152 bytes (limit calls.result_bytes): ask for less"
            )],
        );
        assert_eq!(ran.stdout, "");
        others_go_on(&bridge);
    }
}

#[test]
fn values_that_others_would_change_come_through_as_they_are() {
    let bridge = Host::with(&Servers::none().misbehaving("x", &["big-integers"])).opens();
    let text = String::from_utf8(
        bridge
            .guest
            .posts(r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"x","tool":"echo"}}"#)
            .body,
    )
    .unwrap();
    for part in ["123456789012345678901234567890", "1e400", "\"unheard\":{\"of\":0.10}"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_secret_that_a_server_tells_is_taken_out_of_what_it_says() {
    let entry = json!({
        "command": footbridge_tests::programs::misbehaving_server(),
        "args": ["ok"],
        "env": {"API_KEY": "${SECRET_OF_SERVER}"},
    });
    let bridge = Host::with(&Servers::none().and("ok", entry)).env("SECRET_OF_SERVER", "s3cret-of-server").opens();
    let told = bridge.guest.runs(&["ok", "env", "{}"]);
    assert!(told.stdout.contains("API_KEY=") && !told.stdout.contains("s3cret-of-server"), "{told:?}");
}

#[test]
fn a_client_that_leaves_while_a_server_starts_frees_its_place_and_is_recorded() {
    let host = Host::with(&Servers::demo().misbehaving("slow", &["never-initializes"]));
    // Two at a time, and more in all than have a place at once.
    let script = "for n in 1 2 3; do for m in 1 2; do tool-cli --timeout 2s slow echo '{}' 2>/dev/null & done; wait; done; \
                  tool-cli demo now '{}'";
    let ran = host.runs_script(script);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let record = host.record();
    let left = record.iter().filter(|line| line["type"] == "refused" && line["reason"] == "cancelled").count();
    assert_eq!(left, 6, "{record:#?}");
    assert!(!record.iter().any(|line| line["type"] == "limited"), "{record:#?}");
}
