//! What is recorded of sessions, and when a name is free.

use std::time::Duration;

use footbridge_proto::token::Token;

use super::*;
use crate::record::Audit;
use footbridge_audit::VolatileJournal;
use footbridge_core::{limits::AuditLimits, random::new_token, redact::Redactor};

fn table() -> Sessions<()> {
    let audit = Audit::start(VolatileJournal::new(), Redactor::default(), AuditLimits::default()).unwrap();
    Sessions::new(Approvals::new(Vec::new(), audit), Limits::default(), Budget::new(1 << 20))
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
    let sessions = table();
    let soon = SystemTime::now() + Duration::from_millis(50);
    let life = sessions.hold(&name("one"), Some(soon)).unwrap();
    life.cancelled().await;
    assert_eq!(life.ended(), Some(Ended::Expired));
    let other = sessions.hold(&name("two"), None).unwrap();
    assert!(sessions.end(&name("two"), Ended::Revoked).await && !sessions.end(&name("two"), Ended::Revoked).await);
    assert_eq!(other.ended(), Some(Ended::Revoked));
    sessions.stop().await;
    assert!(sessions.entry(&name("one")).is_none());
}
