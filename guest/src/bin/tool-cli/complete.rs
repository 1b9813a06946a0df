//! Completion for shells: servers, tools, flags and values as they are now. It never fails, and is soon over.
//!
//! What a server wrote lands on a person's command line: only plain words are offered.

use std::time::Duration;

use footbridge_cli::{flags::ToolFlags, output};
use footbridge_guest::{Client, ClientSettings, answers::ToolDescription};

use crate::words::{BETWEEN, OPTIONS, SUBCOMMANDS};

/// How long a shell waits for each answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The shells, and what each is to read at its start.
pub(crate) const SHELLS: [(&str, &str); 3] = [
    (
        "bash",
        r#"# source <(tool-cli completion bash)
_tool_cli() {
  local IFS=$'\n'
  COMPREPLY=($(tool-cli __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _tool_cli tool-cli
"#,
    ),
    (
        "zsh",
        r#"# source <(tool-cli completion zsh)
_tool_cli() {
  local -a found
  found=("${(@f)$(tool-cli __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  (( ${#found} )) && [[ -n $found[1] ]] && compadd -- "${found[@]}" || _files
}
compdef _tool_cli tool-cli
"#,
    ),
    (
        "fish",
        "# tool-cli completion fish | source
complete -c tool-cli -a '(tool-cli __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
",
    ),
];

/// Prints what the last of these words may become.
pub(crate) fn complete(words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (current, before) = words.split_last().unwrap_or((&"", &[]));
    let candidates = candidates(before, current);
    let fit = candidates.iter().filter(|word| word.starts_with(current) && is_plain(word));
    let text: String = fit.map(|word| format!("{word}\n")).collect();
    // Nobody to tell.
    let _ = output::print(&text);
}

/// Nothing in it means anything to a shell.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:@=+".contains(c))
}

fn candidates(before: &[&str], current: &str) -> Vec<String> {
    let known = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let names: Vec<&str> = before.iter().copied().take_while(|word| !word.starts_with('-')).collect();
    match names.as_slice() {
        [] if current.starts_with('-') => options(),
        [] => servers().into_iter().chain(known(&SUBCOMMANDS)).collect(),
        ["completion", ..] => known(&SHELLS.map(|(shell, _)| shell)),
        ["resource"] => known(&["list", "read", "templates"]),
        ["prompt"] => known(&["get", "list"]),
        ["resource" | "prompt", _] | ["mcp"] | ["check"] => servers(),
        ["check", server] => tools(server),
        ["check", server, tool, ..] => arguments(server, tool, before, current),
        [joined, ..] if joined.contains(BETWEEN) => {
            let (server, tool) = joined.split_once(BETWEEN).unwrap_or_default();
            arguments(server, tool, before, current)
        }
        [server] => tools(server),
        [server, tool, ..] => arguments(server, tool, before, current),
    }
}

fn options() -> Vec<String> {
    OPTIONS.iter().map(|name| format!("--{name}")).collect()
}

/// Flags of a tool, or the values that one takes.
fn arguments(server: &str, tool: &str, before: &[&str], current: &str) -> Vec<String> {
    let described = client().and_then(|mut client| client.describe(server, tool).ok());
    let Some(ToolDescription { input_schema, .. }) = described else { return options() };
    let flags = ToolFlags::of(&input_schema, &OPTIONS);
    let choices = |flag: &str| flag.strip_prefix("--").map(|name| flags.choices(name)).unwrap_or_default();
    if let Some((flag, _)) = current.split_once('=') {
        return choices(flag).into_iter().map(|choice| format!("{flag}={choice}")).collect();
    }
    let values = before.last().map(|last| choices(last)).unwrap_or_default();
    if values.is_empty() || current.starts_with('-') {
        flags.flags.iter().map(|flag| format!("--{}", flag.name)).chain(options()).collect()
    } else {
        values
    }
}

fn servers() -> Vec<String> {
    let listed = client().and_then(|mut client| client.servers().ok()).unwrap_or_default();
    listed.into_iter().map(|server| server.name).collect()
}

fn tools(server: &str) -> Vec<String> {
    let listed = client().and_then(|mut client| client.tools(server).ok()).unwrap_or_default();
    listed.into_iter().map(|tool| tool.name).collect()
}

fn client() -> Option<Client> {
    Some(Client::new(ClientSettings::from_env().ok()?).with_timeout(PATIENCE))
}
