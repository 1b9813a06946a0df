//! Resources and resource templates of one server or of all.
//!
//! A server that fails takes nothing from the others: what they list is there, and the failure is told beside it. For
//! programs the report is the public command's: `status` is `complete`, `partial` or `failed`, and each server is `ok`
//! or has an `error`.

use std::thread;

use footbridge_cli::{
    layout,
    output::{self, NotWritten},
    show,
};
use footbridge_guest::answers::{ListedServers, ResourceSummary};
use footbridge_proto::{text::Escaped, wire::method};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use crate::{asked::Asked, failure::Failure};

/// Servers that are asked at once: a session has so many calls and connections, and one that starts is waited for.
const AT_ONCE: usize = 8;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// `resource list`.
    Resources,
    /// `resource templates`.
    Templates,
    /// `prompt list`.
    Prompts,
}

/// A listing, with its entries as they came.
#[derive(Deserialize)]
struct Listing {
    #[serde(alias = "templates", alias = "prompts")]
    resources: Vec<Box<RawValue>>,
    #[serde(default)]
    partial: Vec<String>,
}

/// What one server answered.
struct Answered {
    server: String,
    listing: Result<Listing, Failure>,
}

#[derive(Serialize)]
struct Report<'a> {
    kind: &'static str,
    status: &'static str,
    results: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    server: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<&'a [Box<RawValue>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    templates: Option<&'a [Box<RawValue>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<&'a [Box<RawValue>]>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    partial: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl Listed {
    fn method(self) -> &'static str {
        match self {
            Self::Resources => method::LIST_RESOURCES,
            Self::Templates => method::LIST_RESOURCE_TEMPLATES,
            Self::Prompts => method::LIST_PROMPTS,
        }
    }

    fn member(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "templates",
            Self::Prompts => "prompts",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Resources => "resource",
            Self::Templates => "resource template",
            Self::Prompts => "prompt",
        }
    }
}

/// Lists what a server has, or what all have.
pub(crate) fn list(asked: &mut Asked, what: Listed, server: Option<String>) -> Result<(), Failure> {
    let only = server.is_some();
    let servers = match server {
        Some(server) => vec![server],
        None => names(asked)?,
    };
    let answered = ask_all(asked, what, &servers);
    if asked.json {
        return report(what, answered);
    }
    if servers.is_empty() {
        return Ok(output::print(show::NO_SERVERS)?);
    }
    print(what, answered, only)
}

/// The one server that there is, for what is asked of one.
pub(crate) fn only_server(asked: &mut Asked) -> Result<String, Failure> {
    let mut names = names(asked)?;
    match (names.pop(), names.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(last), false) => Err(Failure::WhichServer([names, vec![last]].concat())),
        (None, _) => Err(Failure::NoServer),
    }
}

fn names(asked: &mut Asked) -> Result<Vec<String>, Failure> {
    let (_, list) = asked.get::<ListedServers>(method::LIST_SERVERS, &json!({}))?;
    Ok(list.servers.into_iter().map(|server| server.name).collect())
}

fn ask_all(asked: &Asked, what: Listed, servers: &[String]) -> Vec<Answered> {
    let ask = |server: &String| {
        let listing = asked.clone().get::<Listing>(what.method(), &json!({ "server": server }));
        Answered { server: server.clone(), listing: listing.map(|(_, listing)| listing) }
    };
    let mut answered = Vec::with_capacity(servers.len());
    for some in servers.chunks(AT_ONCE) {
        thread::scope(|scope| {
            // Without a thread for one it is asked here.
            let started: Vec<_> = some
                .iter()
                .map(|server| (server, thread::Builder::new().spawn_scoped(scope, move || ask(server)).ok()))
                .collect();
            for (server, thread) in started {
                answered.push(thread.and_then(|thread| thread.join().ok()).unwrap_or_else(|| ask(server)));
            }
        });
    }
    answered
}

fn status(answered: &[Answered]) -> &'static str {
    let failed = answered.iter().filter(|one| one.listing.is_err()).count();
    let lacks = answered.iter().any(|one| one.listing.as_ref().is_ok_and(|listing| !listing.partial.is_empty()));
    match failed {
        0 if !lacks => "complete",
        n if n > 0 && n == answered.len() => "failed",
        _ => "partial",
    }
}

impl Answered {
    fn entry(&self, what: Listed) -> Entry<'_> {
        let listed = self.listing.as_ref().ok();
        let entries = listed.map(|listing| listing.resources.as_slice());
        Entry {
            server: &self.server,
            ok: self.listing.is_ok(),
            resources: entries.filter(|_| what == Listed::Resources),
            templates: entries.filter(|_| what == Listed::Templates),
            prompts: entries.filter(|_| what == Listed::Prompts),
            partial: listed.map_or(&[], |listing| &listing.partial),
            error: self.listing.as_ref().err().map(Failure::to_json),
        }
    }
}

fn report(what: Listed, answered: Vec<Answered>) -> Result<(), Failure> {
    let status = status(&answered);
    let report = Report { kind: what.member(), status, results: answered.iter().map(|one| one.entry(what)).collect() };
    let report = serde_json::value::to_raw_value(&report).map_err(|e| NotWritten::Stdout(e.into()))?;
    output::print(&(layout::one_line(&report) + "\n"))?;
    all_failed(answered)
}

/// The first failure, which has been told, where there is nothing else.
fn all_failed(answered: Vec<Answered>) -> Result<(), Failure> {
    if status(&answered) != "failed" {
        return Ok(());
    }
    let first = answered.into_iter().find_map(|one| one.listing.err());
    first.map_or(Ok(()), |failure| Err(Failure::Told(failure.exit_code())))
}

fn print(what: Listed, mut answered: Vec<Answered>, only: bool) -> Result<(), Failure> {
    if only && let Some(Answered { listing: Err(_), .. }) = answered.first() {
        return answered.remove(0).listing.map(|_| ());
    }
    let mut is_first = true;
    for Answered { server, listing } in &answered {
        match listing {
            Ok(listing) => {
                let blank = if std::mem::take(&mut is_first) { "" } else { "\n" };
                let text = match what {
                    Listed::Prompts => show::prompts(server, &entries(&listing.resources)),
                    _ => show::resources(server, what.label(), &entries::<ResourceSummary>(&listing.resources)),
                };
                output::print(&format!("{blank}{text}"))?;
                output::print_error(&show::partial(server, &listing.partial));
            }
            Err(failure) => output::print_error(&format!("{} — {}\n", Escaped(server), failure.shown())),
        }
    }
    let failed = answered.iter().filter(|one| one.listing.is_err()).count();
    if failed > 0 && failed < answered.len() {
        let (label, all) = (what.label(), answered.len());
        output::print_error(&format!("Warning: partial {label} discovery ({failed}/{all} server(s) failed).\n"));
    }
    all_failed(answered)
}

/// What of entries is shown; one that is none of the protocol is left out.
fn entries<T: DeserializeOwned>(raw: &[Box<RawValue>]) -> Vec<T> {
    raw.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect()
}
