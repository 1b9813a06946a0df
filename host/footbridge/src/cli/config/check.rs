//! `footbridge config check` and `config reload`: all that is wrong or odd, in files or as the daemon reads them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use footbridge_proto::text::Escaped;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    catalogues::{disabled_in_vain, say_what_is_left_out, started},
    cli::{Files, NoConfiguration, SAYS_WHAT_IT_WAITS_FOR, USAGE, folders_and_variables, runtime, session},
    config::{Config, KnownNames, LeftOut, Writable, folders::Folders, look_over, of_no_tool},
    control::{self, wire::ReloadConfig},
    oneshot::{
        entries::Entries,
        lists::{Lists, Names},
    },
    report,
};
use footbridge_core::settings_file::Mistake;
use footbridge_mcp::{ServerReport, ServerState};
use footbridge_processes::{keeper::Confinement, sys};

/// How long a daemon may take to read its files: the commands that it runs for secrets have their own times.
const RELOAD_TIME: Duration = Duration::from_secs(300);

pub(super) fn reload(json: bool) -> anyhow::Result<i32> {
    let folders = Folders::of_this_user()?;
    let client = session::connect(&control::of_serve(&folders.runtime))?;
    let done = client.with_patience(RELOAD_TIME)?.call(&ReloadConfig {})?;
    let ok = done.mistakes.is_empty();
    if json {
        let all = json!({"ok": ok, "mistakes": done.mistakes, "notes": done.notes, "changes": done.changes});
        report::out(&format!("{all}\n"))?;
    } else {
        let mut text = String::new();
        done.mistakes.iter().for_each(|what| text.push_str(&format!("error: {}\n", Escaped(what))));
        done.notes.iter().for_each(|what| text.push_str(&format!("note: {}\n", Escaped(what))));
        done.changes.iter().for_each(|what| text.push_str(&format!("{}\n", Escaped(what))));
        text.push_str(if ok { "ok: the configuration was read again\n" } else { "everything stays as it was\n" });
        report::out(&text)?;
    }
    Ok(if ok { 0 } else { session::REFUSED })
}

pub(super) fn check(files: &Files, start: bool, json: bool) -> anyhow::Result<i32> {
    crate::log::start(SAYS_WHAT_IT_WAITS_FOR)?;
    sys::harden().context("cannot protect this process from others of the same user")?;
    let found = Found::of(files, start)?;
    report::out(&if json { format!("{}\n", found.for_programs()) } else { found.for_people() })?;
    Ok(found.status())
}

/// What a check of a configuration found.
#[derive(Debug, Default)]
struct Found {
    /// The files that were read.
    read: Vec<PathBuf>,
    servers: Vec<String>,
    services: Vec<String>,
    mistakes: Vec<Mistake>,
    /// That there is no configuration at all, which is one of the mistakes.
    nothing: Option<NoConfiguration>,
    notes: Vec<Mistake>,
    /// What this kernel does not confine.
    gap: Option<&'static str>,
    /// What came of starting the servers, if that was asked for and nothing stood in its way.
    started: Option<Vec<StartedServer>>,
    /// Whether it was asked for and something did.
    held_up: bool,
}

impl Found {
    fn of(files: &Files, start: bool) -> anyhow::Result<Self> {
        let mut found = Self { gap: Confinement::here().gap(), ..Self::default() };
        let (folders, variables) = folders_and_variables(Writable::here())?;
        let (mut config, mistakes) = look_over(&files.config, &folders, &variables);
        found.mistakes = mistakes;
        // What one server lacks is a mistake of that one.
        let are_others_fine = found.mistakes.is_empty();
        found.mistakes.extend(config.lacking.iter().cloned());
        if are_others_fine {
            found.servers.extend(config.servers.iter().map(|spec| spec.name.to_string()));
            found.services.extend(config.services.iter().map(|spec| spec.name.to_string()));
            found.nothing = NoConfiguration::check(&config).err();
            let of_file = |what: &NoConfiguration| Mistake::of_file(folders.config.clone(), what.to_string());
            found.mistakes.extend(found.nothing.iter().map(of_file));
            let tools = if start {
                let (all, tools) = runtime()?.block_on(started_of(config.clone()));
                found.started = Some(all);
                tools
            } else {
                listed_before(files, &folders)
            };
            config.notes.extend(of_no_tool(&config, &tools));
        }
        found.held_up = start && !are_others_fine;
        found.read = config.files_once().into_iter().map(Path::to_owned).collect();
        found.notes = config.looked.left_out.iter().map(LeftOut::note).collect();
        found.notes.extend(config.notes);
        Ok(found)
    }

    fn for_programs(&self) -> Value {
        json!({
            "ok": self.mistakes.is_empty() && self.all_start(), "files": self.read, "servers": self.servers, "services": self.services,
            "mistakes": listed(&self.mistakes), "notes": listed(&self.notes),
            "confinement_gap": self.gap, "started": self.started,
        })
    }

    fn for_people(&self) -> String {
        let mut text = String::new();
        match &self.nothing {
            // Of several lines, and all of them ours.
            Some(nothing) => text.push_str(&format!("error: {nothing}\n")),
            None => self.mistakes.iter().for_each(|m| text.push_str(&format!("error: {m}\n"))),
        }
        self.notes.iter().for_each(|m| text.push_str(&format!("note: {m}\n")));
        self.gap.iter().for_each(|gap| text.push_str(&format!("note: {gap}\n")));
        // What a server lacks has been said.
        let is_said = |server: &&StartedServer| {
            self.mistakes.iter().any(|mistake| server.error.as_ref().is_some_and(|why| *why == mistake.to_string()))
        };
        let others = self.started.iter().flatten().filter(|server| !is_said(server));
        others.for_each(|server| text.push_str(&server.for_people()));
        if self.held_up {
            text.push_str("no server was started: mend that first\n");
        }
        if self.mistakes.is_empty() && self.all_start() {
            text.push_str(&verdict(&self.servers, &self.services, &self.read, self.notes.len()));
        }
        text
    }

    fn all_start(&self) -> bool {
        self.started.iter().flatten().all(|server| server.error.is_none())
    }

    fn status(&self) -> i32 {
        match (self.mistakes.is_empty(), self.all_start()) {
            (true, true) => 0,
            (true, false) => session::REFUSED,
            (false, _) => USAGE,
        }
    }
}

/// What is wrong or odd, for programs.
fn listed(found: &[Mistake]) -> Vec<Value> {
    let one = |m: &Mistake| json!({"file": m.file, "line": m.line, "column": m.column, "message": m.what});
    found.iter().map(one).collect()
}

/// What came of starting a server.
#[derive(Debug, Serialize)]
struct StartedServer {
    name: String,
    /// How many tools it offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    /// Why it did not start, or offers nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What is odd about its entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl StartedServer {
    fn for_people(&self) -> String {
        let name = Escaped(&self.name);
        let note = self.note.as_ref().map(|note| format!("note: server {name}: {}\n", Escaped(note)));
        let state = match (&self.error, self.tools) {
            (None, tools) => format!("started: {name}: {}\n", report::counted(tools.unwrap_or(0) as u64, "tool")),
            (Some(why), _) => format!("error: server {name} does not start: {}\n", Escaped(why)),
        };
        state + &note.unwrap_or_default()
    }
}

/// The tools that servers had when they were listed last.
fn listed_before(files: &Files, folders: &Folders) -> KnownNames {
    let lists = Lists::below(&folders.cache);
    let entries = Entries::read(&files.config, folders).servers.into_iter();
    let names = |names: Names| names.tools.into_iter().map(|tool| tool.name).collect();
    entries.filter_map(|(server, key)| Some((server, names(lists.names(&key)?)))).collect()
}

/// What came of starting each server, and the tools of those that did.
async fn started_of(config: Config) -> (Vec<StartedServer>, KnownNames) {
    let mut known = KnownNames::new();
    let one = |report: ServerReport| {
        say_what_is_left_out(&report);
        let note = disabled_in_vain(&report);
        let (tools, error) = match report.state {
            ServerState::Ready(offered) => {
                let tools: Vec<String> = offered.entries().tools().map(|tool| tool.name().to_owned()).collect();
                let count = tools.len();
                known.insert(report.name.to_string(), tools);
                (Some(count), None)
            }
            ServerState::Starting => (None, Some("it is still starting".to_owned())),
            ServerState::Unavailable(why) => (None, Some(report.last_error.unwrap_or_else(|| why.to_string()))),
        };
        StartedServer { name: report.name.to_string(), tools, error, note }
    };
    let all = started(config, None).await.into_iter().map(one).collect();
    (all, known)
}

/// That all is well, but for what was noted.
fn verdict(servers: &[String], services: &[String], files: &[PathBuf], notes: usize) -> String {
    let files: Vec<String> = files.iter().map(|path| Escaped(&path.display().to_string()).to_string()).collect();
    let with = if notes == 0 { String::new() } else { format!(", with {}", report::counted(notes as u64, "note")) };
    let services = if services.is_empty() { String::new() } else { format!(", {}", count(services, "service")) };
    format!("ok{with}: {}{services} from {}\n", count(servers, "server"), files.join(", "))
}

fn count(names: &[String], what: &str) -> String {
    match names {
        [] => format!("no {what}"),
        [one] => format!("1 {what} ({one})"),
        many => format!("{} {what}s ({})", many.len(), many.join(", ")),
    }
}
