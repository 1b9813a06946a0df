//! The sessions of one harness, by name.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use footbridge_proto::endpoint::Endpoint;
use tokio_util::task::TaskTracker;

use super::{Ended, Session, SessionName, SessionSpec};

/// Open sessions. Clones are the same table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(Arc<Mutex<BTreeMap<SessionName, Arc<Open>>>>);

/// One of them.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) session: Arc<Session>,
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
        match self.lock().entry(open.session.name().clone()) {
            Entry::Vacant(place) => {
                place.insert(open);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    pub(crate) fn get(&self, name: &SessionName) -> Option<Arc<Open>> {
        self.lock().get(name).cloned()
    }

    /// Takes a session out and ends it: its connections are cut and its calls cancelled. False if it was not in: the
    /// name may be another session's by now.
    pub(crate) fn end(&self, open: &Arc<Open>, why: Ended) -> bool {
        match self.lock().entry(open.session.name().clone()) {
            Entry::Occupied(found) if Arc::ptr_eq(found.get(), open) => drop(found.remove()),
            _ => return false,
        }
        open.session.end(why)
    }

    pub(crate) fn view(&self) -> Vec<SessionView> {
        let view = |open: &Arc<Open>| SessionView {
            spec: open.session.spec().clone(),
            endpoints: open.endpoints.clone(),
            connections: open.session.shares().connections.used(),
            calls: open.session.calls_in_flight(),
        };
        self.lock().values().map(view).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionName, Arc<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
