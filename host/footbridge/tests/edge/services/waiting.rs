//! What clients of models hear while a person is asked.

use std::{fs, thread};

use footbridge::config::{Variables, folders::Folders, load};
use footbridge_calls::{approval::Answer as Decided, operator::Operator};
use serde_json::Value;

use super::{LIMITS, RULES, Services};
use crate::{
    bridge::eventually,
    client::{Client, head},
};

fn asking() -> Services {
    let services = Services::start("careful", &format!("[limits.edge]\nheartbeat_time = \"50ms\"\n{RULES}"));
    services.harness.as_ref().unwrap().approvals().people_answer();
    services
}

fn decides(services: &Services, decision: Decided) {
    let approvals = services.harness.as_ref().unwrap().approvals();
    let pending = eventually(|| approvals.list().into_iter().next());
    approvals.answer(pending.id.parse().unwrap(), decision, &Operator::ThisProcess { uid: 0 }, "test").unwrap();
}

/// A request that asks for events, once its client heard that it waits.
fn waits(services: &Services, path: &str) -> Client {
    let (mut client, body) = (services.connect(), "{\"stream\": true}");
    let headers = [&*services.key(), &format!("Content-Length: {}", body.len())];
    client.send(head(&format!("POST /s/model{path} HTTP/1.1"), &headers) + body);
    let begun = client.head().unwrap();
    assert!(begun.starts_with("HTTP/1.1 200 ") && begun.contains("text/event-stream"), "{begun}");
    for _ in 0..2 {
        let comment = client.chunk().unwrap();
        assert!(comment.starts_with(": waits for a person (approval ") && comment.ends_with(")\n\n"), "{comment}");
    }
    client
}

/// What comes behind the comments.
fn rest(mut client: Client) -> String {
    std::iter::from_fn(|| client.chunk()).filter(|chunk| !chunk.starts_with(": ")).collect()
}

#[test]
fn a_client_of_events_hears_comments_and_then_its_answer() {
    let services = asking();
    let client = waits(&services, "/v1/messages?stream");
    assert!(services.origin.received().is_empty());
    decides(&services, Decided::Allow { remember: false });
    let events = rest(client);
    assert!(events.starts_with("event: message_start\n") && events.ends_with("message_stop\ndata: {}\n\n"), "{events}");
    let (_, outcome) = services.outcome();
    assert_eq!((&outcome["outcome"], &outcome["tokens_out"]), (&"ok".into(), &5.into()));
    // What is no stream is told as an event.
    let client = waits(&services, "/v1/messages");
    decides(&services, Decided::Allow { remember: false });
    let event = rest(client);
    let value: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(value["model"], "m-1", "{event}");
}

#[test]
fn who_has_too_many_questions_open_is_told_when_to_ask_again() {
    let limits = "[limits.approval]\npending_per_session = 1\n";
    let services = Services::start("careful", &format!("{limits}[limits.edge]\nheartbeat_time = \"50ms\"\n{RULES}"));
    services.harness.as_ref().unwrap().approvals().people_answer();
    let _waits = waits(&services, "/v1/messages?stream");
    let refused = services.ask("POST /s/model/v1/messages", &[], "{}");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(
        refused.head.contains("\r\nretry-after: 30\r\n") && !refused.head.contains("x-should-retry"),
        "{refused:?}"
    );
    assert!(refused.body.contains("wait for a person already"), "{refused:?}");
}

#[test]
fn an_answer_is_told_whole_whatever_its_length_and_the_case_of_its_type() {
    let services = asking();
    let allowed = |path: &str| {
        let client = waits(&services, path);
        decides(&services, Decided::Allow { remember: false });
        rest(client)
    };
    assert_eq!(allowed("/v1/messages?case"), "data: a\n\n");
    let event = allowed("/v1/messages?large");
    let value: Value =
        serde_json::from_str(event.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap()).unwrap();
    assert!(value["text"].as_str().unwrap().len() == 200_000 && event.lines().count() == 2, "{} bytes", event.len());
    // What is no JSON is told as an error, and that it is not all.
    let event = allowed("/v1/messages?page");
    assert!(event.starts_with("event: error\n") && event.contains("the first 65536 bytes"), "{}", &event[..300]);
}

#[test]
fn a_refusal_is_an_event_once_a_stream_has_begun_and_else_an_answer_of_its_own() {
    let services = asking();
    let client = waits(&services, "/v1/messages?stream");
    decides(&services, Decided::Deny);
    let event = rest(client);
    let error: Value = serde_json::from_str(event.strip_prefix("event: error\ndata: ").unwrap()).unwrap();
    let refused = eventually(|| services.records.lines().into_iter().find(|line| line["type"] == "refused"));
    assert_eq!(
        (&error["error"]["type"], &error["request_id"]),
        (&"invalid_request_error".into(), &refused["id"]),
        "{event}"
    );
    thread::scope(|scope| {
        let asked = scope.spawn(|| services.ask("POST /s/model/v1/messages", &[], "{\"max_tokens\": 1}"));
        decides(&services, Decided::Deny);
        assert_eq!(asked.join().unwrap().status, 400);
    });
    assert!(services.origin.received().is_empty());
}

/// Has the service take this credential from now on, at the same origin and under the same policy.
fn takes(services: &Services, credential: &str) {
    let (place, port) = (tempfile::tempdir().unwrap(), services.origin.port);
    let (file, ca) = (place.path().join("footbridge.toml"), place.path().join("ca.pem"));
    fs::write(&ca, &services.origin.authority).unwrap();
    let service = format!(
        "[services.tracker]\nurl = \"https://localhost:{port}/api\"\nheader = \"x-api-key\"\n\
         credential = \"{credential}\"\nca_file = \"{}\"\nrequests = [\"* /**\"]\n",
        ca.display()
    );
    fs::write(&file, format!("{LIMITS}{RULES}{service}")).unwrap();
    let folders = Folders { config: place.path().to_owned(), ..Folders::find(0, |_| None).unwrap() };
    let config = load(&[file], &folders, &Variables::of_this_process()).unwrap();
    let _inside = services.runtime.enter();
    let reloaded = services.harness.as_ref().unwrap().reload(config);
    assert!(reloaded.policies.gone.is_empty(), "{reloaded:?}");
}

#[test]
fn a_yes_is_for_the_service_as_it_was() {
    let services = asking();
    let asks = || services.ask("POST /s/tracker/x", &[], "{}");
    let approvals = services.harness.as_ref().unwrap().approvals();
    let waiting = || eventually(|| approvals.pending().into_iter().next());
    thread::scope(|scope| {
        let first = scope.spawn(asks);
        waiting();
        decides(&services, Decided::Allow { remember: true });
        assert_eq!(first.join().unwrap().status, 200);
        takes(&services, super::origin::KEY);
        assert_eq!(asks().status, 200, "it is as it was");
        // The same request would go with another credential.
        takes(&services, "the-key-of-production");
        let second = scope.spawn(asks);
        waiting();
        takes(&services, "the-key-of-tomorrow");
        // Nobody is left to say yes to what cannot be made any more.
        assert!(approvals.list().is_empty());
        let refused = second.join().unwrap();
        assert!(refused.status == 403 && refused.body.contains("the service or the policy changed"), "{refused:?}");
    });
    assert_eq!(services.origin.received().len(), 2);
}
