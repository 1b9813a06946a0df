//! Who of the operator's is asked about approvals without being a person at a prompt: a program, a webhook.

use std::error::Error;

use futures::future::BoxFuture;

use super::Answer;

/// Somebody who is asked about each approval, once. What takes long is cut off by dropping the future.
pub trait Approver: Send + Sync + 'static {
    /// What the record calls it.
    fn name(&self) -> String;

    /// Asks it. The question is a JSON object: what is shown of the approval, and its whole `arguments`.
    ///
    /// # Errors
    /// Why there is no answer: others may still give one.
    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<ApproverAnswer, Box<dyn Error + Send + Sync>>>;
}

/// What an approver answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproverAnswer {
    /// The answer.
    pub answer: Answer,
    /// Who decided, where the approver says so: the record keeps it beside the approver's name. Text for a line, which
    /// the approver answers for.
    pub who: Option<String>,
}
