//! What the daemon knows of a session that is in the store: what is kept of it, and what is wrong with it. Whether it is
//! open, and for how long, is the harness's to know.

use std::{collections::BTreeMap, io::ErrorKind, path::Path};

use crate::store::StoredSession;
use footbridge_calls::session::{Ended, Life};
use footbridge_core::names::SessionName;
use footbridge_proto::endpoint::Endpoint;

/// What the store has, by name.
pub(super) type AllKept = BTreeMap<SessionName, Kept>;

/// A session that is kept in the store.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) stored: StoredSession,
    /// Why the harness does not have it open.
    pub(super) closed: Option<String>,
    /// Why it does not listen somewhere, by the place in `stored.listens`.
    pub(super) broken: BTreeMap<usize, String>,
    /// How long it lasts; none where the harness never had it.
    pub(super) life: Option<Life>,
    /// Why it ended, where that was while no daemon ran.
    pub(super) ended: Option<Ended>,
}

impl Kept {
    pub(super) fn new(stored: StoredSession, life: Option<Life>) -> Self {
        Self { stored, closed: None, broken: BTreeMap::new(), life, ended: None }
    }

    /// Why it ended, where it is here since it could not, or not yet, be taken out of the store.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.or_else(|| self.life.as_ref()?.ended())
    }

    /// Whether it has not ended.
    pub(super) fn goes_on(&self) -> bool {
        self.life.as_ref().is_some_and(|life| !life.is_cancelled())
    }

    /// Where nobody can connect to it, and why: what could not be bound, or a socket that was removed.
    pub(super) fn unreachable(&self) -> Option<(&Endpoint, String)> {
        let why = |at: usize, endpoint: &Endpoint| match (self.broken.get(&at), endpoint) {
            (Some(why), _) => Some(why.clone()),
            (None, Endpoint::Unix(path)) if is_gone(path.as_path()) => Some("its socket was removed".to_owned()),
            _ => None,
        };
        let mut endpoints = self.stored.listens.iter().map(|listen| &listen.endpoint).enumerate();
        endpoints.find_map(|(at, endpoint)| Some((endpoint, why(at, endpoint)?)))
    }

    /// Whether it is this one: its name may be another session's by now.
    pub(super) fn is(&self, life: &Life) -> bool {
        self.life.as_ref().is_some_and(|own| own.is(life))
    }
}

fn is_gone(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}
