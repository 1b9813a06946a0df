//! `footbridge config show`: what all files come to, where each value is from, and no secret.

use std::fs;

use serde_json::{Value, json};

use super::{home, newcomer, servers, types, write};

#[test]
fn each_value_says_where_it_is_written_and_no_secret_shows() {
    let host = newcomer();
    let (first, later) = (home(&host).join(".mcp.json"), host.path().join("later.json"));
    write(
        &first,
        "// mine\n{\"mcpServers\": {\"a\": {\"command\": \"y\", \"args\": [\"--token\", \"hunter2\"],\n  \"env\": {\"A_KEY\": \"hunter2\", \"B\": \"1\"}}}}",
    );
    write(
        &later,
        "{\"mcpServers\": {\"a\": {\n  \"command\": \"y\", \"args\": [\"--token\", \"hunter2\"],\n  \"env\": {\"C\": {\"file\": \"~/.c\"}}}}}",
    );
    write(&host.path().join("footbridge.toml"), "[limits.calls]\nburst = 5\n");
    let files = [&first, &later, &later.with_file_name("footbridge.toml")].map(|path| path.display().to_string());
    let show = |words: &[&str]| {
        let files = files.iter().flat_map(|file| ["--config", file]);
        types(&host, &["config", "show"].into_iter().chain(files).chain(words.iter().copied()).collect::<Vec<_>>())
    };
    let shown = show(&["--origin"]);
    assert_eq!((shown.status, shown.stderr.as_str()), (0, ""));
    let (one, two) = (first.canonicalize().unwrap(), later.canonicalize().unwrap());
    for line in [
        format!("mcpServers.a.command = \"y\"  # {}:2:14", two.display()),
        format!("mcpServers.a.args = [\"--token\",\"[redacted]\"]  # {}:2:27", two.display()),
        format!("mcpServers.a.env.C = {{\"file\":\"~/.c\"}}  # {}:3:16", two.display()),
        format!("mcpServers.a.env.A_KEY = \"[redacted]\"  # {}:3:20", one.display()),
        format!("mcpServers.a.env.B = \"1\"  # {}:3:36", one.display()),
        format!(
            "limits.calls.burst = 5  # {}:2:9",
            later.with_file_name("footbridge.toml").canonicalize().unwrap().display()
        ),
    ] {
        assert!(shown.stdout.lines().any(|said| said == line), "{line}: {}", shown.stdout);
    }
    let all: Value = serde_json::from_str(&show(&["--json"]).well()).unwrap();
    assert_eq!(all["mcpServers"]["a"]["env"], json!({"C": {"file": "~/.c"}, "A_KEY": "[redacted]", "B": "1"}));
    assert_eq!(all["limits"]["calls"]["burst"], 5);
    // What is wrong is said, and the rest is shown.
    fs::write(&first, "{").unwrap();
    let ran = show(&["--origin", "--json"]);
    ran.fails(2, &[".mcp.json:1:1"]);
    let values: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&values[0]["key"], &values[0]["line"]), (&json!(["mcpServers", "a", "command"]), &json!(2)));
    // So is what no server and no setting can mean.
    write(&first, servers(&json!({"b": {"command": "y", "url": "https://x"}, "c": {"command": "z"}})));
    let ran = show(&["--json"]);
    ran.fails(2, &["server \"b\": it has both \"command\" and \"url\""]);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["mcpServers"]["c"]["command"], "z");
    fs::write(&first, "{").unwrap();
    // Without a name, what is not trusted is said.
    write(&host.work().join(".mcp.json"), servers(&json!({"theirs": {"command": "x"}})));
    types(&host, &["config", "show"]).fails(2, &[".mcp.json: it is not trusted: look at it", ".mcp.json:1:1"]);
    assert!(!ran.stdout.contains("hunter2") && !shown.stdout.contains("hunter2"));
}
