//! Exit codes of `tool-cli`.
//!
//! Without `--exit-codes` (or [`crate::vars::EXIT_CODES`]`=1`) every failure is 1, as scripts written for the
//! public command expect.

use crate::rpc::{ErrorCode, Reason};

/// What a run of `tool-cli` ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// The call was made and the tool reported no error.
    Done = 0,
    /// The tool, or the server behind it, reported an error.
    ToolError = 1,
    /// The command line, the names or the arguments are wrong.
    Usage = 2,
    /// The bridge cannot be reached, or what answers is not one; or no call was made: the server behind it does not run, or
    /// says that it did nothing, its tool's schema is no use, or the call cannot be recorded.
    Unreachable = 3,
    /// The token is missing or wrong.
    Unauthenticated = 4,
    /// Policy or a person said no.
    Denied = 5,
    /// A person has not answered yet, or not in time.
    ApprovalPending = 6,
    /// Over a limit: rate, size, budget, concurrency.
    OverLimit = 7,
    /// No answer in time.
    TimedOut = 8,
    /// The call was sent and its outcome is not known; do not repeat it blindly.
    OutcomeUnknown = 9,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl ExitCode {
    /// Every code with its meaning, in order; the table of `docs/tool-cli.md` is tested against it.
    pub const TABLE: [(Self, &'static str); 11] = [
        (Self::Done, "done"),
        (Self::ToolError, "the tool reported an error"),
        (Self::Usage, "usage, names or arguments"),
        (Self::Unreachable, "cannot reach the bridge, or no call could be made"),
        (Self::Unauthenticated, "not authenticated"),
        (Self::Denied, "denied by policy or a person"),
        (Self::ApprovalPending, "approval pending or expired"),
        (Self::OverLimit, "over a limit"),
        (Self::TimedOut, "timed out"),
        (Self::OutcomeUnknown, "outcome unknown"),
        (Self::Interrupted, "interrupted"),
    ];

    /// The detailed code for an error that the bridge answered.
    ///
    /// A bridge of generation 0 sends no reason; the code alone decides then.
    #[must_use]
    pub fn from_error(code: i64, reason: Option<Reason>) -> Self {
        match reason {
            Some(Reason::ApprovalRequired | Reason::ApprovalExpired) => return Self::ApprovalPending,
            Some(Reason::Timeout) => return Self::TimedOut,
            Some(Reason::InvalidSchema) => return Self::Unreachable,
            _ => {}
        }
        match ErrorCode::from_number(code) {
            Some(
                ErrorCode::Parse | ErrorCode::InvalidRequest | ErrorCode::MethodNotFound | ErrorCode::InvalidParams,
            ) => Self::Usage,
            Some(ErrorCode::Denied) => Self::Denied,
            Some(ErrorCode::Limit) => Self::OverLimit,
            Some(ErrorCode::OutcomeUnknown) => Self::OutcomeUnknown,
            Some(ErrorCode::ServerUnavailable | ErrorCode::NotSent | ErrorCode::AuditUnavailable) => Self::Unreachable,
            Some(ErrorCode::Internal) | None => Self::ToolError,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_called_is_no_error_of_the_tool() {
        for (reason, code) in [
            (Reason::InvalidSchema, ExitCode::Unreachable),
            (Reason::AuditUnavailable, ExitCode::Unreachable),
            (Reason::ServerUnavailable, ExitCode::Unreachable),
            (Reason::Cancelled, ExitCode::Unreachable),
            (Reason::Timeout, ExitCode::TimedOut),
            (Reason::ProviderError, ExitCode::ToolError),
            (Reason::Internal, ExitCode::ToolError),
            (Reason::OutcomeUnknown, ExitCode::OutcomeUnknown),
        ] {
            assert_eq!(ExitCode::from_error(reason.code().number(), Some(reason)), code, "{reason:?}");
        }
    }
}
