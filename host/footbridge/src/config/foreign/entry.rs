//! One server of another program, into an entry of ours.
//!
//! What is known is taken, under whatever name a program has for it; what has no counterpart is told with its place. A
//! server of which a part cannot be understood is left out whole: half an entry would be another server.

use std::path::PathBuf;

use footbridge_core::{
    names::ServerName,
    settings_file::{Mistake, closest},
};
use serde_json::{Map, Value, json};

use super::text::{Base, Dialect, NoCounterpart, Translated, translated};
use crate::config::node::{Member, Node, NodeValue, WrittenAt};

/// Members that say when to ask, or which tools there are.
const OF_POLICIES: [&str; 7] =
    ["alwaysAllow", "autoApprove", "trust", "includeTools", "enabled_tools", "tools", "default_tools_approval_mode"];
/// Members by which a program logs in.
const OF_LOGINS: [&str; 6] = ["oauth", "auth", "authProviderType", "headersHelper", "scopes", "oauth_resource"];
/// Members that say how long something may take.
const OF_LIMITS: [&str; 5] =
    ["timeout", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "initTimeout"];
/// What is for people or for the program alone, and changes nothing here.
const OF_PEOPLE: [&str; 8] =
    ["description", "displayName", "gallery", "version", "icon", "source", "remote", "required"];
/// The older transport, whatever a program calls it.
const SSE: &str = "sse";

/// A server that is being translated.
pub(super) struct Translation<'n> {
    server: &'n Member,
    members: &'n [Member],
    /// What relative paths start from.
    base: Base<'n>,
    inputs: &'n [Node],
    dialect: Dialect,
    taken: Vec<&'static str>,
    asked: Vec<(String, String)>,
    is_wrong: bool,
    pub(super) notes: Vec<Mistake>,
}

impl<'n> Translation<'n> {
    pub(super) fn of(server: &'n Member, base: Base<'n>, inputs: &'n [Node]) -> Self {
        let members = server.node.members().unwrap_or_default();
        let has = |name: &str| members.iter().any(|member| member.name == name);
        let kind = server.node.member("type").and_then(|member| member.node.text());
        let is_gemini = has("httpUrl") || server.at.file.iter().any(|part| part == ".gemini");
        let dialect = match kind {
            Some("local" | "remote") => Dialect::OpenCode,
            _ if is_gemini => Dialect::Gemini,
            _ => Dialect::Usual,
        };
        let (taken, asked, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { server, members, base, inputs, dialect, taken, asked, is_wrong: false, notes }
    }

    /// The entry, unless something in it cannot be taken.
    pub(super) fn entry(&mut self) -> Option<Map<String, Value>> {
        if self.server.name.parse::<ServerName>().is_err() {
            self.wrong(&self.server.at.clone(), "its name is none that a server can have here: give it another one");
        }
        let mut entry = Map::new();
        let kind = self.member(&["type", "transport"]).and_then(|member| member.node.text());
        self.program(&mut entry);
        self.address(kind, &mut entry);
        self.pairs("env", &["env", "environment"], &mut entry);
        for name in self.words(&["env_vars"]) {
            let env = entry.entry("env").or_insert_with(|| json!({}));
            env.as_object_mut()
                .into_iter()
                .for_each(|env| drop(env.insert(name.clone(), format!("${{{name}}}").into())));
        }
        let tools = self.words(&["disabledTools", "disabled_tools", "excludeTools"]);
        if !tools.is_empty() {
            entry.insert("disabledTools".to_owned(), tools.into());
        }
        let is =
            |member: Option<&Member>, value| member.is_some_and(|member| member.node.value == NodeValue::Bool(value));
        let (disabled, enabled) = (self.member(&["disabled"]), self.member(&["enabled"]));
        if is(disabled, true) || is(enabled, false) {
            entry.insert("disabled".to_owned(), true.into());
        }
        if !entry.contains_key("command") && !entry.contains_key("url") {
            let what = if self.member(&["settings"]).is_some() {
                "it is a part of an extension, which starts it: write its program as \"command\""
            } else {
                "it names neither a program nor an address"
            };
            self.wrong(&self.server.at.clone(), what);
        }
        self.note_the_rest();
        (!self.is_wrong).then_some(entry)
    }

    /// The first member of one of these names, but for null.
    fn member(&mut self, names: &[&'static str]) -> Option<&'n Member> {
        self.taken.extend(names);
        self.members.iter().find(|member| names.contains(&member.name.as_str()) && member.node.value != NodeValue::Null)
    }

    fn note(&mut self, at: &WrittenAt, what: impl std::fmt::Display) {
        self.notes.push(at.mistake(format!("server {:?}: {what}", self.server.name)));
    }

    fn wrong(&mut self, at: &WrittenAt, what: impl std::fmt::Display) {
        self.is_wrong = true;
        self.note(at, format!("it was not taken: {what}"));
    }

    /// The program, its arguments and its folder: a text, a list of words, or an object.
    fn program(&mut self, entry: &mut Map<String, Value>) {
        let args = self.member(&["args"]).map(|member| &member.node);
        let cwd = self.member(&["cwd"]).map(|member| &member.node);
        let Some(command) = self.member(&["command"]).map(|member| &member.node) else { return };
        let (mut words, mut env) = (Vec::new(), None);
        match &command.value {
            NodeValue::Object(_) => {
                let of = |name: &str| command.member(name).map(|member| &member.node);
                words.extend(of("path"));
                words.extend(of("args").and_then(Node::elements).unwrap_or_default());
                env = of("env").and_then(Node::members);
            }
            NodeValue::List(all) => words.extend(all),
            _ => words.push(command),
        }
        words.extend(args.and_then(Node::elements).unwrap_or_default());
        let mut words = words.into_iter().filter_map(|word| self.value(word)).collect::<Vec<_>>().into_iter();
        if let Some(Value::String(program)) = words.next() {
            // A name is looked up on PATH; a path starts from the folder.
            let program = if program.contains('/') && cwd.is_none() { self.in_full(program) } else { program };
            entry.insert("command".to_owned(), program.into());
        }
        let args: Vec<Value> = words.collect();
        if !args.is_empty() {
            entry.insert("args".to_owned(), args.into());
        }
        for Member { name, node, .. } in env.unwrap_or_default() {
            let value = self.value(node);
            let env = entry.entry("env").or_insert_with(|| json!({})).as_object_mut();
            env.into_iter().for_each(|env| env.extend(value.clone().map(|value| (name.clone(), value))));
        }
        if let Some(Value::String(folder)) = cwd.and_then(|cwd| self.value(cwd)) {
            entry.insert("cwd".to_owned(), self.in_full(folder).into());
        }
    }

    /// A path as it is meant from the folder of the file that it was in.
    fn in_full(&self, path: String) -> String {
        let is_whole = path.starts_with(['/', '~', '$']);
        if is_whole { path } else { self.base.folder.join(PathBuf::from(path)).display().to_string() }
    }

    /// The address and its headers.
    fn address(&mut self, kind: Option<&str>, entry: &mut Map<String, Value>) {
        let streamable = self.member(&["httpUrl"]);
        let plain = self.member(&["url", "serverUrl"]);
        let Some(url) = streamable.or(plain) else { return };
        let Some(value) = self.value(&url.node) else { return };
        let path = value.as_str().map(|text| text.split(['?', '#']).next().unwrap_or_default().to_owned());
        let ends_so = path.is_some_and(|path| path.trim_end_matches('/').ends_with("/sse"));
        let is_sse = match kind {
            Some(SSE) => true,
            None | Some("remote") if self.dialect == Dialect::Gemini => streamable.is_none(),
            None | Some("remote") => ends_so,
            Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => false,
            Some(other) => return self.wrong(&url.at, format!("its transport {other:?} is not spoken here")),
        };
        entry.insert("url".to_owned(), value);
        if is_sse {
            entry.insert("type".to_owned(), SSE.into());
        }
        self.pairs("headers", &["headers", "http_headers"], entry);
        let named = self.member(&["env_http_headers"]).and_then(|member| member.node.members()).unwrap_or_default();
        let bearer = self.member(&["bearer_token_env_var"]).and_then(|member| member.node.text());
        let named =
            named.iter().filter_map(|member| Some((member.name.clone(), format!("${{{}}}", member.node.text()?))));
        let bearer = bearer.map(|name| ("Authorization".to_owned(), format!("Bearer ${{{name}}}")));
        for (name, value) in named.chain(bearer) {
            let headers = entry.entry("headers").or_insert_with(|| json!({})).as_object_mut();
            headers.into_iter().for_each(|headers| drop(headers.insert(name.clone(), value.clone().into())));
        }
    }

    /// An object of values.
    fn pairs(&mut self, ours: &str, theirs: &[&'static str], entry: &mut Map<String, Value>) {
        let members = self.member(theirs).and_then(|member| member.node.members()).unwrap_or_default();
        for Member { name, node, .. } in members {
            let value = self.value(node);
            let pairs = entry.entry(ours).or_insert_with(|| json!({})).as_object_mut();
            pairs.into_iter().for_each(|pairs| pairs.extend(value.clone().map(|value| (name.clone(), value))));
        }
    }

    /// A list of words, or of objects with a name.
    fn words(&mut self, names: &[&'static str]) -> Vec<String> {
        let words = self.member(names).and_then(|member| member.node.elements()).unwrap_or_default();
        let word = |node: &Node| node.text().or_else(|| node.member("name")?.node.text()).map(str::to_owned);
        words.iter().filter_map(word).collect()
    }

    /// A text with references of ours; numbers, `true` and `false` as they are written.
    fn value(&mut self, node: &Node) -> Option<Value> {
        let text = match &node.value {
            NodeValue::Text(text) => text.clone(),
            NodeValue::Number(number) => number.clone(),
            NodeValue::Bool(value) => value.to_string(),
            NodeValue::Null => return None,
            _ if node.names_a_value() => return Some(node.to_json()),
            _ => {
                self.wrong(&node.at, format!("here is {}, and a text is expected", node.kind()));
                return None;
            }
        };
        let before = self.asked.len();
        match translated(&text, self.dialect, self.base, &mut self.asked) {
            Ok(Translated::Text(text)) => {
                for (id, name) in self.asked.split_off(before) {
                    self.note_input(&node.at, &id, &name);
                }
                Some(text.into())
            }
            Ok(Translated::File(path)) => Some(json!({"file": path})),
            Err(NoCounterpart(what)) => {
                self.wrong(&node.at, format!("{what} has no counterpart here: write the value, or a variable's name"));
                None
            }
        }
    }

    /// What an editor asks its user for.
    fn note_input(&mut self, at: &WrittenAt, id: &str, name: &str) {
        let input = self.inputs.iter().find(|input| input.member("id").and_then(|id| id.node.text()) == Some(id));
        let description = input.and_then(|input| input.member("description")?.node.text());
        let what = description.map(|what| format!(" ({what})")).unwrap_or_default();
        self.note(
            at,
            format!(
                "${{input:{id}}}{what} was asked for by the editor: set the variable {name}, or write {{\"file\": \
                 \"PATH\"}} with a file that only you can read"
            ),
        );
    }

    /// Members that were not taken.
    fn note_the_rest(&mut self) {
        let members = self.members;
        for Member { name, at, node } in members {
            let name = name.as_str();
            let is_off = node.value == NodeValue::Bool(false) || node.elements().is_some_and(<[Node]>::is_empty);
            if self.taken.contains(&name) || OF_PEOPLE.contains(&name) || is_off {
                continue;
            }
            let why = if OF_POLICIES.contains(&name) {
                "what may be called, and what is asked about, is up to a policy in footbridge.toml"
            } else if OF_LOGINS.contains(&name) {
                "OAuth and helpers for headers are not spoken here: put a key into \"headers\""
            } else if OF_LIMITS.contains(&name) {
                "times are limits for all servers, in footbridge.toml"
            } else if name == "envFile" {
                "write its variables into \"env\", those with secrets as {\"file\": \"PATH\"}"
            } else {
                "there is nothing like it here"
            };
            let unwritten = self.taken.iter().copied().filter(|known| !members.iter().any(|m| m.name == *known));
            let meant =
                closest(name, unwritten).map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
            self.note(at, format!("{name:?} was not taken: {why}{meant}"));
        }
    }
}
