//! `footbridge config import`: what another program has is shown, then written, and then works.

use std::{ffi::OsStr, fs};

use footbridge_tests::{Person, programs};
use serde_json::{Value, json};

use super::{home, newcomer, types, write};

#[test]
fn what_a_client_has_is_shown_then_written_and_then_works() {
    let host = newcomer();
    let theirs = json!({"mcpServers": {
        "demo": {"command": programs::footbridge(), "args": ["demo-server"], "env": {"X_API_KEY": "hunter2"}, "trust": true}}});
    write(&home(&host).join(".gemini/settings.json"), theirs.to_string());
    let output = host.path().join("servers.json");
    let file = output.display().to_string();
    let words = ["config", "import", "gemini", "--output", &file];
    let dry = types(&host, &[&words[..], &["--dry-run"]].concat());
    for says in [
        "+    \"demo-server\"",
        "\"X_API_KEY\": \"[redacted]\"",
        "\"trust\" was not taken",
        "env.X_API_KEY is a secret in the clear",
        "demo-X_API_KEY",
    ] {
        assert!(dry.stdout.contains(says), "{says}: {}", dry.stdout);
    }
    let before = fs::read_to_string(&output).unwrap();
    types(&host, &words).fails(1, &["no terminal to ask on", "nothing was written"]);
    let mut person = Person::new();
    let mut running = person.starts(&host.footbridge(&words.map(OsStr::new)));
    person.sees("Type yes: ");
    assert!(!person.saw("hunter2") && fs::read_to_string(&output).unwrap() == before);
    person.types("yes\n");
    assert_eq!(running.status().code(), Some(0));
    let called = types(&host, &["call", "--config", &file, "demo", "now"]);
    assert_eq!(called.status, 0, "{called:?}");
    // Again: what is there stays, unless told.
    let again: Value =
        serde_json::from_str(&types(&host, &[&words[..], &["--yes", "--json"]].concat()).well()).unwrap();
    assert_eq!((&again["kept"], &again["written"]), (&json!(["demo"]), &json!(false)));
    write(&home(&host).join(".gemini/settings.json"), theirs.to_string().replace("demo-server", "other"));
    let told = types(&host, &[&words[..], &["--yes", "--overwrite", "--json"]].concat()).well();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["replaced"], &told["written"]), (&json!(["demo"]), &json!(true)));
    assert!(fs::read_to_string(&output).unwrap().contains("other") && !told.to_string().contains("hunter2"));
}

#[test]
fn what_cannot_be_taken_is_named_and_nothing_is_written() {
    let host = newcomer();
    let output = host.path().join("new.json").display().to_string();
    for (from, says) in [
        ("cursorr", "neither a file nor one of claude-desktop"),
        ("cursor", ".cursor/mcp.json; name the file"),
        ("broken.json", "broken.json:1:7: it does not parse"),
        ("other.json", "has no servers"),
    ] {
        write(&host.work().join("broken.json"), "{\"a\": ");
        write(&host.work().join("other.json"), "{\"a\": 1}");
        types(&host, &["config", "import", from, "--output", &output, "--yes"]).fails(2, &[says]);
    }
    assert!(!fs::exists(&output).unwrap());
}
