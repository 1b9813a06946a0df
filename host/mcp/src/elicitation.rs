//! Questions of a server to a person (`elicitation/create`), on their way from the transport past the MCP library.
//!
//! A question belongs to the one call that its server runs at the moment; what cannot be told so is declined. It ends
//! with its call, and when the server takes it back.
//!
//! A server may also answer a call with an error that names addresses which a person has to open first. It is an error like
//! any other then, with the addresses in its message; the guest decides what to make of them.

use std::collections::{HashMap, hash_map::Entry};
use std::sync::Arc;

use footbridge_proto::text::Escaped;
use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::pending_request::PendingRequest;
use footbridge_calls::provider::Elicit;

/// The method.
pub(super) const METHOD: &str = "elicitation/create";

/// The code of an error that names addresses.
pub(super) const ADDRESSES_WANTED: i64 = -32042;
/// How many of them are told, and how long each may be, bytes.
const MAX_ADDRESSES: usize = 4;
const MAX_ADDRESS: usize = 2 * 1024;
/// Longest error that is looked into for them, bytes.
const MAX_ERROR: usize = 64 * 1024;

/// The message of such an error, with its addresses.
pub(super) fn with_addresses(message: String, error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Error {
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        elicitations: Vec<Wanted>,
    }
    #[derive(Deserialize)]
    struct Wanted {
        url: String,
    }
    // Addresses that a person can open are in an error of a few.
    let read = Some(error.get()).filter(|text| text.len() <= MAX_ERROR);
    let wanted = read.and_then(|text| serde_json::from_str::<Error>(text).ok());
    let wanted = wanted.map_or_else(Vec::new, |error| error.data.elicitations);
    let is_told = |url: &&str| url.len() <= MAX_ADDRESS && (url.starts_with("https://") || url.starts_with("http://"));
    let told = wanted.iter().map(|wanted| wanted.url.as_str()).filter(is_told).take(MAX_ADDRESSES);
    let told: Vec<String> = told.map(|url| Escaped(url).to_string()).collect();
    if told.is_empty() {
        return message;
    }
    format!("{message} (a person has to open this first, says the server, and then call again: {})", told.join(" "))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_names_addresses_tells_them_escaped_and_only_if_they_are_some() {
        let with = |elicitations: Value| {
            let error = json!({"code": ADDRESSES_WANTED, "message": "m", "data": {"elicitations": elicitations}});
            with_addresses("m".to_owned(), &RawValue::from_string(error.to_string()).unwrap())
        };
        let told = with(json!([
            {"mode": "url", "elicitationId": "1", "url": "https://login.example/x", "message": "log in"},
            {"url": "javascript:alert(1)"},
            {"url": "http://a.example/\u{1b}[2J"},
            {"url": format!("https://a.example/{}", "x".repeat(MAX_ADDRESS))},
        ]));
        let first =
            "m (a person has to open this first, says the server, and then call again: https://login.example/x ";
        assert!(told.starts_with(first) && !told.contains('\u{1b}') && told.len() < 200, "{told}");
        for none in [json!([]), json!("x"), json!([{"url": 5}]), json!([{"url": "file:///etc/passwd"}])] {
            assert_eq!(with(none), "m");
        }
        let one = json!({"url": "https://a.example/"});
        assert!(with(json!(vec![&one; 1_000])).ends_with("a.example/)") && with(json!(vec![&one; 100_000])) == "m");
    }

    #[test]
    fn both_ways_to_ask_are_declared() {
        let declared = |asks| serde_json::to_value(crate::client::us(asks).capabilities).unwrap();
        assert_eq!(declared(true), json!({"elicitation": {"form": {}, "url": {}}}));
        assert_eq!(declared(false), json!({}));
    }
}
