//! The command line as typed, and what it means.
//!
//! `resource`, `search`, `wait` and `mcp` are subcommands; `--` in front makes the first word a server's name whatever it is.
//! Everything else is a position: server, tool, arguments.

use std::{collections::VecDeque, ffi::OsString, path::PathBuf, time::Duration};

use footbridge_cli::{
    destination::Destination,
    typed::{BadTimeout, timeout},
};
use footbridge_proto::vars;
use lexopt::{Arg, Parser, ValueExt};

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
    Call {
        server: String,
        tool: String,
        arguments: String,
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
    /// MCP over standard input and output.
    Mcp {
        server: Option<String>,
        search: bool,
    },
}

/// How to do it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) out: Option<Destination>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) no_wait: bool,
}

/// What shapes even the error of a command line that cannot be read, so it is looked for first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) json: bool,
    pub(crate) exit_codes: bool,
    /// Listings are for an agent to read.
    pub(crate) agent: bool,
}

impl Style {
    /// Looks for the two flags, and for what the environment says.
    pub(crate) fn find(args: &[OsString], variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let has = |flag: &str| args.iter().take_while(|arg| *arg != "--").any(|arg| arg == flag);
        let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
        Self {
            json: has("--json"),
            exit_codes: is(vars::EXIT_CODES, "1") || has("--exit-codes"),
            agent: is(vars::STYLE, vars::STYLE_AGENT),
        }
    }
}

/// Why a command line means nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgsError {
    #[error("{0}; see tool-cli --help")]
    Syntax(#[from] lexopt::Error),
    #[error("\"{0}\" is one word too many: ARGS is one JSON object, in quotes; see tool-cli --help")]
    TooMany(String),
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
        "tool-cli mcp takes one server at most, and --search \
         (a server of the name mcp is reached with tool-cli -- mcp)"
    )]
    Mcp,
    #[error(
        "tool-cli search needs words to look for, as in tool-cli search read file \
         (a server of the name search is reached with tool-cli -- search)"
    )]
    Search,
    #[error("--search goes with tool-cli mcp; see tool-cli --help")]
    SearchWithout,
    #[error("--no-wait goes with a call or with tool-cli resource read: nothing was done")]
    NoWaitWithout,
    #[error("--uri goes with tool-cli resource read: nothing was listed")]
    ReadOnly,
    #[error("--{0} goes with tool-cli resource; see tool-cli --help")]
    ResourceOnly(&'static str),
    #[error("--out and --out-dir go with a call or with tool-cli resource read: nothing was written")]
    OutWithout,
    #[error("--out and --out-dir exclude each other: one file, or a folder for several")]
    OutTwice,
    #[error(transparent)]
    Timeout(#[from] BadTimeout),
}

/// Words and flags, before anything is made of them.
#[derive(Default)]
struct Typed {
    words: Vec<String>,
    literal: bool,
    help: bool,
    version: bool,
    server: Option<String>,
    uri: Option<String>,
    search: bool,
    options: Options,
}

impl Typed {
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

/// Reads a command line without the program's name.
pub(crate) fn parse(args: &[OsString]) -> Result<(Step, Options), ArgsError> {
    let typed = read(args)?;
    if typed.help {
        return Ok((Step::Help, typed.options));
    }
    if typed.version {
        return Ok((Step::Version, typed.options));
    }
    let first = typed.words.first().filter(|_| !typed.literal).map(String::as_str);
    if typed.search && first != Some("mcp") {
        return Err(ArgsError::SearchWithout);
    }
    let (step, options) = match first {
        Some("mcp") => mcp_step(typed)?,
        Some("resource") => resource_step(typed)?,
        Some("search") => search_step(typed)?,
        Some("wait") => wait_step(typed)?,
        _ => plain_step(typed)?,
    };
    if options.out.is_some() && !matches!(step, Step::Call { .. } | Step::Read { .. } | Step::Wait { .. }) {
        return Err(ArgsError::OutWithout);
    }
    if options.no_wait && !matches!(step, Step::Call { .. } | Step::Read { .. }) {
        return Err(ArgsError::NoWaitWithout);
    }
    Ok((step, options))
}

fn read(args: &[OsString]) -> Result<Typed, ArgsError> {
    let mut typed = Typed::default();
    let mut parser = Parser::from_args(args);
    loop {
        if typed.words.is_empty() && parser.try_raw_args().is_some_and(|raw| raw.peek().is_some_and(|arg| arg == "--"))
        {
            typed.literal = true;
        }
        match parser.next()? {
            None => return Ok(typed),
            Some(Arg::Value(word)) => typed.words.push(word.string()?),
            Some(Arg::Short('h') | Arg::Long("help")) => typed.help = true,
            Some(Arg::Short('V') | Arg::Long("version")) => typed.version = true,
            Some(Arg::Long("json" | "exit-codes")) => {}
            Some(Arg::Long("search")) => typed.search = true,
            Some(Arg::Long("no-wait")) => typed.options.no_wait = true,
            Some(Arg::Long("out")) => typed.writes_to(Destination::File(PathBuf::from(parser.value()?)))?,
            Some(Arg::Long("out-dir")) => typed.writes_to(Destination::Folder(PathBuf::from(parser.value()?)))?,
            Some(Arg::Long("timeout")) => typed.options.timeout = Some(timeout(&parser.value()?.string()?)?),
            Some(Arg::Long("server")) => typed.server = Some(parser.value()?.string()?),
            Some(Arg::Long("uri")) => typed.uri = Some(parser.value()?.string()?),
            Some(other) => return Err(other.unexpected().into()),
        }
    }
}

fn plain_step(typed: Typed) -> Result<(Step, Options), ArgsError> {
    if typed.server.is_some() {
        return Err(ArgsError::ResourceOnly("server"));
    }
    if typed.uri.is_some() {
        return Err(ArgsError::ResourceOnly("uri"));
    }
    let mut words = typed.words.into_iter();
    let step = match (words.next(), words.next(), words.next()) {
        (None, ..) => Step::Servers,
        (Some(server), None, _) => Step::Tools { server },
        (Some(server), Some(tool), None) => Step::Describe { server, tool },
        (Some(server), Some(tool), Some(arguments)) => Step::Call { server, tool, arguments },
    };
    match words.next() {
        Some(word) => Err(ArgsError::TooMany(word)),
        None => Ok((step, typed.options)),
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
    use super::*;

    fn step(words: &[&str]) -> Result<(Step, Options), ArgsError> {
        parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn each_word_goes_one_step_deeper() {
        assert_eq!(step(&[]).unwrap().0, Step::Servers);
        assert_eq!(step(&["a"]).unwrap().0, Step::Tools { server: "a".into() });
        assert_eq!(step(&["a", "b"]).unwrap().0, Step::Describe { server: "a".into(), tool: "b".into() });
        let call = Step::Call { server: "a".into(), tool: "b".into(), arguments: "-".into() };
        assert_eq!(step(&["a", "b", "-"]).unwrap().0, call);
        assert!(matches!(step(&["a", "b", "{}", "c"]), Err(ArgsError::TooMany(_))));
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
