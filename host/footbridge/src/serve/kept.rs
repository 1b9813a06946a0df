//! What the daemon knows of a session that is in the store: what is kept of it, and what is wrong with it. Whether it is
//! open, and for how long, is the harness's to know.

use std::collections::BTreeMap;

use crate::store::StoredSession;
use footbridge_calls::session::Life;
use footbridge_core::names::SessionName;

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
}

impl Kept {
    pub(super) fn new(stored: StoredSession, life: Option<Life>) -> Self {
        Self { stored, closed: None, broken: BTreeMap::new(), life }
    }

    /// Whether it has not ended.
    pub(super) fn goes_on(&self) -> bool {
        self.life.as_ref().is_some_and(|life| !life.is_cancelled())
    }

    /// Whether it is this one: its name may be another session's by now.
    pub(super) fn is(&self, life: &Life) -> bool {
        self.life.as_ref().is_some_and(|own| own.is(life))
    }
}
