//! A call whose intent is on disk, and what ties its outcome to it.

use std::time::Instant;

use crate::{
    approval::Elicitor,
    auth::Principal,
    provider::{self, Outgoing},
};
use footbridge_core::names::ServerName;

/// A call that may leave: its intent is on disk. Only this stage makes one, and using it uses it up.
#[derive(Debug)]
pub struct Admitted {
    pub(super) outgoing: Outgoing,
    pub(super) receipt: Receipt,
}

impl Admitted {
    /// Says who can be asked while the call runs.
    #[must_use]
    pub(crate) fn with_elicitor(mut self, elicitor: Elicitor) -> Self {
        self.outgoing = self.outgoing.with_elicitor(elicitor);
        self
    }

    pub(crate) fn depart(self) -> (Outgoing, Receipt) {
        (self.outgoing, self.receipt)
    }
}

/// What ties an outcome to its intent.
#[derive(Debug)]
pub struct Receipt {
    pub(super) id: String,
    pub(super) server: ServerName,
    pub(super) resource: Option<String>,
    pub(super) since: Instant,
    pub(super) principal: Principal,
    pub(super) result_limit: Option<u64>,
}

impl Receipt {
    /// Counts what the guest is about to get; false where that is more than its session has left.
    pub(super) fn spend(&self, outcome: &provider::Outcome) -> bool {
        let bytes = match outcome {
            provider::Outcome::Result(result) => result.text.get().len(),
            provider::Outcome::ServerError { message, .. } => message.len(),
            _ => return true,
        };
        self.principal.session().results().spend(bytes, self.result_limit).is_ok()
    }
}
