//! Approvals: the stage between the gate and the record, where a call that a person has to allow waits for it.
//!
//! This stage makes what the record demands: a [`Cleared`] is a call that the policy allows, or that a person allowed
//! and whose grant is used up, durably. It cannot be made elsewhere, so a call that nobody allowed is not admitted.
//!
//! States of an approval: pending; then granted, denied, expired or withdrawn; granted, then used or expired, or denied,
//! where a yes is taken back. An approval is for one `key`: session, server, tool, the canonical text of the arguments,
//! definition and policy. `book` is the machine, without clock or I/O; [`Approvals`] is what everybody shares: whoever
//! waits, and whoever answers.
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
mod state;
mod turns;
mod view;
mod waiting;

pub use approver::{Approver, ApproverAnswer};
pub(crate) use clear::{Clear, Cleared, NotCleared, Patience, Question};
pub use desk::Approvals;
pub use form::{Given, Unfit};
pub use key::{ApprovalId, BadApprovalId};
use key::{ELICITATION, Key};
pub use shown::{ApprovalInfo, ApprovalShown, FieldInfo, QuestionInfo};
pub use state::{Answer, NotAnswered, State};
pub(crate) use view::Asking;
