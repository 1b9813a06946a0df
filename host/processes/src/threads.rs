//! Whether threads can be started, and files opened, for what panics or hangs where they cannot.

use std::{
    fs::File,
    io,
    sync::{Mutex, PoisonError},
    thread,
};

use nix::libc;

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

/// Opens so many files at once, and closes them.
///
/// # Errors
/// When one could not be opened, with what to do about it.
pub fn can_open(count: usize) -> io::Result<()> {
    let all: io::Result<Vec<File>> = (0..count).map(|_| File::open("/dev/null")).collect();
    all.map(drop).map_err(|error| {
        let what = file_limit(&error).map(|limit| format!(" ({limit})")).unwrap_or_default();
        io::Error::new(error.kind(), format!("{count} more files cannot be opened: {error}{what}"))
    })
}

/// Which limit of open files an error is of, and where it is set; none where it is of something else.
#[must_use]
pub fn file_limit(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error() {
        Some(libc::EMFILE) => Some("the limit of open files is reached: ulimit -n, LimitNOFILE of a service"),
        Some(libc::ENFILE) => Some("the system's limit of open files is reached: sysctl fs.file-max"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_can_be_started() {
        assert!(can_start(3).is_ok());
    }

    #[test]
    fn a_few_can_be_opened() {
        assert!(can_open(3).is_ok());
    }
}
