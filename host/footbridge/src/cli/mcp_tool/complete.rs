//! Completion: names and flags from the lists that are kept, or of a session. It starts nothing and never fails.
//!
//! What a server wrote lands on a person's command line: only plain words are offered.

use std::{ffi::OsString, time::Duration};

use clap::{Args as _, Command};

use super::{NAME, Options, taken, which};
use crate::cli::known_tools::KnownTools;
use footbridge_cli::{completion, flags::ToolFlags};

/// How long a harness may take that is asked what a session sees: whoever presses a key waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints what the last of these words may become.
pub(super) fn main(words: &[OsString]) -> i32 {
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let (current, before) = words.split_last().unwrap_or((&"", &[]));
    completion::print(&candidates(before, current), current);
    0
}

fn candidates(before: &[&str], current: &str) -> Vec<String> {
    let options = Options::augment_args(Command::new(NAME));
    let takes_value = |word: &str| {
        let name = word.strip_prefix("--");
        name.is_some_and(|name| {
            options.get_arguments().any(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
        })
    };
    let mut skip = false;
    let tool = before.iter().find(|word| {
        let is_value = std::mem::replace(&mut skip, takes_value(word));
        !is_value && !word.starts_with('-')
    });
    let last = before.last().copied().unwrap_or_default();
    if takes_value(last) {
        return if last == "--output" { vec!["text".to_owned(), "json".to_owned()] } else { Vec::new() };
    }
    let typed: Vec<OsString> = before.iter().map(OsString::from).collect();
    let Ok(tools) = which::early(&typed).tools(PATIENCE) else { return Vec::new() };
    let own = || taken().into_iter().map(|name| format!("--{name}"));
    match tool {
        None if current.starts_with('-') => own().chain(["--completions".to_owned()]).collect(),
        None => which::names(&tools),
        Some(tool) => {
            let Some(flags) = flags(&tools, tool) else { return own().collect() };
            let choices = last.strip_prefix("--").map(|name| flags.choices(name)).unwrap_or_default();
            let inline = current.split_once('=').map(|(flag, _)| (flag, flags.choices(flag.trim_start_matches('-'))));
            match inline {
                Some((flag, choices)) => choices.into_iter().map(|choice| format!("{flag}={choice}")).collect(),
                None if !choices.is_empty() && !current.starts_with('-') => choices,
                None => flags.flags.iter().map(|flag| format!("--{}", flag.name)).chain(own()).collect(),
            }
        }
    }
}

/// The flags of a tool whose list is known.
fn flags(tools: &KnownTools, name: &str) -> Option<ToolFlags> {
    let all = which::possible(tools.servers().into_iter(), name);
    all.into_iter().find_map(|one| {
        let list = tools.kept(&one.server).filter(|list| !list.is_changed(&one.tool))?;
        one.flags(&list).ok()
    })
}
