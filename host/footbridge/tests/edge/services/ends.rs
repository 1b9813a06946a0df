//! The end of the harness while requests run.

use super::{Services, begun};
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
    services.runtime.block_on(services.harness.take().unwrap().stop());
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
