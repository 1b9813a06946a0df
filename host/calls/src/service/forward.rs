//! The life of one request to a service: the same stages as a call's, and the answer while it comes.

use std::{panic::AssertUnwindSafe, sync::Arc};

use footbridge_core::{budget::Share, gate::Decision, names::ServerName, service::ServiceRules};
use futures::{FutureExt as _, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use super::OpenExchange;
use crate::{
    approval::{Clear, Patience},
    auth::Principal,
    call::Stages,
    cause::{Cause, Failure},
    decide::{self, Verdict},
    provider::{NoAnswer, NotSent, Outcome, Outgoing, Unanswered},
    request::{OutgoingRequest, Target},
    resolve::{ResolvedCall, Unresolved},
    service_call::{HeldRequest, ServiceCall, ServiceRequest},
    session::Place,
    upstream::Executed,
    watcher::Watcher,
};

/// What carries requests to services. It gets each as an [`Outgoing`], which only an admission holds, once.
pub trait Forward: Send + Sync {
    /// Headers and body of a request.
    type Parcel: Send;
    /// The head of an answer, and where its body comes from.
    type Answer: BegunAnswer;

    /// What is known of a service; none where there is none of this name.
    fn known(&self, service: &str) -> Option<KnownService>;

    /// Reads the whole body of a request that a person is asked about, and keeps it, within `limit` bytes.
    ///
    /// # Errors
    /// Why not.
    fn hold<'a>(
        &'a self,
        parcel: &'a mut Self::Parcel,
        room: &'a Share,
        limit: usize,
    ) -> BoxFuture<'a, Result<HeldRequest, Cause>>;

    /// Sends a request, once, and gives the head of its answer. When `cancel` is cancelled nobody waits any more: it ends
    /// at once, and says whether something may have left.
    ///
    /// # Errors
    /// What became of it, where there is no answer.
    fn send(
        &self,
        outgoing: Outgoing,
        parcel: Self::Parcel,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<Self::Answer, Unanswered>> + Send;
}

/// What is known of a service before anything is asked of it.
#[derive(Debug, Clone)]
pub struct KnownService {
    /// What may be asked of it.
    pub rules: Arc<ServiceRules>,
    /// Which one of its name it is: one that the operator changed, its credential included, has another number.
    pub revision: u64,
}

/// A request to a service, with what is not decided about.
#[derive(Debug)]
pub struct WholeRequest<P> {
    /// What is asked.
    pub request: ServiceRequest,
    /// Its headers and body, as [`Forward::Parcel`].
    pub parcel: P,
}

/// Whoever waits for a request to a service.
#[derive(Debug, Clone)]
pub struct Waiter {
    /// Cancelled when it leaves: that ends the request wherever it is.
    pub cancel: CancellationToken,
    /// Hears that a person is asked.
    pub watcher: Watcher,
}

/// An answer that has begun. What passed of it is known to it alone, also where nobody takes it.
pub trait BegunAnswer: Send {
    /// Has it close this when it ends, or is dropped.
    fn recorded_by(&mut self, exchange: OpenExchange);
}

impl Stages {
    /// Takes a request to a service from its head to the head of its answer. What is rare of it has a place of its own, so
    /// that this takes little.
    ///
    /// # Errors
    /// Why there is no answer; that is recorded.
    pub async fn forward<F: Forward>(
        &self,
        principal: Principal,
        whole: WholeRequest<F::Parcel>,
        carrier: &F,
        waiter: Waiter,
    ) -> Result<F::Answer, Failure> {
        let WholeRequest { request, mut parcel } = whole;
        let Waiter { cancel, watcher } = waiter;
        let place = match principal.session().enter_service(request.is_tunnel()).await {
            Ok(place) => place,
            Err(over) => return Err(self.audit.over_limit(&principal, over)),
        };
        let call = match resolve(carrier, principal, request) {
            Ok(call) => call,
            Err(unresolved) => return Err(Box::pin(self.audit.refuse(*unresolved)).await),
        };
        let mut verdict = decide::decide(call);
        if verdict.decision() == Decision::Ask && self.approvals.can_be_answered() {
            (verdict, parcel) = Box::pin(self.with_body(carrier, verdict, parcel)).await?;
        }
        let (cleared, place) = match Clear::of(verdict) {
            Clear::Cleared(cleared) => (*cleared, place),
            Clear::Denied(denied) => return Err(Box::pin(self.audit.turn_down(*denied)).await),
            Clear::Ask(question) => {
                drop(place);
                let patience = Patience { answer_after: None, watcher };
                let is_unchanged = async |call: &ResolvedCall| is_current(carrier, call);
                match Box::pin(self.approved(*question, &cancel, &patience, is_unchanged)).await {
                    Ok(approved) => approved,
                    Err(not_cleared) => return Err(Box::pin(self.audit.turn_down(*not_cleared)).await),
                }
            }
        };
        let (outgoing, receipt) = self.audit.admit(cleared).await?.depart();
        let sent = if cancel.is_cancelled() {
            Err(Outcome::NotSent(NotSent::Cancelled).into())
        } else {
            AssertUnwindSafe(carrier.send(outgoing, parcel, &cancel)).catch_unwind().await.unwrap_or_else(|_panic| {
                tracing::error!(server = %receipt.server, "a request to a service panicked; it ended alone");
                Err(Outcome::Unknown(NoAnswer::Unusable).into())
            })
        };
        match sent {
            Ok(mut answer) => {
                answer.recorded_by(OpenExchange::new(receipt, self.audit.clone(), place));
                Ok(answer)
            }
            Err(unanswered) => Err(Box::pin(self.failed(Executed::without_answer(receipt, unanswered), place)).await),
        }
    }

    /// Records a request to a service whose head is refused before it is one, and gives its refusal. `what` is as much
    /// of the head as a record may have.
    pub async fn refuse_head(&self, principal: Principal, service: &str, what: String, cause: Cause) -> Failure {
        let target = Target::Service(what);
        // These count as requests do, so that a flood of them is cheap.
        if let Err(over) = principal.session().enter_service(false).await {
            return self.audit.over_limit(&principal, over);
        }
        self.audit.refuse(Unresolved { principal, server: service.to_owned(), target, cause }).await
    }

    /// A verdict that asks, made again with the body, so that what is allowed is exactly what is sent.
    async fn with_body<F: Forward>(
        &self,
        carrier: &F,
        verdict: Verdict,
        mut parcel: F::Parcel,
    ) -> Result<(Verdict, F::Parcel), Failure> {
        let session = verdict.call().principal().session();
        let (limit, room) = (session.limits().services.asked_bytes, session.bytes());
        let held = carrier.hold(&mut parcel, room, limit).await;
        let call = verdict.into_call();
        match held {
            // It may have taken a while: nobody is asked about what cannot be made any more.
            Ok(_) if !is_current(carrier, &call) => {
                Err(self.audit.refuse(call.unresolved(Cause::ChangedWhileAsked)).await)
            }
            Ok(body) => Ok((decide::decide(call.with_body(&body)), parcel)),
            Err(cause) => Err(self.audit.refuse(call.unresolved(cause)).await),
        }
    }

    async fn failed(&self, executed: Executed, _place: Place) -> Failure {
        match self.audit.close_call(executed).await.into_answer() {
            Err(failure) => failure,
            Ok(_) => Cause::HarnessFailed.into(),
        }
    }
}

/// Whether a request would pass as rules and services are now, if whoever was asked about it says yes again.
#[must_use]
pub fn still_passes<F: Forward>(carrier: &F, principal: &Principal, request: &ServiceRequest) -> bool {
    let call = resolve(carrier, principal.clone(), request.clone());
    call.is_ok_and(|call| decide::decide(call).decision() != Decision::Deny)
}

/// Whether the service of a request is still the one that was asked about, and its session has it.
fn is_current<F: Forward>(carrier: &F, call: &ResolvedCall) -> bool {
    let service = call.principal().session().service(call.server().as_str());
    let now = service.and_then(|name| carrier.known(name.as_str())).map(|known| known.revision);
    matches!(call.request(), OutgoingRequest::Service(asked) if now == Some(asked.revision()))
}

/// Finds the service of a request, and whether it takes it.
fn resolve<F: Forward>(
    carrier: &F,
    principal: Principal,
    request: ServiceRequest,
) -> Result<ResolvedCall, Box<Unresolved>> {
    let name = principal.session().service(&request.service);
    let found = name.and_then(|name| Some((carrier.known(name.as_str())?, name)));
    let Some((KnownService { rules, revision }, name)) = found else {
        return Err(unknown(carrier, principal, &request));
    };
    if !rules.allows(&request.method, &request.path) {
        let cause = Cause::RequestNotAllowed { service: name, request: request.label(), is_hidden: false };
        return Err(not_taken(carrier, principal, &request, cause));
    }
    if request.is_websocket && !rules.websocket {
        return Err(not_taken(carrier, principal, &request, Cause::NoWebSockets { service: name }));
    }
    let effects = if request.is_websocket {
        rules.effects_of_websocket(&request.path)
    } else {
        rules.effects(&request.method, &request.path)
    };
    match ResolvedCall::to_service(principal, name.clone(), ServiceCall::new(request, revision), effects) {
        Ok(call) => Ok(call),
        // Hidden and not taken are one.
        Err(hidden) => {
            let (principal, call) = *hidden;
            let cause = Cause::RequestNotAllowed { service: name, request: call.request().label(), is_hidden: true };
            Err(not_taken(carrier, principal, call.request(), cause))
        }
    }
}

/// A request that a service does not take; nothing tells a service that is hidden from one that is unknown.
fn not_taken<F: Forward>(carrier: &F, principal: Principal, request: &ServiceRequest, cause: Cause) -> Box<Unresolved> {
    if principal.session().sees_service(&request.service) {
        unresolved(principal, request, cause)
    } else {
        unknown(carrier, principal, request)
    }
}

fn unknown<F: Forward>(carrier: &F, principal: Principal, request: &ServiceRequest) -> Box<Unresolved> {
    let session = principal.session();
    let is_there = |name: &str| carrier.known(name).is_some();
    let known: Vec<ServerName> =
        session.visible_services().into_iter().filter(|name| is_there(name.as_str())).collect();
    let service = request.service.clone();
    let is_gone = session.sees_service(&service) && !is_there(&service);
    let cause = Cause::UnknownService { service, request: request.label(), known, is_gone };
    unresolved(principal, request, cause)
}

fn unresolved(principal: Principal, request: &ServiceRequest, cause: Cause) -> Box<Unresolved> {
    Box::new(Unresolved { principal, server: request.service.clone(), target: Target::of_service(request), cause })
}
