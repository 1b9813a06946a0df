//! The sessions of one harness, by name: the only place where one is opened, changed or ended, so that none of that
//! goes unrecorded, and where its time is watched.
//!
//! States of a name: held, by a session that cannot be opened yet; open; ended, while its listeners close; free. A
//! session that is held ends like an open one, and is recorded like it.
//!
//! It refuses to know listeners and connections: `F` is whatever its program keeps of an open session besides.

mod open;

use std::{
    collections::{BTreeMap, btree_map::Entry as Place},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::SystemTime,
};

use footbridge_proto::endpoint::Endpoint;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    approval::Approvals,
    operator::Operator,
    session::{Ended, Life, LifeControl, OpenSessions, SessionControl, SessionSpec},
};
use footbridge_core::{
    budget::Budget,
    digest::Digest,
    gate::{Policies, Policy},
    limits::{BudgetLimits, Limits, overrides::Overrides},
    names::SessionName,
};
pub use open::Open;

/// The sessions of one harness. Clones are the same table.
pub struct Sessions<F>(Arc<Inner<F>>);

struct Inner<F> {
    /// It has the record, too.
    approvals: Approvals,
    limits: RwLock<Limits>,
    budget: Budget,
    table: Mutex<BTreeMap<SessionName, Entry<F>>>,
    open: OpenSessions,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// What is known under a name.
struct Entry<F> {
    life: LifeControl,
    /// None while it is held.
    open: Option<Arc<Open<F>>>,
}

/// There is a session of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is a session {0} already")]
pub struct NameTaken(pub SessionName);

/// What new policies are to the sessions that are open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoliciesChanged {
    /// Those whose policy says something else now.
    pub changed: Vec<SessionName>,
    /// Those whose policy there is none of any more: they keep what they had.
    pub gone: Vec<SessionName>,
}

impl<F> Clone for Sessions<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> Clone for Entry<F> {
    fn clone(&self) -> Self {
        Self { life: self.life.clone(), open: self.open.clone() }
    }
}

impl<F> fmt::Debug for Sessions<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

impl<F: Send + Sync + 'static> Sessions<F> {
    /// None yet. What happens to them goes into the record of these approvals.
    #[must_use]
    pub fn new(approvals: Approvals, limits: Limits, budget: Budget) -> Self {
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let (table, open, limits) = (Mutex::default(), OpenSessions::default(), RwLock::new(limits));
        Self(Arc::new(Inner { approvals, limits, budget, table, open, tasks, shutdown }))
    }

    /// Takes a name for a session that cannot be opened yet, and lets its time run.
    ///
    /// # Errors
    /// [`NameTaken`].
    pub fn hold(&self, name: &SessionName, expires: Option<SystemTime>) -> Result<Life, NameTaken> {
        let control = LifeControl::new(expires);
        let life = control.life().clone();
        match self.lock().entry(name.clone()) {
            Place::Occupied(_) => return Err(NameTaken(name.clone())),
            Place::Vacant(place) => drop(place.insert(Entry { life: control, open: None })),
        }
        self.expire_in_time(name, &life);
        Ok(life)
    }

    /// Opens a session, also one that was held until now.
    ///
    /// # Errors
    /// [`NameTaken`].
    pub fn open(&self, spec: SessionSpec, endpoints: Vec<Endpoint>, front: F) -> Result<Arc<Open<F>>, NameTaken> {
        let name = spec.name.clone();
        let mut table = self.lock();
        let held = match table.get(&name) {
            Some(entry) if entry.open.is_none() && !entry.life.life().is_cancelled() => Some(entry.life.clone()),
            Some(_) => return Err(NameTaken(name)),
            None => None,
        };
        let is_new = held.is_none();
        let life = held.unwrap_or_else(|| LifeControl::new(spec.expires));
        let limits = spec.limits.over(&self.limits());
        let control = SessionControl::new(spec, limits, self.0.budget.share(), &life, self.0.open.clone());
        let open = Arc::new(Open::new(control, endpoints, front));
        // Under the lock: it cannot end before it began.
        self.0.approvals.audit().session_opened(open.session().spec(), open.endpoints());
        table.insert(name.clone(), Entry { life: life.clone(), open: Some(Arc::clone(&open)) });
        self.0.open.are(open_in(&table).count());
        drop(table);
        if is_new {
            self.expire_in_time(&name, life.life());
        }
        Ok(open)
    }

    /// A session that is open.
    #[must_use]
    pub fn find(&self, name: &SessionName) -> Option<Arc<Open<F>>> {
        self.lock().get(name).filter(|entry| !entry.life.life().is_cancelled())?.open.clone()
    }

    /// Those that are open, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Open<F>>> {
        open_in(&self.lock()).cloned().collect()
    }

    /// Records that an open session has one more listener.
    pub fn listens(&self, open: &Open<F>, endpoint: &Endpoint) {
        self.0.approvals.audit().session_listens(open.session().name(), endpoint);
    }

    /// Replaces a session's token: the old one ends at once, calls that are running go on. One that is held is opened
    /// with the new one later, by whoever holds it. False if there is no such session.
    #[must_use]
    pub fn rotate(&self, name: &SessionName, token: Digest) -> bool {
        let table = self.lock();
        let Some(entry) = table.get(name).filter(|entry| !entry.life.life().is_cancelled()) else { return false };
        if let Some(open) = &entry.open {
            open.control().rotate(token);
        }
        self.0.approvals.audit().session_rotated(name);
        true
    }

    /// Gives each session these budgets, but for those that it has of its own; what is spent stays so. Gives the sessions
    /// that this changed anything for.
    pub fn set_budgets(&self, budgets: BudgetLimits) -> Vec<SessionName> {
        // One that is opened meanwhile has them, or is among all.
        self.0.limits.write().unwrap_or_else(PoisonError::into_inner).budget = budgets;
        let limits = self.limits();
        let mut all = self.all();
        all.retain(|open| open.control().set_budgets(&limits, Overrides::default()));
        all.iter().map(|open| open.session().name().clone()).collect()
    }

    /// Gives a session budgets of its own, because an operator says so; other limits are as they were. One that is held is
    /// opened with them later, by whoever holds it. False if there is no such session.
    #[must_use]
    pub fn limit(&self, by: &Operator, name: &SessionName, own: Overrides) -> bool {
        let table = self.lock();
        let Some(entry) = table.get(name).filter(|entry| !entry.life.life().is_cancelled()) else { return false };
        self.0.approvals.audit().session_limited(name, &own, by);
        if let Some(open) = &entry.open {
            let _changes_some = open.control().set_budgets(&self.limits(), own);
        }
        true
    }

    fn limits(&self) -> Limits {
        self.0.limits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives each session the policy of its name anew.
    pub fn set_policies(&self, policies: &Policies) -> PoliciesChanged {
        let mut changes = PoliciesChanged::default();
        for open in self.all() {
            let policy: Result<Arc<Policy>, _> = policies.get(open.session().spec().policy.name());
            match policy {
                Ok(policy) => {
                    if open.control().set_policy(policy) {
                        self.0.approvals.policy_changed(open.session());
                        changes.changed.push(open.session().name().clone());
                    }
                }
                Err(_) => changes.gone.push(open.session().name().clone()),
            }
        }
        changes
    }

    /// Ends a session because an operator says so: its connections are cut, its calls cancelled, and its listeners are
    /// gone when this returns. False if there is no such session, or it has ended.
    pub async fn revoke(&self, by: &Operator, name: &SessionName) -> bool {
        tracing::debug!(session = %name, %by, "a session is revoked");
        self.end(name, Ended::Revoked).await
    }

    /// Ends a session whose process is gone, as [`Self::revoke`] does; of one that has ended this waits for its
    /// listeners.
    pub async fn process_gone(&self, name: &SessionName) -> bool {
        self.end(name, Ended::ProcessGone).await
    }

    /// Ends a session that was opened for one call.
    pub async fn call_over(&self, name: &SessionName) -> bool {
        self.end(name, Ended::CallOver).await
    }

    async fn end(&self, name: &SessionName, why: Ended) -> bool {
        let Some(entry) = self.entry(name) else { return false };
        self.end_this(name, &entry.life, why).await
    }

    /// Records the end of a session that is not here: it ended while no harness was running.
    pub fn ended_meanwhile(&self, name: &SessionName, why: Ended) {
        self.0.approvals.audit().session_ended(name, why);
    }

    /// Watches nobody's time any more. Sessions stay as they are.
    pub async fn stop(&self) {
        self.0.shutdown.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Cuts all connections and cancels all calls, as the end of each session would. The sessions stay as they are: stop
    /// them first.
    pub fn cut(&self) {
        for entry in self.lock().values() {
            entry.life.cut();
        }
    }

    /// Ends a session when its time is over.
    fn expire_in_time(&self, name: &SessionName, life: &Life) {
        let Some(until) = life.until() else { return };
        let (sessions, name, life) = (self.clone(), name.clone(), life.clone());
        self.0.tasks.spawn(async move {
            tokio::select! {
                () = until.passed() => {}
                () = life.cancelled() => return,
                () = sessions.0.shutdown.cancelled() => return,
            }
            if let Some(entry) = sessions.entry(&name).filter(|entry| entry.life.life().is(&life)) {
                sessions.end_this(&name, &entry.life, Ended::Expired).await;
            }
        });
    }

    async fn end_this(&self, name: &SessionName, control: &LifeControl, why: Ended) -> bool {
        let (first, open) = {
            // Under the lock: from here on it cannot be opened, and nobody else that ends it takes it out unrecorded.
            let table = self.lock();
            let first = control.end(why);
            let entry = table.get(name).filter(|entry| entry.life.life().is(control.life()));
            let Some(open) = entry.map(|entry| entry.open.clone()) else { return first };
            if first {
                if let Some(open) = &open {
                    self.0.approvals.end_session(open.session());
                }
                self.0.approvals.audit().session_ended(name, why);
                self.0.open.are(open_in(&table).count());
            }
            (first, open)
        };
        // In a task of its own: whoever waits for it here may leave.
        let (sessions, name, life) = (self.clone(), name.clone(), control.life().clone());
        let free = async move { sessions.free(&name, &life, open).await };
        let _ends_with_the_runtime = self.0.tasks.spawn(free).await;
        first
    }

    /// Frees a name, once the listeners of its session are gone.
    async fn free(&self, name: &SessionName, life: &Life, open: Option<Arc<Open<F>>>) {
        if let Some(open) = open {
            open.users().wait().await;
        }
        if let Place::Occupied(found) = self.lock().entry(name.clone())
            && found.get().life.life().is(life)
        {
            drop(found.remove());
        }
    }

    fn entry(&self, name: &SessionName) -> Option<Entry<F>> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionName, Entry<F>>> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those of a table that are open, by name.
fn open_in<F>(table: &BTreeMap<SessionName, Entry<F>>) -> impl Iterator<Item = &Arc<Open<F>>> {
    table.values().filter(|entry| !entry.life.life().is_cancelled()).filter_map(|entry| entry.open.as_ref())
}

#[cfg(test)]
mod tests;
