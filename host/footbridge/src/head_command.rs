//! Signed heads on the standard input of a program of the operator.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::config::{Withheld, Writable};
use footbridge_audit::{HeadSink, NotKept, Recorder, SignedHead, lines_of};
use footbridge_core::secret::Secret;
use footbridge_processes::launch::{Launcher, ProgramSpec};

/// Variables of the harness that the command gets, besides a PATH.
const VARIABLES: [&str; 5] = ["HOME", "USER", "LANG", "TZ", "TMPDIR"];

/// A program that gets each head on its standard input.
pub(crate) struct HeadCommand {
    spec: ProgramSpec,
    launcher: Launcher,
    time: Duration,
}

impl HeadCommand {
    /// A record whose heads go to the command of its settings too, if they name one. Without a PATH it gets the
    /// harness's own, as far as that says the same in every folder; of other variables what is not withheld.
    pub(crate) fn added_to(
        recorder: Recorder,
        launcher: &Launcher,
        path: Option<String>,
        withheld: &Withheld,
    ) -> Recorder {
        let settings = recorder.settings();
        let own = || Writable::default().search_path(&std::env::var("PATH").ok()?).kept;
        let path = path.or_else(own);
        let path = path.map(|path| ("PATH".to_owned(), Secret::new(path)));
        let variable = |name: &&str| {
            let value = std::env::var(name).ok()?;
            Some(((*name).to_owned(), Secret::new(withheld.handed_on(name, &value)?)))
        };
        let env = VARIABLES.iter().filter_map(variable).chain(path).collect();
        match Self::new(&settings.head_command, settings.head_command_time, launcher.clone(), env) {
            Some(command) => recorder.sink(command),
            None => recorder,
        }
    }

    /// None without a program.
    fn new(words: &[String], time: Duration, launcher: Launcher, env: Vec<(String, Secret)>) -> Option<Self> {
        let (command, args) = words.split_first()?;
        let args = args.iter().map(Secret::new).collect();
        // The operator's own program, and no server.
        Some(Self {
            spec: ProgramSpec { command: command.clone(), args, env, cwd: None, confine: false },
            launcher,
            time,
        })
    }
}

impl HeadSink for HeadCommand {
    fn keep<'a>(&'a mut self, heads: &'a [SignedHead]) -> BoxFuture<'a, Result<(), NotKept>> {
        Box::pin(async {
            let fed = self.launcher.feed(&self.spec, lines_of(heads)?.as_bytes(), self.time).await;
            Ok(fed.map_err(|error| format!("head_command {}: {error}", self.spec.command))?)
        })
    }
}
