//! How an approval is, and what answers there are.

use footbridge_proto::approval::ApprovalStatus;

use super::{ApprovalId, Given, Unfit};

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
    /// Whoever was to be asked gave no answer that counts. To guests and records it is expired.
    Unanswered,
    /// Whoever asked left.
    Withdrawn,
    /// What was asked about is something else by now. To guests and records it is withdrawn.
    Outdated,
    /// Allowed and used: the call left, or was about to.
    Used,
}

impl State {
    /// How it is in records and on the wire.
    #[must_use]
    pub fn status(self) -> ApprovalStatus {
        match self {
            Self::Pending => ApprovalStatus::Pending,
            Self::Granted => ApprovalStatus::Granted,
            Self::Denied => ApprovalStatus::Denied,
            Self::Expired | Self::Unanswered => ApprovalStatus::Expired,
            Self::Withdrawn | Self::Outdated => ApprovalStatus::Withdrawn,
            Self::Used => ApprovalStatus::Used,
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The call may be made. To a server's question: yes, with the defaults of its fields.
    Allow {
        /// And the same one again, as long as the session lives and nothing of it changes. Only of calls.
        remember: bool,
    },
    /// What a server asked.
    Accept(Given),
    /// It may not. To a server's question: no.
    Deny,
    /// Neither yes nor no to a server's question.
    Cancel,
}

/// What is said where a yes is to be taken back and there is none.
fn no_yes(state: State) -> &'static str {
    if state == State::Pending {
        ": nobody has said yes; \"footbridge approvals deny\" says no"
    } else {
        ", and nothing is remembered from it: there is no yes to take back"
    }
}

/// Why an answer came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    /// Somebody or something was faster.
    #[error("approval {0} is {state}: it cannot be answered any more", state = .1.status())]
    Over(ApprovalId, State),
    /// Nobody said yes, or that holds no more.
    #[error("approval {0} is {state}{hint}", state = .1.status(), hint = no_yes(*.1))]
    NoYes(ApprovalId, State),
    /// It is not known here.
    #[error("there is no approval {0}: \"footbridge approvals list\" shows all")]
    Unknown(ApprovalId),
    /// It does not fit what was asked, which is pending as before.
    #[error("approval {0} is not answered: {1}")]
    Unfit(ApprovalId, Unfit),
}
