//! Threads that give way to all others, and those that are not to wait for them.

use std::{
    cell::Cell,
    thread,
    time::{Duration, Instant},
};

use crate::sys;

/// How much nicer than others such a thread is, where others want its processor too; nobody is nicer than 19.
const NICER: i32 = 10;

/// From now on this thread gets a processor behind those that did not ask for this. It cannot be taken back.
pub fn give_way() {
    // Without it, it is one thread among others.
    let _last = rustix::process::getpriority_process(None)
        .and_then(|nice| rustix::process::setpriority_process(None, (nice + NICER).min(19)));
}

/// The shortest that the kernel knows.
const SHORT_TURN: Duration = Duration::from_micros(100);

/// From now on this thread gets a processor as soon as it has something to do, where a thread of longer turns has it: by
/// itself the kernel lets that one go on until its next tick, up to 4 ms later. Its share stays the same.
pub fn take_short_turns() {
    // Kernels before 6.12 take no note of it, and some sandboxes refuse it: then it waits as others do.
    let _last = sys::set_turns(SHORT_TURN);
}

/// Has this thread, which has nothing to do, let those that wait for its processor have it once, before it sleeps: mostly
/// they bring it something, and then it needs not be put to sleep and woken. One that computes for long would keep the
/// processor until the kernel's next tick, whatever comes meanwhile: where it came to that, nobody is let go first for a
/// while.
pub fn let_others_go_first() {
    thread_local!(static YIELDS: Cell<Yields> = const { Cell::new(Yields { not_before: None }) });
    let (yields, began) = (YIELDS.get(), Instant::now());
    if yields.is_due(began) {
        thread::yield_now();
        YIELDS.set(yields.after(began, Instant::now()));
    }
}

/// Longer than those take that bring something, and shorter than a tick.
const LONG: Duration = Duration::from_micros(500);
/// How long nobody is let go first then: a tick in it is little.
const WHILE: Duration = Duration::from_millis(100);

/// When others may go first.
#[derive(Debug, Clone, Copy)]
struct Yields {
    not_before: Option<Instant>,
}

impl Yields {
    fn is_due(self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| now >= time)
    }

    /// The same once they had the processor for so long.
    fn after(self, began: Instant, ended: Instant) -> Self {
        Self { not_before: (ended.duration_since(began) > LONG).then(|| ended + WHILE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_go_first_until_one_keeps_the_processor() {
        let (at, yields) = (Instant::now(), Yields { not_before: None });
        assert!(yields.is_due(at));
        let short = yields.after(at, at + LONG);
        assert!(short.is_due(at + LONG));
        let (tick, long) = (at + LONG * 8, short.after(at, at + LONG * 8));
        assert!(!long.is_due(tick) && !long.is_due(tick + WHILE / 2) && long.is_due(tick + WHILE));
    }

    /// How long a turn of this thread is, ns, where the kernel tells.
    fn turn() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("se.slice"))?;
        line.trim_start_matches([' ', ':']).trim().parse().ok()
    }

    #[test]
    fn turns_are_short_for_whoever_takes_them_and_not_for_what_it_starts() {
        let usual = turn();
        let short = || {
            take_short_turns();
            (turn(), thread::spawn(turn).join().unwrap())
        };
        let (short, started) = thread::spawn(short).join().unwrap();
        if short == usual {
            eprintln!("SKIPPED: length of turns: this kernel has no such thing, or does not tell");
            return;
        }
        assert_eq!((short, started), (Some(100_000), usual));
    }
}
