//! Questions of a server to a person (`elicitation/create`), on their way from the transport past the MCP library.
//!
//! A question belongs to the one call that its server runs at the moment; what cannot be told so is declined. It ends
//! with its call, and when the server takes it back.

use std::collections::{HashMap, hash_map::Entry};
use std::sync::Arc;

use rmcp::model::RequestId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::pending_request::PendingRequest;
use footbridge_calls::provider::Elicit;

/// The method.
pub(super) const METHOD: &str = "elicitation/create";

/// A question and whoever can be asked.
#[derive(Debug)]
pub(super) struct Question {
    elicitor: Arc<dyn Elicit>,
    params: String,
    over: CancellationToken,
    taken_back: CancellationToken,
}

impl Question {
    /// What the server is answered.
    pub(super) async fn answer(&self) -> Value {
        tokio::select! {
            elicited = self.elicitor.elicit(&self.params) => elicited.into_json(),
            () = self.over.cancelled() => json!({"action": "cancel"}),
            () = self.taken_back.cancelled() => json!({"action": "cancel"}),
        }
    }
}

/// The questions that a server has not been answered. The library sees none of them: its handler gets them here, by
/// their ids.
#[derive(Debug, Default)]
pub(super) struct Questions(HashMap<RequestId, Asked>);

#[derive(Debug)]
struct Asked {
    /// None once the handler has it.
    question: Option<Question>,
    taken_back: CancellationToken,
}

impl Questions {
    /// Takes one on, if it belongs to exactly one of the calls that run. `params` are without secrets. False if not.
    pub(super) fn add<'t>(
        &mut self,
        id: &RequestId,
        params: String,
        running: impl Iterator<Item = &'t PendingRequest>,
    ) -> bool {
        let mut calls = running.filter_map(|pending| Some((pending.elicitor()?, pending.over())));
        let (Some((elicitor, over)), None) = (calls.next(), calls.next()) else { return false };
        let Entry::Vacant(place) = self.0.entry(id.clone()) else { return false };
        let taken_back = CancellationToken::new();
        let (elicitor, over) = (elicitor.clone(), over.clone());
        let question = Some(Question { elicitor, params, over, taken_back: taken_back.clone() });
        place.insert(Asked { question, taken_back });
        true
    }

    /// For the handler, once.
    pub(super) fn take(&mut self, id: &RequestId) -> Option<Question> {
        self.0.get_mut(id)?.question.take()
    }

    /// The server takes one back.
    pub(super) fn take_back(&mut self, id: &RequestId) {
        if let Some(asked) = self.0.get(id) {
            asked.taken_back.cancel();
        }
    }

    /// It was answered.
    pub(super) fn answered(&mut self, id: &RequestId) {
        self.0.remove(id);
    }
}
