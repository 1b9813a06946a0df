//! The states of approvals, as a pure machine: the clock and new ids are handed in, nothing waits and nothing is
//! written.
//!
//! pending, then granted, denied, expired, withdrawn or outdated; granted, then used, expired or denied. There is at most one approval
//! that is pending or granted for each [`Key`]; whoever asks for the same joins it as a waiter. The first waiter takes
//! a grant, which uses it up, and the others go on under a new pending id. An ended approval never changes again, and
//! only its state is kept of it.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;

pub(super) use super::entry::{Asked, Change, Entry, Kept, New, Place, Remembered, Turn, Waiter, Yes};
use super::{ApprovalId, ELICITATION, Key, State, past::Past};
use footbridge_core::{digest::Digest, limits::ApprovalLimits};

/// Who ends what was asked under another policy, or of another service, in the record.
const POLICY_CHANGED: &str = "footbridge (policy_changed)";
const SERVICE_CHANGED: &str = "footbridge (service_changed)";

/// The same of what all who were asked failed to answer.
const NO_USABLE_ANSWER: &str = "footbridge (no_usable_answer)";

/// All approvals of a harness. `P` is what is shown to whoever is asked.
#[derive(Debug)]
pub(super) struct Book<P> {
    live: BTreeMap<ApprovalId, Entry<P>>,
    waiters: HashMap<Waiter, Place>,
    past: Past<P>,
    next_waiter: u64,
    changes: Vec<Change<P>>,
}

impl<P> Book<P> {
    pub(super) fn new() -> Self {
        Self { live: BTreeMap::new(), waiters: HashMap::new(), past: Past::new(), next_waiter: 0, changes: Vec::new() }
    }

    /// What happened since this was asked last.
    pub(super) fn changes(&mut self) -> Vec<Change<P>> {
        std::mem::take(&mut self.changes)
    }

    /// Asks: by joining who asks for the same already, or by a new approval.
    pub(super) fn ask(&mut self, now: Instant, new: New<P>) -> Asked {
        self.sweep(now);
        let remembered = self.past.allowed_by(&new.key);
        let full = self.pending_of(new.key.session) >= new.limits.pending_per_session;
        if let Some((id, entry)) = self.live.iter().find(|(_, entry)| entry.key == new.key) {
            // Behind the one that takes a grant, it would go on as a pending one.
            let alone_with_a_grant = entry.granted.is_some() && entry.waiters.len() == 1;
            let id = *id;
            return if full && alone_with_a_grant { Asked::TooMany } else { Asked::Waiting(self.join(id)) };
        }
        if let Some(left) = self.past.denied(now, &new.key) {
            return Asked::Hushed(left);
        }
        // What is allowed again waits for nobody.
        if full && remembered.is_none() {
            return Asked::TooMany;
        }
        let id = new.id;
        self.open(now, new);
        if let Some(by) = remembered {
            self.grant(now, id, Yes::to_call(by));
        }
        Asked::Waiting(self.join(id))
    }

    /// Those whose waiters will go on as a pending one count too.
    fn pending_of(&self, session: u64) -> usize {
        let counts =
            |entry: &&Entry<P>| entry.key.session == session && (entry.granted.is_none() || entry.waiters.len() > 1);
        self.live.values().filter(counts).count()
    }

    fn open(&mut self, now: Instant, New { id, key, about, limits }: New<P>) {
        let until = now + limits.pending_time;
        self.changes.push(Change {
            id,
            state: State::Pending,
            key: key.clone(),
            about: Arc::clone(&about),
            approver: None,
            content: None,
        });
        let entry = Entry { key, about, until, limits, granted: None, waiters: VecDeque::new() };
        self.live.insert(id, entry);
    }

    fn join(&mut self, id: ApprovalId) -> Waiter {
        self.next_waiter += 1;
        let waiter = Waiter(self.next_waiter);
        if let Some(entry) = self.live.get_mut(&id) {
            entry.waiters.push_back(waiter);
            self.waiters.insert(waiter, Place::Live(id));
        }
        waiter
    }

    fn grant(&mut self, now: Instant, id: ApprovalId, yes: Yes) {
        let Some(entry) = self.live.get_mut(&id) else { return };
        entry.granted = Some(yes.clone());
        entry.until = now + entry.limits.grant_time;
        let (key, about) = (entry.key.clone(), Arc::clone(&entry.about));
        let Yes { by, content } = yes;
        self.changes.push(Change { id, state: State::Granted, key, about, approver: Some(by), content });
    }

    /// Ends one: its waiters are told, its state is kept.
    fn end(&mut self, id: ApprovalId, state: State, by: Option<Arc<str>>) {
        let Some(entry) = self.live.remove(&id) else { return };
        for waiter in &entry.waiters {
            self.waiters.insert(*waiter, Place::Over(id, state));
        }
        self.past.ended(entry.key.session, id, state);
        let (granted_by, content) = entry.granted.map(|Yes { by, content }| (by, content)).unzip();
        let (approver, content) = (by.or(granted_by), content.flatten());
        self.changes.push(Change { id, state, key: entry.key, about: entry.about, approver, content });
    }

    /// Ends what was not answered or used in time.
    pub(super) fn sweep(&mut self, now: Instant) {
        let late = self.live.iter().filter(|(_, entry)| entry.until <= now).map(|(id, _)| *id);
        for id in late.collect::<Vec<_>>() {
            self.end(id, State::Expired, None);
        }
        self.past.sweep(now);
    }

    /// Allows a pending one, and the same call again where something is to be kept of it to `remember` it by.
    ///
    /// # Errors
    /// The state of one that is not pending; nothing if it is not known.
    pub(super) fn allow(
        &mut self,
        now: Instant,
        id: ApprovalId,
        yes: Yes,
        remember: Option<Kept<P>>,
    ) -> Result<(), Option<State>> {
        let (key, limits) = self.pending(now, id)?;
        let by = Arc::clone(&yes.by);
        self.grant(now, id, yes);
        if let Some(kept) = remember {
            self.past.remember(Remembered { id, key, kept, limits, by });
        }
        Ok(())
    }

    /// Takes a yes back: that of one that is granted and not used yet, and what is remembered from one. The call is denied
    /// from then on, as by [`Self::deny`].
    ///
    /// # Errors
    /// The state of one whose yes does not hold; nothing if it is not known.
    pub(super) fn revoke(&mut self, now: Instant, id: ApprovalId, by: Arc<str>) -> Result<(), Option<State>> {
        self.sweep(now);
        let granted = self.live.get(&id).filter(|entry| entry.granted.is_some());
        let granted = granted.map(|entry| (entry.key.clone(), entry.limits));
        let remembered = || self.past.remembered_from(id).map(|one| (one.key.clone(), one.limits));
        let Some((key, limits)) = granted.or_else(remembered) else {
            let is_pending = self.live.contains_key(&id);
            return Err(if is_pending { Some(State::Pending) } else { self.past.state_of_any(id) });
        };
        self.past.deny(&key, now + limits.denial_time);
        // What grants it again, and what that granted just now, too.
        let forgotten = self.past.forget(&key);
        let its = self.live.iter().filter(|(_, entry)| entry.granted.is_some() && entry.key == key);
        for live in its.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.end(live, State::Denied, Some(Arc::clone(&by)));
        }
        for Remembered { id, key, kept: Kept { about, .. }, .. } in forgotten {
            if self.past.state_of_any(id) != Some(State::Denied) {
                let approver = Some(Arc::clone(&by));
                self.changes.push(Change { id, state: State::Denied, key, about, approver, content: None });
            }
        }
        Ok(())
    }

    /// What is allowed again, the oldest first.
    pub(super) fn remembered(&self) -> impl Iterator<Item = &Remembered<P>> {
        self.past.remembered()
    }

    /// Denies a pending one.
    ///
    /// # Errors
    /// As [`Self::allow`].
    pub(super) fn deny(&mut self, now: Instant, id: ApprovalId, by: Arc<str>) -> Result<(), Option<State>> {
        let (key, limits) = self.pending(now, id)?;
        self.past.deny(&key, now + limits.denial_time);
        self.end(id, State::Denied, Some(by));
        Ok(())
    }

    /// Ends a pending one without a decision.
    ///
    /// # Errors
    /// As [`Self::allow`].
    pub(super) fn dismiss(&mut self, now: Instant, id: ApprovalId, by: Arc<str>) -> Result<(), Option<State>> {
        self.pending(now, id)?;
        self.end(id, State::Withdrawn, Some(by));
        Ok(())
    }

    fn pending(&mut self, now: Instant, id: ApprovalId) -> Result<(Key, ApprovalLimits), Option<State>> {
        self.sweep(now);
        match self.live.get(&id) {
            Some(entry) if entry.granted.is_none() => Ok((entry.key.clone(), entry.limits)),
            Some(_) => Err(Some(State::Granted)),
            None => Err(self.past.state_of_any(id)),
        }
    }

    /// Ends a pending one that nobody is left to answer: all who were asked failed.
    pub(super) fn give_up(&mut self, now: Instant, id: ApprovalId) {
        if self.pending(now, id).is_ok() {
            self.end(id, State::Unanswered, Some(NO_USABLE_ANSWER.into()));
        }
    }

    /// Where a waiter is, and with which approval.
    pub(super) fn look(&mut self, now: Instant, waiter: Waiter) -> Option<(ApprovalId, Turn)> {
        self.sweep(now);
        Some(match *self.waiters.get(&waiter)? {
            Place::Over(id, state) => (id, Turn::Over(state)),
            Place::Live(id) => {
                let entry = self.live.get(&id)?;
                let first = entry.granted.is_some() && entry.waiters.front() == Some(&waiter);
                (id, if first { Turn::Ready } else { Turn::Wait(entry.until) })
            }
        })
    }

    /// Takes a grant for exactly this call, which uses it up. The waiters behind go on under the id `spare`.
    pub(super) fn take(
        &mut self,
        now: Instant,
        waiter: Waiter,
        key: &Key,
        spare: ApprovalId,
    ) -> Option<(ApprovalId, Yes)> {
        let (id, Turn::Ready) = self.look(now, waiter)? else { return None };
        let entry = self.live.get_mut(&id).filter(|entry| entry.key == *key)?;
        let yes = entry.granted.clone()?;
        entry.waiters.pop_front();
        self.waiters.remove(&waiter);
        let (others, about) = (std::mem::take(&mut entry.waiters), Arc::clone(&entry.about));
        let limits = entry.limits;
        self.end(id, State::Used, None);
        if !others.is_empty() {
            self.open(now, New { id: spare, key: key.clone(), about, limits });
            for other in &others {
                self.waiters.insert(*other, Place::Live(spare));
            }
            if let Some(entry) = self.live.get_mut(&spare) {
                entry.waiters = others;
            }
            // What is allowed again is so for those too who asked before it was.
            if let Some(by) = self.past.allowed_by(key) {
                self.grant(now, spare, Yes::to_call(by));
            }
        }
        Some((id, yes))
    }

    /// A waiter leaves, which takes nothing back: a shell's own time limit must not cost a person's answer. The answer
    /// to a server's question is for that one alone, and ends with it.
    pub(super) fn leave(&mut self, now: Instant, waiter: Waiter) {
        self.sweep(now);
        let Some(Place::Live(id)) = self.waiters.remove(&waiter) else { return };
        let Some(entry) = self.live.get_mut(&id) else { return };
        entry.waiters.retain(|other| *other != waiter);
        if entry.waiters.is_empty() && entry.key.kind == ELICITATION {
            let state = if entry.granted.is_some() { State::Expired } else { State::Withdrawn };
            self.end(id, state, None);
        }
    }

    /// A session ended: nothing of it is asked or granted any more.
    pub(super) fn end_session(&mut self, session: u64) {
        let its = self
            .live
            .iter()
            .filter(|(_, entry)| entry.key.session == session)
            .map(|(id, entry)| (*id, if entry.granted.is_some() { State::Expired } else { State::Withdrawn }));
        for (id, state) in its.collect::<Vec<_>>() {
            self.end(id, state, None);
        }
        self.past.end_session(session);
    }

    /// A session has this policy now: what was asked, granted and remembered of its calls under another one is over. A
    /// server's question is of a call that is made already.
    pub(super) fn policy_changed(&mut self, session: u64, policy: Digest) {
        let of_another = |key: &Key| key.session == session && key.policy != policy && key.kind != ELICITATION;
        self.end_outdated(POLICY_CHANGED, of_another);
    }

    /// Services are others now: what was asked, granted and remembered of requests to one that is not there any more, by
    /// its name and number, is over.
    pub(super) fn services_changed(&mut self, is_there: impl Fn(&str, u64) -> bool) {
        let is_gone = |key: &Key| key.service.is_some_and(|number| !is_there(&key.server, number));
        self.end_outdated(SERVICE_CHANGED, is_gone);
    }

    /// Ends what is asked and granted of these, and forgets what is allowed again.
    fn end_outdated(&mut self, by: &str, is_outdated: impl Fn(&Key) -> bool) {
        let its = self.live.iter().filter(|(_, entry)| is_outdated(&entry.key));
        for (id, is_granted) in its.map(|(id, entry)| (*id, entry.granted.is_some())).collect::<Vec<_>>() {
            let state = if is_granted { State::Expired } else { State::Outdated };
            self.end(id, state, (!is_granted).then(|| by.into()));
        }
        self.past.forget_those(is_outdated);
    }

    /// Everything ends.
    pub(super) fn end_all(&mut self) {
        let sessions: Vec<u64> = self.live.values().map(|entry| entry.key.session).collect();
        sessions.into_iter().for_each(|session| self.end_session(session));
    }

    /// Those that are pending or granted, in the order of their ids.
    pub(super) fn live(&self) -> impl Iterator<Item = (&ApprovalId, &Entry<P>)> {
        self.live.iter()
    }

    /// One that is pending or granted.
    pub(super) fn get(&self, id: ApprovalId) -> Option<&Entry<P>> {
        self.live.get(&id)
    }

    /// Whether one is pending or granted.
    ///
    /// # Errors
    /// As [`Self::allow`].
    pub(super) fn check_live(&mut self, now: Instant, id: ApprovalId) -> Result<(), Option<State>> {
        self.sweep(now);
        if self.live.contains_key(&id) { Ok(()) } else { Err(self.past.state_of_any(id)) }
    }

    /// The state of an approval of this session, and until when it lasts. Nothing tells another session's from none.
    pub(super) fn state(&mut self, now: Instant, session: u64, id: ApprovalId) -> Option<(State, Option<Instant>)> {
        self.sweep(now);
        if let Some(entry) = self.live.get(&id).filter(|entry| entry.key.session == session) {
            let state = if entry.granted.is_some() { State::Granted } else { State::Pending };
            return Some((state, Some(entry.until)));
        }
        self.past.state(session, id).map(|state| (state, None))
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
