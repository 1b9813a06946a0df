//! `footbridge servers pins`: looking at pins, and accepting what changed.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use anyhow::Context as _;
use serde_json::json;

use super::{
    PinsArgs, PinsCommand, Which,
    difference::{Colours, shown},
    show,
};
use crate::{
    cli::approvals::{harness_of, running, show::json_lines},
    config::folders::Folders,
    control::{
        client::ControlClient,
        wire::{AcceptedPin, PinsAccepted},
    },
    report,
    store::{Acceptance, StateStore, StoreError, StoreKind, StoredPin},
};
use footbridge_core::digest::{Digest, digest_text};
use footbridge_processes::sys;

/// Acceptances that are told in one request: their names are up to 1 KiB each.
const AT_ONCE: usize = 20;

/// What is asked for is not there.
#[derive(Debug, thiserror::Error)]
enum Nothing {
    #[error("server {0:?} has no pins: \"footbridge servers pins\" shows all that there are")]
    Server(String),
    #[error("tool {1:?} of server {0:?} has no pin: \"footbridge servers pins\" shows all that there are")]
    Tool(String, String),
    #[error("tool {1:?} of server {0:?} did not change, or was accepted already: there is nothing to accept")]
    Same(String, String),
    #[error("no tool of server {0:?} changed: there is nothing to accept")]
    Changed(String),
    #[error(
        "tool {1:?} of server {0:?} changed to another definition than those that --digest names, and nothing was \
         accepted: look at it again with \"footbridge servers pins diff\""
    )]
    Digest(String, String),
    #[error(
        "no server {0:?} whose command, arguments or address contain {1:?} has pins: see \"footbridge servers pins {0}\""
    )]
    Origin(String, String),
    #[error(
        "there are several servers {0:?}, and nothing was done: name a part of the one that you mean with --origin\n  {1}"
    )]
    Origins(String, String),
    #[error("what changed could not be shown, and nothing was accepted")]
    Unseen,
}

pub(super) fn main(args: PinsArgs, folders: &Folders) -> anyhow::Result<()> {
    let PinsArgs { command, server, json } = args;
    match command {
        None => list(&Pins::open(&folders.state)?, server, json),
        Some(PinsCommand::Diff { server, tool, json }) => {
            diff(&Pins::open(&folders.state)?, server.as_deref(), tool, json)
        }
        Some(PinsCommand::Accept { server, which, origin, digests, json }) => {
            // First: a harness has to see which namespaces this process is in, before it is closed to others.
            let mut harnesses = running(&folders.runtime)?;
            let pins = Pins::open(&folders.state)?;
            let found = of_origin(pins.of(Some(&server))?, &server, origin.as_deref())?;
            let selected = select(found, &server, &which, &digests)?;
            one_origin(selected.iter(), &server)?;
            let accepted = accept(&pins, &selected, json)?;
            drop(pins);
            tell(&mut harnesses, &accepted);
            Ok(())
        }
        Some(PinsCommand::Forget { server, which, origin, json }) => {
            let pins = Pins::open(&folders.state)?;
            let found = of_origin(pins.of(Some(&server))?, &server, origin.as_deref())?;
            let only = one_origin(found.iter().filter(|pin| which.all || which.tools.contains(&pin.tool)), &server)?;
            if let Some(tool) = which.tools.iter().find(|tool| !found.iter().any(|pin| pin.tool == **tool)) {
                return Err(Nothing::Tool(server, tool.clone()).into());
            }
            let forgotten = pins.forget(&server, &only, &which.tools)?;
            if json {
                return Ok(report::out(&json_lines(&[
                    serde_json::json!({"server": server, "forgotten": forgotten}),
                ])?)?);
            }
            report::note(&format!("{} of {server} forgotten", report::counted(forgotten, "pin")));
            Ok(())
        }
    }
}

/// The pins of a state folder, for one command.
struct Pins {
    runtime: tokio::runtime::Runtime,
    /// None where there never was a harness.
    store: Option<Arc<dyn StateStore>>,
}

impl Pins {
    fn open(state: &Path) -> anyhow::Result<Self> {
        sys::harden().context("cannot protect this process from others of the same user")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let store = runtime.block_on(StoreKind::default().open_if_there(state))?;
        Ok(Self { runtime, store })
    }

    fn of(&self, server: Option<&str>) -> Result<Vec<StoredPin>, StoreError> {
        self.store.as_ref().map_or_else(|| Ok(Vec::new()), |store| self.runtime.block_on(store.pins(server)))
    }

    fn accept(&self, accepted: &[Acceptance]) -> anyhow::Result<()> {
        Ok(self.store.as_ref().map_or(Ok(()), |store| self.runtime.block_on(store.accept_pins(accepted)))?)
    }

    fn forget(&self, server: &str, origin: &str, tools: &[String]) -> Result<u64, StoreError> {
        self.store.as_ref().map_or(Ok(0), |store| self.runtime.block_on(store.forget_pins(server, origin, tools)))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        if let Some(store) = self.store.take() {
            self.runtime.block_on(store.close());
        }
    }
}

fn list(pins: &Pins, server: Option<String>, json: bool) -> anyhow::Result<()> {
    let found = pins.of(server.as_deref())?;
    if let Some(server) = server.filter(|_| found.is_empty()) {
        return Err(Nothing::Server(server).into());
    }
    Ok(report::out(&if json { as_json(&found)? } else { show::pins(&found) })?)
}

fn as_json(found: &[StoredPin]) -> serde_json::Result<String> {
    json_lines(&found.iter().map(show::Pin::of).collect::<Vec<_>>())
}

fn diff(pins: &Pins, server: Option<&str>, tool: Option<String>, json: bool) -> anyhow::Result<()> {
    let mut found = pins.of(server)?;
    if let (Some(server), true) = (server, found.is_empty()) {
        return Err(Nothing::Server(server.to_owned()).into());
    }
    if let (Some(server), Some(tool)) = (server, tool) {
        found.retain(|pin| pin.tool == tool);
        if found.is_empty() {
            return Err(Nothing::Tool(server.to_owned(), tool).into());
        }
    }
    found.retain(|pin| pin.changed.is_some());
    if json {
        return Ok(report::out(&as_json(&found)?)?);
    }
    report::out(&differences(&found))?;
    report::note(match found.as_slice() {
        [] => "nothing changed",
        _ => "to accept: footbridge servers pins accept SERVER TOOL... [--digest DIGEST], or SERVER --all",
    });
    Ok(())
}

fn differences(found: &[StoredPin]) -> String {
    let paint = Colours::of_output();
    found.iter().map(|pin| shown(pin, paint)).collect::<Vec<_>>().join("\n")
}

/// Accepts these changes, and shows them.
fn accept(pins: &Pins, selected: &[StoredPin], json: bool) -> anyhow::Result<Vec<Acceptance>> {
    let accepted: Vec<Acceptance> = selected.iter().filter_map(acceptance).collect();
    // What is accepted is what is shown here: these digests and no others.
    if !json && !report::piece(&differences(selected))? {
        return Err(Nothing::Unseen.into());
    }
    pins.accept(&accepted)?;
    for one in &accepted {
        let line = json!({"server": one.server, "tool": one.tool, "digest": digest_text(one.digest)});
        if json {
            report::out(&json_lines(&[line])?)?
        } else {
            report::note(&format!("accepted: {}/{}", one.server, one.tool))
        }
    }
    Ok(accepted)
}

/// The pins of the servers of a name whose origin contains this.
fn of_origin(mut found: Vec<StoredPin>, server: &str, part: Option<&str>) -> Result<Vec<StoredPin>, Nothing> {
    if found.is_empty() {
        return Err(Nothing::Server(server.to_owned()));
    }
    let Some(part) = part else { return Ok(found) };
    found.retain(|pin| show::origin(pin).contains(part));
    if found.is_empty() { Err(Nothing::Origin(server.to_owned(), part.to_owned())) } else { Ok(found) }
}

/// The one origin of these pins: what is meant for one server must not be done to another of the same name.
fn one_origin<'p>(pins: impl Iterator<Item = &'p StoredPin>, server: &str) -> Result<String, Nothing> {
    let origins: BTreeMap<&str, String> = pins.map(|pin| (pin.origin.as_str(), show::origin(pin))).collect();
    match origins.len() {
        0 | 1 => Ok(origins.into_keys().next().unwrap_or_default().to_owned()),
        _ => Err(Nothing::Origins(server.to_owned(), origins.into_values().collect::<Vec<_>>().join("\n  "))),
    }
}

fn acceptance(pin: &StoredPin) -> Option<Acceptance> {
    let digest = pin.changed.as_ref()?.digest;
    Some(Acceptance { server: pin.server.clone(), tool: pin.tool.clone(), digest })
}

/// The changes that are asked for.
fn select(found: Vec<StoredPin>, server: &str, which: &Which, digests: &[Digest]) -> Result<Vec<StoredPin>, Nothing> {
    for tool in &which.tools {
        let named = || (server.to_owned(), tool.clone());
        let mut of_tool = found.iter().filter(|pin| pin.tool == *tool).peekable();
        match (of_tool.peek().is_some(), of_tool.any(|pin| pin.changed.is_some())) {
            (false, _) => return Err(Nothing::Tool(named().0, named().1)),
            (true, false) => return Err(Nothing::Same(named().0, named().1)),
            (true, true) => {}
        }
    }
    let is_asked = |pin: &StoredPin| pin.changed.is_some() && (which.all || which.tools.contains(&pin.tool));
    let selected: Vec<StoredPin> = found.into_iter().filter(is_asked).collect();
    let is_other = |pin: &&StoredPin| pin.changed.as_ref().is_some_and(|changed| !digests.contains(&changed.digest));
    match selected.iter().find(is_other) {
        Some(other) if !digests.is_empty() => Err(Nothing::Digest(server.to_owned(), other.tool.clone())),
        _ if selected.is_empty() => Err(Nothing::Changed(server.to_owned())),
        _ => Ok(selected),
    }
}

/// Has it recorded by whoever runs. It is accepted either way.
fn tell(harnesses: &mut [ControlClient], accepted: &[Acceptance]) {
    let told = accepted.iter().map(|one| AcceptedPin {
        server: one.server.clone(),
        tool: one.tool.clone(),
        digest: digest_text(one.digest),
    });
    let told: Vec<AcceptedPin> = told.collect();
    if harnesses.is_empty() {
        report::note("no footbridge is running: this is in no record");
    }
    for client in harnesses {
        for some in told.chunks(AT_ONCE) {
            if let Err(error) = client.call(&PinsAccepted { accepted: some.to_vec() }) {
                let what = format!("it is accepted, but {} did not record it", harness_of(client));
                report::error(&anyhow::Error::new(error).context(what));
            }
        }
    }
}
