//! Servers and pins, as people and as programs read them. All that servers wrote is escaped.

use footbridge_core::{digest::digest_text, human::timestamp};
use footbridge_proto::text::Escaped;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{
    cli::table::aligned,
    control::wire::ServerInfo,
    store::{StoredDefinition, StoredPin},
};

/// A server of a harness.
#[derive(Debug, Serialize)]
pub(super) struct Server {
    #[serde(flatten)]
    pub(super) info: ServerInfo,
    /// `serve` or `run`, and its process.
    pub(super) harness: String,
}

/// What a policy goes by, unless the operator says something else.
const OWN_WORD: &str = "Whether a tool reads, writes or reaches out is what its server says of itself, until [[effects]] in \
                        footbridge.toml says it.\n";

/// A table of servers.
pub(super) fn servers(found: &[Server]) -> String {
    if found.is_empty() {
        return "no server\n".to_owned();
    }
    let head = ["NAME", "KIND", "STATUS", "TOOLS", "CHANGED", "HARNESS"].map(str::to_owned);
    let row = |Server { info, harness }: &Server| {
        let [name, kind, status] = [&info.name, &info.kind, &info.status].map(|word| Escaped(word).to_string());
        let changed = info.changed.len().to_string();
        [name, kind, status, info.tools.to_string(), changed, Escaped(harness).to_string()]
    };
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(found.iter().map(row)).collect();
    let mut text = aligned(&rows);
    text.push_str(OWN_WORD);
    for Server { info, harness } in found {
        let Some(why) = &info.why else { continue };
        text.push_str(&format!("{}\n", Escaped(why)));
        if let Some(cause) = &info.last_error {
            let name = Escaped(&info.name);
            text.push_str(&format!(
                "  {}: {}\n  more: footbridge servers logs {name}\n",
                Escaped(harness),
                Escaped(cause)
            ));
        }
    }
    text
}

/// A pin for programs.
#[derive(Debug, Serialize)]
pub(super) struct Pin<'p> {
    server: &'p str,
    /// How the server is reached; none where that is not known.
    origin: Option<&'p RawValue>,
    tool: &'p str,
    pinned: Definition<'p>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Definition<'p>>,
}

#[derive(Debug, Serialize)]
struct Definition<'p> {
    digest: String,
    since: String,
    definition: &'p RawValue,
}

impl<'p> Pin<'p> {
    /// With both definitions in full.
    pub(super) fn of(pin: &'p StoredPin) -> Self {
        let changed = pin.changed.as_ref().map(Definition::of);
        let origin = serde_json::from_str(&pin.origin).ok();
        Self { server: &pin.server, origin, tool: &pin.tool, pinned: Definition::of(&pin.pinned), changed }
    }
}

impl<'p> Definition<'p> {
    fn of(definition: &'p StoredDefinition) -> Self {
        Self {
            digest: digest(definition),
            since: since(definition),
            // The store checks its digest, and what was pinned is JSON.
            definition: serde_json::from_str(&definition.text).unwrap_or(RawValue::NULL),
        }
    }
}

/// A table of pins.
pub(super) fn pins(found: &[StoredPin]) -> String {
    if found.is_empty() {
        return "nothing is pinned\n".to_owned();
    }
    let head = ["SERVER", "TOOL", "STATE", "SINCE", "DEFINITION", "ORIGIN"].map(str::to_owned);
    let row = |pin: &StoredPin| {
        let state = if pin.changed.is_some() { "changed" } else { "pinned" };
        let last = pin.changed.as_ref().unwrap_or(&pin.pinned);
        let short: String = digest(&pin.pinned).chars().take(19).collect();
        let [server, tool] = [&pin.server, &pin.tool].map(|name| Escaped(name).to_string());
        [server, tool, state.to_owned(), since(last), short, Escaped(&origin(pin)).to_string()]
    };
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(found.iter().map(row)).collect();
    aligned(&rows)
}

/// How a server is reached, as people write it: its command with its arguments and folder, or its address. Not escaped.
pub(super) fn origin(pin: &StoredPin) -> String {
    let origin: Value = serde_json::from_str(&pin.origin).unwrap_or_default();
    let text = |member: &str| origin.get(member).and_then(Value::as_str);
    let list = |member: &str| origin.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match (text("command"), text("url")) {
        (Some(command), _) => {
            let args = list("args").iter().filter_map(Value::as_str);
            let words: Vec<&str> = std::iter::once(command).chain(args).collect();
            let folder = text("cwd").map(|cwd| format!(" in {cwd}")).unwrap_or_default();
            format!("{}{folder}", words.join(" "))
        }
        (None, Some(url)) => {
            let pair = |pair: &Value| Some(format!("{}={}", pair.get(0)?.as_str()?, pair.get(1)?.as_str()?));
            let query: Vec<String> = list("query").iter().filter_map(pair).collect();
            if query.is_empty() { url.to_owned() } else { format!("{url}?{}", query.join("&")) }
        }
        (None, None) if origin.get("programs").is_some() => {
            let programs: Vec<&str> = list("programs").iter().filter_map(Value::as_str).collect();
            let templates: String = text("templates").unwrap_or_default().chars().take(19).collect();
            format!("{}, wrapped ({templates})", programs.join(", "))
        }
        (None, None) => pin.origin.clone(),
    }
}

/// As records and commands write it.
pub(super) fn digest(definition: &StoredDefinition) -> String {
    digest_text(definition.digest)
}

/// RFC 3339 in UTC, to the second.
pub(super) fn since(definition: &StoredDefinition) -> String {
    timestamp(definition.since)
}
