//! What the command says of itself for others to keep: completion for shells, and a page for `man`.
//!
//! Both are read off the command line as it is parsed, so that they cannot lag behind. Names of sessions, servers and
//! tools are not completed: `mcp-tool` does that for tools.

use std::ffi::OsString;

use clap::{
    Command, CommandFactory as _,
    builder::{PossibleValuesParser, TypedValueParser},
};
use footbridge_cli::{completion::Shell, man::ManPage, output};

use super::Cli;
use crate::report;

/// The shells, as a value of the command line.
pub(super) fn shells() -> impl TypedValueParser<Value = Shell> {
    let named = |name: String| Shell::ALL.into_iter().find(|shell| shell.name() == name);
    PossibleValuesParser::new(Shell::ALL.map(Shell::name)).try_map(move |name| named(name).ok_or("no such shell"))
}

/// Prints what a shell is to read at its start.
pub(super) fn completions(shell: Shell) -> anyhow::Result<i32> {
    report::out(&shell.script("footbridge", "footbridge completions"))?;
    Ok(0)
}

/// Prints what the last of these words may become.
pub(super) fn complete(words: &[OsString]) -> i32 {
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let (current, before) = words.split_last().unwrap_or((&"", &[]));
    let fit = candidates(before, current).into_iter().filter(|word| word.starts_with(current));
    let text: String = fit.map(|word| format!("{word}\n")).collect();
    // Nobody to tell.
    let _ = output::print(&text);
    0
}

fn candidates(before: &[&str], current: &str) -> Vec<String> {
    let mut command = &Cli::command();
    let mut is_value = false;
    for word in before {
        // What is behind it belongs to another program.
        if *word == "--" {
            return Vec::new();
        }
        is_value = !is_value && word.starts_with('-') && values(command, word).is_some();
        if let Some(below) = command.find_subcommand(word) {
            command = below;
        }
    }
    if is_value {
        return before.last().and_then(|flag| values(command, flag)).unwrap_or_default();
    }
    if let Some((flag, _)) = current.split_once('=') {
        let values = values(command, flag).unwrap_or_default();
        return values.into_iter().map(|value| format!("{flag}={value}")).collect();
    }
    if current.starts_with('-') {
        let flags = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long);
        return flags.chain(["help"]).map(|name| format!("--{name}")).collect();
    }
    let below = command.get_subcommands().filter(|below| !below.is_hide_set()).map(|below| below.get_name().to_owned());
    let positional = command.get_positionals().next().map(possible).unwrap_or_default();
    below.chain(positional).collect()
}

/// What an option takes, if it takes a value at all.
fn values(command: &Command, flag: &str) -> Option<Vec<String>> {
    let name = flag.strip_prefix("--")?;
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
    arg.get_action().takes_values().then(|| possible(arg))
}

fn possible(arg: &clap::Arg) -> Vec<String> {
    arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
}

/// Prints the help of all commands as one page.
pub(super) fn man() -> anyhow::Result<i32> {
    let mut command = Cli::command();
    command.build();
    let says = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = ManPage::of("footbridge", env!("CARGO_PKG_VERSION"), &format!("footbridge - {says}"));
    add(&command, "footbridge", &mut page);
    report::out(&page.finish())?;
    Ok(0)
}

fn add(command: &Command, name: &str, page: &mut ManPage) {
    page.section(name);
    for line in command.clone().render_long_help().to_string().lines() {
        page.line(line);
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        add(below, &format!("{name} {}", below.get_name()), page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(before: &[&str], current: &str) -> Vec<String> {
        candidates(before, current).into_iter().filter(|word| word.starts_with(current)).collect()
    }

    #[test]
    fn commands_options_and_values_are_completed() {
        assert_eq!(completed(&[], "doc"), ["doctor"]);
        assert_eq!(completed(&["config"], "ch"), ["check"]);
        assert_eq!(completed(&["run"], "--sand"), ["--sandbox"]);
        assert_eq!(completed(&["run", "--sandbox"], "po"), ["podman"]);
        assert_eq!(completed(&["run"], "--sandbox=po"), ["--sandbox=podman"]);
        assert_eq!(completed(&["completions"], "z"), ["zsh"]);
        assert!(completed(&["run", "--config"], "").is_empty(), "a file is the shell's to find");
        assert!(completed(&["run", "--"], "se").is_empty());
    }

    #[test]
    fn each_command_has_its_section() {
        let mut command = Cli::command();
        command.build();
        let mut page = ManPage::of("footbridge", "1", "footbridge - x");
        add(&command, "footbridge", &mut page);
        let page = page.finish();
        for section in [".SH footbridge\n", ".SH footbridge run\n", ".SH footbridge config trust\n"] {
            assert!(page.contains(section), "{section}");
        }
        let requests = page.lines().filter(|line| line.starts_with('.') || line.starts_with('\''));
        let known = [".TH ", ".SH ", ".nf", ".fi"];
        assert!(requests.into_iter().all(|line| known.iter().any(|start| line.starts_with(start))));
    }
}
