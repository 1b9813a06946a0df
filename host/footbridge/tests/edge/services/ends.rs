//! The end of the harness while requests run.

use std::{io::Read as _, time::Duration};

use super::{Services, begun, origin::FLOOD};
use crate::{bridge::eventually, client::head};

#[test]
fn whatever_runs_when_the_harness_ends_has_an_outcome() {
    let mut services =
        Services::start("open", "[limits.services]\nsilence_time = \"1h\"\n[limits.calls]\ndrain_time = \"200ms\"\n");
    let (_stream, _) = begun(&services, "/half");
    let mut early = services.connect();
    early.send(head("POST /s/tracker/sink HTTP/1.1", &[&services.key(), "Content-Length: 5"]));
    assert_eq!(early.answer().status, 401);
    let mut waits = services.connect();
    waits.send(head("POST /s/tracker/never HTTP/1.1", &[&services.key(), "Content-Length: 5"]) + "hello");
    eventually(|| services.origin.received().iter().any(|one| one.body == b"hello").then_some(()));
    services.runtime.block_on(services.harness.take().unwrap().stop()).unwrap();
    let lines = services.records.lines();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let (intents, outcomes) = (of("intent"), of("outcome"));
    assert_eq!((intents.len(), outcomes.len()), (3, 3), "{lines:?}");
    for intent in intents {
        let outcome = outcomes.iter().find(|outcome| outcome["id"] == intent["id"]).unwrap();
        let expected = if intent["name"] == "POST /sink" { "http_error" } else { "unknown" };
        assert_eq!(outcome["outcome"], expected, "{intent} {outcome}");
        if intent["name"] == "GET /half" {
            assert_eq!(outcome["detail"], "its session, or the harness, ended", "{outcome}");
        }
    }
    assert_eq!(of("session_ended").len(), 0, "{lines:?}");
    assert!(of("ended")[0].get("open").is_none_or(|open| open == 0), "{lines:?}");
}

#[test]
fn a_client_may_pause_for_as_long_as_its_service_may() {
    let limits = "[limits.edge]\nwrite_time = \"50ms\"\nanswer_time = \"100ms\"\n";
    let patient = Services::start("open", &format!("[limits.services]\nsilence_time = \"1h\"\n{limits}"));
    let mut client = patient.connect();
    client.send(head("GET /s/tracker/flood HTTP/1.1", &[&patient.key()]));
    // Nothing shows that it would have been cut by now; an hour is not over.
    std::thread::sleep(Duration::from_secs(1));
    let (mut came, mut bytes) = (0, vec![0; 1 << 16]);
    while came < FLOOD {
        let count = client.stream().read(&mut bytes).unwrap();
        assert!(count > 0, "cut after {came} bytes");
        came += count;
    }
    assert_eq!(patient.outcome().1["outcome"], "ok");
    let brief = Services::start("open", limits);
    let (_unread, _) = begun(&brief, "/flood");
    let outcome = brief.outcome().1;
    assert_eq!(
        outcome["detail"],
        "its client read nothing of it for as long as services.silence_time and edge.write_time allow",
        "{outcome}"
    );
}
