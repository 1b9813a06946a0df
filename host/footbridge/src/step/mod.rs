//! `footbridge step`: one call of an operator, or a list of them, from a file, and a report for programs.
//!
//! Each step is a one-shot call: the stages, pins, the record and whoever sits at the terminal are those of
//! `footbridge call`. States: started, called, ended in order.
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
    oneshot::{
        call::ENDS,
        failure::OneShotFailure,
        running::{Chosen, OneServer, Within},
    },
};
use footbridge_core::gate::Policy;
use footbridge_processes::signals::Signals;

pub(crate) use footbridge_cli::report::StepReport;

/// How long after its time a step is waited for: what ends it by itself says more.
const GRACE: Duration = Duration::from_secs(3);

/// What became of each step, by its name, and the signal that ended them.
pub(crate) type StepsDone = (Vec<(String, StepReport)>, Option<Signal>);

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
    pub(crate) async fn run(mut self, steps: Steps, began: impl Fn(usize, &str)) -> anyhow::Result<StepsDone> {
        let mut signals = Signals::listen_if_not_ignored(&ENDS).context("cannot listen for signals")?;
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
        Ok((reports, ended))
    }

    async fn one(&self, step: StepSpec, signals: &mut Signals) -> Result<StepReport, Signal> {
        if let Some(program) = &step.missing {
            let what = format!("its program {program:?} is not found: install it, or write the whole path");
            return Ok(StepReport::failed(what));
        }
        let one = match OneServer::start(self.within(&step), self.state, &step.server.name, "step").await {
            Ok(one) => one,
            Err(why) => return Ok(failed(&why)),
        };
        let StepSpec { tool, arguments, time, .. } = step;
        let chosen = Chosen { tool, arguments: Some(arguments) };
        // A person may take longer than a step; the limits do not count that time.
        let in_all = (!one.may_be_asked()).then_some(time + GRACE);
        let calling = async {
            // What keeps a server from starting says more than that it is not there in time.
            one.list().await?;
            one.call(chosen, Arc::clone(&self.policy), in_all.map(Within::from_now)).await
        };
        let called = tokio::select! {
            biased;
            signal = signals.next() => Err(signal),
            called = calling => Ok(called),
        };
        tokio::select! {
            () = one.stop() => {}
            // Whoever is in such a hurry has the keeper do it.
            _again = signals.next() => {}
        }
        called.map(|called| called.map_or_else(|why| failed(&why), |result| StepReport::of(&result)))
    }

    /// The configuration with the one server of a step, within its time.
    fn within(&self, step: &StepSpec) -> Config {
        let mut config = self.config.clone();
        config.servers = vec![step.server.clone()];
        let (calls, servers) = (&mut config.limits.calls, &mut config.limits.servers);
        (calls.idle_time, calls.total_time, calls.server_wait) = (step.time, step.time, step.time);
        (servers.start_time, servers.list_time) = (step.time, step.time);
        config
    }
}

/// The report of what has no result, with what only the operator may know.
fn failed(why: &OneShotFailure) -> StepReport {
    StepReport::failed(match why {
        OneShotFailure::Refused(error, Some(because)) => format!("{}; because: {because}", error.message),
        OneShotFailure::Harness(error) => format!("{error:#}"),
        other => other.with_tools(),
    })
}
