//! The life of one call.
//!
//! Each stage takes what only the one before can make. Leaving a stage out does not build.

use std::time::Duration;

use footbridge_core::gate::Decision;
use tokio_util::sync::CancellationToken;

use crate::{
    approval::{Approvals, Clear, Cleared, NotCleared, Patience, Question},
    auth::Principal,
    cause::{Cause, DecidedBy, Failure},
    decide,
    record::Audit,
    reply::Reply,
    request::CallRequest,
    resolve::{ResolvedCall, Resolver, Unresolved},
    session::{Place, Session},
    upstream::Upstream,
    watcher::Watcher,
};

/// The stages that a call goes through.
#[derive(Clone)]
pub struct Stages {
    /// Finds what a request names.
    pub resolver: Resolver,
    /// Asks people.
    pub approvals: Approvals,
    /// Records.
    pub audit: Audit,
    /// Carries out.
    pub upstream: Upstream,
}

impl Stages {
    /// Takes a call from its request to its reply. `cancel` ends it wherever it is, upstream too.
    /// A call that a person has to allow waits as long as its watcher does.
    pub async fn call(
        &self,
        principal: Principal,
        request: CallRequest,
        watcher: &Watcher,
        cancel: &CancellationToken,
    ) -> Reply {
        let server = self.resolver.server(&principal.session().rules(), &request.server);
        let left = Unresolved::left(principal.clone(), &request);
        let place = tokio::select! {
            entered = principal.session().enter(server.as_ref()) => match entered {
                Ok(place) => place,
                Err(over) => return Reply::refused(self.audit.over_limit(&principal, over)),
            },
            () = cancel.cancelled() => return Reply::refused(Box::pin(self.audit.refuse(left)).await),
        };
        let call = tokio::select! {
            resolved = self.resolver.resolve(principal.clone(), request) => match resolved {
                Ok(call) => call,
                Err(unresolved) => return Reply::refused(Box::pin(self.audit.refuse(*unresolved)).await),
            },
            () = cancel.cancelled() => return Reply::refused(Box::pin(self.audit.refuse(left)).await),
        };
        let (cleared, _place) = match Clear::of(decide::decide(call)) {
            Clear::Cleared(cleared) => (*cleared, place),
            Clear::Denied(denied) => return Reply::refused(Box::pin(self.audit.turn_down(*denied)).await),
            Clear::Ask(question) => {
                // A call that waits for a person keeps no place from others.
                drop(place);
                let patience = patience(watcher, principal.session());
                let is_unchanged = async |call: &ResolvedCall| self.resolver.is_unchanged(call).await;
                match Box::pin(self.approved(*question, cancel, &patience, is_unchanged)).await {
                    Ok(approved) => approved,
                    Err(not_cleared) => return Reply::refused(Box::pin(self.audit.turn_down(*not_cleared)).await),
                }
            }
        };
        let elicitor = self.approvals.elicitor(cleared.verdict());
        let admitted = match self.audit.admit(cleared).await {
            Ok(admitted) => admitted.with_elicitor(elicitor),
            Err(refusal) => return Reply::refused(refusal),
        };
        let executed = self.upstream.execute(admitted, cancel, watcher).await;
        self.audit.close_call(executed).await
    }

    /// Waits for a person, for a place again, and takes the grant, if everything is as it was when they were asked.
    pub(crate) async fn approved(
        &self,
        question: Question,
        cancel: &CancellationToken,
        patience: &Patience,
        is_unchanged: impl AsyncFnOnce(&ResolvedCall) -> bool,
    ) -> Result<(Cleared, Place), Box<NotCleared>> {
        let granted = self.approvals.ask(question)?.granted(cancel, patience).await?;
        let call = granted.call();
        let entered = cancel.run_until_cancelled(call.enter_again()).await;
        let place = match entered.filter(|_| !cancel.is_cancelled()) {
            Some(Ok(place)) => place,
            Some(Err(over)) => return Err(Box::new(granted.given_up(Cause::OverLimit(over)))),
            None => return Err(Box::new(granted.given_up(Cause::Cancelled))),
        };
        // What is refused behind this has cost a yes: whoever asks again, with a new token too, has it still.
        if !call.principal().is_current() {
            return Err(Box::new(granted.given_up(Cause::SessionReplaced)));
        }
        if !call.is_by_current_rules() || !is_unchanged(call).await {
            return Err(Box::new(granted.given_up(Cause::ChangedWhileAsked)));
        }
        Ok((granted.take().await?, place))
    }

    /// What the gate would say of a call. It counts as one against the rate, and nothing is sent. What is refused is
    /// recorded as the call would be, what is decided is not.
    ///
    /// # Errors
    /// What the call itself would be answered by then.
    pub async fn check(&self, principal: Principal, request: CallRequest) -> Result<Checked, Failure> {
        let server = self.resolver.server(&principal.session().rules(), &request.server);
        let entered = principal.session().enter(server.as_ref()).await;
        let _place = match entered {
            Ok(place) => place,
            Err(over) => return Err(self.audit.over_limit(&principal, over)),
        };
        match self.resolver.resolve(principal, request).await {
            Ok(call) => {
                let verdict = decide::decide(call);
                Ok(Checked { decision: verdict.decision(), by: verdict.revealed() })
            }
            Err(unresolved) => Err(self.audit.refuse(*unresolved).await),
        }
    }
}

/// What the gate would say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What would be decided.
    pub decision: Decision,
    /// What would decide, where guests may know.
    pub by: Option<DecidedBy>,
}

/// How long this watcher waits for a person: at will where it hears that it waits.
fn patience(watcher: &Watcher, session: &Session) -> Patience {
    let answer_after = match (watcher.waits_for_person(), watcher.hears_of_waiting()) {
        (false, _) => Some(Duration::ZERO),
        (true, true) => None,
        (true, false) => Some(session.limits().approval.answer_after),
    };
    Patience { answer_after, watcher: watcher.clone() }
}
