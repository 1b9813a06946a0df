//! Whichever operations of the journal fail, in a sequence of calls of every kind.

use crate::cause::Failure;
use footbridge_proto::rpc::Reason;

use super::{Fault, Ledger, World, world::reason};
use crate::provider::RawResult;
use crate::record::Audit;
use footbridge_core::limits::AuditLimits;
use footbridge_core::redact::Redactor;

/// More operations than the sequence has.
const ENOUGH: usize = 100;

type Answers = Vec<(&'static str, Result<RawResult, Failure>)>;

/// Two calls side by side, a refusal, a call, one that a person allows, and the same once more, which nobody does.
async fn sequence(world: &World, audit: &Audit) -> Answers {
    let (a, b) = tokio::join!(world.call(audit, "a"), world.call(audit, "b"));
    let refused = world.call_tool(audit, "none", "refused").await;
    let c = world.call(audit, "c").await;
    let asks = world.asks(audit);
    let asked = asks.call_allowed("asked").await;
    let again = asks.call_unanswered("asked").await;
    asks.end().await;
    vec![("a", a), ("b", b), ("refused", refused), ("c", c), ("asked", asked), ("again", again)]
}

/// Every answer says what became of its call.
fn answers_must_be_true(answers: &Answers, tags: &[String], which: (usize, usize)) {
    for (tag, answer) in answers {
        let left = tags.iter().any(|t| t == tag);
        let expected: &[Option<Reason>] = match (*tag, left) {
            ("refused", false) => &[Some(Reason::UnknownTool), Some(Reason::AuditUnavailable)],
            // No grant is left of the call before, whatever became of it.
            ("again", false) => &[Some(Reason::ApprovalRequired), Some(Reason::AuditUnavailable)],
            (_, true) => &[None, Some(Reason::OutcomeUnknown)],
            (_, false) => &[Some(Reason::AuditUnavailable)],
        };
        assert!(expected.contains(&reason(answer)), "{tag} at {which:?}: {answer:?}");
    }
}

/// With faults of this many operations, at each place of the sequence.
async fn every_call_is_accounted_for(length: usize) {
    let world = World::start();
    world.verdict("warm").await;
    for first in 1..ENOUGH {
        let journal = world.journal(Fault::Operations(first..first + length));
        let Ok(audit) = Audit::start(journal.clone(), Redactor::default(), AuditLimits::default()) else {
            assert_eq!(first, 1, "only the first operation is part of the start");
            continue;
        };
        let answers = sequence(&world, &audit).await;
        let _what_it_lacks = audit.close();
        Ledger::read(journal.durable()).must_account_for(&world.left());
        let tags = world.left_tags();
        answers_must_be_true(&answers, &tags, (first, length));
        if journal.operations() < first {
            assert_eq!(tags.len(), 4, "nothing failed");
            return world.end().await;
        }
    }
    panic!("a fault at the {ENOUGH}th operation still hits");
}

#[tokio::test]
async fn whichever_operation_fails_every_call_is_accounted_for() {
    every_call_is_accounted_for(1).await;
}

#[tokio::test]
async fn whichever_three_operations_fail_every_call_is_accounted_for() {
    every_call_is_accounted_for(3).await;
}
