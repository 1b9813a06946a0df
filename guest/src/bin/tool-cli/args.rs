//! The command line as typed, and what it means.
//!
//! Words such as `resource` and `batch` are subcommands; `--` in front makes the first word a server's name whatever it is.
//! Everything else is a position: server, tool, arguments.

use std::{collections::VecDeque, ffi::OsString, path::PathBuf};

use footbridge_cli::{completion::Shell, render::Format};
use footbridge_proto::vars;

use crate::{
    stubs::Language,
    words::{self, ArgsError, BETWEEN, BehindTool, MOST_PARALLEL, Options, Typed, VERBS},
};

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Help,
    Version,
    Servers,
    Tools {
        server: String,
    },
    Describe {
        server: String,
        tool: String,
    },
    /// How to call it.
    Explain {
        server: String,
        tool: String,
    },
    Call(TypedCall),
    /// What would become of a call, without making it.
    Check(TypedCall),
    /// A word that is a server's name and a tool's, or a server's alone: which servers there are says it.
    Joined {
        words: Vec<String>,
        behind: BehindTool,
        about: About,
    },
    /// Tools of all servers, or of one, by words.
    Search {
        query: String,
        server: Option<String>,
    },
    /// Without a server, of all.
    Resources {
        server: Option<String>,
    },
    /// Without a server, of all.
    Templates {
        server: Option<String>,
    },
    /// Without a server, of the only one.
    Read {
        server: Option<String>,
        uri: String,
    },
    Wait {
        id: String,
    },
    /// Without a server, of all.
    Prompts {
        server: Option<String>,
    },
    /// A prompt, filled in; the tool's name is the prompt's.
    Prompt(TypedCall),
    /// What a shell is to read at its start.
    Completion {
        shell: Shell,
    },
    /// The usage as a page for `man`.
    Man,
    /// What an agent should know of all this.
    Skill,
    /// Each server as a module of functions.
    Stubs {
        language: Language,
        folder: PathBuf,
    },
    /// Calls of standard input.
    Batch {
        parallel: usize,
    },
    /// What is wrong on the way to a tool.
    Doctor,
    /// MCP over standard input and output.
    Mcp {
        server: Option<String>,
        search: bool,
    },
}

/// A call as it was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypedCall {
    pub(crate) server: String,
    pub(crate) tool: String,
    /// A JSON object, `@FILE` or `-`.
    pub(crate) json: Option<String>,
    pub(crate) behind: BehindTool,
}

/// What shapes even the error of a command line that cannot be read, so it is looked for first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) json: bool,
    pub(crate) exit_codes: bool,
    /// What becomes of a call is one object of the shape `mcp-client/1`, whatever fails.
    pub(crate) report: bool,
    /// Listings are for an agent to read.
    pub(crate) agent: bool,
}

impl Style {
    /// Looks for the two flags, and for what the environment says.
    pub(crate) fn find(args: &[OsString], variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let words = || args.iter().take_while(|arg| *arg != "--");
        let has = |flag: &str| words().any(|arg| arg == flag);
        let is_output_json = words().zip(words().skip(1)).any(|(arg, value)| arg == "--output" && value == "json");
        let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
        Self {
            json: has("--json") || has("--output=json") || is_output_json,
            exit_codes: is(vars::EXIT_CODES, "1") || has("--exit-codes"),
            report: has("--report"),
            agent: is(vars::STYLE, vars::STYLE_AGENT),
        }
    }
}

/// Reads a command line without the program's name.
pub(crate) fn parse(args: &[OsString]) -> Result<(Step, Options), ArgsError> {
    let typed = words::read(args)?;
    if typed.help && (!typed.has_tool() || typed.subcommand().is_some()) {
        return Ok((Step::Help, typed.options));
    }
    if typed.version {
        return Ok((Step::Version, typed.options));
    }
    let subcommand = typed.subcommand();
    if typed.search && subcommand != Some("mcp") {
        return Err(ArgsError::SearchWithout);
    }
    if typed.lang.is_some() && subcommand != Some("stubs") {
        return Err(ArgsError::LangWithout);
    }
    if typed.parallel.is_some() && subcommand != Some("batch") {
        return Err(ArgsError::ParallelWithout);
    }
    let (step, options) = match subcommand {
        Some("batch") => batch_step(typed)?,
        Some("check") => check_step(typed)?,
        Some("completion") => completion_step(typed)?,
        Some("doctor") => doctor_step(typed)?,
        Some("help") if typed.words.len() == 1 => (Step::Help, typed.options),
        Some("man") => alone(typed, "man", Step::Man)?,
        Some("mcp") => mcp_step(typed)?,
        Some("prompt") => prompt_step(typed)?,
        Some("skill") => alone(typed, "skill", Step::Skill)?,
        Some("stubs") => stubs_step(typed)?,
        Some("resource") => resource_step(typed)?,
        Some("search") => search_step(typed)?,
        Some("wait") => wait_step(typed)?,
        _ => plain_step(typed)?,
    };
    fits(&step, &options)?;
    Ok((step, options))
}

/// Whether the options go with the step. Of a word that may be two names it is asked once that is known.
pub(crate) fn fits(step: &Step, options: &Options) -> Result<(), ArgsError> {
    let may_call = matches!(step, Step::Call(_) | Step::Joined { .. } | Step::Read { .. } | Step::Prompt(_));
    if options.out.is_some() && !may_call && !matches!(step, Step::Wait { .. }) {
        return Err(ArgsError::OutWithout);
    }
    let shapes = options.format.is_some_and(|format| !matches!(format, Format::Text | Format::Json))
        || options.pick.is_some()
        || options.max_bytes.is_some();
    if shapes && !may_call && !matches!(step, Step::Wait { .. }) {
        return Err(ArgsError::ShapeWithout);
    }
    if options.report && !matches!(step, Step::Call(_) | Step::Joined { .. }) {
        return Err(ArgsError::ReportWithout);
    }
    if options.report && (options.out.is_some() || options.format.is_some() || shapes) {
        return Err(ArgsError::ReportShaped);
    }
    if options.no_wait && !may_call {
        return Err(ArgsError::NoWaitWithout);
    }
    Ok(())
}

/// What is done about a tool that was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// It is described, or called where there are arguments.
    Use,
    /// It is explained how to call it.
    Explain,
    /// Its arguments are checked.
    Check,
}

fn plain_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    if typed.server.is_some() {
        return Err(ArgsError::ResourceOnly("server"));
    }
    if typed.uri.is_some() {
        return Err(ArgsError::ResourceOnly("uri"));
    }
    let Typed { words, behind, options, help, .. } = typed;
    let about = if help { About::Explain } else { About::Use };
    Ok((tool_step(words, behind, about)?, options))
}

/// A subcommand of one word.
fn alone(typed: Typed, name: &'static str, step: Step) -> Result<(Step, Options), ArgsError> {
    match (typed.words.len(), typed.server.or(typed.uri)) {
        (1, None) => Ok((step, typed.options)),
        _ => Err(ArgsError::Alone(name)),
    }
}

/// `completion SHELL`.
fn completion_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    let is_named = |shell: &Shell| typed.words.get(1).is_some_and(|word| word == shell.name());
    match (Shell::ALL.into_iter().find(is_named), typed.words.len()) {
        (Some(shell), 2) => Ok((Step::Completion { shell }, typed.options)),
        _ => Err(ArgsError::Completion),
    }
}

/// `prompt list [SERVER]` and `prompt get SERVER PROMPT ARGS`.
fn prompt_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    let Typed { words, behind, options, server, .. } = typed;
    let mut words = words.into_iter().skip(1);
    let step = match (words.next().as_deref(), words.next(), words.next(), words.next()) {
        (Some("list"), named, None, None) if behind.words.is_empty() => Step::Prompts { server: server.or(named) },
        (Some("get"), Some(server), Some(prompt), json) => {
            Step::Prompt(TypedCall { server, tool: prompt, json, behind })
        }
        _ => return Err(ArgsError::Prompt),
    };
    if words.next().is_some() { Err(ArgsError::Prompt) } else { Ok((step, options)) }
}

/// `stubs --lang LANGUAGE FOLDER`.
fn stubs_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    let language = typed.lang.as_deref().and_then(Language::of_word).ok_or(ArgsError::Stubs)?;
    match <[String; 2]>::try_from(typed.words) {
        Ok([_, folder]) => Ok((Step::Stubs { language, folder: folder.into() }, typed.options)),
        Err(_) => Err(ArgsError::Stubs),
    }
}

/// `batch [--parallel N]`.
fn batch_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    let parallel = typed.parallel.unwrap_or(1);
    let is_alone = typed.words.len() == 1 && typed.server.is_none() && typed.uri.is_none();
    if is_alone && (1..=MOST_PARALLEL).contains(&parallel) {
        Ok((Step::Batch { parallel }, typed.options))
    } else {
        Err(ArgsError::Batch)
    }
}

/// `check SERVER TOOL ARGS`.
fn check_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    let Typed { mut words, behind, options, server, uri, .. } = typed;
    words.remove(0);
    let is_named = words.len() > 1 || words.first().is_some_and(|word| word.contains(BETWEEN));
    match server.or(uri) {
        None if is_named => Ok((tool_step(words, behind, About::Check)?, options)),
        _ => Err(ArgsError::Check),
    }
}

/// What is meant by a server, a tool and what is behind it.
fn tool_step(words: Vec<String>, behind: BehindTool, about: About) -> Result<Step, ArgsError> {
    match words.first() {
        None => return Ok(Step::Servers),
        Some(first) if first.contains(BETWEEN) => return Ok(Step::Joined { words, behind, about }),
        Some(_) => {}
    }
    let mut words = words.into_iter();
    let server = words.next().unwrap_or_default();
    let Some(tool) = words.next() else { return Ok(Step::Tools { server }) };
    named_step(server, tool, words.collect(), behind, about)
}

/// What is meant by a tool and what is behind it.
pub(crate) fn named_step(
    server: String,
    tool: String,
    rest: Vec<String>,
    behind: BehindTool,
    about: About,
) -> Result<Step, ArgsError> {
    let mut rest = rest.into_iter();
    let json = rest.next();
    if let Some(word) = rest.next() {
        let is_verb = VERBS.contains(&server.as_str());
        return Err(if is_verb { ArgsError::Verb(server) } else { ArgsError::TooMany(word) });
    }
    let is_call = json.is_some() || !behind.words.is_empty();
    let call = TypedCall { server, tool, json, behind };
    Ok(match about {
        About::Explain => Step::Explain { server: call.server, tool: call.tool },
        About::Check => Step::Check(call),
        About::Use if is_call => Step::Call(call),
        About::Use => Step::Describe { server: call.server, tool: call.tool },
    })
}

/// `doctor`.
fn doctor_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    match (typed.words.len(), typed.behind.words.is_empty(), typed.server.or(typed.uri)) {
        (1, true, None) => Ok((Step::Doctor, typed.options)),
        _ => Err(ArgsError::Doctor),
    }
}

/// `mcp [SERVER] [--search]`.
fn mcp_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    let mut words = typed.words.into_iter().skip(1);
    match (words.next(), words.next(), typed.server.or(typed.uri)) {
        (server, None, None) => Ok((Step::Mcp { server, search: typed.search }, typed.options)),
        _ => Err(ArgsError::Mcp),
    }
}

/// `search WORDS [--server SERVER]`.
fn search_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    let query = typed.words[1..].join(" ");
    match (query.trim(), typed.uri) {
        ("", _) | (_, Some(_)) => Err(ArgsError::Search),
        _ => Ok((Step::Search { query, server: typed.server }, typed.options)),
    }
}

/// `wait ID`.
fn wait_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    match (<[String; 2]>::try_from(typed.words), typed.server.or(typed.uri)) {
        (Ok([_, id]), None) => Ok((Step::Wait { id }, typed.options)),
        _ => Err(ArgsError::Wait),
    }
}

/// `resource COMMAND [SERVER] [URI]`; the public client's `--server` and `--uri` say the same. A single word behind
/// `read` is a URI, as in the public client.
fn resource_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    let mut words = typed.words.into_iter().skip(1);
    let Some(command) = words.next() else {
        return Err(ArgsError::Missing { command: "", what: "list, templates or read" });
    };
    let mut words: VecDeque<String> = words.collect();
    let step = match command.as_str() {
        "list" | "templates" if typed.uri.is_some() => return Err(ArgsError::ReadOnly),
        "list" => Step::Resources { server: typed.server.or_else(|| words.pop_front()) },
        "templates" => Step::Templates { server: typed.server.or_else(|| words.pop_front()) },
        "read" => {
            let uri =
                typed.uri.or_else(|| words.pop_back()).ok_or(ArgsError::Missing { command: "read", what: "a uri" })?;
            Step::Read { server: typed.server.or_else(|| words.pop_front()), uri }
        }
        _ => return Err(ArgsError::ResourceCommand(command)),
    };
    match words.pop_front() {
        Some(word) => Err(ArgsError::TooMany(word)),
        None => Ok((step, typed.options)),
    }
}

#[cfg(test)]
mod tests {
    use footbridge_cli::{destination::Destination, flags::ToolWord};

    use super::*;

    fn step(words: &[&str]) -> Result<(Step, Options), ArgsError> {
        parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn behind(words: Vec<ToolWord>) -> BehindTool {
        BehindTool { words, options: Vec::new() }
    }

    fn call(json: Option<&str>, words: Vec<ToolWord>) -> TypedCall {
        let behind = behind(words);
        TypedCall { server: "a".into(), tool: "b".into(), json: json.map(str::to_owned), behind }
    }

    #[test]
    fn flags_behind_a_tool_are_its_own_but_for_options() {
        let flag = |name: &str, value: Option<&str>| ToolWord::Flag(name.into(), value.map(str::to_owned));
        let plain = |word: &str| ToolWord::Plain(word.into());
        let words = ["a", "b", "{}", "--uri", "u", "--n", "-3", "--dry", "--out=f", "--x=", "y"];
        let own = vec![
            flag("uri", None),
            plain("u"),
            flag("n", None),
            plain("-3"),
            flag("dry", None),
            flag("x", Some("")),
            plain("y"),
        ];
        let (found, options) = step(&words).unwrap();
        let expected = BehindTool { words: own, options: vec!["out"] };
        assert_eq!(found, Step::Call(TypedCall { behind: expected, ..call(Some("{}"), Vec::new()) }));
        let before = step(&["--max-bytes", "5", "a", "b", "{}", "--max-bytes=6"]).unwrap();
        let Step::Call(TypedCall { behind: kept, .. }) = before.0 else { panic!("no call") };
        assert_eq!((kept.options, before.1.max_bytes), (vec!["max-bytes"], Some(6)));
        assert_eq!(options.out, Some(Destination::File("f".into())));
        assert!(matches!(step(&["a", "--n", "3"]), Err(ArgsError::UnknownOption(_))), "no tool is named yet");
        let told = step(&["a", "--tiemout", "3"]).unwrap_err().to_string();
        assert_eq!(told, "invalid option '--tiemout'; did you mean --timeout? Nothing was done: see tool-cli --help");
        let told = step(&["a", "--n", "3"]).unwrap_err().to_string();
        assert_eq!(told, "invalid option '--n'; see tool-cli --help");
        assert!(matches!(step(&["a", "b", "-x"]), Err(ArgsError::Syntax(_))));
        let joined = |words: &[&str], own, about| Step::Joined {
            words: words.iter().map(ToString::to_string).collect(),
            behind: behind(own),
            about,
        };
        assert_eq!(step(&["a__b"]).unwrap().0, joined(&["a__b"], Vec::new(), About::Use));
        let found = step(&["a__b", "--x=1", "--help"]).unwrap().0;
        let Step::Joined { behind: kept, about, .. } = found else { panic!("two names") };
        assert_eq!((kept.words, kept.options, about), (vec![flag("x", Some("1"))], vec!["help"], About::Explain));
        assert_eq!(step(&["a", "b", "-h"]).unwrap().0, Step::Explain { server: "a".into(), tool: "b".into() });
        assert_eq!(step(&["a", "--help"]).unwrap().0, Step::Help);
        let checked = Step::Check(call(None, vec![flag("x", None)]));
        assert_eq!(step(&["check", "a", "b", "--x"]).unwrap().0, checked);
        assert!(matches!(step(&["check", "a"]), Err(ArgsError::Check)));
        assert_eq!(step(&["--", "check"]).unwrap().0, Step::Tools { server: "check".into() });
    }

    #[test]
    fn each_word_goes_one_step_deeper() {
        assert_eq!(step(&[]).unwrap().0, Step::Servers);
        assert_eq!(step(&["a"]).unwrap().0, Step::Tools { server: "a".into() });
        assert_eq!(step(&["a", "b"]).unwrap().0, Step::Describe { server: "a".into(), tool: "b".into() });
        assert_eq!(step(&["a", "b", "-"]).unwrap().0, Step::Call(call(Some("-"), Vec::new())));
        assert!(matches!(step(&["a", "b", "{}", "c"]), Err(ArgsError::TooMany(_))));
        assert!(matches!(step(&["call", "a", "b", "{}"]), Err(ArgsError::Verb(_))));
    }

    #[test]
    fn a_word_for_help_helps_and_a_server_of_that_name_is_behind_two_dashes() {
        assert_eq!(step(&["help"]).unwrap().0, Step::Help);
        assert_eq!(step(&["--", "help"]).unwrap().0, Step::Tools { server: "help".into() });
    }

    #[test]
    fn a_server_named_resource_is_behind_two_dashes() {
        assert_eq!(step(&["--", "resource"]).unwrap().0, Step::Tools { server: "resource".into() });
        assert!(matches!(step(&["resource"]), Err(ArgsError::Missing { .. })));
        assert!(matches!(step(&["resource", "x"]), Err(ArgsError::ResourceCommand(_))));
    }

    #[test]
    fn a_server_named_wait_is_behind_two_dashes() {
        assert_eq!(step(&["wait", "a1"]).unwrap().0, Step::Wait { id: "a1".into() });
        assert_eq!(step(&["--", "wait"]).unwrap().0, Step::Tools { server: "wait".into() });
        for words in [["wait"].as_slice(), &["wait", "a", "b"], &["wait", "a", "--uri", "b"]] {
            assert!(matches!(step(words), Err(ArgsError::Wait)), "{words:?}");
        }
        assert!(step(&["s", "t", "{}", "--no-wait"]).unwrap().1.no_wait);
        assert!(matches!(step(&["s", "--no-wait"]), Err(ArgsError::NoWaitWithout)));
    }

    #[test]
    fn words_to_look_for_need_no_quotes() {
        let search =
            |query: &str, server: Option<&str>| Step::Search { query: query.into(), server: server.map(Into::into) };
        assert_eq!(step(&["search", "read", "file"]).unwrap().0, search("read file", None));
        assert_eq!(step(&["search", "read file", "--server", "s"]).unwrap().0, search("read file", Some("s")));
        assert_eq!(step(&["--", "search"]).unwrap().0, Step::Tools { server: "search".into() });
        assert!(matches!(step(&["search", " "]), Err(ArgsError::Search)));
    }

    #[test]
    fn a_server_named_mcp_is_behind_two_dashes() {
        assert_eq!(step(&["mcp"]).unwrap().0, Step::Mcp { server: None, search: false });
        assert_eq!(
            step(&["mcp", "git", "--search"]).unwrap().0,
            Step::Mcp { server: Some("git".into()), search: true }
        );
        assert_eq!(step(&["doctor", "--json"]).unwrap().0, Step::Doctor);
        assert!(matches!(step(&["doctor", "x"]), Err(ArgsError::Doctor)));
        assert_eq!(step(&["--", "mcp"]).unwrap().0, Step::Tools { server: "mcp".into() });
        for words in [["mcp", "a", "b"].as_slice(), &["mcp", "--server", "a"]] {
            assert!(matches!(step(words), Err(ArgsError::Mcp)), "{words:?}");
        }
        assert!(matches!(step(&["a", "--search"]), Err(ArgsError::SearchWithout)));
    }

    #[test]
    fn resources_take_words_or_the_public_flags() {
        let read = Step::Read { server: Some("s".into()), uri: "u:x".into() };
        for words in [
            ["resource", "read", "s", "u:x"].as_slice(),
            &["resource", "read", "--server", "s", "u:x"],
            &["resource", "read", "s", "--uri", "u:x"],
            &["resource", "read", "--uri=u:x", "--server=s"],
        ] {
            assert_eq!(step(words).unwrap().0, read, "{words:?}");
        }
        let only = Step::Read { server: None, uri: "u:x".into() };
        for words in [["resource", "read", "u:x"].as_slice(), &["resource", "read", "--uri", "u:x"]] {
            assert_eq!(step(words).unwrap().0, only, "{words:?}");
        }
        for words in [["resource", "list", "s"].as_slice(), &["resource", "list", "--server", "s"]] {
            assert_eq!(step(words).unwrap().0, Step::Resources { server: Some("s".into()) });
        }
        assert_eq!(step(&["resource", "list"]).unwrap().0, Step::Resources { server: None });
        assert_eq!(step(&["resource", "templates"]).unwrap().0, Step::Templates { server: None });
        assert!(matches!(step(&["resource", "list", "s", "x"]), Err(ArgsError::TooMany(_))));
        assert!(matches!(step(&["resource", "list", "--uri", "u:x"]), Err(ArgsError::ReadOnly)));
        assert!(matches!(step(&["resource", "read"]), Err(ArgsError::Missing { .. })));
        assert!(matches!(step(&["a", "--server", "s"]), Err(ArgsError::ResourceOnly("server"))));
    }

    #[test]
    fn a_file_to_write_needs_something_to_write() {
        assert!(matches!(step(&["a", "--out", "f"]), Err(ArgsError::OutWithout)));
        let out = |words: &[&str]| step(words).map(|(_, options)| options.out);
        assert_eq!(out(&["a", "b", "{}", "--out", "f"]).unwrap(), Some(Destination::File("f".into())));
        assert_eq!(out(&["a", "b", "{}", "--out-dir", "d"]).unwrap(), Some(Destination::Folder("d".into())));
        assert!(matches!(out(&["a", "b", "{}", "--out", "f", "--out-dir", "d"]), Err(ArgsError::OutTwice)));
        assert!(matches!(out(&["a", "--out-dir", "d"]), Err(ArgsError::OutWithout)));
    }
}
