//! `footbridge config import`: servers of other programs, shown first and then put into a file of ours.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use footbridge_core::settings_file::Mistake;
use footbridge_processes::sys;
use serde_json::{Value, json};

use crate::{
    approvers::prompt::plain::plain,
    cli::{
        USAGE,
        approvals::show::json_lines,
        confirm::Asked,
        servers::difference::{Colours, member},
        session::REFUSED,
    },
    config::{
        ForeignFile, NewServers, Node, NotForeign, NotWritten, WrittenServer, folders::Folders, foreign_file,
        read_foreign,
    },
    report,
};

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(in crate::cli) struct ImportArgs {
    /// A program (claude-desktop, claude-code, cursor, vscode, windsurf, codex, zed, gemini, opencode), or a file of one
    from: String,
    /// Put them into this file. Default: servers.json of the configuration folder
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Of servers that are kept by folder those of this one. Default: the working folder
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
    /// Replace servers that are there by those of the same name
    #[arg(long)]
    overwrite: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write it as it is shown, without asking
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str =
    "Shows what the file becomes and asks on the terminal. Servers that are there stay as they are, and so do \
comments. Says \nwhat could not be taken, and which values are secrets in the clear.

Examples:
  footbridge config import cursor
  footbridge config import .vscode/mcp.json --dry-run
  footbridge config import claude-code --project ~/src/app --output app.json
  footbridge config import codex --yes --overwrite

Exit status: 0 done, or nothing to do; 1 nothing was written although there is something; 2 a file is wrong.";

pub(super) fn main(args: &ImportArgs) -> anyhow::Result<i32> {
    sys::harden().context("cannot protect this process from others of the same user")?;
    match import(args) {
        Err(error) if error.is::<NotForeign>() || error.is::<NotWritten>() => {
            report::error(&error);
            Ok(USAGE)
        }
        done => done,
    }
}

fn import(args: &ImportArgs) -> anyhow::Result<i32> {
    let folders = Folders::of_this_user()?;
    let from = foreign_file(&args.from, folders.home.as_deref())?;
    let project = args.project.as_ref().map(std::path::absolute).transpose()?.or_else(|| folders.working.clone());
    let found = read_foreign(&from, project.as_deref(), folders.home.as_deref())?;
    let output = args.output.clone().unwrap_or_else(|| folders.config.join("servers.json"));
    let new = NewServers::of(&output, &found.servers, args.overwrite)?;
    let shown = Shown::of(&new)?;
    let is_wanted = new.changes() && !args.dry_run;
    let mut written = is_wanted && args.yes;
    if !args.json {
        let text = shown.text(&found, &new, &folders);
        if is_wanted && !args.yes {
            written = asks(&text, &new)?;
        } else if !report::piece(&text)? {
            written = false;
        }
    }
    if written {
        new.write()?;
    }
    if args.json {
        report::out(&json_lines(&[shown.as_json(&found, &new, written)])?)?;
    } else if new.changes() {
        let what = if written { "written" } else { "nothing was written" };
        report::note(&format!("{what}: {}", new.path.display()));
    }
    Ok(if is_wanted && !written { REFUSED } else { 0 })
}

fn asks(text: &str, new: &NewServers) -> anyhow::Result<bool> {
    let question = format!("Write this into {}?", plain(&new.path.display().to_string()));
    let asked = Asked::find().map(|mut person| person.agrees(text, &question, "yes")).transpose();
    Ok(asked.context("cannot ask on the terminal")?.unwrap_or_else(|| {
        report::note("there is no terminal to ask on: use one, look with --dry-run, or say --yes");
        false
    }))
}

/// What changes in the file.
struct Shown {
    new: Vec<WrittenServer>,
    before: Vec<WrittenServer>,
    /// Values in the clear: the server and the keys.
    secrets: Vec<(String, String)>,
}

impl Shown {
    fn of(new: &NewServers) -> Result<Self, NotWritten> {
        let [mut servers, before] = new.servers()?;
        servers.retain(|server| new.added.contains(&server.name) || new.replaced.contains(&server.name));
        let mut secrets = Vec::new();
        for server in &servers {
            secrets_in(&server.entry, "", &mut |keys| secrets.push((server.name.clone(), keys)));
        }
        Ok(Self { new: servers, before, secrets })
    }

    fn text(&self, found: &ForeignFile, new: &NewServers, folders: &Folders) -> String {
        let paint = Colours::of_output();
        let mut text = paint.line("1", &format!("{}:", plain(&new.path.display().to_string())));
        for server in &self.new {
            let before = self.before.iter().find(|before| before.name == server.name);
            let before = before.map(|before| before.entry.shown(""));
            text.push_str(&paint.line("1", &format!("  server {}:", plain(&server.name))));
            member(before.as_ref(), Some(&server.entry.shown("")), paint, &mut text);
        }
        for name in &new.kept {
            text.push_str(&format!("  server {} is there already and stays (--overwrite)\n", plain(name)));
        }
        if found.servers.is_empty() {
            text.push_str("  there is no server to take\n");
        }
        found.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
        let folder = folders.config.join("secrets");
        for (server, keys) in &self.secrets {
            let last = keys.rsplit('.').next().unwrap_or_default();
            let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let name: String = format!("{server}-{last}").chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
            let file = folder.join(name);
            let (folder, file) = (plain(&folder.display().to_string()), plain(&file.display().to_string()));
            text.push_str(&format!(
                "note: server {}: {} is a secret in the clear. Put it into a file that only you can read:\n    (umask 077; \
                 mkdir -p '{folder}'; cat > '{file}')\n  and write {{\"file\": \"{file}\"}} in its place\n",
                plain(server),
                plain(keys)
            ));
        }
        text
    }

    fn as_json(&self, found: &ForeignFile, new: &NewServers, written: bool) -> Value {
        let note =
            |note: &Mistake| json!({"file": note.file, "line": note.line, "column": note.column, "message": note.what});
        let secrets = self.secrets.iter().map(|(server, keys)| json!({"server": server, "key": keys}));
        let servers = self.new.iter().map(|server| (server.name.clone(), server.entry.shown("")));
        json!({
            "from": found.path, "output": new.path, "written": written,
            "added": new.added, "replaced": new.replaced, "kept": new.kept,
            "servers": servers.collect::<serde_json::Map<_, _>>(),
            "secrets": secrets.collect::<Vec<_>>(), "notes": found.notes.iter().map(note).collect::<Vec<_>>(),
        })
    }
}

/// The values that are secrets in the clear, by their keys.
fn secrets_in(node: &Node, keys: &str, found: &mut impl FnMut(String)) {
    let shown = node.shown(keys.rsplit('.').next().unwrap_or_default());
    match node.members() {
        Some(members) => {
            let join = |name: &str| if keys.is_empty() { name.to_owned() } else { format!("{keys}.{name}") };
            members.iter().for_each(|member| secrets_in(&member.node, &join(&member.name), found));
        }
        None if shown != node.to_json() => found(keys.to_owned()),
        None => {}
    }
}
