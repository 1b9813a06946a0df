//! `footbridge config trust`: files of working folders, shown and then trusted, by what they say.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use footbridge_core::digest::digest_text;
use footbridge_processes::sys;
use serde_json::json;

use crate::{
    approvers::prompt::show::words,
    cli::{
        USAGE,
        approvals::show::json_lines,
        confirm::Asked,
        servers::difference::{Colours, member},
        session::REFUSED,
    },
    config::{FileToTrust, NotToTrust, folders::Folders, of_working_folder, trusted::TrustedFiles},
    report,
};

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(in crate::cli) struct TrustArgs {
    /// The files. Default: .claude/mcp.json, .mcp.json and mcp.json of the working folder, those that are there
    files: Vec<PathBuf>,
    /// Trust them as they are shown, without asking
    #[arg(long)]
    yes: bool,
    /// Show which files are trusted, and whether they still say what they said
    #[arg(long, conflicts_with_all = ["yes", "remove", "files"])]
    list: bool,
    /// Trust them no more
    #[arg(long, conflicts_with = "yes", requires = "files")]
    remove: bool,
    /// Print JSON, one file a line
    #[arg(long)]
    json: bool,
}

const HELP: &str = "Shows each server of a file, or what changed since the file was trusted, and asks on the terminal. \
What is trusted is \nwhat was shown: a file that says anything else later is left out until it is trusted again. Values of \
secrets do not show. \nThe programs that a file names are not looked at. Where another file has a server of the same name, what is \
kept of its \nenv and headers is said.

Examples:
  footbridge config trust
  footbridge config trust .mcp.json --yes
  footbridge config trust --list
  footbridge config trust --remove .mcp.json

Exit status: 0 all are trusted; 1 one is not; 2 one cannot be read, or others could change it.";

pub(super) fn main(args: &TrustArgs) -> anyhow::Result<i32> {
    sys::harden().context("cannot protect this process from others of the same user")?;
    let folders = Folders::of_this_user()?;
    if args.list {
        return list(&folders, args.json);
    }
    let files = if args.files.is_empty() { of_working_folder(&folders) } else { args.files.clone() };
    if files.is_empty() {
        report::note("this folder has no file to trust: .claude/mcp.json, .mcp.json and mcp.json are looked for");
    }
    let mut status = 0;
    for path in &files {
        let done = if args.remove { forget(path, &folders, args.json) } else { trust(path, args, &folders) };
        status = status.max(match done {
            Ok(true) => 0,
            Ok(false) => REFUSED,
            Err(error) if error.is::<NotToTrust>() => {
                report::error(&error);
                USAGE
            }
            Err(error) => return Err(error),
        });
    }
    Ok(status)
}

/// Shows a file and asks; says whether it is trusted.
fn trust(path: &Path, args: &TrustArgs, folders: &Folders) -> anyhow::Result<bool> {
    let file = FileToTrust::read(path, folders)?;
    let (was_trusted, mut agreed) = (file.is_trusted(), true);
    if was_trusted && !args.json {
        report::note(&format!("{} is trusted as it is", file.path.display()));
    } else if !was_trusted && args.yes {
        agreed = args.json || report::piece(&shown(&file))?;
    } else if !was_trusted {
        let question = "Trust this file as it is? Its servers run with your rights.";
        let asked = Asked::find().map(|mut person| person.agrees(&shown(&file), question, "yes")).transpose();
        agreed = match asked.context("cannot ask on the terminal")? {
            Some(agreed) => agreed,
            None => {
                if !args.json {
                    report::piece(&shown(&file))?;
                }
                report::note("there is no terminal to ask on: use one, or say --yes if you know what the file says");
                false
            }
        };
    }
    if agreed && !was_trusted {
        file.trust(folders)?;
    }
    if args.json {
        let digest = digest_text(file.digest());
        let notes: Vec<String> = file.notes().iter().map(ToString::to_string).collect();
        let line = json!({"file": file.path, "trusted": agreed, "changed": file.has_changed(), "digest": digest,
            "notes": notes});
        report::out(&json_lines(&[line])?)?;
    } else if !was_trusted {
        let what = if agreed { "trusted" } else { "not trusted" };
        report::note(&format!("{what}: {}", file.path.display()));
    }
    Ok(agreed)
}

/// What it says, or what changed.
fn shown(file: &FileToTrust) -> String {
    let paint = Colours::of_output();
    let what = if file.has_changed() { "changed since it was trusted" } else { "new" };
    let mut text = paint.line("1", &format!("{} ({what})", words(&file.path.display().to_string())));
    text.push_str(&format!("  {}\n", digest_text(file.digest())));
    let differences = file.differences();
    if differences.is_empty() {
        text.push_str("  its servers are what they were\n");
    }
    for one in differences {
        let what = match (&one.old, &one.new) {
            (Some(_), None) => " is gone",
            (None, Some(_)) if file.has_changed() => " is new",
            _ => "",
        };
        text.push_str(&paint.line("1", &format!("  server {}{what}:", words(&one.name))));
        if one.hidden {
            text.push_str("    a value changed that is not shown\n");
        }
        member(one.old.as_ref(), one.new.as_ref(), paint, &mut text);
    }
    // Keys of the user that would go along are no part of the file.
    for note in file.notes() {
        text.push_str(&paint.line("1", &format!("  note: {}", words(&note.to_string()))));
    }
    text
}

fn forget(path: &Path, folders: &Folders, json: bool) -> anyhow::Result<bool> {
    // It may be gone by now, but not the folder that it was in.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = || Some(parent.canonicalize().ok()?.join(path.file_name()?));
    let real = path.canonicalize().ok().or_else(there).unwrap_or_else(|| path.to_owned());
    let forgotten = TrustedFiles::of(&folders.state).forget(&real)?;
    if json {
        report::out(&json_lines(&[json!({"file": real, "trusted": false, "was_trusted": forgotten})])?)?;
    } else {
        let what = if forgotten { "not trusted any more" } else { "was not trusted" };
        report::note(&format!("{what}: {}", real.display()));
    }
    Ok(true)
}

fn list(folders: &Folders, json: bool) -> anyhow::Result<i32> {
    for path in TrustedFiles::of(&folders.state).all()? {
        let (state, why) = match FileToTrust::read_real(&path, folders) {
            Ok(file) if file.is_trusted() => ("trusted", None),
            Ok(_) => ("changed", None),
            Err(_) if !path.exists() => ("gone", None),
            Err(error) => ("unusable", Some(error.to_string())),
        };
        let line = if json {
            json_lines(&[json!({"file": path, "state": state, "error": why})])?
        } else {
            format!("{state:<8}  {}\n", words(&path.display().to_string()))
        };
        report::out(&line)?;
    }
    Ok(0)
}
