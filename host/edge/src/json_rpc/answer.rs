//! Answers as JSON-RPC, without copying what a server wrote.

use bytes::Bytes;
use footbridge_proto::rpc::{ErrorObject, RESULT_START, error_answer, result_end};
use http::{Response, StatusCode};
use serde_json::value::RawValue;

use crate::http::response::{Pieces, typed};

/// The media type of an answer in one body.
const JSON: &str = "application/json";

/// The answer to the request of this id.
#[derive(Debug, Clone)]
pub(crate) struct RpcAnswer {
    pub(crate) id: Option<Box<RawValue>>,
}

impl RpcAnswer {
    /// That it is refused.
    pub(crate) fn error(&self, status: StatusCode, error: &ErrorObject) -> Response<Pieces> {
        typed(status, JSON, self.error_text(error).into())
    }

    /// Its result, in front of whose members these are put: each with a comma behind it.
    pub(crate) fn result(&self, text: Box<RawValue>, members: &str) -> Response<Pieces> {
        let [open, text] = with_members(bytes_of(text), members);
        let (before, after) = self.around();
        typed(StatusCode::OK, JSON, [before, open, text, after].into())
    }

    /// The event of this name that ends a stream, with the result or why there is none.
    pub(crate) fn last_event(&self, name: &'static [u8], answer: Result<(Box<RawValue>, &str), ErrorObject>) -> Pieces {
        let end = Bytes::from_static(b"\n\n");
        match answer {
            Ok((text, members)) => {
                let [open, text] = with_members(on_one_line(bytes_of(text)), members);
                let (before, after) = self.around();
                [Bytes::from_static(name), before, open, text, after, end].into()
            }
            Err(error) => [Bytes::from_static(name), self.error_text(&error).into(), end].into(),
        }
    }

    fn error_text(&self, error: &ErrorObject) -> String {
        error_answer(self.id.as_deref(), error)
    }

    /// What stands before and after a result.
    fn around(&self) -> (Bytes, Bytes) {
        (Bytes::from_static(RESULT_START.as_bytes()), result_end(self.id.as_deref()).into())
    }
}

fn bytes_of(text: Box<RawValue>) -> Vec<u8> {
    let text: Box<str> = text.into();
    text.into_boxed_bytes().into()
}

/// An object with more members in front. What is no object stays as it is.
fn with_members(text: Vec<u8>, members: &str) -> [Bytes; 2] {
    let rest = text.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let members = match rest {
        None => return [Bytes::new(), text.into()],
        Some(rest) if rest.starts_with(b"}") => members.trim_end_matches(','),
        Some(_) => members,
    };
    if members.is_empty() {
        return [Bytes::new(), text.into()];
    }
    [format!("{{{members}").into(), Bytes::from(text).slice(1..)]
}

/// A line break in JSON is white space between two tokens, never part of a string, so a blank in its place says the
/// same, and an event's data stays one line.
fn on_one_line(mut text: Vec<u8>) -> Vec<u8> {
    // Nearly always, and quickly found out of a large one.
    if !text.contains(&b'\n') && !text.contains(&b'\r') {
        return text;
    }
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
    use crate::wording::error_of;

    const NAME: &[u8] = b"event: result\ndata: ";

    fn whole(pieces: Pieces) -> String {
        String::from_utf8(pieces.collect().now_or_never().unwrap().unwrap().to_bytes().into()).unwrap()
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_result_of_many_lines_is_one_line_of_the_same_meaning() {
        let text = "{\r\n  \"a\": \"x\\ny\",\n\t\"b\": [1.50,\r12345678901234567890]\n}";
        let pieces = RpcAnswer { id: Some(raw("7")) }.last_event(NAME, Ok((raw(text), "")));
        assert_eq!(
            whole(pieces),
            "event: result\ndata: {\"jsonrpc\":\"2.0\",\"result\":{    \"a\": \"x\\ny\", \t\"b\": [1.50, 12345678901234567890] },\"id\":7}\n\n"
        );
        let error = error_of(&Cause::Unavailable("a\nb".to_owned()).into());
        let pieces = RpcAnswer { id: None }.last_event(NAME, Err(error));
        assert_eq!(whole(pieces).matches('\n').count(), 3);
    }

    #[test]
    fn members_are_put_in_front_of_those_of_an_object() {
        let with = |text: &str, members: &str| {
            let answer = RpcAnswer { id: None }.result(raw(text), members);
            whole(answer.into_body())
        };
        let (before, after) = ("{\"jsonrpc\":\"2.0\",\"result\":", ",\"id\":null}");
        for (text, members, result) in [
            ("{\"a\":1}", "\"b\":2,", "{\"b\":2,\"a\":1}"),
            ("{ }", "\"b\":2,", "{\"b\":2 }"),
            ("{}", "", "{}"),
            ("[1]", "\"b\":2,", "[1]"),
        ] {
            assert_eq!(with(text, members), format!("{before}{result}{after}"), "{text}");
        }
    }
}
