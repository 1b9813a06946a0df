//! Asking a person for a server while it runs a call (MCP elicitation), as a provider sees it.

use std::fmt;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::pause::Pause;

/// Longest question, bytes; a person has to read it.
pub const MAX_QUESTION: usize = 64 * 1024;

/// Who can be asked while one call runs, for the server that runs it.
pub trait Elicit: fmt::Debug + Send + Sync {
    /// What holds the call's time while somebody is asked.
    fn pause(&self) -> &Pause;

    /// Asks; `params` are those of `elicitation/create`. Dropping this withdraws the question.
    fn elicit<'a>(&'a self, params: &'a str) -> BoxFuture<'a, Elicited>;
}

/// What a server is answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Elicited {
    /// Somebody agreed; with the fields, where there are any.
    Accept(Option<Value>),
    /// Somebody said no, or nobody is asked such a thing.
    Decline,
    /// Nobody decided.
    Cancel,
}

impl Elicited {
    /// As the protocol has it.
    pub fn into_json(self) -> Value {
        match self {
            Self::Accept(Some(content)) => json!({"action": "accept", "content": content}),
            Self::Accept(None) => json!({"action": "accept"}),
            Self::Decline => json!({"action": "decline"}),
            Self::Cancel => json!({"action": "cancel"}),
        }
    }
}
