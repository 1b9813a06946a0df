//! How long a session lasts, and why it ended.
//!
//! Whoever has a [`Life`] can look and wait; only who has the [`LifeControl`], the table of sessions, can end it.

use std::{
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::{Deadline, Ended};

/// How long a session lasts. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Life(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    until: Option<Deadline>,
    over: CancellationToken,
    why: OnceLock<Ended>,
}

impl Life {
    /// Waits for its end.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.0.over.cancelled()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.over.is_cancelled()
    }

    /// Cancelled with it, or alone.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        self.0.over.child_token()
    }

    /// Why it ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.0.why.get().copied()
    }

    /// When its time is over, if it has one.
    #[must_use]
    pub fn until(&self) -> Option<Deadline> {
        self.0.until
    }

    /// Whether it has not ended and its time is not over.
    #[must_use]
    pub fn is_going_on(&self) -> bool {
        !self.is_cancelled() && self.until().is_none_or(|until| !until.is_past())
    }

    /// Whether both are one session's: a name may be another session's by now.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What ends a [`Life`].
#[derive(Debug, Clone)]
pub(crate) struct LifeControl(Life);

impl LifeControl {
    /// One that begins now, and ends at this time by the clock on the wall, or once as long has passed as that is from
    /// now: what is reached first.
    pub(crate) fn new(expires: Option<SystemTime>) -> Self {
        let until = expires.and_then(Deadline::at);
        Self(Life(Arc::new(Inner { until, over: CancellationToken::new(), why: OnceLock::new() })))
    }

    pub(crate) fn life(&self) -> &Life {
        &self.0
    }

    /// Ends what goes on of it here. It has not ended, and goes on with another harness.
    pub(crate) fn cut(&self) {
        self.0.0.over.cancel();
    }

    /// Ends it. False if it had ended.
    pub(crate) fn end(&self, why: Ended) -> bool {
        let Life(inner) = &self.0;
        let first = inner.why.set(why).is_ok();
        inner.over.cancel();
        first
    }
}
