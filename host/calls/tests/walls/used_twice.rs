//! One thing used for two calls, or for two answers.

use footbridge_calls::approval::Approvals;
use footbridge_calls::approval::Clear;
use footbridge_calls::approval::Cleared;
use footbridge_calls::approval::NotCleared;
use footbridge_calls::approval::Question;
use footbridge_calls::approval::Waiting;
use footbridge_calls::decide::Verdict;
use footbridge_calls::decide::decide;
use footbridge_calls::provider::CallContext;
use footbridge_calls::upstream::Executed;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::provider::ToolProvider;
use footbridge_calls::upstream::Upstream;
use footbridge_calls::admit::Admitted;
use footbridge_calls::record::Audit;
use footbridge_calls::reply::Reply;
use footbridge_calls::resolve::ResolvedCall;
use footbridge_calls::resolve::Unresolved;
use tokio_util::sync::CancellationToken;

fn two_verdicts_on_one_call(call: ResolvedCall) {
    let _ = decide(call);
    let _ = decide(call); //~ E0382
}

async fn two_refusals_of_one_call(audit: &Audit, unresolved: Unresolved) {
    let _ = audit.refuse(unresolved).await;
    let _ = audit.refuse(unresolved).await; //~ E0382
}

fn one_verdict_cleared_twice(verdict: Verdict) {
    let _ = Clear::of(verdict);
    let _ = Clear::of(verdict); //~ E0382
}

fn one_question_asked_twice(approvals: &Approvals, question: Question) {
    let _ = approvals.ask(question);
    let _ = approvals.ask(question); //~ E0382
}

async fn one_grant_taken_twice(granted: Waiting) {
    let _ = granted.take().await;
    let _ = granted.take().await; //~ E0382
}

async fn a_grant_taken_after_it_was_given_up(granted: Waiting, audit: &Audit, why: footbridge_calls::cause::Cause) {
    let _ = audit.turn_down(granted.given_up(why)).await;
    let _ = granted.take().await; //~ E0382
}

async fn one_call_turned_down_twice(audit: &Audit, not_cleared: NotCleared) {
    let _ = audit.turn_down(not_cleared).await;
    let _ = audit.turn_down(not_cleared).await; //~ E0382
}

async fn one_clearance_for_two_calls(audit: &Audit, cleared: Cleared) {
    let _ = audit.admit(cleared).await;
    let _ = audit.admit(cleared).await; //~ E0382
}

async fn one_admission_for_two_calls(upstream: &Upstream, admitted: Admitted, cancel: &CancellationToken) {
    let _ = upstream.execute(admitted, cancel).await;
    let _ = upstream.execute(admitted, cancel).await; //~ E0382
}

async fn one_admission_for_two_calls_that_are_sent_on(
    provider: &dyn ToolProvider,
    outgoing: Outgoing,
    context: CallContext,
) {
    let _ = provider.call(outgoing, context.clone()).await;
    let _ = provider.call(outgoing, context).await; //~ E0382
}

async fn a_call_sent_on_after_it_was_taken_apart(provider: &dyn ToolProvider, outgoing: Outgoing, context: CallContext) {
    let _ = outgoing.into_parts();
    let _ = provider.call(outgoing, context).await; //~ E0382
}

async fn two_answers_to_one_call(audit: &Audit, executed: Executed) {
    let _ = audit.close_call(executed).await;
    let _ = audit.close_call(executed).await; //~ E0382
}

fn one_answer_given_twice(reply: Reply) {
    let _ = reply.into_answer();
    let _ = reply.into_answer(); //~ E0382
}
