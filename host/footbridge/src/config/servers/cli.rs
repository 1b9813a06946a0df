//! Entries of type `cli`: programs that are wrapped as tools.
//!
//! Programs are resolved here, once, and only those of `allowedPrograms`; none is a shell. `tool` has one tool, `words`
//! its templates, `code` what a caller's text must not become in them, `runs` what programs do with
//! their words.

mod code;
mod runs;
mod tool;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use footbridge_core::secret::Secret;
use footbridge_mcp::wrapped::CliSpec;

use super::{
    super::{
        node::{Member, Node, WrittenAt},
        programs,
    },
    Entry, EntryError, Rest,
    program::{at, gains_privileges},
};

/// Programs that run what they are given as a script: with one of them, a value would be code.
const SHELLS: [&str; 20] = [
    "ash", "bash", "csh", "dash", "elvish", "fish", "hush", "ksh", "mksh", "nu", "osh", "posh", "pwsh", "rbash", "sh",
    "tcsh", "xonsh", "yash", "ysh", "zsh",
];

/// What is wrong with an entry of this type.
#[derive(Debug, thiserror::Error)]
pub(in crate::config) enum BadCli {
    #[error("it has no \"tools\": write a list of {{\"name\": ..., \"args\": [...]}}")]
    NoTools,
    #[error("it has no \"allowedPrograms\": name the programs that its tools may run, such as [\"git\"]")]
    NoPrograms,
    #[error("\"allowedPrograms\" holds {0}, and the name or path of a program is expected")]
    NoProgram(&'static str),
    #[error(
        "{0:?} is a shell, and what a caller says would be code there: name the program itself, or a script of yours \
         that takes arguments"
    )]
    Shell(String),
    #[error("two tools are called {0:?}")]
    Twice(String),
}

/// What all tools of an entry run with.
struct Around<'n> {
    command: Option<(&'n str, &'n WrittenAt)>,
    env: BTreeMap<String, Secret>,
    /// Where programs are looked for.
    path: Option<String>,
    cwd: Option<PathBuf>,
    confine: bool,
    trust_folder: bool,
    programs: Allowed,
}

/// The programs of an entry: as they are written, and where they are.
#[derive(Default)]
struct Allowed {
    places: BTreeMap<String, String>,
    missing: Vec<String>,
}

impl<'n> Entry<'n, '_> {
    /// The tools of an entry, with every mistake of each.
    pub(super) fn wrapped(&mut self, command: Option<(&'n str, &'n WrittenAt)>, more: &Rest<'n>) -> Option<CliSpec> {
        let (programs, tools) = (self.fields.list("allowedPrograms"), self.fields.list("tools"));
        for missing in [(programs, BadCli::NoPrograms), (tools, BadCli::NoTools)] {
            if missing.0.is_empty() {
                self.wrong::<()>(EntryError::Cli(missing.1));
            }
        }
        self.note_places(more.env);
        let env = self.variables(more.env)?;
        let path = env.get("PATH").and_then(|path| self.reader.commands.writable().search_path(path.expose()).kept);
        let programs = self.allowed(programs, path.as_deref(), more.confine);
        let cwd = match more.cwd {
            None => None,
            Some((cwd, place)) => {
                let read = |reader: &mut super::Reader<'_>| {
                    Ok(reader.base.join(reader.path(cwd).map_err(at("cwd"))?.expose()))
                };
                Some(self.part(place, read)?)
            }
        };
        let (confine, trust_folder) = (more.confine, more.trust_folder);
        let around = Around { command, env, path, cwd, confine, trust_folder, programs };
        let (mut meant, mut names) = (Vec::new(), BTreeSet::new());
        for node in tools {
            let name = node.member("name").and_then(|name| name.node.text());
            if let Some(name) = name.filter(|name| !names.insert(*name)) {
                self.fields.wrong(&node.at, BadCli::Twice(name.to_owned()));
            }
            meant.push(self.tool(node, &around));
        }
        for program in &around.programs.missing {
            self.note(&format!(
                "its program {program:?} is not found: install it, or write the whole path; until then it is unavailable"
            ));
        }
        let tools = meant.into_iter().collect::<Option<_>>()?;
        Some(CliSpec { tools, missing: around.programs.missing.into_iter().next() })
    }

    /// Notes what looks like the place of an argument in variables, which have none.
    fn note_places(&mut self, env: &'n [Member]) {
        for Member { name, node, .. } in env {
            if let Some(place) = node.text().and_then(place_in) {
                let what = format!(
                    "{name:?} in \"env\": {{{place}}} is no place there and stays as it is: arguments go into \"args\" and \
                     \"stdin\" alone"
                );
                let note = self.fields.note(&node.at, what);
                self.notes.push(note);
            }
        }
    }

    /// Looks for the programs of an entry.
    fn allowed(&mut self, written: &'n [Node], path: Option<&str>, confine: bool) -> Allowed {
        let mut allowed = Allowed::default();
        for node in written {
            let Some(text) = node.text() else {
                self.fields.wrong(&node.at, BadCli::NoProgram(node.kind()));
                continue;
            };
            let read = |reader: &mut super::Reader<'_>| {
                let full = reader.path(text).map_err(at("allowedPrograms"))?;
                Ok(programs::in_full(reader.base, full.expose()))
            };
            let Some(full) = self.part(&node.at, read) else { continue };
            let place = programs::find(&full, None, path).filter(|place| programs::is_program(place));
            if is_shell(Path::new(&full)) || place.as_deref().is_some_and(is_shell) {
                self.fields.wrong(&node.at, BadCli::Shell(text.to_owned()));
            }
            if let Some(note) = gains_privileges(text).filter(|_| confine) {
                self.note(&note);
            }
            allowed.missing.extend(place.is_none().then(|| text.to_owned()));
            let place = place.map_or(full, |place| place.to_string_lossy().into_owned());
            allowed.places.insert(text.to_owned(), place);
        }
        allowed
    }
}

impl Allowed {
    /// Where a program is that a tool may run.
    fn place(&self, written: &str) -> Option<&String> {
        self.places.get(written).or_else(|| self.places.values().find(|place| *place == written))
    }

    /// The one that there is.
    fn only(&self) -> Option<&str> {
        self.places.keys().next().map(String::as_str).filter(|_| self.places.len() == 1)
    }

    fn names(&self) -> String {
        self.places.keys().cloned().collect::<Vec<_>>().join(", ")
    }
}

/// The first word in braces that is no reference to a variable.
fn place_in(text: &str) -> Option<&str> {
    let is_name = |inner: &str| !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let opened = text.match_indices('{').filter(|(at, _)| !text[..*at].ends_with('$'));
    opened.filter_map(|(at, _)| Some(text[at + 1..].split_once('}')?.0)).find(|inner| is_name(inner))
}

fn is_shell(program: &Path) -> bool {
    let is_one =
        |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| SHELLS.contains(&name));
    is_one(program) || program.canonicalize().is_ok_and(|real| is_one(&real))
}

#[cfg(test)]
mod tests;
