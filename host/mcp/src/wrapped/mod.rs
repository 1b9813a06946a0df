//! What the configuration says of programs that are wrapped as tools: which program, with which arguments, and what
//! becomes of what it prints.
//!
//! No shell takes part. A program is an absolute path that the configuration resolved once; what a caller says is in the
//! words of one argument, or in the standard input, and nowhere else.

mod template;

use std::{collections::BTreeSet, time::Duration};

use footbridge_core::{
    digest::{Digest, digest_text},
    secret::Secret,
};
use footbridge_processes::launch::ProgramSpec;
use serde_json::{Value, json};

pub use template::{Arguments, Piece, UnfitArguments, Word};

/// Tools of one server, each a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliSpec {
    /// The tools, in the order of the configuration.
    pub tools: Vec<CliTool>,
    /// A program that is not there, as it is written: the server is unavailable then.
    pub missing: Option<String>,
}

/// One tool over a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliTool {
    /// Its name.
    pub name: String,
    /// What guests see of it: a tool as MCP has it.
    pub definition: Value,
    /// The program, by its absolute path; `args` of it are those of each call.
    pub program: ProgramSpec,
    /// Its arguments. Words of one list are there together or not at all.
    pub args: Vec<Vec<Word>>,
    /// Its standard input; empty if it says nothing.
    pub input: Option<Word>,
    /// How long it may run; the limit on calls without a sign of life, where it says nothing.
    pub time: Option<Duration>,
    /// What it prints.
    pub prints: Prints,
    /// Statuses that are no failure.
    pub ends_well: Vec<i32>,
}

/// What a program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prints {
    /// Text, which becomes a block of text.
    #[default]
    Text,
    /// JSON, which becomes a block of text, and the structured result where it is an object.
    Json,
    /// A result as MCP has it (`CallToolResult`).
    Result,
}

impl CliSpec {
    /// The tool of this name.
    pub(super) fn tool(&self, name: &str) -> Option<&CliTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The programs that its tools run.
    #[must_use]
    pub fn programs(&self) -> Vec<&str> {
        let all: BTreeSet<&str> = self.tools.iter().map(|tool| tool.program.command.as_str()).collect();
        all.into_iter().collect()
    }

    /// What makes it this server and no other: its programs, and all that decides how they are run. Values of secrets are
    /// left out by `shown`.
    pub(super) fn origin(&self, shown: impl Fn(&str) -> Value) -> Value {
        let runs: Value = self.tools.iter().map(|tool| tool.runs(&shown)).collect();
        let digest = digest_text(Digest::of(runs.to_string()));
        json!({"programs": self.programs(), "templates": digest})
    }
}

impl CliTool {
    fn runs(&self, shown: &impl Fn(&str) -> Value) -> Value {
        let words = |words: &Vec<Word>| words.iter().map(|word| word.written(shown)).collect::<Value>();
        json!({
            "name": self.name,
            "program": self.program.command,
            "args": self.args.iter().map(words).collect::<Value>(),
            "input": self.input.as_ref().map(|word| word.written(shown)),
            "cwd": self.program.cwd.as_ref().map(|cwd| cwd.to_string_lossy()),
        })
    }

    /// The program with the arguments of one call, and its standard input.
    ///
    /// # Errors
    /// [`UnfitArguments`], when the arguments are none for a program.
    pub(super) fn filled(&self, arguments: &Arguments<'_>) -> Result<(ProgramSpec, Vec<u8>), UnfitArguments> {
        let args = template::fill(&self.args, arguments)?;
        let input = self.input.as_ref().map(|word| word.text(arguments)).transpose()?.flatten();
        let input = input.map(|text| text.into_bytes()).unwrap_or_default();
        Ok((ProgramSpec { args, ..self.program.clone() }, input))
    }
}

/// A tool that runs a program with these words and no others, and prints a result: for one call of an operator.
#[must_use]
pub fn fixed(name: &str, program: ProgramSpec, takes: Option<Word>, time: Duration) -> CliTool {
    let args = program.args.iter().map(|arg: &Secret| vec![Word::literal(arg.clone())]).collect();
    CliTool {
        name: name.to_owned(),
        definition: json!({"name": name, "inputSchema": {"type": "object"}}),
        program: ProgramSpec { args: Vec::new(), ..program },
        args,
        input: takes,
        time: Some(time),
        prints: Prints::Result,
        ends_well: vec![0],
    }
}
