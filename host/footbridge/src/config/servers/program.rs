//! An entry that is a program: its words, its variables, its folder, and whether a guest could have it run something.

use std::{collections::BTreeMap, path::Path};

use footbridge_proto::vars::GUEST_PREFIX;

use super::{
    super::{
        exposed::{self, Starting},
        node::{Member, WrittenAt},
        programs::{in_full, not_found},
        secrets::Reader,
    },
    Entry, EntryError, Rest, value,
};
use footbridge_core::secret::Secret;
use footbridge_processes::launch::ProgramSpec;

/// Programs that gain privileges, or that are nothing without one that does.
const GAINING: [&str; 5] = ["podman", "buildah", "sudo", "su", "pkexec"];

/// A name that no variable can have: the program would find another one, or none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} in \"env\" cannot be the name of a variable, which has at least a letter and no \"=\"")]
pub(in super::super) struct NoVariable(String);

impl NoVariable {
    /// Refuses such a name.
    pub(in super::super) fn check(name: &str) -> Result<(), Self> {
        if name.is_empty() || name.contains(['=', '\0']) { Err(Self(name.to_owned())) } else { Ok(()) }
    }
}

impl<'n> Entry<'n, '_> {
    /// The program of an entry, with every mistake of its parts.
    pub(super) fn program(&mut self, command: &str, place: &'n WrittenAt, more: &Rest<'n>) -> Option<ProgramSpec> {
        if let Some(note) = gains_privileges(command).filter(|_| more.confine) {
            self.note(&note);
        }
        let env = self.variables(more.env);
        let args: Vec<Option<Secret>> = more
            .args
            .iter()
            .map(|arg| {
                self.part(&arg.at, |reader| {
                    let written = value("args", arg)?;
                    reader.read_path(&written).map_err(at("args"))
                })
            })
            .collect();
        let args = args.into_iter().collect::<Option<_>>();
        let cwd = more.cwd.map(|(cwd, place)| {
            self.part(place, |reader| Ok(reader.base.join(reader.path(cwd).map_err(at("cwd"))?.expose())))
        });
        let command = self.part(place, |reader| {
            let command = reader.path(command).map_err(at("command"))?.expose().to_owned();
            Ok(if more.cwd.is_none() { in_full(reader.base, &command) } else { command })
        });
        let cwd = match cwd {
            None => None,
            Some(cwd) => Some(cwd?),
        };
        let env = env?.into_iter().collect();
        let mut spec = ProgramSpec { command: command?, args: args?, env, cwd, confine: more.confine };
        if !more.trust_folder {
            self.part(place, |reader| keep_out_of_reach(&mut spec, reader))?;
        }
        let path = spec.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.expose());
        not_found(&spec.command, spec.cwd.as_deref(), path).iter().for_each(|what| self.note(what));
        self.hint = relative_file(&spec, self.reader.base);
        self.hint.clone().iter().for_each(|what| self.note(what));
        Some(spec)
    }

    pub(super) fn note(&mut self, what: &str) {
        let note = self.fields.note(&self.server.at, what);
        self.notes.push(note);
    }

    /// Those of the harness that servers get, and those of the entry.
    pub(super) fn variables(&mut self, written: &'n [Member]) -> Option<BTreeMap<String, Secret>> {
        let mut env: BTreeMap<String, Secret> =
            self.reader.commands.passed(self.vars).map(|(name, value)| (name.to_owned(), Secret::new(value))).collect();
        let mut is_whole = true;
        for Member { name, node, .. } in written {
            let found = self.part(&node.at, |reader| {
                NoVariable::check(name)?;
                reader.read_variable(name, &value(name, node)?).map_err(at(name))
            });
            is_whole &= found.is_some();
            env.extend(found.map(|value| (name.clone(), value)));
        }
        env.retain(|name, _| !name.starts_with(GUEST_PREFIX));
        is_whole.then_some(env)
    }
}

pub(super) fn at(what: &str) -> impl FnOnce(super::SecretError) -> EntryError {
    let what = what.to_owned();
    move |error| EntryError::Secret(what, error)
}

/// Says that a program, by its name, is of no use without the privileges that it gains.
pub(super) fn gains_privileges(command: &str) -> Option<String> {
    let name = Path::new(command).file_name()?.to_str().filter(|name| GAINING.contains(name))?;
    Some(format!("{name} gains privileges when it starts, which a confined program cannot: add \"confine\": false"))
}

/// Says that an argument is no file where the server starts, and is one beside the file that it is written in.
fn relative_file(spec: &ProgramSpec, base: &Path) -> Option<String> {
    let is_meant = |arg: &&str| spec.cwd.is_none() && Path::new(arg).is_relative() && base.join(arg).is_file();
    let arg = spec.args.iter().map(Secret::expose).find(is_meant)?;
    Some(format!(
        "it starts in an empty folder, in which there is no {arg}: write the whole path, or name a folder with \"cwd\""
    ))
}

/// Leaves out of its own PATH what guests write, and refuses it where a guest could have it run something.
pub(super) fn keep_out_of_reach(spec: &mut ProgramSpec, reader: &Reader<'_>) -> Result<(), EntryError> {
    let writable = reader.commands.writable();
    if let Some((_, path)) = spec.env.iter_mut().find(|(name, _)| name == "PATH") {
        *path = Secret::new(writable.search_path(path.expose()).kept.unwrap_or_default());
    }
    spec.env.retain(|(name, value)| name != "PATH" || !value.expose().is_empty());
    let plain = |secret: &Secret| secret.expose().to_owned();
    let args: Vec<String> = spec.args.iter().map(plain).collect();
    let variables: Vec<(String, String)> = spec.env.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
    let path = spec.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.expose());
    let (command, cwd) = (&spec.command, spec.cwd.as_deref());
    let starting = Starting { command, args: &args, cwd, variables: &variables, path };
    exposed::find(starting, writable).map_or(Ok(()), |exposed| Err(EntryError::Exposed(exposed)))
}
