//! Templates in which what a caller says would be code, or the name of a program.
//!
//! A program that only starts another one is looked through. What else a program may do with its data nobody knows.

use std::path::Path;

use footbridge_mcp::wrapped::{Piece, Word};

use super::{super::super::exposed::is_starter, is_shell, words::literal_text};

/// Programs that run what follows one of the flags, and beginnings of names with a version behind them.
const INTERPRETERS: [&str; 7] = ["bun", "deno", "node", "nodejs", "perl", "php", "ruby"];
const INTERPRETERS_WITH_VERSIONS: [&str; 3] = ["python", "pypy", "lua"];
const FLAGS: [&str; 4] = ["-c", "-e", "--eval", "-r"];

/// Why a template would run what a caller says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::config) enum CallersCode {
    #[error(
        "it starts {0:?}, which is a shell, and what a caller says would be code there: name the program itself, or a \
         script of yours that takes arguments"
    )]
    Shell(String),
    #[error("what a caller says would be the program that {0:?} starts: name the program itself")]
    Program(String),
    #[error("what a caller says would be code behind {0:?}: write the code there, and what is said behind it")]
    Code(String),
}

/// A word: what is the same in each call, and whether there is anything else in it.
struct Part {
    text: String,
    has_place: bool,
}

/// Looks for the first such thing.
pub(super) fn of_callers(program: &str, args: &[Vec<Word>]) -> Option<CallersCode> {
    let part = |word: &Word| {
        let has_place = word.pieces.iter().any(|piece| !matches!(piece, Piece::Literal(_)));
        Part { text: literal_text(word), has_place }
    };
    let parts: Vec<Part> = args.iter().flatten().map(part).collect();
    let starts = is_starter(program);
    let shell = || {
        let mut words = parts.iter().flat_map(|part| part.text.split_whitespace()).filter(|_| starts);
        words.find(|word| is_shell(Path::new(word))).map(|word| CallersCode::Shell(word.to_owned()))
    };
    let is_chosen = || starts && chooses_program(program, &parts);
    let interprets = is_interpreter(program) || (starts && parts.iter().any(|part| is_interpreter(&part.text)));
    let code = || code_in(&parts).filter(|_| interprets).map(|flag| CallersCode::Code(flag.to_owned()));
    shell().or_else(|| is_chosen().then(|| CallersCode::Program(program.to_owned()))).or_else(code)
}

/// Whether a place may be the program that is started: for `env` the first word that is no option and sets no variable,
/// for others, whose options have values, where no word names one.
fn chooses_program(program: &str, parts: &[Part]) -> bool {
    let may_be = |part: &&Part| {
        !part.text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) && !part.text.contains('=')
    };
    let mut words = parts.iter().filter(may_be);
    let is_env = Path::new(program).file_name().is_some_and(|name| name == "env");
    match words.next() {
        None => false,
        Some(first) if is_env => first.has_place,
        Some(first) => first.has_place && words.all(|word| word.has_place),
    }
}

/// The flag behind which a place is code.
fn code_in(parts: &[Part]) -> Option<&str> {
    let follows = |pair: &[Part]| FLAGS.contains(&pair[0].text.as_str()) && !pair[0].has_place && pair[1].has_place;
    let pair = parts.windows(2).find(|pair| follows(pair)).map(|pair| pair[0].text.as_str());
    let attached = |part: &&Part| part.has_place && FLAGS.iter().any(|flag| part.text.starts_with(flag));
    pair.or_else(|| parts.iter().find(attached).map(|part| part.text.as_str()))
}

fn is_interpreter(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    INTERPRETERS.contains(&name) || INTERPRETERS_WITH_VERSIONS.iter().any(|start| name.starts_with(start))
}
