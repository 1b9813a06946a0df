//! `footbridge config`.

use std::time::Duration;

use anyhow::Context as _;
use footbridge_proto::text::Escaped;
use serde_json::json;

use super::{ConfigCommand, Files, NoConfiguration, USAGE, session};
use crate::{
    config::{ConfigError, Writable, folders::Folders},
    control::{self, wire::ReloadConfig},
    report,
};
use footbridge_core::settings_file::Mistake;
use footbridge_processes::{keeper::Confinement, sys};

pub(super) fn main(command: ConfigCommand) -> anyhow::Result<i32> {
    match command {
        ConfigCommand::Check { files, json } => check(&files, json),
        ConfigCommand::Reload { json } => Ok(reload(json).unwrap_or_else(|error| {
            report::error(&error);
            session::REFUSED
        })),
    }
}

/// How long a daemon may take to read its files: the commands that it runs for secrets have their own times.
const RELOAD_TIME: Duration = Duration::from_secs(300);

fn reload(json: bool) -> anyhow::Result<i32> {
    let folders = Folders::find(nix::unistd::geteuid().as_raw(), |name| std::env::var_os(name))?;
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

fn check(files: &Files, json: bool) -> anyhow::Result<i32> {
    sys::harden().context("cannot protect this process from others of the same user")?;
    let (read, servers, mistakes, notes) = match super::load_config(files, Writable::here()) {
        Ok((config, folders)) => {
            let names: Vec<String> = config.servers.iter().map(|spec| spec.name.to_string()).collect();
            let nothing = NoConfiguration::check(&config).err();
            let nothing = nothing.map(|what| Mistake::of_file(folders.config, what.to_string()));
            (config.files, names, nothing.into_iter().collect(), config.notes)
        }
        Err(error) => match error.downcast::<ConfigError>() {
            Ok(ConfigError(mistakes)) => (Vec::new(), Vec::new(), mistakes, Vec::new()),
            Err(error) => return Err(error),
        },
    };
    let ok = mistakes.is_empty();
    let gap = Confinement::here().gap();
    if json {
        let list = |found: &[Mistake]| -> Vec<_> {
            found
                .iter()
                .map(|m| json!({"file": m.file, "line": m.line, "column": m.column, "message": m.what}))
                .collect()
        };
        let all = json!({"ok": ok, "files": read, "servers": servers, "mistakes": list(&mistakes), "notes": list(&notes), "confinement_gap": gap});
        report::out(&format!("{all}\n"))?;
    } else {
        let mut text = String::new();
        mistakes.iter().for_each(|m| text.push_str(&format!("error: {m}\n")));
        notes.iter().for_each(|m| text.push_str(&format!("note: {m}\n")));
        gap.iter().for_each(|gap| text.push_str(&format!("note: {gap}\n")));
        if ok {
            let files: Vec<String> = read.iter().map(|path| path.display().to_string()).collect();
            text.push_str(&format!("ok: {} from {}\n", count(&servers), files.join(", ")));
        }
        report::out(&text)?;
    }
    Ok(if ok { 0 } else { USAGE })
}

fn count(servers: &[String]) -> String {
    match servers {
        [] => "no server".to_owned(),
        [one] => format!("1 server ({one})"),
        many => format!("{} servers ({})", many.len(), many.join(", ")),
    }
}
