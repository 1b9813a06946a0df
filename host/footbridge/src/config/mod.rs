//! The operator's configuration, in two steps: what was written, then what it means.
//!
//! Every mistake is reported at once, with its file and line. Nothing that a guest or a server sent gets here.

mod approval;
mod bounded;
mod commands;
mod exposed;
mod fields;
pub mod folders;
mod foreign;
mod home_places;
mod idle_rules;
mod into_file;
mod jsonc;
mod jsonc_errors;
mod loading;
mod node;
mod obeyed;
mod origin;
mod outline;
mod passed;
mod programs;
mod references;
mod secrets;
mod servers;
mod services;
mod settings;
mod shown;
mod sources;
pub(crate) mod steps;
mod to_trust;
mod toml_nodes;
pub(crate) mod trust;
pub(crate) mod trusted;
mod withheld;
mod writable;
mod written;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use commands::Commands;
pub(crate) use foreign::{ForeignFile, NotForeign, find as foreign_file, read as read_foreign};
pub use idle_rules::PlacedLabel;
pub(crate) use idle_rules::{KnownNames, of_no_tool};
pub(crate) use into_file::{NewServers, NotWritten};
pub(crate) use node::Node;
pub use node::WrittenAt;
pub(crate) use outline::Outline;
pub(crate) use passed::is_passed;
pub(crate) use programs::program_of;
pub use secrets::Gathered;
pub use services::{NoService, WantedServices, known, of_names};
pub use sources::{LeftOut, Looked};
pub(crate) use sources::{of_working_folder, trust_it};
pub(crate) use to_trust::{FileToTrust, NotToTrust};
pub(crate) use toml_nodes::settings as settings_of;
pub use withheld::Withheld;
pub use writable::Writable;
pub use written::WrittenServer;

use crate::{approvers::ApprovalSettings as Asking, store::StoreKind};
use folders::Folders;
use footbridge_audit::AuditSettings;
use footbridge_core::{
    gate::{Policies, Policy},
    limits::Limits,
    names::ServerName,
    policy_file,
    settings_file::{File, Mistake, closest},
};
use footbridge_mcp::ServerSpec;
use footbridge_processes::launch::OwnFolders;
use footbridge_services::ServiceSpec;
use obeyed::link_in_reach;
use secrets::Reader;
use services::WrittenServices;
use settings::Settings;
use sources::FoundFile;
use written::{MergedServers, Replacement};

/// All that the files say together.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The servers, by name.
    pub servers: Vec<ServerSpec>,
    /// The same servers and those that are turned off, merged, as they are written and with where each value is.
    pub written: Vec<WrittenServer>,
    /// What was looked for; nothing where files were named.
    pub looked: Looked,
    /// The services, by name.
    pub services: Vec<ServiceSpec>,
    /// Secrets that the files refer to.
    pub gathered: Gathered,
    /// Limits, with those of the files.
    pub limits: Limits,
    /// The limits that the files name.
    pub named_limits: BTreeSet<&'static str>,
    /// Which store keeps sessions, pins and heads.
    pub store: StoreKind,
    /// Of the record.
    pub audit: AuditSettings,
    /// Names that a `Host` header may give besides loopback.
    pub allow_hosts: Vec<String>,
    /// Who is asked for approvals.
    pub approval: Asking,
    /// The policies that there are, those that are built in too.
    pub policies: Policies,
    /// The files that the others are of.
    pub policy_files: BTreeMap<String, PathBuf>,
    /// What the files say that tools can do, later files first.
    pub labels: Vec<PlacedLabel>,
    /// The files that were read, by each path that leads to one.
    pub files: Vec<PathBuf>,
    /// What is odd but no mistake: unknown keys, entries turned off, names that a later file took over, rules that can
    /// never match.
    pub notes: Vec<Mistake>,
    /// Values that entries of servers refer to and that are not there, each a mistake of that server alone.
    pub lacking: Vec<Mistake>,
    /// The PATH of programs that are started outside of sandboxes; none where there is none.
    pub search_path: Option<String>,
    /// What that PATH lacks of the harness's own, since a guest could write there or it is relative.
    pub left_out_of_path: Vec<String>,
    /// Other variables that such programs do not get as the harness has them.
    pub withheld: Withheld,
    /// The harness's own folders, as programs find them.
    pub own_folders: OwnFolders,
}

impl Config {
    /// One without any file, for programs that get these variables.
    fn of(variables: &Variables) -> Self {
        Self {
            search_path: path_in(&variables.all).map(str::to_owned),
            left_out_of_path: variables.left_out_of_path.clone(),
            withheld: variables.withheld.clone(),
            own_folders: variables.commands.folders(),
            ..Self::default()
        }
    }

    /// The files that were read, each once, whatever it was called by.
    #[must_use]
    pub(crate) fn files_once(&self) -> Vec<&Path> {
        let mut known = BTreeSet::new();
        let is_new = |path: &&PathBuf| known.insert(path.canonicalize().unwrap_or_else(|_| (*path).clone()));
        self.files.iter().filter(is_new).map(PathBuf::as_path).collect()
    }
}

/// The configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(pub Vec<Mistake>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

/// The variables that the configuration is read with, and how the commands that it names for secrets are run.
pub struct Variables {
    all: Vec<(String, String)>,
    commands: Commands,
    services: WantedServices,
    left_out_of_path: Vec<String>,
    withheld: Withheld,
}

impl Variables {
    fn value(&self, name: &str) -> Option<OsString> {
        self.all.iter().find(|(other, _)| other == name).map(|(_, value)| value.into())
    }

    /// Those of this process. What is not UTF-8 is passed over: it can be neither referred to nor handed on.
    #[must_use]
    pub fn of_this_process() -> Self {
        let utf8 = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let all = std::env::vars_os().filter_map(utf8).collect();
        Self {
            all,
            commands: Commands::default(),
            services: WantedServices::All,
            left_out_of_path: Vec::new(),
            withheld: Withheld::default(),
        }
    }

    /// Of these servers alone, where it is not all: what others refer to is not looked at.
    #[must_use]
    pub(crate) fn only(mut self, servers: Option<&[String]>) -> Self {
        self.commands = self.commands.only(servers);
        self
    }

    /// For these services: no command of another one's credential is run.
    #[must_use]
    pub(crate) fn services(self, services: WantedServices) -> Self {
        Self { services, ..self }
    }

    /// With this way to run commands, where guests write what this says: what they could replace is not on PATH, and
    /// is refused where the files name it.
    #[must_use]
    pub fn commands(mut self, commands: Commands, writable: Writable) -> Self {
        let found = path_in(&self.all).map(|path| writable.search_path(path)).unwrap_or_default();
        self.all.retain(|(name, _)| name != "PATH");
        self.all.extend(found.kept.clone().map(|kept| ("PATH".to_owned(), kept)));
        self.left_out_of_path = found.left_out;
        self.withheld = Withheld::of(&self.all, &writable);
        self.commands = commands.out_of_reach(writable, found.kept, self.withheld.clone());
        self
    }
}

/// Reads files, later ones over earlier ones; without any, those of the [places](Looked) where one is looked for.
/// Waits for commands that print secrets, one after the other, each within 30 s.
///
/// # Errors
/// [`ConfigError`], with every mistake of every file.
pub fn load(given: &[PathBuf], folders: &Folders, variables: &Variables) -> Result<Config, ConfigError> {
    let (config, mut mistakes) = look_over(given, folders, variables);
    if mistakes.is_empty() {
        return Ok(config);
    }
    mistakes.extend(config.lacking);
    Err(ConfigError(mistakes))
}

/// As [`load`], with what can be told of the configuration besides its mistakes.
pub(crate) fn look_over(given: &[PathBuf], folders: &Folders, variables: &Variables) -> (Config, Vec<Mistake>) {
    let (looked, files) = if given.is_empty() {
        match sources::look(folders) {
            Ok(found) => found,
            Err(error) => return (Config::default(), vec![Mistake::of_file(&folders.state, error.to_string())]),
        }
    } else {
        (Looked::default(), given.iter().map(|path| (path.clone(), None)).collect())
    };
    let mut config = Config { looked, ..Config::of(variables) };
    // Also where there is nothing to read yet, since a guest could have it lead to something.
    let mut mistakes: Vec<Mistake> = link_in_reach(&folders.config, variables.commands.writable())
        .map(|what| Mistake::of_file(&folders.config, what))
        .into_iter()
        .collect();
    let mut parts = Parts::default();
    for (path, found) in files {
        let before = parts.written_services.len();
        if let Err(mut found) = add_file(&path, found, variables, &mut config, &mut parts) {
            parts.lacks_settings |= !is_json(&path) && parts.written_services.len() == before;
            found.sort_by_key(|mistake| (mistake.line, mistake.column));
            mistakes.extend(found);
        }
    }
    let unknown = parts.unknown_services();
    mistakes.extend(add_services(std::mem::take(&mut parts.written_services), variables, &mut config, &mut parts));
    mistakes.extend(unknown);
    mistakes.extend(add_servers(std::mem::take(&mut parts.servers), variables, &mut config));
    config.services = parts.services.into_values().collect();
    config.policy_files = parts.files;
    let labelled = parts.labels.iter().map(|label| label.labelled.clone()).collect();
    config.policies = Policies::new(parts.policies.into_values().collect(), labelled);
    config.labels = parts.labels;
    if mistakes.is_empty() {
        config.notes.extend(idle_rules::of_nothing_configured(&config));
    }
    (config, mistakes)
}

/// Takes what the merged servers mean.
fn add_servers(merged: MergedServers, variables: &Variables, config: &mut Config) -> Vec<Mistake> {
    let var = |name: &str| variables.value(name);
    let mut mistakes = Vec::new();
    config.notes.extend(merged.replaced.iter().map(Replacement::note));
    let written = merged.into_servers();
    let base = Path::new("/");
    let mut reader = Reader { var: &var, base, commands: &variables.commands, gathered: Gathered::default() };
    let mut notes = Vec::new();
    for server in written.iter().filter(|server| variables.commands.wants(&server.name)) {
        let meaning = servers::meant(server, &mut reader, &variables.all);
        config.servers.extend(meaning.spec);
        mistakes.extend(meaning.mistakes);
        config.lacking.extend(meaning.lacking);
        notes.extend(meaning.notes);
    }
    config.gathered.add(reader.gathered);
    let place = |mistake: &Mistake| (mistake.file.clone(), mistake.line, mistake.column);
    notes.sort_by_key(place);
    mistakes.sort_by_key(place);
    config.lacking.sort_by_key(place);
    config.notes.extend(notes);
    config.written = written;
    mistakes
}

/// Makes sense of the services of all files.
fn add_services(
    written: Vec<WrittenServices>,
    variables: &Variables,
    config: &mut Config,
    parts: &mut Parts,
) -> Vec<Mistake> {
    let wanted = variables.services.among(&parts.policies);
    let mut mistakes = Vec::new();
    for written in written {
        let path = written.path.clone();
        let found = services::meant(written, &variables.all, &variables.commands, &wanted);
        mistakes.extend(found.mistakes);
        config.gathered.add(found.gathered);
        config.notes.extend(found.notes);
        for spec in found.services {
            let name = spec.name.to_string();
            if parts.services.insert(name.clone(), spec).is_some() {
                let what = format!("service \"{name}\" replaces the one of an earlier file");
                config.notes.push(Mistake::of_file(&path, what));
            }
        }
    }
    mistakes
}

/// What files add to each other.
#[derive(Default)]
struct Parts {
    servers: MergedServers,
    written_services: Vec<WrittenServices>,
    services: BTreeMap<String, ServiceSpec>,
    policies: BTreeMap<String, Arc<Policy>>,
    /// The files that policies are of.
    files: BTreeMap<String, PathBuf>,
    labels: Vec<PlacedLabel>,
    /// The last file that says something of each of [`WHOLE`].
    whole: BTreeMap<&'static str, PathBuf>,
    /// Whether a settings file could not be read as one, so that what it says is not known.
    lacks_settings: bool,
}

impl Parts {
    /// Policies that give services of which nothing is written. A service or policy with another mistake is there.
    fn unknown_services(&self) -> Vec<Mistake> {
        if self.lacks_settings {
            return Vec::new();
        }
        let services = self.written_services.iter().flat_map(WrittenServices::names);
        let services: BTreeSet<&str> = services.collect();
        let mut last = BTreeMap::new();
        for written in &self.written_services {
            last.extend(written.given().into_iter().map(|(policy, given)| (policy, (written, given))));
        }
        let of_policy = |(policy, (written, given)): (&str, (&WrittenServices, Vec<&str>))| {
            let unknown =
                given.into_iter().filter(|name| name.parse::<ServerName>().is_ok() && !services.contains(name));
            let keys = ["policies", policy, "services"].map(str::to_owned);
            let file = File::new(&written.path, &written.text);
            let what = |name: &str| {
                let meant = closest(name, services.iter().copied());
                let meant = meant.map(|meant| format!(" (did you mean \"{meant}\"?)")).unwrap_or_default();
                format!(
                    "policy \"{policy}\" gives the service \"{name}\", and there is none{meant}: write [services.{name}]"
                )
            };
            unknown.map(|name| file.mistake(&keys, what(name))).collect::<Vec<_>>()
        };
        last.into_iter().flat_map(of_policy).collect()
    }
}

/// Adds a file, as it was found.
fn add_file(
    path: &Path,
    found: Option<FoundFile>,
    variables: &Variables,
    config: &mut Config,
    parts: &mut Parts,
) -> Result<(), Vec<Mistake>> {
    let wrong = |what: String| vec![Mistake::of_file(path, what)];
    if path.metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Err(wrong("No such file: write it, or name another with --config".to_owned()));
    }
    let (real, text) = sources::read(path, found, variables.commands.writable()).map_err(wrong)?;
    config.files.push(real.clone());
    // A link has its own name besides; `..` and links on the way to it are not.
    if let Ok(named) = in_real_folder(path)
        && named != real
    {
        config.files.push(named);
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        _ if is_json(path) => {
            written::servers(&real, &text)?.into_iter().for_each(|server| parts.servers.add(server));
            Ok(())
        }
        Some("toml") => add_settings(&real, text, variables, config, parts),
        _ => Err(wrong("its name must end in .json (servers) or .toml (settings)".to_owned())),
    }
}

/// The name of a file in the folder that really holds it.
fn in_real_folder(path: &Path) -> std::io::Result<PathBuf> {
    let named = std::path::absolute(path)?;
    let folder = named.parent().unwrap_or(Path::new("/")).canonicalize()?;
    Ok(folder.join(named.file_name().unwrap_or_default()))
}

/// The table of servers in a settings file of Codex, which is none of ours.
const OF_CODEX: &str = "mcp_servers";

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json" || extension == "jsonc")
}

/// What is of one settings file, whole: of several the last that says it.
const WHOLE: [&str; 5] = ["approval", "audit", "edge", "limits", "store"];

/// Adds a settings file. Its services and policies are read by themselves, so that a mistake elsewhere leaves none of
/// theirs unsaid, and the other way round.
fn add_settings(
    path: &Path,
    text: String,
    variables: &Variables,
    config: &mut Config,
    parts: &mut Parts,
) -> Result<(), Vec<Mistake>> {
    let file = File::new(path, &text);
    let table = file.parse().map_err(|mistake| vec![mistake])?;
    if table.contains_key(OF_CODEX) {
        let what =
            format!("{OF_CODEX:?} is how codex writes servers: take them over with \"footbridge config import\"");
        return Err(vec![Mistake::of_file(path, what)]);
    }
    let found = policy_file::read(file, &table);
    let (settings, mut mistakes) = settings::read(file, table.clone());
    let says = |name: &str| table.contains_key(name);
    mistakes.extend(settings.into_iter().flat_map(|settings| take_settings(settings, &file, says, variables, config)));
    mistakes.extend(found.mistakes);
    for name in WHOLE.into_iter().filter(|name| says(name)) {
        if let Some(earlier) = parts.whole.insert(name, path.to_owned()) {
            let what = format!("{name:?} replaces that of {}, whole", earlier.display());
            config.notes.push(Mistake::of_file(path, what));
        }
    }
    for policy in found.policies {
        let name = policy.name().to_owned();
        parts.files.insert(name.clone(), path.to_owned());
        if parts.policies.insert(name.clone(), policy).is_some() {
            let what = format!("policy \"{name}\" replaces the one of an earlier file");
            config.notes.push(Mistake::of_file(path, what));
        }
    }
    config.notes.extend(found.notes);
    // Of a later file first: the first that is about a tool holds.
    let placed = |(index, labelled)| PlacedLabel { file: path.to_owned(), index, labelled };
    parts.labels.splice(0..0, found.labelled.into_iter().enumerate().map(placed));
    // Which of them are wanted is known once all policies are.
    parts.written_services.push(WrittenServices { path: path.to_owned(), text, table });
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// Takes what a settings file says over what earlier ones said; gives what is wrong in it.
fn take_settings(
    settings: Settings,
    file: &File<'_>,
    says: impl Fn(&str) -> bool,
    variables: &Variables,
    config: &mut Config,
) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if says("limits") {
        (config.limits, config.named_limits) = (settings.limits, settings.named_limits);
    }
    if says("edge") {
        config.allow_hosts = settings.edge.allow_hosts;
    }
    if says("store") {
        config.store = settings.store;
    }
    if says("audit") {
        config.audit = settings.audit;
        if let Some((program, args)) = config.audit.head_command.split_first_mut() {
            *program = programs::in_full(file.path().parent().unwrap_or(Path::new("/")), program);
            mistakes.extend(in_reach(file, ["audit", "head_command"], &variables.commands.check(program, args)));
        }
    }
    if says("approval") {
        match settings.approval.meant(file, &variables.all, &variables.commands) {
            Ok((approval, gathered)) => {
                if let Some(spec) = &approval.command {
                    let at = ["approval", "command"];
                    let missing = programs::not_found(&spec.program, None, path_in(&spec.env));
                    config.notes.extend(missing.map(|what| file.mistake(&at.map(str::to_owned), what)));
                    mistakes.extend(in_reach(file, at, &variables.commands.check(&spec.program, &spec.args)));
                }
                config.approval = approval;
                config.gathered.add(gathered);
            }
            Err(mistake) => mistakes.push(mistake),
        }
    }
    mistakes
}

/// Refuses a command of the settings that a guest could have run something.
fn in_reach(file: &File<'_>, at: [&str; 2], checked: &Result<(), exposed::Exposed>) -> Option<Mistake> {
    let exposed = checked.as_ref().err()?;
    Some(file.mistake(&at.map(str::to_owned), format!("{exposed}Move it out of there")))
}

/// PATH among variables.
fn path_in(variables: &[(String, String)]) -> Option<&str> {
    variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests;
