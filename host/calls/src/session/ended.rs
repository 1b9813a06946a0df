//! Why a session is over.

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The operator revoked it.
    Revoked,
    /// Its time is over.
    Expired,
    /// The process that it was opened for is gone.
    ProcessGone,
    /// The call that it was opened for is over.
    CallOver,
}

impl Ended {
    /// The word for it in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::ProcessGone => "process_gone",
            Self::CallOver => "call_over",
        }
    }
}
