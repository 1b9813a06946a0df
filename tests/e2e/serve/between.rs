//! What changes between a question to a person and its answer: the settings, the policy, the token, the budget.

use std::fs;

use footbridge_tests::{Daemon, Guest, Host, Sent, Servers};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const POLICY: &str = "[policies.notes]\nargument_bytes = 60\n[[policies.notes.rules]]\nid = \"notes\"\n\
                      tool = \"add_note\"\ndecision = \"ask\"\n[[policies.notes.rules]]\ntool = \"list_notes\"\n\
                      decision = \"allow\"\n";

fn daemon() -> Daemon {
    Host::with(&Servers::demo()).settings(POLICY).serves()
}

fn opens(daemon: &Daemon) -> Guest {
    daemon.opens("one", &["--policy", "notes"])
}

/// A call that waits, and the id of its approval.
#[track_caller]
fn asks(daemon: &Daemon, guest: &Guest) -> (Sent, String) {
    let params = json!({"server": "demo", "tool": "add_note", "arguments": {"text": "one"}});
    let call = guest.starts_to_ask("callTool", params);
    (call, daemon.host.pending(1)[0]["id"].as_str().unwrap().to_owned())
}

#[track_caller]
fn reloads(daemon: &mut Daemon) {
    daemon.process().signal(Signal::SIGHUP);
    daemon.process().stderr.shows("the configuration was read again");
}

#[track_caller]
fn has_notes(guest: &Guest, count: usize) {
    let notes = guest.calls("demo", "list_notes", json!({})).to_string();
    assert_eq!(notes.matches("one").count(), count, "{notes}");
}

#[test]
fn a_configuration_that_says_the_same_takes_nobodys_answer_away() {
    let mut daemon = daemon();
    let guest = opens(&daemon);
    let (call, id) = asks(&daemon, &guest);
    reloads(&mut daemon);
    daemon.host.answers(&["allow", &id]);
    let answer = call.answer().json();
    assert!(answer["result"].is_object(), "{answer}");
}

#[test]
fn another_policy_ends_what_was_asked_under_the_one_before() {
    let mut daemon = daemon();
    let guest = opens(&daemon);
    let (call, id) = asks(&daemon, &guest);
    let other = POLICY.replace("60", "61");
    fs::write(daemon.host.path().join("footbridge.toml"), other).unwrap();
    reloads(&mut daemon);
    let answer = call.answer().json();
    assert_eq!(answer["error"]["data"]["reason"], "definition_changed", "{answer}");
    let late = daemon.host.approvals(&["allow", &id]);
    assert!(late.status != 0 && late.stderr.contains("withdrawn"), "{late:?}");
    let ended = |line: &Value| line["state"] == "withdrawn" && line["approver"] == "footbridge (policy_changed)";
    assert_eq!(daemon.host.record().iter().filter(|line| ended(line)).count(), 1);
    let (again, other) = asks(&daemon, &guest);
    assert_ne!(other, id, "it is asked again under the new one");
    drop(again);
}

#[test]
fn what_is_remembered_does_not_outlive_its_policy() {
    let daemon = daemon();
    let guest = opens(&daemon);
    let (call, id) = asks(&daemon, &guest);
    daemon.host.answers(&["allow", "--remember", &id]);
    assert!(call.answer().json()["result"].is_object());
    let file = daemon.host.path().join("footbridge.toml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(&file, before.replace("decision = \"ask\"", "decision = \"deny\"")).unwrap();
    let _read = daemon.host.configuration(&["reload"]).well();
    fs::write(&file, before).unwrap();
    let _read = daemon.host.configuration(&["reload"]).well();
    // Nothing was called meanwhile: it is asked about all the same.
    let (again, _) = asks(&daemon, &guest);
    drop(again);
}

#[test]
fn a_call_of_the_old_token_is_not_made_and_costs_nobody_s_answer() {
    let mut daemon = daemon();
    let guest = opens(&daemon);
    let (call, id) = asks(&daemon, &guest);
    let new = guest.showing(&daemon.rotates("one"));
    daemon.host.answers(&["allow", &id]);
    let answer = call.answer().json();
    assert!(answer["error"]["message"].as_str().unwrap().contains("its token or policy was replaced"), "{answer}");
    has_notes(&new, 0);
    // With the new one it is: it was allowed.
    let made = new.calls("demo", "add_note", json!({"text": "one"}));
    assert!(made["result"].is_object(), "{made}");
    // Whatever is still to be written is by then.
    assert_eq!(daemon.ends().status, 0);
    let record = daemon.host.record();
    let of_the_call = |line: &&Value| line["name"] == "add_note" || line["id"] == *id;
    let kinds: Vec<&str> =
        record.iter().filter(of_the_call).filter_map(|line| line["state"].as_str().or(line["type"].as_str())).collect();
    assert_eq!(kinds, ["pending", "granted", "refused", "used", "intent"], "{record:?}");
}

#[test]
fn nobody_is_asked_about_what_the_budget_does_not_cover() {
    let daemon = daemon();
    let guest = opens(&daemon);
    let long = guest.calls("demo", "add_note", json!({"text": "x".repeat(60)}));
    assert_eq!(long["error"]["data"]["reason"], "budget_spent", "{long}");
    assert!(daemon.host.pending(0).is_empty());
    let (call, id) = asks(&daemon, &guest);
    daemon.host.answers(&["allow", &id]);
    assert!(call.answer().json()["result"].is_object());
    let shown = daemon.host.session(&["show", "one"]).well();
    let spent = format!("spent:       argument_bytes: {} of 60\n", r#"{"text":"one"}"#.len());
    assert!(shown.contains(&spent) && shown.contains("result_bytes: "), "{shown}");
}
