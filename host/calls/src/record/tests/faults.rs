//! Calls over a journal in memory that fails or is slow.

use crate::cause::Cause;
use std::time::{Duration, Instant};

use footbridge_proto::rpc::Reason;
use futures::{future::join_all, poll};

use super::{
    Fault, Ledger, World,
    world::{LONG, reason},
};
use crate::{record::Audit, session::OverLimit};
use footbridge_core::limits::AuditLimits;
use footbridge_core::redact::Redactor;

fn hasty() -> AuditLimits {
    AuditLimits { intent_time: Duration::from_secs(2), ..AuditLimits::default() }
}

#[tokio::test]
async fn a_call_whose_intent_cannot_be_written_does_not_leave() {
    let world = World::start();
    let journal = world.journal(Fault::Nothing);
    let audit = Audit::start(journal.clone(), Redactor::default(), AuditLimits::default()).unwrap();
    journal.fault(Fault::All);
    let error = world.call(&audit, "a").await.unwrap_err();
    assert_eq!(error.cause.reason(), Reason::AuditUnavailable);
    assert_eq!(*error.cause, Cause::NotRecorded);
    let refused = world.call_tool(&audit, "none", "b").await;
    assert_eq!(reason(&refused), Some(Reason::AuditUnavailable), "a refusal is recorded too");
    journal.fault(Fault::Nothing);
    assert!(world.call(&audit, "c").await.is_ok(), "no restart is needed");
    audit.close().unwrap();
    let ledger = Ledger::read(journal.durable());
    ledger.must_account_for(&world.left());
    assert_eq!((world.left_tags(), ledger.outcomes()), (vec!["c".to_owned()], vec!["ok"]));
    world.end().await;
}

#[tokio::test]
async fn a_call_whose_intent_comes_late_does_not_leave_and_is_marked_so() {
    let world = World::start();
    world.verdict("warm").await;
    let journal = world.journal(Fault::Nothing);
    let audit = Audit::start(journal.clone(), Redactor::default(), hasty()).unwrap();
    journal.hold();
    let error = world.call(&audit, "late").await.unwrap_err();
    assert_eq!(error.cause.reason(), Reason::AuditUnavailable);
    journal.until_waiting();
    journal.release();
    audit.close().unwrap();
    let ledger = Ledger::read(journal.durable());
    ledger.must_account_for(&world.left());
    assert_eq!((ledger.of("intent").len(), ledger.outcomes()), (1, vec!["not_sent"]));
    assert_eq!(ledger.of("outcome")[0]["detail"], "recorded too late");
    assert!(world.left().is_empty());
    world.end().await;
}

#[tokio::test]
async fn while_an_outcome_cannot_be_written_nothing_is_admitted() {
    let world = World::start();
    world.verdict("warm").await;
    let journal = world.journal(Fault::Outcomes);
    let audit = Audit::start(journal.clone(), Redactor::default(), hasty()).unwrap();
    let error = world.call(&audit, "a").await.unwrap_err();
    assert_eq!(error.cause.reason(), Reason::OutcomeUnknown);
    assert_eq!(*error.cause, Cause::OutcomeNotRecorded);
    for tag in ["b", "c"] {
        assert_eq!(reason(&world.call(&audit, tag).await), Some(Reason::AuditUnavailable));
    }
    journal.fault(Fault::Nothing);
    let start = Instant::now();
    let mut tries = 0;
    while let Err(error) = world.call(&audit, &format!("again-{tries}")).await {
        assert_eq!(error.cause.reason(), Reason::AuditUnavailable);
        assert!(start.elapsed() < LONG);
        tries += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    audit.close().unwrap();
    let ledger = Ledger::read(journal.durable());
    ledger.must_account_for(&world.left());
    assert_eq!(world.left_tags(), ["a".to_owned(), format!("again-{tries}")]);
    world.end().await;
}

#[tokio::test]
async fn while_a_written_outcome_cannot_be_synced_nothing_is_admitted() {
    let world = World::start();
    world.verdict("warm").await;
    let journal = world.journal(Fault::Syncs);
    let audit = Audit::start(journal.clone(), Redactor::default(), hasty()).unwrap();
    assert!(world.call(&audit, "a").await.is_ok(), "it ran, and its outcome is written");
    while audit.trail.takes_records() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(journal.syncs() > 0, "nobody else would have made it durable");
    assert_eq!(reason(&world.call(&audit, "b").await), Some(Reason::AuditUnavailable));
    journal.fault(Fault::Nothing);
    let start = Instant::now();
    while let Err(error) = world.call(&audit, "c").await {
        assert_eq!(error.cause.reason(), Reason::AuditUnavailable);
        assert!(start.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    audit.close().unwrap();
    let ledger = Ledger::read(journal.durable());
    ledger.must_account_for(&world.left());
    assert_eq!((world.left_tags(), ledger.outcomes()), (vec!["a".to_owned(), "c".to_owned()], vec!["ok", "ok"]));
    world.end().await;
}

#[tokio::test]
async fn an_outcome_becomes_durable_with_the_next_intent() {
    let world = World::start();
    let journal = world.journal(Fault::Nothing);
    let audit = Audit::start(journal.clone(), Redactor::default(), AuditLimits::default()).unwrap();
    for _ in 0..100 {
        assert!(world.call(&audit, "a").await.is_ok());
    }
    let syncs = journal.syncs();
    assert!(syncs < 100, "{syncs}: each was synced by itself");
    audit.close().unwrap();
    world.end().await;
}

#[tokio::test]
async fn calls_that_wait_together_share_one_commit() {
    let world = World::start();
    let mut verdicts = Vec::new();
    for n in 0..21 {
        verdicts.push(world.verdict(&n.to_string()).await);
    }
    let journal = world.journal(Fault::Nothing);
    let audit =
        Audit::start(journal.clone(), Redactor::default(), AuditLimits { intent_time: LONG, ..AuditLimits::default() })
            .unwrap();
    journal.hold();
    let mut waiting: Vec<_> = verdicts.into_iter().map(|verdict| Box::pin(audit.admit(verdict))).collect();
    assert!(poll!(&mut waiting[0]).is_pending());
    journal.until_waiting();
    for admitted in &mut waiting[1..] {
        assert!(poll!(admitted).is_pending());
    }
    journal.release();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    assert_eq!(journal.commits(), 3, "the start, the first intent, and the twenty behind it");
    audit.close().unwrap();
    assert_eq!(Ledger::read(journal.durable()).of("intent").len(), 21);
    world.end().await;
}

#[tokio::test]
async fn beyond_the_queue_calls_are_refused_at_once() {
    let world = World::start();
    let mut verdicts = Vec::new();
    for n in 0..4 {
        verdicts.push(world.verdict(&n.to_string()).await);
    }
    let journal = world.journal(Fault::Nothing);
    let limits = AuditLimits { intent_time: LONG, queue: 2, ..AuditLimits::default() };
    let audit = Audit::start(journal.clone(), Redactor::default(), limits).unwrap();
    journal.hold();
    let mut waiting: Vec<_> = verdicts.into_iter().map(|verdict| Box::pin(audit.admit(verdict))).collect();
    assert!(poll!(&mut waiting[0]).is_pending());
    journal.until_waiting();
    assert!(poll!(&mut waiting[1]).is_pending() && poll!(&mut waiting[2]).is_pending());
    let refused = waiting.pop().unwrap().await.unwrap_err();
    assert_eq!(refused.cause.reason(), Reason::AuditUnavailable);
    journal.release();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    audit.close().unwrap();
    world.end().await;
}

#[tokio::test]
async fn what_is_queued_when_the_harness_ends_is_written() {
    let world = World::start();
    world.verdict("warm").await;
    let journal = world.journal(Fault::Nothing);
    let audit = Audit::start(journal.clone(), Redactor::default(), hasty()).unwrap();
    journal.fault(Fault::Outcomes);
    assert_eq!(reason(&world.call(&audit, "a").await), Some(Reason::OutcomeUnknown));
    let _reply = audit.over_limit(&World::principal(), OverLimit::Busy);
    journal.fault(Fault::Nothing);
    audit.close().unwrap();
    let ledger = Ledger::read(journal.durable());
    ledger.must_account_for(&world.left());
    assert_eq!((ledger.outcomes(), ledger.of("limited").len()), (vec!["ok"], 1));
    world.end().await;
}

#[tokio::test]
async fn an_end_over_a_journal_that_fails_for_ever_is_an_end() {
    let world = World::start();
    world.verdict("warm").await;
    let journal = world.journal(Fault::Outcomes);
    let audit = Audit::start(journal.clone(), Redactor::default(), hasty()).unwrap();
    assert_eq!(reason(&world.call(&audit, "a").await), Some(Reason::OutcomeUnknown));
    let start = Instant::now();
    let lost = audit.close().unwrap_err().to_string();
    assert!(start.elapsed() < LONG && lost.contains("1 could not be written"), "{lost}");
    let error = world.call(&audit, "b").await.unwrap_err();
    assert_eq!(error.cause.reason(), Reason::AuditUnavailable, "and nothing leaves after it");
    assert_eq!(world.left_tags(), ["a"]);
    world.end().await;
}

#[tokio::test]
async fn refusals_over_a_limit_share_one_line_a_second() {
    let world = World::start();
    let journal = world.journal(Fault::Nothing);
    let audit = Audit::start(journal.clone(), Redactor::default(), AuditLimits::default()).unwrap();
    let (principal, start) = (World::principal(), Instant::now());
    for n in 0..2_000 {
        let over = if n % 2 == 0 { OverLimit::Busy } else { OverLimit::Rate { retry_after_ms: 7 } };
        let error = audit.over_limit(&principal, over);
        assert!(matches!(*error.cause, Cause::OverLimit(_)), "{error:?}");
    }
    audit.close().unwrap();
    let at_most = 2 * (1 + start.elapsed().as_secs());
    let ledger = Ledger::read(journal.durable());
    let lines = ledger.of("limited");
    assert!(lines.len() as u64 <= at_most, "{}", lines.len());
    assert_eq!(lines.iter().map(|line| line["count"].as_u64().unwrap()).sum::<u64>(), 2_000);
    world.end().await;
}

#[tokio::test]
async fn counted_refusals_that_cannot_be_written_are_kept_for_later() {
    let world = World::start();
    let journal = world.journal(Fault::Nothing);
    let audit = Audit::start(journal.clone(), Redactor::default(), AuditLimits::default()).unwrap();
    journal.fault(Fault::All);
    journal.hold();
    for _ in 0..5 {
        let _reply = audit.over_limit(&World::principal(), OverLimit::Busy);
    }
    journal.until_waiting();
    journal.release();
    // The counts fail now; a call that fails behind them shows that they did.
    assert_eq!(reason(&world.call(&audit, "a").await), Some(Reason::AuditUnavailable));
    journal.fault(Fault::Nothing);
    audit.close().unwrap();
    let ledger = Ledger::read(journal.durable());
    assert_eq!(ledger.of("limited").iter().map(|line| line["count"].as_u64().unwrap()).sum::<u64>(), 5);
    world.end().await;
}

#[tokio::test]
async fn refusals_never_use_up_the_room_of_an_outcome() {
    let world = World::start();
    let verdict = world.verdict("a").await;
    let journal = world.journal(Fault::Nothing);
    let limits = AuditLimits::default();
    let audit = Audit::start(journal.clone(), Redactor::default(), limits.clone()).unwrap();
    let admitted = audit.admit(verdict).await.unwrap();
    // Room for the outcome, and for less than one refusal with the longest names, each character of them escaped.
    let reserve = limits.outcome_reserve;
    let before = journal.durable().len();
    journal.fault(Fault::Beyond(before + reserve + 4_500));
    let longest = "\u{e0041}".repeat(256);
    let refused = world.call_on(&audit, &longest, &longest).await;
    assert_eq!(reason(&refused), Some(Reason::AuditUnavailable));
    journal.fault(Fault::Beyond(before + reserve));
    let _reply = audit.over_limit(&World::principal(), OverLimit::Busy);
    let start = Instant::now();
    // More than a second later the count is due, and a refusal behind it shows that it was tried.
    while start.elapsed() < Duration::from_millis(1_100) {
        assert_eq!(reason(&world.call_tool(&audit, "none", "x").await), Some(Reason::AuditUnavailable));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(journal.durable().len(), before);
    let executed = world.execute(admitted).await;
    assert!(audit.close_call(executed).await.into_answer().is_ok());
    audit.close().unwrap();
    Ledger::read(journal.durable()).must_account_for(&world.left());
    world.end().await;
}
