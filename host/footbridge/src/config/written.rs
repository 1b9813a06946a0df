//! Servers files as they are written: `{"mcpServers": {NAME: {...}}}`, as other programs keep them, and how several of
//! them add up. What an entry means is not known here, and no secret is read.

use std::{collections::BTreeMap, path::Path};

use footbridge_core::settings_file::{Mistake, closest};
use serde_json::Value;

use super::{
    jsonc,
    node::{Member, Node, NodeValue, WrittenAt},
};

/// What the servers are under: of most programs, and of VS Code.
const SERVERS: [&str; 2] = ["mcpServers", "servers"];
/// Members that are merged key by key, and what an entry needs for them to mean something.
const MERGED: [(&str, &str); 2] = [("env", "command"), ("headers", "url")];
/// Members of files that only one program writes, and which.
const FOREIGN: [(&str, &str); 3] = [("context_servers", "zed"), ("mcp", "opencode"), ("mcp_servers", "codex")];

/// The smallest servers file that works.
pub(crate) const SMALLEST: &str =
    "{\"mcpServers\": {\"demo\": {\"command\": \"footbridge\", \"args\": [\"demo-server\"]}}}";

/// One server as it is written: where each of its values stands is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenServer {
    /// Its name.
    pub name: String,
    /// Where the name is written.
    pub at: WrittenAt,
    /// Its entry; members of `env` and `headers` may be of other files.
    pub(crate) entry: Node,
}

impl WrittenServer {
    /// The entry without places; values of secrets are as they are written.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.entry.to_json()
    }
}

/// The servers of a file's text, or all that is wrong with its outline.
pub(super) fn servers(path: &Path, text: &str) -> Result<Vec<WrittenServer>, Vec<Mistake>> {
    let one = |mistake: Mistake| vec![mistake];
    let expected = "expected {\"mcpServers\": {NAME: {...}}}";
    let Some(file) = jsonc::parse(path, text).map_err(one)? else {
        return Err(one(Mistake::of_file(path, format!("it is empty: {expected}, as in {SMALLEST}"))));
    };
    let members = file.members().ok_or_else(|| one(file.at.mistake(format!("it is {}: {expected}", file.kind()))))?;
    let mut found: Vec<WrittenServer> = Vec::new();
    let mut mistakes = Vec::new();
    let lists: Vec<&Member> = members.iter().filter(|member| SERVERS.contains(&member.name.as_str())).collect();
    if lists.is_empty() {
        return Err(one(file.at.mistake(format!("{expected}{}", instead(members)))));
    }
    for list in lists {
        let Some(entries) = list.node.members() else {
            let what =
                format!("\"{}\" is {}, and an object {{NAME: {{...}}}} is expected", list.name, list.node.kind());
            mistakes.push(list.node.at.mistake(what));
            continue;
        };
        for Member { name, at, node } in entries {
            if let Some(first) = found.iter().find(|server| server.name == *name) {
                let what = format!("server {name:?} is there twice, first in line {}: keep one", first.at.line);
                mistakes.push(at.mistake(what));
            }
            found.push(WrittenServer { name: name.clone(), at: at.clone(), entry: node.clone() });
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

/// What is there instead of the servers, where that can be told.
fn instead(members: &[Member]) -> String {
    let foreign = FOREIGN.iter().find(|(name, _)| members.iter().any(|member| member.name == *name));
    if let Some((name, client)) = foreign {
        return format!(
            ", but \"{name}\" is how {client} writes them: take them over with \"footbridge config import\""
        );
    }
    let meant = members.iter().find_map(|member| Some((&member.name, closest(&member.name, SERVERS)?)));
    let meant = meant.map(|(name, meant)| format!(", but there is {name:?}: did you mean \"{meant}\"?"));
    meant.unwrap_or_else(|| format!(", as in {SMALLEST}"))
}

/// Servers of several files, later ones over earlier ones.
#[derive(Debug, Default)]
pub(super) struct MergedServers {
    servers: BTreeMap<String, WrittenServer>,
    /// Who took whose place.
    pub(super) notes: Vec<Mistake>,
}

impl MergedServers {
    /// Adds one of a later file: it replaces an earlier one of its name, but for what `env` and `headers` of that one
    /// have and its own do not.
    pub(super) fn add(&mut self, mut server: WrittenServer) {
        if let Some(earlier) = self.servers.remove(&server.name) {
            let taken = MERGED.iter().flat_map(|(list, needs)| merge(&mut server.entry, &earlier.entry, list, needs));
            let taken: Vec<String> = taken.collect();
            let name = &server.name;
            let mut what =
                format!("server {name:?} replaces the one of {}:{}", earlier.at.file.display(), earlier.at.line);
            if !taken.is_empty() {
                what.push_str(&format!(", and keeps of that one {}", taken.join(", ")));
            }
            self.notes.push(server.at.mistake(what));
        }
        self.servers.insert(server.name.clone(), server);
    }

    /// All of them, by name.
    pub(super) fn into_servers(self) -> Vec<WrittenServer> {
        self.servers.into_values().collect()
    }
}

/// Adds to one of an entry's objects what an earlier entry has in its own and this one lacks; gives their names.
fn merge(entry: &mut Node, earlier: &Node, list: &str, needs: &str) -> Vec<String> {
    let means_something = entry.member(needs).is_some();
    let (Some(old), NodeValue::Object(members)) = (earlier.member(list), &mut entry.value) else { return Vec::new() };
    let Some(values) = old.node.members().filter(|values| means_something && !values.is_empty()) else {
        return Vec::new();
    };
    let empty =
        || Member { node: Node { at: old.node.at.clone(), value: NodeValue::Object(Vec::new()) }, ..old.clone() };
    if !members.iter().any(|member| member.name == list) {
        members.push(empty());
    }
    let Some(own) = members.iter_mut().find(|member| member.name == list) else { return Vec::new() };
    let NodeValue::Object(own) = &mut own.node.value else { return Vec::new() };
    // Names of headers are the same in either case.
    let is_same = |a: &str, b: &str| if list == "headers" { a.eq_ignore_ascii_case(b) } else { a == b };
    let lacks: Vec<&Member> =
        values.iter().filter(|old| !own.iter().any(|new| is_same(&new.name, &old.name))).collect();
    own.extend(lacks.iter().copied().cloned());
    lacks.iter().map(|member| format!("{list}.{}", member.name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(path: &str, text: &str) -> Vec<WrittenServer> {
        servers(Path::new(path), text).unwrap()
    }

    fn said(text: &str) -> Vec<String> {
        servers(Path::new("/s.json"), text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn later_files_win_server_by_server_and_env_and_headers_key_by_key() {
        let mut merged = MergedServers::default();
        let first = r#"{"mcpServers": {"a": {"command": "x", "args": ["1"], "env": {"K": "1", "L": "1"}},
            "b": {"url": "https://b", "headers": {"Authorization": "1", "X": "1"}}, "c": {"command": "c", "env": {"S": "1"}}}}"#;
        let later = r#"{"servers": {"a": {"command": "y", "env": {"K": "2"}},
            "b": {"url": "https://c", "headers": {"authorization": "2"}}, "c": {"url": "https://c"}, "d": {"command": "z"}}}"#;
        of("/1.json", first).into_iter().chain(of("/2.json", later)).for_each(|server| merged.add(server));
        let notes: Vec<String> = merged.notes.iter().map(ToString::to_string).collect();
        assert!(
            notes[0]
                .starts_with("/2.json:1:14: server \"a\" replaces the one of /1.json:1, and keeps of that one env.L"),
            "{notes:?}"
        );
        let found = merged.into_servers();
        let all: Value = found
            .iter()
            .map(|server| (server.name.clone(), server.to_json()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert_eq!(
            all,
            json!({"a": {"command": "y", "env": {"K": "2", "L": "1"}},
                "b": {"url": "https://c", "headers": {"authorization": "2", "X": "1"}},
                "c": {"url": "https://c"}, "d": {"command": "z"}})
        );
        let env = found[0].entry.member("env").unwrap().node.members().unwrap();
        let files: Vec<_> = env.iter().map(|member| member.at.file.to_str().unwrap()).collect();
        assert_eq!(files, ["/2.json", "/1.json"], "each value knows its file");
    }

    #[test]
    fn a_file_without_servers_says_what_is_there_instead() {
        for (text, says) in [
            ("", "it is empty: expected {\"mcpServers\""),
            ("// x\n", "it is empty"),
            ("[]", "/s.json:1:1: it is a list: expected"),
            ("{}", "expected {\"mcpServers\": {NAME: {...}}}, as in {\"mcpServers\""),
            ("{\"mcpservers\": {}}", "did you mean \"mcpServers\"?"),
            ("{\"context_servers\": {}}", "is how zed writes them: take them over with \"footbridge config import\""),
            ("{\"mcpServers\": []}", "/s.json:1:16: \"mcpServers\" is a list, and an object"),
            ("{\"mcpServers\": {\"a\": {}}, \"servers\": {\"a\": {}}}", "server \"a\" is there twice, first in line 1"),
        ] {
            assert!(said(text)[0].contains(says), "{text}: {:?}", said(text));
        }
    }
}
