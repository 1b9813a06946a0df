//! Commands that print a secret: started, waited for so long and no longer, and ended with all that came of them.

use std::{
    io,
    sync::{Arc, Once},
    thread,
    time::Duration,
};

use footbridge_proto::vars::GUEST_PREFIX;
use tokio::{runtime::Builder, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    exposed::{self, Exposed, Starting},
    loading::is_loading,
    passed::is_passed,
    programs,
    withheld::Withheld,
    writable::Writable,
};
use footbridge_core::secret::Secret;
use footbridge_processes::launch::{Launcher, OwnFolders, ProgramSpec};

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
    writable: Writable,
    /// The PATH that they get; nothing where there is none.
    path: Option<String>,
    /// Variables of this process that they do not get as they are.
    withheld: Withheld,
    /// Where it is said once what is withheld from them.
    said: Arc<Once>,
    /// Whether they are run, or only looked for.
    are_run: bool,
    /// The only servers that are wanted, if it is not all.
    only: Option<Vec<String>>,
}

impl Default for Commands {
    fn default() -> Self {
        Self {
            launcher: Launcher::Direct,
            limit: LIMIT,
            stop: CancellationToken::new(),
            writable: Writable::default(),
            path: std::env::var("PATH").ok(),
            withheld: Withheld::default(),
            said: Arc::new(Once::new()),
            are_run: true,
            only: None,
        }
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
    #[error("{0}Move it out of there")]
    Exposed(Exposed),
    #[error("{0}")]
    Missing(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Commands {
    /// Each under a keeper of this very program, so that nothing of it stays when the harness ends, however it does.
    /// They start in folders of these.
    #[must_use]
    pub fn kept(folders: OwnFolders) -> Self {
        Self { launcher: Launcher::Kept { helper: None, folders }, ..Self::default() }
    }

    /// Runs none of them: only looks whether they are there and out of reach.
    #[must_use]
    pub(crate) fn not_run(self) -> Self {
        Self { are_run: false, ..self }
    }

    /// Whether they are run, and not only looked for.
    pub(super) fn are_run(&self) -> bool {
        self.are_run
    }

    /// Where guests write here, with this PATH and without these variables: what they could replace is not run.
    pub(super) fn out_of_reach(self, writable: Writable, path: Option<String>, withheld: Withheld) -> Self {
        Self { writable, path, withheld, ..self }
    }

    /// Those of these variables of this process that servers get, and what of them.
    pub(super) fn passed<'a>(&'a self, all: &'a [(String, String)]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.handed_on(all, is_passed)
    }

    /// Those of these variables of this process that this is said of, and what of them a program outside may have.
    pub(super) fn handed_on<'a>(
        &'a self,
        all: &'a [(String, String)],
        is_meant: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let meant = all.iter().filter(move |(name, _)| is_meant(name));
        meant.filter_map(|(name, value)| Some((name.as_str(), self.withheld.handed_on(name, value)?)))
    }

    /// Where they start.
    pub(super) fn folders(&self) -> OwnFolders {
        match &self.launcher {
            Launcher::Kept { folders, .. } => folders.clone(),
            _ => OwnFolders::default(),
        }
    }

    /// What guests write.
    pub(super) fn writable(&self) -> &Writable {
        &self.writable
    }

    /// Ends what runs when this is cancelled, and starts no more.
    #[must_use]
    pub fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// For these servers alone, where it is not all.
    pub(super) fn only(self, servers: Option<&[String]>) -> Self {
        Self { only: servers.map(<[String]>::to_vec), ..self }
    }

    /// Whether a server's entry is to be made sense of.
    pub(super) fn wants(&self, server: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == server))
    }

    /// With another limit.
    #[cfg(test)]
    pub(super) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs a program in an empty folder to its end, and gives what it printed; nothing where none is run.
    pub(super) fn output(&self, program: &str, args: &[String]) -> Result<Option<Vec<u8>>, NoOutput> {
        self.check(program, args).map_err(NoOutput::Exposed)?;
        if !self.are_run {
            let missing = programs::not_found(program, None, self.path.as_deref());
            return missing.map_or(Ok(None), |what| Err(NoOutput::Missing(what)));
        }
        self.said.call_once(|| self.say_what_is_withheld());
        let spec = ProgramSpec {
            command: program.to_owned(),
            args: args.iter().map(Secret::new).collect(),
            env: self.variables(),
            cwd: None,
            confine: false,
        };
        let run = || Builder::new_current_thread().enable_all().build()?.block_on(self.run(&spec));
        // Whoever reads a configuration may be in a runtime already, and there can be no other in the same thread.
        let ran = thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, run).map(|one| one.join()));
        ran?.unwrap_or_else(|_panicked| Err(io::Error::other("waiting for it failed").into())).map(Some)
    }

    /// Refuses a program that a guest could have run something.
    pub(super) fn check(&self, command: &str, args: &[String]) -> Result<(), Exposed> {
        // The others say nothing of where code and settings are.
        let loading = self.variables().into_iter().filter(|(name, _)| is_loading(name));
        let variables: Vec<(String, String)> = loading.map(|(name, value)| (name, value.expose().to_owned())).collect();
        let starting = Starting { command, args, cwd: None, variables: &variables, path: self.path.as_deref() };
        exposed::find(starting, &self.writable).map_or(Ok(()), Err)
    }

    /// The harness's own, but for those that are only for guests and those that lead to what guests write, and with the
    /// PATH of what runs outside.
    fn variables(&self) -> Vec<(String, Secret)> {
        let utf8 =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let others = utf8.filter(|(name, _)| !name.starts_with(GUEST_PREFIX) && name != "PATH");
        let others = others.filter_map(|(name, value)| {
            let value = Secret::new(self.withheld.handed_on(&name, &value)?);
            Some((name, value))
        });
        others.chain(self.path.as_ref().map(|path| ("PATH".to_owned(), Secret::new(path)))).collect()
    }

    fn say_what_is_withheld(&self) {
        let names: Vec<&str> = self.withheld.names().filter(|name| !is_passed(name)).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            tracing::warn!(%names, "left out of the variables of commands that print secrets: they lead to where a guest could write");
        }
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn sh(commands: &Commands, script: &str) -> Result<String, String> {
        let printed = commands.output("sh", &["-c".to_owned(), script.to_owned()]);
        printed.map(|text| String::from_utf8(text.unwrap()).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn one_that_hangs_is_ended_and_said_with_what_to_do() {
        let (mut lifeline, held) = io::pipe().unwrap();
        let commands = Commands::default().within(Duration::from_millis(200));
        // Its own child has hold of the pipe, too.
        let script = format!("exec 9>/proc/{}/fd/{}; sleep 1000 & wait", std::process::id(), held_number(&held));
        let began = Instant::now();
        let error = commands.output("sh", &["-c".to_owned(), script]).unwrap_err().to_string();
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
