//! Answers that ask for input before there is a result (MCP 2026-07-28, multi round-trip requests).
//!
//! The questions to a person among it go to whoever is asked about calls, as those of `elicitation/create` do; nothing
//! else is answered. The same request then goes to the server again with the answers, which is the one case in which it
//! does: the server said that it has not done it yet. How often, how much and how long is bounded.

use std::collections::BTreeMap;

use rmcp::model::InputResponses;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::elicitation::METHOD;
use footbridge_calls::provider::{Elicit, MAX_QUESTION};
use footbridge_core::redact::Redactor;

/// How often one call may be answered like this. Between two of them a person may be asked, or nobody.
pub(super) const MAX_ROUNDS: usize = 8;
/// Questions in one answer.
const MAX_QUESTIONS: usize = 8;
/// Longest such answer, questions and state together, bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// The type of such a result.
const ASKS: &str = "input_required";

/// What is wanted before there is a result.
#[derive(Debug)]
pub(super) struct InputRequired {
    /// Parameters of questions, by the server's keys.
    questions: Vec<(String, String)>,
    state: Option<String>,
}

/// Why a request does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadInput {
    #[error("which cannot be read")]
    Unreadable,
    #[error("which is more than is passed on")]
    TooMuch,
    #[error("which is not something that a person is asked for")]
    NoQuestion,
    #[error("which the revision of MCP that it speaks here does not have in a result")]
    OtherRevision,
    #[error("and nobody can be asked")]
    Nobody,
    #[error("and again, {MAX_ROUNDS} times")]
    TooOften,
}

/// The input, for the same request.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Top<'a> {
    #[serde(default, borrow)]
    result_type: Option<&'a RawValue>,
    #[serde(default, borrow)]
    input_requests: Option<&'a RawValue>,
    #[serde(default, borrow)]
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Wanted<'a> {
    method: String,
    #[serde(borrow)]
    params: &'a RawValue,
}

impl InputRequired {
    /// What a result asks for; none if it is one. A light look: no tree is built, and most have not got the word, nor
    /// escapes that it could be written with.
    pub(super) fn of(result: &RawValue, redactor: &Redactor) -> Option<Result<Self, BadInput>> {
        if !result.get().contains(ASKS) && !result.get().contains("\\u") {
            return None;
        }
        // Members that appear twice do not parse here; such a result still goes on as it is.
        let top = serde_json::from_str::<Top<'_>>(result.get()).ok()?;
        let kind = top.result_type.and_then(|kind| serde_json::from_str::<String>(kind.get()).ok());
        let asks = kind.is_some_and(|kind| kind == ASKS);
        asks.then(|| if result.get().len() > MAX_ANSWER { Err(BadInput::TooMuch) } else { Self::read(&top, redactor) })
    }

    fn read(top: &Top<'_>, redactor: &Redactor) -> Result<Self, BadInput> {
        let unreadable = |_| BadInput::Unreadable;
        let wanted: BTreeMap<String, Wanted<'_>> = top
            .input_requests
            .map_or(Ok(BTreeMap::new()), |raw| serde_json::from_str(raw.get()))
            .map_err(unreadable)?;
        let state: Option<String> =
            top.request_state.map(|raw| serde_json::from_str(raw.get())).transpose().map_err(unreadable)?;
        if wanted.is_empty() && state.is_none() {
            return Err(BadInput::Unreadable);
        }
        if wanted.len() > MAX_QUESTIONS || wanted.values().any(|one| one.params.get().len() > MAX_QUESTION) {
            return Err(BadInput::TooMuch);
        }
        if wanted.values().any(|one| one.method != METHOD) {
            return Err(BadInput::NoQuestion);
        }
        let params = |one: Wanted<'_>| redactor.scrub(one.params.get()).into_owned();
        Ok(Self { questions: wanted.into_iter().map(|(key, one)| (key, params(one))).collect(), state })
    }

    /// Has the questions answered, one after the other.
    pub(super) async fn answered(self, by: Option<&dyn Elicit>) -> Result<Input, BadInput> {
        let mut responses = InputResponses::new();
        for (key, params) in self.questions {
            let elicited = by.ok_or(BadInput::Nobody)?.elicit(&params).await;
            responses.insert(key, elicited.into_json());
        }
        Ok(Input { responses: (!responses.is_empty()).then_some(responses), state: self.state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Result<usize, BadInput>> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        InputRequired::of(&raw, &Redactor::default()).map(|found| found.map(|input| input.questions.len()))
    }

    #[test]
    fn results_ask_for_nothing() {
        for text in [r#"{"content":[]}"#, r#"{"resultType":"complete"}"#, r#"{"resultType":1}"#] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_question_to_a_person_or_too_much_is_not_passed_on() {
        let asks = |rest: &str| of(&format!(r#"{{"resultType":"input_required"{rest}}}"#)).unwrap();
        let question = r#"{"method":"elicitation/create","params":{}}"#;
        assert_eq!(asks(&format!(r#","inputRequests":{{"a":{question}}}"#)), Ok(1));
        assert_eq!(asks(r#","requestState":"s""#), Ok(0));
        let escaped = r#"{"result\u0054ype":"input\u005frequired","requestState":"s"}"#;
        assert_eq!(of(escaped), Some(Ok(0)), "however it is written");
        assert_eq!(asks(""), Err(BadInput::Unreadable));
        assert_eq!(asks(r#","inputRequests":[]"#), Err(BadInput::Unreadable));
        assert_eq!(asks(r#","inputRequests":{"a":{"method":"roots/list","params":{}}}"#), Err(BadInput::NoQuestion));
        let many: Vec<_> = (0..=MAX_QUESTIONS).map(|n| format!(r#""{n}":{question}"#)).collect();
        assert_eq!(asks(&format!(r#","inputRequests":{{{}}}"#, many.join(","))), Err(BadInput::TooMuch));
        assert_eq!(asks(&format!(r#","requestState":"{}""#, "s".repeat(MAX_ANSWER))), Err(BadInput::TooMuch));
    }
}
