//! Where commands know tools from: the servers of the configuration, or what a session of a running harness sees. Of the
//! second nothing is read, started or kept here.

use std::{path::PathBuf, time::Duration};

use footbridge_proto::{
    rpc::{ErrorObject, Reason},
    text::Escaped,
    wire::ToolEntry,
};
use serde_json::value::RawValue;

use super::{
    Files,
    one_shot::{Known, OneShotPlace},
};
use crate::{
    config::folders::Folders,
    control::wire::{ListedServer, ListedTool},
    oneshot::{
        failure::OneShotFailure,
        listing::Unlisted,
        lists::{Names, ToolsList},
        via::{self, OfHarness},
    },
};
use footbridge_cli::{shell_word::quoted, suggest::instead};

/// How long a harness may take to say what a session sees: longer than it waits for servers.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Where tools are known from.
pub(super) enum KnownTools {
    /// The configuration, and what was listed before.
    Configured(Box<OneShotPlace>),
    /// A session of a harness that runs.
    Session(SeenTools),
}

/// What a session sees.
pub(super) struct SeenTools {
    runtime: PathBuf,
    session: String,
    patience: Duration,
    /// Names alone, as they were at the beginning.
    servers: Vec<ListedServer>,
}

impl KnownTools {
    /// Finds them; a session has so long to answer.
    pub(super) fn find(files: Files, via: Option<&str>, patience: Duration) -> Result<Self, OneShotFailure> {
        match via {
            None => Ok(Self::Configured(Box::new(OneShotPlace::find(files)?))),
            Some(session) => {
                let runtime = Folders::of_this_user().map_err(anyhow::Error::from)?.runtime;
                let of = OfHarness { runtime: &runtime, session };
                let servers = via::tools(of, None, false, patience)?;
                Ok(Self::Session(SeenTools { session: session.to_owned(), runtime, patience, servers }))
            }
        }
    }

    /// The names of all servers.
    pub(super) fn servers(&self) -> Vec<&str> {
        match self {
            Self::Configured(place) => place.entries.servers.keys().map(String::as_str).collect(),
            Self::Session(seen) => seen.names(),
        }
    }

    /// The tools of all servers that are known without anything being started, by server.
    pub(super) fn at_hand(&self) -> Vec<(&str, Names)> {
        match self {
            Self::Configured(place) => {
                let all = place.entries.servers.iter();
                all.filter_map(|(server, key)| Some((server.as_str(), place.lists.names(key)?))).collect()
            }
            Self::Session(seen) => {
                let of = |server: &ListedServer| names(server.clone()).ok();
                seen.servers.iter().filter_map(|server| Some((server.name.as_str(), of(server)?))).collect()
            }
        }
    }

    /// The list of a server, if it is known without anything being started.
    pub(super) fn kept(&self, server: &str) -> Option<ToolsList> {
        match self {
            Self::Configured(place) => place.kept(server),
            Self::Session(seen) => seen.whole(server, false).ok(),
        }
    }

    /// All that is known of the tools of a server.
    pub(super) fn whole(&self, server: &str, refresh: bool) -> Result<ToolsList, OneShotFailure> {
        match self {
            Self::Configured(place) => place.whole(server, refresh),
            Self::Session(seen) => seen.whole(server, refresh),
        }
    }

    /// Names and descriptions of all servers' tools.
    pub(super) fn names(&self, refresh: bool) -> Result<Known<Names>, OneShotFailure> {
        match self {
            Self::Configured(place) => place.names(refresh),
            Self::Session(seen) => {
                let again = if refresh { Some(seen.ask(None, refresh)?) } else { None };
                let listed = again.unwrap_or_else(|| seen.servers.clone());
                Ok(listed.into_iter().map(|server| (server.name.clone(), names(server))).collect())
            }
        }
    }

    /// Why there is nothing at all.
    pub(super) fn nothing(&self) -> OneShotFailure {
        match self {
            Self::Configured(place) if !place.entries.problems.is_empty() => place.problems(),
            Self::Configured(place) if !place.entries.files.is_empty() => OneShotFailure::Usage(format!(
                "no server is configured ({}): write one as docs/configuration.md shows, or footbridge config import PROGRAM",
                self.where_from()
            )),
            other => OneShotFailure::Usage(other.where_from()),
        }
    }

    /// Whether files were left out in which there may be more.
    pub(super) fn has_problems(&self) -> bool {
        matches!(self, Self::Configured(place) if !place.entries.problems.is_empty())
    }

    /// What was looked at.
    pub(super) fn where_from(&self) -> String {
        match self {
            Self::Configured(place) => place.where_from(),
            Self::Session(seen) => {
                let session = Escaped(&seen.session);
                format!("session \"{session}\" sees no server; \"footbridge servers list\" shows those that run")
            }
        }
    }

    /// The files that are not trusted, in brackets.
    pub(super) fn not_trusted(&self) -> String {
        match self {
            Self::Configured(place) => place.not_trusted(),
            Self::Session(_) => String::new(),
        }
    }

    /// Says which files are not trusted.
    pub(super) fn note_not_trusted(&self) {
        if let Self::Configured(place) = self {
            place.note_not_trusted();
        }
    }

    /// Says what was left out of a list.
    pub(super) fn note_problems(&self) {
        if let Self::Configured(place) = self {
            place.note_problems();
        }
    }

    /// What a command line has to say for the same tools.
    pub(super) fn option(&self) -> String {
        match self {
            Self::Configured(place) => {
                let files = place.files.config.iter();
                files.map(|file| format!(" --config {}", quoted(&file.to_string_lossy()))).collect()
            }
            Self::Session(_) => self.via(),
        }
    }

    /// What it has to say for the same session, where they are of one.
    pub(super) fn via(&self) -> String {
        match self {
            Self::Configured(_) => String::new(),
            Self::Session(seen) => format!(" --via {}", Escaped(&seen.session)),
        }
    }
}

impl SeenTools {
    /// The session, where its calls are made.
    pub(super) fn of_harness(&self) -> OfHarness<'_> {
        OfHarness { runtime: &self.runtime, session: &self.session }
    }

    fn names(&self) -> Vec<&str> {
        self.servers.iter().map(|server| server.name.as_str()).collect()
    }

    fn ask(&self, server: Option<&str>, refresh: bool) -> Result<Vec<ListedServer>, OneShotFailure> {
        via::tools(self.of_harness(), server, refresh, self.patience)
    }

    /// All that one server says of its tools.
    pub(super) fn whole(&self, server: &str, refresh: bool) -> Result<ToolsList, OneShotFailure> {
        let known = self.names();
        if !known.contains(&server) {
            let what = format!("session \"{}\" sees no server \"{}\"", Escaped(&self.session), Escaped(server));
            return Err(OneShotFailure::Usage(format!("{what}{}", instead(server, &known, "it sees none"))));
        }
        let listed = self.ask(Some(server), refresh)?.into_iter().next();
        let Some(ListedServer { why, because, tools, .. }) = listed else {
            return Err(OneShotFailure::Harness(anyhow::anyhow!("the harness said nothing of server \"{server}\"")));
        };
        if let Some(why) = why {
            return Err(OneShotFailure::Refused(Box::new(ErrorObject::new(Reason::ServerUnavailable, why)), because));
        }
        let changed = tools.iter().filter(|tool| tool.changed).map(|tool| tool.name.clone()).collect();
        let tools = tools.into_iter().map(|tool| {
            let definition = RawValue::from_string(tool.definition.clone().unwrap_or_default());
            Ok((entry(tool), definition.map_err(anyhow::Error::from)?))
        });
        Ok(ToolsList::new(tools.collect::<Result<_, OneShotFailure>>()?, changed))
    }
}

fn names(server: ListedServer) -> Result<Names, Unlisted> {
    if let Some(why) = server.why {
        return Err(Unlisted { why, because: server.because });
    }
    let changed = server.tools.iter().filter(|tool| tool.changed).map(|tool| tool.name.clone()).collect();
    Ok(Names::new(server.tools.into_iter().map(entry).collect(), changed))
}

fn entry(tool: ListedTool) -> ToolEntry {
    ToolEntry { name: tool.name, description: tool.description, has_structured_output: tool.has_structured_output }
}
