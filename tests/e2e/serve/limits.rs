//! Limits of one session: each holds for it alone, is kept, and shows.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use footbridge_tests::{Guest, Host, Servers};
use serde_json::{Value, json};

use super::{LIST, calls};

fn servers() -> Servers {
    Servers::demo().misbehaving("ok", &["ok"]).misbehaving("slow", &["slow-with-progress", "120"])
}

/// Why a call was refused.
fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["reason"].as_str().unwrap_or_else(|| panic!("not refused: {answer}"))
}

fn echo(guest: &Guest, bytes: usize) -> Value {
    guest.calls("ok", "echo", json!({"text": "x".repeat(bytes)}))
}

#[test]
fn each_limit_holds_for_its_session_alone() {
    let daemon = Host::with(&servers()).serves();
    let other = daemon.opens("other", &[]);
    let open = |name: &str, limit: &str| daemon.opens(name, &["--limit", limit]);

    let small = open("body", "edge.body_bytes=1 KiB");
    let large = LIST.replace("}", &format!(",\"params\":{{\"x\":\"{}\"}}}}", "x".repeat(2000)));
    assert_eq!((small.posts(&large).status, other.posts(&large).status), (413, 200));

    let flat = open("depth", "edge.body_depth=8");
    let deep = LIST.replace("}", &format!(",\"params\":{{\"x\":{}{}}}}}", "[".repeat(8), "]".repeat(8)));
    assert_eq!(flat.posts(&deep).json()["error"]["code"], -32700);
    assert!(flat.posts(LIST).json()["result"].is_object() && other.posts(&deep).json()["result"].is_object());
    let flat = open("arguments", "calls.argument_depth=1");
    let refused = flat.calls("ok", "echo", json!({"text": {}}));
    assert!(refused["error"]["message"].as_str().unwrap().ends_with("nested at most 1 deep"), "{refused}");
    assert!(echo(&flat, 1)["result"].is_object());

    let small = open("result", "calls.result_bytes=1 KiB");
    assert_eq!(reason(&echo(&small, 2000)), "too_large");
    assert!(echo(&small, 20)["result"].is_object() && echo(&other, 2000)["result"].is_object());

    let one = open("connections", "edge.connections_per_session=1");
    let held = one.sends(b"P");
    // Without a request: the answer may come, and the end, before one could be sent.
    assert_eq!(one.sends(b"").answer().status, 503);
    drop(held);
    let held = other.sends(b"P");
    assert_eq!(other.posts(LIST).status, 200);
    drop(held);

    let quick = open("total", "calls.total_time=200ms");
    assert_eq!(reason(&quick.calls("slow", "echo", json!({}))), "outcome_unknown");
    let impatient = open("idle", "calls.idle_time=30ms");
    assert_eq!(reason(&impatient.calls("slow", "echo", json!({}))), "outcome_unknown");

    let single = open("in-flight", "calls.in_flight_per_session=1");
    let first = single.starts_to_ask("callTool", json!({"server": "slow", "tool": "echo", "arguments": {}}));
    daemon.lists("one call in flight", |all| all.iter().any(|s| s["name"] == "in-flight" && s["calls"] == 1));
    assert_eq!(reason(&echo(&single, 1)), "busy");
    calls(&other);
    assert!(first.answer().json()["result"].is_object(), "nor do the others' times hold for it");

    let single = daemon.opens("pending", &["--policy", "ask", "--limit", "approval.pending_per_session=1"]);
    let waits =
        single.starts_to_ask("callTool", json!({"server": "demo", "tool": "add_note", "arguments": {"text": "1"}}));
    assert_eq!(daemon.host.pending(1).len(), 1);
    let second = single.calls("demo", "add_note", json!({"text": "2"}));
    assert_eq!(reason(&second), "busy", "{second}");
    assert!(second["error"]["message"].as_str().unwrap().starts_with("1 calls of this session wait"), "{second}");
    drop(waits);
}

#[test]
fn a_session_that_is_alone_may_more_until_another_one_opens() {
    let daemon = Host::with(&servers()).serves();
    let one = daemon.opens("one", &[]);
    let is_limited = |answer: &Value| answer["error"]["data"]["reason"] == "rate_limited";
    assert!(!(0..200).any(|_| is_limited(&echo(&one, 1))), "as many as a run may");
    let _two = daemon.opens("two", &[]);
    // At once, since one comes back every 50 ms.
    let params = json!({"server": "ok", "tool": "echo", "arguments": {"text": "x"}});
    let all: Vec<_> = (0..32).map(|_| one.starts_to_ask("callTool", params.clone())).collect();
    let limited = all.into_iter().map(|call| call.answer().json()).filter(is_limited).count();
    assert!(limited > 0, "and nothing was saved up of what each may");
}

#[test]
fn the_times_of_an_approval_are_those_of_its_session() {
    let daemon = Host::with(&servers()).serves();
    let open = |name: &str, limit: &str| daemon.opens(name, &["--policy", "ask", "--limit", limit]);
    let note = json!({"text": "1"});
    let forgotten = open("pending", "approval.pending_time=50ms").calls("demo", "add_note", note.clone());
    assert_eq!(reason(&forgotten), "approval_expired");
    let told = open("answer", "approval.answer_after=50ms").calls("demo", "add_note", note.clone());
    assert_eq!(reason(&told), "approval_required");

    let daemon = Host::with(&servers()).serves();
    let stubborn = daemon.opens("denied", &["--policy", "ask", "--limit", "approval.denial_time=1ms"]);
    let asks = || stubborn.starts_to_ask("callTool", json!({"server": "demo", "tool": "add_note", "arguments": note}));
    for _ in 0..2 {
        let call = asks();
        let pending = daemon.host.pending(1);
        daemon.host.answers(&["deny", pending[0]["id"].as_str().unwrap()]);
        let denied = call.answer().json();
        assert!(reason(&denied) == "approval_denied" && !denied.to_string().contains("without asking"), "{denied}");
    }
    let limits = ["--policy", "ask", "--limit", "approval.grant_time=1ms", "--limit", "approval.answer_after=50ms"];
    let late = daemon.opens("granted", &limits);
    let id = late.calls("demo", "add_note", note.clone())["error"]["data"]["approvalId"].as_str().unwrap().to_owned();
    daemon.host.answers(&["allow", &id]);
    assert_eq!(late.asks("awaitApproval", json!({"id": id}))["result"]["state"], "expired");
}

#[test]
fn limits_of_a_session_show_and_outlive_the_daemon() {
    let mut daemon = Host::with(&servers()).serves();
    let own = daemon
        .opens("own", &["--limit", "calls.per_second=1", "--limit", "calls.burst=2", "--limit", "calls.total_time=2h"]);
    let other = daemon.opens("other", &[]);
    for restarted in [false, true] {
        if restarted {
            daemon.killed();
            daemon.starts();
        }
        let limited = |guest: &Guest| (0..8).any(|_| echo(guest, 1)["error"]["data"]["reason"] == "rate_limited");
        assert!(limited(&own) && !limited(&other), "restarted: {restarted}");
        let shown = daemon.host.session(&["show", "own"]).well();
        assert!(shown.contains("limit:       calls.burst=2\n") && shown.contains("calls.total_time=2h"), "{shown}");
        let shown: Value = serde_json::from_str(&daemon.host.session(&["show", "own", "--json"]).well()).unwrap();
        assert_eq!(shown["limits"], json!({"calls.burst": "2", "calls.per_second": "1", "calls.total_time": "2h"}));
        assert!(!daemon.host.session(&["show", "other"]).well().contains("limit:"));
    }
}

#[test]
fn what_a_session_has_spent_stays_spent_when_the_daemon_starts_again() {
    let policy =
        "[policies.brief]\nargument_bytes = 40\n[[policies.brief.rules]]\ntool = \"echo\"\ndecision = \"allow\"\n";
    let mut daemon = Host::with(&servers()).settings(policy).serves();
    let (spends, other) = ["one", "other"].map(|name| daemon.opens(name, &["--policy", "brief"])).into();
    let reason = |guest: &Guest| echo(guest, 1)["error"]["data"]["reason"].clone();
    while reason(&spends).is_null() {}
    assert_eq!(reason(&spends), "budget_spent");
    assert_eq!(daemon.ends().status, 0);
    daemon.starts();
    assert_eq!((reason(&spends), reason(&other)), (json!("budget_spent"), Value::Null));
    let shown: Value = serde_json::from_str(&daemon.host.session(&["show", "one", "--json"]).well()).unwrap();
    assert!(shown["budgets"]["argument_bytes"]["spent"].as_u64() > Some(20), "{shown}");
    // Another one of that name has spent nothing.
    assert_eq!(daemon.host.session(&["revoke", "one"]).status, 0);
    assert_eq!(reason(&daemon.opens("one", &["--policy", "brief"])), Value::Null);
}

#[test]
fn a_limit_that_no_session_can_have_is_refused_with_what_it_can() {
    let daemon = Host::with(&Servers::none()).serves();
    for (limit, says) in [
        ("calls.burst", "NAME=VALUE"),
        ("calls_per_second=5", "there is no limit \"calls_per_second\"; those of sessions are edge.body_bytes"),
        ("edge.head_bytes=1 KiB", "set it in footbridge.toml"),
        ("calls.burst=0", "calls.burst may be 1 to 1000000"),
        ("calls.idle_time=30", "calls.idle_time may be 1ms to 1d, as in calls.idle_time=30s"),
    ] {
        daemon.host.session(&["create", "x", "--limit", limit]).fails(2, &[says]);
    }
    assert!(daemon.list().is_empty());
    let settings = Host::with(&Servers::none()).settings("[limits.calls]\nburst = 0\n");
    settings.runs(&["true"]).fails(2, &["footbridge.toml:2: limits.calls.burst: it may be 1 to 1000000"]);
}

#[test]
fn a_run_can_have_limits_of_its_own() {
    let host = Host::open_with(&servers()).option("--limit").option("calls.result_bytes=1 KiB");
    let ran = host.runs_script("tool-cli ok echo \"{\\\"text\\\":\\\"$(head -c 2000 /dev/zero | tr '\\0' x)\\\"}\"");
    assert!(ran.status == 1 && ran.stderr.contains("1024"), "{ran:?}");
}

#[test]
fn a_session_may_have_results_that_are_larger_than_those_of_all_others() {
    let servers = Servers::none().misbehaving("long", &["long-result", "50331648"]);
    let daemon = Host::with(&servers).serves();
    let (large, other) = (daemon.opens("large", &["--limit", "calls.result_bytes=64 MiB"]), daemon.opens("other", &[]));
    let file = daemon.host.work().join("result");
    let call = ["long", "echo", "{}", "--out", file.to_str().unwrap()];
    let _written = large.runs(&call).well();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 50_331_648);
    // As a stream of events, and without.
    let body =
        r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"long","tool":"echo","arguments":{}}}"#;
    assert_eq!(large.posts(body).json()["result"]["content"][0]["text"].as_str().unwrap().len(), 50_331_648);
    let says = "is over 16777216 bytes (limit calls.result_bytes): ask for less at a time. The operator can give this \
                session more, up to 256 MiB, with --limit calls.result_bytes=...";
    other.runs(&["--exit-codes", "long", "echo", "{}"]).fails(7, &[says]);
    let kinds: Vec<String> =
        daemon.host.record().iter().filter_map(|line| Some(line["outcome"].as_str()?.to_owned())).collect();
    assert_eq!(kinds, ["ok", "ok", "too_large"]);
}

/// A figure of the daemon's memory, MiB.
fn memory(pid: i32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn arguments_of_many_small_values_take_no_more_memory_than_is_promised() {
    let mut daemon = Host::with(&servers()).serves();
    let pid = daemon.process().pid();
    let guests: Vec<_> = (0..4).map(|n| daemon.opens(&format!("g{n}"), &[])).collect();
    assert!(echo(&guests[0], 1)["result"].is_object());
    let before = memory(pid, "VmRSS:");
    let lists = |count: usize| json!({"lists": vec![json!([0]); count]});
    let (many, more) = (&lists(70_000), &lists(200_000));
    std::thread::scope(|scope| {
        for guest in guests.iter().cycle().take(16) {
            scope.spawn(move || {
                let answer = guest.calls("ok", "echo", many.clone());
                assert!(answer["result"].is_object() || reason(&answer) == "busy", "{answer}");
                let answer = guest.calls("ok", "echo", more.clone());
                assert!(["too_large", "busy"].contains(&reason(&answer)), "{answer}");
            });
        }
    });
    let more = memory(pid, "VmHWM:") - before;
    assert!(more < 128, "{more} MiB more than {before}");
}

/// An origin that answers each request with two bytes.
fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // Whoever asks may be gone again.
            let _bytes = stream.read(&mut [0; 4096]);
            let _written = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    port
}

/// The status that a request to the service is answered with.
fn asked(guest: &Guest) -> u16 {
    let head = format!(
        "GET /s/own/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        guest.token
    );
    guest.sends(head.as_bytes()).answer().status
}

fn with_requests(most: u32, port: u16) -> String {
    format!("[limits.budget]\nrequests = {most}\n[services.own]\nurl = \"http://127.0.0.1:{port}\"\n")
}

#[test]
fn budgets_of_open_sessions_are_changed_by_an_operator_or_by_the_configuration() {
    let port = origin();
    let mut daemon = Host::with(&Servers::none()).settings(&with_requests(1, port)).serves();
    let options = ["--policy", "open", "--service", "own"];
    let (raised, follows) = (daemon.opens("raised", &options), daemon.opens("follows", &options));
    let own = daemon.opens("own", &[&options[..], &["--limit", "budget.requests=2"]].concat());
    for guest in [&raised, &follows, &own] {
        assert_eq!(asked(guest), 200);
    }
    assert_eq!([&raised, &follows, &own].map(asked), [403, 403, 200]);
    daemon.process().stderr.shows("\"footbridge session limit raised budget.requests=...\" raises it");
    let limit = |words: &[&str]| daemon.host.session(&[&["limit"], words].concat());
    let told = limit(&["raised", "budget.requests=2"]).well();
    assert_eq!(told, "spent:       budget.requests: 1 of 2\nspent:       budget.service_bytes: 2, no limit\n");
    assert_eq!([&raised, &raised, &follows].map(asked), [200, 403, 403]);
    let told: Value = serde_json::from_str(&limit(&["own", "budget.requests=0", "--json"]).well()).unwrap();
    assert_eq!((&told["name"], &told["budgets"]["budget.requests"]), (&json!("own"), &json!({"spent": 2})), "{told}");
    limit(&["own", "calls.burst=5"]).fails(1, &["calls.burst holds from the start of a session"]);
    limit(&["nobody", "budget.requests=5"]).fails(1, &["no harness of this user has an open session \"nobody\""]);
    limit(&["own", "budget.requests=lots"]).fails(2, &["budget.requests"]);
    limit(&["own", "budget.requests=1", "budget.requests=2"]).fails(2, &["exclude each other"]);
    let ensured = daemon.host.session(&[&["ensure", "own"], &options[..], &["--limit", "budget.requests=2"]].concat());
    assert_eq!(ensured.status, 0, "{ensured:?}");
    // What the configuration says is for those that have none of their own.
    fs::write(daemon.host.path().join("footbridge.toml"), with_requests(3, port)).unwrap();
    let told = daemon.host.configuration(&["reload"]).well();
    assert!(told.contains("sessions whose budgets changed: follows\n") && !told.contains("restart"), "{told}");
    let late = daemon.opens("late", &options);
    assert_eq!([&raised, &follows, &own].map(asked), [403, 200, 200]);
    // And so it is after a restart.
    assert_eq!(daemon.ends().status, 0);
    daemon.starts();
    assert_eq!([&raised, &follows, &follows, &own].map(asked), [403, 200, 403, 200]);
    assert_eq!([&late, &late, &late, &late].map(asked), [200, 200, 200, 403]);
    let recorded = daemon.host.recorded("session_limited");
    let said: Vec<_> = recorded.iter().map(|line| (&line["session"], &line["limits"])).collect();
    let (two, none) = (json!({"budget.requests": "2"}), json!({"budget.requests": "0"}));
    assert_eq!(said, [(&json!("raised"), &two), (&json!("own"), &none)]);
    assert!(recorded[0]["approver"].as_str().unwrap().starts_with("session limit (uid "), "{recorded:?}");
}

#[test]
fn the_budget_of_a_run_is_raised_while_it_runs() {
    let policy = "[policies.with]\nservices = [\"own\"]\n[[policies.with.rules]]\ndecision = \"allow\"\n";
    let settings = with_requests(1, origin()) + policy;
    let bridge = Host::with(&Servers::none()).settings(&settings).policy("with").opens();
    assert_eq!([&bridge.guest, &bridge.guest].map(asked), [200, 403]);
    let name = bridge.host.recorded("session")[0]["session"].as_str().unwrap().to_owned();
    let raised = bridge.host.session(&["limit", &name, "budget.requests=2"]).well();
    assert!(raised.starts_with("spent:       budget.requests: 1 of 2\n"), "{raised}");
    assert_eq!([&bridge.guest, &bridge.guest].map(asked), [200, 403]);
}
