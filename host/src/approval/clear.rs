//! From a verdict to a [`Cleared`]: at once where the policy allows, and through a person where it says ask.

use std::time::Duration;

use footbridge_proto::rpc::{ErrorObject, Reason};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    ApprovalId, Approvals, Asking, Key, State,
    book::{Asked, Turn, Waiter},
    view,
};
use crate::{
    audit::{ApprovalStep, denied},
    gate::{Decision, Verdict},
    resolve::ResolvedCall,
};

/// A call that may be recorded and made: the policy allows it, or a person did and the grant is used up. Only this
/// stage makes one.
#[derive(Debug)]
pub struct Cleared {
    verdict: Verdict,
    approval: Option<Approved>,
}

/// Which approval a call used, and whose it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// Its id.
    pub id: ApprovalId,
    /// Who allowed it.
    pub approver: String,
}

impl Cleared {
    /// What was decided.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The approval that it used, if one was needed.
    #[must_use]
    pub fn approval(&self) -> Option<&Approved> {
        self.approval.as_ref()
    }

    pub(crate) fn into_call(self) -> ResolvedCall {
        self.verdict.into_call()
    }
}

/// What a verdict comes to without asking anybody.
#[derive(Debug)]
pub enum Clear {
    /// It may be made.
    Cleared(Cleared),
    /// It may not.
    Denied(Box<NotCleared>),
    /// A person has to be asked.
    Ask(Box<Question>),
}

/// A call that a person has to allow.
#[derive(Debug)]
pub struct Question(Verdict);

/// A call that is not made, and why.
#[derive(Debug)]
pub struct NotCleared {
    pub(crate) verdict: Verdict,
    pub(crate) error: ErrorObject,
    pub(crate) approval: Option<ApprovalId>,
}

/// How long a client waits for a person.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    /// It is told `approval_required` after this time; without it, it waits until there is an answer.
    pub answer_after: Option<Duration>,
    /// Where it is told meanwhile what it waits for. What does not fit is dropped.
    pub told: Option<mpsc::Sender<Waits>>,
}

/// What a client waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits {
    /// The approval.
    pub id: ApprovalId,
    /// Until when somebody may answer, RFC 3339.
    pub expires: String,
}

impl Clear {
    /// Of a verdict.
    #[must_use]
    pub fn of(verdict: Verdict) -> Self {
        match verdict.decision() {
            Decision::Allow => Self::Cleared(Cleared { verdict, approval: None }),
            Decision::Ask => Self::Ask(Box::new(Question(verdict))),
            Decision::Deny => {
                let error = denied(&verdict);
                Self::Denied(Box::new(NotCleared { verdict, error, approval: None }))
            }
        }
    }
}

/// A call whose client waits for an answer. Dropping it leaves, which withdraws an approval that nobody else waits for.
#[derive(Debug)]
pub struct Waiting {
    verdict: Verdict,
    key: Key,
    place: WaitersPlace,
}

struct WaitersPlace {
    approvals: Approvals,
    waiter: Option<Waiter>,
}

impl std::fmt::Debug for WaitersPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WaitersPlace").field(&self.waiter).finish()
    }
}

impl Drop for WaitersPlace {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.approvals.with(|book, now| book.leave(now, waiter));
        }
    }
}

impl Approvals {
    /// Asks, or joins those who wait for the same.
    ///
    /// # Errors
    /// [`NotCleared`] where nobody can be asked, or nobody is because of a limit.
    pub fn ask(&self, question: Question) -> Result<Waiting, Box<NotCleared>> {
        let Question(verdict) = question;
        let refuse = |verdict, error| Err(Box::new(NotCleared { verdict, error, approval: None }));
        if !self.can_be_answered() {
            let error = denied(&verdict);
            return refuse(verdict, error);
        }
        if !self.0.audit.takes_records() {
            let message = "The call was not made: it cannot be recorded. Ask the operator; it can be repeated";
            return refuse(verdict, ErrorObject::new(Reason::AuditUnavailable, message));
        }
        let key = Key::of(&verdict);
        let bytes = verdict.call().arguments().1;
        let (Ok(held), Ok(spare)) =
            (verdict.call().principal().session().shares().bytes.take(bytes), ApprovalId::new())
        else {
            return refuse(verdict, busy("Too many bytes are held at once: try again in a moment"));
        };
        let about = std::sync::Arc::new(Asking::new(&verdict, held));
        match self.with(|book, now| book.ask(now, key.clone(), about, spare)) {
            Asked::Waiting(waiter) => {
                let place = WaitersPlace { approvals: self.clone(), waiter: Some(waiter) };
                Ok(Waiting { verdict, key, place })
            }
            Asked::Hushed(left) => {
                let message = format!(
                    "This call was denied a moment ago, and is refused without asking for another {} s",
                    left.as_secs() + 1
                );
                refuse(verdict, ErrorObject::new(Reason::ApprovalDenied, message))
            }
            Asked::TooMany => {
                let message = format!(
                    "{} calls of this session wait for a person already: wait for their answers first",
                    self.0.limits.pending_per_session
                );
                refuse(verdict, busy(&message))
            }
        }
    }
}

fn busy(message: &str) -> ErrorObject {
    ErrorObject::new(Reason::Busy, message).with("retryAfterMs", 1000)
}

impl Waiting {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &ResolvedCall {
        self.verdict.call()
    }

    /// Whether its session's policy still says what it said when a person was asked.
    #[must_use]
    pub fn policy_is_current(&self) -> bool {
        let reach = self.call().principal().session().reach();
        reach.rules().policy().revision() == self.key.policy
    }

    /// Waits until there is a grant that it may take.
    ///
    /// # Errors
    /// [`NotCleared`]: denied, expired, out of patience, or its client left.
    pub async fn granted(self, cancel: &CancellationToken, patience: &Patience) -> Result<Self, Box<NotCleared>> {
        let mut changed = self.place.approvals.watch();
        let patient_until = patience.answer_after.map(|time| Instant::now() + time);
        let mut told = None;
        loop {
            changed.borrow_and_update();
            let (id, until) = match self.look() {
                (id, _) if cancel.is_cancelled() => return Err(Box::new(self.left(id))),
                (_, Turn::Ready) => return Ok(self),
                (id, Turn::Over(state)) => return Err(Box::new(self.ended(id, state))),
                (id, Turn::Wait(until)) => (id, until),
            };
            if told != Some(id) {
                told = Some(id);
                tell(patience, id, until);
            }
            let enough = patient_until.is_some_and(|end| end <= Instant::now());
            if enough {
                return Err(Box::new(self.promised(id, until)));
            }
            tokio::select! {
                () = sleep_until(patient_until.map_or(until, |end| end.min(until))) => {}
                // The sender is as old as this.
                _ = changed.changed() => {}
                () = cancel.cancelled() => return Err(Box::new(self.left(id))),
            }
        }
    }

    fn look(&self) -> (ApprovalId, Turn) {
        let looked = self.place.waiter.and_then(|waiter| self.place.approvals.with(|book, now| book.look(now, waiter)));
        looked.unwrap_or((ApprovalId(0), Turn::Over(State::Expired)))
    }

    /// Takes the grant, if it is for exactly this. It is used up when this returns, and its use is on disk.
    ///
    /// # Errors
    /// [`NotCleared`] where it expired meanwhile, or its use cannot be recorded.
    pub async fn take(mut self) -> Result<Cleared, Box<NotCleared>> {
        let id = self.look().0;
        let Ok(spare) = ApprovalId::new() else {
            let error = ErrorObject::new(Reason::Internal, "The system has no random bytes");
            return Err(Box::new(self.refuse(Some(id), error)));
        };
        let key = Key::of(&self.verdict);
        let waiter = self.place.waiter;
        let taken =
            waiter.and_then(|waiter| self.place.approvals.with(|book, now| book.take(now, waiter, &key, spare)));
        let Some((id, by)) = taken else { return Err(Box::new(self.ended(id, State::Expired))) };
        self.place.waiter = None;
        if !self.place.approvals.0.audit.approval_used(self.step(id, &by)).await {
            // The grant is lost, and the call is not made: never the other way round.
            let message = "The call was not made: the use of its approval cannot be recorded. Ask the operator";
            return Err(Box::new(self.refuse(Some(id), ErrorObject::new(Reason::AuditUnavailable, message))));
        }
        Ok(Cleared { verdict: self.verdict, approval: Some(Approved { id, approver: by.to_string() }) })
    }

    fn step(&self, id: ApprovalId, by: &str) -> ApprovalStep {
        let call = self.verdict.call();
        let (digest, bytes) = call.arguments();
        ApprovalStep {
            id: id.to_string(),
            state: State::Used.as_str(),
            session: call.principal().session().name().to_string(),
            kind: self.key.kind,
            server: self.key.server.clone(),
            name: self.key.name.clone(),
            arguments: digest,
            bytes,
            definition: call.definition(),
            policy: self.verdict.policy().name().to_owned(),
            approver: Some(by.to_owned()),
        }
    }

    /// Ends the waiting for another reason; the grant, if there is one, stays for a moment.
    #[must_use]
    pub fn given_up(self, error: ErrorObject) -> NotCleared {
        let id = self.look().0;
        self.refuse(Some(id), error)
    }

    fn refuse(self, approval: Option<ApprovalId>, error: ErrorObject) -> NotCleared {
        let error = match approval {
            Some(id) => error.with("approvalId", id.to_string()),
            None => error,
        };
        NotCleared { verdict: self.verdict, error, approval }
    }

    fn ended(self, id: ApprovalId, state: State) -> NotCleared {
        let (reason, message) = match state {
            State::Denied => (Reason::ApprovalDenied, "This call was denied by whoever was asked: do not repeat it"),
            _ => (
                Reason::ApprovalExpired,
                "Nobody allowed this call in time, so it was not made: ask the operator before it is repeated",
            ),
        };
        self.refuse(Some(id), ErrorObject::new(reason, message))
    }

    fn left(self, id: ApprovalId) -> NotCleared {
        self.refuse(Some(id), ErrorObject::new(Reason::Cancelled, "The call was cancelled before it was sent"))
    }

    fn promised(mut self, id: ApprovalId, until: Instant) -> NotCleared {
        if let Some(waiter) = self.place.waiter.take() {
            self.place.approvals.with(|book, now| book.promise(now, waiter));
        }
        let expires = view::time(view::wall(until));
        let message = format!(
            "This call waits for a person's approval, {id}, until {expires}. Wait for it with \"tool-cli wait {id}\"; once it \
             is allowed, make exactly the same call again within {} s",
            self.place.approvals.0.limits.grant_time.as_secs()
        );
        let error = ErrorObject::new(Reason::ApprovalRequired, message).with("expiresAt", expires);
        self.refuse(Some(id), error)
    }
}

fn tell(patience: &Patience, id: ApprovalId, until: Instant) {
    if let Some(told) = &patience.told {
        // Whoever does not read is not waited for.
        let _ = told.try_send(Waits { id, expires: view::time(view::wall(until)) });
    }
}
