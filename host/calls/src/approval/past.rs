//! What is known of approvals that ended: their states, denials that still hold, and calls that are allowed again.
//!
//! What a session can make it keep is bounded for each session alone, so that none makes others' be forgotten.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{ApprovalId, Key, State, entry::Remembered};
use footbridge_core::digest::Digest;

/// Ended approvals of a session whose state is still told.
const ENDED_KEPT: usize = 256;

/// Denials of a session that hold at one time; beyond it the one that ends first is forgotten, and may be asked again.
const DENIED_KEPT: usize = 1024;

/// Calls that are allowed again without asking, in all; beyond it the oldest of the session that has the most is forgotten.
/// People make them, by hand.
const REMEMBERED: usize = 1024;
/// What is kept of them in memory, bytes, in the same way.
const REMEMBERED_BYTES: usize = 32 << 20;

/// What is known of all sessions.
#[derive(Debug)]
pub(super) struct Past<P> {
    of: HashMap<u64, OfSession>,
    remembered: VecDeque<Remembered<P>>,
    /// How the last ones of sessions that are over ended, for the operator.
    over: VecDeque<(ApprovalId, State)>,
}

#[derive(Debug, Default)]
struct OfSession {
    ended: VecDeque<(ApprovalId, State)>,
    /// By digests: a key holds names as long as guests like.
    denied: HashMap<Digest, Instant>,
}

impl<P> Past<P> {
    pub(super) fn new() -> Self {
        Self { of: HashMap::new(), remembered: VecDeque::new(), over: VecDeque::new() }
    }

    /// Keeps how one ended.
    pub(super) fn ended(&mut self, session: u64, id: ApprovalId, state: State) {
        keep(&mut self.of.entry(session).or_default().ended, id, state);
    }

    /// How one of this session ended.
    pub(super) fn state(&self, session: u64, id: ApprovalId) -> Option<State> {
        let ended = &self.of.get(&session)?.ended;
        ended.iter().find(|(ended, _)| *ended == id).map(|(_, state)| *state)
    }

    /// How one of whatever session ended.
    pub(super) fn state_of_any(&self, id: ApprovalId) -> Option<State> {
        let all = self.of.values().flat_map(|session| &session.ended).chain(&self.over);
        all.filter(|(ended, _)| *ended == id).map(|(_, state)| *state).next()
    }

    /// Keeps a denial until then.
    pub(super) fn deny(&mut self, key: &Key, until: Instant) {
        let denied = &mut self.of.entry(key.session).or_default().denied;
        if denied.len() >= DENIED_KEPT
            && let Some(first) = denied.iter().min_by_key(|(_, until)| **until).map(|(key, _)| *key)
        {
            denied.remove(&first);
        }
        denied.insert(key.digest(), until);
    }

    /// For how long this is denied still.
    pub(super) fn denied(&self, now: Instant, key: &Key) -> Option<Duration> {
        let until = self.of.get(&key.session)?.denied.get(&key.digest())?;
        Some(until.saturating_duration_since(now))
    }

    /// Allows this again without asking.
    pub(super) fn remember(&mut self, one: Remembered<P>) {
        self.remembered.push_back(one);
        while self.remembered.len() > REMEMBERED {
            self.forget_one(|_| 1);
        }
        while self.remembered.iter().map(|one| one.kept.bytes).sum::<usize>() > REMEMBERED_BYTES {
            self.forget_one(|one| one.kept.bytes);
        }
    }

    /// Forgets the oldest of the session whose calls come to the most by this measure.
    fn forget_one(&mut self, measure: impl Fn(&Remembered<P>) -> usize) {
        let mut of_session: HashMap<u64, usize> = HashMap::new();
        for one in &self.remembered {
            *of_session.entry(one.key.session).or_default() += measure(one);
        }
        let most = of_session.into_iter().max_by_key(|(_, sum)| *sum).map(|(session, _)| session);
        let oldest = self.remembered.iter().position(|one| Some(one.key.session) == most);
        oldest.and_then(|at| self.remembered.remove(at));
    }

    /// What is allowed again, the oldest first.
    pub(super) fn remembered(&self) -> impl Iterator<Item = &Remembered<P>> {
        self.remembered.iter()
    }

    /// Which call is allowed again by this approval.
    pub(super) fn remembered_from(&self, id: ApprovalId) -> Option<&Remembered<P>> {
        self.remembered.iter().find(|one| one.id == id)
    }

    /// Allows this again no more. What was remembered of it.
    pub(super) fn forget(&mut self, key: &Key) -> VecDeque<Remembered<P>> {
        let all = std::mem::take(&mut self.remembered).into_iter();
        let (forgotten, kept) = all.partition(|one| one.key == *key);
        self.remembered = kept;
        forgotten
    }

    /// Who allowed this again. Where the tool or the policy changed since, it is forgotten for good.
    pub(super) fn allowed_by(&mut self, key: &Key) -> Option<Arc<str>> {
        self.remembered.retain(|one| one.key == *key || !one.key.is_same_call(key));
        let one = self.remembered.iter().find(|one| one.key == *key)?;
        Some(format!("{}, remembered from {}", one.by, one.id).into())
    }

    /// Forgets what was allowed again of these.
    pub(super) fn forget_those(&mut self, are_meant: impl Fn(&Key) -> bool) {
        self.remembered.retain(|one| !are_meant(&one.key));
    }

    /// Forgets denials that hold no more.
    pub(super) fn sweep(&mut self, now: Instant) {
        for session in self.of.values_mut() {
            session.denied.retain(|_, until| *until > now);
        }
    }

    /// Forgets what was denied and allowed; nobody of the session asks any more how its approvals ended.
    pub(super) fn end_session(&mut self, session: u64) {
        let ended = self.of.remove(&session).map(|session| session.ended);
        ended.into_iter().flatten().for_each(|(id, state)| keep(&mut self.over, id, state));
        self.remembered.retain(|one| one.key.session != session);
    }
}

fn keep(ended: &mut VecDeque<(ApprovalId, State)>, id: ApprovalId, state: State) {
    if ended.len() == ENDED_KEPT {
        ended.pop_front();
    }
    ended.push_back((id, state));
}

#[cfg(test)]
mod tests {
    use super::{super::entry::Kept, *};
    use footbridge_core::limits::ApprovalLimits;

    fn key(session: u64, name: &str) -> Key {
        let digest = Digest::of("x");
        let (server, name) = ("s".to_owned(), name.to_owned());
        Key {
            session,
            kind: "tool",
            server,
            name,
            arguments: digest,
            definition: None,
            service: None,
            policy: digest,
            asked_by: None,
        }
    }

    #[test]
    fn what_is_remembered_takes_so_much_in_all() {
        let mut past = Past::new();
        let mut remember = |session, n: u64, bytes| {
            let kept = Kept { about: Arc::new(()), bytes };
            let (limits, by) = (ApprovalLimits::default(), "me".into());
            past.remember(Remembered { id: ApprovalId(n), key: key(session, &n.to_string()), kept, limits, by });
            past.remembered().map(|one| one.id.0).collect::<Vec<_>>()
        };
        remember(2, 1000, 1 << 20);
        for n in 0..99 {
            remember(1, n, 1 << 20);
        }
        // Another session's takes none from it.
        let expected: Vec<u64> = [1000].into_iter().chain(69..100).collect();
        assert_eq!(remember(1, 99, 1 << 20), expected);
        for n in 0..2000 {
            remember(3, 2000 + n, 1);
        }
        let left = remember(3, 4000, 1);
        assert_eq!((left.len(), left.contains(&1000), left.contains(&99)), (REMEMBERED, true, true));
    }

    #[test]
    fn what_one_session_makes_it_keep_takes_nothing_from_others() {
        let (mut past, now) = (Past::<()>::new(), Instant::now());
        let later = |n: u64| now + Duration::from_secs(n);
        past.ended(1, ApprovalId(1), State::Denied);
        past.deny(&key(1, "a"), later(1));
        for n in 0..5000 {
            past.ended(2, ApprovalId(2 + n), State::Withdrawn);
            past.deny(&key(2, &n.to_string()), later(1 + n));
        }
        assert_eq!((past.state(1, ApprovalId(1)), past.state(2, ApprovalId(1))), (Some(State::Denied), None));
        assert_eq!((past.state(2, ApprovalId(2)), past.state(2, ApprovalId(5001))), (None, Some(State::Withdrawn)));
        assert!(past.denied(now, &key(1, "a")).is_some() && past.denied(now, &key(2, "0")).is_none());
        assert_eq!(past.denied(now, &key(2, "4999")), Some(Duration::from_secs(5000)));
        assert_eq!((past.of[&2].ended.len(), past.of[&2].denied.len()), (ENDED_KEPT, DENIED_KEPT));
        past.sweep(later(4990));
        assert_eq!((past.of[&1].denied.len(), past.of[&2].denied.len()), (0, 10));
        past.end_session(1);
        assert_eq!((past.state(1, ApprovalId(1)), past.state_of_any(ApprovalId(1))), (None, Some(State::Denied)));
        assert!(!past.of.contains_key(&1));
    }
}
