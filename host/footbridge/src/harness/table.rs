//! The sessions of one harness, by name.

use footbridge_calls::session::SessionSpec;
use footbridge_edge::ServedSession;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use footbridge_proto::endpoint::Endpoint;
use tokio_util::task::TaskTracker;

use footbridge_core::names::SessionName;

/// Open sessions. Clones are the same table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(Arc<Mutex<BTreeMap<SessionName, Arc<Open>>>>);

/// One of them.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) served: ServedSession,
    pub(crate) endpoints: Vec<Endpoint>,
    /// Its listeners: when they have ended, their sockets are gone.
    pub(crate) listeners: TaskTracker,
}

/// An open session as the operator sees it.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// What it was opened with. The token's digest may be another one by now.
    pub spec: SessionSpec,
    /// Where it listens.
    pub endpoints: Vec<Endpoint>,
    /// Its open connections.
    pub connections: usize,
    /// Its calls in flight.
    pub calls: usize,
}

impl Table {
    /// Adds a session; false if the name is taken.
    pub(crate) fn add(&self, open: Arc<Open>) -> bool {
        match self.lock().entry(open.served.session.name().clone()) {
            Entry::Vacant(place) => {
                place.insert(open);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// A session that is open.
    pub(crate) fn get(&self, name: &SessionName) -> Option<Arc<Open>> {
        self.find(name).filter(|open| open.served.session.ended().is_none())
    }

    /// A session that is open, or has ended and still closes its listeners.
    pub(crate) fn find(&self, name: &SessionName) -> Option<Arc<Open>> {
        self.lock().get(name).cloned()
    }

    /// Takes an ended session out, when its listeners are gone: only then is its name free.
    pub(crate) async fn remove(&self, open: &Arc<Open>) {
        open.listeners.wait().await;
        if let Entry::Occupied(found) = self.lock().entry(open.served.session.name().clone())
            && Arc::ptr_eq(found.get(), open)
        {
            drop(found.remove());
        }
    }

    pub(crate) fn view(&self) -> Vec<SessionView> {
        let view = |open: &Arc<Open>| SessionView {
            spec: open.served.session.spec().clone(),
            endpoints: open.endpoints.clone(),
            connections: open.served.connections.used(),
            calls: open.served.session.calls_in_flight(),
        };
        self.lock().values().filter(|open| open.served.session.ended().is_none()).map(view).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionName, Arc<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
