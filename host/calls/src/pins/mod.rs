//! Pins: what the definition of a tool was when it was seen first, or accepted last. Guests see and call no other.
//!
//! [`Pins::vet`] makes what a provider offers into what may be looked at. It pins what is new, and gives a [`Vetted`] in
//! which a tool whose definition is another cannot be called; what its server says of it now shows to the operator
//! alone. A server is known by its name and by how it is reached: one with another command is another server, whose
//! tools are pinned at first sight, and the log says so where the name was known.
//!
//! What was vetted is kept for as long as the server offers the same. A change of the pins by anybody, another harness
//! or `footbridge servers pins accept`, is noticed before a call is refused because of a pin, and otherwise within
//! [`LOOK_AGAIN`].
//!
//! Failure paths: what cannot be pinned, or compared with its pins, is not offered at all, and is tried again when it
//! is used next.

mod store;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use footbridge_proto::text::Escaped;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub use store::{Compared, Definition, NoPins, PinStore, PinnedServer};

use crate::{catalogue::Vetted, provider::Unavailable};
use footbridge_core::{
    catalogue::{ChangedTool, INSTRUCTIONS, Offered},
    digest::Digest,
    names::ServerName,
};

/// How long what was vetted counts without a look at whether the pins are still the same.
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long it counts where the store is busy with other servers, one of which may have megabytes that change all the
/// time.
const LOOK_AT_LAST: Duration = Duration::from_secs(10);

/// The pins of a store, for one harness. Clones share what they know.
#[derive(Clone)]
pub struct Pins(Arc<Inner>);

struct Inner {
    store: Arc<dyn PinStore>,
    /// Comparisons.
    tasks: TaskTracker,
    servers: Mutex<HashMap<ServerName, Arc<Slot>>>,
}

/// One server. Names are the configuration's, so there are as few as that has.
#[derive(Default)]
struct Slot {
    /// Held while it is compared: one after the other.
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Option<Looked>>,
    /// When the last comparison failed, if it did.
    failed: Mutex<Option<Instant>>,
}

/// What came of the last look.
#[derive(Clone)]
struct Looked {
    vetted: Arc<Vetted>,
    revision: i64,
    at: Instant,
}

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pins").field(&self.0.store).finish()
    }
}

impl Pins {
    /// The pins of this store.
    #[must_use]
    pub fn in_store(store: Arc<dyn PinStore>) -> Self {
        Self(Arc::new(Inner { store, tasks: TaskTracker::new(), servers: Mutex::default() }))
    }

    /// What may be seen and called of what a server offers. What has no pin yet is pinned, also if this is dropped.
    ///
    /// # Errors
    /// [`Unavailable`] with the text for the guest, where it cannot be compared or pinned; the operator's is logged.
    pub async fn vet(&self, server: &ServerName, offered: &Arc<Offered>) -> Result<Arc<Vetted>, Unavailable> {
        let slot = self.slot(server);
        if let Some(vetted) = slot.still_good(offered) {
            return Ok(vetted);
        }
        // In a task of its own, since whoever waits may give up: a commit that is dropped leaves a connection in doubt.
        let compared = self.clone().compared(server.clone(), slot, Arc::clone(offered));
        self.0.tasks.spawn(compared).await.unwrap_or_else(|_| Err(refused(server)))
    }

    /// Looks, one after the other.
    async fn compared(
        self,
        server: ServerName,
        slot: Arc<Slot>,
        offered: Arc<Offered>,
    ) -> Result<Arc<Vetted>, Unavailable> {
        let came = Instant::now();
        let _turn = slot.turn.lock().await;
        if let Some(vetted) = slot.still_good(&offered) {
            return Ok(vetted);
        }
        if slot.failed().is_some_and(|failed| failed >= came) {
            // While this one waited for its turn: a store that is locked must not make each of many wait in turn.
            return Err(refused(&server));
        }
        match self.look(&server, &slot, &offered).await {
            Ok(vetted) => {
                slot.set_failed(None);
                Ok(vetted)
            }
            Err(error) => {
                // Said once, not with each call.
                if slot.set_failed(Some(Instant::now())).is_none() {
                    tracing::error!(%server, %error, "tools of an MCP server cannot be pinned: all of it is refused");
                }
                Err(refused(&server))
            }
        }
    }

    /// Whether this is the definition that is pinned.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn are(&self, server: &str, tool: &str, digest: Digest) -> Result<bool, NoPins> {
        self.0.store.is_pinned(server, tool, digest).await
    }

    async fn look(&self, server: &ServerName, slot: &Slot, offered: &Arc<Offered>) -> Result<Arc<Vetted>, NoPins> {
        let store = &self.0.store;
        let known = slot.last().filter(|last| last.vetted.is_of(offered));
        if let Some(known) = &known {
            // A tool is refused only after a look.
            let waits = known.vetted.changed().len() > 0 || known.at.elapsed() >= LOOK_AT_LAST;
            match store.pins_revision(waits).await? {
                None => return Ok(Arc::clone(&known.vetted)),
                Some(revision) if revision == known.revision => {
                    slot.set(Looked { at: Instant::now(), ..known.clone() });
                    return Ok(Arc::clone(&known.vetted));
                }
                Some(_) => {}
            }
        }
        let tools = offered.entries().tools();
        let tools = tools.map(|tool| Definition { tool: tool.name(), digest: tool.digest(), text: tool.pinned() });
        let instructions = offered.instructions().map(|said| Definition {
            tool: INSTRUCTIONS,
            digest: said.digest(),
            text: said.pinned(),
        });
        let tools: Vec<Definition<'_>> = tools.chain(instructions).collect();
        let origin = offered.origin();
        let pinned = PinnedServer { name: server, origin: &origin };
        let compared = store.compare_pins(pinned, &tools, known.is_none()).await?;
        say(pinned, &compared, known.as_ref().map(|known| &*known.vetted));
        let changed = compared.changed.into_iter().map(|(name, pin)| (name, ChangedTool::by_pin(&pin)));
        let vetted = Arc::new(Vetted::against_pins(server.clone(), offered, changed));
        slot.set(Looked { vetted: Arc::clone(&vetted), revision: compared.revision, at: Instant::now() });
        Ok(vetted)
    }

    fn slot(&self, server: &ServerName) -> Arc<Slot> {
        let mut servers = self.0.servers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(servers.entry(server.clone()).or_default())
    }
}

impl Slot {
    /// What came of this catalogue, where nobody has to look again. A tool is refused only after a look.
    fn still_good(&self, offered: &Arc<Offered>) -> Option<Arc<Vetted>> {
        let Looked { vetted, at, .. } = self.last()?;
        let good = vetted.is_of(offered) && vetted.changed().len() == 0 && at.elapsed() < LOOK_AGAIN;
        good.then_some(vetted)
    }

    fn last(&self) -> Option<Looked> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn failed(&self) -> Option<Instant> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what was before.
    fn set_failed(&self, at: Option<Instant>) -> Option<Instant> {
        std::mem::replace(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner), at)
    }

    fn set(&self, looked: Looked) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(looked);
    }
}

/// For the guest, who learns no more than that.
fn refused(server: &ServerName) -> Unavailable {
    let why = "its tools cannot be compared with what they were";
    Unavailable::because(format!("Server \"{server}\" is not available: {why}; ask the operator"))
}

/// Tells the operator what is new.
fn say(pinned: PinnedServer<'_>, compared: &Compared, before: Option<&Vetted>) {
    let (server, origin) = (pinned.name, Escaped(pinned.origin));
    let Compared { was_known, name_was_known, new, changed, .. } = compared;
    match (was_known, new.len()) {
        (_, 0) => {}
        (false, count) if *name_was_known => tracing::warn!(
            %server, %origin, count,
            "an MCP server of a known name is another one, by how it is reached: its tools were pinned at first sight"
        ),
        (false, count) => tracing::info!(%server, count, "tools of an MCP server were pinned at first sight"),
        (true, count) => {
            let first = shown(new.first());
            tracing::warn!(%server, count, %first, "an MCP server has tools that it did not have before")
        }
    }
    let tools: Vec<&String> = changed.iter().map(|(name, _)| name).filter(|name| *name != INSTRUCTIONS).collect();
    if tools.len() < changed.len() && !before.is_some_and(Vetted::says_other) {
        tracing::warn!(
            %server,
            "what an MCP server says of itself is not what it was, and is told to nobody: look at it with \"footbridge servers \
             pins diff\", then accept it or not"
        );
    }
    if !tools.is_empty() && tools.len() != before.map_or(0, |before| before.changed().len()) {
        let (count, first) = (tools.len(), shown(tools.first().copied()));
        tracing::warn!(
            %server, count, %first,
            "tools of an MCP server are not what they were, and are refused: look at them with \"footbridge servers \
             pins diff\", then accept them or not"
        );
    }
}

fn shown(name: Option<&String>) -> String {
    name.map(|name| Escaped(name).to_string()).unwrap_or_default()
}
