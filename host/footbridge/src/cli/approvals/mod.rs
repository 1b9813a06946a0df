//! `footbridge approvals`: what an operator is asked, and answers.
//!
//! All harnesses of this user are looked at, `serve` and each `run`. Exit status: 0 done; 1 it is not there any more,
//! or no harness answers, of `list` not all of them; 2 a wrong command line.

pub(super) mod show;
mod watch;

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    thread,
};

use anyhow::Context as _;
use clap::Subcommand;

use super::{confirm::Asked, session::or_refused};
use crate::{
    approvers::prompt::WORDS,
    config::folders::Folders,
    control::{
        self,
        client::{ControlClient, ControlClientError},
        wire::{
            AllowApproval, By, DenyApproval, ListApprovals, ListRemembered, Method, Refusal, RefusalKind,
            RevokeApproval, ShowApproval,
        },
    },
    report,
};
use footbridge_calls::approval::{ApprovalId, ApprovalInfo, ApprovalShown};
use footbridge_cli::typed::{self, BadTypedArguments};
use footbridge_processes::{sys, terminal::window};

/// Status of a list that is not of all harnesses.
const NOT_ALL: i32 = 1;

/// Columns of what is no terminal.
const UNKNOWN_COLUMNS: u16 = 80;

#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// Show the calls that wait for an answer, or those that are allowed again
    #[command(after_help = "Examples:
  footbridge approvals list
  footbridge approvals list --json | jq -r .id
  footbridge approvals list --remembered")]
    List {
        /// Show the calls that were allowed with --remember, which are made without asking
        #[arg(long)]
        remembered: bool,
        /// Print JSON, one approval a line
        #[arg(long)]
        json: bool,
    },
    /// Show one with its whole arguments
    #[command(after_help = "Example:
  footbridge approvals show ap-0b3f6c1d9a2e4f57")]
    Show {
        /// Its id
        id: ApprovalId,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Allow a call, once; or answer a server's question
    #[command(after_help = ALLOW_HELP)]
    Allow {
        /// Its id
        id: ApprovalId,
        /// Allow exactly this call again too, as long as its session lives and neither tool nor policy change
        #[arg(long, conflicts_with_all = ["fields", "content"])]
        remember: bool,
        /// A field of a server's question; again for each field, and for each value of one that takes several
        #[arg(long = "field", value_name = "NAME=VALUE", value_parser = field)]
        fields: Vec<(String, String)>,
        /// All fields of a server's question, as a JSON object
        #[arg(long, value_name = "JSON", conflicts_with = "fields")]
        content: Option<String>,
        /// On a terminal: neither show the call nor ask for the word, since it was read elsewhere
        #[arg(long)]
        yes: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Deny a call; the same one is refused without asking for a minute
    #[command(after_help = "Examples:
  footbridge approvals deny ap-0b3f6c1d9a2e4f57
  footbridge approvals deny ap-0b3f6c1d9a2e4f57 --cancel")]
    Deny {
        /// Its id
        id: ApprovalId,
        /// Say neither yes nor no to a server's question
        #[arg(long)]
        cancel: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a yes back: the call is not allowed again, and refused without asking for a minute
    #[command(after_help = "Examples:
  footbridge approvals list --remembered
  footbridge approvals revoke ap-0b3f6c1d9a2e4f57

It takes back what was remembered from an approval, and one that was allowed and whose call was not made yet. A call that
was made already stays made.")]
    Revoke {
        /// Its id
        id: ApprovalId,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Wait for calls and answer them, on a terminal
    #[command(after_help = watch_help())]
    Watch {
        /// Do not ask: print each approval that comes or goes, as JSON, one a line
        #[arg(long)]
        json: bool,
    },
}

const ALLOW_HELP: &str = "Examples:
  footbridge approvals allow ap-0b3f6c1d9a2e4f57
  footbridge approvals allow ap-0b3f6c1d9a2e4f57 --field city=Bern --field days=3
  footbridge approvals allow ap-0b3f6c1d9a2e4f57 --content '{\"city\": \"Bern\", \"days\": 3}'

On a terminal all of the call is shown first, and the word is asked for. Without one, whoever starts this has read it.

\"approvals show ID\" says which fields a question has. Fields that are left out have their defaults. Of a question about
an address, allow says that you agree; the address is never opened.";

/// What is said of the words of an answer.
fn watch_help() -> String {
    format!(
        "Examples:
  footbridge approvals watch
  footbridge approvals watch --json

One call is shown at a time; the answer is a word and Enter:
{WORDS}
  quit

A server's question is shown in the same way: allow answers it where its fields need nothing, deny declines it. To fill in
fields, use \"footbridge approvals allow ID --field NAME=VALUE\".

What was typed before a call is shown, and in its first half second, counts for nothing."
    )
}

pub(super) fn main(command: ApprovalsCommand) -> anyhow::Result<i32> {
    let folders = Folders::of_this_user()?;
    Ok(or_refused(run(command, &folders.runtime)))
}

fn run(command: ApprovalsCommand, runtime: &Path) -> anyhow::Result<i32> {
    match command {
        ApprovalsCommand::List { remembered, json } => return list(runtime, remembered, json),
        ApprovalsCommand::Show { id, json } => {
            let shown = ask_all(&mut connect(runtime)?, &ShowApproval { id: id.to_string() })?;
            report::out(&if json { show::json_lines(&[shown])? } else { show::whole(&shown, columns()) })?;
        }
        ApprovalsCommand::Allow { id, remember, fields, content, yes, json } => {
            let content = content.map(object).transpose()?;
            let asked = AllowApproval { id: id.to_string(), remember, by: By::Allow, fields, content };
            let mut clients = connect(runtime)?;
            if !yes && std::io::stdin().is_terminal() {
                confirm(&ask_all(&mut clients, &ShowApproval { id: id.to_string() })?)?;
            }
            ask_all(&mut clients, &asked)?;
            done(id, "allowed", "", json)?;
        }
        ApprovalsCommand::Deny { id, cancel, json } => {
            ask_all(&mut connect(runtime)?, &DenyApproval { id: id.to_string(), by: By::Deny, cancel })?;
            done(id, if cancel { "cancelled" } else { "denied" }, "", json)?;
        }
        ApprovalsCommand::Revoke { id, json } => {
            ask_all(&mut connect(runtime)?, &RevokeApproval { id: id.to_string() })?;
            done(id, "revoked", ": its call is not allowed again", json)?;
        }
        ApprovalsCommand::Watch { json: true } => watch::print(runtime)?,
        ApprovalsCommand::Watch { json: false } => {
            if !is_on_a_terminal() || !window::draws() {
                return Err(NoTerminal.into());
            }
            watch::on_terminal(runtime)?;
        }
    }
    Ok(0)
}

/// Says what an approval is now, and for people what that means.
fn done(id: ApprovalId, state: &str, means: &str, json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(report::out(&show::json_lines(&[serde_json::json!({"id": id.to_string(), "state": state})])?)?);
    }
    report::note(&format!("{id} is {state}{means}"));
    Ok(())
}

/// Shows what all harnesses have. Where one of them does not say, nothing is said of there being none.
fn list(runtime: &Path, remembered: bool, json: bool) -> anyhow::Result<i32> {
    let Answering { mut clients, are_all } = answering_or(runtime, NoHarness)?;
    let (found, none) = if remembered {
        (listed(&mut clients, &ListRemembered {}), "no call is allowed again without asking")
    } else {
        (listed(&mut clients, &ListApprovals {}), "nothing waits for an answer")
    };
    let Listed { found, is_whole } = found;
    let is_whole = is_whole && are_all;
    let text = match (json, found.is_empty()) {
        (true, _) => show::json_lines(&found)?,
        (false, true) if !is_whole => String::new(),
        (false, _) => show::table(&found, none),
    };
    report::out(&text)?;
    Ok(if is_whole { 0 } else { NOT_ALL })
}

fn is_on_a_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Of whoever reads what is written. What goes elsewhere may be shown on a terminal later: a line that is wrapped there
/// would have its rest where labels are.
fn columns() -> u16 {
    window::size(std::io::stdout()).map_or(UNKNOWN_COLUMNS, |(_, columns)| columns)
}

/// There is a person, and nothing to show it on.
#[derive(Debug, thiserror::Error)]
#[error(
    "what would be allowed cannot be shown, as this process has no terminal: with --yes it counts as read elsewhere"
)]
struct NotShown;

/// The person did not say yes to what they saw.
#[derive(Debug, thiserror::Error)]
#[error("nothing was allowed: the word is \"allow\"; it waits on")]
struct NotConfirmed;

/// It was answered, and more than once is not needed.
#[derive(Debug, thiserror::Error)]
#[error("approval {0} was allowed before: its call is made again without asking")]
struct IsRemembered(String);

/// Shows all of what would be allowed, and takes the word for it: what is allowed was on the screen.
fn confirm(shown: &ApprovalShown) -> anyhow::Result<()> {
    if shown.info.is_remembered {
        return Err(IsRemembered(shown.info.id.clone()).into());
    }
    let mut person = Asked::find().ok_or(NotShown)?;
    let text = format!("{}\n", show::whole(shown, person.columns()));
    let agrees = person.agrees(&text, "Nothing was allowed yet.", "allow").context("cannot ask on the terminal")?;
    if agrees { Ok(()) } else { Err(NotConfirmed.into()) }
}

fn field(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, as in city=Bern")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// All fields of a question, as arguments of calls are typed.
fn object(text: String) -> anyhow::Result<serde_json::Value> {
    let raw = typed::arguments(text).map_err(|error| match error {
        BadTypedArguments::NotAnObject(bad) => anyhow::anyhow!("--content: {bad}"),
        other => other.into(),
    })?;
    // Of two members of one name the first would be lost.
    footbridge_proto::json::check(raw.get().as_bytes(), footbridge_proto::json::MAX_BODY_DEPTH)
        .map_err(|bad| anyhow::anyhow!("--content: {bad}"))?;
    Ok(serde_json::from_str(raw.get())?)
}

/// Nobody could answer.
#[derive(Debug, thiserror::Error)]
#[error(
    "approvals are answered on a terminal that can be drawn on (TERM is not dumb): use \"approvals watch --json\" and \
     \"approvals allow\" or \"deny\" without one"
)]
struct NoTerminal;

/// No harness answers.
#[derive(Debug, thiserror::Error)]
#[error(
    "no footbridge is running that can be answered: neither \"footbridge serve\" nor a \"footbridge run\" on a terminal, or \
     with watch = true in [approval] of its footbridge.toml"
)]
pub(super) struct NoHarness;

/// Connects to all harnesses of this user. Only then is this process closed to others: they have to see which
/// namespaces it is in.
fn connect(runtime: &Path) -> anyhow::Result<Vec<ControlClient>> {
    connect_or(runtime, NoHarness)
}

/// As [`connect`], with this error where there is none.
pub(super) fn connect_or(
    runtime: &Path,
    none: impl std::error::Error + Send + Sync + 'static,
) -> anyhow::Result<Vec<ControlClient>> {
    Ok(answering_or(runtime, none)?.clients)
}

/// As [`connect_or`]; says whether these are all that run.
fn answering_or(runtime: &Path, none: impl std::error::Error + Send + Sync + 'static) -> anyhow::Result<Answering> {
    let answering = answering(runtime)?;
    if answering.clients.is_empty() {
        return Err(none.into());
    }
    sys::harden().context("cannot protect this process from others of the same user")?;
    Ok(answering)
}

/// All harnesses of this user that run and answer; those that do not are said.
pub(super) fn running(runtime: &Path) -> anyhow::Result<Vec<ControlClient>> {
    Ok(answering(runtime)?.clients)
}

/// Harnesses that answer.
struct Answering {
    clients: Vec<ControlClient>,
    /// Whether no others run.
    are_all: bool,
}

fn answering(runtime: &Path) -> anyhow::Result<Answering> {
    let Connected { clients, silent } = connected(&control::all(runtime)?, ControlClient::connect);
    let are_all = silent.is_empty();
    for (_, error) in silent {
        report::error(&anyhow::Error::new(error));
    }
    Ok(Answering { clients: clients.into_iter().map(|(_, client)| client).collect(), are_all })
}

/// Harnesses that run, by their sockets.
#[derive(Debug, Default)]
struct Connected {
    clients: Vec<(PathBuf, ControlClient)>,
    /// Those that do not answer, and why.
    silent: Vec<(PathBuf, ControlClientError)>,
}

/// Those of these harnesses that answer, and those that run and do not. They are asked at once: one that hangs holds up
/// no other.
fn connected(
    paths: &[PathBuf],
    connect: impl Fn(&Path) -> Result<ControlClient, ControlClientError> + Sync,
) -> Connected {
    let Connected { mut clients, mut silent } = Connected::default();
    let found = thread::scope(|scope| {
        let connecting: Vec<_> = paths.iter().map(|path| scope.spawn(|| connect(path))).collect();
        connecting.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    for (path, found) in paths.iter().zip(found) {
        match found {
            Ok(Ok(client)) => clients.push((path.clone(), client)),
            // A run that was killed leaves its socket until the next one.
            Ok(Err(ControlClientError::NotRunning(_))) | Err(_) => {}
            Ok(Err(error)) => silent.push((path.clone(), error)),
        }
    }
    Connected { clients, silent }
}

/// What harnesses have.
struct Listed {
    /// The oldest first.
    found: Vec<ApprovalInfo>,
    /// Whether each of them said it.
    is_whole: bool,
}

/// What all of them have of these. One that does not say is named, and has nothing.
fn listed<M: Method<Answer = Vec<ApprovalInfo>>>(clients: &mut [ControlClient], which: &M) -> Listed {
    let mut listed = Listed { found: Vec::new(), is_whole: true };
    for client in clients {
        match client.call(which) {
            Ok(theirs) => listed.found.extend(theirs),
            Err(error) => {
                listed.is_whole = false;
                report::error(&anyhow::Error::new(error).context(harness_of(client)));
            }
        }
    }
    listed.found.sort_by(|a, b| (&a.asked, &a.id).cmp(&(&b.asked, &b.id)));
    listed
}

/// Which harness it is, for people.
pub(super) fn harness_of(client: &ControlClient) -> String {
    format!("{} {}", client.harness.harness, client.harness.pid)
}

/// No harness did what was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoneDid {
    /// All of them say that there is no such approval.
    #[error(transparent)]
    Unknown(Refusal),
    /// Why those did not that gave another reason, each with its name behind it: a line may be cut at its end.
    #[error("{}", .0.iter().map(|(who, why)| format!("{why} ({who})")).collect::<Vec<_>>().join("\n"))]
    Others(Vec<(String, ControlClientError)>),
    /// There is none any more.
    #[error(transparent)]
    Nobody(#[from] NoHarness),
}

/// Asks one after the other until one has done it. One that refuses, or does not answer, keeps none of the others from
/// being asked.
fn ask_all<M: Method>(clients: &mut [ControlClient], request: &M) -> Result<M::Answer, NoneDid> {
    let (mut unknown, mut others) = (None, Vec::new());
    for client in clients {
        match client.call(request) {
            Ok(answer) => return Ok(answer),
            Err(ControlClientError::Refusal(refusal)) if refusal.kind == RefusalKind::NotFound => {
                unknown = Some(refusal)
            }
            Err(error) => others.push((harness_of(client), error)),
        }
    }
    match (others.is_empty(), unknown) {
        (false, _) => Err(NoneDid::Others(others)),
        (true, Some(refusal)) => Err(NoneDid::Unknown(refusal)),
        (true, None) => Err(NoHarness.into()),
    }
}
