//! A call that goes past a stage. Other crates have the stages as one, which takes a principal and a request and gives
//! a reply; what leads from one stage to the next is theirs alone, whatever it would be given.

use std::sync::Arc;

use footbridge_calls::approval::Approvals;
use footbridge_calls::auth::Principal;
use footbridge_calls::auth::authenticate;
use footbridge_calls::call::Stages;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::record::Audit;
use footbridge_calls::request::CallRequest;
use footbridge_calls::resolve::Resolver;
use footbridge_calls::session::Session;
use footbridge_calls::upstream::Upstream;
use footbridge_calls::watcher::Watcher;
use tokio_util::sync::CancellationToken;

fn no_token(session: &Arc<Session>, peer: &Arc<str>) {
    let _ = authenticate(session, peer); //~ E0061
    //= let _ = authenticate(session, peer, b"token");
}

fn a_token_looked_at_by_oneself(session: &Session) {
    let _ = session.opens_with(b"token"); //~ E0624
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

async fn resolved_alone(resolver: &Resolver, principal: Principal, request: CallRequest) {
    let _ = resolver.resolve(principal, request).await; //~ E0624
}

fn asked_alone(approvals: &Approvals) {
    let _ = approvals.ask(todo!()); //~ E0624
}

async fn admitted_alone(audit: &Audit) {
    let _ = audit.admit(todo!()).await; //~ E0624
}

async fn refused_alone(audit: &Audit) {
    let _ = audit.refuse(todo!()).await; //~ E0624
}

async fn turned_down_alone(audit: &Audit) {
    let _ = audit.turn_down(todo!()).await; //~ E0624
}

fn over_a_limit_that_nobody_counted(audit: &Audit, principal: &Principal) {
    let _ = audit.over_limit(principal, todo!()); //~ E0624
}

async fn executed_again_by_a_provider(upstream: &Upstream, outgoing: Outgoing, cancel: &CancellationToken) {
    let _ = upstream.execute(outgoing, cancel, &Watcher::silent()).await; //~ E0308
}

async fn closed_alone(audit: &Audit) {
    let _ = audit.close_call(todo!()).await; //~ E0624
}
