//! Questions of an MCP server to a person, while one of its calls runs (MCP elicitation).
//!
//! A question goes to whoever is asked about calls, as an approval of kind `elicitation`, and never to the guest. It is
//! pending; then granted with what was answered, denied, expired or withdrawn; and its answer is used once, durably,
//! before the server gets it. While somebody is asked the call's time stands still. Declined without asking: what
//! cannot be shown, what looks as if it asked for a secret, and more than a person should be asked. That is recorded as
//! an approval that is denied by `footbridge`, with the reason; beyond the questions that a call may ask they are only
//! counted, unread: a server can send thousands a second.

use crate::provider::Elicit;
use crate::provider::Elicited;
use std::{
    ops::ControlFlow::{Break, Continue},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use footbridge_proto::text::Escaped;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use super::{
    ApprovalId, Approvals, Asking, ELICITATION, Key, State,
    book::{Asked, Change, New, Turn},
    desk::step,
    form::{BadForm, Form},
    waiting::{Taken, WaitersPlace},
};
use crate::{auth::Principal, decide::Verdict, pause::Pause, session::Session};
use footbridge_core::{digest::Digest, random::NoRandomness};

/// Questions that one call may lead to: more is a server that asks until somebody gives in.
const MAX_OF_A_CALL: usize = 10;

/// How many calls could ask so far.
static ASKED_BY: AtomicU64 = AtomicU64::new(0);

/// Who can be asked while a call runs, for the server that runs it.
#[derive(Debug)]
struct Elicitor {
    approvals: Approvals,
    principal: Principal,
    /// But for its arguments, which are each question's own.
    key: Key,
    effects: Vec<&'static str>,
    policy: String,
    pause: Pause,
    /// One question at a time.
    turn: Semaphore,
    asked: AtomicUsize,
}

/// Why nobody is asked.
#[derive(Debug, thiserror::Error)]
enum NotAsked {
    #[error(transparent)]
    Form(#[from] BadForm),
    #[error("another question of the same call waits for its answer")]
    OneAtATime,
    #[error("{0} questions and calls of the session wait for a person already")]
    Pending(usize),
    #[error("the same was denied a moment ago")]
    Hushed,
    #[error("nobody can be asked")]
    Nobody,
    #[error("its session has ended")]
    Ended,
    #[error("it could not be recorded")]
    Unrecorded,
    #[error("too many bytes are held at once")]
    Busy,
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl NotAsked {
    /// The reason without anything that the server wrote.
    fn word(&self) -> &'static str {
        match self {
            Self::Form(BadForm::Secret(_)) => "asks for a secret",
            Self::Form(BadForm::Url) => "bad address",
            Self::Form(BadForm::TooLong) => "too long",
            Self::Form(_) => "not a form",
            Self::OneAtATime | Self::Pending(_) => "too many questions",
            Self::Hushed => "denied before",
            Self::Nobody => "nobody to ask",
            Self::Ended => "session ended",
            Self::Unrecorded | Self::Busy | Self::Randomness(_) => "busy",
        }
    }
}

impl Approvals {
    /// Who can be asked while this call runs.
    pub(crate) fn elicitor(&self, verdict: &Verdict) -> Arc<dyn Elicit> {
        let call = verdict.call();
        let asked_by = Some(ASKED_BY.fetch_add(1, Ordering::Relaxed));
        Arc::new(Elicitor {
            approvals: self.clone(),
            principal: call.principal().clone(),
            key: Key { kind: ELICITATION, definition: None, service: None, asked_by, ..Key::of(verdict) },
            effects: call.effects().words(),
            policy: verdict.policy().name().to_owned(),
            pause: Pause::default(),
            turn: Semaphore::new(1),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Elicit for Elicitor {
    fn pause(&self) -> &Pause {
        &self.pause
    }

    fn elicit<'a>(&'a self, params: &'a str) -> BoxFuture<'a, Elicited> {
        Box::pin(self.elicited(params))
    }
}

impl Elicitor {
    async fn elicited(&self, params: &str) -> Elicited {
        let Self { key, principal, asked, .. } = self;
        let before = asked.fetch_add(1, Ordering::Relaxed);
        if before >= MAX_OF_A_CALL {
            self.too_many(before - MAX_OF_A_CALL + 1);
            return Elicited::Decline;
        }
        match self.ask(params).await {
            Ok(elicited) => elicited,
            Err(why) => {
                let (server, session) = (&key.server, principal.session().name());
                let shown = why.to_string();
                tracing::warn!(%server, %session, why = %Escaped(&shown), "a question of an MCP server was declined");
                self.note_declined(params, &why);
                Elicited::Decline
            }
        }
    }

    async fn ask(&self, params: &str) -> Result<Elicited, NotAsked> {
        let Self { approvals, principal, turn, pause, .. } = self;
        let _turn = turn.try_acquire().map_err(|_| NotAsked::OneAtATime)?;
        let (form, canonical) = read(principal.session(), params).await?;
        if !approvals.can_be_answered() {
            return Err(NotAsked::Nobody);
        }
        if !approvals.audit().takes_records() {
            return Err(NotAsked::Unrecorded);
        }
        let held = principal.session().bytes().take(canonical.len()).map_err(|_| NotAsked::Busy)?;
        let (key, spare) = (self.key(&canonical), ApprovalId::new()?);
        let about = Arc::new(self.asking(canonical).with_form(form).holding(held));
        let limits = principal.session().limits().approval;
        let asked = approvals.with(|book, now| {
            // Looked at here, so that nothing is asked of one that has just ended what was.
            let goes_on = principal.session().over().is_going_on();
            goes_on.then(|| book.ask(now, New { id: spare, key: key.clone(), about, limits }))
        });
        let waiter = match asked.ok_or(NotAsked::Ended)? {
            Asked::Waiting(waiter) => waiter,
            Asked::Hushed(_) => return Err(NotAsked::Hushed),
            Asked::TooMany => return Err(NotAsked::Pending(limits.pending_per_session)),
        };
        let _paused = pause.hold();
        let place = WaitersPlace::new(approvals.clone(), waiter);
        Ok(self.answered(place, &key).await)
    }

    /// Waits for the answer and uses it up.
    async fn answered(&self, mut place: WaitersPlace, key: &Key) -> Elicited {
        let approvals = &self.approvals;
        let over = approvals.look_until(|| match place.look() {
            (_, Turn::Ready) => Break(None),
            (_, Turn::Over(state)) => Break(Some(state)),
            (_, Turn::Wait(until)) => Continue(Some(until)),
        });
        match over.await {
            None => {}
            Some(State::Denied) => return Elicited::Decline,
            Some(_) => return Elicited::Cancel,
        }
        let Ok(spare) = ApprovalId::new() else { return Elicited::Cancel };
        let Some(Taken { id, yes, is_recorded }) = place.take(key, spare) else {
            let was_denied = matches!(place.look(), (_, Turn::Over(State::Denied)));
            return if was_denied { Elicited::Decline } else { Elicited::Cancel };
        };
        if !is_recorded.await {
            tracing::error!(approval = %id, "the answer to a question cannot be recorded and was not given");
            return Elicited::Cancel;
        }
        Elicited::Accept(yes.content.and_then(|content| serde_json::from_str(&content).ok()))
    }

    fn key(&self, canonical: &str) -> Key {
        Key { arguments: Digest::of(canonical), ..self.key.clone() }
    }

    fn asking(&self, canonical: String) -> Asking {
        let Self { principal, effects, policy, .. } = self;
        Asking::of(principal, effects.clone(), policy.clone(), canonical)
    }

    /// One beyond those that a call may ask; `count` of them by now. A flood of them is no flood of lines.
    fn too_many(&self, count: usize) {
        let Self { approvals, key, principal, .. } = self;
        approvals.audit().over_questions(principal);
        if count.is_power_of_two() {
            let (server, session) = (&key.server, principal.session().name());
            tracing::warn!(
                %server, %session, count,
                "questions of an MCP server were declined: their call had asked {MAX_OF_A_CALL} already"
            );
        }
    }

    fn note_declined(&self, params: &str, why: &NotAsked) {
        let Ok(id) = ApprovalId::new() else { return };
        let (key, about) = (self.key(params), Arc::new(self.asking(params.to_owned())));
        let approver = Some(format!("footbridge ({})", why.word()).into());
        let denied = Change { id, state: State::Denied, key, about, approver, content: None };
        self.approvals.audit().approval_step(step(&denied));
    }
}

/// Reads a question beside the workers, one of a session at a time: a schema is compiled.
async fn read(session: &Session, params: &str) -> Result<(Form, String), NotAsked> {
    let own = session.turn().await;
    let params = params.to_owned();
    let work = tokio::task::spawn_blocking(move || {
        let _own = own;
        Form::read(&params)
    });
    Ok(work.await.map_err(|_| NotAsked::Busy)??)
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::{
        super::book::{Book, Waiter, Yes},
        *,
    };
    use footbridge_core::limits::ApprovalLimits;

    fn key() -> Key {
        let digest = Digest::of("x");
        let (server, name) = ("s".to_owned(), "t".to_owned());
        Key {
            session: 1,
            kind: ELICITATION,
            server,
            name,
            arguments: digest,
            definition: None,
            service: None,
            policy: digest,
            asked_by: Some(1),
        }
    }

    fn asked(book: &mut Book<()>, now: Instant, id: u64) -> Waiter {
        let (about, limits) = (Arc::new(()), ApprovalLimits::default());
        match book.ask(now, New { id: ApprovalId(id), key: key(), about, limits }) {
            Asked::Waiting(waiter) => waiter,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_same_question_of_two_calls_is_answered_by_itself_and_a_no_hushes_a_third() {
        let (mut book, now) = (Book::new(), Instant::now());
        let ask = |book: &mut Book<()>, id: u64, asked_by: u64| {
            let (about, limits) = (Arc::new(()), ApprovalLimits::default());
            book.ask(now, New { id: ApprovalId(id), key: Key { asked_by: Some(asked_by), ..key() }, about, limits })
        };
        let (Asked::Waiting(first), Asked::Waiting(second)) = (ask(&mut book, 1, 1), ask(&mut book, 2, 2)) else {
            panic!("not both are asked")
        };
        book.allow(now, ApprovalId(1), Yes::to_call("me".into()), None).unwrap();
        book.leave(now, first);
        assert!(matches!(book.look(now, second), Some((ApprovalId(2), Turn::Wait(_)))), "it was not answered");
        book.deny(now, ApprovalId(2), "me".into()).unwrap();
        assert_eq!(book.look(now, second), Some((ApprovalId(2), Turn::Over(State::Denied))));
        assert!(matches!(ask(&mut book, 3, 3), Asked::Hushed(_)));
    }

    #[test]
    fn an_answer_that_its_server_did_not_wait_for_is_for_no_later_question() {
        let (mut book, now) = (Book::new(), Instant::now());
        let waiter = asked(&mut book, now, 1);
        book.allow(now, ApprovalId(1), Yes::to_call("me".into()), None).unwrap();
        book.leave(now, waiter);
        assert_eq!(book.state(now, 1, ApprovalId(1)), Some((State::Expired, None)));
        let waiter = asked(&mut book, now, 2);
        assert!(matches!(book.look(now, waiter), Some((ApprovalId(2), Turn::Wait(_)))));
        book.dismiss(now, ApprovalId(2), "me".into()).unwrap();
        assert_eq!(book.look(now, waiter), Some((ApprovalId(2), Turn::Over(State::Withdrawn))));
        assert_eq!(book.dismiss(now, ApprovalId(2), "me".into()), Err(Some(State::Withdrawn)));
        // Unlike after a no it may be asked again.
        let _ = asked(&mut book, now, 3);
    }
}
