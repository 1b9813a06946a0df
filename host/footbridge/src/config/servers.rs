//! What entries of servers files mean: programs and addresses, with their secrets.
//!
//! Keys of an entry that are not known here belong to other programs: they are noted, never refused. Everything that is
//! wrong is collected, each at its place, so that one look shows all of it.

mod cli;
mod misspelt;
mod program;

use std::collections::{BTreeMap, BTreeSet};

use http::HeaderName;

pub(super) use misspelt::misspelt;
pub(super) use program::NoVariable;

use super::{
    exposed::Exposed,
    fields::Fields,
    node::{Member, Node, WrittenAt},
    secrets::{NotAValue, Reader, SecretError, Written},
    written::WrittenServer,
};
use footbridge_core::{
    hosts::is_loopback,
    names::{BadServerName, ServerName},
    secret::Secret,
    settings_file::Mistake,
};
use footbridge_mcp::{OWN_HEADERS, ProtocolChoice, ServerSpec, TransportSpec};
use footbridge_outbound::{BadAddress, HttpSpec};

/// Keys that other programs have in entries, which are none of ours with a typing error.
const OF_OTHERS: [&str; 10] =
    ["auth", "dev", "envFile", "envs", "icon", "oauth", "roots", "timeout", "tools", "version"];

/// Names of the transport over HTTP.
const HTTP: [&str; 3] = ["http", "streamable-http", "streamableHttp"];

/// The older transport over HTTP.
const SSE: &str = "sse";

/// What an entry means.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    /// Nothing where it is turned off or has a mistake.
    pub(super) spec: Option<ServerSpec>,
    pub(super) mistakes: Vec<Mistake>,
    /// Values that are not there, for want of which it cannot be used.
    pub(super) lacking: Vec<Mistake>,
    /// Keys that are not known here, programs that are not there, an entry that is turned off.
    pub(super) notes: Vec<Mistake>,
}

/// How others write the address of a server.
const FOREIGN_ADDRESSES: [(&str, &str); 2] = [("httpUrl", "gemini"), ("serverUrl", "windsurf")];

/// What is wrong with one entry.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error(transparent)]
    Name(#[from] BadServerName),
    #[error("it has neither \"command\" nor \"url\": write the program to start, or the address to call")]
    Neither,
    #[error(
        "it has neither \"command\" nor \"url\", but {0:?} is how {1} writes an address: take it over with \"footbridge config \
         import\", or write \"url\""
    )]
    Foreign(&'static str, &'static str),
    #[error("it has neither \"command\" nor \"url\", but {0:?}: did you mean \"{1}\"?")]
    Misspelt(String, &'static str),
    #[error("it has both \"command\" and \"url\": keep one")]
    Both,
    #[error("type {kind:?} takes {takes:?}, and {written:?} is there: write {takes:?}, or leave \"type\" out")]
    OtherKind { kind: String, takes: &'static str, written: String },
    #[error("type {0:?} is not known: \"stdio\", \"http\", \"sse\" and \"cli\" are")]
    Kind(String),
    #[error("protocol {0:?} is not known: \"initialize\", \"discover\" and \"auto\" are")]
    Protocol(String),
    #[error("\"{0}\" is not an http or https URL")]
    Url(String),
    #[error("http without TLS is only for loopback addresses: use https, or http://127.0.0.1:PORT")]
    PlainHttp,
    #[error("\"{0}\" is not the name of a header")]
    Header(String),
    #[error("{0}")]
    Address(BadAddress),
    #[error("{1}")]
    HeaderValue(String, BadAddress),
    #[error("{0}")]
    Variable(#[from] program::NoVariable),
    #[error("\"{0}\": {1}")]
    Secret(String, SecretError),
    #[error("\"{0}\": {1}")]
    Value(String, NotAValue),
    #[error("{0}")]
    Cli(cli::BadCli),
    #[error("{0}Move it out of there, or add \"trustFolder\": true if all that guests write there may run")]
    Exposed(Exposed),
}

/// An entry that is being understood.
struct Entry<'n, 'r> {
    fields: Fields<'n>,
    server: &'n WrittenServer,
    reader: &'r mut Reader<'n>,
    /// Variables of the harness.
    vars: &'r [(String, String)],
    notes: Vec<Mistake>,
    /// What is odd about its program and may keep it from starting.
    hint: Option<String>,
}

/// What an entry means, with these variables of the harness.
pub(super) fn meant<'n>(server: &'n WrittenServer, reader: &mut Reader<'n>, vars: &[(String, String)]) -> Meaning {
    let fields = match Fields::of(&server.entry, format!("server {:?}", server.name)) {
        Ok(fields) => fields,
        Err(mistake) => return Meaning { mistakes: vec![mistake], ..Meaning::default() },
    };
    reader.base = server.at.folder();
    let mut entry = Entry { fields, server, reader, vars, notes: Vec::new(), hint: None };
    let spec = entry.spec();
    let Entry { mut fields, mut notes, .. } = entry;
    for (member, meant) in fields.unknown(&OF_OTHERS) {
        let meant = meant.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
        notes.push(fields.note(&member.at, format!("key {:?} is not known here{meant}", member.name)));
    }
    let (lacking, mistakes) = (fields.lacking(), fields.into_mistakes());
    let spec =
        if lacking.is_empty() { spec } else { server.name.parse().ok().map(|name| without(name, server, &lacking)) };
    Meaning { spec: spec.filter(|_| mistakes.is_empty()), mistakes, lacking, notes }
}

/// A server whose entry lacks values: it is there by its name, and says why it cannot be used.
fn without(name: ServerName, server: &WrittenServer, lacking: &[Mistake]) -> ServerSpec {
    let kind = match server.entry.member("type").and_then(|kind| kind.node.text()) {
        Some("cli") => "cli",
        Some(SSE) => SSE,
        _ if server.entry.member("url").is_some() => "http",
        _ => "stdio",
    };
    let why: Vec<String> = lacking.iter().map(ToString::to_string).collect();
    let transport = TransportSpec::Lacking { kind, why: why.join("; ") };
    ServerSpec { name, transport, protocol: ProtocolChoice::default(), disabled_tools: BTreeSet::new(), hint: None }
}

impl<'n> Entry<'n, '_> {
    fn spec(&mut self) -> Option<ServerSpec> {
        let name = self.server.name.parse::<ServerName>();
        let name = name.map_err(|error| self.fields.wrong(&self.server.at, error)).ok();
        // Asked for before anything can be wrong, so that no key of ours counts as unknown.
        let (off, on) = (self.fields.flag("disabled"), self.fields.flag("enabled"));
        let (kind, command, url) = (self.fields.text("type"), self.fields.text("command"), self.fields.text("url"));
        let (protocol, more) = (self.fields.text("protocol"), self.rest());
        let disabled_tools = self.disabled_tools();
        self.note_what_is_not_obeyed();
        if off == Some(true) || on == Some(false) {
            self.reader.entry_aside(&self.server.entry);
            let turned_off = self.fields.note(&self.server.at, "it is turned off");
            self.notes.push(turned_off);
            return None;
        }
        let protocol = self.protocol(protocol);
        let kind = kind.map(|(kind, _)| kind);
        let transport = match (kind, command, url) {
            (_, Some(_), Some(_)) => return self.wrong(EntryError::Both),
            (Some("cli"), command, None) => TransportSpec::Cli(self.wrapped(command, &more)?),
            (None | Some("stdio"), Some((command, at)), None) => {
                TransportSpec::Stdio(self.program(command, at, &more)?)
            }
            (kind, None, Some((url, at))) if kind.is_none_or(|kind| HTTP.contains(&kind)) => {
                TransportSpec::Http(self.http(url, at, &more)?)
            }
            (Some(SSE), None, Some((url, at))) => TransportSpec::Sse(self.http(url, at, &more)?),
            (None, ..) => return self.neither(),
            (Some(kind @ ("stdio" | "cli")), ..) => return self.without(kind, "command"),
            (Some(kind), ..) if kind == SSE || HTTP.contains(&kind) => return self.without(kind, "url"),
            (Some(kind), ..) => return self.wrong(EntryError::Kind(kind.to_owned())),
        };
        Some(ServerSpec { name: name?, transport, protocol: protocol?, disabled_tools, hint: self.hint.take() })
    }

    fn rest(&mut self) -> Rest<'n> {
        Rest {
            args: self.fields.list("args"),
            env: self.fields.object("env"),
            cwd: self.fields.text("cwd"),
            headers: self.fields.object("headers"),
            confine: self.fields.flag("confine").unwrap_or(true),
            allow_private: self.fields.flag("allowPrivate").unwrap_or(false),
            trust_folder: self.fields.flag("trustFolder").unwrap_or(false),
        }
    }

    /// Names of tools that nobody has.
    fn disabled_tools(&mut self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for node in self.fields.list("disabledTools") {
            match node.text() {
                Some(name) => drop(names.insert(name.to_owned())),
                None => {
                    let what = format!("\"disabledTools\": it is {}, and the name of a tool is expected", node.kind());
                    self.fields.wrong(&node.at, what);
                }
            }
        }
        names
    }

    /// Keys by which other programs call tools without asking: here only a policy can say so.
    fn note_what_is_not_obeyed(&mut self) {
        for key in ["alwaysAllow", "autoApprove"] {
            let Some(member) = self.fields.member(key) else { continue };
            let why = "is not obeyed: what is called without asking is up to the rules of a policy in footbridge.toml";
            let note = self.fields.note(&member.at, format!("{key:?} {why}"));
            self.notes.push(note);
        }
    }

    /// A mistake of the entry as a whole.
    fn wrong<T>(&mut self, error: EntryError) -> Option<T> {
        self.fields.wrong(&self.server.at, error);
        None
    }

    /// No such member as the type takes, perhaps since there is that of another type.
    fn without<T>(&mut self, kind: &str, takes: &'static str) -> Option<T> {
        let written = if takes == "url" { "command" } else { "url" };
        match (self.fields.member(takes), self.fields.member(written)) {
            (None, Some(Member { name, node, .. })) if node.text().is_some() => {
                self.wrong(EntryError::OtherKind { kind: kind.to_owned(), takes, written: name.clone() })
            }
            _ => self.neither(),
        }
    }

    /// Neither a program nor an address, perhaps by a typing error.
    fn neither<T>(&mut self) -> Option<T> {
        // What is there and no text has been said.
        if self.fields.member("command").or(self.fields.member("url")).is_some() {
            return None;
        }
        let is_there = |(key, _): &&(&'static str, &'static str)| self.fields.member(key).is_some();
        if let Some((key, client)) = FOREIGN_ADDRESSES.iter().find(is_there) {
            self.fields.wrong(&self.server.at, EntryError::Foreign(key, client));
            return None;
        }
        let unknown = self.fields.unknown(&OF_OTHERS);
        let meant = unknown
            .iter()
            .find_map(|(member, meant)| Some((member, meant.filter(|m| ["command", "url"].contains(m))?)));
        let error = meant.map(|(member, meant)| (&member.at, EntryError::Misspelt(member.name.clone(), meant)));
        let (at, error) = error.unwrap_or((&self.server.at, EntryError::Neither));
        self.fields.wrong(at, error);
        None
    }

    fn protocol(&mut self, written: Option<(&str, &WrittenAt)>) -> Option<ProtocolChoice> {
        match written {
            None | Some(("initialize", _)) => Some(ProtocolChoice::Initialize),
            Some(("discover", _)) => Some(ProtocolChoice::Discover),
            Some(("auto", _)) => Some(ProtocolChoice::Auto),
            Some((other, at)) => {
                self.fields.wrong(at, EntryError::Protocol(other.to_owned()));
                None
            }
        }
    }

    /// What a part of the entry gives, or a mistake at its place. Paths in it are relative to the file that it is in.
    fn part<T>(&mut self, at: &'n WrittenAt, read: impl FnOnce(&mut Reader<'n>) -> Result<T, EntryError>) -> Option<T> {
        self.reader.base = at.folder();
        let found = read(self.reader);
        self.reader.base = self.server.at.folder();
        match found {
            Ok(found) => Some(found),
            Err(EntryError::Secret(name, why)) if why.is_absent() => {
                self.fields.lacks(at, EntryError::Secret(name, why));
                None
            }
            Err(error) => {
                self.fields.wrong(at, error);
                None
            }
        }
    }

    fn http(&mut self, url: &str, at: &'n WrittenAt, more: &Rest<'n>) -> Option<HttpSpec> {
        let url = self.part(at, |reader| address(url, reader));
        let mut headers = Vec::new();
        for Member { name, node, .. } in more.headers {
            headers.push(self.part(&node.at, |reader| header(name, &value(name, node)?, &OWN_HEADERS, reader)));
        }
        let headers = headers.into_iter().collect::<Option<_>>();
        Some(HttpSpec { url: url?, headers: headers?, allow_private: more.allow_private })
    }
}

/// What an entry says besides what it is.
struct Rest<'n> {
    args: &'n [Node],
    env: &'n [Member],
    cwd: Option<(&'n str, &'n WrittenAt)>,
    headers: &'n [Member],
    confine: bool,
    allow_private: bool,
    trust_folder: bool,
}

/// A value as it is written, which mistakes call by this name.
fn value(name: &str, node: &Node) -> Result<Written, EntryError> {
    Written::of(node).map_err(|error| EntryError::Value(name.to_owned(), error))
}

/// An address as it is written, and its headers, of which the client sets some itself.
pub(super) fn http(
    url: &str,
    written: &BTreeMap<String, Written>,
    ours: &[&str],
    reader: &mut Reader<'_>,
) -> Result<(url::Url, Vec<(HeaderName, Secret)>), EntryError> {
    let url = address(url, reader)?;
    let headers = written.iter().map(|(name, written)| header(name, written, ours, reader));
    Ok((url, headers.collect::<Result<_, _>>()?))
}

fn address(url: &str, reader: &mut Reader<'_>) -> Result<url::Url, EntryError> {
    let text = reader.text(url).map_err(|error| EntryError::Secret("url".to_owned(), error))?;
    let parsed = url::Url::parse(text.expose()).ok().filter(|u| matches!(u.scheme(), "http" | "https") && u.has_host());
    let parsed = parsed.ok_or_else(|| EntryError::Url(without_user(url)))?;
    if parsed.scheme() == "http" && !parsed.host_str().is_some_and(is_loopback) {
        return Err(EntryError::PlainHttp);
    }
    HttpSpec::check_url(&parsed).map_err(EntryError::Address)?;
    Ok(parsed)
}

/// A URL as it is written, but for a user and a password.
fn without_user(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((before, host)) => format!("{}...@{host}", before.split_once("//").map_or("", |_| "//")),
        None => url.to_owned(),
    }
}

fn header(
    name: &str,
    written: &Written,
    ours: &[&str],
    reader: &mut Reader<'_>,
) -> Result<(HeaderName, Secret), EntryError> {
    let value = reader.read(written).map_err(|error| EntryError::Secret(name.to_owned(), error))?;
    let parsed: HeaderName = name.parse().map_err(|_| EntryError::Header(name.to_owned()))?;
    HttpSpec::header_value(&parsed, &value, ours).map_err(|why| EntryError::HeaderValue(name.to_owned(), why))?;
    Ok((parsed, reader.keep(value.expose())))
}

#[cfg(test)]
mod tests;
