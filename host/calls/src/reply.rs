//! The answer to a call: its result, or why there is none.
//!
//! What happened to a call is answered only once that is recorded: what makes a [`Reply`] is [`crate::admit`], behind
//! the record of a refusal, and [`crate::close`], behind that of an outcome. Three answers have no record of their own,
//! and say so by having no [`Failure::record`]: calls over a limit, of which a flood must be cheap to refuse, are counted
//! in one line a second; where the record itself cannot be written the call is not made; and the same where there is no
//! random byte for the record's id.

use crate::{
    cause::{Cause, Failure},
    provider::RawResult,
};

/// The answer to a call.
#[derive(Debug)]
pub struct Reply {
    answer: Result<RawResult, Failure>,
    admitted: bool,
}

impl Reply {
    /// Of a call that did not leave.
    pub(crate) fn refused(refusal: Failure) -> Self {
        Self { answer: Err(refusal), admitted: false }
    }

    /// Of a call that was admitted, and what became of it.
    pub(crate) fn admitted(answer: Result<RawResult, Cause>, record: &str) -> Self {
        let answer = answer.map_err(|cause| Failure::from(cause).recorded(record));
        Self { answer, admitted: true }
    }

    /// Whether it is about a call that was admitted. If not, nothing of it can have left.
    #[must_use]
    pub fn was_admitted(&self) -> bool {
        self.admitted
    }

    /// The result as the server wrote it, or why there is none.
    ///
    /// # Errors
    /// Why there is none.
    pub fn into_answer(self) -> Result<RawResult, Failure> {
        self.answer
    }
}
