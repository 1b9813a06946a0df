//! Servers as other programs keep them, translated into entries of ours: where each of them keeps its file, under which
//! member the servers are, and what could not be taken, with the reason.
//!
//! Programs are told apart by what a file holds, not by its name, so that a copy is read as well. Nothing is run or filled
//! in, and no secret is read.

mod entry;
mod text;

use std::path::{Path, PathBuf};

use footbridge_core::settings_file::Mistake;
use serde_json::{Map, Value};

use super::{
    Writable, jsonc,
    node::{Member, Node},
    references::project,
    sources, toml_nodes,
};
use entry::Translation;
use text::Base;

/// A program whose servers can be taken, by its name as it is typed, and its files, from the home folder on.
const CLIENTS: [(&str, &[&str]); 9] = [
    (
        "claude-desktop",
        &[".config/Claude/claude_desktop_config.json", "Library/Application Support/Claude/claude_desktop_config.json"],
    ),
    ("claude-code", &[".claude.json"]),
    ("cursor", &[".cursor/mcp.json"]),
    ("vscode", &[".config/Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json"]),
    ("windsurf", &[".codeium/windsurf/mcp_config.json"]),
    ("codex", &[".codex/config.toml"]),
    ("zed", &[".config/zed/settings.json"]),
    ("gemini", &[".gemini/settings.json"]),
    ("opencode", &[".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"]),
];

/// The members that servers are under, outermost first, in the order in which they are looked for.
const UNDER: [&[&str]; 6] =
    [&["mcpServers"], &["servers"], &["context_servers"], &["mcp_servers"], &["mcp", "servers"], &["mcp"]];

/// Why a file has nothing to take.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotForeign {
    #[error("{0:?} is neither a file nor one of {names}", names = names())]
    Unknown(String),
    #[error("HOME is not set, so nobody knows where {0} has its file: set it, or name the file that you mean")]
    NoHome(&'static str),
    #[error("{client} has no file here: looked for {tried}; name the file that you mean")]
    Nowhere { client: &'static str, tried: String },
    #[error("{}: {why}", path.display())]
    Unread { path: PathBuf, why: String },
    #[error("{0}")]
    Mistake(Mistake),
    #[error("{} has no servers: \"mcpServers\", \"servers\", \"context_servers\", \"mcp_servers\" and \"mcp\" are looked for",
            .0.display())]
    Nothing(PathBuf),
}

/// What a file of another program comes to.
#[derive(Debug)]
pub(crate) struct ForeignFile {
    /// The file, without links.
    pub(crate) path: PathBuf,
    /// The entries of ours, by name.
    pub(crate) servers: Map<String, Value>,
    /// What was not taken, or differs, each with its place.
    pub(crate) notes: Vec<Mistake>,
}

fn names() -> String {
    CLIENTS.map(|(name, _)| name).join(", ")
}

/// The file that is meant: that of a program of this name, or one that is there.
pub(crate) fn find(named: &str, home: Option<&Path>) -> Result<PathBuf, NotForeign> {
    let Some((client, places)) = CLIENTS.iter().find(|(name, _)| *name == named) else {
        let path = PathBuf::from(named);
        return if path.exists() { Ok(path) } else { Err(NotForeign::Unknown(named.to_owned())) };
    };
    let Some(home) = home else { return Err(NotForeign::NoHome(client)) };
    let tried: Vec<PathBuf> = places.iter().map(|place| home.join(place)).collect();
    tried.iter().find(|path| path.exists()).cloned().ok_or_else(|| {
        let tried = tried.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        NotForeign::Nowhere { client, tried }
    })
}

/// Whether a file is the user's, which is read whichever project is open. Projects have folders such as `.cursor`, too: of
/// files in one, those of the home folder are.
fn is_of_user(real: &Path, home: Option<&Path>) -> bool {
    let mut places = CLIENTS.iter().flat_map(|(_, places)| places.iter());
    let folder = real.parent().unwrap_or(Path::new("/"));
    let may_be_projects = project(folder) != folder;
    places.any(|place| {
        let own = home.and_then(|home| home.join(place).canonicalize().ok());
        own.is_some_and(|own| own == *real) || (!may_be_projects && real.ends_with(place))
    })
}

/// Reads a file, and of servers that it keeps by folder those of this one.
pub(crate) fn read(path: &Path, folder: Option<&Path>, home: Option<&Path>) -> Result<ForeignFile, NotForeign> {
    let unread = |why| NotForeign::Unread { path: path.to_owned(), why };
    let (real, text) = sources::read(path, None, &Writable::default()).map_err(unread)?;
    let is_toml = real.extension().is_some_and(|extension| extension == "toml");
    let whole = if is_toml { toml_nodes::parse(&real, &text).map(Some) } else { jsonc::parse(&real, &text) };
    let Some(whole) = whole.map_err(NotForeign::Mistake)? else { return Err(NotForeign::Nothing(real)) };
    let mut found = ForeignFile { path: real, servers: Map::new(), notes: Vec::new() };
    let lists = lists(&whole);
    let projects = whole.member("projects").and_then(|projects| projects.node.members()).unwrap_or_default();
    let of_projects: Vec<(&Member, &[Member])> = projects
        .iter()
        .filter_map(|project| Some((project, project.node.member("mcpServers")?.node.members()?)))
        .filter(|(_, servers)| !servers.is_empty())
        .collect();
    if lists.is_none() && of_projects.is_empty() {
        return Err(NotForeign::Nothing(found.path));
    }
    let inputs = whole.member("inputs").and_then(|inputs| inputs.node.elements()).unwrap_or_default();
    let folder_of_file = found.path.parent().unwrap_or(Path::new("/")).to_owned();
    let base = Base { folder: project(&folder_of_file), is_project: !is_of_user(&found.path, home) };
    for server in lists.unwrap_or_default() {
        found.take(server, base, inputs);
    }
    for (project, servers) in of_projects {
        if folder == Some(Path::new(&project.name)) {
            let base = Base { folder: Path::new(&project.name), is_project: true };
            servers.iter().for_each(|server| found.take(server, base, inputs));
        } else {
            let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            let what = format!(
                "servers of the folder {} alone were not taken: {}; start from there, or say --project {}",
                project.name,
                names.join(", "),
                project.name
            );
            found.notes.push(project.at.mistake(what));
        }
    }
    Ok(found)
}

/// The servers of all folders.
fn lists(whole: &Node) -> Option<&[Member]> {
    let at = |names: &&[&str]| {
        let node = names.iter().try_fold(whole, |node, name| Some(&node.member(name)?.node))?;
        let members = node.members()?;
        // Other settings may be under such a name, too: lists and texts, none of which is a server.
        let are_servers = members.is_empty() || members.iter().any(|member| member.node.members().is_some());
        are_servers.then_some(members)
    };
    UNDER.iter().find_map(at)
}

impl ForeignFile {
    fn take(&mut self, server: &Member, base: Base<'_>, inputs: &[Node]) {
        if server.node.members().is_none() {
            let (name, kind) = (&server.name, server.node.kind());
            let what = format!("{name:?} was not taken: it is {kind}, and an object in braces is expected");
            return self.notes.push(server.node.at.mistake(what));
        }
        let mut translation = Translation::of(server, base, inputs);
        let entry = translation.entry();
        self.notes.append(&mut translation.notes);
        // One of a folder counts more than one of all.
        self.servers.extend(entry.map(|entry| (server.name.clone(), Value::Object(entry))));
    }
}

#[cfg(test)]
mod tests;
