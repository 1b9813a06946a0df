//! Templates in which what a caller says would be code, or the name of a program.
//!
//! A program is what it is called, and what each link on the way to it is called. One that only starts another one is looked
//! through. What else a program may do with its data nobody knows.

use std::path::Path;

use footbridge_mcp::wrapped::{Piece, Word};

use super::{
    super::super::{exposed::is_starter, programs},
    is_shell,
    runs::{Part, Use, uses},
    words::literal_text,
};

/// A program that runs what follows one of its flags.
struct Interpreter {
    /// Its name, without a version behind it.
    name: &'static str,
    /// Last letters of words that code follows, or a file with some: those of `-e` and `-ne`.
    letters: &'static str,
    /// Words that code follows, too.
    words: &'static [&'static str],
    /// Last letters of words behind whose value nothing is a flag of its own.
    ending: &'static str,
}

const NODE_WORDS: [&str; 6] = ["--eval", "--print", "--import", "--require", "--loader", "--experimental-loader"];
const PHP_WORDS: [&str; 6] = ["--run", "--process-begin", "--process-code", "--process-end", "-d", "--define"];
const JAVA_WORDS: [&str; 10] = [
    "-jar",
    "-cp",
    "-classpath",
    "--class-path",
    "--module-path",
    "-javaagent:",
    "-agentpath:",
    "-agentlib:",
    "-XX:OnError=",
    "-XX:OnOutOfMemoryError=",
];
const INTERPRETERS: [Interpreter; 12] = [
    Interpreter { name: "bun", letters: "cepr", words: &["--eval", "--print", "--preload", "--require"], ending: "" },
    Interpreter { name: "deno", letters: "cepr", words: &["--eval", "eval", "--preload", "--import"], ending: "" },
    // What follows the jar is the jar's.
    Interpreter { name: "java", letters: "", words: &JAVA_WORDS, ending: "r" },
    Interpreter { name: "lua", letters: "e", words: &["-l"], ending: "" },
    Interpreter { name: "luajit", letters: "e", words: &["-l", "-j"], ending: "" },
    Interpreter { name: "node", letters: "cepr", words: &NODE_WORDS, ending: "" },
    Interpreter { name: "nodejs", letters: "cepr", words: &NODE_WORDS, ending: "" },
    Interpreter { name: "perl", letters: "ceE", words: &["-M", "-m", "-I", "-d"], ending: "" },
    Interpreter { name: "php", letters: "cerBER", words: &PHP_WORDS, ending: "" },
    Interpreter { name: "pypy", letters: "c", words: &[], ending: "c" },
    Interpreter { name: "python", letters: "c", words: &[], ending: "c" },
    Interpreter { name: "ruby", letters: "cer", words: &["--require", "-I"], ending: "" },
];
/// Those that run a module by its name.
const MODULES: [&str; 2] = ["pypy", "python"];
/// Flags by which one looks at a script, and runs none.
const CHECKS: [(&str, &str); 3] = [("node", "--check"), ("nodejs", "--check"), ("php", "-l")];
/// First words that are no script.
const SUBCOMMANDS: [&str; 4] = ["eval", "repl", "run", "x"];
/// Programs that start another one, here or in a container, behind one of these words.
const STARTING_BEHIND: [(&str, &str); 6] = [
    ("uv poetry pdm hatch rye pipenv conda mamba", "run"),
    ("npm pnpm yarn bun", "exec x dlx"),
    ("bundle", "exec"),
    ("docker podman nerdctl", "run exec"),
    ("kubectl oc", "run exec"),
    ("nix", "run shell develop"),
];

/// Their flags by which it is said what is started, or what it is made of.
const CHOOSING: [&str; 6] = ["--call", "--package", "--entrypoint", "--with", "--from", "--with-requirements"];

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
    #[error("what a caller says would be the script that {0:?} runs: name the script, and what is said behind it")]
    Script(String),
    #[error(
        "what a caller says would be a script for {0:?}, on its standard input: name a script that reads it from there"
    )]
    Input(String),
    #[error(
        "what a caller says would be in a line that {0:?} hands to a shell: have it run a script of yours that takes \
         no arguments, or name the program itself"
    )]
    Line(String),
    #[error("what a caller says would be code of {0:?}, which can start programs: add {1:?}, or write the code there")]
    Unless(String, &'static str),
}

/// How many programs one behind the other are looked through.
const DEPTH: usize = 8;

/// What a program is started with.
pub(super) struct Template<'a> {
    pub(super) program: &'a str,
    pub(super) args: &'a [Vec<Word>],
    pub(super) input: Option<&'a Word>,
    /// Where programs are looked for that this one starts.
    pub(super) path: Option<&'a str>,
}

/// Looks for the first such thing. Arguments that `is_held` says have only values which the operator named, or numbers, say
/// nothing that could be code.
pub(super) fn of_callers(template: &Template<'_>, is_held: impl Fn(&str) -> bool) -> Option<CallersCode> {
    let of_group = |group: &Vec<Word>| group.iter().map(|word| part(word, group, &is_held)).collect::<Vec<_>>();
    let parts: Vec<Part> = template.args.iter().flat_map(of_group).collect();
    let says_input = template.input.is_some_and(|word| part(word, &[], &is_held).has_place);
    let search = Search { path: template.path, says_input, depth: DEPTH };
    within(template.program, &parts, search)
}

/// What holds for all programs one behind the other, and how many are left to look through.
#[derive(Clone, Copy)]
struct Search<'a> {
    path: Option<&'a str>,
    /// Whether a caller says what is on standard input.
    says_input: bool,
    depth: usize,
}

impl<'a> Search<'a> {
    fn deeper(self) -> Option<Search<'a>> {
        Some(Self { depth: self.depth.checked_sub(1)?, ..self })
    }

    fn is_shell(self, word: &str) -> bool {
        programs::names(word, None, self.path).iter().any(|name| is_shell(Path::new(name)))
    }
}

fn within(program: &str, parts: &[Part], search: Search<'_>) -> Option<CallersCode> {
    programs::names(program, None, search.path).iter().find_map(|name| by_name(name, parts, search))
}

fn by_name(program: &str, parts: &[Part], search: Search<'_>) -> Option<CallersCode> {
    let started = started(program, parts);
    let shell = || {
        let words = started?;
        let at = |part: &Part| part.text.split_whitespace().find(|word| search.is_shell(word)).map(str::to_owned);
        let (found, word) = words.iter().enumerate().find_map(|(found, part)| Some((found, at(part)?)))?;
        // What has a shell elsewhere run a line of the operator's own.
        let is_callers = is_starter(program) || words[found..].iter().any(|part| part.has_place);
        is_callers.then_some(CallersCode::Shell(word))
    };
    let known = || uses(program, parts).into_iter().find_map(|found| used(program, found, search));
    let is_chosen = || started.is_some_and(|words| chooses_program(program, words));
    let code = || {
        let own = Interpreter::of(program).and_then(|one| one.callers(program, parts, search));
        let own = own.or_else(|| started.and_then(chosen_by_flag).map(CallersCode::Code));
        own.or_else(|| code_behind(&split(started?)).map(CallersCode::Code))
    };
    let chosen = || is_chosen().then(|| CallersCode::Program(program.to_owned()));
    shell().or_else(known).or_else(chosen).or_else(code)
}

/// The words by which a program starts another one, if it does nothing else with them.
fn started<'p>(program: &str, parts: &'p [Part]) -> Option<&'p [Part]> {
    if is_starter(program) {
        return Some(parts);
    }
    let name = Path::new(program).file_name()?.to_str()?;
    let (_, behind) = STARTING_BEHIND.iter().find(|(programs, _)| programs.split(' ').any(|known| known == name))?;
    let at = parts.iter().position(|part| behind.split(' ').any(|word| word == part.text && !part.has_place))?;
    Some(&parts[at + 1..])
}

/// The flag among the first words by which a caller says what is started, or what it is made of.
fn chosen_by_flag(words: &[Part]) -> Option<String> {
    for (at, part) in words.iter().enumerate() {
        let (flag, is_attached) = match part.text.split_once('=') {
            Some((flag, _)) => (flag, part.has_place),
            None => (part.text.as_str(), false),
        };
        let is_callers = is_attached || (!part.has_place && words.get(at + 1).is_some_and(|next| next.has_place));
        if CHOOSING.contains(&flag) && is_callers {
            return Some(flag.to_owned());
        }
        if part.has_place || !part.text.starts_with('-') {
            return None;
        }
    }
    None
}

fn is_finder(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| ["find", "fd", "fdfind"].iter().any(|known| name == *known))
}

/// What is wrong with a use of a program's words.
fn used(program: &str, found: Use, search: Search<'_>) -> Option<CallersCode> {
    match found {
        Use::Line => Some(CallersCode::Line(program.to_owned())),
        Use::Code(behind) => Some(CallersCode::Code(behind)),
        Use::Unless(safe) => Some(CallersCode::Unless(program.to_owned(), safe)),
        Use::Command(words) => {
            let (command, args) = words.split_first()?;
            if command.may_be_chosen() {
                return Some(CallersCode::Program(program.to_owned()));
            }
            if search.is_shell(&command.text) {
                // What `find` has a shell run may be a line of the operator's own.
                if is_finder(program) && !args.iter().any(|part| part.has_place) {
                    return None;
                }
                return Some(CallersCode::Shell(command.text.clone()));
            }
            within(&command.text, args, search.deeper()?)
        }
    }
}

/// A word of a list of such that are there together or not at all.
fn part(word: &Word, group: &[Word], is_held: impl Fn(&str) -> bool) -> Part {
    let is_place = |piece: &Piece| !matches!(piece, Piece::Literal(_));
    let is_callers = |piece: &Piece| match piece {
        Piece::Literal(_) => false,
        Piece::Value(name) => !is_held(name),
        Piece::All => true,
    };
    Part {
        text: literal_text(word),
        has_place: word.pieces.iter().any(is_callers),
        is_always: !group.iter().any(|word| word.pieces.iter().any(is_place)),
        is_open: word.pieces.first().is_some_and(is_place),
    }
}

/// The words as `env -S` makes them of these.
fn split(parts: &[Part]) -> Vec<Part> {
    let of = |part: &Part| -> Vec<Part> {
        let of_text = |text: &str| Part { text: text.to_owned(), ..*part };
        if part.has_place { vec![of_text(&part.text)] } else { part.text.split_whitespace().map(of_text).collect() }
    };
    parts.iter().flat_map(of).collect()
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
        Some(first) if is_env => first.may_be_chosen(),
        Some(first) => first.may_be_chosen() && words.all(Part::may_be_chosen),
    }
}

/// The flag behind which a place is code, of any interpreter among these words.
fn code_behind(parts: &[Part]) -> Option<String> {
    let of = |at: usize| Interpreter::of(&parts[at].text)?.code_in(&parts[at + 1..]);
    (0..parts.len()).find_map(of).map(str::to_owned)
}

impl Interpreter {
    /// The one that a program is, by its name: `python3.11` is `python`.
    fn of(program: &str) -> Option<&'static Self> {
        let name = Path::new(program).file_name()?.to_str()?;
        // `python3-config` is another program.
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
        INTERPRETERS.iter().find(|one| one.name == name)
    }

    /// What of these words a caller says that is code, behind a flag, by the script that is run or on standard input.
    fn callers(&self, program: &str, parts: &[Part], search: Search<'_>) -> Option<CallersCode> {
        if let Some(flag) = self.code_in(parts) {
            return Some(CallersCode::Code(flag.to_owned()));
        }
        let own = &parts[..self.script(parts)];
        if self.names_module(own) || own.iter().any(|part| CHECKS.contains(&(self.name, part.text.as_str()))) {
            return None;
        }
        let has_code = |part: &Part| ends_in(&part.text, self.letters) || self.words.contains(&part.text.as_str());
        if own.iter().any(has_code) {
            return None;
        }
        let is_word = |at: &usize| own[*at].is_open || !own[*at].text.starts_with('-');
        let is_script = |at: usize| {
            // The value of a flag, where a script comes behind it.
            let is_value = own.len() < parts.len() && at > 0 && own[at - 1].text.starts_with('-');
            own[at].has_place && own[at].is_open && !is_value
        };
        let mut words = (0..own.len()).filter(is_word).skip_while(|at| SUBCOMMANDS.contains(&own[*at].text.as_str()));
        if words.next().is_some_and(is_script) {
            return Some(CallersCode::Script(program.to_owned()));
        }
        let is_flag = |part: &Part| part.text.starts_with('-');
        let reads_input = own.len() == parts.len() && own.iter().all(is_flag) && search.says_input;
        reads_input.then(|| CallersCode::Input(program.to_owned()))
    }

    /// Whether one of its own words names a module that it runs, as `-m json.tool`, `-mjson.tool` and `-Im json.tool` do.
    fn names_module(&self, own: &[Part]) -> bool {
        let is_named = |(at, part): (usize, &Part)| {
            let flags = part.text.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?;
            let (before, module) = flags.split_once('m')?;
            let is_flag = before.chars().all(|flag| flag.is_ascii_alphabetic());
            let is_next = || own.get(at + 1).is_some_and(|next| !next.has_place);
            Some(is_flag && !part.has_place && (!module.is_empty() || is_next()))
        };
        MODULES.contains(&self.name) && own.iter().enumerate().any(|one| is_named(one) == Some(true))
    }

    /// The flag behind which a place is code, among the words that follow its name.
    fn code_in<'p>(&self, parts: &'p [Part]) -> Option<&'p str> {
        let own = &parts[..self.script(parts)];
        let introduces = |text: &str| ends_in(text, self.letters) || self.words.contains(&text);
        let follows = |pair: &&[Part]| introduces(&pair[0].text) && !pair[0].has_place && pair[1].has_place;
        let attached = |part: &&Part| {
            let first = part.text.split_whitespace().next().unwrap_or_default();
            let begins = || first.get(..2).is_some_and(|start| ends_in(start, self.letters));
            let is_word = || self.words.iter().any(|word| word.starts_with('-') && first.starts_with(word));
            part.has_place && (ends_in(first, self.letters) || begins() || is_word())
        };
        let pair = own.windows(2).find(follows).map(|pair| pair[0].text.as_str());
        pair.or_else(|| own.iter().find(attached).map(|part| part.text.as_str()))
    }

    /// Where its script is: the first word that is neither a flag nor may be the value of one. What follows is the script's.
    fn script(&self, parts: &[Part]) -> usize {
        let is_script = |at: &usize| {
            let (part, before) = (&parts[*at], at.checked_sub(1).map_or("", |before| parts[before].text.as_str()));
            let may_be_value = before.starts_with('-') && !ends_in(before, self.ending);
            let is_word = !part.text.starts_with('-') && !SUBCOMMANDS.contains(&part.text.as_str());
            part.is_always && is_word && !may_be_value
        };
        (0..parts.len()).find(is_script).unwrap_or(parts.len())
    }
}

/// Whether it is flags of one letter each, the last of them one of these.
fn ends_in(text: &str, letters: &str) -> bool {
    let flags = text.strip_prefix('-').filter(|flags| flags.chars().all(|flag| flag.is_ascii_alphanumeric()));
    flags.is_some_and(|flags| flags.ends_with(|last: char| letters.contains(last)))
}
