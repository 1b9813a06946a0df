//! `footbridge step`: one call of an operator, or a list of them, from a file, and a report for programs.
//!
//! Each step is a harness of its own with one server and no listener; the call goes through the stages like any other,
//! and into the record that all one-shot calls of a user share. States: started, called, ended in order. On every way
//! out the server is ended, by the keeper where nobody else can.
//!
//! Failure paths, each a report: the program is not there; the server does not start; the call is refused, fails, or
//! takes too long; a signal comes, which ends the steps that are left, too.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use nix::sys::signal::Signal;

use crate::{
    config::{
        Config,
        steps::{StepSpec, Steps},
    },
    harness::{Harness, NotCalled, OperatorCall},
};
use footbridge_audit::Recorder;
use footbridge_calls::{operator::Operator, provider::RawResult};
use footbridge_core::gate::Policy;
use footbridge_processes::{launch::Launcher, signals::Signals};

pub(crate) use footbridge_cli::report::StepReport;

/// What ends steps before their time.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// How long after its time a step is waited for: what ends it by itself says more.
const GRACE: Duration = Duration::from_secs(3);

/// What steps run with.
pub(crate) struct StepRunner<'a> {
    pub(crate) config: Config,
    /// The state folder.
    pub(crate) state: &'a Path,
    pub(crate) policy: Arc<Policy>,
}

impl StepRunner<'_> {
    /// Runs steps one after the other, whatever becomes of each; `began` hears of each before. A signal ends them.
    ///
    /// # Errors
    /// When signals cannot be heard.
    pub(crate) async fn run(
        mut self,
        steps: Steps,
        began: impl Fn(usize, &str),
    ) -> anyhow::Result<Vec<(String, StepReport)>> {
        let mut signals = Signals::listen(&ENDS).context("cannot listen for signals")?;
        self.config.gathered.secrets.extend(steps.gathered.secrets);
        let (mut reports, mut ended) = (Vec::new(), None);
        for (index, step) in steps.steps.into_iter().enumerate() {
            let name = step.server.name.to_string();
            let report = match ended {
                Some(signal) => StepReport::failed(format!("it was not run, since {signal} ended the steps")),
                None => {
                    began(index, &name);
                    let done = self.one(step, &mut signals).await;
                    done.unwrap_or_else(|signal| {
                        ended = Some(signal);
                        StepReport::failed(format!("it was ended by {signal}, and may have had its effect"))
                    })
                }
            };
            reports.push((name, report));
        }
        Ok(reports)
    }

    async fn one(&self, step: StepSpec, signals: &mut Signals) -> Result<StepReport, Signal> {
        if let Some(program) = &step.missing {
            let what = format!("its program {program:?} is not found: install it, or write the whole path");
            return Ok(StepReport::failed(what));
        }
        let harness = match self.start(&step) {
            Ok(harness) => harness,
            Err(error) => return Ok(StepReport::failed(format!("{error:#}"))),
        };
        let operator = Operator::ThisProcess { uid: nix::unistd::geteuid().as_raw() };
        let StepSpec { server, tool, arguments, time, .. } = step;
        let (server, policy) = (server.name.to_string(), Some(Arc::clone(&self.policy)));
        let call = OperatorCall { server, tool, arguments: Some(arguments), policy };
        let called = tokio::select! {
            biased;
            signal = signals.next() => Err(signal),
            called = tokio::time::timeout(time + GRACE, harness.call(&operator, call)) => Ok(called),
        };
        let called = called.map(|called| match called {
            Ok(called) => reported(&harness, called),
            Err(_) => StepReport::failed(format!("it did not end within {time:?} and was ended")),
        });
        tokio::select! {
            () = harness.stop() => {}
            // Whoever is in such a hurry has the keeper do it.
            _again = signals.next() => {}
        }
        called
    }

    /// A harness with the one server of a step, within its time.
    fn start(&self, step: &StepSpec) -> anyhow::Result<Harness> {
        let mut config = self.config.clone();
        config.servers = vec![step.server.clone()];
        let (calls, servers) = (&mut config.limits.calls, &mut config.limits.servers);
        (calls.idle_time, calls.total_time, calls.server_wait) = (step.time, step.time, step.time);
        (servers.start_time, servers.list_time) = (step.time, step.time);
        let recorder =
            Recorder::one_shot(&self.state.join("audit"), &config.audit).context("cannot write the record")?;
        let launcher = Launcher::Kept { helper: None, folders: config.own_folders.clone() };
        Harness::start(config, recorder, launcher, None, None).context("cannot write the record")
    }
}

/// The report of a call, with what only the operator may know where it failed.
fn reported(harness: &Harness, called: Result<RawResult, NotCalled>) -> StepReport {
    match called {
        Ok(result) => StepReport::of(&result.text),
        Err(why) => {
            let reports = harness.servers().map(|servers| servers.report()).unwrap_or_default();
            let because = reports.into_iter().find_map(|report| report.last_error);
            StepReport::failed(match because {
                Some(because) => format!("{why}; because: {because}"),
                None => why.to_string(),
            })
        }
    }
}
