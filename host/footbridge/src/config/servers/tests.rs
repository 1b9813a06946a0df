//! Entries of servers files, from their text alone.

use super::*;

fn read_text(text: &str) -> ServersFile {
    let var = |name: &str| (name == "KEY").then(|| OsString::from("from-the-environment"));
    let vars = ["PATH", "HOME", "AWS_SECRET", "TOOL_CLI_TOKEN", "https_proxy", "XDG_DATA_HOME"];
    let vars: Vec<(String, String)> = vars.iter().map(|name| ((*name).to_owned(), "/v".to_owned())).collect();
    read(Path::new("/etc/x/servers.json"), text, &var, &vars, &Commands::default())
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
fn every_mistake_is_named_with_its_line() {
    let found = mistakes(
        "{\"mcpServers\": {\n\"neither\": {},\n\"both\": {\"command\":\"x\",\"url\":\"http://localhost\"},\n\"plain\": {\"url\":\"http://example.org/\"},\n\"sse\": {\"type\":\"sse\",\"url\":\"x\"},\n\"secret\": {\"command\":\"x\",\"env\":{\"A\":\"${NOT_SET}\"}},\n\"shape\": {\"command\":5},\n\"-bad\": {\"command\":\"x\"},\n\"old\": {\"command\":\"x\",\"protocol\":\"1\"}}}",
    );
    for (start, part) in [
        ("/etc/x/servers.json:2: server \"neither\"", "neither \"command\" nor \"url\""),
        ("/etc/x/servers.json:3: server \"both\"", "keep one"),
        ("/etc/x/servers.json:4: server \"plain\"", "loopback"),
        ("/etc/x/servers.json:5: server \"sse\"", "streamable HTTP"),
        ("/etc/x/servers.json:6: server \"secret\": \"A\"", "NOT_SET is not set"),
        ("/etc/x/servers.json:7: server \"shape\"", "expected a string"),
        ("/etc/x/servers.json:8: server \"-bad\"", "does not start with"),
        ("/etc/x/servers.json:9: server \"old\"", "protocol"),
    ] {
        assert!(found.iter().any(|m| m.starts_with(start) && m.contains(part)), "{start} {part}: {found:#?}");
    }
    assert_eq!(found.len(), 8);
}

#[test]
fn what_does_not_parse_says_where() {
    assert!(mistakes("{\n\"mcpServers\": {,}}")[0].starts_with("/etc/x/servers.json:2: it does not parse"));
    assert!(mistakes(r#"{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}"#)[0].contains("twice"));
    assert!(mistakes("{}")[0].contains("mcpServers"));
}
