//! One call, from a server that does not run to one that does not run any more.
//!
//! The harness is that of `run` and `serve`, with one server and without listeners; the record is the chain that all
//! one-shot calls share. States: started; ready, once the server says what it offers; called. On every way out the
//! server is ended in order, or by its keeper.
//!
//! Failure paths: the server does not start; the call is refused or fails; time or patience ends, or a signal comes,
//! which cancels the call first; a second signal leaves the rest to the keeper.

use std::{cell::Cell, path::Path, time::Duration};

use anyhow::Context as _;
use nix::sys::signal::Signal;
use serde_json::value::RawValue;

use super::{
    entries::Entries,
    failure::OneShotFailure,
    lists::{Lists, ToolsList},
    running::{Chosen, OneServer, Within},
};
use crate::config::Config;
use footbridge_core::{gate::UnknownPolicy, names::ServerName};
use footbridge_processes::signals::Signals;

/// What ends a call before its time.
pub(crate) const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// What is called, and how.
pub(crate) struct OneCall<'a> {
    /// The configuration with the one server that is needed.
    pub(crate) config: Config,
    /// The state folder.
    pub(crate) state: &'a Path,
    pub(crate) server: ServerName,
    /// The policy's name.
    pub(crate) policy: &'a str,
    /// For all of it, where one was given.
    pub(crate) timeout: Option<Duration>,
    /// Where what the server offers is kept, and by what.
    pub(crate) lists: &'a Lists,
    pub(crate) entries: &'a Entries,
}

impl OneCall<'_> {
    /// Starts the server, has the tool chosen by what it offers, calls it, hands the result on, and ends everything,
    /// which may take long: heads of the record are handed on as well.
    pub(crate) async fn make(
        self,
        choose: impl FnOnce(&ToolsList) -> Result<Chosen, OneShotFailure>,
        hand_on: impl FnOnce(&RawValue) -> Result<(), OneShotFailure>,
    ) -> Result<(), OneShotFailure> {
        // The start of the server is a part of the time that whoever waits has given.
        let within = self.timeout.map(Within::from_now);
        let unknown = |unknown: UnknownPolicy| OneShotFailure::Usage(unknown.to_string());
        let policy = self.config.policies.get(self.policy).map_err(unknown)?;
        let mut signals = Signals::listen_if_not_ignored(&ENDS).context("cannot listen for signals")?;
        let running = OneServer::start(self.config.clone(), self.state, &self.server, "call").await?;
        let is_calling = Cell::new(false);
        let calling = async {
            let list = listed(&running, within).await?;
            self.keep(&list);
            let chosen = choose(&list)?;
            is_calling.set(true);
            running.call(chosen, policy, within).await
        };
        let done = tokio::select! {
            biased;
            signal = signals.next() => Err(if is_calling.get() && running.may_have_sent() {
                OneShotFailure::InterruptedCall(signal)
            } else {
                OneShotFailure::Interrupted(signal)
            }),
            done = calling => done,
        };
        let done = done.and_then(|result| hand_on(&result));
        tokio::select! {
            () = running.stop() => {}
            // Whoever is in such a hurry has the keeper do it.
            _again = signals.next() => {}
        }
        done
    }

    /// What a server said of itself is worth keeping; where that fails nothing is lost but time.
    fn keep(&self, list: &ToolsList) {
        if let Some(key) = self.entries.servers.get(self.server.as_str())
            && let Err(error) = self.lists.keep(key, list)
        {
            tracing::warn!(%error, server = %self.server, "its list cannot be kept");
        }
    }
}

/// What the server offers, once it is ready.
async fn listed(running: &OneServer, within: Option<Within>) -> Result<ToolsList, OneShotFailure> {
    let Some(Within { time, until }) = within else { return running.list().await };
    let listed = tokio::time::timeout_at(until, running.list()).await;
    listed.unwrap_or(Err(OneShotFailure::NotReadyInTime(time)))
}
