//! The server side of the suite, against `/mcp/SERVER` of a run: the server behind it does what the suite asks of one.
//!
//! The suite shows no token, so that something in between adds it. Each check of each scenario has to pass that is not
//! left out here by its name, for a reason.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::PoisonError,
    thread,
};

use footbridge_tests::{Address, Host, Running, Servers};
use serde_json::Value;

use super::Suite;
use crate::boundaries::TURN;

/// Beginnings of scenarios, or of scenarios and a check of theirs, that are left out, and why.
const LEFT_OUT: [(&str, &str); 11] = [
    ("tools-call-sampling", NOTHING_ASKED),
    ("tools-call-elicitation", NOTHING_ASKED),
    ("elicitation-", NOTHING_ASKED),
    ("input-required-result-", NOTHING_ASKED),
    ("resources-subscribe", "subscriptions are not offered: capabilities say so, and listings are of the moment"),
    ("resources-unsubscribe", "as resources-subscribe"),
    ("server-sse-polling", "streams are not resumed: a call ends when its client leaves"),
    (
        "dns-rebinding-protection localhost-host-valid-accepted",
        "Origin is refused whatever it says: there are no web pages",
    ),
    ("server-stateless sep-2575-server-rejects-undeclared-capability", "no capability of a client is ever needed"),
    ("server-stateless sep-2575-missing-capability-http-400", "no capability of a client is ever needed"),
    (
        "http-custom-header-server-validation",
        "Mcp-Param headers are not looked at: arguments are of the body alone, and nothing on the way decides by headers",
    ),
];
const NOTHING_ASKED: &str = "nothing is asked of clients: a server's questions go to whoever answers approvals";

/// Extensions, which are of no revision, so that the suite runs none of them here: skills are not spoken, and tasks are
/// offered as revision 2025-11-25 has them, not as the extension has.
const EXTENSIONS: [&str; 2] = ["sep-2640-skills-", "tasks-"];

fn is_left_out(scenario: &str, check: &str) -> bool {
    let whole = format!("{scenario} {check}");
    LEFT_OUT.iter().any(|(start, _)| whole.starts_with(start))
}

/// Adds the token to all requests that come in, and goes on until its test is over. Gives its port.
fn with_token(port: u16, token: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let line = format!("Authorization: Bearer {token}\r\n\r\n");
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let line = line.clone();
            thread::spawn(move || {
                // Whoever leaves ends it.
                let _left = carries(&client, port, &line);
                let _closed = client.shutdown(Shutdown::Both);
            });
        }
    });
    own
}

fn carries(client: &TcpStream, port: u16, line: &str) -> std::io::Result<()> {
    let mut harness = TcpStream::connect(("127.0.0.1", port))?;
    let (mut back, mut to) = (harness.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        let _left = std::io::copy(&mut back, &mut to);
        let _closed = to.shutdown(Shutdown::Both);
    });
    let mut from = BufReader::new(client.try_clone()?);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let before = head.len();
            if from.read_line(&mut head)? == 0 {
                return harness.shutdown(Shutdown::Both);
            }
            let header = head[before..].to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        head.truncate(head.len() - 2);
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        harness.write_all(&[head.as_bytes(), line.as_bytes(), &body].concat())?;
    }
}

#[test]
fn every_scenario_for_servers_is_of_a_revision_or_an_extension() {
    let Some(suite) = Suite::of("every_scenario_for_servers_is_of_a_revision_or_an_extension") else { return };
    let scenarios = suite.scenarios("--server");
    for (name, revisions) in &scenarios {
        let is_extension = EXTENSIONS.iter().any(|start| name.starts_with(start));
        assert_eq!(revisions.iter().any(|of| of == "extension"), is_extension, "{name} {revisions:?}");
    }
    let is_there = |start: &str| {
        let scenario = start.split(' ').next().unwrap_or(start);
        scenarios.iter().any(|(name, _)| name.starts_with(scenario))
    };
    assert!(LEFT_OUT.iter().all(|(start, _)| is_there(start)) && EXTENSIONS.iter().all(|start| is_there(start)));
}

/// Runs all scenarios of a revision, and looks at each check. The suite waits for answers as long as it likes, which is less
/// than a busy machine takes now and then: what fails is run again, a few times.
fn conforms(test: &str, revision: &str) {
    let Some(suite) = Suite::of(test) else { return };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut failures = Vec::new();
    for _ in 0..4 {
        failures = failed(&suite, revision);
        if failures.is_empty() {
            return;
        }
    }
    panic!("{}", failures.join("\n"));
}

/// The checks that failed and should not have, and that there were few, if there were.
fn failed(suite: &Suite, revision: &str) -> Vec<String> {
    let bridge = Host::with(&Servers::none().misbehaving("x", &["conforming"])).opens();
    let Address::Port(port) = bridge.guest.address else { panic!("{bridge:?} has no port") };
    let url = format!("http://127.0.0.1:{}/mcp/x", with_token(port, &bridge.guest.token));
    let results = tempfile::tempdir().unwrap();
    let folder = results.path().display().to_string();
    let words = ["server", "--url", &url, "--suite", "all", "--spec-version", revision, "-o", &folder];
    // It fails for what is left out.
    let ran = Running::start(&mut suite.command(&words)).ends();
    let all: Vec<String> = suite.scenarios("--server").into_iter().map(|(name, _)| name).collect();
    // As in server-NAME-2026-11-24T03-44-48-654Z.
    let is_of = |folder: &str, name: &str| {
        let rest = folder.strip_prefix("server-").and_then(|rest| rest.strip_prefix(name)?.strip_prefix('-'));
        rest.is_some_and(|date| date.len() == 24 && date.ends_with('Z'))
    };
    let (mut scenarios, mut passed, mut failed) = (0, 0, Vec::new());
    for entry in fs::read_dir(results.path()).unwrap() {
        let entry = entry.unwrap();
        let named = entry.file_name().to_string_lossy().into_owned();
        let name = all.iter().find(|name| is_of(&named, name)).unwrap_or_else(|| panic!("{named} is none of {all:?}"));
        scenarios += 1;
        let checks = fs::read(entry.path().join("checks.json")).unwrap_or_default();
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap_or_default();
        failed.extend(checks.is_empty().then(|| format!("{name}: no checks")));
        for check in &checks {
            let (id, status) = (check["id"].as_str().unwrap(), check["status"].as_str().unwrap());
            passed += usize::from(status == "SUCCESS");
            failed.extend((status == "FAILURE" && !is_left_out(name, id)).then(|| format!("{name} {id}: {check:#}")));
        }
    }
    let are_few = scenarios < 25 || passed + failed.len() < 60;
    failed.extend(are_few.then(|| format!("{scenarios} scenarios, {passed} checks: {ran:?}")));
    failed
}

#[test]
fn the_endpoint_conforms_to_2025_11_25() {
    conforms("the_endpoint_conforms_to_2025_11_25", "2025-11-25");
}

#[test]
fn the_endpoint_conforms_to_2026_07_28() {
    conforms("the_endpoint_conforms_to_2026_07_28", "2026-07-28");
}
