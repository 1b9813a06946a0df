//! Answers as JSON-RPC, without copying what a server wrote.

use bytes::Bytes;
use footbridge_proto::{
    rpc::{ErrorObject, RESULT_START, error_answer, raw, result_end},
    wire::CheckedCall,
};
use http::{Response, StatusCode};
use serde_json::value::RawValue;

use super::{events, wording::error_of};
use crate::{
    dialect::{Encoder, Found},
    http::response::{Pieces, typed},
};
use footbridge_calls::{call::Checked, events::CallEvent};

const JSON: &str = "application/json";

/// Answers to the request of this id.
pub(super) struct RpcEncoder {
    pub(super) id: Option<Box<RawValue>>,
}

impl RpcEncoder {
    /// The answer to a request that is refused.
    pub(super) fn error(&self, status: StatusCode, error: &ErrorObject) -> Response<Pieces> {
        typed(status, JSON, self.error_text(error).into())
    }

    fn error_text(&self, error: &ErrorObject) -> String {
        error_answer(self.id.as_deref(), error)
    }

    /// What stands before and after a result.
    fn around(&self) -> (Bytes, Bytes) {
        (Bytes::from_static(RESULT_START.as_bytes()), result_end(self.id.as_deref()).into())
    }
}

impl Encoder for RpcEncoder {
    fn whole(&self, answer: Found) -> Response<Pieces> {
        match answer {
            Ok(text) => {
                let (before, after) = self.around();
                typed(StatusCode::OK, JSON, [before, bytes_of(text).into(), after].into())
            }
            Err(failure) => self.error(StatusCode::OK, &error_of(&failure)),
        }
    }

    fn checked(&self, checked: Checked) -> Box<RawValue> {
        let (policy, rule) = checked.by.map_or((None, None), |by| (Some(by.policy), by.rule));
        raw(&CheckedCall { decision: checked.decision.as_str().to_owned(), policy, rule })
    }

    fn event(&self, event: &CallEvent) -> Bytes {
        events::text_of(event)
    }

    fn last_event(&self, answer: Found) -> Pieces {
        let (begin, end) = (Bytes::from_static(b"event: result\ndata: "), Bytes::from_static(b"\n\n"));
        match answer {
            Ok(text) => {
                let (before, after) = self.around();
                [begin, before, on_one_line(bytes_of(text)).into(), after, end].into()
            }
            Err(failure) => [begin, self.error_text(&error_of(&failure)).into(), end].into(),
        }
    }
}

fn bytes_of(text: Box<RawValue>) -> Vec<u8> {
    let text: Box<str> = text.into();
    text.into_boxed_bytes().into()
}

/// A line break in JSON is white space between two tokens, never part of a string, so a blank in its place says the
/// same, and an event's data stays one line.
fn on_one_line(mut text: Vec<u8>) -> Vec<u8> {
    for byte in &mut text {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use footbridge_calls::cause::Cause;
    use futures::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    fn whole(pieces: Pieces) -> Vec<u8> {
        pieces.collect().now_or_never().unwrap().unwrap().to_bytes().into()
    }

    #[test]
    fn a_result_of_many_lines_is_one_line_of_the_same_meaning() {
        let text = "{\r\n  \"a\": \"x\\ny\",\n\t\"b\": [1.50,\r12345678901234567890]\n}";
        let result = RawValue::from_string(text.to_owned()).unwrap();
        let id = RawValue::from_string("7".to_owned()).unwrap();
        let pieces = RpcEncoder { id: Some(id) }.last_event(Ok(result));
        assert_eq!(
            String::from_utf8(whole(pieces)).unwrap(),
            "event: result\ndata: {\"jsonrpc\":\"2.0\",\"result\":{    \"a\": \"x\\ny\", \t\"b\": [1.50, 12345678901234567890] },\"id\":7}\n\n"
        );
        let error = Cause::Unavailable("a\nb".to_owned());
        let pieces = RpcEncoder { id: None }.last_event(Err(error.into()));
        assert_eq!(whole(pieces).iter().filter(|byte| **byte == b'\n').count(), 3);
    }
}
