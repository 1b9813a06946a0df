//! A store that is no SQLite: kept in memory, it shows that another database needs no more than the traits.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::SystemTime,
};

use futures::{FutureExt as _, future::BoxFuture};
use serde_json::Value;

use super::*;
use crate::harness::{Harness, NotCalled, OperatorCall};
use footbridge_audit::{AuditSettings, HeadSink, NotKept, Recorder, SignedHead};
use footbridge_calls::{
    operator::Operator,
    pins::{Compared, Definition, NoPins, PinnedServer, Pins},
    provider::{InProcess, ToolContext, ToolDefinition, ToolResult},
};
use footbridge_core::{
    digest::Digest,
    limits::{Limits, overrides::Overrides},
    names::SessionName,
};

/// The store. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct InMemory(Arc<Mutex<Tables>>);

#[derive(Debug, Default)]
struct Tables {
    sessions: Vec<StoredSession>,
    /// Whether somebody else is writing when one is to be removed.
    removes_no_session: bool,
    /// Whether somebody else is writing when what was spent is to be kept.
    keeps_no_spending: bool,
    /// How often that was kept.
    spending_kept: usize,
    pins: Vec<StoredPin>,
    pins_revision: i64,
    heads: Vec<SignedHead>,
}

impl InMemory {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap()
    }

    /// From now on, whether removing a session fails.
    pub(crate) fn removes_no_session(&self, fails: bool) {
        self.tables().removes_no_session = fails;
    }

    /// From now on, whether keeping what was spent fails.
    pub(crate) fn keeps_no_spending(&self, fails: bool) {
        self.tables().keeps_no_spending = fails;
    }

    /// How often what was spent was kept.
    pub(crate) fn spending_kept(&self) -> usize {
        self.tables().spending_kept
    }

    /// Does this at once.
    fn now<'a, T: Send + 'a, E: Send + 'a>(&self, work: impl FnOnce(&mut Tables) -> T) -> BoxFuture<'a, Result<T, E>> {
        let done = work(&mut self.tables());
        async move { Ok(done) }.boxed()
    }
}

impl Tables {
    /// Removes pins, and says how many there were.
    fn forget(&mut self, is_it: impl Fn(&StoredPin) -> bool) -> u64 {
        let before = self.pins.len();
        self.pins.retain(|pin| !is_it(pin));
        self.pins_revision += 1;
        (before - self.pins.len()) as u64
    }

    fn compare(&mut self, server: PinnedServer<'_>, offered: &[Definition<'_>], listed: bool) -> Compared {
        let (name, since) = (server.name.as_str(), SystemTime::now());
        let of_server = |pin: &&mut StoredPin| pin.server == name && pin.origin == server.origin;
        let was_known = self.pins.iter_mut().any(|pin| of_server(&&mut *pin));
        let name_was_known = self.pins.iter().any(|pin| pin.server == name && pin.origin != server.origin);
        let mut compared = Compared { was_known, name_was_known, ..Compared::default() };
        for Definition { tool, digest, text } in offered.iter().copied() {
            let offered = StoredDefinition { digest, text: text.to_owned(), since };
            match self.pins.iter_mut().filter(of_server).find(|pin| pin.tool == tool) {
                None => {
                    compared.new.push(tool.to_owned());
                    let (server, origin) = (name.to_owned(), server.origin.to_owned());
                    self.pins.push(StoredPin { server, origin, tool: tool.to_owned(), pinned: offered, changed: None });
                }
                Some(pin) if pin.pinned.digest == digest => pin.changed = pin.changed.take().filter(|_| !listed),
                Some(pin) => {
                    compared.changed.push((tool.to_owned(), pin.pinned.text.clone()));
                    pin.changed = Some(offered);
                }
            }
        }
        self.pins_revision += i64::from(!compared.new.is_empty() || !compared.changed.is_empty());
        Compared { revision: self.pins_revision, ..compared }
    }

    fn accept(&mut self, accepted: &Acceptance) -> Result<(), NotAccepted> {
        let is_it = |pin: &&mut StoredPin| {
            let digest = pin.changed.as_ref().map(|changed| changed.digest);
            pin.server == accepted.server && pin.tool == accepted.tool && digest == Some(accepted.digest)
        };
        let pin = self.pins.iter_mut().find(is_it).ok_or_else(|| NotAccepted::Other(accepted.clone()))?;
        pin.pinned = pin.changed.take().unwrap();
        self.pins_revision += 1;
        Ok(())
    }
}

/// What is said while somebody else is writing.
fn locked<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, StoreError>> {
    async { Err(StoreError { place: "in memory".to_owned(), problem: Problem::Locked }) }.boxed()
}

impl SessionStore for InMemory {
    fn add_session<'a>(&'a self, session: &'a StoredSession) -> BoxFuture<'a, Result<(), StoreError>> {
        self.now(|tables| tables.sessions.push(session.clone()))
    }

    fn set_token<'a>(&'a self, name: &'a SessionName, token: Digest) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.now(|tables| {
            let found = tables.sessions.iter_mut().find(|session| session.name == *name);
            found.map(|session| session.token = token).is_some()
        })
    }

    fn set_limits<'a>(
        &'a self,
        name: &'a SessionName,
        limits: &'a Overrides,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.now(|tables| {
            let found = tables.sessions.iter_mut().find(|session| session.name == *name);
            found.map(|session| session.limits = limits.clone()).is_some()
        })
    }

    fn set_spent<'a>(&'a self, sessions: &'a [StoredSession]) -> BoxFuture<'a, Result<(), StoreError>> {
        if self.tables().keeps_no_spending {
            return locked();
        }
        self.now(|tables| {
            for StoredSession { name, created, spent, .. } in sessions {
                let is_it = |one: &&mut StoredSession| one.name == *name && one.created == *created;
                tables.sessions.iter_mut().filter(is_it).for_each(|one| one.spent = spent.clone());
            }
            tables.spending_kept += 1;
        })
    }

    fn remove_session<'a>(&'a self, name: &'a SessionName) -> BoxFuture<'a, Result<bool, StoreError>> {
        if self.tables().removes_no_session {
            return locked();
        }
        self.now(|tables| {
            let before = tables.sessions.len();
            tables.sessions.retain(|session| session.name != *name);
            tables.sessions.len() < before
        })
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<StoredSession>, StoreError>> {
        self.now(|tables| tables.sessions.clone())
    }
}

impl PinStore for InMemory {
    fn pins_revision(&self, _waits: bool) -> BoxFuture<'_, Result<Option<i64>, NoPins>> {
        self.now(|tables| Some(tables.pins_revision))
    }

    fn compare_pins<'a>(
        &'a self,
        server: PinnedServer<'a>,
        offered: &'a [Definition<'a>],
        listed: bool,
    ) -> BoxFuture<'a, Result<Compared, NoPins>> {
        self.now(|tables| tables.compare(server, offered, listed))
    }

    fn is_pinned<'a>(&'a self, server: &'a str, tool: &'a str, digest: Digest) -> BoxFuture<'a, Result<bool, NoPins>> {
        let is_it = |pin: &StoredPin| pin.server == server && pin.tool == tool && pin.pinned.digest == digest;
        self.now(|tables| tables.pins.iter().any(is_it))
    }
}

impl PinReview for InMemory {
    fn pins<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<StoredPin>, StoreError>> {
        let is_it = |pin: &&StoredPin| server.is_none_or(|server| pin.server == server);
        self.now(|tables| tables.pins.iter().filter(is_it).cloned().collect())
    }

    fn accept_pins<'a>(&'a self, accepted: &'a [Acceptance]) -> BoxFuture<'a, Result<(), NotAccepted>> {
        let accepted = accepted.iter().try_for_each(|one| self.tables().accept(one));
        async move { accepted }.boxed()
    }

    fn forget_pins<'a>(
        &'a self,
        server: &'a str,
        origin: &'a str,
        tools: &'a [String],
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let is_one = |pin: &StoredPin| tools.is_empty() || tools.contains(&pin.tool);
        self.now(|tables| tables.forget(|pin| pin.server == server && pin.origin == origin && is_one(pin)))
    }
}

impl HeadSink for InMemory {
    fn keep<'a>(&'a mut self, heads: &'a [SignedHead]) -> BoxFuture<'a, Result<(), NotKept>> {
        self.now(|tables| tables.heads.extend_from_slice(heads))
    }
}

impl HeadStore for InMemory {
    fn head_sink(&self) -> Box<dyn HeadSink> {
        Box::new(self.clone())
    }

    fn forget_heads<'a>(&'a self, chain: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.now(|tables| {
            let before = tables.heads.len();
            tables.heads.retain(|head| head.chain != chain);
            (before - tables.heads.len()) as u64
        })
    }
}

impl StateStore for InMemory {
    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

/// A harness with one tool, described so, over a store.
fn harness(store: &Arc<dyn StateStore>, state: &std::path::Path, description: &str) -> Harness {
    let say = |arguments: Value, _: ToolContext| async move { ToolResult::json(arguments) };
    let tool = ToolDefinition::new("say").description(description);
    let tools = InProcess::new("x").tool(tool, say).build().unwrap();
    let recorder = Recorder::open(state, &AuditSettings::default()).unwrap().sink(store.head_sink());
    let pins = Pins::in_store(Arc::clone(store) as _);
    Harness::over(Arc::new(tools), Limits::default(), &[], recorder, Some(pins)).unwrap()
}

async fn say(harness: &Harness) -> Result<(), NotCalled> {
    let call = OperatorCall {
        server: "x".into(),
        tool: "say".into(),
        arguments: Some("{}".into()),
        policy: None,
        timeout: None,
    };
    harness.call(&Operator::UnixPeer { uid: 7, pid: 9 }, call).await.map(drop)
}

#[tokio::test]
async fn a_harness_starts_over_any_store_that_has_the_traits() {
    let (memory, state) = (InMemory::default(), tempfile::tempdir().unwrap());
    let store: Arc<dyn StateStore> = Arc::new(memory.clone());
    let first = harness(&store, state.path(), "as it was");
    say(&first).await.unwrap();
    first.stop().await.unwrap();
    assert!(!memory.tables().heads.is_empty(), "heads of the record are kept there");
    let second = harness(&store, state.path(), "another now");
    say(&second).await.unwrap_err();
    let changed = store.pins(Some("x")).await.unwrap().remove(0).changed.unwrap();
    let accepted = Acceptance { server: "x".into(), tool: "say".into(), digest: changed.digest };
    store.accept_pins(&[accepted]).await.unwrap();
    say(&second).await.unwrap();
    second.stop().await.unwrap();
}
