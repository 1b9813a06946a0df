//! Calls that a person has to allow: held, answered by whoever may, made once, and recorded.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Daemon, Guest, Host, Person, Running, Servers, programs};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const ADD: (&str, &str) = ("demo", "add_note");

fn note(text: &str) -> Value {
    json!({"server": ADD.0, "tool": ADD.1, "arguments": {"text": text}})
}

fn serves(settings: &str) -> Daemon {
    Host::with(&Servers::demo()).settings(settings).serves()
}

/// A session that has to ask.
fn asks(daemon: &Daemon) -> Guest {
    daemon.opens("agent-1", &["--policy", "ask"])
}

fn notes(guest: &Guest) -> usize {
    let answer = guest.calls("demo", "list_notes", json!({}));
    answer["result"]["structuredContent"]["notes"].as_array().unwrap_or_else(|| panic!("{answer}")).len()
}

fn id(pending: &[Value]) -> String {
    pending[0]["id"].as_str().unwrap().to_owned()
}

fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["reason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The states that the record has of an approval, in order.
fn states(host: &Host, id: &str) -> Vec<String> {
    let lines = host.record().into_iter().filter(|line| line["type"] == "approval" && line["id"] == id);
    lines.map(|line| line["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_allowed_call_is_made_once_and_its_record_says_by_whom() {
    let daemon = serves("");
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("first"));
    let pending = daemon.host.pending(1);
    assert_eq!((&pending[0]["name"], &pending[0]["head"]), (&json!("add_note"), &json!(r#"{"text":"first"}"#)));
    assert!(pending[0]["effects"].as_array().unwrap().contains(&json!("write")), "{pending:?}");
    assert_eq!(notes(&guest), 0, "it is held, and what only reads is not");
    let id = id(&pending);
    assert!(daemon.host.approvals(&["show", &id]).well().contains(r#"{"text":"first"}"#));
    daemon.host.answers(&["allow", &id]);
    let answer = sent.answer().json();
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(notes(&guest), 1);
    daemon.host.approvals(&["deny", &id]).fails(1, &["is used"]);
    assert_eq!(states(&daemon.host, &id), ["pending", "granted", "used"]);
    let record = daemon.host.record();
    let at = |fits: &dyn Fn(&Value) -> bool| record.iter().position(fits).unwrap();
    let used = at(&|line| line["type"] == "approval" && line["state"] == "used");
    let intent = at(&|line| line["type"] == "intent" && line["approval"] == id.as_str());
    assert!(used < intent, "the grant is used up before the call leaves");
    assert!(record[intent]["approver"].as_str().unwrap().starts_with("approvals allow (uid "), "{}", record[intent]);
    assert_eq!(record[intent]["arguments"], record[used]["arguments"]);
}

#[test]
fn a_prompt_that_a_person_has_to_allow_is_shown_as_one() {
    let rules = "[[policies.test.rules]]\ndecision = \"ask\"\nkind = \"prompt\"\n";
    let daemon = Host::with(&Servers::none().misbehaving("x", &["prompts"])).settings(rules).serves();
    let guest = daemon.opens("agent-1", &["--policy", "test"]);
    let params = json!({"server": "x", "prompt": "told", "arguments": {"b": "two", "a": "one"}});
    let sent = guest.starts_to_ask("getPrompt", params);
    let pending = daemon.host.pending(1);
    let (kind, head) = (&pending[0]["kind"], &pending[0]["head"]);
    assert_eq!((kind, head), (&json!("prompt"), &json!(r#"{"a":"one","b":"two"}"#)), "{pending:?}");
    let id = id(&pending);
    let shown = daemon.host.approvals(&["show", &id]).well().to_owned();
    assert!(shown.lines().any(|line| line.starts_with("prompt:") && line.ends_with("told")), "{shown}");
    daemon.host.answers(&["allow", &id]);
    let answer = sent.answer().json();
    assert_eq!(answer["result"]["messages"][0]["content"]["text"], r#"{"a":"one","b":"two"}"#, "{answer}");
    let intent = daemon.host.record().into_iter().find(|line| line["type"] == "intent").unwrap();
    assert_eq!((&intent["kind"], &intent["approval"]), (&json!("prompt"), &json!(id)), "{intent}");
    // The built-in policy lets pass what only reads, and rubbish of a server stays with it.
    let other = daemon.opens("agent-2", &["--policy", "ask"]);
    for prompt in ["rubbish", "cut"] {
        assert_eq!(reason(&other.asks("getPrompt", json!({"server": "x", "prompt": prompt}))), "outcome_unknown");
    }
    let about = json!({"type": "ref/prompt", "name": "told"});
    let rubbish = json!({"server": "x", "ref": about, "argument": {"name": "rubbish", "value": ""}});
    assert_eq!(reason(&other.asks("complete", rubbish)), "outcome_unknown");
}

#[test]
fn a_name_is_shown_to_its_end_to_whoever_decides() {
    let folder = tempfile::tempdir().unwrap();
    let (list, name) = (folder.path().join("tools"), |end: &str| format!("{}{end}", "a".repeat(300)));
    let tools = ["read", "wipe"].map(|end| json!({"name": name(end), "inputSchema": {"type": "object"}}));
    std::fs::write(&list, json!(tools).to_string()).unwrap();
    let servers = Servers::none().misbehaving("x", &["listing-of-a-file", &list.display().to_string()]);
    let daemon = Host::with(&servers).serves();
    let guest = asks(&daemon);
    let asked = json!({"server": "x", "tool": name("wipe")});
    let _sent = guest.starts_to_ask("callTool", asked);
    let pending = daemon.host.pending(1);
    assert_eq!(pending[0]["name"], name("wipe"), "{pending:?}");
    let shown = daemon.host.approvals(&["show", &id(&pending)]).well().to_owned();
    let whole = shown.replace(['|', ' ', '\n'], "");
    assert!(whole.contains(&name("wipe")), "{shown}");
    let line = daemon.host.approvals(&["list"]).well().to_owned();
    assert!(line.contains("aaa...") && !line.contains("wipe"), "{line}");
}

#[test]
fn a_denied_call_is_not_made_nor_asked_about_again() {
    let daemon = serves("");
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("no"));
    let id = id(&daemon.host.pending(1));
    daemon.host.answers(&["deny", &id]);
    let answer = sent.answer().json();
    assert_eq!((reason(&answer), &answer["error"]["code"]), ("approval_denied", &json!(-32001)));
    assert_eq!(answer["error"]["data"]["approvalId"], id.as_str());
    let again = guest.asks("callTool", note("no"));
    assert_eq!(reason(&again), "approval_denied");
    assert!(daemon.host.pending(0).is_empty());
    assert_eq!(notes(&guest), 0);
    assert_eq!(states(&daemon.host, &id), ["pending", "denied"]);
}

#[test]
fn what_nobody_answers_or_uses_expires() {
    let daemon =
        serves("[limits.approval]\npending_time = \"600ms\"\nanswer_after = \"100ms\"\ngrant_time = \"100ms\"\n");
    let guest = asks(&daemon);
    let answer = guest.asks("callTool", note("late"));
    let id = answer["error"]["data"]["approvalId"].as_str().unwrap().to_owned();
    let state = guest.asks("awaitApproval", json!({"id": id}));
    assert_eq!(state["result"], json!({"id": id, "state": "expired"}));
    daemon.host.approvals(&["allow", &id]).fails(1, &["is expired"]);
    assert_eq!(states(&daemon.host, &id), ["pending", "expired"]);
}

#[test]
fn a_call_that_was_answered_approval_required_takes_the_grant_when_it_comes_again() {
    let daemon = serves("[limits.approval]\nanswer_after = \"200ms\"\n");
    let guest = asks(&daemon);
    let answer = guest.asks("callTool", note("twice"));
    assert_eq!(reason(&answer), "approval_required");
    let data = &answer["error"]["data"];
    let (id, message) = (data["approvalId"].as_str().unwrap(), answer["error"]["message"].as_str().unwrap());
    assert!(message.contains(id) && message.contains("tool-cli wait") && data["expiresAt"].is_string(), "{answer}");
    let stranger = daemon.opens("agent-2", &["--policy", "ask"]);
    assert_eq!(stranger.asks("awaitApproval", json!({"id": id}))["result"]["state"], "unknown");
    let waits = guest.starts_to_ask("awaitApproval", json!({"id": id}));
    daemon.host.answers(&["allow", id]);
    assert_eq!(waits.answer().json()["result"]["state"], "granted");
    assert_eq!(reason(&guest.asks("callTool", note("another"))), "approval_required");
    assert_eq!(reason(&stranger.asks("callTool", note("twice"))), "approval_required");
    assert!(guest.asks("callTool", note("twice"))["result"].is_object());
    assert_eq!(reason(&guest.asks("callTool", note("twice"))), "approval_required");
    assert_eq!(notes(&guest), 1);
    assert_eq!(guest.asks("awaitApproval", json!({"id": id}))["result"], json!({"id": id, "state": "used"}));
}

#[test]
fn as_events_an_approval_is_waited_for_to_its_end() {
    let daemon = serves("[limits.approval]\nanswer_after = \"200ms\"\n[limits.edge]\nheartbeat_time = \"50ms\"\n");
    let guest = asks(&daemon);
    let id = guest.asks("callTool", note("told"))["error"]["data"]["approvalId"].as_str().unwrap().to_owned();
    let events = |guest: &Guest| {
        let body = json!({"jsonrpc": "2.0", "id": "x", "method": "awaitApproval", "params": {"id": id}}).to_string();
        let plain = String::from_utf8(guest.request(&body)).unwrap();
        guest.sends(plain.replacen("Host:", "Accept: text/event-stream\r\nHost:", 1).as_bytes())
    };
    let result = |state: &str, more: &str| {
        format!(
            "event: result\ndata: {{\"jsonrpc\":\"2.0\",\"result\":{{\"id\":\"{id}\",\"state\":\"{state}\"{more}}},\"id\":\"x\"}}\n\n"
        )
    };
    let mut waits = events(&guest);
    let told = waits.hears(": still running\n\n");
    let approval = format!("event: approval\ndata: {{\"id\":\"{id}\",\"state\":\"pending\",\"expiresAt\":");
    assert!(told.contains(&approval) && told.contains("\"summary\":\"demo/add_note waits for a person\"}"), "{told}");
    daemon.host.answers(&["allow", &id]);
    let told = waits.hears("\r\n0\r\n\r\n");
    assert!(told.contains("event: result\ndata: ") && told.contains("\"state\":\"granted\""), "{told}");
    assert!(guest.asks("callTool", note("told"))["result"].is_object());
    let told = String::from_utf8(events(&guest).answer().body).unwrap();
    assert_eq!(told, result("used", ""), "what is over is said at once");
    let stranger = daemon.opens("agent-2", &["--policy", "ask"]);
    assert_eq!(String::from_utf8(events(&stranger).answer().body).unwrap(), result("unknown", ""));
}

#[test]
fn identical_calls_share_a_prompt_and_a_grant_serves_one_of_them() {
    let daemon = serves("");
    let guest = asks(&daemon);
    let both = [(); 2].map(|()| guest.starts_to_ask("callTool", note("same")));
    let first = id(&daemon.host.pending(1));
    // Both have come in: a third, other one was sent after them.
    let other = guest.starts_to_ask("callTool", note("other"));
    let _ = daemon.host.pending(2);
    daemon.host.answers(&["allow", &first]);
    let pending = daemon.host.pending(2);
    assert!(pending.iter().all(|one| one["id"] != first.as_str()), "{pending:?}");
    for one in &pending {
        daemon.host.answers(&["deny", one["id"].as_str().unwrap()]);
    }
    let answers = both.map(|sent| sent.answer().json());
    assert_eq!(answers.iter().filter(|answer| answer["result"].is_object()).count(), 1, "{answers:?}");
    assert_eq!(reason(&other.answer().json()), "approval_denied");
    assert_eq!(notes(&guest), 1);
}

#[test]
fn a_client_that_leaves_withdraws_nothing_and_the_end_of_a_session_does() {
    let mut daemon = serves("");
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("gone"));
    let left = id(&daemon.host.pending(1));
    drop(sent);
    let _ = daemon.host.pending_that(1, |one| one["is_abandoned"] == true);
    assert!(daemon.host.approvals(&["show", &left]).well().contains("has left"));
    // Nothing runs without a caller, and the answer is there for the same call.
    daemon.host.answers(&["allow", &left]);
    assert_eq!(notes(&guest), 0);
    assert!(guest.asks("callTool", note("gone"))["result"].is_object());
    assert_eq!(notes(&guest), 1);
    assert_eq!(states(&daemon.host, &left), ["pending", "granted", "used"]);
    let sent = guest.starts_to_ask("callTool", note("over"));
    let over = id(&daemon.host.pending(1));
    assert_eq!(daemon.host.session(&["revoke", "agent-1"]).status, 0);
    let _ = daemon.host.pending(0);
    let _ = daemon.ends();
    assert_eq!(states(&daemon.host, &over), ["pending", "withdrawn"]);
    drop(sent);
}

#[test]
fn a_call_that_was_allowed_and_is_not_waited_for_any_longer_may_have_been_made() {
    let daemon = Host::with(&Servers::none().misbehaving("stuck", &["never-answers-call"])).policy("ask").serves();
    let guest = daemon.opens("agent-1", &[]);
    let line = r#"{"server":"stuck","tool":"echo","arguments":{"way":"batch"}}"#;
    let single = ["--timeout", "10s", "--exit-codes", "stuck", "echo", r#"{"way":"single"}"#];
    for (words, input) in [(&single[..], ""), (&["--timeout", "10s", "batch"], line)] {
        let mut running = Running::start(&mut guest.tool_cli(words));
        running.hears(input);
        running.hears_no_more();
        daemon.host.answers(&["allow", &id(&daemon.host.pending(1))]);
        let ran = running.ends();
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("may have taken effect") && !said.contains("nothing was called"), "{said}");
        assert!(ran.status == 8 || said.contains("\"exitCode\":8"), "{said}");
    }
}

#[test]
fn a_restart_ends_what_is_pending_and_granted() {
    let mut daemon = serves("[limits.approval]\nanswer_after = \"100ms\"\n");
    let guest = asks(&daemon);
    let answer = guest.asks("callTool", note("restart"));
    let id = answer["error"]["data"]["approvalId"].as_str().unwrap().to_owned();
    daemon.host.answers(&["allow", &id]);
    daemon.killed();
    daemon.starts();
    assert_eq!(reason(&guest.asks("callTool", note("restart"))), "approval_required");
    assert_eq!(guest.asks("awaitApproval", json!({"id": id}))["result"]["state"], "unknown");
}

#[test]
fn a_remembered_call_is_allowed_again_with_a_record_each_time() {
    let daemon = serves("");
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("again"));
    daemon.host.answers(&["allow", "--remember", &id(&daemon.host.pending(1))]);
    assert!(sent.answer().json()["result"].is_object());
    assert!(guest.asks("callTool", note("again"))["result"].is_object());
    let intents =
        daemon.host.record().into_iter().filter(|line| line["type"] == "intent" && line["approval"].is_string());
    let ids: Vec<Value> = intents.map(|line| line["approval"].clone()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
    drop(guest.starts_to_ask("callTool", note("not this one")));
}

#[test]
fn what_is_remembered_is_listed_and_can_be_taken_back() {
    let daemon = serves("");
    let guest = asks(&daemon);
    assert!(daemon.host.approvals(&["list", "--remembered"]).well().contains("no call is allowed again"));
    let sent = guest.starts_to_ask("callTool", note("again"));
    let id = id(&daemon.host.pending(1));
    daemon.host.approvals(&["revoke", &id]).fails(1, &["is pending", "approvals deny"]);
    daemon.host.answers(&["allow", "--remember", &id]);
    assert!(sent.answer().json()["result"].is_object());
    assert!(daemon.host.approvals(&["list", "--remembered"]).well().contains(&format!("{id}  remembered")));
    assert!(daemon.host.approvals(&["show", &id]).well().contains("\"again\""));
    assert!(daemon.host.approvals(&["list"]).well().contains("nothing waits"));
    daemon.host.approvals(&["allow", &id]).fails(1, &["is used"]);
    let mut person = Person::new();
    let mut asked = person.starts(&daemon.host.footbridge(&["approvals", "allow", &id].map(OsStr::new)));
    person.sees("is made again without asking");
    assert_eq!(asked.status().code(), Some(1));
    assert!(!person.saw("Nothing was allowed yet"), "no word is taken for it: {person:?}");
    let revoked = daemon.host.approvals(&["revoke", &id, "--json"]).well();
    assert_eq!(revoked, format!("{{\"id\":\"{id}\",\"state\":\"revoked\"}}\n"));
    assert_eq!(reason(&guest.asks("callTool", note("again"))), "approval_denied");
    assert!(daemon.host.approvals(&["list", "--remembered"]).well().contains("no call is allowed again"));
    daemon.host.approvals(&["revoke", &id]).fails(1, &["is used", "no yes to take back"]);
    daemon.host.approvals(&["revoke", "ap-0000000000000000"]).fails(1, &["there is no approval"]);
    assert_eq!(states(&daemon.host, &id), ["pending", "granted", "used", "denied"]);
}

/// A program that answers, and what it hears.
fn answers(host: Host, script: &str) -> Host {
    let program = host.path().join("answers");
    let text = format!("#!/bin/sh\ncat > {}/heard; env > {0}/env\n{script}\n", host.path().display());
    programs::writes(&program, &text);
    let settings = format!(
        "[approval]\nwatch = false\ncommand = [{:?}]\n[limits.approval]\npending_time = \"1h\"\ncommand_time = \"5s\"\n",
        program.display().to_string()
    );
    host.env("TOOL_CLI_SPY", "1").env("AWS_SECRET", "1").settings(&settings)
}

#[test]
fn the_operators_command_allows_and_denies_and_anything_else_is_no_answer() {
    let check = |script: &str, expected: Option<&str>| {
        let daemon = answers(Host::with(&Servers::demo()), script).serves();
        let guest = asks(&daemon);
        let answer = guest.asks("callTool", note("by command"));
        match expected {
            None => assert!(answer["result"].is_object(), "{script}: {answer}"),
            Some(expected) => assert_eq!(reason(&answer), expected, "{script}"),
        }
        let heard: Value = serde_json::from_slice(&fs::read(daemon.host.path().join("heard")).unwrap()).unwrap();
        assert_eq!((&heard["arguments"], &heard["session"]), (&json!(r#"{"text":"by command"}"#), &json!("agent-1")));
        let env = fs::read_to_string(daemon.host.path().join("env")).unwrap();
        assert!(!env.contains("TOOL_CLI") && !env.contains("AWS_SECRET"), "{env}");
    };
    check(r#"echo '{"decision":"allow"}'"#, None);
    check(r#"echo '{"decision":"deny"}'"#, Some("approval_denied"));
    // Nobody else answers, so that nothing is waited for once the command failed: one of them takes its whole time.
    thread::scope(|scope| {
        for script in [r#"echo '{"decision":"allow"}'; exit 1"#, "echo allow", "sleep 60"] {
            scope.spawn(move || check(script, Some("approval_expired")));
        }
    });
}

/// Takes one request: its head, its body, and where to answer.
fn takes(listener: &TcpListener) -> (String, Value, TcpStream) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let length =
        head.to_ascii_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap(), reader.into_inner())
}

fn replies(mut stream: &TcpStream, status: &str, body: &str) {
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).unwrap();
}

/// A daemon that asks a webhook, and where it is asked.
fn asks_webhook(more: &str) -> (Daemon, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = format!(
        "[approval]\n{more}\nwebhook = {{ url = \"http://{}/ask?team=hidden\", headers = {{ authorization = \"Bearer \
         ${{ASK_KEY}}\" }}, timeout = \"20s\" }}\n[limits.approval]\npending_time = \"30s\"\n",
        listener.local_addr().unwrap()
    );
    let host = Host::with(&Servers::demo()).env("ASK_KEY", "webhook-s3cret-value").settings(&settings);
    (host.serves(), listener)
}

#[test]
fn a_webhook_allows_and_denies() {
    let (daemon, listener) = asks_webhook("watch = false");
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("by webhook"));
    let (head, asked, stream) = takes(&listener);
    assert!(head.starts_with("POST /ask?team=hidden ") && head.contains("Bearer webhook-s3cret-value"), "{head}");
    assert_eq!((&asked["arguments"], &asked["session"]), (&json!(r#"{"text":"by webhook"}"#), &json!("agent-1")));
    replies(&stream, "200 OK", r#"{"decision":"allow","approver":"Zoë <zoe@example.com>"}"#);
    assert!(sent.answer().json()["result"].is_object());
    let intent = daemon.host.record().into_iter().find(|line| line["approval"] == asked["id"]).unwrap();
    assert_eq!(intent["approver"], "webhook 127.0.0.1: Zoë <zoe@example.com>");
    let sent = guest.starts_to_ask("callTool", note("not by webhook"));
    replies(&takes(&listener).2, "201 Created", r#"{"decision":"deny"}"#);
    assert_eq!(reason(&sent.answer().json()), "approval_denied");
}

#[test]
fn a_webhook_that_fails_answers_nothing_and_tells_no_secret() {
    let (mut daemon, listener) = asks_webhook("");
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("redirected"));
    replies(&takes(&listener).2, "307 Elsewhere\r\nlocation: /yes", r#"{"decision":"allow"}"#);
    daemon.process().stderr.shows("a redirect, which is not followed");
    let pending = daemon.host.pending(1);
    daemon.host.answers(&["deny", &id(&pending)]);
    assert_eq!(reason(&sent.answer().json()), "approval_denied");
    let said = daemon.ends().stderr;
    assert!(!said.contains("hidden") && !said.contains("s3cret"), "{said}");
}

#[test]
fn a_webhook_is_cut_off_once_somebody_else_answered_or_the_call_left() {
    let (daemon, listener) = asks_webhook("");
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("faster"));
    let (_, asked, mut stream) = takes(&listener);
    daemon.host.answers(&["allow", asked["id"].as_str().unwrap()]);
    assert!(sent.answer().json()["result"].is_object());
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap_or(0), 0, "its connection ends");
    let sent = guest.starts_to_ask("callTool", note("leaves"));
    let (_, _, mut stream) = takes(&listener);
    drop(sent);
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap_or(0), 0, "its connection ends");
    let _ = daemon.host.pending(0);
}

#[test]
fn a_session_that_could_ask_nobody_is_not_made() {
    let daemon = serves("[approval]\nwatch = false\n");
    daemon.host.session(&["create", "agent-1", "--policy", "ask"]).fails(1, &["nobody can be asked", "[approval]"]);
    // So is one that names no policy.
    daemon
        .host
        .session(&["create", "agent-1"])
        .fails(1, &["policy \"ask\"", "nobody can be asked", "readonly or open"]);
    let _ = daemon.opens("agent-2", &["--policy", "open"]);
}

#[test]
fn a_session_that_can_ask_nobody_any_more_stays_closed_and_says_why() {
    let mut daemon = serves("[approval]\nwatch = true\n");
    let guest = asks(&daemon);
    let _ = daemon.ends();
    let settings = daemon.host.path().join("footbridge.toml");
    fs::write(&settings, "[approval]\nwatch = false\n").unwrap();
    daemon.starts();
    daemon.lists("closed", |list| list[0].to_string().contains("nobody can be asked"));
    let _ = daemon.ends();
    fs::write(&settings, "").unwrap();
    daemon.starts();
    assert_eq!(notes(&guest), 0);
}

#[test]
fn a_session_that_stays_closed_is_logged_once_however_often_it_is_tried() {
    let mut daemon = serves("[approval]\nwatch = true\n");
    let _guest = daemon.opens("agent-1", &["--policy", "ask", "--ttl", "10s"]);
    let _ = daemon.ends();
    fs::write(daemon.host.path().join("footbridge.toml"), "[approval]\nwatch = false\n").unwrap();
    daemon.starts();
    daemon.lists("closed", |list| list[0]["state"] == "closed");
    // Until then it was tried several times.
    daemon.lists("over", <[Value]>::is_empty);
    let ran = daemon.ends();
    assert!(ran.stderr.contains("ready: 1 session, "), "{ran:?}");
    assert_eq!(ran.stderr.matches("a session stays closed").count(), 1, "{ran:?}");
}

#[test]
fn what_only_the_command_may_answer_is_marked() {
    // It answers once the list was looked at.
    let script = "while ! [ -e ${0%/*}/looked ]; do sleep 0.02; done; echo '{\"decision\":\"allow\"}'";
    let host = answers(Host::with(&Servers::demo()), script);
    let settings = fs::read_to_string(host.path().join("footbridge.toml")).unwrap();
    fs::write(host.path().join("footbridge.toml"), settings.replace("\"5s\"", "\"60s\"")).unwrap();
    let daemon = host.serves();
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("by command"));
    let pending = daemon.host.pending(1);
    assert_eq!(pending[0]["is_answered_elsewhere"], true, "{pending:?}");
    let marked = "(answered in front of its run, or by a command or webhook, only)";
    assert!(daemon.host.approvals(&["list"]).well().contains(marked));
    let id = pending[0]["id"].as_str().unwrap();
    assert!(daemon.host.approvals(&["show", id]).well().contains(marked));
    daemon.host.approvals(&["allow", id]).fails(1, &["watch = false"]);
    fs::write(daemon.host.path().join("looked"), "").unwrap();
    assert!(sent.answer().json()["result"].is_object());
}

#[test]
fn under_run_the_call_is_answered_from_another_terminal() {
    let host = Host::with(&Servers::demo()).policy("ask").settings("[approval]\nwatch = true\n");
    let running = host.starts_script("tool-cli demo add_note '{\"text\":\"x\"}'");
    let id = id(&host.pending(1));
    host.answers(&["allow", &id]);
    assert_eq!(running.ends().status, 0);
    assert_eq!(states(&host, &id), ["pending", "granted", "used"]);
}

#[test]
fn from_inside_a_sandbox_there_is_no_control_socket() {
    let host = Host::with(&Servers::demo()).policy("ask").settings("[approval]\nwatch = true\n");
    let script = format!("find {} -name 'control*' | wc -l", host.runtime().display());
    assert_eq!(host.runs_script(&script).well().trim(), "0");
}

#[test]
fn on_a_terminal_a_word_answers_and_what_was_typed_ahead_does_not() {
    let daemon = serves("");
    let guest = asks(&daemon);
    let mut person = Person::new();
    person.types("allow\n");
    let mut watch = person.starts(&daemon.host.footbridge(&["approvals", "watch"].map(OsStr::new)));
    person.sees("nothing waits");
    let sent = guest.starts_to_ask("callTool", note("\u{1b}[2J\u{202e}spoof"));
    person.sees("add_note");
    person.sees("\\u{202e}spoof");
    person.reads();
    assert_eq!(daemon.host.pending(1).len(), 1);
    person.types("deny\n");
    assert_eq!(reason(&sent.answer().json()), "approval_denied");
    // Keys that come before it turned to nothing are forgotten.
    person.sees(": deny");
    person.types("\u{3}");
    assert!(watch.status().success());
    daemon.host.approvals(&["watch"]).fails(1, &["on a terminal"]);
}

#[test]
fn allow_on_a_terminal_shows_all_of_the_call_and_takes_the_word_that_is_typed_then() {
    let daemon = serves("");
    let guest = asks(&daemon);
    let sent = guest.starts_to_ask("callTool", note("to the last byte"));
    let id = id(&daemon.host.pending(1));
    let allow = daemon.host.footbridge(&["approvals", "allow", &id].map(OsStr::new));
    for (typed, status) in [("yes\n", 1), ("\u{4}", 1), ("allow\n", 0)] {
        let mut person = Person::new();
        person.types("allow\n");
        let mut asked = person.starts(&allow);
        person.sees("to the last byte");
        person.sees("Type allow");
        assert_eq!(daemon.host.pending(1).len(), 1, "what was typed ahead");
        person.types(typed);
        assert_eq!(asked.status().code(), Some(status), "{typed:?}");
    }
    assert!(sent.answer().json()["result"].is_object());
}

#[test]
fn a_harness_that_is_stopped_holds_up_no_answer_and_no_key() {
    // Without a sandbox: its relay would end a command whose harness hangs for so long.
    let daemon = Host::open_with(&Servers::demo()).serves();
    let guest = asks(&daemon);
    let mut stopped: Vec<_> = (0..3).map(|_| daemon.host.starts_script("echo ready; read end")).collect();
    stopped.iter_mut().for_each(|run| run.stdout.shows("ready\n"));
    let mut person = Person::new();
    let mut watch = person.starts(&daemon.host.footbridge(&["approvals", "watch"].map(OsStr::new)));
    person.sees("nothing waits");
    // It is connected to each of them: what is at the daemon shows.
    let sent = guest.starts_to_ask("callTool", note("one-of-two"));
    person.sees("one-of-two");
    person.reads();
    person.forgets();
    person.types("deny\n");
    assert_eq!(reason(&sent.answer().json()), "approval_denied");
    person.sees("nothing waits");
    stopped.iter().for_each(|run| run.signal(Signal::SIGSTOP));
    let began = Instant::now();
    let sent = guest.starts_to_ask("callTool", note("two-of-two"));
    person.sees("two-of-two");
    person.reads();
    person.forgets();
    person.types("allow\n");
    assert!(sent.answer().json()["result"].is_object());
    person.sees("nothing waits");
    watch.signal(Signal::SIGTERM);
    assert!(watch.status().success());
    assert!(began.elapsed() < Duration::from_secs(25), "it was waited for: {:?}", began.elapsed());
    for run in stopped {
        run.signal(Signal::SIGCONT);
        assert_eq!(run.ends().status, 1);
    }
}

#[test]
fn harnesses_that_refuse_or_do_not_answer_keep_no_other_from_being_asked() {
    // Without a sandbox: its relay would end a command whose harness hangs for so long.
    let daemon = Host::open_with(&Servers::demo()).serves();
    let guest = asks(&daemon);
    let headless = || {
        let mut run = daemon.host.starts_script("echo ready; read end");
        run.stdout.shows("ready\n");
        run
    };
    let refusing = headless();
    let mut watch = Running::start(&mut daemon.host.footbridge(&["approvals", "watch", "--json"].map(OsStr::new)));
    for (number, word) in ["allow", "deny"].into_iter().enumerate() {
        let sent = guest.starts_to_ask("callTool", note(word));
        let id = id(&daemon.host.pending(1));
        watch.stdout.shows(&id);
        assert!(daemon.host.approvals(&["show", &id]).well().contains(word));
        daemon.host.answers(&[word, &id]);
        assert_eq!(sent.answer().json()["result"].is_object(), word == "allow");
        assert_eq!(notes(&guest), 1, "{number}");
    }
    daemon.host.approvals(&["allow", "ap-0000000000000000"]).fails(1, &["ap-0000000000000000"]);
    let hanging = headless();
    hanging.signal(Signal::SIGSTOP);
    let sent = guest.starts_to_ask("callTool", note("third"));
    watch.stdout.shows("third");
    let list = daemon.host.approvals(&["list", "--json"]);
    let folder = daemon.host.runtime().join("run-").display().to_string();
    assert!(list.status == 1 && list.stderr.contains("gave no answer") && list.stderr.contains(&folder), "{list:?}");
    let remembered = daemon.host.approvals(&["list", "--remembered"]);
    assert_eq!((remembered.status, remembered.stdout.as_str()), (1, ""), "nobody knows that there is none");
    let pending = list.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
    let id = id(&pending.filter(|one: &Value| one["state"] == "pending").collect::<Vec<_>>());
    watch.stdout.shows(&id);
    daemon.host.answers(&["allow", &id]);
    assert!(sent.answer().json()["result"].is_object());
    watch.stderr.shows("gave no answer");
    watch.signal(Signal::SIGTERM);
    let _ended_by_it = watch.ends();
    hanging.signal(Signal::SIGCONT);
    for run in [refusing, hanging] {
        let ran = run.ends();
        assert_eq!(ran.status, 1, "{ran:?}");
    }
}
