//! Answers from the harness's own catalogue: nothing is sent to a server for them.

use std::{collections::HashMap, sync::Arc};

use footbridge_proto::{rpc::raw, text::Escaped};
use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    client_shape::{self, ObjectForm},
    cursor,
    endpoint::{Endpoint, Viewer},
    names,
    request::{ListedKind, Listing},
    revision::Revision,
    route::{looks_qualified, qualified},
    search_mode,
};
use crate::{dialect::Found, lookups, wording::error_of};
use footbridge_calls::{
    catalogue::Visible,
    cause::{Broken, Cause, Failure},
    request::repeated,
};
use footbridge_core::catalogue::ListKind;

/// Entries of a page, and bytes: most clients show a model one page alone.
const PAGE_ENTRIES: usize = 1000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of what all servers say of themselves at `/mcp`: a model reads all of it.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// The member of `_meta` that says what is missing from a listing.
const PARTIAL: &str = "footbridge/partial";

/// The result of `initialize`. A server that the session does not see is refused here already.
pub(super) async fn initialized(viewer: Viewer<'_>, revision: Revision) -> Found {
    let (within, endpoint) = (viewer.seen().await?, viewer.endpoint);
    let (name, version) = implementation(endpoint);
    let mut result = json!({
        "protocolVersion": revision.as_str(),
        "capabilities": capabilities(revision),
        "serverInfo": {"name": "footbridge", "title": name, "version": version},
    });
    let text = instructions(endpoint, &within);
    if !text.is_empty() {
        result["instructions"] = text.into();
    }
    Ok(raw(&result))
}

fn implementation(endpoint: &Endpoint) -> (String, &'static str) {
    let title = match &endpoint.server {
        Some(server) => format!("{server} (Footbridge)"),
        None => "Footbridge".to_owned(),
    };
    (title, env!("CARGO_PKG_VERSION"))
}

fn capabilities(revision: Revision) -> Value {
    let changes = json!({"listChanged": true});
    let mut all = json!({"tools": changes, "resources": changes, "prompts": changes, "completions": {}, "logging": {}});
    if revision.has_tasks() {
        all["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    }
    all
}

/// What a model should know of the endpoint: how it is, and what the servers say of themselves, each labelled as its own
/// words. What is too long for all of them together is left to `/mcp/SERVER`.
fn instructions(endpoint: &Endpoint, within: &[Visible]) -> String {
    let mut text = String::new();
    if endpoint.server.is_none() {
        text.push_str(
            "Tools and prompts are named SERVER__NAME. Some calls are denied, or wait until a person allows them: the \
             result says so, and what to do next.",
        );
    }
    for visible in within {
        let Some(said) = visible.instructions() else { continue };
        if endpoint.server.is_none() && text.len() + said.len() > MAX_INSTRUCTIONS {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n\n" };
        // Whatever it says, no line of it passes for a label.
        let quoted: Vec<String> = said.lines().map(|line| format!("> {line}")).collect();
        text.push_str(&format!("{gap}Server \"{}\" says of itself:\n\n{}", visible.server(), quoted.join("\n")));
    }
    text
}

/// Answers a listing.
pub(super) async fn list(viewer: Viewer<'_>, listing: Listing, revision: Revision) -> Found {
    let endpoint = viewer.endpoint;
    match listing {
        Listing::Discover => Ok(discovered(endpoint, revision, &viewer.seen().await?)),
        Listing::Entries(ListedKind::Tools, _) if endpoint.search => Ok(search_mode::listed()),
        Listing::Entries(kind, from) => {
            // What follows a page is of the same moment, as far as that is possible.
            let is_asked_again = from.is_none() && !matches!(kind, ListedKind::Tools);
            let (within, partial) = listed(&viewer, kind, is_asked_again).await?;
            let joined = endpoint.server.is_none();
            let bytes = lookups::bytes(&within);
            let page = move || {
                let mut page = Page::of(form_of(kind, revision), from);
                page.partial = partial;
                entries(&mut page, kind, joined, &within);
                page.whole(kind)
            };
            lookups::through(viewer.stages, viewer.principal, bytes, page).await?
        }
    }
}

/// What a session sees here for a listing, and what is missing from that, a line each. Servers are asked again where
/// they may say nothing when they change.
async fn listed(
    viewer: &Viewer<'_>,
    kind: ListedKind,
    is_asked_again: bool,
) -> Result<(Vec<Visible>, Vec<String>), Failure> {
    let Viewer { stages, principal, endpoint, wait } = *viewer;
    let (rules, kind) = (&principal.session().rules(), gaps_of(kind));
    if let Some(server) = &endpoint.server {
        let visible = if is_asked_again {
            stages.resolver.listed_now(rules, server).await?
        } else {
            stages.resolver.visible(rules, server).await?
        };
        let partial = visible.partial(kind)?;
        return Ok((vec![visible], partial));
    }
    let catalogues = stages.upstream.catalogues();
    let asked = stages.resolver.servers(rules).into_iter().map(|name| async move {
        let visible = if is_asked_again {
            catalogues.listed_now(&name, rules, wait).await
        } else {
            catalogues.visible(&name, rules, wait).await
        };
        let visible = visible.map_err(|why| vec![why.to_string()])?;
        let partial = match visible.partial(kind) {
            Ok(lines) => lines.iter().map(|line| format!("Server \"{name}\": {line}")).collect(),
            Err(cause) => vec![error_of(&cause.into()).message],
        };
        Ok((visible, partial))
    });
    let (mut within, mut missing) = (Vec::new(), Vec::new());
    for asked in join_all(asked).await {
        match asked {
            Ok((visible, partial)) => {
                within.push(visible);
                missing.extend(partial);
            }
            Err(unavailable) => missing.extend::<Vec<String>>(unavailable),
        }
    }
    Ok((within, missing))
}

fn form_of(kind: ListedKind, revision: Revision) -> &'static ObjectForm {
    match kind {
        ListedKind::Tools => client_shape::tool(revision),
        ListedKind::Resources | ListedKind::Templates => client_shape::RESOURCE,
        ListedKind::Prompts => client_shape::PROMPT,
    }
}

fn gaps_of(kind: ListedKind) -> ListKind {
    match kind {
        ListedKind::Tools => ListKind::Tools,
        ListedKind::Resources => ListKind::Resources,
        ListedKind::Templates => ListKind::Templates,
        ListedKind::Prompts => ListKind::Prompts,
    }
}

fn discovered(endpoint: &Endpoint, revision: Revision, within: &[Visible]) -> Box<RawValue> {
    let (title, version) = implementation(endpoint);
    let mut result = json!({
        "supportedVersions": [revision.as_str()],
        "capabilities": capabilities(revision),
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "footbridge", "title": title, "version": version}},
    });
    let text = instructions(endpoint, within);
    if !text.is_empty() {
        result["instructions"] = text.into();
    }
    raw(&result)
}

/// A page of a listing: its entries are in the order of their keys, and the next page begins behind the last one's.
struct Page {
    /// What its entries have to be.
    form: &'static ObjectForm,
    from: Option<String>,
    text: String,
    /// How many entries were gone through, shown or not.
    count: usize,
    /// What is missing from the listing, a line each.
    partial: Vec<String>,
    /// The key of the last entry.
    last: Option<String>,
    /// Where the next page begins.
    next: Option<String>,
}

impl Page {
    /// An empty one.
    fn of(form: &'static ObjectForm, from: Option<String>) -> Self {
        Self { form, from, text: String::new(), count: 0, partial: Vec::new(), last: None, next: None }
    }

    /// Adds an entry, unless it is of another page. One that clients would refuse the listing for is named instead.
    fn add(&mut self, server: &str, name: &str, write: impl FnOnce(&mut String)) {
        if self.next.is_some() {
            return;
        }
        // No server's name has a control character, so keys are in the order of servers first.
        let key = format!("{server}\0{name}");
        if self.from.as_ref().is_some_and(|from| key <= *from) {
            return;
        }
        if self.count >= PAGE_ENTRIES || self.text.len() >= PAGE_BYTES {
            self.next = self.last.take();
            return;
        }
        let mut entry = String::new();
        write(&mut entry);
        match client_shape::shown(&entry, self.form) {
            Ok(shown) => {
                if !self.text.is_empty() {
                    self.text.push(',');
                }
                self.text.push_str(&shown);
            }
            Err(why) => {
                let name = Escaped(&repeated(name)).to_string();
                self.partial.push(format!("Server \"{server}\": \"{name}\" was left out: {why}"));
            }
        }
        self.count += 1;
        self.last = Some(key);
    }

    fn whole(self, kind: ListedKind) -> Found {
        let member = match kind {
            ListedKind::Tools => "tools",
            ListedKind::Resources => "resources",
            ListedKind::Templates => "resourceTemplates",
            ListedKind::Prompts => "prompts",
        };
        let next = self.next.map(|key| format!(",\"nextCursor\":\"{}\"", cursor::of(&key)));
        let meta = match self.partial.as_slice() {
            [] => String::new(),
            partial => format!(",\"_meta\":{}", json!({PARTIAL: partial})),
        };
        let text = format!("{{\"{member}\":[{}]{}{meta}}}", self.text, next.unwrap_or_default());
        RawValue::from_string(text).map_err(|_| Cause::Internal(Broken::Result).into())
    }
}

fn entries(page: &mut Page, kind: ListedKind, joined: bool, within: &[Visible]) {
    let shared = if joined { shared_uris(kind, within) } else { HashMap::new() };
    for visible in within {
        let (server, entries) = (visible.server(), visible.entries());
        let name = |name: &str| if joined { names::joined(server, name) } else { name.to_owned() };
        let add_uri = |page: &mut Page, uri: &str, raw: &RawValue| {
            let is_clear = shared.get(uri).is_none_or(|count| *count == 1) && !looks_qualified(within, uri);
            let shown = (joined && !is_clear).then(|| qualified(server.as_str(), uri));
            page.add(server.as_str(), uri, |text| push_renamed(text, raw, kind, shown.as_deref()));
        };
        match kind {
            ListedKind::Tools => entries.tools().for_each(|tool: &Arc<_>| {
                page.add(server.as_str(), tool.name(), |text| tool.write_as(&name(tool.name()), text));
            }),
            ListedKind::Prompts => entries.prompts().for_each(|prompt| {
                let shown = joined.then(|| name(prompt.name()));
                page.add(server.as_str(), prompt.name(), |text| {
                    push_renamed(text, prompt.definition(), kind, shown.as_deref());
                });
            }),
            ListedKind::Resources => entries.resources().for_each(|(uri, raw)| add_uri(page, uri, raw)),
            ListedKind::Templates => entries.templates().for_each(|(uri, raw)| add_uri(page, uri, raw)),
        }
    }
}

/// How many servers have each URI.
fn shared_uris(kind: ListedKind, within: &[Visible]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    let mut count = |uri| *counts.entry(uri).or_insert(0) += 1;
    for entries in within.iter().map(Visible::entries) {
        match kind {
            ListedKind::Resources => entries.resources().for_each(|(uri, _)| count(uri)),
            ListedKind::Templates => entries.templates().for_each(|(uri, _)| count(uri)),
            ListedKind::Tools | ListedKind::Prompts => {}
        }
    }
    counts
}

/// What an entry of each kind is known by, wherever it stands in it.
#[derive(Deserialize)]
struct Keyed<'a> {
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "uriTemplate")]
    template: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
}

/// Puts an entry as its server gave it, but for what it is known by where that is another here.
fn push_renamed(text: &mut String, entry: &RawValue, kind: ListedKind, shown: Option<&str>) {
    let given = entry.get();
    let keyed = shown.and_then(|_| serde_json::from_str::<Keyed<'_>>(given).ok());
    // By its kind alone: a server may write the others into it, too.
    let key = keyed.and_then(|keyed| match kind {
        ListedKind::Resources => keyed.uri,
        ListedKind::Templates => keyed.template,
        ListedKind::Tools | ListedKind::Prompts => keyed.name,
    });
    let (Some(shown), Some(key)) = (shown, key) else { return text.push_str(given) };
    let start = key.get().as_ptr() as usize - given.as_ptr() as usize;
    text.push_str(&given[..start]);
    text.push_str(raw(&shown).get());
    text.push_str(&given[start + key.get().len()..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_as_its_server_gave_it_but_for_its_key() {
        let of_kind = |kind, entry: &str, shown: Option<&str>| {
            let mut text = String::new();
            push_renamed(&mut text, &RawValue::from_string(entry.to_owned()).unwrap(), kind, shown);
            text
        };
        let pushed = |entry: &str, shown: Option<&str>| of_kind(ListedKind::Resources, entry, shown);
        let entry = r#"{ "size": 1.50, "uri" : "a:b", "name":"n" }"#;
        assert_eq!(pushed(entry, None), entry);
        assert_eq!(pushed(entry, Some("s+a:b")), r#"{ "size": 1.50, "uri" : "s+a:b", "name":"n" }"#);
        let prompt = |entry: &str, shown: &str| of_kind(ListedKind::Prompts, entry, Some(shown));
        assert_eq!(prompt(r#"{"name":"p"}"#, "s__p\""), r#"{"name":"s__p\""}"#);
        // Another server's name, and a member that prompts do not have.
        let posing = r#"{"name":"github__review","uri":"x"}"#;
        assert_eq!(prompt(posing, "evil__github__review"), r#"{"name":"evil__github__review","uri":"x"}"#);
        let template = r#"{"uri":"x","uriTemplate":"a:{b}","name":"n"}"#;
        assert_eq!(
            of_kind(ListedKind::Templates, template, Some("s+a:{b}")),
            r#"{"uri":"x","uriTemplate":"s+a:{b}","name":"n"}"#
        );
    }

    #[test]
    fn pages_follow_on_each_other_without_gap_or_repetition() {
        let mut seen = Vec::new();
        let mut from = None;
        loop {
            let mut page = Page::of(client_shape::PROMPT, from.take());
            for n in 0..2 * PAGE_ENTRIES + 1 {
                let name = format!("{n:05}");
                page.add("s", &name, |text| {
                    text.push_str("{}");
                    seen.push(name.clone());
                });
            }
            match page.next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        assert_eq!(seen.len(), 2 * PAGE_ENTRIES + 1);
        assert!(seen.is_sorted());
    }

    #[test]
    fn one_tool_that_no_client_takes_is_named_and_the_others_are_listed() {
        let mut page = Page::of(client_shape::tool(Revision::November2025), None);
        for (name, schema) in [("a", r#"{"type":"array"}"#), ("b", r#"{"type":"object"}"#), ("c", "{}")] {
            page.add("s", name, |text| text.push_str(&format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#)));
        }
        let listed: Value = serde_json::from_str(page.whole(ListedKind::Tools).unwrap().get()).unwrap();
        let object = json!({"type": "object"});
        let tools = json!([{"name": "b", "inputSchema": object}, {"name": "c", "inputSchema": object}]);
        assert_eq!(listed["tools"], tools);
        let why = r#"Server "s": "a" was left out: its inputSchema is not that of an object, as MCP's arguments are"#;
        assert_eq!(listed["_meta"][PARTIAL], json!([why]));
    }
}
