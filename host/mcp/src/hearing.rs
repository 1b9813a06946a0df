//! Whether a server can say at all that its listings changed: on a stream of its own over HTTP, by a subscription in the
//! stateless revision, or at any time.
//!
//! Where it cannot, a listing is outdated once it is old enough, and where it could not for a while, which may be that from
//! the listing to the first way, at once: what was said then is lost, and it may be another program now. Who looks is
//! whoever uses the server, see `relisting`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// The ways by which notices of one connection come.
#[derive(Debug, Default)]
pub(super) struct Hearing(Mutex<Ways>);

#[derive(Debug, Default)]
struct Ways {
    open: usize,
    /// When there was one again, or first.
    began: Option<Instant>,
    /// When there was none any more.
    ended: Option<Instant>,
}

/// A way by which notices come, for as long as it is kept.
#[derive(Debug)]
pub(super) struct Heard(Arc<Hearing>);

impl Hearing {
    /// There is a way from now on.
    pub(super) fn begins(self: &Arc<Self>) -> Heard {
        let mut ways = self.ways();
        if ways.open == 0 {
            ways.began = Some(Instant::now());
        }
        ways.open += 1;
        drop(ways);
        Heard(Arc::clone(self))
    }

    /// Notices can come for as long as the connection is there.
    pub(super) fn always(&self) {
        self.ways().open += 1;
    }

    /// Whether notices can come now.
    pub(super) fn is_open(&self) -> bool {
        self.ways().open > 0
    }

    /// Whether they could come once, now or before.
    pub(super) fn was_open(&self) -> bool {
        let ways = self.ways();
        ways.open > 0 || ways.ended.is_some()
    }

    /// Whether one may have been lost since then.
    pub(super) fn may_have_missed(&self, since: Instant) -> bool {
        let ways = self.ways();
        ways.began.is_some_and(|began| began > since) || ways.ended.is_some_and(|ended| ended >= since)
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let mut ways = self.0.ways();
        ways.open -= 1;
        if ways.open == 0 {
            ways.ended = Some(Instant::now());
        }
    }
}
