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

thread_local! {
    /// When this thread lets others go first again; none where it has not begun to.
    static NOT_BEFORE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Has this thread, which has nothing to do, let those that wait for its processor have it once, before it sleeps: mostly
/// they bring it something, and then it needs not be put to sleep and woken. One that computes for long would keep the
/// processor until the kernel's next tick, whatever comes meanwhile: where it came to that, nobody is let go first for a
/// while; nor is anybody in the beginning, as a command may be over soon.
pub fn let_others_go_first() {
    let began = Instant::now();
    let not_before = NOT_BEFORE.get().unwrap_or(began + WHILE);
    let next = if began < not_before {
        not_before
    } else {
        thread::yield_now();
        next(began, Instant::now())
    };
    NOT_BEFORE.set(Some(next));
}

/// Longer than those take that bring something, and shorter than a tick.
const LONG: Duration = Duration::from_micros(500);
/// How long nobody is let go first then: a tick in it is little.
const WHILE: Duration = Duration::from_millis(100);

/// When others may go first again, once they had the processor for so long.
fn next(began: Instant, ended: Instant) -> Instant {
    if ended.duration_since(began) > LONG { ended + WHILE } else { ended }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_go_first_but_in_the_beginning_and_after_one_that_kept_the_processor() {
        let (began, tick) = (Instant::now(), LONG * 8);
        let first = || {
            let_others_go_first();
            NOT_BEFORE.get()
        };
        assert!(thread::spawn(first).join().unwrap().is_some_and(|time| time >= began + WHILE));
        assert_eq!(next(began, began + LONG), began + LONG);
        assert_eq!(next(began, began + tick), began + tick + WHILE);
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
