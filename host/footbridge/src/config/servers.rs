//! Servers files: `{"mcpServers": {NAME: {...}}}`, as other programs keep them.
//!
//! Keys of an entry that are not known here belong to those programs: they are noted, never refused. Everything else
//! that is wrong is collected, so that one look shows all of it.

use std::{collections::BTreeMap, ffi::OsString, path::Path};

use footbridge_proto::{json, vars::GUEST_PREFIX};
use http::HeaderName;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    commands::Commands,
    exposed::{self, Exposed, Starting},
    programs::{in_full, not_found},
    secrets::{Gathered, Reader, SecretError, Written},
};
use footbridge_core::settings_file::Mistake;
use footbridge_core::{names::ServerName, secret::Secret};
use footbridge_mcp::{HttpSpec, ProtocolChoice, ServerSpec, TransportSpec};
use footbridge_processes::launch::ProgramSpec;

/// Variables of the harness that every server gets.
const PASSED: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Beginnings of further ones.
const PASSED_PREFIXES: [&str; 3] = ["LC_", "XDG_", "SSL_CERT_"];
/// Ends of further ones, in either case.
const PASSED_SUFFIXES: [&str; 2] = ["_PROXY", "_proxy"];
/// Words in a variable's name that make its literal value one to take out of what servers say.
const SECRET_WORDS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// Programs that gain privileges, or that are nothing without one that does.
const GAINING: [&str; 5] = ["podman", "buildah", "sudo", "su", "pkexec"];

/// What a servers file says.
#[derive(Debug, Default)]
pub(super) struct ServersFile {
    pub(super) servers: Vec<ServerSpec>,
    pub(super) gathered: Gathered,
    pub(super) mistakes: Vec<Mistake>,
    /// Keys that are not known here, and entries that are turned off.
    pub(super) notes: Vec<Mistake>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, rename = "mcpServers")]
    servers: BTreeMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<Written>,
    #[serde(default)]
    env: BTreeMap<String, Written>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Written>,
    protocol: Option<String>,
    #[serde(default)]
    allow_private: bool,
    #[serde(default = "yes")]
    confine: bool,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    trust_folder: bool,
    #[serde(flatten)]
    others: BTreeMap<String, serde::de::IgnoredAny>,
}

fn yes() -> bool {
    true
}

/// What is wrong with one entry.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error(transparent)]
    Name(#[from] footbridge_core::names::BadServerName),
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
    #[error("it has neither \"command\" nor \"url\": write the program to start, or the address to call")]
    Neither,
    #[error("it has both \"command\" and \"url\": keep one")]
    Both,
    #[error("type \"{0}\" is not known: \"stdio\" and \"http\" are")]
    Kind(String),
    #[error("the old SSE transport is not supported: use the server's streamable HTTP address and type \"http\"")]
    Sse,
    #[error("protocol \"{0}\" is not known: \"initialize\", \"discover\" and \"auto\" are")]
    Protocol(String),
    #[error("\"{0}\" is not an http or https URL")]
    Url(String),
    #[error("http without TLS is only for loopback addresses: use https, or http://127.0.0.1:PORT")]
    PlainHttp,
    #[error("\"{0}\" is not the name of a header")]
    Header(String),
    #[error("\"{0}\": {1}")]
    Secret(String, SecretError),
    #[error("{0}Move it out of there, or add \"trustFolder\": true if all that guests write there may run")]
    Exposed(Exposed),
}

/// Reads the text of a servers file.
pub(super) fn read(
    path: &Path,
    text: &str,
    var: &dyn Fn(&str) -> Option<OsString>,
    vars: &[(String, String)],
    commands: &Commands,
) -> ServersFile {
    let mut found = ServersFile::default();
    let wrong = |line, what: String| Mistake { file: path.to_owned(), line, what };
    if let Err(error) = json::check(text.as_bytes(), json::MAX_BODY_DEPTH) {
        let line = serde_json::from_str::<serde::de::IgnoredAny>(text).err().map(|e| e.line());
        found.mistakes.push(wrong(line, format!("it does not parse: {error}")));
        return found;
    }
    let file: File<'_> = match serde_json::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            let what = format!("expected {{\"mcpServers\": {{NAME: {{...}}}}}}: {error}");
            found.mistakes.push(wrong(Some(error.line()), what));
            return found;
        }
    };
    let base = path.parent().unwrap_or(Path::new("/"));
    let mut reader = Reader { var, base, commands, gathered: Gathered::default() };
    for (name, raw) in &file.servers {
        let line = Some(line_of(text, raw.get()));
        match entry(name, raw, &mut reader, vars) {
            Ok((spec, unknown)) => {
                found.notes.extend(unknown.into_iter().map(|note| wrong(line, format!("server \"{name}\": {note}"))));
                found.servers.extend(spec);
            }
            Err(error) => found.mistakes.push(wrong(line, format!("server \"{name}\": {error}"))),
        }
    }
    found.gathered = reader.gathered;
    found
}

/// The line that a part of a text starts on.
fn line_of(text: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    1 + text.bytes().take(offset).filter(|b| *b == b'\n').count()
}

fn entry(
    name: &str,
    raw: &RawValue,
    reader: &mut Reader<'_>,
    vars: &[(String, String)],
) -> Result<(Option<ServerSpec>, Vec<String>), EntryError> {
    let name: ServerName = name.parse()?;
    let entry: Entry = serde_json::from_str(raw.get())?;
    let mut notes: Vec<String> = entry.others.keys().map(|key| format!("key \"{key}\" is not known here")).collect();
    if entry.disabled {
        notes.push("it is turned off by \"disabled\"".to_owned());
        return Ok((None, notes));
    }
    let transport = match (entry.kind.as_deref(), &entry.command, &entry.url) {
        (Some("sse"), ..) => return Err(EntryError::Sse),
        (_, Some(_), Some(_)) => return Err(EntryError::Both),
        (None | Some("stdio"), Some(command), None) => {
            notes.extend(entry.confine.then(|| gains_privileges(command)).flatten());
            let spec = stdio(command, &entry, reader, vars)?;
            let path = spec.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.expose());
            notes.extend(not_found(&spec.command, spec.cwd.as_deref(), path));
            notes.extend(relative_file(&spec, reader.base));
            TransportSpec::Stdio(spec)
        }
        (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
            TransportSpec::Http(http(url, &entry.headers, entry.allow_private, reader)?)
        }
        (Some("stdio" | "http" | "streamable-http" | "streamableHttp") | None, ..) => return Err(EntryError::Neither),
        (Some(kind), ..) => return Err(EntryError::Kind(kind.to_owned())),
    };
    let protocol = match entry.protocol.as_deref() {
        None | Some("initialize") => ProtocolChoice::Initialize,
        Some("discover") => ProtocolChoice::Discover,
        Some("auto") => ProtocolChoice::Auto,
        Some(other) => return Err(EntryError::Protocol(other.to_owned())),
    };
    Ok((Some(ServerSpec { name, transport, protocol }), notes))
}

/// Says that a program, by its name, is of no use without the privileges that it gains.
fn gains_privileges(command: &str) -> Option<String> {
    let name = Path::new(command).file_name()?.to_str().filter(|name| GAINING.contains(name))?;
    Some(format!("{name} gains privileges when it starts, which a confined program cannot: add \"confine\": false"))
}

/// Says that an argument is no file where the server starts, and is one beside the file that it is written in.
fn relative_file(spec: &ProgramSpec, base: &Path) -> Option<String> {
    let is_meant = |arg: &&str| spec.cwd.is_none() && Path::new(arg).is_relative() && base.join(arg).is_file();
    let arg = spec.args.iter().map(Secret::expose).find(is_meant)?;
    Some(format!(
        "it starts in an empty folder, in which there is no {arg}: write the whole path, or name a folder with \"cwd\""
    ))
}

fn stdio(
    command: &str,
    entry: &Entry,
    reader: &mut Reader<'_>,
    vars: &[(String, String)],
) -> Result<ProgramSpec, EntryError> {
    let at = |what: &str| {
        let what = what.to_owned();
        move |error| EntryError::Secret(what, error)
    };
    let mut env: BTreeMap<String, Secret> = vars
        .iter()
        .filter(|(name, _)| is_passed(name))
        .map(|(name, value)| (name.clone(), Secret::new(value)))
        .collect();
    for (name, written) in &entry.env {
        let value = reader.read(written).map_err(at(name))?;
        let name_tells = SECRET_WORDS.iter().any(|word| name.to_ascii_uppercase().contains(word));
        env.insert(name.clone(), if name_tells { reader.keep(value.expose()) } else { value });
    }
    env.retain(|name, _| !name.starts_with(GUEST_PREFIX));
    let args = entry.args.iter().map(|arg| reader.read(arg).map_err(at("args"))).collect::<Result<_, _>>()?;
    let cwd = entry.cwd.as_ref().map(|cwd| reader.text(cwd).map_err(at("cwd"))).transpose()?;
    let cwd = cwd.map(|cwd| reader.base.join(cwd.expose()));
    let command = reader.text(command).map_err(at("command"))?.expose().to_owned();
    let command = if cwd.is_none() { in_full(reader.base, &command) } else { command };
    let mut spec = ProgramSpec { command, args, env: env.into_iter().collect(), cwd, confine: entry.confine };
    if !entry.trust_folder {
        keep_out_of_reach(&mut spec, entry, reader)?;
    }
    Ok(spec)
}

/// Leaves out of its own PATH what guests write, and refuses it where a guest could have it run something.
fn keep_out_of_reach(spec: &mut ProgramSpec, entry: &Entry, reader: &Reader<'_>) -> Result<(), EntryError> {
    let writable = reader.commands.writable();
    if let Some((_, path)) = spec.env.iter_mut().find(|(name, _)| name == "PATH") {
        *path = Secret::new(writable.search_path(path.expose()).kept.unwrap_or_default());
    }
    spec.env.retain(|(name, value)| name != "PATH" || !value.expose().is_empty());
    let plain = |secret: &Secret| secret.expose().to_owned();
    let args: Vec<String> = spec.args.iter().map(plain).collect();
    let named = spec.env.iter().filter(|(name, _)| entry.env.contains_key(name));
    let variables: Vec<(String, String)> = named.map(|(name, value)| (name.clone(), plain(value))).collect();
    let path = spec.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.expose());
    let (command, cwd) = (&spec.command, spec.cwd.as_deref());
    let starting = Starting { command, args: &args, cwd, variables: &variables, path };
    exposed::find(starting, writable).map_or(Ok(()), |exposed| Err(EntryError::Exposed(exposed)))
}

/// An address as it is written, and its headers.
pub(super) fn http(
    url: &str,
    written: &BTreeMap<String, Written>,
    allow_private: bool,
    reader: &mut Reader<'_>,
) -> Result<HttpSpec, EntryError> {
    let text = reader.text(url).map_err(|error| EntryError::Secret("url".to_owned(), error))?;
    let parsed = url::Url::parse(text.expose()).ok().filter(|u| matches!(u.scheme(), "http" | "https") && u.has_host());
    let parsed = parsed.ok_or_else(|| EntryError::Url(url.to_owned()))?;
    if parsed.scheme() == "http" && !is_loopback(&parsed) {
        return Err(EntryError::PlainHttp);
    }
    let mut headers = Vec::new();
    for (name, written) in written {
        let value = reader.read(written).map_err(|error| EntryError::Secret(name.clone(), error))?;
        let name: HeaderName = name.parse().map_err(|_| EntryError::Header(name.clone()))?;
        headers.push((name, reader.keep(value.expose())));
    }
    Ok(HttpSpec { url: parsed, headers, allow_private })
}

fn is_loopback(url: &url::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether servers get this variable of the harness.
pub(super) fn is_passed(name: &str) -> bool {
    !name.starts_with(GUEST_PREFIX)
        && (PASSED.contains(&name)
            || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || PASSED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)))
}

#[cfg(test)]
mod tests;
