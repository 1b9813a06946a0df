//! What the book of approvals has in it, and what it says.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{ApprovalId, Key, State};
use footbridge_core::limits::ApprovalLimits;

/// Who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Waiter(pub(super) u64);

/// Which approval a waiter waits for, or waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Live(ApprovalId),
    Over(ApprovalId, State),
}

/// What became of asking.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Somebody is asked, or has answered already.
    Waiting(Waiter),
    /// The same was denied a moment ago; it may be asked again after this time.
    Hushed(Duration),
    /// The session has as many pending approvals as it may.
    TooMany,
}

/// Where a waiter is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Not decided, or somebody before it takes the grant. Look again at this time.
    Wait(Instant),
    /// It may take the grant.
    Ready,
    /// It ended like this.
    Over(State),
}

/// One step of one approval, for the record.
#[derive(Debug)]
pub(super) struct Change<P> {
    pub(super) id: ApprovalId,
    pub(super) state: State,
    pub(super) key: Key,
    pub(super) about: Arc<P>,
    pub(super) approver: Option<Arc<str>>,
    /// What a server's question was answered with.
    pub(super) content: Option<Arc<str>>,
}

/// What grants one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Yes {
    /// Who gave it.
    pub(super) by: Arc<str>,
    /// The canonical text of what a server's question was answered with.
    pub(super) content: Option<Arc<str>>,
}

impl Yes {
    /// To a call, which is made as it is.
    pub(super) fn to_call(by: Arc<str>) -> Self {
        Self { by, content: None }
    }
}

/// What is asked, if nobody asks for the same already.
#[derive(Debug)]
pub(super) struct New<P> {
    pub(super) id: ApprovalId,
    pub(super) key: Key,
    pub(super) about: Arc<P>,
    /// Its session's.
    pub(super) limits: ApprovalLimits,
}

/// What is kept of a call that is allowed again.
#[derive(Debug)]
pub(super) struct Kept<P> {
    pub(super) about: Arc<P>,
    /// What it takes in memory.
    pub(super) bytes: usize,
}

/// A call that is allowed again.
#[derive(Debug)]
pub(super) struct Remembered<P> {
    /// The approval that it was allowed with.
    pub(super) id: ApprovalId,
    pub(super) key: Key,
    pub(super) kept: Kept<P>,
    /// Its session's.
    pub(super) limits: ApprovalLimits,
    /// Who allowed it.
    pub(super) by: Arc<str>,
}

/// One that is pending or granted.
#[derive(Debug)]
pub(super) struct Entry<P> {
    pub(super) key: Key,
    pub(super) about: Arc<P>,
    pub(super) until: Instant,
    /// Its session's.
    pub(super) limits: ApprovalLimits,
    /// What granted it.
    pub(super) granted: Option<Yes>,
    pub(super) waiters: VecDeque<Waiter>,
}
