//! Which tool a name means: servers' names and tools' names are untouched, and either may hold `__`.

use std::ffi::OsString;

use clap::{Args as _, Command, FromArgMatches as _};
use footbridge_calls::cause::Cause;
use footbridge_cli::suggest::instead;
use footbridge_edge::error_of;
use footbridge_proto::text::Escaped;

use super::{NAME, Options};
use crate::{
    cli::known_tools::KnownTools,
    oneshot::{
        failure::OneShotFailure,
        lists::{CHANGED, Names, ToolsList},
    },
};

/// What stands between a server's name and a tool's.
pub(super) const BETWEEN: &str = "__";

/// A tool by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) server: String,
    pub(super) tool: String,
}

impl Named {
    /// As it is typed.
    pub(super) fn name(&self) -> String {
        format!("{}{BETWEEN}{}", self.server, self.tool)
    }

    /// That it is not what it was, as a call of it is told.
    pub(super) fn changed(&self) -> OneShotFailure {
        let Ok(server) = self.server.parse() else { return OneShotFailure::Usage(CHANGED.to_owned()) };
        let cause = Cause::NotAsPinned { server, tool: self.tool.clone() };
        OneShotFailure::Refused(Box::new(error_of(&cause.into())), None)
    }

    /// That its server has no such tool.
    pub(super) fn unknown(&self, list: &ToolsList) -> OneShotFailure {
        let known: Vec<&str> = list.names.tools.iter().map(|tool| tool.name.as_str()).collect();
        OneShotFailure::Usage(format!(
            "server \"{}\" has no tool \"{}\"{} (as listed at {}; --refresh asks again)",
            Escaped(&self.server),
            Escaped(&self.tool),
            instead(&self.tool, &known, "it has none"),
            list.names.listed
        ))
    }
}

/// Finds the tool of a name. Where several servers could have it, what they offer decides.
pub(super) fn find(known: &KnownTools, name: &str, refresh: bool) -> Result<Named, OneShotFailure> {
    let mut possible = possible(known.servers().into_iter(), name);
    if possible.len() > 1 {
        let mut having = Vec::new();
        for one in &possible {
            if known.whole(&one.server, refresh)?.definition(&one.tool).is_some() {
                having.push(one.clone());
            }
        }
        possible = if having.is_empty() { possible } else { having };
    }
    match possible.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(nothing(known, name)),
        [first, ..]
            if possible
                .iter()
                .all(|one| known.kept(&one.server).is_some_and(|l| l.definition(&one.tool).is_none())) =>
        {
            Err(nothing(known, &first.name()))
        }
        several => {
            let via = known.option();
            let ways: Vec<String> = several
                .iter()
                .map(|one| format!("footbridge call{via} {} {}", Escaped(&one.server), Escaped(&one.tool)))
                .collect();
            let ways = ways.join(", or ");
            Err(OneShotFailure::Usage(format!("\"{}\" is more than one tool: say which by {ways}", Escaped(name))))
        }
    }
}

/// All ways to take a name apart.
pub(super) fn possible<'a>(servers: impl Iterator<Item = &'a str>, name: &str) -> Vec<Named> {
    let tool_of = |server: &str| {
        let tool = name.strip_prefix(server)?.strip_prefix(BETWEEN)?;
        (!tool.is_empty()).then(|| Named { server: server.to_owned(), tool: tool.to_owned() })
    };
    servers.filter_map(tool_of).collect()
}

/// The names of all tools that are known without anything being started.
pub(super) fn names(tools: &KnownTools) -> Vec<String> {
    let of = |(server, names): (&str, Names)| {
        let name = |tool: footbridge_proto::wire::ToolEntry| format!("{server}{BETWEEN}{}", tool.name);
        names.tools.into_iter().map(name).collect::<Vec<_>>()
    };
    tools.at_hand().into_iter().flat_map(of).collect()
}

/// That nothing has this name, and what may have been meant, by the lists that are kept.
fn nothing(tools: &KnownTools, name: &str) -> OneShotFailure {
    if tools.has_problems() || tools.servers().is_empty() {
        return tools.nothing();
    }
    let known = names(tools);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let what = format!("there is no tool \"{}\"{}", Escaped(name), tools.not_trusted());
    let otherwise = format!("a name is SERVER{BETWEEN}TOOL; {NAME} --help lists all");
    let instead = instead(name, &known, &otherwise);
    let all = if instead.contains("did you mean") || known.is_empty() { "" } else { "; --help lists all" };
    OneShotFailure::Usage(format!("{what}{instead}{all}"))
}

/// The options among words that may hold flags of a tool that is not known yet. What is not an option is passed over;
/// the words are read again once the tool is known.
pub(super) fn early(words: &[OsString]) -> Options {
    let command = || Options::augment_args(Command::new(NAME).no_binary_name(true).disable_help_flag(true));
    let read = command().ignore_errors(true).try_get_matches_from(words);
    let mut options = read.ok().and_then(|matches| Options::from_arg_matches(&matches).ok()).unwrap_or_default();
    // One that comes behind a flag of the tool is not seen by that.
    let valued: Vec<String> = command()
        .get_arguments()
        .filter(|arg| arg.get_action().takes_values())
        .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
        .collect();
    for (at, word) in words.iter().enumerate() {
        let Some(word) = word.to_str() else { continue };
        let before = at.checked_sub(1).and_then(|at| words[at].to_str());
        if before.is_some_and(|before| valued.iter().any(|flag| flag == before)) {
            continue;
        }
        let (flag, inline) = word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
        let value = inline.map(str::to_owned).or_else(|| words.get(at + 1)?.to_str().map(str::to_owned));
        match flag {
            "--" => break,
            "--help" | "-h" => options.help = true,
            "--refresh" => options.refresh = true,
            "--verbose" | "-v" => options.verbose = true,
            "--json-stdin" => options.json_stdin = true,
            _ => set(&mut options, flag, value),
        }
    }
    options
}

/// Sets an option that has a value.
fn set(options: &mut Options, flag: &str, value: Option<String>) {
    let Some(value) = value else { return };
    match flag {
        "--config" if !options.files.config.iter().any(|path| path.as_os_str() == value.as_str()) => {
            options.files.config.push(value.into());
        }
        "--output" => options.output = clap::ValueEnum::from_str(&value, true).ok(),
        "--policy" => options.how.policy = Some(value),
        "--via" => options.how.via = Some(value),
        "--timeout" => options.how.timeout = Some(value),
        "--out" => options.how.out = Some(value.into()),
        "--out-dir" => options.how.out_dir = Some(value.into()),
        "--json" => options.json = Some(value),
        "--json-file" => options.json_file = Some(value.into()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart_in_every_way_that_servers_allow() {
        let servers = ["a", "a__b", "b", "a_"];
        let found = |name: &str| -> Vec<(String, String)> {
            possible(servers.into_iter(), name).into_iter().map(|one| (one.server, one.tool)).collect()
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(found("a__x"), [pair("a", "x")]);
        assert_eq!(found("a__b__x"), [pair("a", "b__x"), pair("a__b", "x")]);
        assert_eq!(found("a___x"), [pair("a", "_x"), pair("a_", "x")]);
        assert!(found("c__x").is_empty() && found("a__").is_empty() && found("a").is_empty());
    }

    #[test]
    fn options_are_found_among_flags_that_are_not_known_yet() {
        let words = ["--city", "Bern", "--config", "a.json", "--output=json", "--text", "--refresh", "--timeout", "5s"];
        let options = early(&words.map(OsString::from));
        assert_eq!(options.files.config, [std::path::PathBuf::from("a.json")]);
        assert!(options.is_json() && options.refresh && !options.help);
        assert_eq!(options.how.timeout.as_deref(), Some("5s"));
    }
}
