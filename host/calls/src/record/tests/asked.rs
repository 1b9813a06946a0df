//! A call that a person allowed, over a journal that does not take the use of its grant, or not the intent behind that.

use crate::cause::Cause;
use footbridge_proto::rpc::Reason;

use super::{Fault, Ledger, World, world::reason};
use crate::record::Audit;
use footbridge_core::limits::AuditLimits;
use footbridge_core::redact::Redactor;

/// The call does not leave, its grant is gone, and all that is recorded is so many uses of it. Gives what it was told.
async fn loses_its_grant(fault: Fault, uses: usize) -> Cause {
    let world = World::start();
    world.verdict("warm").await;
    let journal = world.journal(fault);
    let audit = Audit::start(journal.clone(), Redactor::default(), AuditLimits::default()).unwrap();
    let asks = world.asks(&audit);
    let error = asks.call_allowed("a").await.unwrap_err();
    assert_eq!(error.cause.reason(), Reason::AuditUnavailable);
    journal.fault(Fault::Nothing);
    let again = asks.call_unanswered("a").await;
    assert_eq!(reason(&again), Some(Reason::ApprovalRequired), "a person is asked once more");
    assert!(world.left().is_empty(), "{:?}", world.left());
    assert!(asks.call_allowed("a").await.is_ok(), "no restart is needed");
    asks.end().await;
    audit.close().unwrap();
    let ledger = Ledger::read(journal.durable());
    ledger.must_account_for(&world.left());
    assert_eq!((ledger.approvals("granted").len(), ledger.approvals("used").len()), (2, uses + 1));
    assert_eq!(world.left_tags(), ["a"]);
    world.end().await;
    *error.cause
}

#[tokio::test]
async fn a_call_whose_approval_s_use_cannot_be_recorded_does_not_leave_and_loses_its_grant() {
    let told = loses_its_grant(Fault::Uses, 0).await;
    assert_eq!(told, Cause::GrantNotRecorded);
}

#[tokio::test]
async fn a_call_whose_intent_cannot_be_written_behind_the_use_of_its_approval_loses_its_grant_too() {
    loses_its_grant(Fault::Intents, 1).await;
}
