//! Policies as the operator uses them: chosen for a run, tried out before, and refused with a clear word where they are
//! wrong.

use std::{
    ffi::OsStr,
    os::fd::{AsRawFd as _, OwnedFd},
};

use footbridge_tests::{Host, Ran, Running, Servers};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket};
use serde_json::{Value, json};

const RULES: &str = r#"
[policies.careful]
reveal_rules = true

[[policies.careful.rules]]
id = "short notes"
decision = "allow"
tool = "add_note"
arguments = [{ at = "/text", length = { max = 10 } }]

[[policies.careful.rules]]
decision = "hide"
effects = "destructive"

[[policies.careful.rules]]
decision = "allow"
effects = "read"

[[policies.careful.rules]]
decision = "deny"
"#;

fn under(policy: &'static str) -> Host {
    Host::with(&Servers::demo()).settings(RULES).policy(policy)
}

/// `footbridge` with these words and this host's files.
fn footbridge(host: &Host, words: &[&str]) -> Ran {
    let servers = host.servers_file();
    let settings = host.path().join("footbridge.toml");
    let mut all: Vec<&OsStr> = words[..2].iter().map(OsStr::new).collect();
    all.extend([OsStr::new("--config"), servers.as_os_str(), OsStr::new("--config"), settings.as_os_str()]);
    all.extend(words[2..].iter().map(OsStr::new));
    Running::start(&mut host.footbridge(&all)).ends()
}

#[test]
fn a_readonly_run_reads_and_changes_nothing() {
    let bridge = under("readonly").opens();
    assert_eq!(bridge.guest.runs(&["--exit-codes", "demo", "list_notes", "{}"]).status, 0);
    let denied = bridge.guest.runs(&["--exit-codes", "demo", "add_note", "{\"text\":\"x\"}"]);
    denied.fails(5, &["tool \"add_note\" on server \"demo\" is denied by policy", "ask the operator"]);
    assert!(!denied.stderr.contains("rule"), "rules are not shown unless the policy says so: {denied:?}");
}

#[test]
fn a_run_under_rules_of_its_own_sees_and_calls_what_they_say() {
    let bridge = under("careful").opens();
    let tools = bridge.guest.runs(&["demo"]).well();
    assert!(tools.contains("add_note") && !tools.contains("delete"), "{tools}");
    assert_eq!(bridge.guest.runs(&["demo", "add_note", "{\"text\":\"short\"}"]).status, 0);
    let long = bridge.guest.runs(&["--exit-codes", "demo", "add_note", "{\"text\":\"rather too long\"}"]);
    long.fails(5, &["(rule \"4\" of policy \"careful\")"]);
    bridge
        .guest
        .runs(&["--exit-codes", "demo", "delete_all_notes", "{}"])
        .fails(2, &["Tool \"delete_all_notes\" not found"]);
    let record = bridge.host.record();
    let refused: Vec<&Value> = record.iter().filter(|line| line["type"] == "refused").collect();
    assert_eq!((&refused[0]["rule"], &refused[0]["decision"]), (&json!("4"), &json!("deny")), "{refused:?}");
    assert_eq!((&refused[1]["reason"], &refused[1]["rule"]), (&json!("unknown_tool"), &Value::Null), "{refused:?}");
    let intent = record.iter().find(|line| line["type"] == "intent").unwrap();
    assert_eq!((&intent["rule"], &intent["effects"]), (&json!("short notes"), &json!(["write"])));
}

#[test]
fn a_policy_that_does_not_exist_or_is_wrong_starts_nothing() {
    let host = under("carefull");
    let ran = host.runs_script("echo never");
    ran.fails(2, &["there is no policy \"carefull\"", "ask, careful, open, readonly"]);
    assert_eq!(ran.stdout, "");
    let host = Host::with(&Servers::demo()).settings("[[policies.a.rules]]\ndecision='allow'\ntool='[a'\n");
    let ran = host.runs_script("echo never");
    ran.fails(2, &["footbridge.toml:3: policies.a.rules[1].tool: \"[a\" is no pattern"]);
    assert_eq!(ran.stdout, "", "also where nobody uses it");
}

#[test]
fn a_call_can_be_tried_before_any_session_has_the_policy() {
    let host = under("careful");
    let test = |words: &[&str]| footbridge(&host, &[&["policy", "test", "--policy"], words].concat());
    for (words, status, says) in [
        (&["careful", "demo", "list_notes"][..], 0, "allow\nby rule \"3\" of policy \"careful\"\neffects: read\n"),
        (&["careful", "demo", "add_note", "{\"text\":\"short\"}"], 0, "allow\nby rule \"short notes\""),
        (&["careful", "demo", "add_note", "{\"text\":\"rather too long\"}"], 1, "deny\nby rule \"4\""),
        (&["careful", "demo", "delete_all_notes"], 1, "hide\nby rule \"2\""),
        (&["ask", "demo", "add_note", "{\"text\":\"x\"}"], 1, "ask\nby rule \"rest\""),
    ] {
        let ran = test(words);
        assert_eq!(ran.status, status, "{words:?}: {ran:?}");
        assert!(ran.stdout.starts_with(says), "{words:?}: {ran:?}");
    }
    let json: Value = serde_json::from_str(&test(&["readonly", "--json", "demo", "list_notes"]).stdout).unwrap();
    let expected = json!({"decision": "allow", "policy": "readonly", "rule": "reads", "effects": ["read"],
                          "reason": "by rule \"reads\" of policy \"readonly\"", "definitionChanged": false});
    let by_default: Value =
        serde_json::from_str(&footbridge(&host, &["policy", "test", "--json", "demo", "list_notes"]).stdout).unwrap();
    assert_eq!((&by_default["policy"], &by_default["decision"]), (&json!("ask"), &json!("allow")));
    assert_eq!(json, expected);
    test(&["careful", "nope", "x"]).fails(2, &["no server \"nope\" is configured; there are: demo"]);
    test(&["careful", "demo", "nope"]).fails(2, &["Tool \"nope\" not found", "add_note"]);
    test(&["careful", "demo", "add_note", "{\"text\":5}"]).fails(2, &["do not match the input schema"]);
    test(&["careful", "demo", "add_note", "{"]).fails(2, &["cannot be read"]);
    test(&["nope", "demo", "add_note"]).fails(2, &["there is no policy \"nope\""]);
    assert!(host.record().is_empty(), "nothing was called");
}

#[test]
fn what_a_session_can_reach_is_said_in_words() {
    let host = under("careful");
    let egress = |policy: &str| footbridge(&host, &["policy", "egress", "--policy", policy]);
    let careful = egress("careful").well();
    for part in [
        "What a session with policy \"careful\" can reach",
        "Without asking anyone it can call:\n  demo\n",
        "    list_notes: reads\n",
        "Depending on the arguments, without asking anyone, it can call:\n  demo\n    add_note: changes things\n",
        "Hidden from it: tools of these servers: 1; whole servers: none.",
        "No tool that it can call is said to reach outside.",
    ] {
        assert!(careful.contains(part), "{part}: {careful}");
    }
    let host = Host::with(&Servers::demo().misbehaving("ok", &["ok"])).settings(RULES);
    let open = footbridge(&host, &["policy", "egress", "--policy", "open"]);
    assert!(open.status == 0 && open.stdout.contains("This is no closed sandbox"), "{open:?}");
    let json = footbridge(&host, &["policy", "egress", "--policy", "ask", "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let demo = json["servers"].as_array().unwrap().iter().find(|server| server["name"] == "demo").unwrap();
    let note = demo["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "add_note").unwrap();
    assert_eq!(note["decisions"], json!(["ask"]), "{json}");
}

#[test]
fn egress_names_prompts_too() {
    let rules = "[[policies.test.rules]]\ndecision = \"hide\"\nkind = \"completion\"\n[[policies.test.rules]]\n\
                 decision = \"deny\"\nkind = \"prompt\"\n";
    let host = Host::with(&Servers::none().misbehaving("x", &["prompts"])).settings(rules);
    // What the server lists and cannot be used is warned of on standard error.
    let egress = |policy: &str| footbridge(&host, &["policy", "egress", "--policy", policy]).stdout;
    let open = egress("open");
    assert!(
        open.contains("its prompts and their completions") && open.contains("Getting prompts also sends"),
        "{open}"
    );
    let closed = egress("test");
    assert!(closed.contains("It can never call:\n  x\n    its prompts") && !closed.contains("Getting"), "{closed}");
}

const SERVICES: &str = r#"
[services.model]
preset = "anthropic"
[services.tracker]
url = "https://tracker.example/api"
requests = ["GET /v2/**", "* /v2/issues/*"]
websocket = true
[policies.team]
[[policies.team.rules]]
id = "no-admin"
decision = "deny"
service = "tracker"
path = "/v2/admin/**"
[[policies.team.rules]]
id = "reads"
decision = "allow"
effects = ["read", "egress"]
"#;

/// A port where nobody listens, and which nobody else gets.
fn closed_port() -> (OwnedFd, u16) {
    let held = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(held.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    let port = getsockname::<SockaddrIn>(held.as_raw_fd()).unwrap().port();
    (held, port)
}

#[test]
fn requests_to_services_and_tunnels_can_be_tried_and_are_listed() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = port.local_addr().unwrap().port();
    let (_held, closed) = closed_port();
    let tunnels = format!("[tunnels]\nallow = [\"localhost:{own}\", \"*.files.example:443\"]\nallow_private = true\n");
    let settings = format!("{SERVICES}{tunnels}");
    let host = Host::with(&Servers::demo()).settings(&settings);
    let test = |policy: &str, request: &str, service: &str| {
        footbridge(&host, &["policy", "test", "--policy", policy, "--http", request, service])
    };
    for (policy, request, service, status, says) in [
        ("ask", "POST /v1/messages", "model", 0, "allow\nby rule \"reads\""),
        ("ask", "DELETE /v2/issues/7", "tracker", 1, "ask\n"),
        ("ask", "GET /v2/x", "tracker", 0, "allow\n"),
        ("ask", "GET /v2/x (websocket)", "tracker", 1, "ask\n"),
        ("open", "GET /v1/models (websocket)", "model", 1, "deny\nsince it is none of the requests"),
        ("team", "GET /v2/admin/x?y=1", "tracker", 1, "deny\nby rule \"no-admin\""),
        ("team", "GET /v1/x", "tracker", 1, "deny\nsince it is none of the requests"),
        ("open", "CONNECT a.files.example:443", "tunnels", 0, "allow\n"),
        ("open", "CONNECT other.example:443", "tunnels", 1, "deny\nsince it is none of the requests"),
    ] {
        let ran = test(policy, request, service);
        assert!(ran.status == status && ran.stdout.starts_with(says), "{policy} {request}: {ran:?}");
    }
    test("ask", "GET /a/../b", "tracker").fails(2, &["the path is refused"]);
    test("ask", "GET", "tracker").fails(2, &["a method and a path"]);
    test("ask", "GET /x", "nope").fails(2, &["there is no service \"nope\"", "model"]);
    let team = footbridge(&host, &["policy", "egress", "--policy", "team"]).stdout;
    for part in [
        "  service model (https://api.anthropic.com)\n    POST /v1/messages: reads, reaches outside\n",
        "    DELETE /v2/issues/*: changes and may destroy things, reaches outside\n",
        "    GET /v2/** (websocket): changes things, reaches outside\n",
        &format!("    tunnel to localhost:{own}: changes things, reaches outside\n"),
        "without asking anyone, to these services, if --service or its policy gives it them: model, tracker.",
        "If a person agrees, it can send to these services: tunnels.",
    ] {
        assert!(team.contains(part), "{part}: {team}");
    }
    assert!(team.contains("Depending on the path, without asking anyone, it can ask:\n  service tracker"), "{team}");
    let taken =
        footbridge(&host, &["policy", "test", "--policy", "open", "--json", "--http", "GET /nope", "tracker"]).stdout;
    let taken: Value = serde_json::from_str(&taken).unwrap();
    assert!(taken["reason"].as_str().unwrap().contains("none of the requests"), "{taken}");
    let json = footbridge(&host, &["policy", "egress", "--policy", "team", "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let others = |service: &Value| {
        let requests = service["requests"].as_array().unwrap().clone();
        requests.into_iter().find(|one| one["methods"].as_array().unwrap().contains(&json!("*"))).unwrap()
    };
    let tracker = json["services"].as_array().unwrap().iter().find(|service| service["name"] == "tracker").unwrap();
    assert_eq!(
        tracker["requests"][0],
        json!({"request": "GET /v2/**", "methods": ["GET", "HEAD"], "path": "/v2/**", "effects": ["read", "egress"],
        "decisions": ["deny", "allow"]})
    );
    assert_eq!(
        (&others(tracker)["request"], &others(tracker)["methods"]),
        (&json!("POST, PUT, PATCH and others /v2/issues/*"), &json!(["POST", "PUT", "PATCH", "*"]))
    );
    let check = |host: &Host| footbridge(host, &["services", "check", "tunnels"]);
    let found = check(&host).well();
    assert_eq!(
        found,
        format!("ok: localhost:{own} takes connections\nnot tried: *.files.example:443 stands for any host below\n")
    );
    let host = Host::with(&Servers::demo()).settings(&settings.replace(&own.to_string(), &closed.to_string()));
    let found = check(&host);
    assert!(found.status == 1 && found.stdout.contains("cannot be reached: it does not take connections"), "{found:?}");
}

#[test]
fn a_credential_that_is_not_there_or_hangs_is_the_matter_of_its_service_alone() {
    let settings = "[services.good]\nurl = \"http://localhost:9\"\n\
                    [services.hangs]\npreset = \"openai\"\ncredential = { command = [\"sleep\", \"1000\"] }\n\
                    [services.lacks]\npreset = \"openai\"\ncredential = \"${FOOTBRIDGE_TESTS_NEVER_SET_THIS}\"\n";
    let host = Host::with(&Servers::none()).settings(settings);
    let host = ["--service", "good", "--service", "lacks"].into_iter().fold(host, Host::option);
    let ran = host.runs_script("echo ran");
    assert_eq!((ran.status, &*ran.stdout), (0, "ran\n"), "{ran:?}");
    let note = "service \"lacks\" cannot be used: the variable FOOTBRIDGE_TESTS_NEVER_SET_THIS is not set";
    assert!(ran.stderr.contains(note) && !ran.stderr.contains("hangs"), "{ran:?}");
    assert!(footbridge(&host, &["services", "list"]).well().contains("hangs"));
    let decided = footbridge(&host, &["policy", "test", "--policy", "ask", "--http", "GET /v1/models", "hangs"]);
    assert!(decided.well().starts_with("allow"));
    footbridge(&host, &["services", "check", "lacks"]).fails(1, &[]);
}

#[test]
fn a_policy_gives_its_sessions_services() {
    let settings = |names: &str| {
        format!(
            "[services.model]\npreset = \"anthropic\"\ncredential = \"a-key\"\n[policies.team]\nservices = [{names}]\n"
        )
    };
    let host = || Host::with(&Servers::none()).policy("team");
    let ran = host().settings(&settings("\"model\"")).runs_script("echo $ANTHROPIC_BASE_URL");
    assert!(ran.well().ends_with("/s/model\n"));
    let wrong = host().settings(&settings("\"modle\"")).runs_script("echo never");
    wrong.fails(2, &["policy \"team\" gives the service \"modle\", and there is none"]);
}
