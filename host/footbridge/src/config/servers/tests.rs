//! Entries of servers files, from their text alone.

use std::{ffi::OsString, path::Path};

use super::*;
use crate::config::{Commands, Gathered, written};

/// What a servers file means.
#[derive(Default)]
struct ServersFile {
    servers: Vec<ServerSpec>,
    gathered: Gathered,
    mistakes: Vec<Mistake>,
    notes: Vec<Mistake>,
}

fn read_text(text: &str) -> ServersFile {
    let var = |name: &str| match name {
        "KEY" => Some(OsString::from("from-the-environment")),
        "HOME" => Some(OsString::from("/v")),
        _ => None,
    };
    let vars = ["PATH", "HOME", "AWS_SECRET", "TOOL_CLI_TOKEN", "https_proxy", "XDG_DATA_HOME"];
    let vars: Vec<(String, String)> = vars.iter().map(|name| ((*name).to_owned(), "/v".to_owned())).collect();
    let mut found = ServersFile::default();
    let servers = match written::servers(Path::new("/etc/x/servers.json"), text) {
        Ok(servers) => servers,
        Err(mistakes) => return ServersFile { mistakes, ..found },
    };
    let commands = Commands::default();
    let mut reader = Reader { var: &var, base: Path::new("/"), commands: &commands, gathered: Gathered::default() };
    for server in &servers {
        let meaning = meant(server, &mut reader, &vars);
        found.servers.extend(meaning.spec);
        found.mistakes.extend(meaning.mistakes.into_iter().chain(meaning.lacking));
        found.notes.extend(meaning.notes);
    }
    found.gathered = reader.gathered;
    found
}

fn mistakes(text: &str) -> Vec<String> {
    read_text(text).mistakes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_program_gets_the_allowed_variables_and_what_the_entry_adds() {
    let found = read_text(
        r#"{"mcpServers":{"a":{"command":"x","args":["-k","${KEY}"],"env":{"B":"1","TOOL_CLI_X":"y"},"autoApprove":[]}}}"#,
    );
    assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
    let TransportSpec::Stdio(spec) = &found.servers[0].transport else { panic!() };
    let names: Vec<&str> = spec.env.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["B", "HOME", "PATH", "XDG_DATA_HOME", "https_proxy"]);
    assert_eq!(spec.args[1].expose(), "from-the-environment");
    assert!(spec.confine, "unless it says otherwise");
    assert_eq!(found.notes.len(), 2);
    assert!(found.notes[0].what.contains("\"autoApprove\" is not obeyed"), "{:?}", found.notes);
    assert!(found.notes[1].what.contains("not found on PATH"), "{:?}", found.notes);
    assert!(found.gathered.names.contains("KEY"));
}

#[test]
fn an_entry_can_go_unconfined_and_programs_that_need_to_are_noted() {
    // A program of that name, which need not be installed here.
    let folder = tempfile::tempdir().unwrap();
    let podman = folder.path().join("podman");
    std::fs::copy("/bin/true", &podman).unwrap();
    let of = |more: &str| read_text(&format!(r#"{{"mcpServers":{{"a":{{"command":{podman:?}{more}}}}}}}"#));
    let (kept, free) = (of(""), of(r#","confine":false"#));
    let confined = |found: &ServersFile| {
        let TransportSpec::Stdio(spec) = &found.servers[0].transport else { panic!() };
        spec.confine
    };
    assert_eq!((confined(&kept), confined(&free)), (true, false));
    assert!(kept.notes[0].what.contains("podman gains privileges"), "{:?}", kept.notes);
    assert_eq!(free.notes, []);
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let found = mistakes(
        "{\"mcpServers\": {\n\"neither\": {},\n\"both\": {\"command\":\"x\",\"url\":\"http://localhost\"},\n\"plain\": {\"url\":\"http://example.org/\"},\n\"sse\": {\"type\":\"sse\",\"disabledTools\":[1]},\n\"secret\": {\"command\":\"x\",\"env\":{\"A\":\"${NOT_SET}\"}},\n\"shape\": {\"command\":5},\n\"-bad\": {\"command\":\"x\"},\n\"old\": {\"command\":\"x\",\"protocol\":\"1\"},\n\"list\": []}}",
    );
    for (start, part) in [
        ("/etc/x/servers.json:2:1: server \"neither\"", "neither \"command\" nor \"url\""),
        ("/etc/x/servers.json:3:1: server \"both\"", "keep one"),
        ("/etc/x/servers.json:4:17: server \"plain\"", "loopback"),
        ("/etc/x/servers.json:5:1: server \"sse\"", "neither \"command\" nor \"url\""),
        ("/etc/x/servers.json:5:39: server \"sse\": \"disabledTools\"", "the name of a tool is expected"),
        ("/etc/x/servers.json:6:37: server \"secret\": \"A\"", "NOT_SET is not set"),
        (
            "/etc/x/servers.json:7:21: server \"shape\": \"command\" is a number, and a text in double quotes is",
            "expected",
        ),
        ("/etc/x/servers.json:8:1: server \"-bad\"", "does not start with"),
        ("/etc/x/servers.json:9:34: server \"old\"", "protocol"),
        ("/etc/x/servers.json:10:9: server \"list\": it is a list", "an object in braces is expected"),
    ] {
        assert!(found.iter().any(|m| m.starts_with(start) && m.contains(part)), "{start} {part}: {found:#?}");
    }
    assert_eq!(found.len(), 10, "{found:#?}");
}

#[test]
fn what_is_refused_before_anything_is_sent_is_a_mistake_with_its_place() {
    let found = mistakes(
        "{\"mcpServers\": {\n\"user\": {\"url\":\"https://me:hunter2@x.example/\"},\n\"ftp\": {\"url\":\"ftp://me:hunter2@x/\"},\n\"host\": {\"url\":\"https://x/\",\"headers\":{\"Host\":\"y\"}},\n\"length\": {\"url\":\"https://x/\",\"headers\":{\"Content-Length\":\"1\"}},\n\"session\": {\"type\":\"sse\",\"url\":\"https://x/\",\"headers\":{\"Mcp-Session-Id\":\"1\"}},\n\"line\": {\"url\":\"https://x/\",\"headers\":{\"X\":\"hunter2\\ny\"}}}}",
    );
    for (start, part) in [
        ("/etc/x/servers.json:2:16: server \"user\"", "holds a user name or a password"),
        ("/etc/x/servers.json:3:15: server \"ftp\"", "\"//...@x/\" is not an http or https URL"),
        ("/etc/x/servers.json:4:47: server \"host\"", "\"host\" is set here"),
        ("/etc/x/servers.json:5:59: server \"length\"", "\"content-length\" is set here"),
        ("/etc/x/servers.json:6:", "\"mcp-session-id\" is set here"),
        ("/etc/x/servers.json:7:44: server \"line\"", "a value that no header may have"),
    ] {
        assert!(found.iter().any(|m| m.starts_with(start) && m.contains(part)), "{start} {part}: {found:#?}");
    }
    assert!(found.len() == 6 && !found.concat().contains("hunter2"), "{found:#?}");
}

#[test]
fn a_server_whose_values_are_not_there_is_one_that_says_so() {
    for (entry, kind, says) in [
        (r#""command": "x", "env": {"K": "${NONE}"}"#, "stdio", "\"K\": the variable NONE is not set: set it before"),
        (r#""command": "x", "args": [{"file": "/nowhere/key"}]"#, "stdio", "/nowhere/key: there is no such file"),
        (r#""url": "https://x/", "headers": {"K": {"command": ["false"]}}"#, "http", "secret command false failed"),
        (r#""type": "sse", "url": "${NONE}""#, "sse", "NONE is not set"),
        (
            r#""type": "cli", "allowedPrograms": ["cat"], "tools": [{"name": "a", "args": ["${NONE}"]}]"#,
            "cli",
            "tool \"a\": \"${NONE}\": the variable NONE is not set",
        ),
    ] {
        let found = read_text(&format!("{{\"mcpServers\": {{\"a\": {{{entry}}}, \"b\": {{\"command\": \"x\"}}}}}}"));
        let [ServerSpec { transport: TransportSpec::Lacking { kind: is, why }, .. }, _other] = &found.servers[..]
        else {
            panic!("{entry}: {:?}", found.servers)
        };
        assert!(*is == kind && why.contains(says) && why.starts_with("/etc/x/servers.json:1:"), "{entry}: {why}");
    }
}

#[test]
fn no_entry_vanishes_without_a_word_whatever_its_type_and_members() {
    let values = ["", "\"x\"", "\"http://localhost:1/\"", "5", "null"];
    for kind in ["", "stdio", "http", "streamable-http", "sse", "cli", "other"] {
        for (command, url) in values.iter().flat_map(|command| values.map(|url| (*command, url))) {
            let kind = if kind.is_empty() { String::new() } else { format!("{kind:?}") };
            let members = [("type", kind.as_str()), ("command", command), ("url", url)];
            let members = members.iter().filter(|(_, value)| !value.is_empty());
            let members: Vec<String> = members.map(|(name, value)| format!("{name:?}: {value}")).collect();
            let text = format!("{{\"mcpServers\": {{\"a\": {{{}}}}}}}", members.join(", "));
            let found = read_text(&text);
            assert_ne!(found.servers.is_empty(), found.mistakes.is_empty(), "{text}: {:?}", found.mistakes);
        }
    }
    for (entry, says) in [
        (r#""type": "http", "command": "sh""#, "type \"http\" takes \"url\", and \"command\" is there"),
        (r#""type": "sse", "command": "sh""#, "type \"sse\" takes \"url\", and \"command\" is there"),
        (r#""type": "stdio", "url": "http://localhost:1/""#, "type \"stdio\" takes \"command\", and \"url\" is there"),
        (r#""type": "cli", "url": "http://localhost:1/""#, "type \"cli\" takes \"command\", and \"url\" is there"),
    ] {
        let found = mistakes(&format!("{{\"mcpServers\": {{\"a\": {{{entry}}}}}}}"));
        assert!(found.len() == 1 && found[0].contains(says), "{entry}: {found:?}");
    }
}

#[test]
fn names_that_no_variable_can_have_are_refused() {
    let found = mistakes(r#"{"mcpServers": {"a": {"command": "x", "env": {"A=B": "c", "": "d", "E": "f"}}}}"#);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().all(|one| one.contains("in \"env\" cannot be the name of a variable")), "{found:#?}");
    assert!(found[0].contains("\"A=B\""), "{found:#?}");
}

#[test]
fn all_that_is_wrong_with_one_entry_is_said_at_once() {
    let found = mistakes(
        r#"{"mcpServers": {"a": {"command": "${A}", "args": ["${B}", {"file": 1}, null], "cwd": "${C}", "confine": "no",
        "env": {"D": "${D}", "E": {"files": "x"}}, "protocol": "2"},
        "b": {"url": "ftp://x", "headers": {"a b": "1", "X": "${E}", "Y": []}}}}"#,
    );
    for part in [
        "variable A is not set",
        "variable B is not set",
        "variable C is not set",
        "variable D is not set",
        "\"args\": it is an object with other members, and a text is expected, or {\"file\"",
        "\"args\": it is null",
        "\"confine\" is \"a text\"",
        "\"E\": it is an object",
        "protocol \"2\"",
        "not an http or https URL",
        "\"a b\" is not the name of a header",
        "variable E is not set",
        "\"Y\": it is a list",
    ] {
        let part = part.replace("is \"a text\"", "is a text");
        assert_eq!(found.iter().filter(|m| m.contains(&part)).count(), 1, "{part}: {found:#?}");
    }
    assert_eq!(found.len(), 13, "{found:#?}");
}

#[test]
fn an_address_as_others_write_it_is_taken_over_by_import() {
    for key in ["httpUrl", "serverUrl"] {
        let found = read_text(&format!(r#"{{"mcpServers": {{"a": {{"{key}": "https://example.org/mcp"}}}}}}"#));
        let said: Vec<String> = found.mistakes.iter().map(ToString::to_string).collect();
        assert!(matches!(said.as_slice(), [one] if one.contains(key) && one.contains("config import")), "{said:?}");
    }
}

#[test]
fn a_key_that_is_misspelt_is_named_with_the_one_that_is_meant() {
    let found = read_text(
        r#"{"mcpServers": {"a": {"comand": "x"}, "b": {"command": "x", "arg": [], "timeout": 5, "comfine": false}}}"#,
    );
    let said: Vec<String> = found.mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "/etc/x/servers.json:1:23: server \"a\": it has neither \"command\" nor \"url\", but \"comand\": did you mean \"command\"?"
        ]
    );
    let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
    for (part, count) in [
        ("\"arg\" is not known here; did you mean \"args\"?", 1),
        ("did you mean \"confine\"?", 1),
        ("\"timeout\" is not known here", 1),
        ("\"timeout\" is not known here;", 0),
    ] {
        assert_eq!(notes.iter().filter(|note| note.contains(part)).count(), count, "{part}: {notes:#?}");
    }
}

#[test]
fn every_key_that_counts_as_ours_is_read() {
    for key in misspelt::OURS {
        let found = read_text(&format!("{{\"mcpServers\": {{\"a\": {{\"type\": \"cli\", {key:?}: null}}}}}}"));
        let found: Vec<_> = found.mistakes.iter().chain(&found.notes).map(ToString::to_string).collect();
        assert!(!found.iter().any(|what| what.contains("is not known here")), "{key}: {found:?}");
    }
}

#[test]
fn servers_of_vs_code_and_references_of_other_clients_are_understood() {
    let found = read_text(
        r#"{
        // as VS Code writes it
        "inputs": [{"type": "promptString", "id": "key", "password": true}],
        "servers": {"a": {"type": "stdio", "command": "~/bin/x", "cwd": "${workspaceFolder}/sub",
            "args": ["~/notes", "a~b", "~other", "${userHome}"], "env": {"A": "${env:KEY}", "N": 5, "B": true,},},},
        }"#,
    );
    assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
    let TransportSpec::Stdio(spec) = &found.servers[0].transport else { panic!() };
    assert_eq!(spec.command, "/v/bin/x");
    assert_eq!(spec.cwd.as_deref(), Some(Path::new("/etc/x/sub")));
    let args: Vec<&str> = spec.args.iter().map(Secret::expose).collect();
    assert_eq!(args, ["/v/notes", "a~b", "~other", "/v"]);
    let value = |name: &str| spec.env.iter().find(|(n, _)| n == name).unwrap().1.expose().to_owned();
    assert_eq!([value("A"), value("N"), value("B")], ["from-the-environment", "5", "true"]);
    let asked = mistakes(r#"{"servers": {"a": {"command": "x", "env": {"A": "${input:key}"}}}}"#);
    assert!(asked[0].contains("${input:key} is asked for by VS Code alone: write ${VARIABLE}"), "{asked:?}");
}

#[test]
fn what_an_entry_that_is_turned_off_names_is_kept_from_guests_and_no_command_of_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let (key, ran) = (folder.path().join("key"), folder.path().join("ran"));
    std::fs::write(&key, "s3cret\n").unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let odd = folder.path().join("odd");
    std::fs::write(&odd, b"\xff").unwrap();
    let found = read_text(&format!(
        r#"{{"mcpServers": {{"a": {{"command": "x", "args": ["${{NONE}} ${{OF_ARGS}}"], "disabled": true, "env":
            {{"A": "${{KEY}}", "B": {{"file": {key:?}}}, "C": {{"command": ["touch", {ran:?}]}}, "D": {{"file": {odd:?}}}}}}}}}}}"#
    ));
    assert_eq!((found.servers.len(), found.mistakes.len(), found.notes.len()), (0, 0, 1), "{:?}", found.mistakes);
    assert!(["NONE", "OF_ARGS", "KEY"].iter().all(|name| found.gathered.names.contains(*name)), "{:?}", found.gathered);
    assert_eq!(found.gathered.files, [key, odd]);
    let secrets: Vec<&str> = found.gathered.secrets.iter().map(Secret::expose).collect();
    assert_eq!((secrets, ran.exists()), (vec!["from-the-environment", "s3cret"], false));
}

#[test]
fn an_entry_that_is_turned_off_is_noted_and_nothing_is_missing_from_it() {
    for off in ["\"disabled\": true", "\"enabled\": false"] {
        let found = read_text(&format!(r#"{{"mcpServers": {{"a": {{"command": "${{NOT_SET}}", {off}}}}}}}"#));
        assert_eq!((found.servers.len(), found.mistakes.len(), found.notes.len()), (0, 0, 1));
        assert!(found.notes[0].what.contains("turned off"));
    }
}

#[test]
fn what_does_not_parse_says_where() {
    assert!(mistakes("{\n\"mcpServers\": {,}}")[0].starts_with("/etc/x/servers.json:2:16: it does not parse"));
    assert!(mistakes(r#"{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}"#)[0].contains("twice"));
    assert!(mistakes("{}")[0].contains("mcpServers"));
}

#[test]
fn what_other_programs_say_of_tools_is_understood() {
    let found = read_text(
        r#"{"mcpServers":{
            "a":{"url":"http://localhost:1/","disabledTools":["rm","mv"],"alwaysAllow":["ls"],"autoApprove":["*"]},
            "b":{"type":"sse","url":"http://b.localhost:1/sse","headers":{"Authorization":"Bearer ${KEY}"}}}}"#,
    );
    assert_eq!(found.mistakes, []);
    let disabled: Vec<&str> = found.servers[0].disabled_tools.iter().map(String::as_str).collect();
    assert_eq!(disabled, ["mv", "rm"]);
    assert!(matches!(&found.servers[1].transport, TransportSpec::Sse(spec) if spec.headers.len() == 1));
    let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
    assert!(notes.len() == 2 && notes.iter().all(|note| note.contains("is not obeyed")), "{notes:?}");
}
