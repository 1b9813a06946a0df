//! What is recorded of sessions, and when a name is free.

use std::time::Duration;

use footbridge_proto::token::Token;

use super::*;
use crate::{record::Audit, session::OverLimit};
use footbridge_audit::VolatileJournal;
use footbridge_core::{
    limits::{
        AuditLimits,
        overrides::{Override, Overrides},
    },
    names::ServerName,
    random::new_token,
    redact::Redactor,
};

fn table() -> Sessions<()> {
    recorded().0
}

fn recorded() -> (Sessions<()>, VolatileJournal) {
    let journal = VolatileJournal::new();
    let audit = Audit::start(journal.clone(), Redactor::default(), AuditLimits::default()).unwrap();
    (Sessions::new(Approvals::new(Vec::new(), audit), Limits::default(), Budget::new(1 << 20)), journal)
}

/// Types of the records of sessions, once everything is written.
async fn types(sessions: &Sessions<()>, journal: &VolatileJournal) -> Vec<String> {
    let audit = sessions.0.approvals.audit().clone();
    tokio::task::spawn_blocking(move || audit.close()).await.unwrap().unwrap();
    let lines = journal.lines();
    let values = lines.iter().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].clone());
    let types = values.filter_map(|value| Some(value.as_str()?.to_owned()));
    types.filter(|kind| kind.starts_with("session")).collect()
}

fn name(text: &str) -> SessionName {
    text.parse().unwrap()
}

fn spec(text: &str) -> SessionSpec {
    let token: Token = new_token().unwrap();
    SessionSpec::new(name(text), &token, Policy::open())
}

#[tokio::test]
async fn a_name_is_free_once_its_listeners_are_gone() {
    let sessions = table();
    let open = sessions.open(spec("one"), Vec::new(), ()).unwrap();
    assert!(sessions.open(spec("one"), Vec::new(), ()).is_err() && sessions.hold(&name("one"), None).is_err());
    let (until, listens) = tokio::sync::oneshot::channel::<()>();
    let listening = open.users().spawn(listens);
    let ending = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.end(&name("one"), Ended::Revoked).await }
    });
    open.session().over().cancelled().await;
    assert!(sessions.find(&name("one")).is_none() && sessions.all().is_empty());
    assert!(sessions.open(spec("one"), Vec::new(), ()).is_err(), "its socket is still there");
    until.send(()).unwrap();
    listening.await.unwrap().unwrap();
    assert!(ending.await.unwrap());
    sessions.open(spec("one"), Vec::new(), ()).unwrap();
}

#[tokio::test]
async fn one_that_is_alone_may_more_until_another_one_opens() {
    const PLACES: &str = "calls.in_flight_per_session_and_server";
    let overrides = |all: &[&str]| all.iter().map(|text| text.parse::<Override>().unwrap()).collect::<Overrides>();
    let sessions = table();
    let limits = overrides(&["calls.burst=3", "calls.per_second=1", &format!("{PLACES}=1"), "calls.busy_after=50ms"]);
    let alone = overrides(&["calls.burst=9", &format!("{PLACES}=3")]);
    let one = sessions.open(SessionSpec { limits, alone, ..spec("one") }, Vec::new(), ()).unwrap();
    let server: ServerName = "s".parse().unwrap();
    let enter = || one.session().enter(Some(&server));
    let mut places = Vec::new();
    for _ in 0..3 {
        places.push(enter().await.unwrap());
    }
    assert_eq!(enter().await.unwrap_err(), OverLimit::Busy, "those of one that is alone are taken");

    let two = sessions.open(spec("two"), Vec::new(), ()).unwrap();
    let mut is_slow = false;
    for _ in 0..3 {
        is_slow |= matches!(enter().await, Err(OverLimit::Rate { .. }));
    }
    assert!(is_slow, "its own burst was used up meanwhile");
    drop(places.split_off(1));
    assert_eq!(one.session().enter_again(Some(&server)).await.unwrap_err(), OverLimit::Busy, "it has one place again");
    places.clear();
    drop(one.session().enter_again(Some(&server)).await.unwrap());

    assert!(sessions.end(&name("two"), Ended::Revoked).await);
    drop(two);
    for _ in 0..3 {
        places.push(enter().await.unwrap());
    }
    sessions.hold(&name("three"), None).unwrap();
    assert_eq!(enter().await.unwrap_err(), OverLimit::Busy);
    places.clear();
    drop(enter().await.unwrap());
}

#[tokio::test]
async fn one_that_is_held_keeps_its_name_and_its_end_when_it_opens() {
    let sessions = table();
    let life = sessions.hold(&name("one"), Some(SystemTime::now() + Duration::from_millis(300))).unwrap();
    assert!(sessions.find(&name("one")).is_none() && sessions.rotate(&name("one"), Digest::of("x")));
    // It says nothing of an end itself.
    let open = sessions.open(spec("one"), Vec::new(), ()).unwrap();
    open.session().over().cancelled().await;
    assert!(open.session().over().is(&life));
    assert_eq!(life.ended(), Some(Ended::Expired));
}

#[tokio::test]
async fn one_that_is_held_ends_like_any_other() {
    let (sessions, journal) = recorded();
    let soon = SystemTime::now() + Duration::from_millis(50);
    let life = sessions.hold(&name("one"), Some(soon)).unwrap();
    life.cancelled().await;
    assert_eq!(life.ended(), Some(Ended::Expired));
    let other = sessions.hold(&name("two"), None).unwrap();
    let own: Overrides = ["budget.requests=5".parse::<Override>().unwrap()].into_iter().collect();
    let by = Operator::ThisProcess { uid: 0 };
    assert!(sessions.rotate(&name("two"), Digest::of("x")) && sessions.limit(&by, &name("two"), own.clone()));
    assert!(!sessions.limit(&by, &name("three"), own));
    assert!(sessions.end(&name("two"), Ended::Revoked).await && !sessions.end(&name("two"), Ended::Revoked).await);
    assert_eq!(other.ended(), Some(Ended::Revoked));
    sessions.stop().await;
    assert!(sessions.entry(&name("one")).is_none());
    assert_eq!(
        types(&sessions, &journal).await,
        ["session_ended", "session_rotated", "session_limited", "session_ended"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_many_end_a_session_its_end_is_recorded_once() {
    const TIMES: usize = 200;
    let (sessions, journal) = recorded();
    for _ in 0..TIMES {
        sessions.hold(&name("one"), None).unwrap();
        let enders = [Ended::Revoked, Ended::ProcessGone].map(|why| {
            let sessions = sessions.clone();
            tokio::spawn(async move { sessions.end(&name("one"), why).await })
        });
        let [one, two] = enders;
        assert!(one.await.unwrap() != two.await.unwrap(), "one of them is the first");
    }
    sessions.stop().await;
    assert_eq!(types(&sessions, &journal).await, vec!["session_ended"; TIMES]);
}
