//! A command line as typed: words, options, and what is a tool's own; nothing is made of them yet.
//!
//! What is behind a tool's name and no option of the command is a flag of the tool, whose schema is not known here.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use footbridge_cli::{
    arguments::NotMerged,
    destination::Destination,
    flags::{BadFlag, ToolWord},
    pick::{BadPickPath, PickPath},
    render::Format,
    suggest::closest,
    typed::{BadTimeout, timeout},
};
use footbridge_proto::text::Escaped;
use lexopt::{Arg, Parser, ValueExt};

use crate::progress::ToldToo;

/// What stands between a server's name and a tool's in one word.
pub(crate) const BETWEEN: &str = "__";

/// Words that are no server's name.
pub(crate) const SUBCOMMANDS: [&str; 13] = [
    "batch",
    "check",
    "completion",
    "doctor",
    "help",
    "man",
    "mcp",
    "prompt",
    "resource",
    "search",
    "skill",
    "stubs",
    "wait",
];

/// Calls that may be under way at once.
pub(crate) const MOST_PARALLEL: usize = 64;

/// Options of the command where a tool is called. A tool's argument of such a name is `--arg.NAME`.
pub(crate) const OPTIONS: [&str; 14] = [
    "exit-codes",
    "help",
    "json",
    "max-bytes",
    "no-wait",
    "out",
    "out-dir",
    "output",
    "pick",
    "progress",
    "report",
    "timeout",
    "verbose",
    "version",
];

/// Options that go with one subcommand alone.
pub(crate) fn options_of(subcommand: Option<&str>) -> &'static [&'static str] {
    match subcommand {
        Some("batch") => &["parallel"],
        Some("mcp") => &["search"],
        Some("prompt" | "search") => &["server"],
        Some("resource") => &["server", "uri"],
        Some("stubs") => &["lang"],
        _ => &[],
    }
}

/// Whether a call asks for the tool's schema where this option is behind the tool's name, even with its arguments as JSON: an
/// argument may be meant, and the option would take something from what is printed or waited for.
pub(crate) fn may_be_argument(option: &str) -> bool {
    option.contains('-') && OF_CALLS.contains(&option)
}

/// Options that go with a call, or with what is read like its result.
const OF_CALLS: [&str; 6] = ["max-bytes", "no-wait", "out", "out-dir", "pick", "report"];

/// All options that a subcommand takes, or a call where there is none.
pub(crate) fn options_with(subcommand: Option<&str>) -> impl Iterator<Item = &'static str> + use<> {
    let makes_calls = matches!(subcommand, None | Some("prompt" | "resource" | "wait"));
    let prints_lines = subcommand == Some("batch");
    let is_taken = move |option: &&str| match *option {
        "output" => !prints_lines,
        option => makes_calls || !OF_CALLS.contains(&option),
    };
    OPTIONS.into_iter().filter(is_taken).chain(options_of(subcommand).iter().copied())
}

/// How to do it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) out: Option<Destination>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) no_wait: bool,
    pub(crate) format: Option<Format>,
    pub(crate) pick: Option<PickPath>,
    pub(crate) max_bytes: Option<usize>,
    pub(crate) told_too: ToldToo,
    pub(crate) report: bool,
}

/// What other clients have in front of a server's name, and this one does not.
pub(crate) const VERBS: [&str; 8] = ["call", "exec", "invoke", "list", "run", "servers", "tools", "use"];

/// Why a command line means nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgsError {
    #[error("{0}; see tool-cli --help")]
    Syntax(#[from] lexopt::Error),
    #[error("invalid option '--{}'{} see tool-cli --help", Escaped(.0), meant_option(.0))]
    UnknownOption(String),
    #[error("\"{0}\" is one word too many: ARGS is one JSON object, in quotes; see tool-cli --help")]
    TooMany(String),
    #[error(
        "\"{0}\" is taken for a server, and what follows is one word too many: leave it out, as in tool-cli SERVER TOOL ARGS"
    )]
    Verb(String),
    #[error(
        "unknown resource command \"{0}\": list, templates and read are known \
         (a server of the name resource is reached with tool-cli -- resource)"
    )]
    ResourceCommand(String),
    #[error("tool-cli resource {command} needs {what}; see tool-cli --help")]
    Missing { command: &'static str, what: &'static str },
    #[error(
        "tool-cli wait takes the id of one approval and nothing else \
         (a server of the name wait is reached with tool-cli -- wait)"
    )]
    Wait,
    #[error(
        "tool-cli batch takes --parallel N, from 1 to {MOST_PARALLEL}, and nothing else: calls are lines of standard input \
         (a server of the name batch is reached with tool-cli -- batch)"
    )]
    Batch,
    #[error(
        "\"{}\" lacks the name of a tool: write it behind the {BETWEEN}; tool-cli {} shows those that there are", Escaped(.0),
        Escaped(.0.trim_end_matches(BETWEEN))
    )]
    NoTool(String),
    #[error("tool-cli prompt takes list [SERVER], or get SERVER PROMPT and its arguments, as a call does")]
    Prompt,
    #[error("tool-cli completion takes bash, zsh or fish")]
    Completion,
    #[error("tool-cli stubs takes --lang py or ts, and the folder that the modules go to")]
    Stubs,
    #[error("tool-cli {0} takes nothing else (a server of that name is reached with tool-cli -- {0})")]
    Alone(&'static str),
    #[error("--lang goes with tool-cli stubs; see tool-cli --help")]
    LangWithout,
    #[error("--report goes with a call: nothing was done")]
    ReportWithout,
    #[error(
        "--report prints all of a result in one object, so --out, --out-dir, --output, --pick and --max-bytes do not go with it: \
         leave them out, and take the part from its \"data\"; nothing was called"
    )]
    ReportShaped,
    #[error("--parallel goes with tool-cli batch; see tool-cli --help")]
    ParallelWithout,
    #[error(
        "tool-cli check takes a server, a tool and arguments, as a call does \
         (a server of the name check is reached with tool-cli -- check)"
    )]
    Check,
    #[error("tool-cli doctor takes no more words (a server of the name doctor is reached with tool-cli -- doctor)")]
    Doctor,
    #[error(
        "tool-cli mcp takes one server at most, and --search \
         (a server of the name mcp is reached with tool-cli -- mcp)"
    )]
    Mcp,
    #[error(
        "tool-cli search needs words to look for, as in tool-cli search read file \
         (a server of the name search is reached with tool-cli -- search)"
    )]
    Search,
    #[error("--output takes text, json, raw, table or yaml, and not \"{}\"", Escaped(.0))]
    Format(String),
    #[error(transparent)]
    Pick(#[from] BadPickPath),
    #[error(
        "--output, --pick and --max-bytes go with a call, which '{{}}' makes where there are no \
         arguments, or with tool-cli resource read: nothing was done"
    )]
    ShapeWithout,
    #[error("--search goes with tool-cli mcp; see tool-cli --help")]
    SearchWithout,
    #[error("--no-wait goes with a call or with tool-cli resource read: nothing was done")]
    NoWaitWithout,
    #[error("--uri goes with tool-cli resource read: nothing was listed")]
    ReadOnly,
    #[error("--{0} goes with tool-cli resource; see tool-cli --help")]
    ResourceOnly(&'static str),
    #[error(
        "--out and --out-dir go with a call, which '{{}}' makes where there are no arguments, \
         or with tool-cli resource read: nothing was written"
    )]
    OutWithout,
    #[error("--out and --out-dir exclude each other: one file, or a folder for several")]
    OutTwice,
    #[error(transparent)]
    Timeout(#[from] BadTimeout),
}

/// Why flags make no arguments.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTyped {
    #[error(transparent)]
    Flag(#[from] BadFlag),
    #[error(transparent)]
    Merged(#[from] NotMerged),
    #[error("\"{}\" is one word too many: the arguments are flags, and one JSON object at most", Escaped(.0))]
    Word(String),
}

/// What was typed behind the name of a tool, besides words before the first flag.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BehindTool {
    /// From the first flag on.
    pub(crate) words: Vec<ToolWord>,
    /// Names of options: each may be meant for an argument.
    pub(crate) options: Vec<&'static str>,
}

/// Words and flags.
#[derive(Default)]
pub(crate) struct Typed {
    pub(crate) words: Vec<String>,
    pub(crate) behind: BehindTool,
    pub(crate) literal: bool,
    pub(crate) help: bool,
    pub(crate) version: bool,
    pub(crate) server: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) search: bool,
    pub(crate) parallel: Option<usize>,
    pub(crate) lang: Option<String>,
    pub(crate) options: Options,
}

impl Typed {
    /// The subcommand, if it is one.
    pub(crate) fn subcommand(&self) -> Option<&str> {
        let first = self.words.first().filter(|_| !self.literal)?;
        SUBCOMMANDS.contains(&first.as_str()).then_some(first.as_str())
    }

    /// Whether a tool has been named, so that flags are its own.
    pub(crate) fn has_tool(&self) -> bool {
        let named = match self.subcommand() {
            None => self.words.as_slice(),
            Some("check") => &self.words[1..],
            Some("prompt") if self.words.get(1).is_some_and(|word| word == "get") => &self.words[2..],
            Some(_) => return false,
        };
        named.len() > 1 || named.first().is_some_and(|word| word.contains(BETWEEN))
    }

    fn word(&mut self, word: String) {
        let behind = &mut self.behind.words;
        if behind.is_empty() { self.words.push(word) } else { behind.push(ToolWord::Plain(word)) }
    }

    /// Keeps an option that stands behind a tool's name.
    fn keep_option(&mut self, arg: &Arg<'_>) {
        if let Arg::Long(name) = arg
            && self.has_tool()
        {
            self.behind.options.extend(OPTIONS.iter().find(|option| *option == name));
        }
    }

    /// The last one of a kind counts; two kinds are a mistake.
    fn writes_to(&mut self, to: Destination) -> Result<(), ArgsError> {
        let before = self.options.out.replace(to);
        match (&before, &self.options.out) {
            (Some(Destination::File(_)), Some(Destination::Folder(_)))
            | (Some(Destination::Folder(_)), Some(Destination::File(_))) => Err(ArgsError::OutTwice),
            _ => Ok(()),
        }
    }
}

/// Reads the words of a command line.
pub(crate) fn read(args: &[OsString]) -> Result<Typed, ArgsError> {
    let mut typed = Typed::default();
    let mut parser = Parser::from_args(args);
    loop {
        let next = parser.try_raw_args().and_then(|raw| Some(raw.peek()?.to_owned()));
        if typed.words.is_empty() && next.as_ref().is_some_and(|arg| arg == "--") {
            typed.literal = true;
        }
        // A value of a flag before it: no option is a number.
        if let Some(number) = next.and_then(|arg| arg.into_string().ok()).filter(|arg| is_negative(arg))
            && typed.has_tool()
        {
            drop(parser.raw_args()?.next());
            typed.word(number);
            continue;
        }
        let arg = parser.next()?;
        arg.iter().for_each(|arg| typed.keep_option(arg));
        match arg {
            None => return Ok(typed),
            Some(Arg::Value(word)) => typed.word(word.string()?),
            Some(Arg::Short('h') | Arg::Long("help")) => typed.help = true,
            Some(Arg::Short('V') | Arg::Long("version")) => typed.version = true,
            Some(Arg::Long("json" | "exit-codes")) => {}
            Some(Arg::Long("report")) => typed.options.report = true,
            Some(Arg::Long("output")) => typed.options.format = Some(format(parser.value()?.string()?)?),
            Some(Arg::Long("pick")) => typed.options.pick = Some(PickPath::new(&parser.value()?.string()?)?),
            Some(Arg::Long("max-bytes")) => typed.options.max_bytes = Some(count(&mut parser)?),
            Some(Arg::Long("progress")) => typed.options.told_too.progress = true,
            Some(Arg::Short('v') | Arg::Long("verbose")) => typed.options.told_too.log = true,
            Some(Arg::Long("no-wait")) => typed.options.no_wait = true,
            Some(Arg::Long("out")) => typed.writes_to(Destination::File(PathBuf::from(parser.value()?)))?,
            Some(Arg::Long("out-dir")) => typed.writes_to(Destination::Folder(PathBuf::from(parser.value()?)))?,
            Some(Arg::Long("timeout")) => typed.options.timeout = Some(timeout(&parser.value()?.string()?)?),
            Some(Arg::Long(name)) if typed.has_tool() => {
                let name = name.to_owned();
                let value = parser.optional_value().map(ValueExt::string).transpose()?;
                typed.behind.words.push(ToolWord::Flag(name, value));
            }
            Some(Arg::Long("parallel")) => typed.parallel = Some(count(&mut parser)?),
            Some(Arg::Long("lang")) => typed.lang = Some(parser.value()?.string()?),
            Some(Arg::Long("search")) => typed.search = true,
            Some(Arg::Long("server")) => typed.server = Some(parser.value()?.string()?),
            Some(Arg::Long("uri")) => typed.uri = Some(parser.value()?.string()?),
            Some(Arg::Long(name)) => return Err(ArgsError::UnknownOption(name.to_owned())),
            Some(other) => return Err(other.unexpected().into()),
        }
    }
}

/// The option that may have been meant by one that is none.
fn meant_option(name: &str) -> String {
    let known: Vec<&str> = SUBCOMMANDS.iter().flat_map(|word| options_of(Some(word))).copied().chain(OPTIONS).collect();
    closest(name, &known).map_or_else(|| ";".to_owned(), |meant| format!("; did you mean --{meant}? Nothing was done:"))
}

/// The value of an option that is a count.
fn count(parser: &mut lexopt::Parser) -> Result<usize, lexopt::Error> {
    parser.value()?.parse_with(|text| text.parse().map_err(|_| "a whole number is expected, as in 1000"))
}

fn format(word: String) -> Result<Format, ArgsError> {
    Format::of_word(&word).ok_or(ArgsError::Format(word))
}

fn is_negative(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
