//! `[services.NAME]` and `[tunnels]` of `footbridge.toml`: what was written of a service, and what it means. Tunnels are
//! the service of that name, whose requests are the hosts that are allowed.

mod meaning;
mod notes;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use footbridge_core::{
    gate::Policy,
    names::ServerName,
    settings_file::{File, Mistake},
};
use footbridge_services::{ServiceSpec, TUNNELS};
use toml::{Table, Value};

use super::{
    Config,
    commands::Commands,
    secrets::{Gathered, Reader},
};
use meaning::Meaning;

/// What a file says of services, before it is made sense of.
pub(super) struct WrittenServices {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) table: Table,
}

impl WrittenServices {
    /// The names of its services, that of tunnels among them.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let services = self.table.get("services").and_then(Value::as_table).into_iter().flat_map(Table::keys);
        let tunnels = self.table.contains_key("tunnels").then_some(TUNNELS);
        services.map(String::as_str).chain(tunnels)
    }

    /// Its policies, each with the names of the services that it gives.
    pub(super) fn given(&self) -> Vec<(&str, Vec<&str>)> {
        let policies = self.table.get("policies").and_then(Value::as_table);
        policies.into_iter().flatten().map(|(name, policy)| (name.as_str(), services_of(policy))).collect()
    }
}

fn services_of(policy: &Value) -> Vec<&str> {
    policy.get("services").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What the files say of services.
#[derive(Debug, Default)]
pub(super) struct FoundServices {
    pub(super) services: Vec<ServiceSpec>,
    pub(super) gathered: Gathered,
    pub(super) mistakes: Vec<Mistake>,
    /// Of services that are wanted and lack their credential.
    pub(super) notes: Vec<Mistake>,
}

/// Makes sense of all services of a file, whatever else it says; every mistake at once. What is not even a table of them
/// is for whoever reads the rest of it to refuse.
pub(super) fn meant(
    written: WrittenServices,
    variables: &[(String, String)],
    commands: &Commands,
    wanted: &WantedServices,
) -> FoundServices {
    let WrittenServices { path, text, table } = written;
    let file = &File::new(&path, &text);
    let var = |name: &str| variables.iter().find(|(n, _)| n == name).map(|(_, value)| OsString::from(value));
    let base = path.parent().unwrap_or(Path::new("/"));
    let reader = Reader { var: &var, base, commands, gathered: Gathered::default() };
    let name = String::new();
    let mut meaning = Meaning { file, reader, wanted, name, mistakes: Vec::new(), notes: Vec::new() };
    let mut services = Vec::new();
    for (name, written) in table.get("services").and_then(Value::as_table).into_iter().flatten() {
        meaning.name = name.clone();
        let service = meaning.read(&["services", name], written);
        services.extend(service.and_then(|service| meaning.of(service)));
    }
    let tunnels = table.get("tunnels").filter(|written| written.is_table());
    let tunnels = tunnels.and_then(|written| meaning.read(&["tunnels"], written));
    services.extend(tunnels.and_then(|tunnels| meaning.of_tunnels(tunnels)));
    let Meaning { reader, mistakes, notes, .. } = meaning;
    FoundServices { services, gathered: reader.gathered, mistakes, notes }
}

/// The services whose commands of credentials are run. What others lack is not said, and they are not asked.
#[derive(Debug, Clone, Default)]
pub enum WantedServices {
    /// All of them.
    #[default]
    All,
    /// All of them, in place of those that a daemon has: what cannot be read stays there as it was.
    Again,
    /// Those of these names.
    Named(Vec<String>),
    /// Those of a session: these, and those of its policy.
    OfSession {
        /// Their names.
        names: Vec<String>,
        /// The policy's.
        policy: String,
    },
}

impl WantedServices {
    /// With the names of the policy's own, of these policies.
    pub(super) fn among(&self, policies: &BTreeMap<String, Arc<Policy>>) -> Self {
        let Self::OfSession { names, policy } = self else { return self.clone() };
        let of_policy = policies.get(policy).into_iter().flat_map(|policy| policy.services());
        Self::Named(names.iter().cloned().chain(of_policy.map(ToString::to_string)).collect())
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All | Self::Again => true,
            Self::Named(names) | Self::OfSession { names, .. } => names.iter().any(|one| one == name),
        }
    }
}

/// The services of these names.
///
/// # Errors
/// [`NoService`].
pub fn known(config: &Config, names: &[String]) -> Result<BTreeSet<ServerName>, NoService> {
    let one = |name: &String| {
        let found = config.services.iter().find(|spec| spec.name.as_str() == name);
        let known = || config.services.iter().map(|spec| spec.name.to_string()).collect();
        let read = || config.files_once().into_iter().map(Path::to_owned).collect();
        found.map(|spec| spec.name.clone()).ok_or_else(|| NoService {
            name: name.clone(),
            known: known(),
            read: read(),
        })
    };
    names.iter().map(one).collect()
}

/// What is said of the services of these names.
///
/// # Errors
/// [`NoService`].
pub fn of_names(config: &Config, names: &BTreeSet<ServerName>) -> Result<Vec<ServiceSpec>, NoService> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let names = known(config, &names)?;
    Ok(config.services.iter().filter(|spec| names.contains(&spec.name)).cloned().collect())
}

/// There is no service of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no service {name:?}: {}", hint(known, read))]
pub struct NoService {
    /// The name.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
    /// The files that were read.
    pub read: Vec<PathBuf>,
}

fn hint(known: &[String], read: &[PathBuf]) -> String {
    let files: Vec<String> = read.iter().map(|file| file.display().to_string()).collect();
    let files = if files.is_empty() { "no file was read".to_owned() } else { format!("read: {}", files.join(", ")) };
    match known {
        [] => format!(
            "none is configured ({files}). Write [services.NAME] into a footbridge.toml, as docs/services.md shows; one that is not \
             in the configuration folder, or beside a --config, is read where another --config names it"
        ),
        known => format!("choose one of {} ({files})", known.join(", ")),
    }
}

#[cfg(test)]
mod tests;
