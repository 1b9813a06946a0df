//! Completion: commands, options and their values, off the command line as it is parsed, and names of what is configured
//! and of the daemon's sessions. It starts nothing, fills in no secret and never fails. Tools are for `mcp-tool` to
//! complete.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Arg, Command, CommandFactory as _};
use footbridge_cli::completion;
use footbridge_core::{gate::Policies, service::TUNNELS};

use super::Cli;
use crate::{
    config::{Outline, folders::Folders, settings_of},
    control::{self, client::ControlClient, wire::ListSessions},
};

/// How long the daemon may take for each answer: whoever presses a key waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints what the last of these words may become.
pub(super) fn main(words: &[OsString]) -> i32 {
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let (current, before) = words.split_last().unwrap_or((&"", &[]));
    completion::print(&candidates(before, current), current);
    0
}

/// What a word names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Policy,
    Server,
    Service,
    Session,
}

impl Named {
    /// What an argument of a command names; `path` are the names that lead to the command.
    fn of(arg: &Arg, path: &[&str]) -> Option<Self> {
        match (arg.get_id().as_str(), path) {
            ("policy", _) => Some(Self::Policy),
            ("server", _) | ("name", ["servers", ..]) => Some(Self::Server),
            ("services", ["run" | "session" | "agent-config", ..]) | ("name", ["services", ..]) => Some(Self::Service),
            ("via" | "session", _) | ("name", ["session", "show" | "limit" | "revoke" | "rotate"]) => {
                Some(Self::Session)
            }
            _ => None,
        }
    }

    /// What there is of it.
    fn names(self, configs: &[PathBuf]) -> Vec<String> {
        let Ok(folders) = Folders::of_this_user() else { return Vec::new() };
        let outline = || Outline::read(configs, &folders);
        match self {
            Self::Policy => {
                Policies::default().names().map(str::to_owned).chain(members(&outline(), "policies")).collect()
            }
            Self::Server => outline().servers.into_iter().map(|server| server.name).collect(),
            Self::Service => services(&outline()),
            Self::Session => sessions(&folders),
        }
    }
}

/// The names of what stands below a name in the settings.
fn members(outline: &Outline, below: &str) -> Vec<String> {
    let (settings, _problems_are_for_other_commands) = settings_of(&outline.settings);
    let node = settings.iter().find(|member| member.name == below).map(|member| &member.node);
    let members = node.and_then(|node| node.members()).unwrap_or_default();
    members.iter().map(|member| member.name.clone()).collect()
}

/// The services, tunnels among them where there are some.
fn services(outline: &Outline) -> Vec<String> {
    let mut names = members(outline, "services");
    names.extend((!members(outline, TUNNELS).is_empty()).then(|| TUNNELS.to_owned()));
    names
}

/// The daemon's sessions, if one runs.
fn sessions(folders: &Folders) -> Vec<String> {
    let listed = ControlClient::connect_within(&control::of_serve(&folders.runtime), PATIENCE)
        .and_then(|mut daemon| daemon.call(&ListSessions {}));
    listed.unwrap_or_default().into_iter().map(|session| session.name).collect()
}

/// The words before the one that is typed, as far as they go.
struct Typed<'c> {
    command: &'c Command,
    /// The names that lead to it.
    path: Vec<&'c str>,
    /// How many words stand there that are no options, commands or values.
    plain: usize,
    /// The option whose value comes next.
    open: Option<&'c Arg>,
    configs: Vec<PathBuf>,
}

impl<'c> Typed<'c> {
    /// Nothing where what follows belongs to another program.
    fn read(cli: &'c Command, before: &[&str]) -> Option<Self> {
        let mut typed = Self { command: cli, path: Vec::new(), plain: 0, open: None, configs: Vec::new() };
        for word in before {
            if let Some(option) = typed.open.take() {
                typed.configs.extend((option.get_long() == Some("config")).then(|| PathBuf::from(word)));
            } else if *word == "--" {
                return None;
            } else if word.starts_with('-') {
                let config = word.strip_prefix("--config=").map(PathBuf::from);
                typed.configs.extend(config);
                typed.open = valued(typed.command, word);
            } else if let Some(below) = typed.command.find_subcommand(word) {
                typed.command = below;
                typed.path.push(below.get_name());
            } else {
                typed.plain += 1;
            }
        }
        Some(typed)
    }

    /// What this argument may be.
    fn values(&self, arg: &Arg) -> Vec<String> {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            return possible.iter().map(|value| value.get_name().to_owned()).collect();
        }
        Named::of(arg, &self.path).map(|named| named.names(&self.configs)).unwrap_or_default()
    }
}

/// The option of this name, if it takes a value.
fn valued<'c>(command: &'c Command, flag: &str) -> Option<&'c Arg> {
    let name = flag.strip_prefix("--")?;
    command.get_arguments().find(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
}

fn candidates(before: &[&str], current: &str) -> Vec<String> {
    let cli = Cli::command();
    let Some(typed) = Typed::read(&cli, before) else { return Vec::new() };
    if let Some(option) = typed.open {
        return typed.values(option);
    }
    let command = typed.command;
    if let Some((flag, _)) = current.split_once('=') {
        let values = valued(command, flag).map(|option| typed.values(option)).unwrap_or_default();
        return values.into_iter().map(|value| format!("{flag}={value}")).collect();
    }
    if current.starts_with('-') {
        let flags = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
        return flags.chain(["help"]).map(|name| format!("--{name}")).collect();
    }
    let below = command.get_subcommands().filter(|below| !below.is_hide_set()).map(|below| below.get_name().to_owned());
    let positional = command.get_positionals().nth(typed.plain);
    below.chain(positional.map(|arg| typed.values(arg)).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    fn names_of_what_is_configured_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let servers =
            file("servers.json", r#"{"mcpServers": {"alpha": {"command": "${UNSET}"}, "beta": {"command": "x"}}}"#);
        let settings = file(
            "footbridge.toml",
            "[policies.careful]\nrules = []\n[services.model]\npreset = \"openai\"\ncredential_command = [\"/bin/false\"]\n[tunnels]\nallow = [\"x.test:443\"]\n",
        );
        let with = |words: &[&str], current: &str| {
            let configs = ["--config", &servers, &format!("--config={settings}")];
            let before: Vec<&str> =
                words[..1].iter().copied().chain(configs).chain(words[1..].iter().copied()).collect();
            completed(&before, current)
        };
        assert_eq!(with(&["run", "--policy"], ""), ["ask", "open", "readonly", "careful"]);
        assert_eq!(with(&["run"], "--policy=c"), ["--policy=careful"]);
        assert_eq!(with(&["run", "--service"], ""), ["model", "tunnels"]);
        assert_eq!(with(&["tools"], ""), ["alpha", "beta"]);
        assert!(with(&["tools", "alpha"], "").is_empty(), "tools are mcp-tool's");
        assert_eq!(completed(&["policy", "test", "--config", &servers], "b"), ["beta"]);
    }

    /// Whatever is given a new name that means one of these is completed, too.
    #[test]
    fn what_names_something_is_known_in_all_commands() {
        let mut cli = Cli::command();
        cli.build();
        let known = |words: &[&str], id: &str| {
            let command = words.iter().fold(&cli, |command, word| command.find_subcommand(word).unwrap());
            let arg = command.get_arguments().find(|arg| arg.get_id() == id).unwrap();
            Named::of(arg, words)
        };
        assert_eq!(known(&["session", "revoke"], "name"), Some(Named::Session));
        assert_eq!(known(&["session", "limit"], "name"), Some(Named::Session));
        assert_eq!(known(&["session", "create"], "name"), None);
        assert_eq!(known(&["session", "create"], "services"), Some(Named::Service));
        assert_eq!(known(&["servers", "logs"], "name"), Some(Named::Server));
        assert_eq!(known(&["services", "check"], "name"), Some(Named::Service));
        assert_eq!(known(&["call"], "via"), Some(Named::Session));
    }
}
