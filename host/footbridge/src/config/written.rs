//! Servers files as they are written: `{"mcpServers": {NAME: {...}}}`, as other programs keep them, and how several of
//! them add up. What an entry means is not known here, and no secret is read.

use std::{collections::BTreeMap, path::Path};

use footbridge_core::settings_file::{Mistake, closest};
use serde_json::Value;

use super::{
    jsonc,
    node::{Member, Node, NodeValue, WrittenAt},
    origin::{is_same_origin, is_same_program},
};

/// What the servers are under: of most programs, and of VS Code.
pub(super) const SERVERS: [&str; 2] = ["mcpServers", "servers"];
/// Members that are merged key by key.
const MERGED: [MergedMember; 2] = [
    MergedMember {
        list: "env",
        needs: "command",
        is_same: is_same_program,
        otherwise: "it does not start the same program, or has that send to others",
    },
    MergedMember { list: "headers", needs: "url", is_same: is_same_origin, otherwise: "it calls another origin" },
];
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

/// A member whose own members an earlier entry's are added to.
struct MergedMember {
    list: &'static str,
    /// What an entry needs for it to mean something.
    needs: &'static str,
    /// Whether what one entry has in it may go where the other's goes.
    is_same: fn(&Node, &Node) -> bool,
    /// Why not.
    otherwise: &'static str,
}

/// A server that took the place of an earlier file's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement {
    at: WrittenAt,
    name: String,
    earlier: WrittenAt,
    /// What it keeps of the earlier one.
    keeps: Vec<String>,
    /// What it does not keep, and why.
    leaves: Vec<String>,
}

impl Replacement {
    /// What became of the earlier one.
    pub(super) fn note(&self) -> Mistake {
        let Self { at, name, earlier, keeps, leaves } = self;
        let mut what = format!("server {name:?} replaces the one of {}:{}", earlier.file.display(), earlier.line);
        if !keeps.is_empty() {
            what.push_str(&format!(", and keeps of that one {}", keeps.join(", ")));
        }
        if !leaves.is_empty() {
            what.push_str(&format!("; not kept of that one: {}", leaves.join(", ")));
        }
        at.mistake(what)
    }

    /// Whether one of the two is of this file.
    pub(super) fn is_about(&self, file: &Path) -> bool {
        *self.at.file == *file || *self.earlier.file == *file
    }
}

/// Servers of several files, later ones over earlier ones.
#[derive(Debug, Default)]
pub(super) struct MergedServers {
    servers: BTreeMap<String, WrittenServer>,
    /// Who took whose place.
    pub(super) replaced: Vec<Replacement>,
}

impl MergedServers {
    /// Adds one of a later file: it replaces an earlier one of its name, but for what `env` and `headers` of that one
    /// have and its own do not. Those stay only where they go to the same program or origin: they may be secrets.
    pub(super) fn add(&mut self, mut server: WrittenServer) {
        if let Some(earlier) = self.servers.remove(&server.name) {
            let (at, name) = (server.at.clone(), server.name.clone());
            let mut replacement = Replacement { at, name, earlier: earlier.at, keeps: Vec::new(), leaves: Vec::new() };
            for merged in &MERGED {
                merged.merge(&mut server.entry, &earlier.entry, &mut replacement);
            }
            self.replaced.push(replacement);
        }
        self.servers.insert(server.name.clone(), server);
    }

    /// All of them, by name.
    pub(super) fn into_servers(self) -> Vec<WrittenServer> {
        self.servers.into_values().collect()
    }
}

impl MergedMember {
    /// Adds to this member of an entry what an earlier entry has in its own and this one lacks.
    fn merge(&self, entry: &mut Node, earlier: &Node, said: &mut Replacement) {
        let (Some(old), Some(_)) = (earlier.member(self.list), entry.member(self.needs)) else { return };
        let own = entry.member(self.list).map(|own| own.node.members());
        // One that is no object is a mistake, which is told elsewhere.
        let (Some(values), Some(own)) = (old.node.members(), own.unwrap_or(Some(&[]))) else { return };
        // Names of headers are the same in either case.
        let is_same = |a: &str, b: &str| if self.list == "headers" { a.eq_ignore_ascii_case(b) } else { a == b };
        let lacks = values.iter().filter(|old| !own.iter().any(|new| is_same(&new.name, &old.name)));
        let lacks: Vec<Member> = lacks.cloned().collect();
        let names = lacks.iter().map(|member| format!("{}.{}", self.list, member.name));
        if lacks.is_empty() {
            return;
        }
        if !(self.is_same)(entry, earlier) {
            let names: Vec<String> = names.collect();
            said.leaves.push(format!("{}, since {}", names.join(", "), self.otherwise));
            return;
        }
        said.keeps.extend(names);
        let NodeValue::Object(members) = &mut entry.value else { return };
        if !members.iter().any(|member| member.name == self.list) {
            let node = Node { at: old.node.at.clone(), value: NodeValue::Object(Vec::new()) };
            members.push(Member { node, ..old.clone() });
        }
        let own = members.iter_mut().find(|member| member.name == self.list);
        if let Some(NodeValue::Object(own)) = own.map(|own| &mut own.node.value) {
            own.extend(lacks);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(path: &str, text: &str) -> Vec<WrittenServer> {
        servers(Path::new(path), text).unwrap()
    }

    fn all(servers: &[WrittenServer]) -> Value {
        let members = servers.iter().map(|server| (server.name.clone(), server.to_json()));
        Value::Object(members.collect())
    }

    fn said(text: &str) -> Vec<String> {
        servers(Path::new("/s.json"), text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn later_files_win_server_by_server_and_env_and_headers_key_by_key() {
        let mut merged = MergedServers::default();
        let first = r#"{"mcpServers": {"a": {"command": "x", "args": ["1"], "env": {"K": "1", "L": "1"}},
            "b": {"url": "https://b/1", "headers": {"Authorization": "1", "X": "1"}}, "c": {"command": "c", "env": {"S": "1"}}}}"#;
        let later = r#"{"servers": {"a": {"command": "x", "args": ["1"], "env": {"K": "2"}},
            "b": {"url": "https://b/2", "headers": {"authorization": "2"}}, "c": {"url": "https://c"}, "d": {"command": "z"}}}"#;
        of("/1.json", first).into_iter().chain(of("/2.json", later)).for_each(|server| merged.add(server));
        let notes: Vec<String> = merged.replaced.iter().map(|one| one.note().to_string()).collect();
        assert!(
            notes[0]
                .starts_with("/2.json:1:14: server \"a\" replaces the one of /1.json:1, and keeps of that one env.L"),
            "{notes:?}"
        );
        let found = merged.into_servers();
        assert_eq!(
            all(&found),
            json!({"a": {"command": "x", "args": ["1"], "env": {"K": "2", "L": "1"}},
                "b": {"url": "https://b/2", "headers": {"authorization": "2", "X": "1"}},
                "c": {"url": "https://c"}, "d": {"command": "z"}})
        );
        let env = found[0].entry.member("env").unwrap().node.members().unwrap();
        let files: Vec<_> = env.iter().map(|member| member.at.file.to_str().unwrap()).collect();
        assert_eq!(files, ["/2.json", "/1.json"], "each value knows its file");
    }

    #[test]
    fn keys_go_to_no_other_program_or_origin_than_the_one_they_were_written_for() {
        let mut merged = MergedServers::default();
        let first = r#"{"mcpServers": {"a": {"command": "x", "env": {"KEY": "1"}},
            "b": {"url": "https://b", "headers": {"Authorization": "1"}}}}"#;
        let later = r#"{"mcpServers": {"a": {"command": "y", "env": {"Z": "1"}}, "b": {"url": "https://evil/mcp"}}}"#;
        of("/1.json", first).into_iter().chain(of("/2.json", later)).for_each(|server| merged.add(server));
        let notes: Vec<String> = merged.replaced.iter().map(|one| one.note().what).collect();
        assert_eq!(
            notes,
            [
                "server \"a\" replaces the one of /1.json:1; not kept of that one: env.KEY, since it does not start the \
                 same program, or has that send to others",
                "server \"b\" replaces the one of /1.json:2; not kept of that one: headers.Authorization, since it \
                 calls another origin",
            ]
        );
        let expected = json!({"a": {"command": "y", "env": {"Z": "1"}}, "b": {"url": "https://evil/mcp"}});
        assert_eq!(all(&merged.into_servers()), expected);
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
