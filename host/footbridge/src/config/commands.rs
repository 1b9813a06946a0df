//! Commands that print a secret: started, waited for so long and no longer, and ended with all that came of them.

use std::{
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use footbridge_proto::vars::GUEST_PREFIX;
use tokio::{runtime::Builder, time::sleep};
use tokio_util::sync::CancellationToken;

use footbridge_core::secret::Secret;
use footbridge_processes::launch::{Launcher, ProgramSpec};

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// How long a command may take before it is said what is waited for.
const SLOW: Duration = Duration::from_secs(2);

/// How the commands of secrets are run. By default each is a child in a group of its own.
#[derive(Debug, Clone)]
pub struct Commands {
    launcher: Launcher,
    limit: Duration,
    stop: CancellationToken,
}

impl Default for Commands {
    fn default() -> Self {
        Self { launcher: Launcher::Direct, limit: LIMIT, stop: CancellationToken::new() }
    }
}

/// Why a command gives no value.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoOutput {
    #[error(
        "it did not end within {0:?} and was killed: it has no terminal and nothing to read; run it by hand to see what it waits for"
    )]
    Slow(Duration),
    #[error("it was ended, since the harness ends")]
    Stopped,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Commands {
    /// Each under a keeper of this very program, so that nothing of it stays when the harness ends, however it does.
    #[must_use]
    pub fn kept() -> Self {
        Self { launcher: Launcher::Kept { helper: None }, ..Self::default() }
    }

    /// Ends what runs when this is cancelled, and starts no more.
    #[must_use]
    pub fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// With another limit.
    #[cfg(test)]
    pub(super) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs a program in this folder to its end, and gives what it printed.
    pub(super) fn output(&self, program: &str, args: &[String], folder: &Path) -> Result<Vec<u8>, NoOutput> {
        let spec = ProgramSpec {
            command: program.to_owned(),
            args: args.iter().map(Secret::new).collect(),
            env: variables(),
            cwd: Some(PathBuf::from(folder)),
            confine: false,
        };
        let run = || Builder::new_current_thread().enable_all().build()?.block_on(self.run(&spec));
        // Whoever reads a configuration may be in a runtime already, and there can be no other in the same thread.
        let ran = thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, run).map(|one| one.join()));
        ran?.unwrap_or_else(|_panicked| Err(io::Error::other("waiting for it failed").into()))
    }

    async fn run(&self, spec: &ProgramSpec) -> Result<Vec<u8>, NoOutput> {
        let say_so = async {
            sleep(SLOW).await;
            let (program, limit) = (&spec.command, self.limit);
            tracing::warn!(?program, ?limit, "waiting for the command of a secret");
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(NoOutput::Stopped),
            printed = self.launcher.output(spec, self.limit) => printed.map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => NoOutput::Slow(self.limit),
                _ => error.into(),
            }),
            never = say_so => never,
        }
    }
}

/// The harness's own, but for those that are only for guests.
fn variables() -> Vec<(String, Secret)> {
    let utf8 =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    utf8.filter(|(name, _)| !name.starts_with(GUEST_PREFIX)).map(|(name, value)| (name, Secret::new(value))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn sh(commands: &Commands, script: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let printed = commands.output("sh", &["-c".to_owned(), script.to_owned()], folder.path());
        printed.map(|text| String::from_utf8(text).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn one_that_hangs_is_ended_and_said_with_what_to_do() {
        let (mut lifeline, held) = io::pipe().unwrap();
        let commands = Commands::default().within(Duration::from_millis(200));
        let folder = tempfile::tempdir().unwrap();
        // Its own child has hold of the pipe, too.
        let script = format!("exec 9>/proc/{}/fd/{}; sleep 1000 & wait", std::process::id(), held_number(&held));
        let began = Instant::now();
        let error = commands.output("sh", &["-c".to_owned(), script], folder.path()).unwrap_err().to_string();
        assert!(error.contains("within 200ms") && error.contains("by hand"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(20));
        drop(held);
        // The end comes only once nobody has it open any more.
        assert_eq!(io::Read::read(&mut lifeline, &mut [0]).unwrap(), 0);
    }

    fn held_number(pipe: &io::PipeWriter) -> i32 {
        std::os::fd::AsRawFd::as_raw_fd(pipe)
    }

    #[test]
    fn a_child_that_it_leaves_behind_holds_nothing_up() {
        assert_eq!(sh(&Commands::default(), "sleep 1000 & echo value").unwrap(), "value\n");
    }

    #[test]
    fn what_prints_without_end_is_refused() {
        let error = sh(&Commands::default(), "yes").unwrap_err();
        assert!(error.contains("more than 64 KiB"), "{error}");
    }

    #[test]
    fn one_that_runs_when_the_harness_ends_is_ended() {
        let stop = CancellationToken::new();
        let commands = Commands::default().until(stop.clone());
        thread::scope(|scope| {
            let hung = scope.spawn(|| sh(&commands, "sleep 1000"));
            stop.cancel();
            assert!(hung.join().unwrap().unwrap_err().contains("harness ends"));
        });
        assert!(sh(&commands, "echo never").unwrap_err().contains("harness ends"));
    }

    #[tokio::test]
    async fn a_configuration_may_be_read_within_a_runtime() {
        assert_eq!(sh(&Commands::default(), "echo value").unwrap(), "value\n");
    }
}
