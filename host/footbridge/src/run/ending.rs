//! What is left to do when a command has ended, and who asks by a signal not to wait for it.
//!
//! The signals that were the command's are this process's then: without anybody who takes them they would do nothing.

use tokio::task::spawn_blocking;

use super::{note::Note, supervise::Supervised};
use crate::report;
use footbridge_audit::RecordLost;

/// Looks at what the command left, and forgets what was noted of it. Where something of it may run yet, or the person does not
/// wait, the next run looks.
pub(super) async fn look(look: impl FnOnce() + Send + 'static, note: Option<Note>, ended: &mut Supervised) {
    let left = |why: &str, note: &Note| {
        report::note(&format!(
            "footbridge: {why}: what the command left that others run or obey, in {}, is not looked at now; the next run \
             does, and until then look at \"git status\" with core.fsmonitor=false before you use git there",
            note.names()
        ));
    };
    if let Some(note) = note.as_ref().filter(|_| !ended.is_over) {
        return left("something of the command may be left", note);
    }
    // A thread that goes on until the process ends, where it is not waited for.
    let looking = spawn_blocking(look);
    tokio::select! {
        biased;
        looked = looking => if let (Ok(()), Some(note)) = (looked, note) {
            note.forget();
        },
        _ = ended.signal() => note.iter().for_each(|note| left("interrupted", note)),
    }
}

/// Ends the rest in order, and says what the record lacks.
pub(super) async fn end(rest: impl Future<Output = Result<(), RecordLost>>, ended: &mut Supervised) {
    tokio::select! {
        biased;
        rest = rest => if let Err(error) = rest {
            report::note(&format!("footbridge: {error}"));
        },
        _ = ended.signal() => report::note(
            "footbridge: interrupted while MCP servers end: those that are left are killed, and the record of this run may \
             lack its end",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::mpsc, time::SystemTime};

    use footbridge_processes::signals::Signals;
    use nix::sys::signal::{Signal, raise};

    use super::{super::note::Left, *};

    fn noted(state: &tempfile::TempDir) -> Option<Note> {
        Note::write(state.path(), &[PathBuf::from("/work")], SystemTime::now()).unwrap()
    }

    fn notes(state: &tempfile::TempDir) -> usize {
        std::fs::read_dir(state.path().join("runs")).unwrap().count()
    }

    /// Of a command that ended with 3. The signal is one that nobody else here takes, and that does nothing by itself.
    fn supervised(is_over: bool, signal: Signal) -> Supervised {
        Supervised { status: Ok(3), is_over, signals: Some(Signals::listen(&[signal]).unwrap()) }
    }

    #[tokio::test]
    async fn what_was_looked_at_is_forgotten_and_what_may_still_be_written_is_not_looked_at() {
        let state = tempfile::tempdir().unwrap();
        look(|| panic!("it may run"), noted(&state), &mut supervised(false, Signal::SIGCONT)).await;
        assert_eq!((notes(&state), Left::all(state.path()).len()), (1, 0), "it is noted as long as it may run");
        let (looks, looked) = mpsc::channel();
        look(move || looks.send(()).unwrap(), noted(&state), &mut supervised(true, Signal::SIGCONT)).await;
        looked.recv().unwrap();
        assert_eq!(notes(&state), 1, "the first one's");
    }

    #[tokio::test]
    async fn a_signal_ends_the_look_and_what_was_noted_stays() {
        let state = tempfile::tempdir().unwrap();
        let (goes_on, waits) = mpsc::channel::<()>();
        let mut ended = supervised(true, Signal::SIGURG);
        raise(Signal::SIGURG).unwrap();
        let looks = move || {
            let _ended_by_this_test = waits.recv();
        };
        look(looks, noted(&state), &mut ended).await;
        drop(goes_on);
        assert_eq!((notes(&state), ended.status.unwrap()), (1, 3));
    }

    #[tokio::test]
    async fn a_signal_ends_the_end() {
        let mut ended = supervised(true, Signal::SIGWINCH);
        raise(Signal::SIGWINCH).unwrap();
        end(std::future::pending(), &mut ended).await;
        assert_eq!(ended.status.unwrap(), 3);
    }
}
