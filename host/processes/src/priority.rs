//! Threads that give way to all others, and those that are not to wait for them.

use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

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
