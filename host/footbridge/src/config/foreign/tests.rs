//! Files as other programs write them.

use std::fs;

use serde_json::json;

use super::*;

/// Reads a file of this name and text, of a folder whose place stands as `@`, and of which `home` is the home folder.
fn take(name: &str, text: &str) -> (Value, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().canonicalize().unwrap();
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let at = folder.display().to_string();
    fs::write(&path, text.replace('@', &at)).unwrap();
    let found = read(&path, Some(&folder.join("here")), Some(&folder.join("home"))).unwrap();
    let plain = |text: String| text.replace(&at, "@");
    let servers = serde_json::from_str(&plain(Value::Object(found.servers).to_string())).unwrap();
    (servers, found.notes.iter().map(|note| plain(note.to_string())).collect())
}

#[track_caller]
fn notes(found: &[String], says: &[&str]) {
    assert_eq!(found.len(), says.len(), "{found:#?}");
    for part in says {
        assert!(found.iter().any(|note| note.contains(part)), "{part}: {found:#?}");
    }
}

#[test]
fn claude_desktop_and_cursor() {
    let text = r#"{
  "globalShortcut": "",
  "mcpServers": {
    "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/u"]},
    "local": {"command": "./bin/server", "cwd": "../x", "env": {"DEBUG": true, "PORT": 80}},
    "events": {"url": "https://h.example/sse", "auth": {"CLIENT_ID": "x"}},
  }
}"#;
    let (servers, said) = take(".cursor/mcp.json", &text.replace("@model", "\\u0040model"));
    let package = format!("{}modelcontextprotocol/server-filesystem", '\u{40}');
    assert_eq!(servers["filesystem"], json!({"command": "npx", "args": ["-y", package, "/home/u"]}));
    assert_eq!(
        servers["local"],
        json!({"command": "./bin/server", "cwd": "@/../x", "env": {"DEBUG": "true", "PORT": "80"}})
    );
    assert_eq!(servers["events"], json!({"url": "https://h.example/sse", "type": "sse"}));
    notes(&said, &["server \"events\": \"auth\" was not taken: OAuth"]);
}

#[test]
fn claude_code_has_servers_of_folders() {
    let text = r#"{"numStartups": 5, "mcpServers": {"a": {"type": "stdio", "command": "a", "args": [], "env": {}},
        "both": {"type": "http", "url": "https://all"}},
      "projects": {
        "@/here": {"allowedTools": [], "mcpServers": {"both": {"type": "sse", "url": "https://one"}, "b": {"command": "./b"}}},
        "@/there": {"mcpServers": {"c": {"command": "c"}}},
        "@/none": {"mcpServers": {}}}}"#;
    let (servers, said) = take(".claude.json", text);
    assert_eq!(
        servers,
        json!({"a": {"command": "a"}, "both": {"url": "https://one", "type": "sse"}, "b": {"command": "@/here/./b"}})
    );
    notes(
        &said,
        &["servers of the folder @/there alone were not taken: c; start from there, or say --project @/there"],
    );
}

#[test]
fn vscode_asks_for_inputs() {
    let text = r#"{
  // from the gallery
  "inputs": [{"type": "promptString", "id": "gh-token", "description": "GitHub token", "password": true}],
  "servers": {
    "github": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${input:gh-token}"}, "gallery": "x"},
    "here": {"type": "stdio", "command": "node", "args": ["${workspaceFolder}/s.js"], "envFile": "${workspaceFolder}/.env"},
    "odd": {"type": "stdio", "command": "x", "args": ["${command:pick}"]},
  },
}"#;
    let (servers, said) = take(".vscode/mcp.json", text);
    assert_eq!(
        servers,
        json!({"github": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${GH_TOKEN}"}},
            "here": {"command": "node", "args": ["@/s.js"]}})
    );
    notes(
        &said,
        &[
            ".vscode/mcp.json:5:",
            "\"envFile\" was not taken",
            "server \"odd\": it was not taken: ${command:pick} has no counterpart",
        ],
    );
    assert!(said[0].contains("(GitHub token) was asked for by the editor: set the variable GH_TOKEN"), "{said:?}");
}

#[test]
fn a_file_of_a_project_is_told_from_the_users_own() {
    let text = r#"{"mcpServers": {"a": {"command": "a", "args": ["${workspaceFolder}/s.js"]}}}"#;
    for name in [".cursor/mcp.json", ".gemini/settings.json"] {
        let (servers, said) = take(&format!("project/{name}"), text);
        assert_eq!(servers, json!({"a": {"command": "a", "args": ["@/project/s.js"]}}), "{name}");
        notes(&said, &[]);
        let (servers, said) = take(&format!("home/{name}"), text);
        assert_eq!(servers, json!({}), "{name}");
        notes(&said, &["${workspaceFolder} has no counterpart here"]);
    }
    // No project has such a file, whoever's it is.
    let (servers, _) = take("other/.config/Code/User/mcp.json", text);
    assert_eq!(servers, json!({}));
}

#[test]
fn a_file_of_the_user_may_be_a_link() {
    let place = tempfile::tempdir().unwrap();
    let (home, kept) = (place.path().join("home"), place.path().join("kept/.cursor"));
    fs::create_dir_all(&home).unwrap();
    fs::create_dir_all(&kept).unwrap();
    fs::write(kept.join("mcp.json"), r#"{"mcpServers": {"a": {"command": "${workspaceFolder}/a"}}}"#).unwrap();
    std::os::unix::fs::symlink(&kept, home.join(".cursor")).unwrap();
    let found = read(&home.join(".cursor/mcp.json"), None, Some(&home)).unwrap();
    assert!(found.servers.is_empty(), "{found:?}");
}

#[test]
fn an_entry_that_is_none_hides_no_other() {
    let text = r#"{"mcpServers": {"a": {"command": "a"}, "broken": null, "list": ["x"]}}"#;
    let (servers, said) = take("claude_desktop_config.json", text);
    assert_eq!(servers, json!({"a": {"command": "a"}}));
    notes(&said, &["\"broken\" was not taken: it is null, and an object", "\"list\" was not taken: it is a list"]);
}

#[test]
fn windsurf_and_gemini() {
    let (servers, said) = take(
        ".codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"r": {"serverUrl": "https://h/mcp", "headers": {"K": "${env:K}"}, "disabled": true,
            "disabledTools": ["drop"], "alwaysAllow": ["get"]}}}"#,
    );
    assert_eq!(
        servers,
        json!({"r": {"url": "https://h/mcp", "headers": {"K": "${env:K}"}, "disabledTools": ["drop"], "disabled": true}})
    );
    notes(&said, &["\"alwaysAllow\" was not taken: what may be called"]);
    let (servers, said) = take(
        ".gemini/settings.json",
        r#"{"theme": "x", "mcp": {"allowed": ["a"]}, "mcpServers": {
            "a": {"command": "a", "env": {"K": "$MY_K"}, "timeout": 3000, "trust": false, "excludeTools": ["x"]},
            "b": {"url": "https://h/events"}, "c": {"httpUrl": "https://h/mcp"}}}"#,
    );
    assert_eq!(
        servers,
        json!({"a": {"command": "a", "env": {"K": "${MY_K}"}, "disabledTools": ["x"]},
            "b": {"url": "https://h/events", "type": "sse"}, "c": {"url": "https://h/mcp"}})
    );
    notes(&said, &["\"timeout\" was not taken: times are limits"]);
}

#[test]
fn codex_writes_toml() {
    let text = "model = \"x\"\n[mcp_servers.a]\ncommand = \"uvx\"\nargs = [\"s\"]\nenv_vars = [\"HOME\", {name = \"K\"}]\n\
        startup_timeout_sec = 10\nenabled_tools = [\"x\"]\n[mcp_servers.a.env]\nX = \"1\"\n\
        [mcp_servers.b]\nurl = \"https://h/mcp\"\nbearer_token_env_var = \"TOKEN\"\nhttp_headers = { R = \"eu\" }\n\
        env_http_headers = { S = \"S_VAR\" }\nenabled = false\ndisabled_tools = [\"y\"]\n";
    let (servers, said) = take(".codex/config.toml", text);
    assert_eq!(
        servers,
        json!({"a": {"command": "uvx", "args": ["s"], "env": {"X": "1", "HOME": "${HOME}", "K": "${K}"}},
            "b": {"url": "https://h/mcp", "headers": {"R": "eu", "S": "${S_VAR}", "Authorization": "Bearer ${TOKEN}"},
                "disabledTools": ["y"], "disabled": true}})
    );
    notes(&said, &["config.toml:6:1: server \"a\": \"startup_timeout_sec\"", "\"enabled_tools\" was not taken"]);
}

#[test]
fn zed_and_opencode() {
    let (servers, said) = take(
        "settings.json",
        r#"{ "vim_mode": true, /* x */ "context_servers": {
            "a": {"source": "custom", "command": "npx", "args": ["-y", "a"], "env": {}},
            "old": {"command": {"path": "/usr/bin/old", "args": ["run"], "env": {"K": "v"}}, "settings": {"x": 1}},
            "ext": {"source": "extension", "enabled": true, "settings": {"k": "v"}},
            "r": {"url": "https://h/mcp", "headers": {"X": "y"}},
        } }"#,
    );
    assert_eq!(
        servers,
        json!({"a": {"command": "npx", "args": ["-y", "a"]},
            "old": {"command": "/usr/bin/old", "args": ["run"], "env": {"K": "v"}},
            "r": {"url": "https://h/mcp", "headers": {"X": "y"}}})
    );
    assert!(said.iter().any(|note| note.contains("server \"ext\": it was not taken: it is a part of an extension")));
    let local = r#"{"l": {"type": "local", "command": ["bun", "x", "s"], "environment": {"K": "{env:K}", "F": "{file:~/.f}"},
        "enabled": true}, "r": {"type": "remote", "url": "https://h/mcp", "headers": {"A": "Bearer {env:T}"}, "oauth": false}}"#;
    for text in [format!(r#"{{"mcp": {local}}}"#), format!(r#"{{"mcp": {{"servers": {local}}}}}"#)] {
        let (servers, said) = take("opencode.jsonc", &text);
        assert_eq!(
            servers,
            json!({"l": {"command": "bun", "args": ["x", "s"], "env": {"K": "${K}", "F": {"file": "~/.f"}}},
                "r": {"url": "https://h/mcp", "headers": {"A": "Bearer ${T}"}}})
        );
        notes(&said, &[]);
    }
}

#[test]
fn a_member_that_is_misspelt_is_named_with_the_one_that_is_meant() {
    let (_, said) = take("mcp.json", r#"{"mcpServers": {"a": {"comand": "x"}, "b": {"command": "x", "colour": 1}}}"#);
    let has = |part: &str| said.iter().any(|note| note.contains(part));
    assert!(has("\"comand\" was not taken: there is nothing like it here; did you mean \"command\"?"), "{said:?}");
    assert!(
        said.iter().any(|note| note.ends_with("\"colour\" was not taken: there is nothing like it here")),
        "{said:?}"
    );
}

#[test]
fn what_is_no_such_file_is_named() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.json");
    fs::write(&path, "{\"a\": 1}").unwrap();
    assert!(matches!(read(&path, None, None), Err(NotForeign::Nothing(_))));
    fs::write(&path, "{\"a\": ").unwrap();
    assert!(matches!(read(&path, None, None), Err(NotForeign::Mistake(_))));
    let said = find("cursorr", Some(place.path())).unwrap_err().to_string();
    assert!(said.contains("claude-desktop, claude-code, cursor"), "{said}");
    let said = find("opencode", Some(place.path())).unwrap_err().to_string();
    assert!(said.contains("opencode.json, ") && said.contains("opencode.jsonc"), "{said}");
}
