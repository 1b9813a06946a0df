//! Where approvals are asked for and answered: one book behind a lock, and word to all when something changed in it.
//!
//! Each approval has a task while it is pending or granted, see `attend`.

use crate::approval::Answer;
use std::{
    ops::ControlFlow::{self, Break, Continue},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use footbridge_core::human::timestamp;
use footbridge_proto::approval::ApprovalStatus;
use futures::future::BoxFuture;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ApprovalId, ApprovalInfo, ApprovalShown, Asking, Given, NotAnswered, State, Unfit,
    book::{Book, Change, Yes},
    turns::Attendant,
    view,
};
use crate::{
    operator::Operator,
    record::{ApprovalStep, Audit},
    session::Session,
};

/// The task of a pending approval.
type Attend = fn(Approvals, ApprovalId) -> BoxFuture<'static, ()>;

/// What is told once, when nobody could be asked.
type Told = Box<dyn FnOnce() + Send>;

/// The approvals of one harness. Clones share them.
#[derive(Clone)]
pub struct Approvals(pub(super) Arc<Inner>);

pub(super) struct Inner {
    book: Mutex<Book<Asking>>,
    changed: watch::Sender<u64>,
    pub(super) audit: Audit,
    pub(super) approvers: Vec<Attendant>,
    attend: Attend,
    asks_people: AtomicBool,
    if_nobody: Mutex<Option<Told>>,
    tasks: TaskTracker,
    pub(super) over: CancellationToken,
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Approvals")
    }
}

impl Approvals {
    /// None yet; each that is pending is seen to by what `attend` gives.
    pub(super) fn with_attendance(approvers: Vec<Attendant>, audit: Audit, attend: Attend) -> Self {
        Self(Arc::new(Inner {
            book: Mutex::new(Book::new()),
            changed: watch::Sender::new(0),
            audit,
            asks_people: AtomicBool::new(false),
            if_nobody: Mutex::new(None),
            approvers,
            attend,
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
        }))
    }

    /// Says that somebody answers by [`Self::answer`]: over a control socket, or however this program asks people.
    pub fn people_answer(&self) {
        self.0.asks_people.store(true, Ordering::Relaxed);
    }

    /// Whether people answer here.
    #[must_use]
    pub fn asks_people(&self) -> bool {
        self.0.asks_people.load(Ordering::Relaxed)
    }

    /// Whether anybody can be asked. If not, a call that has to ask is denied.
    #[must_use]
    pub fn can_be_answered(&self) -> bool {
        self.asks_people() || self.asks_approvers()
    }

    /// Has this told, once, when a call is denied because nobody can be asked.
    pub fn if_nobody(&self, tell: impl FnOnce() + Send + 'static) {
        *self.0.if_nobody.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(tell));
    }

    pub(super) fn nobody(&self) {
        let told = self.0.if_nobody.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tell) = told {
            tell();
        }
    }

    /// Answers a pending one; the first answer counts. The record says who answered, and by what `means`.
    ///
    /// # Errors
    /// [`NotAnswered`].
    pub fn answer(&self, id: ApprovalId, answer: Answer, by: &Operator, means: &str) -> Result<(), NotAnswered> {
        self.answer_as(id, answer, &by.by(means))
    }

    /// As [`Self::answer`], for an approver that is called this.
    pub(super) fn answer_as(&self, id: ApprovalId, answer: Answer, approver: &str) -> Result<(), NotAnswered> {
        self.with(|book, now| give(book, now, id, answer, approver))
    }

    /// Takes a yes back: of one that is granted and not used yet, and of calls that are allowed again since. The record says
    /// who did, and by what `means`.
    ///
    /// # Errors
    /// [`NotAnswered`].
    pub fn revoke(&self, id: ApprovalId, by: &Operator, means: &str) -> Result<(), NotAnswered> {
        let revoked = self.with(|book, now| book.revoke(now, id, by.by(means).into()));
        revoked.map_err(|state| state.map_or(NotAnswered::Unknown(id), |state| NotAnswered::NoYes(id, state)))
    }

    /// The calls that are allowed again without asking, those that were allowed first come first.
    #[must_use]
    pub fn remembered(&self) -> Vec<ApprovalInfo> {
        self.with(|book, _| book.remembered().map(view::remembered).collect())
    }

    /// Those that are pending or granted, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<ApprovalInfo> {
        let mut found: Vec<_> =
            self.with(|book, _| book.live().map(|(id, entry)| (entry.about.asked, view::info(*id, entry))).collect());
        found.sort_by_key(|(asked, _)| *asked);
        found.into_iter().map(|(_, info)| info).collect()
    }

    /// One with its whole arguments, while it is pending or granted, or its call is allowed again.
    ///
    /// # Errors
    /// [`NotAnswered::Unknown`].
    pub fn show(&self, id: ApprovalId) -> Result<ApprovalShown, NotAnswered> {
        let found = self.with(|book, _| {
            let live = book.get(id).map(|entry| view::shown(id, entry));
            live.or_else(|| book.remembered().find(|one| one.id == id).map(view::remembered_shown))
        });
        found.ok_or(NotAnswered::Unknown(id))
    }

    /// Whether it is pending or granted.
    ///
    /// # Errors
    /// [`NotAnswered::Over`], and [`NotAnswered::Unknown`].
    pub fn check_live(&self, id: ApprovalId) -> Result<(), NotAnswered> {
        over(id, self.with(|book, now| book.check_live(now, id)))
    }

    /// Waits until an approval of this session is not pending any more, at most this long, and says its state and, in
    /// RFC 3339, until when that lasts. Nothing tells another session's approval from one that never was.
    pub async fn state(&self, session: &Session, id: ApprovalId, wait: Duration) -> Option<(State, Option<String>)> {
        let deadline = Instant::now() + wait;
        self.look_until(|| {
            let found = self.with(|book, now| book.state(now, session.serial(), id));
            let told = found.map(|(state, until)| (state, until.map(|until| timestamp(view::wall(until)))));
            let pending = found.is_some_and(|(state, _)| state == State::Pending);
            if pending && Instant::now() < deadline { Continue(Some(deadline)) } else { Break(told) }
        })
        .await
    }

    /// Looks now, after each change, and when what it waits for is due, until a look finds an end.
    pub async fn look_until<T>(&self, mut look: impl FnMut() -> ControlFlow<T, Option<Instant>>) -> T {
        let mut changed = self.watch();
        loop {
            changed.borrow_and_update();
            let due = match look() {
                Break(end) => return end,
                Continue(due) => due,
            };
            let in_time = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = in_time => {}
                // The sender is as old as this.
                _ = changed.changed() => {}
            }
        }
    }

    pub(crate) fn audit(&self) -> &Audit {
        &self.0.audit
    }

    /// Nothing of a session that ended is asked or granted any more.
    pub(crate) fn end_session(&self, session: &Session) {
        self.with(|book, _| book.end_session(session.serial()));
    }

    /// What was asked, granted and remembered of a session under another policy than its own counts no more.
    pub(crate) fn policy_changed(&self, session: &Session) {
        let policy = session.rules().policy().revision();
        self.with(|book, _| book.policy_changed(session.serial(), policy));
    }

    /// What was asked, granted and remembered of requests to services that are not there any more, by name and number, counts
    /// no more.
    pub fn services_changed(&self, is_there: impl Fn(&str, u64) -> bool) {
        self.with(|book, _| book.services_changed(is_there));
    }

    /// Ends all, and waits for approvers.
    pub async fn stop(&self) {
        self.0.over.cancel();
        self.with(|book, _| book.end_all());
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Does something with the book; what changed in it is recorded, and told to all who wait.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Book<Asking>, Instant) -> T) -> T {
        let mut book = self.book();
        let done = work(&mut book, Instant::now());
        let changes = book.changes();
        // In the order of what happened: still under the lock.
        for change in &changes {
            self.note(change);
        }
        drop(book);
        for change in changes.iter().filter(|change| change.state == State::Pending) {
            self.0.tasks.spawn((self.0.attend)(self.clone(), change.id));
        }
        if !changes.is_empty() {
            self.0.changed.send_modify(|version| *version += 1);
        }
        done
    }

    fn note(&self, change: &Change<Asking>) {
        // The use of a grant is recorded, and that waited for, by whoever uses it.
        if change.state != State::Used {
            self.0.audit.approval_step(step(change));
        }
    }

    fn book(&self) -> MutexGuard<'_, Book<Asking>> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that wait for an answer, oldest first.
    pub fn pending(&self) -> Vec<ApprovalInfo> {
        self.list().into_iter().filter(|one| one.state == ApprovalStatus::Pending).collect()
    }

    /// Whether approvers are asked.
    pub fn asks_approvers(&self) -> bool {
        !self.0.approvers.is_empty()
    }

    /// Told of each change.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }
}

/// Answers in the book.
fn give(book: &mut Book<Asking>, now: Instant, id: ApprovalId, answer: Answer, by: &str) -> Result<(), NotAnswered> {
    let unfit = |why: &str| NotAnswered::Unfit(id, Unfit(why.to_owned()));
    let pending = book.get(id).filter(|entry| entry.granted.is_none()).map(|entry| Arc::clone(&entry.about));
    let form = pending.as_ref().and_then(|about| about.form.as_ref());
    let by = Arc::from(by);
    let given = match (answer, form) {
        (Answer::Deny, _) => return over(id, book.deny(now, id, by)),
        (Answer::Cancel, Some(_)) => return over(id, book.dismiss(now, id, by)),
        (Answer::Allow { remember: true }, Some(_)) => return Err(unfit("answers to questions are not remembered")),
        (Answer::Allow { remember }, None) => {
            let kept = pending.filter(|_| remember).map(|about| about.kept());
            return over(id, book.allow(now, id, Yes::to_call(by), kept));
        }
        (Answer::Allow { remember: false }, Some(form)) => form.content(&Given::Fields(Vec::new())),
        (Answer::Accept(given), Some(form)) => form.content(&given),
        (Answer::Accept(_) | Answer::Cancel, None) if pending.is_some() => {
            return Err(unfit("it is a call, which is allowed or denied as it is"));
        }
        // Says what became of it.
        (Answer::Accept(_) | Answer::Cancel, None) => return over(id, book.allow(now, id, Yes::to_call(by), None)),
    };
    let content = given.map_err(|why| NotAnswered::Unfit(id, why))?.map(|content| content.to_string().into());
    over(id, book.allow(now, id, Yes { by, content }, None))
}

fn over(id: ApprovalId, answered: Result<(), Option<State>>) -> Result<(), NotAnswered> {
    answered.map_err(|state| state.map_or(NotAnswered::Unknown(id), |state| NotAnswered::Over(id, state)))
}

/// A step of an approval's life as the record has it.
pub(super) fn step(change: &Change<Asking>) -> ApprovalStep {
    let Change { id, state, key, about, approver, content } = change;
    ApprovalStep {
        id: id.to_string(),
        state: state.status(),
        session: about.session.clone(),
        kind: key.kind,
        server: key.server.clone(),
        name: key.name.clone(),
        arguments: key.arguments,
        bytes: about.arguments.len(),
        definition: key.definition,
        policy: about.policy.clone(),
        approver: approver.as_deref().map(str::to_owned),
        content: content.as_deref().map(str::to_owned),
    }
}
