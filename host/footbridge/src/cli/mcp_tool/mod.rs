//! `mcp-tool`: this binary called by that name. Every tool of every server is a command, its arguments are flags.
//!
//! What was typed is read twice: first which tool it is, then, once its schema is known, what else was said. Help and
//! completion read lists that are kept and start nothing where they are.

mod complete;
mod help;
mod tips;
mod which;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Command, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use footbridge_proto::text::Escaped;
use serde_json::{Value, value::RawValue};

use super::{
    Files,
    call::HowToCall,
    known_tools::{KnownTools, PATIENCE},
    one_shot::ended,
    said,
};
use crate::{
    oneshot::{failure::OneShotFailure, flags, lists::ToolsList, running::Chosen},
    report,
};
use footbridge_cli::{
    arguments::merged,
    completion::{COMPLETE, Shell},
    flags::{BadFlag, ToolFlags, TypedFlag},
    output,
    render::Format,
    typed,
};
use which::Named;

/// The name by which this binary is `mcp-tool`.
pub(super) const NAME: &str = "mcp-tool";

#[derive(Debug, Parser)]
#[command(name = NAME, version, disable_help_flag = true, disable_help_subcommand = true)]
struct Typed {
    #[command(flatten)]
    options: Options,
    /// Print a script that completes names and flags
    #[arg(long, value_name = "SHELL", value_parser = super::about::shells())]
    completions: Option<Shell>,
    #[command(subcommand)]
    rest: Option<Rest>,
}

/// The tool's name, and what was typed behind it.
#[derive(Debug, Subcommand)]
enum Rest {
    #[command(external_subcommand)]
    Tool(Vec<OsString>),
}

/// What is not an argument of a tool; before its name, or behind it.
#[derive(Debug, Clone, Default, Args)]
struct Options {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    how: HowToCall,
    /// The arguments as a JSON object; flags beat it member by member
    #[arg(long, value_name = "JSON", conflicts_with_all = ["json_file", "json_stdin"])]
    json: Option<String>,
    /// The same, from a file
    #[arg(long, value_name = "FILE", conflicts_with = "json_stdin")]
    json_file: Option<PathBuf>,
    /// The same, from standard input
    #[arg(long)]
    json_stdin: bool,
    /// How to print results, lists and errors. Default: a result's structured part where there is one, or its text
    #[arg(long, value_name = "FORMAT")]
    output: Option<Output>,
    /// Ask servers what they offer, in place of the lists that are kept
    #[arg(long)]
    refresh: bool,
    /// Say what a flag takes the place of
    #[arg(short, long)]
    verbose: bool,
    /// Show help: all tools, or what one takes
    #[arg(short, long)]
    help: bool,
}

/// How something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A result's text, rather than its structured part
    Text,
    /// All of it, on one line
    Json,
}

impl Options {
    /// These, and those that were typed behind the tool's name, which win.
    fn and(self, later: Self) -> Self {
        let mut files = self.files;
        files.config.extend(later.files.config);
        let how = HowToCall {
            policy: later.how.policy.or(self.how.policy),
            via: later.how.via.or(self.how.via),
            timeout: later.how.timeout.or(self.how.timeout),
            // One takes the place of the other, too: the later counts.
            out: later.how.out.clone().or(self.how.out.filter(|_| later.how.out_dir.is_none())),
            out_dir: later.how.out_dir.clone().or(self.how.out_dir.filter(|_| later.how.out.is_none())),
        };
        Self {
            files,
            how,
            json: later.json.or(self.json),
            json_file: later.json_file.or(self.json_file),
            json_stdin: later.json_stdin || self.json_stdin,
            output: later.output.or(self.output),
            refresh: later.refresh || self.refresh,
            verbose: later.verbose || self.verbose,
            help: later.help || self.help,
        }
    }

    /// That what decides about the call is said once, before the tool's name or behind it: who reads one of the two would not
    /// know that the other counts.
    fn decides_once(&self, later: &Self) -> Result<(), OneShotFailure> {
        let (one, other) = (&self.how, &later.how);
        let differ = |one: &Option<String>, other: &Option<String>| one.is_some() && other.is_some() && one != other;
        let what = if differ(&one.policy, &other.policy) {
            "two of --policy"
        } else if differ(&one.via, &other.via) {
            "two of --via"
        } else if (one.policy.is_some() && other.via.is_some()) || (one.via.is_some() && other.policy.is_some()) {
            "--policy and --via"
        } else if (one.via.is_some() && !later.files.config.is_empty())
            || (other.via.is_some() && !self.files.config.is_empty())
        {
            "--config and --via"
        } else {
            return Ok(());
        };
        Err(OneShotFailure::Usage(format!(
            "{what} are given, before the tool's name and behind it: one alone can count"
        )))
    }

    fn is_json(&self) -> bool {
        self.output == Some(Output::Json)
    }

    /// The same for a result.
    fn format(&self) -> Format {
        match self.output {
            None => Format::Recorded,
            Some(Output::Text) => Format::Text,
            Some(Output::Json) => Format::Json,
        }
    }

    /// Where these have tools known from; a session has so long to answer.
    fn tools(&self, patience: Duration) -> Result<KnownTools, OneShotFailure> {
        let files = Files { config: self.files.config.clone() };
        KnownTools::find(files, self.how.via.as_deref(), patience)
    }

    /// The arguments that were given as JSON.
    fn given(&self) -> Result<Option<Box<RawValue>>, OneShotFailure> {
        let text = match (&self.json, &self.json_file, self.json_stdin) {
            (None, None, false) => return Ok(None),
            (Some(text), None, false) => text.clone(),
            (None, Some(path), false) => typed::file(path)?,
            (None, None, true) => typed::stdin()?,
            _ => {
                return Err(OneShotFailure::Usage(
                    "give the arguments once: by --json, --json-file or --json-stdin".to_owned(),
                ));
            }
        };
        if text.trim().is_empty() && self.json_stdin {
            let what =
                "nothing came in on standard input: --json-stdin takes a JSON object, such as {\"city\": \"Bern\"}";
            return Err(OneShotFailure::Usage(what.to_owned()));
        }
        if text.trim() == "-" {
            return Err(OneShotFailure::Usage("for arguments on standard input there is --json-stdin".to_owned()));
        }
        Ok(Some(typed::arguments(text)?))
    }
}

/// Runs the program and gives its exit status.
pub(super) fn main(words: &[OsString]) -> i32 {
    if words.first().is_some_and(|word| word == COMPLETE) {
        return complete::main(&words[1..]);
    }
    let typed = match Typed::try_parse_from(std::iter::once(OsString::from(NAME)).chain(words.iter().cloned())) {
        Ok(typed) => typed,
        Err(error) => return said(&error),
    };
    let Typed { options, completions, rest } = typed;
    if let Some(shell) = completions {
        return ended(output::print(&shell.script(NAME, "mcp-tool --completions")).map_err(Into::into), false);
    }
    let json = options.is_json();
    match rest {
        None => ended(help::all(options), json),
        Some(Rest::Tool(words)) => tool(options, words),
    }
}

/// The names of options, which no argument of a tool can have.
fn taken() -> Vec<String> {
    let options = Options::augment_args(Command::new(NAME));
    options.get_arguments().filter_map(|arg| Some(arg.get_long()?.to_owned())).collect()
}

/// What was typed for one tool, once its flags are known.
fn command(name: &str, flags: &ToolFlags) -> Command {
    let command = Command::new(format!("{NAME} {}", Escaped(name))).no_binary_name(true).disable_help_flag(true);
    Options::augment_args(command.args(flags::args(flags)).next_help_heading("Options")).max_term_width(100)
}

fn tool(options: Options, words: Vec<OsString>) -> i32 {
    let mut words = words.into_iter();
    let name = words.next().unwrap_or_default().to_string_lossy().into_owned();
    let words: Vec<OsString> = words.collect();
    // They may say how errors are shown, and where servers are: looked for before the tool's own flags are known.
    let early = which::early(&words);
    let decides_once = options.decides_once(&early);
    let options_before = options.clone().and(early);
    let json = options_before.is_json();
    if let Err(failure) = decides_once {
        return ended(Err(failure), json);
    }
    match call(options, options_before, &name, &words) {
        Ok(Ok(())) => 0,
        Ok(Err(unfit)) if json => ended(Err(OneShotFailure::Usage(unfit.render().to_string())), true),
        Ok(Err(unfit)) => said(&unfit),
        Err(failure) => ended(Err(failure), json),
    }
}

/// What clap says of words that do not fit a tool.
type Unfit = clap::Error;

fn call(options: Options, early: Options, name: &str, words: &[OsString]) -> Result<Result<(), Unfit>, OneShotFailure> {
    let tools = early.tools(PATIENCE)?;
    let named = which::find(&tools, name, early.refresh)?;
    if early.help {
        return help::tool(&tools, &named, early.refresh, early.is_json()).map(Ok);
    }
    let read = |list: &ToolsList| named.read(list, words);
    // Where the list is kept, words that do not fit are said before anything is started.
    let known = tools.kept(&named.server).filter(|_| !early.refresh);
    let known = match known.as_ref().map(read).transpose()? {
        Some(Err(unfit)) => return Ok(Err(unfit)),
        Some(Ok(meant)) => Some(meant),
        None => None,
    };
    // Of a tool that is not known yet the same words are looked at once it is.
    let all = match &known {
        Some((later, _)) => options.clone().and(later.clone()),
        None => early.clone(),
    };
    let given = all.given()?;
    let known = known.map(|(_, typed)| typed.chosen(&named, given.as_deref(), all.verbose)).transpose()?;
    let choose = |list: &ToolsList| named.chosen(list, words, given.as_deref(), all.verbose);
    let place = match &tools {
        KnownTools::Configured(place) => place,
        KnownTools::Session(seen) => {
            let chosen = match known {
                Some(chosen) => Ok(chosen),
                None => choose(&seen.whole(&named.server, all.refresh)?)?,
            };
            return match chosen {
                Ok(chosen) => all.how.through(seen.of_harness(), &named.server, all.format(), chosen).map(Ok),
                Err(unfit) => Ok(Err(unfit)),
            };
        }
    };
    let mut unfit = None;
    let done = all.how.make(place, &named.server, all.format(), |list| match known {
        Some(chosen) => Ok(chosen),
        None => choose(list)?.map_err(|error| {
            unfit = Some(error);
            OneShotFailure::Usage(String::new())
        }),
    });
    match unfit {
        Some(unfit) => Ok(Err(unfit)),
        None => done.map(Ok),
    }
}

/// The words of one tool, as its flags read them.
struct ToolWords {
    flags: ToolFlags,
    typed: Vec<TypedFlag>,
}

impl Named {
    /// Reads words by the schema of a list.
    fn read(
        &self,
        list: &ToolsList,
        words: &[OsString],
    ) -> Result<Result<(Options, ToolWords), Unfit>, OneShotFailure> {
        let flags = self.flags(list)?;
        let typed = flags::named(&flags, &taken(), words);
        let matches = match command(&self.name(), &flags).try_get_matches_from(typed) {
            Ok(matches) => matches,
            // What is meant may be what it took before.
            Err(_) if list.is_changed(&self.tool) => return Err(self.changed()),
            Err(unfit) => return Ok(Err(tips::with_tip(unfit, &flags, words))),
        };
        let options = match Options::from_arg_matches(&matches) {
            Ok(options) => options,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let bad = |bad: BadFlag| OneShotFailure::Usage(format!("{bad}; see {NAME} {} --help", self.name()));
        flags::as_options(&flags, &taken(), words).map_err(bad)?;
        let typed = flags::typed(&flags, &matches).map_err(|bad| OneShotFailure::Usage(bad.to_string()))?;
        Ok(Ok((options, ToolWords { flags, typed })))
    }

    /// What words come to by the schema of a list, with the arguments that are given as JSON.
    fn chosen(
        &self,
        list: &ToolsList,
        words: &[OsString],
        given: Option<&RawValue>,
        verbose: bool,
    ) -> Result<Result<Chosen, Unfit>, OneShotFailure> {
        match self.read(list, words)? {
            Ok((_, typed)) => typed.chosen(self, given, verbose).map(Ok),
            Err(unfit) => Ok(Err(unfit)),
        }
    }

    /// The flags of its schema.
    fn flags(&self, list: &ToolsList) -> Result<ToolFlags, OneShotFailure> {
        let Some(definition) = list.definition(&self.tool) else { return Err(self.unknown(list)) };
        let taken = taken();
        let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
        Ok(ToolFlags::of(&schema_of(definition), &taken))
    }
}

impl ToolWords {
    fn chosen(self, named: &Named, given: Option<&RawValue>, verbose: bool) -> Result<Chosen, OneShotFailure> {
        let merged = merged(given, self.typed, &self.flags)
            .map_err(|why| OneShotFailure::Usage(format!("{why}; see {NAME} {} --help", named.name())))?;
        if verbose {
            merged.notes().for_each(|note| report::note(&note));
        }
        Ok(Chosen { tool: named.tool.clone(), arguments: Some(merged.json.get().to_owned()) })
    }
}

fn schema_of(definition: &RawValue) -> Value {
    let full: Value = serde_json::from_str(definition.get()).unwrap_or_default();
    full.get("inputSchema").cloned().unwrap_or_default()
}
