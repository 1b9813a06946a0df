//! The public command, as it was recorded: the real `tool-cli` through a real harness.

use footbridge_tests::{Host, Ran, Servers, vectors};
use serde_json::Value;

#[test]
fn every_recorded_run_is_the_same_through_a_harness() {
    let bridge = Host::with(&Servers::recorded()).opens();
    for server in ["weather", "github", "empty"] {
        let _ready = bridge.guest.runs(&[server]).well();
    }
    let cases = vectors::cases("tool-cli-0.3.0-cli.json");
    assert!(cases.len() > 15, "{}", cases.len());
    for case in cases {
        replay(&bridge.guest, &case);
    }
}

fn replay(guest: &footbridge_tests::Guest, case: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out").display().to_string();
    let text = |value: &Value| value.as_str().unwrap().replace("<file>", &file);
    let args: Vec<String> = case["args"].as_array().unwrap().iter().map(text).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = guest.tool_cli(&args);
    for (name, value) in case["env"].as_object().into_iter().flatten() {
        command.env(name, text(value));
    }
    let Ran { status, stdout, stderr } = footbridge_tests::Running::start(&mut command).ends();
    assert_eq!(i64::from(status), case["exit"], "{case}");
    let expected = sorted(&text(&case["stdout"]));
    if args == ["--help"] {
        // Usage first, which needs no server; then the recorded list.
        let (usage, list) = stdout.split_at(stdout.find("Available servers").unwrap());
        assert!(usage.starts_with("tool-cli: "), "{stdout}");
        assert_eq!(sorted(list), expected);
    } else {
        assert_eq!(sorted(&stdout), expected, "{case}");
    }
    if case["env"]["TOOL_CLI_PORT"].is_string() {
        assert!(stderr.starts_with("Error: tool-cli server not running"), "{stderr}");
    } else {
        assert_eq!(sorted(&stderr), sorted(&text(&case["stderr"])), "{case}");
    }
    if let Some(expected) = case["file"].as_str() {
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    }
}

/// A text whose lists of names are in the order of the alphabet; everything else stays where it is.
fn sorted(text: &str) -> String {
    let names = |list: &str| {
        let mut names: Vec<&str> = list.split(", ").collect();
        names.sort_unstable();
        names.join(", ")
    };
    let line = |line: &str| {
        if let Some((before, list)) = line.split_once("(e.g. ") {
            let (list, after) = list.split_once(')').unwrap();
            format!("{before}(e.g. {}){after}", names(list))
        } else if let Some((before, list)) = line.split_once("Connected: ") {
            format!("{before}Connected: {}", names(list))
        } else {
            line.to_owned()
        }
    };
    let mut lines: Vec<String> = text.lines().map(line).collect();
    let is_listing = lines.first().is_some_and(|first| first.ends_with("tool(s):") || first == "Available servers:");
    if is_listing {
        let end = lines.iter().position(String::is_empty).unwrap_or(lines.len());
        lines[1..end].sort();
    }
    lines.join("\n")
}
