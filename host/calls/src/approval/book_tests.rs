//! Random lives of approvals against what must hold whatever happens, and each rule once by hand.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use proptest::prelude::*;

use super::*;
use footbridge_core::digest::Digest;
use footbridge_proto::approval::ApprovalStatus;

fn key(session: u64, arguments: u8, definition: u8) -> Key {
    Key {
        session,
        kind: "tool",
        server: "s".to_owned(),
        name: "t".to_owned(),
        arguments: Digest::of([arguments]),
        definition: Some(Digest::of([definition])),
        service: None,
        asked_by: None,
        policy: Digest::of("p"),
    }
}

fn yes() -> Yes {
    Yes::to_call("me".into())
}

/// What is kept of a call that is remembered.
fn kept() -> Option<Kept<()>> {
    Some(Kept { about: Arc::new(()), bytes: 1 })
}

fn limits() -> ApprovalLimits {
    ApprovalLimits { pending_per_session: 3, ..ApprovalLimits::default() }
}

/// A book, a clock, and ids one after the other.
struct Desk {
    book: Book<()>,
    now: Instant,
    ids: u64,
}

impl Desk {
    fn new() -> Self {
        Self { book: Book::new(), now: Instant::now(), ids: 0 }
    }

    fn spare(&mut self) -> ApprovalId {
        self.ids += 1;
        ApprovalId(self.ids)
    }

    fn asks(&mut self, key: &Key) -> Asked {
        let id = self.spare();
        self.book.ask(self.now, New { id, key: key.clone(), about: Arc::new(()), limits: limits() })
    }

    fn waits(&mut self, key: &Key) -> Waiter {
        match self.asks(key) {
            Asked::Waiting(waiter) => waiter,
            other => panic!("{other:?}"),
        }
    }

    fn looks(&mut self, waiter: Waiter) -> (ApprovalId, Turn) {
        self.book.look(self.now, waiter).unwrap()
    }

    fn allows(&mut self, id: ApprovalId) -> Result<(), Option<State>> {
        self.book.allow(self.now, id, yes(), None)
    }

    fn revokes(&mut self, id: ApprovalId) -> Result<(), Option<State>> {
        self.book.revoke(self.now, id, "me".into())
    }

    fn takes(&mut self, waiter: Waiter, key: &Key) -> Option<ApprovalId> {
        let spare = self.spare();
        self.book.take(self.now, waiter, key, spare).map(|(id, _)| id)
    }

    fn passes(&mut self, time: Duration) {
        self.now += time;
    }

    fn state(&mut self, session: u64, id: ApprovalId) -> Option<State> {
        self.book.state(self.now, session, id).map(|(state, _)| state)
    }
}

#[test]
fn a_grant_is_used_once_by_the_first_and_the_others_ask_again() {
    let (mut desk, key) = (Desk::new(), key(1, 1, 1));
    let (first, second) = (desk.waits(&key), desk.waits(&key));
    let (id, _) = desk.looks(first);
    assert_eq!(desk.looks(second).0, id, "one prompt for both");
    assert_eq!(desk.takes(first, &key), None);
    desk.allows(id).unwrap();
    assert_eq!(desk.allows(id), Err(Some(State::Granted)));
    assert!(matches!(desk.looks(second).1, Turn::Wait(_)));
    assert_eq!(desk.takes(second, &key), None);
    assert_eq!(desk.takes(first, &key), Some(id));
    assert_eq!(desk.takes(first, &key), None);
    let (other, turn) = desk.looks(second);
    assert!(other != id && matches!(turn, Turn::Wait(_)));
    assert_eq!(desk.state(1, id), Some(State::Used));
    assert_eq!(desk.state(2, other), None, "another session hears nothing");
}

#[test]
fn what_a_question_was_answered_with_is_for_one_that_asked_it() {
    let (mut desk, key) = (Desk::new(), Key { kind: ELICITATION, ..key(1, 1, 1) });
    let (first, second) = (desk.waits(&key), desk.waits(&key));
    for (waiter, content) in [(first, "{\"confirm\":true}"), (second, "{\"confirm\":false}")] {
        let (id, _) = desk.looks(waiter);
        let answered = Yes { by: "me".into(), content: Some(content.into()) };
        desk.book.allow(desk.now, id, answered.clone(), None).unwrap();
        let spare = desk.spare();
        assert_eq!(desk.book.take(desk.now, waiter, &key, spare), Some((id, answered)));
    }
    let said: Vec<_> = desk.book.changes().into_iter().map(|one| (one.state, one.content)).collect();
    let content = |text: &str| Some(Arc::from(text));
    let (yes, no) = (content("{\"confirm\":true}"), content("{\"confirm\":false}"));
    let expected = [
        (State::Pending, None),
        (State::Granted, yes.clone()),
        (State::Used, yes),
        (State::Pending, None),
        (State::Granted, no.clone()),
        (State::Used, no),
    ];
    assert_eq!(said, expected);
}

#[test]
fn what_is_remembered_is_for_those_too_who_wait_already() {
    let (mut desk, key) = (Desk::new(), key(1, 1, 1));
    let (first, second) = (desk.waits(&key), desk.waits(&key));
    let (id, _) = desk.looks(first);
    desk.book.allow(desk.now, id, yes(), kept()).unwrap();
    assert_eq!(desk.takes(first, &key), Some(id));
    let (other, turn) = desk.looks(second);
    assert!(other != id && turn == Turn::Ready, "{turn:?}");
    assert_eq!(desk.takes(second, &key), Some(other));
}

#[test]
fn the_oldest_that_is_still_there_takes_the_grant() {
    let (mut desk, key) = (Desk::new(), key(1, 1, 1));
    let (first, second) = (desk.waits(&key), desk.waits(&key));
    let (id, _) = desk.looks(first);
    desk.allows(id).unwrap();
    desk.book.leave(desk.now, first);
    assert_eq!(desk.takes(second, &key), Some(id));
}

#[test]
fn what_was_asked_stays_when_its_client_leaves_and_the_same_call_finds_the_answer() {
    let (mut desk, key) = (Desk::new(), key(1, 1, 1));
    let waiter = desk.waits(&key);
    let (id, _) = desk.looks(waiter);
    desk.book.leave(desk.now, waiter);
    assert_eq!(desk.state(1, id), Some(State::Pending));
    let joined = desk.waits(&key);
    assert_eq!(desk.looks(joined).0, id, "nobody is asked twice");
    desk.book.leave(desk.now, joined);
    desk.allows(id).unwrap();
    desk.passes(Duration::from_secs(59));
    let again = desk.waits(&key);
    assert_eq!(desk.takes(again, &key), Some(id));
    // A grant that nobody comes back for ends, and so does what nobody answers.
    for granted in [true, false] {
        let waiter = desk.waits(&key);
        let (id, _) = desk.looks(waiter);
        desk.book.leave(desk.now, waiter);
        if granted {
            desk.allows(id).unwrap();
        }
        desk.passes(Duration::from_secs(if granted { 60 } else { 300 }));
        assert_eq!(desk.state(1, id), Some(State::Expired));
    }
}

#[test]
fn times_end_what_nobody_answers_or_uses() {
    let (mut desk, key) = (Desk::new(), key(1, 1, 1));
    let waiter = desk.waits(&key);
    let (id, _) = desk.looks(waiter);
    desk.passes(Duration::from_secs(300));
    assert_eq!(desk.looks(waiter).1, Turn::Over(State::Expired));
    assert_eq!(desk.allows(id), Err(Some(State::Expired)));
    let waiter = desk.waits(&key);
    let (id, _) = desk.looks(waiter);
    desk.allows(id).unwrap();
    desk.passes(Duration::from_secs(60));
    assert_eq!(desk.takes(waiter, &key), None);
    assert_eq!(desk.looks(waiter).1, Turn::Over(State::Expired));
}

#[test]
fn what_all_who_were_asked_failed_to_answer_is_told_from_what_came_too_late() {
    let (mut desk, key) = (Desk::new(), key(1, 1, 1));
    let waiter = desk.waits(&key);
    let (id, _) = desk.looks(waiter);
    let now = desk.now;
    desk.book.give_up(now, id);
    assert_eq!(desk.looks(waiter).1, Turn::Over(State::Unanswered));
    assert_eq!(State::Unanswered.status(), ApprovalStatus::Expired);
    let last = desk.book.changes().pop().unwrap();
    assert_eq!(last.approver.as_deref(), Some("footbridge (no_usable_answer)"));
}

#[test]
fn a_denied_call_is_refused_unasked_for_a_while_and_another_one_is_not() {
    let (mut desk, denied) = (Desk::new(), key(1, 1, 1));
    let waiter = desk.waits(&denied);
    let (id, _) = desk.looks(waiter);
    desk.book.deny(desk.now, id, "me".into()).unwrap();
    assert_eq!(desk.looks(waiter).1, Turn::Over(State::Denied));
    assert_eq!(desk.asks(&denied), Asked::Hushed(Duration::from_secs(60)));
    desk.waits(&key(1, 2, 1));
    desk.waits(&key(2, 1, 1));
    desk.passes(Duration::from_secs(60));
    desk.waits(&denied);
}

#[test]
fn a_session_has_so_many_pending_and_others_have_their_own() {
    let mut desk = Desk::new();
    for n in 0..3 {
        desk.waits(&key(1, n, 1));
    }
    assert_eq!(desk.asks(&key(1, 9, 1)), Asked::TooMany);
    desk.waits(&key(1, 0, 1));
    desk.waits(&key(2, 9, 1));
    desk.book.end_session(1);
    desk.waits(&key(1, 9, 1));
}

#[test]
fn what_is_remembered_is_allowed_each_time_until_something_changes() {
    let (mut desk, same) = (Desk::new(), key(1, 1, 1));
    let waiter = desk.waits(&same);
    let (id, _) = desk.looks(waiter);
    desk.book.allow(desk.now, id, yes(), kept()).unwrap();
    let mut used = vec![desk.takes(waiter, &same).unwrap()];
    for _ in 0..2 {
        let waiter = desk.waits(&same);
        used.push(desk.takes(waiter, &same).unwrap());
    }
    assert_eq!(used.iter().collect::<HashSet<_>>().len(), 3, "each has an approval of its own");
    for other in [key(2, 1, 1), key(1, 2, 1), key(1, 1, 2)] {
        let waiter = desk.waits(&other);
        assert_eq!(desk.takes(waiter, &other), None);
    }
    let waiter = desk.waits(&same);
    assert_eq!(desk.takes(waiter, &same), None, "the definition was another meanwhile");
}

#[test]
fn what_is_remembered_waits_for_nobody() {
    let (mut desk, same) = (Desk::new(), key(1, 1, 1));
    let waiter = desk.waits(&same);
    let (id, _) = desk.looks(waiter);
    desk.book.allow(desk.now, id, yes(), kept()).unwrap();
    desk.takes(waiter, &same).unwrap();
    for other in 2..5 {
        desk.waits(&key(1, other, 1));
    }
    assert!(matches!(desk.asks(&key(1, 5, 1)), Asked::TooMany));
    let waiter = desk.waits(&same);
    assert!(desk.takes(waiter, &same).is_some());
}

#[test]
fn what_is_remembered_can_be_taken_back_and_is_denied_then() {
    let (mut desk, same) = (Desk::new(), key(1, 1, 1));
    let waiter = desk.waits(&same);
    let (id, _) = desk.looks(waiter);
    assert_eq!(desk.revokes(id), Err(Some(State::Pending)), "nobody said yes");
    assert_eq!(desk.book.check_live(desk.now, id), Ok(()));
    desk.book.allow(desk.now, id, yes(), kept()).unwrap();
    assert_eq!(desk.book.check_live(desk.now, id), Ok(()), "it may be used");
    desk.takes(waiter, &same).unwrap();
    assert_eq!(desk.book.check_live(desk.now, id), Err(Some(State::Used)), "whatever is remembered");
    assert_eq!(desk.book.remembered().map(|one| one.id).collect::<Vec<_>>(), [id]);
    // Granted by what is remembered, and not used yet.
    let granted = desk.waits(&same);
    let (of_granted, _) = desk.looks(granted);
    desk.book.changes();
    desk.revokes(id).unwrap();
    let said = desk.book.changes();
    let said: Vec<_> = said.iter().map(|one| (one.id, one.state, one.approver.as_deref().unwrap())).collect();
    assert_eq!(said, [(of_granted, State::Denied, "me"), (id, State::Denied, "me")]);
    assert_eq!((desk.looks(granted).1, desk.takes(granted, &same)), (Turn::Over(State::Denied), None));
    assert!(matches!(desk.asks(&same), Asked::Hushed(_)));
    assert_eq!((desk.revokes(id), desk.book.remembered().count()), (Err(Some(State::Used)), 0));
    desk.passes(limits().denial_time);
    let waiter = desk.waits(&same);
    assert_eq!(desk.takes(waiter, &same), None, "it is asked about again");
    assert_eq!(desk.revokes(ApprovalId(999)), Err(None));
    assert_eq!(desk.book.check_live(desk.now, ApprovalId(999)), Err(None));
}

#[test]
fn with_what_a_remembered_yes_granted_that_yes_is_taken_back_too() {
    let (mut desk, same) = (Desk::new(), key(1, 1, 1));
    let waiter = desk.waits(&same);
    let (id, _) = desk.looks(waiter);
    desk.book.allow(desk.now, id, yes(), kept()).unwrap();
    desk.takes(waiter, &same).unwrap();
    let granted = desk.waits(&same);
    let (of_granted, _) = desk.looks(granted);
    desk.revokes(of_granted).unwrap();
    assert_eq!(desk.book.remembered().count(), 0);
    desk.passes(limits().denial_time);
    let waiter = desk.waits(&same);
    assert_eq!(desk.takes(waiter, &same), None, "it is asked about again");
}

#[test]
fn a_grant_that_is_not_used_yet_can_be_taken_back() {
    let mut desk = Desk::new();
    for remember in [false, true] {
        let key = key(1, u8::from(remember), 1);
        let (first, second) = (desk.waits(&key), desk.waits(&key));
        let (id, _) = desk.looks(first);
        desk.book.allow(desk.now, id, yes(), remember.then(kept).flatten()).unwrap();
        desk.book.changes();
        desk.revokes(id).unwrap();
        assert_eq!(desk.takes(first, &key), None);
        for waiter in [first, second] {
            assert_eq!(desk.looks(waiter), (id, Turn::Over(State::Denied)));
        }
        assert_eq!(desk.book.changes().iter().map(|one| one.state).collect::<Vec<_>>(), [State::Denied], "once");
        assert_eq!((desk.state(1, id), desk.book.remembered().count()), (Some(State::Denied), 0));
        assert_eq!(desk.revokes(id), Err(Some(State::Denied)));
    }
}

#[test]
fn under_another_policy_nothing_of_the_one_before_counts() {
    let mut desk = Desk::new();
    let [asked, granted, remembered, of_another] = [key(1, 1, 1), key(1, 2, 1), key(1, 3, 1), key(2, 1, 1)];
    let waiters = [&asked, &granted, &remembered, &of_another].map(|key| desk.waits(key));
    let ids = waiters.map(|waiter| desk.looks(waiter).0);
    desk.allows(ids[1]).unwrap();
    desk.book.allow(desk.now, ids[2], yes(), kept()).unwrap();
    desk.takes(waiters[2], &remembered).unwrap();
    desk.book.policy_changed(1, Digest::of("p"));
    assert_eq!(desk.state(1, ids[0]), Some(State::Pending), "it says the same");
    desk.book.policy_changed(1, Digest::of("q"));
    assert_eq!(desk.state(1, ids[0]), Some(State::Outdated));
    assert_eq!(desk.state(1, ids[1]), Some(State::Expired));
    assert_eq!(desk.state(2, ids[3]), Some(State::Pending), "of another session");
    let waiter = desk.waits(&remembered);
    assert_eq!(desk.takes(waiter, &remembered), None, "also where the policy is what it was");
}

#[test]
fn of_a_service_that_is_another_nothing_counts() {
    let mut desk = Desk::new();
    let of = |session, arguments, service| Key { service: Some(service), kind: "http", ..key(session, arguments, 1) };
    let [asked, granted, remembered, stays, tool] = [of(1, 1, 7), of(1, 2, 7), of(1, 3, 7), of(2, 4, 8), key(2, 5, 1)];
    let waiters = [&asked, &granted, &remembered, &stays, &tool].map(|key| desk.waits(key));
    let ids = waiters.map(|waiter| desk.looks(waiter).0);
    desk.allows(ids[1]).unwrap();
    desk.book.allow(desk.now, ids[2], yes(), kept()).unwrap();
    desk.takes(waiters[2], &remembered).unwrap();
    desk.book.services_changed(|name, number| name == "s" && number == 8);
    assert_eq!(desk.state(1, ids[0]), Some(State::Outdated));
    assert_eq!(desk.state(1, ids[1]), Some(State::Expired));
    assert_eq!((desk.state(2, ids[3]), desk.state(2, ids[4])), (Some(State::Pending), Some(State::Pending)));
    assert_eq!(desk.book.remembered().count(), 0);
    assert_eq!(desk.allows(ids[0]), Err(Some(State::Outdated)), "whoever answers hears that it counts no more");
}

#[derive(Debug, Clone)]
enum Step {
    Ask(u64, u8, u8),
    Allow(usize, bool),
    Deny(usize),
    Revoke(usize),
    Take(usize, u8),
    Leave(usize),
    Pass(u64),
    EndSession(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..3u64, 0..3u8, 0..2u8).prop_map(|(session, arguments, definition)| Step::Ask(session, arguments, definition)),
        3 => (any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(id, remember)| Step::Allow(id, remember)),
        1 => any::<usize>().prop_map(Step::Deny),
        1 => any::<usize>().prop_map(Step::Revoke),
        4 => (any::<usize>(), 0..2u8).prop_map(|(waiter, definition)| Step::Take(waiter, definition)),
        2 => any::<usize>().prop_map(Step::Leave),
        1 => (0..90u64).prop_map(Step::Pass),
        1 => (1..3u64).prop_map(Step::EndSession),
    ]
}

/// What was seen of each approval.
#[derive(Default)]
struct Seen {
    keys: HashMap<ApprovalId, Key>,
    states: HashMap<ApprovalId, Vec<State>>,
    taken: HashSet<ApprovalId>,
    waiters: Vec<(Waiter, Key)>,
}

impl Seen {
    fn hears(&mut self, changes: Vec<Change<()>>) {
        for change in changes {
            let known = self.keys.entry(change.id).or_insert_with(|| change.key.clone());
            assert_eq!(*known, change.key, "an approval never changes what it is for");
            self.states.entry(change.id).or_default().push(change.state);
        }
    }

    fn took(&mut self, id: ApprovalId, key: &Key) {
        assert!(self.taken.insert(id), "{id} was used twice");
        assert_eq!(self.keys[&id], *key, "{id} is for another call");
        assert_eq!(self.states[&id], [State::Pending, State::Granted, State::Used]);
    }
}

fn carry_out(desk: &mut Desk, seen: &mut Seen, step: Step) {
    let pick = |n: usize, seen: &Seen| (!seen.waiters.is_empty()).then(|| seen.waiters[n % seen.waiters.len()].clone());
    let ids = desk.ids;
    match step {
        Step::Ask(session, arguments, definition) => {
            let key = key(session, arguments, definition);
            if let Asked::Waiting(waiter) = desk.asks(&key) {
                seen.waiters.push((waiter, key));
            }
        }
        Step::Allow(n, remember) if ids > 0 => {
            let _ = desk.book.allow(desk.now, ApprovalId(1 + n as u64 % ids), yes(), remember.then(kept).flatten());
        }
        Step::Deny(n) if ids > 0 => {
            let _ = desk.book.deny(desk.now, ApprovalId(1 + n as u64 % ids), "me".into());
        }
        Step::Revoke(n) if ids > 0 => {
            let _ = desk.revokes(ApprovalId(1 + n as u64 % ids));
        }
        Step::Take(n, definition) => {
            let Some((waiter, mut key)) = pick(n, seen) else { return };
            let changed = key.definition != Some(Digest::of([definition]));
            key.definition = Some(Digest::of([definition]));
            let taken = desk.takes(waiter, &key);
            seen.hears(desk.book.changes());
            assert!(!changed || taken.is_none(), "a changed definition matched");
            taken.into_iter().for_each(|id| seen.took(id, &key));
        }
        Step::Leave(n) => pick(n, seen).into_iter().for_each(|(waiter, _)| desk.book.leave(desk.now, waiter)),
        Step::Pass(seconds) => desk.passes(Duration::from_secs(seconds)),
        Step::EndSession(session) => desk.book.end_session(session),
        Step::Allow(..) | Step::Deny(_) | Step::Revoke(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn whatever_happens_a_grant_is_used_once_and_only_for_its_call(steps in prop::collection::vec(step(), 0..80)) {
        let (mut desk, mut seen) = (Desk::new(), Seen::default());
        for step in steps {
            carry_out(&mut desk, &mut seen, step);
            seen.hears(desk.book.changes());
            for session in 1..3 {
                assert!(desk.book.pending_of(session) <= 3, "more pending than a session may have");
            }
            let keys: Vec<&Key> = desk.book.live().map(|(_, entry)| &entry.key).collect();
            assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "two approvals for one call");
        }
        for states in seen.states.values() {
            let text: Vec<String> = states.iter().map(|state| state.status().to_string()).collect();
            let text: Vec<&str> = text.iter().map(String::as_str).collect();
            assert!(matches!(
                text[..],
                ["pending"]
                    | ["pending", "granted"]
                    | ["pending", "denied" | "expired" | "withdrawn"]
                    | ["pending", "granted", "used" | "expired" | "denied"]
                    // What was remembered from it, too.
                    | ["pending", "granted", "used" | "expired", "denied"]
            ), "{text:?}");
        }
    }
}
