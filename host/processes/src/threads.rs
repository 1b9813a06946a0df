//! Whether threads can be started, for what panics or hangs where they cannot.

use std::{
    io,
    sync::{Mutex, PoisonError},
    thread,
};

/// Starts so many threads at once, and ends them.
///
/// # Errors
/// When one could not be started, with what to do about it.
pub fn can_start(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = || drop(gate.lock());
        let all: Vec<_> = (0..count).map(|_| thread::Builder::new().spawn_scoped(scope, wait)).collect();
        drop(closed);
        // Until they are gone, so that there is room for others.
        all.into_iter().try_for_each(|one| one.map(|thread| drop(thread.join())))
    })
    .map_err(|error| {
        let what =
            "the limit of processes and threads may be reached: ulimit -u, TasksMax of a service, pids of a container";
        io::Error::new(error.kind(), format!("{count} threads cannot be started: {error} ({what})"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_can_be_started() {
        assert!(can_start(3).is_ok());
    }
}
