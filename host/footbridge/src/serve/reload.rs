//! Reading the configuration again, asked for by SIGHUP or by a command: one reading at a time, whoever asks.
//!
//! What has a mistake changes nothing, and is told until a later reading succeeds: to whoever asked, in the log, to the
//! service manager, and to every command that looks at sessions.

use std::{
    path::{PathBuf, absolute},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use tokio_util::sync::CancellationToken;

use super::supervisor;
use crate::{
    config::{Commands, Config, ConfigError, Variables, WantedServices, Writable, folders::Folders, load},
    control::wire::{ReloadFailed, ReloadReport},
    harness::Reloaded,
    report,
};
use footbridge_core::human;

/// What is read again, and how the last reading went.
#[derive(Debug)]
pub(super) struct Reloader {
    files: Vec<PathBuf>,
    folders: Folders,
    one_at_a_time: tokio::sync::Mutex<()>,
    failed: Mutex<Option<ReloadFailed>>,
    /// The services of the configuration that was read last.
    services: Mutex<Vec<String>>,
}

impl Reloader {
    /// Of these files, or without any those of the configuration folder, that said this.
    pub(super) fn new(files: Vec<PathBuf>, folders: Folders, config: &Config) -> Self {
        let services = Mutex::new(services(config));
        Self { files, folders, one_at_a_time: tokio::sync::Mutex::default(), failed: Mutex::default(), services }
    }

    /// Why there is no service of this name, and which there are. Whoever asks may have other files.
    pub(super) fn no_service(&self, name: &str) -> String {
        let known = self.services.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
        let what = match &*known {
            "" => "its configuration has none".to_owned(),
            known => format!("choose one of {known}"),
        };
        let option =
            |path: &PathBuf| format!(" --config {}", absolute(path).unwrap_or_else(|_| path.clone()).display());
        let files: String = self.files.iter().map(option).collect();
        let from = if files.is_empty() { format!(" of {}", self.folders.config.display()) } else { String::new() };
        format!("the daemon has no service {name:?}: {what}; \"footbridge services list{files}\" shows those{from}")
    }

    /// What was wrong with the last reading, if it failed.
    pub(super) fn failed(&self) -> Option<ReloadFailed> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the configuration again, and has it taken if it has no mistake. Cancelled, the commands that it waits for
    /// end.
    pub(super) async fn reload<F: Future<Output = Reloaded>>(
        &self,
        stop: CancellationToken,
        take: impl FnOnce(Config) -> F,
    ) -> ReloadReport {
        let _one_at_a_time = self.one_at_a_time.lock().await;
        tracing::info!("reading the configuration again");
        match self.read(stop).await {
            Ok(config) => {
                let odd = config.lacking.iter().chain(&config.notes);
                let mut notes: Vec<String> = odd.map(ToString::to_string).collect();
                log_notes(&config);
                let services = services(&config);
                let reloaded = take(config).await;
                let changes = changes(&reloaded);
                notes.extend(tell(reloaded));
                *self.services.lock().unwrap_or_else(PoisonError::into_inner) = services;
                self.went(None);
                ReloadReport { mistakes: Vec::new(), notes, changes }
            }
            Err(mistakes) => {
                for mistake in &mistakes {
                    tracing::error!(%mistake, "the configuration has a mistake");
                }
                tracing::error!("the configuration was not read again: everything stays as it was");
                self.went(Some(ReloadFailed { at: human::timestamp(SystemTime::now()), mistakes: mistakes.clone() }));
                ReloadReport { mistakes, notes: Vec::new(), changes: Vec::new() }
            }
        }
    }

    /// Reads the files. Cancelled, the commands that it waits for end.
    async fn read(&self, stop: CancellationToken) -> Result<Config, Vec<String>> {
        let (files, folders) = (self.files.clone(), self.folders.clone());
        let commands = Commands::kept(self.folders.for_programs(&Writable::default())).until(stop);
        let variables = Variables::of_this_process().commands(commands, Writable::default());
        let variables = variables.services(WantedServices::Again);
        match tokio::task::spawn_blocking(move || load(&files, &folders, &variables)).await {
            Ok(Ok(config)) => Ok(config),
            Ok(Err(ConfigError(mistakes))) => Err(mistakes.iter().map(ToString::to_string).collect()),
            Err(error) => Err(vec![format!("the configuration could not be read: {error}")]),
        }
    }

    /// Keeps in mind how a reading went.
    fn went(&self, failed: Option<ReloadFailed>) {
        let status = match &failed {
            Some(ReloadFailed { mistakes, .. }) => {
                let count = report::counted(mistakes.len() as u64, "mistake");
                format!("STATUS=the configuration was not read again: {count}; everything is as it was before")
            }
            None => "STATUS=".to_owned(),
        };
        supervisor::notify(&status);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }
}

/// What a configuration changed, in a line each.
fn changes(Reloaded { servers, services, policies, budgets, .. }: &Reloaded) -> Vec<String> {
    let all = [
        ("servers added", &servers.added),
        ("servers removed", &servers.removed),
        ("servers restarted", &servers.restarted),
        ("services added", &services.added),
        ("services removed", &services.removed),
        ("services changed", &services.changed),
    ];
    let some = all.into_iter().filter(|(_, which)| !which.is_empty());
    let of_sessions = (!policies.changed.is_empty()).then(|| {
        let sessions = names(&policies.changed);
        format!(
            "sessions whose policy changed: {sessions}; what was asked and allowed under the one before counts no more"
        )
    });
    let of_budgets = (!budgets.is_empty()).then(|| format!("sessions whose budgets changed: {}", names(budgets)));
    some.map(|(what, which)| format!("{what}: {}", names(which))).chain(of_sessions).chain(of_budgets).collect()
}

/// Says in the log what a configuration changed. What did not take effect comes back.
fn tell(reloaded: Reloaded) -> Vec<String> {
    let Reloaded { servers, services, policies, services_gone, budgets, after_restart } = reloaded;
    let (added, removed, restarted) = (names(&servers.added), names(&servers.removed), names(&servers.restarted));
    tracing::info!(added, removed, restarted, "the configuration was read again: servers");
    let (added, removed, changed) = (names(&services.added), names(&services.removed), names(&services.changed));
    tracing::info!(added, removed, changed, "the configuration was read again: services");
    tracing::info!(sessions = names(&policies.changed), "the configuration was read again: policies");
    tracing::info!(sessions = names(&budgets), "the configuration was read again: budgets");
    let mut left = Vec::new();
    for session in policies.gone {
        tracing::error!(%session, "the policy of this session is not configured any more: it keeps what it had");
        left.push(format!("the policy of session {session} is not configured any more: it keeps what it had"));
    }
    for (session, services) in services_gone {
        let services = names(&services);
        tracing::warn!(%session, services, "services of this session are not configured any more: they refuse its requests");
        left.push(format!(
            "session {session} has services that are not configured any more: {services}; its requests to them are refused"
        ));
    }
    if !after_restart.is_empty() {
        let what = format!("{} changed, too: that holds after a restart of the daemon", after_restart.join(", "));
        tracing::warn!("{what}");
        left.push(what);
    }
    left
}

fn services(config: &Config) -> Vec<String> {
    config.services.iter().map(|spec| spec.name.to_string()).collect()
}

/// Says in the log what is odd about a configuration.
pub(super) fn log_notes(config: &Config) {
    for note in &config.notes {
        tracing::warn!(%note, "the configuration has something odd");
    }
}

fn names<T: std::fmt::Display>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
