//! `footbridge config show`: what all files come to, and where each value is written. Nothing is filled in or run.

use anyhow::Context as _;
use clap::Args;
use footbridge_processes::sys;
use footbridge_proto::text::EscapedLines;
use serde_json::{Map, Value, json};

use crate::{
    cli::{Files, USAGE, approvals::show::json_lines, session::REFUSED},
    config::{Commands, Node, Outline, Variables, Writable, WrittenAt, folders::Folders, look_over, settings_of},
    report,
};

/// The member that the servers are shown under.
const SERVERS: &str = "mcpServers";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(in crate::cli) struct ShowArgs {
    #[command(flatten)]
    files: Files,
    /// Show each value in a line of its own, with file, line and column
    #[arg(long)]
    origin: bool,
    /// Print JSON; with --origin, one value a line
    #[arg(long)]
    json: bool,
}

const HELP: &str =
    "Servers of all files, merged, and the settings, as they are written: references to secrets are not \
filled in, and what \nlooks like a secret in the clear is left out.

Examples:
  footbridge config show
  footbridge config show --origin
  footbridge config show --json | jq '.mcpServers | keys'

Exit status: 0; 1 where there is no configuration; 2 if a file is wrong, which is said with what can be shown.";

/// A value that is shown by itself.
struct Leaf<'n> {
    keys: Vec<&'n str>,
    value: Value,
    at: &'n WrittenAt,
}

pub(super) fn main(args: &ShowArgs) -> anyhow::Result<i32> {
    sys::harden().context("cannot protect this process from others of the same user")?;
    let folders = Folders::of_this_user()?;
    let outline = Outline::read(&args.files.config, &folders);
    let (settings, problems) = settings_of(&outline.settings);
    let servers = outline.servers.iter().map(|server| (server.name.as_str(), &server.entry));
    let settings: Vec<(&str, &Node)> = settings.iter().map(|member| (member.name.as_str(), &member.node)).collect();
    let text = if args.origin {
        let mut leaves = Vec::new();
        servers.for_each(|(name, node)| leaves_of(node, vec![SERVERS, name], &mut leaves));
        settings.iter().for_each(|(name, node)| leaves_of(node, vec![name], &mut leaves));
        if args.json { json_lines(&leaves.iter().map(Leaf::as_json).collect::<Vec<_>>())? } else { lines(&leaves) }
    } else {
        let servers: Map<String, Value> = servers.map(|(name, node)| (name.to_owned(), node.shown(name))).collect();
        let settings = settings.iter().map(|(name, node)| ((*name).to_owned(), node.shown(name)));
        let all: Map<String, Value> =
            std::iter::once((SERVERS.to_owned(), Value::Object(servers))).chain(settings).collect();
        format!("{:#}\n", Value::Object(all))
    };
    report::out(&if args.json { text } else { EscapedLines(&text).to_string() })?;
    outline.looked.left_out.iter().for_each(|one| report::note(&format!("left out: {}", one.note())));
    let problems = wrong(&args.files, &folders).unwrap_or_else(|| [outline.problems, problems].concat());
    problems.iter().for_each(|why| report::note(&format!("error: {why}")));
    let nothing = outline.files.is_empty() && outline.settings.is_empty();
    if nothing && problems.is_empty() {
        report::note(&format!("no configuration was found; {}", outline.looked.help()));
    }
    Ok(match (problems.is_empty(), nothing) {
        (false, _) => USAGE,
        (true, true) => REFUSED,
        (true, false) => 0,
    })
}

/// All that is wrong with the files, if anything is, wherever they are used: without what they refer to and is not there.
fn wrong(files: &Files, folders: &Folders) -> Option<Vec<String>> {
    let commands = Commands::default().not_run();
    let (_, mistakes) =
        look_over(&files.config, folders, &Variables::of_this_process().commands(commands, Writable::default()));
    (!mistakes.is_empty()).then(|| mistakes.iter().map(ToString::to_string).collect())
}

/// The values of an object that are none themselves; lists, and objects that name a secret, are one value.
fn leaves_of<'n>(node: &'n Node, keys: Vec<&'n str>, found: &mut Vec<Leaf<'n>>) {
    match node.members() {
        Some(members) if !members.is_empty() && !node.names_a_value() => {
            for member in members {
                let keys = keys.iter().copied().chain([member.name.as_str()]).collect();
                leaves_of(&member.node, keys, found);
            }
        }
        _ => {
            let value = node.shown(keys.last().copied().unwrap_or_default());
            found.push(Leaf { keys, value, at: &node.at });
        }
    }
}

impl Leaf<'_> {
    fn as_json(&self) -> Value {
        let WrittenAt { file, line, column } = self.at;
        json!({"key": self.keys, "value": self.value, "file": file, "line": line, "column": column})
    }

    /// Its keys as in TOML: in quotes where there is more than letters, digits, `_` and `-` in one.
    fn key(&self) -> String {
        let is_bare = |key: &str| {
            !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        };
        let keys = self.keys.iter().map(|key| if is_bare(key) { (*key).to_owned() } else { json!(key).to_string() });
        keys.collect::<Vec<_>>().join(".")
    }
}

fn lines(leaves: &[Leaf<'_>]) -> String {
    let line = |leaf: &Leaf<'_>| {
        let WrittenAt { file, line, column } = leaf.at;
        format!("{} = {}  # {}:{line}:{column}\n", leaf.key(), leaf.value, file.display())
    };
    leaves.iter().map(line).collect()
}
