//! What the command says of itself for others to keep: what shells read to complete it, and a page for `man`, which is read
//! off the command line as it is parsed, so that it cannot lag behind.

use clap::{
    Command, CommandFactory as _,
    builder::{PossibleValuesParser, TypedValueParser},
};
use footbridge_cli::{completion::Shell, man::ManPage};

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
