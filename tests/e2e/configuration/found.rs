//! Files that nobody named: which are taken, in which order, and which are not.

use std::fs;

use serde_json::json;

use super::{demo, home, newcomer, servers, types, write};

#[test]
fn where_there_is_nothing_all_places_are_named_and_the_example_works() {
    let host = newcomer();
    let ran = host.runs_script("echo never");
    let work = host.work().canonicalize().unwrap().display().to_string();
    let places = [".claude/mcp.json", ".mcp.json", "mcp.json"].map(|name| format!("  {work}/{name}\n"));
    ran.fails(2, &["no configuration was found", "/.mcp.json\n", "servers.json\n"]);
    for place in places {
        assert!(ran.stderr.contains(&place), "{place}: {ran:?}");
    }
    assert_eq!(ran.stdout, "", "{ran:?}");
    let example = ran.stderr.lines().find(|line| line.trim_start().starts_with("{\"mcpServers\"")).unwrap();
    write(&home(&host).join(".mcp.json"), example.trim());
    let ran = host.runs_script("tool-cli demo now '{}' >/dev/null && tool-cli");
    assert!(ran.status == 0 && ran.stdout.contains("demo"), "{ran:?}");
    assert!(ran.stderr.contains("configuration from ~/.mcp.json\n"), "{ran:?}");
}

#[test]
fn a_file_of_the_working_folder_runs_nothing_until_it_is_trusted() {
    let host = newcomer();
    write(&home(&host).join(".mcp.json"), servers(&json!({"mine": demo()})));
    let mark = host.path().join("mark");
    let theirs = servers(&json!({"theirs": {"command": "touch", "args": [mark]}}));
    for name in [".claude/mcp.json", ".mcp.json", "mcp.json"] {
        write(&host.work().join(name), &theirs);
    }
    let ran = host.runs_script("tool-cli");
    assert!(ran.status == 0 && ran.stdout.contains("mine") && !ran.stdout.contains("theirs"), "{ran:?}");
    for says in [
        "./.claude/mcp.json (not trusted)",
        "./mcp.json (not trusted)",
        "footbridge config trust ./.claude/mcp.json ./.mcp.json ./mcp.json",
    ] {
        assert!(ran.stderr.contains(says), "{says}: {ran:?}");
    }
    assert!(!mark.exists());
    // One that is named is meant, and nothing else is looked for.
    let named = types(&host, &["config", "check", "--config", "mcp.json"]).well();
    assert!(named.contains("ok: 1 server (theirs) from") && !named.contains("mine"), "{named}");
    // Only files that are not trusted: as good as none.
    fs::remove_file(home(&host).join(".mcp.json")).unwrap();
    host.runs(&["true"]).fails(2, &["no configuration was found", ".mcp.json  (is there and not trusted"]);
}

#[test]
fn a_pipe_or_a_broken_file_in_a_working_folder_holds_nothing_up() {
    let host = newcomer();
    write(&home(&host).join(".mcp.json"), servers(&json!({"mine": demo()})));
    nix::unistd::mkfifo(&host.work().join(".mcp.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    write(&host.work().join("mcp.json"), "{broken");
    let ran = host.runs_script("tool-cli");
    assert!(ran.status == 0 && ran.stdout.contains("mine"), "{ran:?}");
    // One that is named is a mistake.
    let ran = types(&host, &["config", "check", "--config", ".mcp.json", "--config", "mcp.json"]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stdout.contains(".mcp.json: it is no regular file"), "{ran:?}");
    assert!(ran.stdout.contains("mcp.json:1:2: it does not parse: expected a name in double quotes"), "{ran:?}");
}

#[test]
fn a_home_folder_that_is_worked_in_needs_no_trust_and_its_file_is_read_once() {
    let host = newcomer();
    write(&home(&host).join(".mcp.json"), servers(&json!({"mine": demo()})));
    let home = home(&host);
    let host = host.working_in(home);
    let said = types(&host, &["config", "check"]).well();
    assert!(said.ends_with("/home/.mcp.json\n") && !said.contains("replaces"), "{said}");
    assert_eq!(said.matches(".mcp.json").count(), 1, "{said}");
}
