//! A call that goes past a stage: each stage takes nothing but what the one before gives.

use std::sync::Arc;

use footbridge_calls::approval::Approvals;
use footbridge_calls::approval::Clear;
use footbridge_calls::approval::Cleared;
use footbridge_calls::approval::NotCleared;
use footbridge_calls::approval::Question;
use footbridge_calls::approval::Waiting;
use footbridge_calls::auth::Principal;
use footbridge_calls::auth::authenticate;
use footbridge_calls::auth::Peer;
use footbridge_calls::call::Stages;
use footbridge_calls::cause::Failure;
use footbridge_calls::decide::Verdict;
use footbridge_calls::decide::decide;
use footbridge_calls::events::CallEvent;
use footbridge_calls::upstream::Executed;
use footbridge_calls::provider::Outcome;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::upstream::Upstream;
use footbridge_calls::admit::Admitted;
use footbridge_calls::record::Audit;
use footbridge_calls::reply::Reply;
use footbridge_calls::request::CallRequest;
use footbridge_calls::resolve::Found;
use footbridge_calls::resolve::ResolvedCall;
use footbridge_calls::resolve::Resolver;
use footbridge_calls::resolve::Unresolved;
use footbridge_calls::session::Session;
use footbridge_calls::watcher::Watcher;
use footbridge_core::gate::SessionRules;
use footbridge_proto::rpc::ErrorObject;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

fn no_token(session: &Arc<Session>, peer: &Peer) {
    let _ = authenticate(session, peer); //~ E0061
    //= let _ = authenticate(session, peer, b"token");
}

async fn nobody_who_asks(resolver: &Resolver, session: Arc<Session>, request: CallRequest) {
    let _ = resolver.resolve(session, request).await; //~ E0308
}

async fn nobody_whose_call_it_is(
    stages: &Stages,
    session: Arc<Session>,
    request: CallRequest,
    watcher: &Watcher,
    cancel: &CancellationToken,
) {
    let _ = stages.call(session, request, watcher, cancel).await; //~ E0308
}

fn names_that_nobody_looked_up(request: CallRequest) {
    let _ = decide(request); //~ E0308
}

fn names_that_were_looked_up_for_nobody(found: Found) {
    let _ = decide(found); //~ E0308
}

fn a_call_that_could_not_be_resolved(unresolved: Unresolved) {
    let _ = decide(unresolved); //~ E0308
}

fn other_rules_than_its_names_were_looked_up_with(rules: &SessionRules, call: ResolvedCall) {
    let _ = decide(rules, call); //~ E0061
    //= let _ = decide(call);
}

fn cleared_undecided(call: ResolvedCall) {
    let _ = Clear::of(call); //~ E0308
    //= let _ = Clear::of(decide(call));
}

fn asked_about_what_the_policy_does_not_ask(approvals: &Approvals, verdict: Verdict) {
    let _ = approvals.ask(verdict); //~ E0308
}

async fn admitted_undecided(audit: &Audit, call: ResolvedCall) {
    let _ = audit.admit(call).await; //~ E0308
}

async fn admitted_uncleared(audit: &Audit, verdict: Verdict) {
    let _ = audit.admit(verdict).await; //~ E0308
}

async fn admitted_with_nobody_asked(audit: &Audit, question: Question) {
    let _ = audit.admit(question).await; //~ E0308
}

async fn admitted_by_a_grant_that_is_not_used_up(audit: &Audit, granted: Waiting) {
    let _ = audit.admit(granted).await; //~ E0308
}

async fn admitted_though_denied(audit: &Audit, denied: NotCleared) {
    let _ = audit.admit(denied).await; //~ E0308
    //= let _ = audit.turn_down(denied).await;
}

async fn executed_undecided(upstream: &Upstream, call: ResolvedCall, cancel: &CancellationToken) {
    let _ = upstream.execute(call, cancel).await; //~ E0308
}

async fn executed_uncleared(upstream: &Upstream, verdict: Verdict, cancel: &CancellationToken) {
    let _ = upstream.execute(verdict, cancel).await; //~ E0308
}

async fn executed_unrecorded(upstream: &Upstream, cleared: Cleared, cancel: &CancellationToken) {
    let _ = upstream.execute(cleared, cancel).await; //~ E0308
}

async fn executed_again_by_a_provider(upstream: &Upstream, outgoing: Outgoing, cancel: &CancellationToken) {
    let _ = upstream.execute(outgoing, cancel).await; //~ E0308
}

async fn executed_unrecorded_while_somebody_watches(
    upstream: &Upstream,
    cleared: Cleared,
    cancel: &CancellationToken,
    events: mpsc::Sender<CallEvent>,
) {
    let _ = upstream.execute_watched(cleared, cancel, events).await; //~ E0308
}

async fn closed_without_an_execution(audit: &Audit, admitted: Admitted) {
    let _ = audit.close_call(admitted).await; //~ E0308
}

async fn closed_without_an_intent(audit: &Audit, outcome: Outcome) {
    let _ = audit.close_call(outcome).await; //~ E0308
}

async fn answered_without_being_closed(audit: &Audit, executed: Executed) -> Reply {
    executed //~ E0308
    //= audit.close_call(executed).await
}

async fn refused_unrecorded(audit: &Audit, unresolved: Unresolved) -> Failure {
    unresolved //~ E0308
    //= audit.refuse(unresolved).await
}

async fn turned_down_unrecorded(audit: &Audit, denied: NotCleared) -> Failure {
    denied //~ E0308
    //= audit.turn_down(denied).await
}

async fn refused_in_other_words(audit: &Audit, error: ErrorObject) {
    let _ = audit.refuse(error).await; //~ E0308
}

async fn turned_down_before_it_was_decided(audit: &Audit, call: ResolvedCall) {
    let _ = audit.turn_down(call).await; //~ E0308
}

async fn turned_down_though_allowed(audit: &Audit, cleared: Cleared) {
    let _ = audit.turn_down(cleared).await; //~ E0308
}

fn over_a_limit_that_nobody_counted(audit: &Audit, principal: &Principal, error: ErrorObject) {
    let _ = audit.over_limit(principal, error); //~ E0308
}
