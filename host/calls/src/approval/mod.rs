//! Approvals: the stage between the gate and the record, where a call that a person has to allow waits for it.
//!
//! This stage makes what the record demands: a [`Cleared`] is a call that the policy allows, or that a person allowed
//! and whose grant is used up, durably. It cannot be made elsewhere, so a call that nobody allowed is not admitted.
//!
//! States of an approval: pending; then granted, denied, expired or withdrawn; granted, then used or expired. An
//! approval is for one `key`: session, server, tool, the canonical text of the arguments, definition and policy. `book`
//! is the machine, without clock or I/O; [`Approvals`] is what everybody shares: whoever waits, and whoever answers.
//!
//! Failure paths: where nobody can be asked a call is denied. What cannot be recorded is neither asked nor used. A
//! restart ends everything that is pending or granted: nothing of it is kept on disk but the record.

mod approver;
mod attend;
mod book;
mod clear;
mod desk;
mod elicit;
mod entry;
mod field;
mod form;
mod key;
mod past;
mod shown;
mod view;
mod waiting;

pub use approver::Approver;
pub use clear::{Approved, Clear, Cleared, NotCleared, Patience, Question};
pub use desk::{Answer, Approvals, NotAnswered};
pub use elicit::{Elicited, Elicitor, MAX_QUESTION};
pub use form::{Given, Unfit};
use key::Key;
pub use key::{ApprovalId, BadApprovalId};
pub use shown::{ApprovalInfo, ApprovalShown, FieldInfo, QuestionInfo};
pub(crate) use view::Asking;
pub use waiting::Waiting;

/// How an approval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Somebody is asked.
    Pending,
    /// Allowed, and not used yet.
    Granted,
    /// Somebody said no.
    Denied,
    /// Nobody answered in time, or nobody used the grant in time.
    Expired,
    /// Whoever asked left.
    Withdrawn,
    /// Allowed and used: the call left, or was about to.
    Used,
}

impl State {
    /// The word for it in records and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Granted => "granted",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Used => "used",
        }
    }
}
