//! `footbridge servers`: the MCP servers of all harnesses of this user, and the pins of their tools.
//!
//! `list` and `restart` ask the harnesses that run. Logs are in the state folder. Pins are in the store, which all of them share, so they are looked
//! at and accepted whether a harness runs or not. Exit status: 0 done; 1 it cannot be done; 2 a wrong command line.

pub(in crate::cli) mod difference;
mod lines;
mod logs;
mod pins;
mod show;

use std::path::Path;

use clap::{Args, Subcommand};

use super::{
    approvals::{connect_or, harness_of, show::json_lines},
    session::or_refused,
};
use crate::{
    config::folders::Folders,
    control::{
        client::ControlClientError,
        wire::{ListServers, RefusalKind, RestartServer},
    },
    report,
};
use footbridge_core::digest::Digest;

#[derive(Debug, Subcommand)]
pub(super) enum ServersCommand {
    /// Show the servers of all harnesses that run
    #[command(after_help = "Examples:
  footbridge servers list
  footbridge servers list --json")]
    List {
        /// Print JSON, one server a line
        #[arg(long)]
        json: bool,
    },
    /// Show what a server wrote to its standard error, and what became of it
    Logs(logs::LogsArgs),
    /// End a server and start it afresh, in all harnesses that have it; calls that run on it end, and so does a start
    /// that hangs
    #[command(after_help = "Example:
  footbridge servers restart demo")]
    Restart {
        /// The server's name
        name: String,
        /// Print JSON, one harness that did a line
        #[arg(long)]
        json: bool,
    },
    /// Show what is pinned of servers' tools, what changed, and accept it
    Pins(PinsArgs),
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = PINS_HELP)]
pub(super) struct PinsArgs {
    #[command(subcommand)]
    command: Option<PinsCommand>,
    /// Only of this server
    server: Option<String>,
    /// Print JSON, one pin a line
    #[arg(long)]
    json: bool,
}

const PINS_HELP: &str = "A tool that is not what it was when it was seen first is refused until its change is accepted.
A server with another command, other arguments or another address is another server, also by the same name.

Examples:
  footbridge servers pins                      what is pinned
  footbridge servers pins diff                 what changed, and waits to be accepted
  footbridge servers pins accept demo get_weather
  footbridge servers pins accept demo --all

Works whether a harness runs or not; one that runs notices at once.
Exit status: 0 done; 1 it cannot be done; 2 a wrong command line.";

#[derive(Debug, Subcommand)]
enum PinsCommand {
    /// Show what changed, old and new
    #[command(after_help = "Examples:
  footbridge servers pins diff
  footbridge servers pins diff demo get_weather")]
    Diff {
        /// Only of this server
        server: Option<String>,
        /// Only of this tool
        tool: Option<String>,
        /// Print JSON, one changed tool a line
        #[arg(long)]
        json: bool,
    },
    /// Accept changed definitions: those that it shows, and nothing that comes meanwhile
    #[command(override_usage = "footbridge servers pins accept [OPTIONS] <SERVER> <TOOLS...|--all>", after_help = ACCEPT_HELP)]
    Accept {
        /// The server's name
        server: String,
        #[command(flatten)]
        which: Which,
        /// Of several servers of this name the one whose command, arguments or address contain this
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        origin: Option<String>,
        /// Accept only a definition with this digest, as `diff` shows it; may be given several times
        #[arg(long = "digest", value_name = "DIGEST")]
        digests: Vec<Digest>,
        /// Print JSON instead of the difference, one accepted tool a line
        #[arg(long)]
        json: bool,
    },
    /// Forget pins, for servers or tools that are no more; what is still offered is pinned anew, unseen
    #[command(override_usage = "footbridge servers pins forget [OPTIONS] <SERVER> <TOOLS...|--all>")]
    #[command(after_help = "Examples:
  footbridge servers pins forget demo get_weather
  footbridge servers pins forget old-server --all")]
    Forget {
        /// The server's name
        server: String,
        #[command(flatten)]
        which: Which,
        /// Of several servers of this name the one whose command, arguments or address contain this
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        origin: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

const ACCEPT_HELP: &str = "Prints the difference and accepts exactly that. A definition that changed again in between \
is refused. With --digest, so is one that is another than the one you looked at before.

Examples:
  footbridge servers pins accept demo get_weather now
  footbridge servers pins accept demo --all
  footbridge servers pins accept git --all --origin /srv/project
  footbridge servers pins accept demo get_weather --digest sha256:60303ae2...";

/// Which tools of a server.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The tools' names
    tools: Vec<String>,
    /// All of them
    #[arg(long)]
    all: bool,
}

pub(super) fn main(command: ServersCommand) -> anyhow::Result<i32> {
    let folders = Folders::of_this_user()?;
    let done = match command {
        ServersCommand::List { json } => list(&folders.runtime, json),
        ServersCommand::Logs(args) => logs::main(&args, &folders.state),
        ServersCommand::Restart { name, json } => restart(&folders.runtime, &name, json),
        ServersCommand::Pins(args) => pins::main(args, &folders),
    };
    Ok(or_refused(done.map(|()| 0)))
}

/// No harness has servers.
#[derive(Debug, thiserror::Error)]
#[error(
    "no footbridge is running that has servers: neither \"footbridge serve\" nor a \"footbridge run\"; \"footbridge \
     servers pins\" needs none"
)]
struct NoHarness;

fn list(runtime: &Path, json: bool) -> anyhow::Result<()> {
    let (mut found, mut failed) = (Vec::new(), None);
    for client in &mut connect_or(runtime, NoHarness)? {
        let harness = harness_of(client);
        match client.call(&ListServers {}) {
            Ok(servers) => {
                found.extend(servers.into_iter().map(|info| show::Server { info, harness: harness.clone() }));
            }
            Err(error) => keep_last(&mut failed, anyhow::Error::new(error).context(harness)),
        }
    }
    found.sort_by(|a, b| (&a.info.name, &a.harness).cmp(&(&b.info.name, &b.harness)));
    report::out(&if json { json_lines(&found)? } else { show::servers(&found) })?;
    failed.map_or(Ok(()), Err)
}

/// Says all errors but the last one, which is for the caller to give.
fn keep_last(last: &mut Option<anyhow::Error>, error: anyhow::Error) {
    if let Some(before) = last.replace(error) {
        report::error(&before);
    }
}

/// Has each harness that has it start a server afresh. One that does not keeps none of the others from being asked.
fn restart(runtime: &Path, name: &str, json: bool) -> anyhow::Result<()> {
    let (mut restarted, mut unknown, mut failed) = (Vec::new(), None, None);
    for client in &mut connect_or(runtime, NoHarness)? {
        match client.call(&RestartServer { name: name.to_owned() }) {
            Ok(_) => {
                let harness = harness_of(client);
                if !json {
                    report::note(&format!("{name} is started afresh by {harness}"));
                }
                restarted.push(serde_json::json!({"name": name, "harness": harness}));
            }
            Err(ControlClientError::Refusal(refusal)) if refusal.kind == RefusalKind::NotFound => {
                unknown = Some(refusal);
            }
            Err(error) => {
                keep_last(&mut failed, anyhow::Error::new(error).context(harness_of(client)));
            }
        }
    }
    // Once every one was asked: an output that is gone keeps none of them from it.
    let printed = if json { report::out(&json_lines(&restarted)?) } else { Ok(()) };
    match (failed, unknown) {
        (Some(error), _) => Err(error),
        (None, Some(refusal)) if restarted.is_empty() => Err(refusal.into()),
        _ => Ok(printed?),
    }
}
