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
    catalogues::{say_what_is_left_out, started},
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
        let all = json!({"ok": ok, "mistakes": done.mistakes, "notes": done.notes});
        report::out(&format!("{all}\n"))?;
    } else {
        let mut text = String::new();
        done.mistakes.iter().for_each(|what| text.push_str(&format!("error: {}\n", Escaped(what))));
        done.notes.iter().for_each(|what| text.push_str(&format!("note: {}\n", Escaped(what))));
        text.push_str(if ok { "ok: the configuration was read again\n" } else { "everything stays as it was\n" });
        report::out(&text)?;
    }
    Ok(if ok { 0 } else { session::REFUSED })
}

pub(super) fn check(files: &Files, start: bool, json: bool) -> anyhow::Result<i32> {
    crate::log::start(SAYS_WHAT_IT_WAITS_FOR)?;
    sys::harden().context("cannot protect this process from others of the same user")?;
    let (mut started, mut nothing) = (None, None);
    let writable = Writable::here();
    let (folders, variables) = folders_and_variables(writable)?;
    let (mut config, mut mistakes) = look_over(&files.config, &folders, &variables);
    // What one server lacks is a mistake of that one.
    let are_others_fine = mistakes.is_empty();
    mistakes.extend(config.lacking.iter().cloned());
    let (mut servers, mut services): (Vec<String>, Vec<String>) = Default::default();
    if are_others_fine {
        servers.extend(config.servers.iter().map(|spec| spec.name.to_string()));
        services.extend(config.services.iter().map(|spec| spec.name.to_string()));
        nothing = NoConfiguration::check(&config).err();
        mistakes.extend(nothing.iter().map(|what| Mistake::of_file(folders.config.clone(), what.to_string())));
        if start {
            let (all, tools) = runtime()?.block_on(started_of(config.clone()));
            started = Some(all);
            config.notes.extend(of_no_tool(&config, &tools));
        } else {
            config.notes.extend(of_no_tool(&config, &listed_before(files, &folders)));
        }
    }
    let left_out = config.looked.left_out.iter().map(LeftOut::note);
    let read: Vec<PathBuf> = config.files_once().into_iter().map(Path::to_owned).collect();
    let notes: Vec<Mistake> = left_out.chain(config.notes).collect();
    let ok = mistakes.is_empty();
    let all_start = started.iter().flatten().all(|server| server.error.is_none());
    let gap = Confinement::here().gap();
    if json {
        let all = json!({"ok": ok, "files": read, "servers": servers, "services": services, "mistakes": listed(&mistakes), "notes": listed(&notes), "confinement_gap": gap, "started": started});
        report::out(&format!("{all}\n"))?;
    } else {
        let mut text = String::new();
        match &nothing {
            // Of several lines, and all of them ours.
            Some(nothing) => text.push_str(&format!("error: {nothing}\n")),
            None => mistakes.iter().for_each(|m| text.push_str(&format!("error: {m}\n"))),
        }
        notes.iter().for_each(|m| text.push_str(&format!("note: {m}\n")));
        gap.iter().for_each(|gap| text.push_str(&format!("note: {gap}\n")));
        // What a server lacks has been said.
        let is_said = |server: &&StartedServer| {
            mistakes.iter().any(|mistake| server.error.as_ref().is_some_and(|why| *why == mistake.to_string()))
        };
        let others = started.iter().flatten().filter(|server| !is_said(server));
        others.for_each(|server| text.push_str(&server.for_people()));
        if start && !are_others_fine {
            text.push_str("no server was started: mend that first\n");
        }
        if ok && all_start {
            text.push_str(&verdict(&servers, &services, &read, notes.len()));
        }
        report::out(&text)?;
    }
    Ok(match (ok, all_start) {
        (true, true) => 0,
        (true, false) => session::REFUSED,
        (false, _) => USAGE,
    })
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
}

impl StartedServer {
    fn for_people(&self) -> String {
        let name = Escaped(&self.name);
        match (&self.error, self.tools) {
            (None, tools) => format!("started: {name}: {}\n", report::counted(tools.unwrap_or(0) as u64, "tool")),
            (Some(why), _) => format!("error: server {name} does not start: {}\n", Escaped(why)),
        }
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
        StartedServer { name: report.name.to_string(), tools, error }
    };
    let all = started(config, None).await.into_iter().map(one).collect();
    (all, known)
}

/// That all is well, but for what was noted.
fn verdict(servers: &[String], services: &[String], files: &[PathBuf], notes: usize) -> String {
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
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
