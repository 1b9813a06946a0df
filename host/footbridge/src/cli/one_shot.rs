//! What `footbridge tools`, `footbridge call` and `mcp-tool` share: where they find servers and lists, and how they end.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::Context as _;
use footbridge_proto::{
    rpc::{ErrorObject, Reason},
    text::Escaped,
};

use super::{Files, WantedParts, folders_and_variables, say_what_is_left_out};
use crate::{
    config::{Config, ConfigError, Writable, folders::Folders, look_over, program_of},
    oneshot::{
        entries::Entries,
        failure::OneShotFailure,
        listing::{self, Unlisted},
        lists::{Lists, Names, ToolsList},
    },
    report,
};
use footbridge_cli::{output, suggest::instead};
use footbridge_mcp::{ServerSpec, TransportSpec};
use footbridge_processes::sys;

/// Where servers and lists are.
pub(super) struct OneShotPlace {
    pub(super) files: Files,
    pub(super) folders: Folders,
    pub(super) entries: Entries,
    pub(super) lists: Lists,
}

/// What is known of servers: the list of each, or why there is none.
pub(super) type Known<T> = BTreeMap<String, Result<T, Unlisted>>;

impl OneShotPlace {
    /// Reads which servers there are; nothing is started.
    pub(super) fn find(files: Files) -> Result<Self, OneShotFailure> {
        let folders = Folders::of_this_user();
        let folders = folders.map_err(anyhow::Error::from)?;
        let entries = Entries::read(&files.config, &folders);
        let lists = Lists::below(&folders.cache);
        Ok(Self { files, folders, entries, lists })
    }

    /// The server of this name, or what there is instead.
    pub(super) fn check(&self, server: &str) -> Result<(), OneShotFailure> {
        if self.entries.servers.contains_key(server) {
            return Ok(());
        }
        // A mistake of a file says more than that a server is not in it.
        if !self.entries.problems.is_empty() {
            return Err(self.problems());
        }
        let known: Vec<&str> = self.entries.servers.keys().map(String::as_str).collect();
        let what = format!("there is no server \"{}\"{}", Escaped(server), self.not_trusted());
        Err(OneShotFailure::Usage(format!("{what}{}", instead(server, &known, &self.where_from()))))
    }

    /// What keeps files from being read.
    pub(super) fn problems(&self) -> OneShotFailure {
        OneShotFailure::Usage(self.entries.problems.join("\n"))
    }

    /// Says what was left out of a list, which is no reason to show none.
    pub(super) fn note_problems(&self) {
        self.entries.problems.iter().for_each(|why| report::note(&format!("left out: {why}")));
    }

    /// The files that are not trusted, in brackets: what is not found may be in one.
    pub(super) fn not_trusted(&self) -> String {
        self.entries.looked.left_out.iter().map(|one| format!(" ({})", one.note())).collect()
    }

    /// Says which files are not trusted.
    pub(super) fn note_not_trusted(&self) {
        let not_trusted = self.entries.looked.left_out.iter();
        not_trusted.for_each(|one| report::note(&format!("left out: {}", one.note())));
    }

    /// Which files were looked at.
    pub(super) fn where_from(&self) -> String {
        let files: Vec<String> = self.entries.files.iter().map(|path| path.display().to_string()).collect();
        match files.as_slice() {
            [] if !self.entries.looked.tried.is_empty() => {
                format!("no servers file was found: {}", self.entries.looked.help())
            }
            files => format!("looked at {}", files.join(", ")),
        }
    }

    /// The configuration with these servers alone: what others refer to is not looked at.
    pub(super) fn config_of(&self, servers: &[String]) -> Result<Config, OneShotFailure> {
        self.config_without(servers, &[])
    }

    /// The same without the files that have these mistakes.
    fn config_without(&self, servers: &[String], left_out: &[String]) -> Result<Config, OneShotFailure> {
        // A list may come before the call.
        static LOGS: AtomicBool = AtomicBool::new(false);
        if !LOGS.swap(true, Ordering::AcqRel) {
            crate::log::start("warn,footbridge_mcp=error,rmcp=off").context("cannot log")?;
        }
        sys::harden().context("cannot protect this process from others of the same user")?;
        // A run from here could have changed what it starts.
        let (folders, variables) = folders_and_variables(Writable::here())?;
        let variables = variables.only(Some(servers)).services(WantedParts::none().services);
        let (config, mut mistakes) = look_over(&self.files.config, &folders, &variables);
        mistakes.retain(|mistake| !left_out.contains(&mistake.to_string()));
        if !mistakes.is_empty() {
            mistakes.extend(config.lacking);
            return Err(anyhow::Error::from(ConfigError(mistakes)).into());
        }
        // Of one alone there is nothing else to say.
        if let [_] = servers
            && !config.lacking.is_empty()
        {
            return Err(anyhow::Error::from(ConfigError(config.lacking)).into());
        }
        if config.servers.iter().any(|spec| is_missing(spec, config.search_path.as_deref())) {
            say_what_is_left_out(&config);
        }
        Ok(config)
    }

    /// Names and descriptions of all servers' tools. Those whose list is not kept are started, all with `refresh`.
    pub(super) fn names(&self, refresh: bool) -> Result<Known<Names>, OneShotFailure> {
        let mut known: Known<Names> = BTreeMap::new();
        let mut unknown = Vec::new();
        for (server, key) in &self.entries.servers {
            match self.lists.names(key).filter(|_| !refresh) {
                Some(names) => drop(known.insert(server.clone(), Ok(names))),
                None => unknown.push(server.clone()),
            }
        }
        let listed = match self.list(&unknown) {
            Err(OneShotFailure::Harness(error)) if error.is::<ConfigError>() => {
                self.list_usable(&unknown, !known.is_empty(), error)?
            }
            listed => listed?,
        };
        known.extend(listed.into_iter().map(|(server, list)| (server, list.map(|list| list.names))));
        Ok(known)
    }

    /// As [`Self::list`], where the configuration of all of them is wrong: the servers whose own part of it is not, and
    /// why the others cannot be used. With none that can be, here or beside them, there is nothing but the mistake.
    fn list_usable(
        &self,
        servers: &[String],
        are_others: bool,
        wrong: anyhow::Error,
    ) -> Result<Known<ToolsList>, OneShotFailure> {
        let (mut usable, mut known) = (Vec::new(), BTreeMap::new());
        for server in servers {
            match self.config_to_list(std::slice::from_ref(server)) {
                Ok(_) => usable.push(server.clone()),
                Err(failure) => {
                    let why = format!("Server \"{}\" cannot be used", Escaped(server));
                    let mistakes = failure.to_string().replace('\n', "; ");
                    drop(known.insert(server.clone(), Err(Unlisted { why, because: Some(mistakes) })));
                }
            }
        }
        if usable.is_empty() && !are_others {
            return Err(OneShotFailure::Harness(wrong));
        }
        known.extend(self.list(&usable)?);
        Ok(known)
    }

    /// All that is known of the tools of a server, which is started where its list is not kept, or with `refresh`.
    pub(super) fn whole(&self, server: &str, refresh: bool) -> Result<ToolsList, OneShotFailure> {
        self.check(server)?;
        if let Some(list) = self.kept(server).filter(|_| !refresh) {
            return Ok(list);
        }
        match self.list(&[server.to_owned()])?.remove(server) {
            Some(Ok(list)) => {
                self.note_problems();
                Ok(list)
            }
            Some(Err(Unlisted { why, because })) => {
                Err(OneShotFailure::Refused(Box::new(ErrorObject::new(Reason::ServerUnavailable, why)), because))
            }
            None => Err(OneShotFailure::Usage(format!("server \"{}\" is turned off", Escaped(server)))),
        }
    }

    /// The list of a server, if it is kept.
    pub(super) fn kept(&self, server: &str) -> Option<ToolsList> {
        self.lists.whole(self.entries.servers.get(server)?)
    }

    /// As [`Self::config_of`], without the files that a list leaves out.
    fn config_to_list(&self, servers: &[String]) -> Result<Config, OneShotFailure> {
        self.config_without(servers, &self.entries.problems)
    }

    /// Starts servers to list them, and keeps what they say.
    fn list(&self, servers: &[String]) -> Result<Known<ToolsList>, OneShotFailure> {
        if servers.is_empty() {
            return Ok(BTreeMap::new());
        }
        let config = self.config_to_list(servers)?;
        let runtime = super::runtime().context("cannot start")?;
        let listed = runtime.block_on(listing::list(config, &self.folders.state));
        runtime.shutdown_background();
        let listed = listed?;
        for (server, list) in &listed {
            if let (Some(key), Ok(list)) = (self.entries.servers.get(server.as_str()), list)
                && let Err(error) = self.lists.keep(key, list)
            {
                report::note(&format!(
                    "the list of {server} cannot be kept, so it is asked for again next time: {error}"
                ));
            }
        }
        Ok(listed.into_iter().map(|(server, list)| (server.to_string(), list)).collect())
    }
}

/// Gives the status, and says what went wrong.
pub(super) fn ended(done: Result<(), OneShotFailure>, json: bool) -> i32 {
    match done {
        Ok(()) => 0,
        Err(failure) if failure.is_said() => match failure {
            OneShotFailure::Tool => failure.status(),
            _ => 0,
        },
        Err(failure) => {
            output::print_error(&if json { format!("{}\n", failure.to_json()) } else { failure.text() });
            failure.status()
        }
    }
}

/// Whether the program of a server is not there.
fn is_missing(spec: &ServerSpec, path: Option<&str>) -> bool {
    matches!(&spec.transport, TransportSpec::Stdio(program)
        if program_of(&program.command, program.cwd.as_deref(), path).is_err())
}
