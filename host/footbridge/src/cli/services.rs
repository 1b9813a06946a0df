//! `footbridge services`: the services of the configuration, and whether they can be reached.
//!
//! Exit status: 0 done; 1 a service cannot be reached; 2 a wrong command line or configuration.

use anyhow::Context as _;
use clap::Subcommand;
use footbridge_proto::text::Escaped;
use serde_json::json;

use super::{Files, load_config};
use crate::{
    config::{Config, Writable, known},
    report,
};
use footbridge_processes::sys;
use footbridge_services::{ServiceSpec, Services};

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
    /// Connect to a service, and say what keeps it from being reached; nothing is asked of it
    #[command(after_help = "Examples:
  footbridge services check anthropic

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
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    match command {
        ServicesCommand::List { files, json } => {
            let (config, _) = load_config(&files, Writable::here())?;
            report::out(&if json { lines(&config.services) } else { table(&config.services) })?;
            Ok(0)
        }
        ServicesCommand::Check { name, files, json } => {
            let (config, _) = load_config(&files, Writable::here())?;
            check(config, &name, json)
        }
    }
}

fn check(config: Config, name: &str, json: bool) -> anyhow::Result<i32> {
    known(&config, std::slice::from_ref(&name.to_owned()))?;
    let services = Services::new(config.services, &config.limits.services);
    let checked = super::runtime()?.block_on(services.check(name));
    let problem = checked.as_ref().err().map(ToString::to_string);
    if json {
        report::out(&format!("{}\n", json!({"service": name, "ok": checked.is_ok(), "problem": problem})))?;
    } else {
        report::out(&match &problem {
            None => format!("ok: {name} takes connections\n"),
            Some(problem) => format!("{name} cannot be reached: {}\n", Escaped(problem)),
        })?;
    }
    Ok(if checked.is_ok() { 0 } else { UNREACHABLE })
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
        });
        format!("{value}\n")
    };
    services.iter().map(line).collect()
}

fn table(services: &[ServiceSpec]) -> String {
    if services.is_empty() {
        return "no service is configured: write [services.NAME] into footbridge.toml, as docs/services.md shows\n"
            .into();
    }
    let one = |service: &ServiceSpec| {
        let header = service.credential.as_ref().map_or("(no credential)", |(name, _)| name.as_str());
        let asked = requests(service).map_or_else(|| "(anything)".to_owned(), |all| all.join(", "));
        format!(
            "{}\n  url:         {}\n  credential:  in {header}\n  requests:    {}\n  environment: {}\n",
            service.name,
            Escaped(&service.origin.to_string()),
            Escaped(&asked),
            Escaped(&variables(service).join(", ")),
        )
    };
    services.iter().map(one).collect()
}
