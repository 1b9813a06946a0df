//! Tokens, ends and places of a session.

use std::time::{Duration, SystemTime};

use super::*;
use footbridge_core::{
    budget::Budget,
    gate::Policy,
    limits::{CallLimits, overrides::Overrides},
    names::Labels,
};

/// A session on its own that a token opens, and what changes it.
pub(crate) fn made(name: &str, token: &str, limits: CallLimits, life: &LifeControl) -> SessionControl {
    made_for(&[], name, token, limits, life)
}

/// The same, which may ask these services.
pub(crate) fn made_for(
    services: &[&str],
    name: &str,
    token: &str,
    limits: CallLimits,
    life: &LifeControl,
) -> SessionControl {
    let bytes = Budget::new(1 << 20).share();
    let (name, token) = (name.parse().unwrap(), Digest::of(token));
    let spec = SessionSpec {
        name,
        token,
        policy: Policy::open(),
        labels: Labels::new(),
        expires: None,
        limits: Overrides::default(),
        alone: Overrides::default(),
        services: services.iter().map(|name| name.parse().unwrap()).collect(),
        spent: BudgetOf::ALL.into_iter().zip(1..).collect(),
    };
    SessionControl::new(spec, Limits { calls: limits, ..Limits::default() }, bytes, life, OpenSessions::default())
}

fn session(limits: CallLimits) -> Arc<Session> {
    Arc::clone(made("one", "fbt_x", limits, &LifeControl::new(None)).session())
}

#[test]
fn what_it_has_spent_before_counts() {
    let session = session(CallLimits::default());
    let spent = BudgetOf::ALL.map(|of| session.spent(of).spent);
    assert_eq!((spent, session.all_spent()), ([1, 2, 3, 4, 5, 6], session.spec().spent.clone()));
}

#[test]
fn only_its_own_token_opens_it() {
    let session = session(CallLimits::default());
    assert!(session.opens_with(b"fbt_x").is_some());
    for wrong in [&b"fbt_y"[..], b"fbt_", b""] {
        assert_eq!(session.opens_with(wrong), None);
    }
}

#[test]
fn an_old_token_ends_when_a_new_one_comes() {
    let control = made("one", "fbt_x", CallLimits::default(), &LifeControl::new(None));
    let session = control.session();
    let old = session.opens_with(b"fbt_x").unwrap();
    control.rotate(Digest::of("fbt_y"));
    assert!(!session.still_opens(old) && session.opens_with(b"fbt_x").is_none());
    let new = session.opens_with(b"fbt_y").unwrap();
    assert!(session.still_opens(new));
    control.rotate(Digest::of("fbt_x"));
    assert!(!session.still_opens(old), "the same token again is another turn");
}

#[test]
fn an_ended_session_opens_for_nobody() {
    let life = LifeControl::new(None);
    let session = Arc::clone(made("one", "fbt_x", CallLimits::default(), &life).session());
    let shown = session.opens_with(b"fbt_x").unwrap();
    assert!(life.end(Ended::Revoked) && !life.end(Ended::Expired));
    assert!(!session.still_opens(shown) && session.opens_with(b"fbt_x").is_none() && session.over().is_cancelled());
    assert_eq!(session.over().ended(), Some(Ended::Revoked));
}

#[tokio::test]
async fn a_session_opens_until_its_time_is_over() {
    let until = |at| {
        let made = made("one", "fbt_x", CallLimits::default(), &LifeControl::new(Some(at)));
        Arc::clone(made.session())
    };
    let within = |time| until(SystemTime::now() + time);
    let long = within(Duration::from_secs(3600));
    assert!(long.opens_with(b"fbt_x").is_some_and(|shown| long.still_opens(shown)));
    let session = within(Duration::from_millis(500));
    let shown = session.opens_with(b"fbt_x").unwrap();
    session.over().until().unwrap().passed().await;
    assert!(!session.still_opens(shown) && session.opens_with(b"fbt_x").is_none());
    let past = until(SystemTime::UNIX_EPOCH);
    assert!(past.opens_with(b"fbt_x").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_does_not_take_every_place() {
    let session = session(CallLimits { in_flight_per_session: 6, ..CallLimits::default() });
    let (slow, other): (ServerName, ServerName) = ("slow".parse().unwrap(), "other".parse().unwrap());
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(session.enter(Some(&slow)).await.unwrap());
    }
    assert_eq!(session.enter(Some(&slow)).await.unwrap_err(), OverLimit::Busy);
    held.push(session.enter(Some(&other)).await.unwrap());
    held.push(session.enter(None).await.unwrap());
    assert_eq!(session.enter(Some(&other)).await.unwrap_err(), OverLimit::Busy);
    held.clear();
    assert!(session.enter(Some(&slow)).await.is_ok());
}

#[tokio::test]
async fn beyond_the_burst_it_says_when_to_come_back() {
    let session = session(CallLimits { burst: 3, per_second: 1, ..CallLimits::default() });
    for _ in 0..3 {
        drop(session.enter(None).await.unwrap());
    }
    let over = session.enter(None).await.unwrap_err();
    assert!(matches!(over, OverLimit::Rate { retry_after_ms: 1..=1000 }), "{over:?}");
}

#[test]
fn listings_have_a_rate_of_their_own() {
    let session = session(CallLimits { listing_burst: 2, listings_per_second: 1, ..CallLimits::default() });
    assert!(session.list().is_ok() && session.list().is_ok());
    assert!(matches!(session.list(), Err(OverLimit::Rate { retry_after_ms: 1..=1000 })));
}
