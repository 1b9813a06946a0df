//! Replays every recorded run of the public command against bridges of both generations, byte for byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;

use bridge::{Bridge, TOKEN, bare, run, tool_cli, vectors};
use serde_json::Value;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn every_recorded_run_is_the_same_to_the_byte() {
    for generation in [0, 1] {
        let bridge = Bridge::of_generation(generation);
        for case in vectors("tool-cli-0.3.0-cli.json")["cases"].as_array().unwrap() {
            replay(&bridge, case);
        }
    }
}

/// Two runs are exempt: help, which puts usage before the list, and a refused port, whose message only starts alike.
fn replay(bridge: &Bridge, case: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out").display().to_string();
    let args: Vec<String> =
        case["args"].as_array().unwrap().iter().map(|arg| text(arg).replace("<file>", &file)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = tool_cli(bridge, &args);
    for (name, value) in case["env"].as_object().into_iter().flatten() {
        command.env(name, text(value));
    }
    let (status, stdout, stderr) = run(&mut command);
    let expected = text(&case["stdout"]).replace("<file>", &file);
    if args == ["--help"] {
        assert!(stdout.starts_with("tool-cli: ") && stdout.ends_with(&format!("\n\n{expected}")), "{stdout}");
    } else {
        assert_eq!(stdout, expected, "{case}");
    }
    if case["env"]["TOOL_CLI_PORT"].is_string() {
        assert!(stderr.starts_with("Error: tool-cli server not running"), "{stderr}");
    } else {
        assert_eq!(stderr, text(&case["stderr"]), "{case}");
    }
    assert_eq!(status, case["exit"].as_i64().map(|code| i32::try_from(code).unwrap()), "{case}");
    if let Some(expected) = case["file"].as_str() {
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    }
}

#[test]
fn each_step_is_one_request_with_the_recorded_envelope() {
    let bridge = Bridge::of_generation(1);
    run(&mut tool_cli(&bridge, &["weather", "check_weather", r#"{"city": "Bern", "n": 12345678901234567890123}"#]));
    let got = bridge.got.lock().unwrap().clone();
    assert_eq!(got.len(), 1, "no handshake is paid for");
    assert_eq!(got[0].line, "POST / HTTP/1.1");
    assert_eq!(got[0].headers["host"], format!("127.0.0.1:{}", bridge.port));
    assert_eq!(got[0].headers["content-type"], "application/json");
    assert_eq!(got[0].headers["authorization"], format!("Bearer {TOKEN}"));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"weather","tool":"check_weather","arguments":{"city": "Bern", "n": 12345678901234567890123}}}"#;
    assert_eq!(got[0].body, body, "numbers and blanks of the arguments are as typed");
}

#[test]
fn help_and_version_need_no_bridge() {
    let (status, stdout, stderr) = run(bare(&["--help"]).env("TOOL_CLI_PORT", "1"));
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("tool-cli: ") && !stdout.contains("Available servers"), "{stdout}");
    assert!(stdout.contains("| jq .temperature\n"), "the demo's tool has no other: {stdout}");
    let (status, stdout, _) = run(bare(&["--version"]).env("TOOL_CLI_PORT", "1"));
    assert_eq!((status, stdout.as_str()), (Some(0), concat!("tool-cli ", env!("CARGO_PKG_VERSION"), "\n")));
}
