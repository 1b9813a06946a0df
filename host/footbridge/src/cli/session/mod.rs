//! `footbridge session`: what an operator asks of the daemon about its sessions; of a run, about the one that it has.
//!
//! Exit status: 0 done; 1 the daemon refuses, or there is none; 2 a wrong command line.

mod show;
mod token;

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::Context as _;
use clap::{Args, Subcommand, value_parser};
use footbridge_proto::{endpoint::Endpoint, text::Escaped};

use super::{label, labels};
use crate::{
    config::folders::Folders,
    control::{
        self,
        client::{ControlClient, ControlClientError},
        wire::{CreateSession, EnsureSession, LimitSession, ListSessions, RevokeSession, RotateSession, ShowSession},
    },
    oneshot::via::OfHarness,
    report,
};
use footbridge_core::{
    human::parse_duration,
    limits::overrides::{Override, Overrides},
    names::SessionName,
};
use footbridge_processes::sys;
use show::WithState;
use token::{Existing, TokenFile, TokenOutput};

/// How long a harness is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Status when the daemon refuses, or does not answer.
pub(super) const REFUSED: i32 = 1;

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// Open a session for one sandbox, and show its token this once
    #[command(after_help = EXAMPLES)]
    Create(Box<CreateArgs>),
    /// Open a session, or show the one that is there if it is as asked for: for scripts that may run again
    ///
    /// One that is there and differs is an error that names what differs.
    #[command(after_help = "Examples:
  footbridge session ensure coder --service anthropic --env-file coder.env
  footbridge session ensure agent-1 --ttl 8h --json")]
    Ensure(Box<CreateArgs>),
    /// Show all sessions
    #[command(after_help = "Examples:
  footbridge session list
  footbridge session list --json | jq -r .name")]
    List {
        /// Print JSON, one session a line
        #[arg(long)]
        json: bool,
    },
    /// Show one session
    #[command(after_help = "Examples:
  footbridge session show agent-1
  footbridge session show agent-1 --json")]
    Show {
        /// Its name
        name: SessionName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a session another token: the old one ends at once, calls that are running go on. A session's own folder has
    /// the new one at once, and a file that is named is replaced as a whole
    #[command(after_help = "Examples:
  footbridge session rotate agent-1
  footbridge session rotate coder --env-file coder.env")]
    Rotate {
        /// Its name
        name: SessionName,
        #[command(flatten)]
        output: TokenOutput,
    },
    /// Give an open session other budgets, also one of a run; what it has spent stays spent
    #[command(after_help = "Examples:
  footbridge session limit agent-1 budget.tokens=4000000
  footbridge session limit run-4711 budget.requests=0 budget.tokens=0        no budget any more

Exit status: 0 done; 1 it is refused, or nobody has such a session; 2 a wrong command line.")]
    Limit {
        /// Its name
        name: SessionName,
        /// budget.requests, budget.tokens, budget.service_bytes or budget.tunnel_bytes, and how much it may be in all;
        /// 0 is no budget
        #[arg(value_name = "NAME=VALUE", required = true)]
        limits: Vec<Override>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session: its connections are cut, its calls cancelled, its sockets removed
    #[command(after_help = "Example:
  footbridge session revoke agent-1")]
    Revoke {
        /// Its name
        name: SessionName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

const EXAMPLES: &str = "Examples:
  footbridge session create agent-1
      a Unix socket in a folder of its own; mount that folder (read-only will do) into a container
  footbridge session create agent-1 --socket-mode 0666
      for a container whose users are remapped: the folder above the mounted one stays closed to others
  footbridge session create build --listen unix:/srv/build/footbridge.sock --socket-mode 0666 --allow-uid 1001
      for another user of this machine, in a folder that both can enter
  footbridge session create vm-4 --listen vsock:any:7179 --peer-cid 4 --ttl 8h
  footbridge session create slow-1 --limit calls.per_second=5 --limit calls.result_bytes='1 MiB'
  footbridge session create coder --service anthropic --env-file coder.env
  footbridge session create job --with-pid $$ --env-file job.env
  footbridge session create dev --listen tcp:127.0.0.1:7179 --token-file token

Exit status: 0 done; 1 the daemon refuses, or there is none; 2 a wrong command line.";

/// What is said where others may connect to a socket, and cannot get to it.
const OWN_FOLDER: &str = "this socket's folder is closed to other users of this machine: others get in where the folder \
is mounted, as users of a container do; for users of this machine use --listen unix:/PATH, in a folder that they can enter";

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Its name: 1 to 32 of a-z, 0-9 and -
    name: SessionName,
    /// Where it listens: unix:/PATH, vsock:any:PORT, vsock-mux:/PATH:PORT or tcp:127.0.0.1:PORT; may be given several
    /// times. Default: a Unix socket in a folder of its own
    #[arg(long, value_name = "ENDPOINT")]
    listen: Vec<Endpoint>,
    /// The virtual machine that may come in over vsock, by its context id; may be given several times
    #[arg(long, value_name = "CID")]
    peer_cid: Vec<u32>,
    /// Which calls it may make: ask (what only reads, and the rest if a person allows it), readonly, open (all), or a
    /// policy of footbridge.toml
    #[arg(long, value_name = "NAME", default_value = "ask")]
    policy: String,
    /// End it after this time: 90s, 15m, 8h, 7d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,
    /// End it when this process ends
    #[arg(long, value_name = "PID")]
    with_pid: Option<i32>,
    /// Something to find it by
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// A service of the configuration that it may use; may be given several times
    #[arg(long = "service", value_name = "NAME")]
    services: Vec<String>,
    /// A limit of its own, as in calls.per_second=5; docs/limits.md has all. May be given several times
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<Override>,
    /// The mode of its Unix sockets; 0666 where the users of a container are remapped
    #[arg(long, value_name = "MODE", value_parser = mode, default_value = "0600")]
    socket_mode: u32,
    /// The owner of its Unix sockets, by uid on this machine, instead of you: a VMM's or container's user. Only root
    /// can give files away
    #[arg(long, value_name = "UID", value_parser = value_parser!(u32).range(..i64::from(u32::MAX)))]
    socket_owner: Option<u32>,
    /// A user who may connect to its Unix sockets besides you, by uid on this machine; with one, nobody else may. The
    /// mode has to let them in too. May be given several times
    #[arg(long, value_name = "UID", value_parser = value_parser!(u32).range(..i64::from(u32::MAX)))]
    allow_uid: Vec<u32>,
    #[command(flatten)]
    output: TokenOutput,
}

pub(super) fn main(command: SessionCommand) -> anyhow::Result<i32> {
    let folders = Folders::of_this_user()?;
    if let SessionCommand::Create(args) | SessionCommand::Ensure(args) = &command {
        labels(args.labels.clone())?;
        Overrides::each_once(args.limits.clone())?;
    }
    if let SessionCommand::Limit { limits, .. } = &command {
        Overrides::each_once(limits.clone())?;
    }
    Ok(or_refused(run(command, &folders.runtime).map(|()| 0)))
}

/// The status of what was done, or of what was refused, which is said.
pub(super) fn or_refused(done: anyhow::Result<i32>) -> i32 {
    done.unwrap_or_else(|error| {
        report::error(&error);
        REFUSED
    })
}

/// Gives a session of the daemon, or of a run, other budgets.
fn limit(runtime: &Path, name: &SessionName, limits: &Overrides, json: bool) -> anyhow::Result<()> {
    let asked = LimitSession { session: name.to_string(), limits: limits.written() };
    let limited = OfHarness { runtime, session: name.as_str() }.ask(&asked, PATIENCE, |_, _| {})?;
    if json {
        return Ok(report::out(&show::json_lines(&[limited])?)?);
    }
    match limited.budgets {
        Some(budgets) => report::out(&show::budgets(&budgets))?,
        None => report::note(&format!("session {name} is closed: this holds once it is open")),
    }
    Ok(())
}

fn run(command: SessionCommand, runtime: &Path) -> anyhow::Result<()> {
    let socket = &*control::of_serve(runtime);
    match command {
        SessionCommand::Create(args) => create(socket, *args, false),
        SessionCommand::Ensure(args) => create(socket, *args, true),
        SessionCommand::List { json } => {
            let sessions = connect_and_warn(socket)?.call(&ListSessions {})?;
            Ok(report::out(&if json { show::json_lines(&WithState::all(&sessions))? } else { show::table(&sessions) })?)
        }
        SessionCommand::Show { name, json } => {
            let session = connect_and_warn(socket)?.call(&ShowSession { name: name.to_string() })?;
            Ok(report::out(&if json { show::json_lines(&WithState::all(&[session]))? } else { show::one(&session) })?)
        }
        SessionCommand::Limit { name, limits, json } => limit(runtime, &name, &limits.into_iter().collect(), json),
        SessionCommand::Rotate { name, output } => {
            let file = TokenFile::reserve(&output, Existing::Replaced)?;
            let replaces = file.as_ref().and_then(TokenFile::replaces);
            let rotated = connect(socket)?.call(&RotateSession { name: name.to_string(), replaces })?;
            token::tell(&output, file, &rotated)
        }
        SessionCommand::Revoke { name, json } => {
            let revoked = connect(socket)?.call(&RevokeSession { name: name.to_string() })?;
            if json {
                return Ok(report::out(&show::json_lines(&[revoked])?)?);
            }
            report::note(&format!("session {name} has ended"));
            Ok(())
        }
    }
}

/// Makes a session; one that is to be there in any case may be there already.
fn create(socket: &Path, args: CreateArgs, in_any_case: bool) -> anyhow::Result<()> {
    let output = args.output.clone();
    // First, so that no session is made whose token has nowhere to go.
    let file = TokenFile::reserve(&output, if in_any_case { Existing::Replaced } else { Existing::Stays })?;
    let mut client = connect(socket)?;
    let lets_others_in = args.socket_mode & 0o077 != 0 || args.socket_owner.is_some() || !args.allow_uid.is_empty();
    let is_own_folder = args.listen.is_empty();
    let asked = CreateSession { replaces: file.as_ref().and_then(TokenFile::replaces), ..args.asked() };
    let created = if in_any_case { client.call(&EnsureSession(asked))? } else { client.call(&asked)? };
    token::tell(&output, file, &created)?;
    if lets_others_in && is_own_folder && output.is_for_people() {
        report::note(OWN_FOLDER);
    }
    Ok(())
}

impl CreateArgs {
    /// As the daemon is asked for it.
    fn asked(self) -> CreateSession {
        CreateSession {
            name: self.name.to_string(),
            listen: self.listen.iter().map(ToString::to_string).collect(),
            peer_cids: self.peer_cid,
            policy: self.policy,
            ttl_ms: self.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            pid: self.with_pid,
            labels: self.labels.into_iter().collect::<BTreeMap<_, _>>(),
            services: self.services,
            limits: self.limits.into_iter().collect::<Overrides>().written(),
            socket_mode: self.socket_mode,
            socket_owner: self.socket_owner,
            allow_uids: self.allow_uid,
            replaces: None,
        }
    }
}

/// Connects to the daemon. Only then is this process closed to others: the daemon has to see which namespaces it is in.
pub(super) fn connect(socket: &Path) -> anyhow::Result<ControlClient> {
    let client = ControlClient::connect(socket).map_err(|error: ControlClientError| anyhow::Error::new(error))?;
    sys::harden().context("cannot protect this process from others of the same user")?;
    Ok(client)
}

/// As [`connect`], and says where the daemon could not read its configuration again, or cannot record calls.
fn connect_and_warn(socket: &Path) -> anyhow::Result<ControlClient> {
    let client = connect(socket)?;
    if let Some(failed) = &client.harness.reload_failed {
        report::note(&Escaped(&format!("warning: {failed}")).to_string());
    }
    if let Some(why) = &client.harness.record_failed {
        report::note(
            &Escaped(&format!("warning: calls are refused, since the last record could not be written: {why}"))
                .to_string(),
        );
    }
    Ok(client)
}

fn duration(text: &str) -> Result<Duration, BadDuration> {
    parse_duration(text).filter(|duration| !duration.is_zero()).ok_or(BadDuration)
}

/// A text that is no duration.
#[derive(Debug, thiserror::Error)]
#[error("write a number and s, m, h or d, as in --ttl 8h")]
struct BadDuration;

fn mode(text: &str) -> Result<u32, BadMode> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let mode = if digits { u32::from_str_radix(text, 8).ok() } else { None };
    mode.filter(|mode| mode & !0o777 == 0 && mode & 0o600 == 0o600).ok_or(BadMode)
}

/// A text that is no mode of a socket.
#[derive(Debug, thiserror::Error)]
#[error("write an octal mode that lets its owner in, as in --socket-mode 0666")]
struct BadMode;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_modes_are_read_as_people_write_them() {
        assert_eq!(duration("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(duration("7d").unwrap(), Duration::from_secs(7 * 24 * 3600));
        assert_eq!((mode("0666").unwrap(), mode("600").unwrap()), (0o666, 0o600));
        for bad in ["", "0", "0s", "8", "h", "-1h", "+8h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "0400", "01777", "8", "+600", "0o600", "rw"] {
            assert!(mode(bad).is_err(), "{bad}");
        }
    }
}
