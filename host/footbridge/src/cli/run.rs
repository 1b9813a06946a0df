//! `footbridge run`.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStringExt as _,
    path::PathBuf,
};

use anyhow::Context as _;

use clap::{
    Arg, Args, Command, ValueEnum as _,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};

use super::{Files, NoConfiguration, WantedParts, label, labels, load_config_of, say_what_is_left_out, sources};
use crate::{
    config::{Config, WantedServices, known, of_names},
    harness::descriptors::needed,
    report,
    run::{Agent, Run, Sandbox, run},
};
use footbridge_core::limits::overrides::{Override, Overrides};
use footbridge_processes::{
    descriptors::raise,
    sandbox::{Asked, Nesting},
    sys,
};
use footbridge_services::{ServiceSpec, environment_notes};

#[derive(Debug, Args)]
#[command(
    after_help = "A call that the policy asks about is asked about on this terminal, while CMD is held. Without a \
terminal it is denied, unless [approval] of footbridge.toml says who answers.

Examples:
  footbridge run --config servers.json -- bash
  footbridge run --config servers.json --policy readonly -- my-agent --task 'tidy up'
  footbridge run --service anthropic --agent claude -- claude

Exit status: that of CMD; 128 and the signal's number if a signal ended it; 125 if the harness \
failed; 126 or 127 if CMD cannot be run or found; 2 for a wrong command line or configuration."
)]
pub(super) struct RunArgs {
    #[command(flatten)]
    files: Files,
    /// What isolates CMD
    #[arg(long, value_enum, default_value = "net")]
    sandbox: Sandbox,
    /// The image of CMD's container; it must be there, it is not fetched
    #[arg(long, required_if_eq_any([("sandbox", "podman"), ("sandbox", "docker")]), value_parser = image)]
    image: Option<String>,
    /// An argument for the engine's `run`, as --engine-arg=--memory=2g; those before an argument `run` go before the
    /// engine's `run`
    #[arg(long = "engine-arg", value_name = "ARG", allow_hyphen_values = true)]
    engine_args: Vec<OsString>,
    /// Which calls may be made: ask (what only reads, and the rest if a person allows it), readonly, open (all), or a
    /// policy of footbridge.toml
    #[arg(long, value_name = "NAME", default_value = "ask")]
    policy: String,
    /// A service of footbridge.toml that CMD may use, besides those of its policy; may be given several times
    #[arg(long = "service", value_name = "NAME")]
    services: Vec<String>,
    /// Has this agent use the bridge as an MCP server, besides tool-cli; CMD starts the agent itself
    #[arg(long, value_parser = ToldAgent, value_name = "AGENT")]
    agent: Option<Agent>,
    /// A limit of this run's own, as in calls.per_second=5; docs/limits.md has all
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<Override>,
    /// A variable that CMD gets too, with this value or its own
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// A folder or file that CMD may write too, besides the folder that it starts in; with net and bwrap
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// Something that CMD sees, to read, although it would be hidden, as credentials are; with net and bwrap
    #[arg(long, value_name = "PATH")]
    show: Vec<PathBuf>,
    /// Lets CMD make user namespaces, as another sandbox in this one needs; in a container as far as its engine lets it
    #[arg(long)]
    allow_user_namespaces: bool,
    /// Something to find this run by in the record
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What is missing where the command reaches neither a server nor a service.
fn reaches_nothing(config: &Config) -> String {
    match config.services.first() {
        Some(one) => {
            format!(
                "the command reaches nothing: name a service, as in --service {}, or a servers file with --config",
                one.name
            )
        }
        None => "no MCP server is configured: name a servers file with --config".to_owned(),
    }
}

pub(super) fn main(args: RunArgs) -> anyhow::Result<i32> {
    // Standard error is CMD's too: only what the operator must know, unless `FOOTBRIDGE_LOG` asks for more.
    crate::log::start("warn,rmcp=off")?;
    check_flags(&args)?;
    let labels = labels(args.labels)?;
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    let services = WantedServices::OfSession { names: args.services.clone(), policy: args.policy.clone() };
    let wanted = WantedParts { servers: None, services };
    let writable = args.sandbox.writable(&args.engine_args, &args.write);
    let (config, folders) = load_config_of(&args.files, writable.clone(), wanted)?;
    say_what_is_left_out(&config);
    NoConfiguration::check(&config)?;
    let policy = config.policies.get(&args.policy)?;
    let mut services = known(&config, &args.services)?;
    services.extend(policy.services().iter().cloned());
    let said = sources::said(&config.looked);
    said.iter().for_each(|line| report::note(line));
    let given = of_names(&config, &services)?;
    environment_notes(&given).iter().for_each(|note| report::note(&note.to_string()));
    given.iter().for_each(note_unusable);
    if config.servers.is_empty() && services.is_empty() {
        tracing::warn!("{}", reaches_nothing(&config));
    }
    let env: Vec<Asked> = args.env.into_iter().map(asked).collect();
    note_unset(&env);
    let run_this = Run {
        config,
        policy,
        sandbox: args.sandbox,
        image: args.image,
        writable,
        engine_args: args.engine_args,
        env,
        write: args.write,
        show: args.show,
        nesting: if args.allow_user_namespaces { Nesting::Allowed } else { Nesting::Refused },
        labels,
        services,
        agent: args.agent,
        limits: Overrides::each_once(args.limits)?,
        command: args.command,
    };
    raise(needed(1, &run_this.config.servers, &run_this.config.limits));
    let runtime = super::runtime()?;
    let status = runtime.block_on(run(run_this, &folders));
    runtime.shutdown_background();
    status
}

/// Says of which variables there is no value to hand on.
fn note_unset(env: &[Asked]) {
    for name in env.iter().filter(|one| one.value.is_none()).map(|one| &one.name) {
        if std::env::var_os(name).is_none() {
            report::note(&format!("--env {name}: this variable is not set here, so CMD does not get it"));
        }
    }
}

fn note_unusable(service: &ServiceSpec) {
    if let Some(why) = &service.lacks_credential {
        report::note(&format!("service \"{}\" cannot be used: {why}", service.name));
    }
}

/// Refuses flags that mean nothing in this sandbox.
fn check_flags(args: &RunArgs) -> Result<(), IdleFlags> {
    let given = args.image.is_some() || !args.engine_args.is_empty();
    if given && args.sandbox.engine().is_none() {
        return Err(IdleFlags::Container);
    }
    let given = !args.write.is_empty() || !args.show.is_empty();
    if given && !args.sandbox.shows_host_files() {
        return Err(IdleFlags::HostFiles);
    }
    if args.allow_user_namespaces && args.sandbox == Sandbox::None {
        return Err(IdleFlags::Sandbox);
    }
    Ok(())
}

/// Flags that mean nothing here.
#[derive(Debug, thiserror::Error)]
pub(super) enum IdleFlags {
    /// Without a container.
    #[error("--image and --engine-arg are for containers: add --sandbox podman or --sandbox docker")]
    Container,
    /// Without the host's files.
    #[error(
        "--write and --show are for --sandbox net and bwrap: without a sandbox CMD may do all that its user may, and a \
         container gets files by --engine-arg=--volume=FROM:TO"
    )]
    HostFiles,
    /// Without any sandbox.
    #[error("--allow-user-namespaces is for sandboxes: without one CMD may make them as its user may")]
    Sandbox,
}

fn asked(text: OsString) -> Asked {
    let bytes = text.into_vec();
    let (name, value) = match bytes.iter().position(|b| *b == b'=') {
        Some(at) => (&bytes[..at], Some(OsString::from_vec(bytes[at + 1..].to_vec()))),
        None => (&bytes[..], None),
    };
    Asked { name: String::from_utf8_lossy(name).into_owned(), value }
}

/// Reads an agent, and offers those that can be told. The others have a refusal of their own.
#[derive(Debug, Clone)]
struct ToldAgent;

impl TypedValueParser for ToldAgent {
    type Value = Agent;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Agent, clap::Error> {
        match value.to_str().and_then(|name| Agent::from_str(name, false).ok()) {
            Some(agent) => Ok(agent),
            None => {
                let offered = PossibleValuesParser::new(Agent::TOLD);
                // Of these every name is an agent's, so this is the error.
                let word = offered.parse_ref(command, arg, value)?;
                Agent::from_str(&word, false).map_err(|what| command.clone().error(ErrorKind::InvalidValue, what))
            }
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Agent::TOLD.into_iter().map(PossibleValue::new)))
    }
}

fn image(text: &str) -> Result<String, NoImage> {
    if text.is_empty() || text.starts_with('-') { Err(NoImage) } else { Ok(text.to_owned()) }
}

/// Not the name of an image.
#[derive(Debug, thiserror::Error)]
#[error("write a name such as debian:12")]
struct NoImage;
