//! The record of every call.

use crate::servers::Outgoing;

/// A call that may leave: its intent is on disk. Only this stage makes one, and using it uses it up.
#[derive(Debug)]
pub struct Admitted {
    outgoing: Outgoing,
    receipt: Receipt,
}

/// What ties an outcome to its intent.
#[derive(Debug)]
pub struct Receipt {
    #[expect(dead_code, reason = "the stage is being laid")]
    id: String,
}

impl Admitted {
    pub(crate) fn depart(self) -> (Outgoing, Receipt) {
        (self.outgoing, self.receipt)
    }
}
