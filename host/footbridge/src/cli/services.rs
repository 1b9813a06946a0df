//! `footbridge services`: the services of the configuration, and whether they can be reached.
//!
//! Exit status: 0 done; 1 a service cannot be reached; 2 a wrong command line or configuration.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::Subcommand;
use footbridge_proto::text::Escaped;
use serde_json::json;

use super::{Files, SAYS_WHAT_IT_WAITS_FOR, WantedParts, load_config_of};
use crate::{
    config::{Config, WantedServices, Writable, known},
    report,
    waiting::WaitLine,
};
use footbridge_processes::sys;
use footbridge_services::{HostCheck, ServiceSpec, Services, TUNNELS};

#[derive(Debug, Subcommand)]
pub(super) enum ServicesCommand {
    /// Show the services of the configuration
    #[command(after_help = "Examples:
  footbridge services list
  footbridge services list --config footbridge.toml --json")]
    List {
        #[command(flatten)]
        files: Files,
        /// Print JSON, one service a line
        #[arg(long)]
        json: bool,
    },
    /// Connect to a service, or to the hosts of tunnels, and say what keeps it from being reached; nothing is asked of it
    #[command(after_help = "Examples:
  footbridge services check anthropic
  footbridge services check tunnels

Exit status: 0 it can be reached; 1 it cannot; 2 a wrong command line or configuration.")]
    Check {
        /// Its name
        name: String,
        #[command(flatten)]
        files: Files,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Status when a service cannot be reached.
const UNREACHABLE: i32 = 1;

pub(super) fn main(command: ServicesCommand) -> anyhow::Result<i32> {
    crate::log::start(SAYS_WHAT_IT_WAITS_FOR)?;
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    match command {
        ServicesCommand::List { files, json } => {
            let config = load(&files, Vec::new())?;
            report::out(&if json { lines(&config.services) } else { table(&config.services) })?;
            Ok(0)
        }
        ServicesCommand::Check { name, files, json } => {
            let config = load(&files, vec![name.clone()])?;
            check(config, &name, json)
        }
    }
}

/// The configuration, with the credentials of these services alone.
fn load(files: &Files, services: Vec<String>) -> anyhow::Result<Config> {
    let wanted = WantedParts { services: WantedServices::Named(services), ..WantedParts::none() };
    Ok(load_config_of(files, Writable::here(), wanted)?.0)
}

fn check(config: Config, name: &str, json: bool) -> anyhow::Result<i32> {
    known(&config, std::slice::from_ref(&name.to_owned()))?;
    let lacks = config.services.iter().find(|spec| spec.name.as_str() == name);
    let lacks = lacks.and_then(|spec| spec.lacks_credential.as_ref()).map(ToString::to_string);
    let origins: BTreeMap<String, String> = config
        .services
        .iter()
        .filter(|spec| spec.name.as_str() != TUNNELS)
        .map(|spec| (spec.name.to_string(), spec.origin.to_string()))
        .collect();
    let services = Services::new(config.services, &config.limits.services, 1);
    let line = WaitLine::of("Connecting");
    let checked = super::runtime()?.block_on(services.check(name));
    drop(line);
    let is_ok = lacks.is_none() && checked.iter().all(|one| !matches!(one.found, Some(Err(_))));
    let missing = lacks.as_ref().map(|why| format!("{name} has no credential: {}\n", Escaped(why)));
    let text = checked.iter().map(|one| shown(one, &origins)).chain(missing).collect();
    report::out(&if json { checked_json(name, is_ok, lacks, &checked) } else { text })?;
    Ok(if is_ok { 0 } else { UNREACHABLE })
}

fn shown(checked: &HostCheck, origins: &BTreeMap<String, String>) -> String {
    let what = match origins.get(&checked.what) {
        Some(origin) => format!("{} ({})", Escaped(&checked.what), Escaped(origin)),
        None => Escaped(&checked.what).to_string(),
    };
    match &checked.found {
        Some(Ok(())) => format!("ok: {what} takes connections\n"),
        Some(Err(why)) => format!("{what} cannot be reached: {why}\n"),
        None => format!("not tried: {what} stands for any host below\n"),
    }
}

fn checked_json(name: &str, is_ok: bool, lacks: Option<String>, all: &[HostCheck]) -> String {
    let problem = |one: &HostCheck| one.found.as_ref().and_then(|found| found.as_ref().err()).map(ToString::to_string);
    let first = all.iter().find_map(problem).or(lacks);
    let mut value = json!({"service": name, "ok": is_ok, "problem": first});
    if name == TUNNELS {
        let host = |one: &HostCheck| json!({"host": one.what, "tried": one.found.is_some(), "problem": problem(one)});
        value["hosts"] = all.iter().map(host).collect();
    }
    format!("{value}\n")
}

fn variables(service: &ServiceSpec) -> Vec<&str> {
    service.environment.keys().map(String::as_str).collect()
}

fn requests(service: &ServiceSpec) -> Option<Vec<String>> {
    service.rules.requests.as_ref().map(|all| all.iter().map(ToString::to_string).collect())
}

fn lines(services: &[ServiceSpec]) -> String {
    let line = |service: &ServiceSpec| {
        let value = json!({
            "name": service.name.as_str(),
            "url": service.origin.to_string(),
            "header": service.credential.as_ref().map(|(name, _)| name.as_str()),
            "requests": requests(service),
            "environment": variables(service),
            "websocket": service.rules.websocket,
            "ownCertificates": service.authorities.len(),
            "proxy": service.proxy.is_some(),
        });
        format!("{value}\n")
    };
    services.iter().map(line).collect()
}

/// What is set of a service that mostly is not.
fn besides(service: &ServiceSpec) -> String {
    let set = [
        (service.rules.websocket, "websocket"),
        (!service.authorities.is_empty(), "ca_file"),
        (service.proxy.is_some(), "proxy"),
        (service.allow_private, "allow_private"),
    ];
    let set: Vec<&str> = set.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect();
    if set.is_empty() { String::new() } else { format!("  with:        {}\n", set.join(", ")) }
}

fn table(services: &[ServiceSpec]) -> String {
    if services.is_empty() {
        return "no service is configured: write [services.NAME] into footbridge.toml, as docs/services.md shows; one in a \
                working folder is read where --config names it\n"
            .into();
    }
    let one = |service: &ServiceSpec| {
        let header = match (&service.credential, &service.lacks_credential) {
            (Some((header, _)), _) => format!("in {header}"),
            (None, Some(why)) => format!("missing: {why}"),
            (None, None) => "none".to_owned(),
        };
        let asked = requests(service).map_or_else(|| "(anything)".to_owned(), |all| all.join(", "));
        format!(
            "{}\n  url:         {}\n  credential:  {header}\n  requests:    {}\n  environment: {}\n{}",
            service.name,
            Escaped(&service.origin.to_string()),
            Escaped(&asked),
            Escaped(&variables(service).join(", ")),
            besides(service),
        )
    };
    services.iter().map(one).collect()
}
