//! Completion for shells: servers, tools, prompts, resources, flags and values as they are now. It never fails, and is
//! soon over.
//!
//! The words before are read as the command itself reads them, so that options in front of names hide none. What a
//! server wrote lands on a person's command line: only plain words are offered. Nothing is called: what a server itself
//! would complete is left out, since that is a call, which is recorded, and which a person may be asked about. Where
//! nothing is offered shells offer files.

use std::{ffi::OsString, time::Duration};

use footbridge_cli::{
    completion::{self, Shell},
    flags::{ToolFlags, ToolWord},
    render::Format,
};
use footbridge_guest::{Client, ClientSettings};

use crate::{
    calls::flags_of_prompt,
    stubs::Language,
    words::{self, BETWEEN, OPTIONS, SUBCOMMANDS, Typed, options_with},
};

/// How long a shell waits for each answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Options whose value is the next word.
const VALUED: [&str; 10] =
    ["lang", "max-bytes", "out", "out-dir", "output", "parallel", "pick", "server", "timeout", "uri"];

/// Prints what the last of these words may become.
pub(crate) fn complete(words: &[OsString]) {
    let Some((last, before)) = words.split_last() else { return };
    let current = last.to_string_lossy();
    completion::print(&candidates(before, &current).unwrap_or_default(), &current);
}

/// What may stand there; nothing where the words before mean nothing.
fn candidates(before: &[OsString], current: &str) -> Option<Vec<String>> {
    let option = before.last().and_then(|word| word.to_str()?.strip_prefix("--")).filter(|it| VALUED.contains(it));
    let read = |words: &[OsString]| words::read(words).ok();
    // Where the last word is a value itself, such as a file of the name --server, those before it mean nothing.
    if let Some(name) = option {
        return values(name, &read(&before[..before.len() - 1])?);
    }
    let typed = read(before)?;
    let is_ended = before.iter().any(|word| word == "--");
    if is_ended || !current.starts_with('-') {
        return Some(words_of(&typed, current));
    }
    let valued = current.strip_prefix("--").and_then(|word| word.split_once('=')).map(|(name, _)| name);
    if let Some(name) = valued {
        let own = || Some(flags(&typed)?.choices(name));
        let values = if VALUED.contains(&name) { values(name, &typed) } else { own() };
        return Some(values?.into_iter().map(|value| format!("--{name}={value}")).collect());
    }
    let own = flags(&typed).unwrap_or_default();
    let of_tool = own.flags.iter().map(|flag| flag.name.clone());
    let all = of_tool.chain(options_with(typed.subcommand()).map(str::to_owned));
    let no = own.flags.iter().map(|flag| format!("no-{}", flag.name)).filter(|_| current.starts_with("--no"));
    let no = no.filter(|name| matches!(own.meant(name).as_slice(), [(_, true)]));
    Some(all.chain(no).map(|name| format!("--{name}")).collect())
}

/// What an option takes, where that is one of a few words.
fn values(option: &str, typed: &Typed) -> Option<Vec<String>> {
    match option {
        "output" => Some(known(&Format::WORDS.map(|(word, _)| word))),
        "lang" => Some(known(&Language::WORDS.map(|(word, _)| word))),
        "server" => Some(servers()),
        "uri" => Some(uris(typed.server.as_deref().or_else(|| typed.words.get(2).map(String::as_str)))),
        _ => None,
    }
}

/// What a word may be that is no option: a name, a value of the flag before it, or a subcommand's own word.
fn words_of(typed: &Typed, current: &str) -> Vec<String> {
    let words: Vec<&str> = typed.words.iter().map(String::as_str).collect();
    let named = match (typed.subcommand(), words.as_slice()) {
        (None, words) => words,
        (Some("check"), [_, named @ ..]) => named,
        (Some("completion"), [_]) => return known(&Shell::ALL.map(Shell::name)),
        (Some("mcp"), [_]) => return servers(),
        (Some("prompt"), [_]) => return known(&["get", "list"]),
        (Some("prompt"), [_, "get", server]) => return prompts(server),
        (Some("prompt"), [_, "get", _, _, ..]) => return of_flags(typed),
        (Some("prompt"), [_, _]) => return servers(),
        (Some("resource"), [_]) => return known(&["list", "read", "templates"]),
        (Some("resource"), [_, "read"]) => return readable(typed.server.as_deref()),
        (Some("resource"), [_, "read", server]) => return uris(Some(server)),
        (Some("resource"), [_, _]) => return servers(),
        _ => return Vec::new(),
    };
    match named {
        [] if current.contains(BETWEEN) => joined(current),
        [] if typed.subcommand().is_some() || typed.literal => servers(),
        [] => servers().into_iter().chain(known(&SUBCOMMANDS)).collect(),
        [joined] if joined.contains(BETWEEN) => of_flags(typed),
        [server] => tools(server),
        _ => of_flags(typed),
    }
}

fn known(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The values of the flag that is the last word; behind any other word, all flags; behind one that takes any text,
/// nothing.
fn of_flags(typed: &Typed) -> Vec<String> {
    let flags = flags(typed).unwrap_or_default();
    let open = match typed.behind.words.last() {
        Some(ToolWord::Flag(name, None)) => flags.find(name).filter(|flag| !flag.is_switch()),
        _ => None,
    };
    match open {
        Some(flag) => flags.choices(&flag.name),
        None => flags.flags.iter().map(|flag| format!("--{}", flag.name)).chain(options()).collect(),
    }
}

fn options() -> impl Iterator<Item = String> {
    OPTIONS.iter().map(|name| format!("--{name}"))
}

/// The flags of the tool or of the prompt that is named.
fn flags(typed: &Typed) -> Option<ToolFlags> {
    if !typed.has_tool() {
        return None;
    }
    let mut client = client()?;
    if let (Some("prompt"), [_, _, server, prompt, ..]) = (typed.subcommand(), typed.words.as_slice()) {
        return flags_of_prompt(client.prompts(server).ok()?, prompt);
    }
    let named = if typed.subcommand() == Some("check") { &typed.words[1..] } else { typed.words.as_slice() };
    let (server, tool) = match named {
        [joined, ..] if joined.contains(BETWEEN) => joined.split_once(BETWEEN)?,
        [server, tool, ..] => (server.as_str(), tool.as_str()),
        _ => return None,
    };
    Some(ToolFlags::of(&client.describe(server, tool).ok()?.input_schema, &OPTIONS))
}

fn servers() -> Vec<String> {
    let listed = client().and_then(|mut client| client.servers().ok()).unwrap_or_default();
    listed.into_iter().map(|server| server.name).collect()
}

fn tools(server: &str) -> Vec<String> {
    let listed = client().and_then(|mut client| client.tools(server).ok()).unwrap_or_default();
    listed.into_iter().map(|tool| tool.name).collect()
}

/// Tools in one word with their server's name.
fn joined(current: &str) -> Vec<String> {
    let before = |server: &String| format!("{server}{BETWEEN}");
    let meant = servers().into_iter().filter(|server| current.starts_with(&before(server)));
    meant.flat_map(|server| tools(&server).into_iter().map(move |tool| before(&server) + &tool)).collect()
}

fn prompts(server: &str) -> Vec<String> {
    let listed = client().and_then(|mut client| client.prompts(server).ok()).unwrap_or_default();
    listed.into_iter().map(|prompt| prompt.name).collect()
}

/// What may be behind `resource read`: servers, and the URIs of the one that is named or alone.
fn readable(server: Option<&str>) -> Vec<String> {
    if server.is_some() {
        return uris(server);
    }
    let servers = servers();
    let of_only = if servers.len() == 1 { uris(servers.first().map(String::as_str)) } else { Vec::new() };
    servers.into_iter().chain(of_only).collect()
}

/// The URIs of a server's resources, and what those of its templates begin with.
fn uris(server: Option<&str>) -> Vec<String> {
    let (Some(server), Some(mut client)) = (server, client()) else { return Vec::new() };
    let resources = client.resources(server).unwrap_or_default().into_iter().map(|resource| resource.uri);
    let begin = |template: &str| template.split('{').next().unwrap_or_default().to_owned();
    let mut all: Vec<String> = resources.collect();
    for template in client.templates(server).unwrap_or_default() {
        let begin = begin(&template.uri);
        if !all.contains(&begin) {
            all.push(begin);
        }
    }
    all
}

fn client() -> Option<Client> {
    Some(Client::new(ClientSettings::from_env().ok()?).with_timeout(PATIENCE))
}
