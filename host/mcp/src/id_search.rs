//! Finds the `id` of a message that is too long to keep, or too broken to parse, while its bytes stream by.
//!
//! A server that answers with too much must still free its caller at once, and some SDKs write `result` first and `id`
//! last. So the scan follows nesting, strings and escapes, and remembers only the value of a member `id` of the
//! outermost object, and whether that has what an answer has. Broken input cannot make it fail: at worst it finds no id.

use footbridge_proto::json::{Part, Scanner};

/// Longest id that is remembered; ours are numbers of a few digits.
const MAX_ID: usize = 24;

/// The scan of one message. Feed it all the bytes in order.
#[derive(Debug, Default)]
pub(super) struct IdSearch {
    scanner: Scanner,
    place: Place,
    token: Vec<u8>,
    id: Option<i64>,
    is_answer: bool,
}

/// What the scan expects next at depth 1.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Name,
    Value,
    IdValue,
}

impl IdSearch {
    /// Goes over more bytes of the message.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// The id, if the message is an object with a numeric one (or its text, as some servers echo it).
    pub(super) fn id(&self) -> Option<i64> {
        self.id
    }

    /// Whether the message has shown to be an answer.
    pub(super) fn is_answer(&self) -> bool {
        self.is_answer
    }

    fn step(&mut self, byte: u8) {
        let depth = self.scanner.depth();
        match self.scanner.step(byte) {
            Part::StringStart => self.token.clear(),
            Part::Close if depth == 1 => self.end_scalar(),
            Part::Colon if depth == 1 => {
                self.is_answer |= self.token == b"result" || self.token == b"error";
                self.place = if self.token == b"id" { Place::IdValue } else { Place::Value };
                self.token.clear();
            }
            Part::Comma if depth == 1 => {
                self.end_scalar();
                self.place = Place::Name;
                self.token.clear();
            }
            Part::InString | Part::Scalar if depth == 1 => self.keep(byte),
            _ => {}
        }
    }

    /// Keeps what may be a member's name or the id, and forgets that it was one when it grows too long.
    fn keep(&mut self, byte: u8) {
        if self.token.len() < MAX_ID {
            self.token.push(byte);
        }
    }

    fn end_scalar(&mut self) {
        if self.place == Place::IdValue && self.id.is_none() {
            self.id = std::str::from_utf8(&self.token).ok().and_then(|text| text.parse().ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> Option<i64> {
        let mut search = IdSearch::default();
        for chunk in text.as_bytes().chunks(3) {
            search.feed(chunk);
        }
        search.id()
    }

    #[test]
    fn the_id_is_found_first_last_and_as_text() {
        assert_eq!(id(r#"{"id":7,"result":{}}"#), Some(7));
        assert_eq!(id(r#"{"result":{"content":[{"id":1}],"id":2},"jsonrpc":"2.0","id": 42 }"#), Some(42));
        assert_eq!(id(r#"{"id":"9","result":1}"#), Some(9));
        assert_eq!(id(r#"{"result":"say \"id\":3, }{","id":-4}"#), Some(-4));
    }

    #[test]
    fn ids_inside_and_ids_of_other_kinds_are_not_taken() {
        for text in [r#"{"result":{"id":7}}"#, r#"[{"id":7}]"#, r#"{"id":null}"#, r#"{"id":1.5}"#, r#"{"xid":7}"#] {
            assert_eq!(id(text), None, "{text}");
        }
        assert_eq!(id(r#"{"name":"id","value":7}"#), None);
        assert_eq!(id(r#"{"id":99999999999999999999999999999999,"x":1}"#), None);
    }

    #[test]
    fn an_answer_shows_by_its_members_before_its_end() {
        for (text, is_answer) in [
            (r#"{"result":"x"#, true),
            (r#"{"id":7,"error":{"#, true),
            (r#"{"id":7,"method":"x","params":{"result":1"#, false),
            (r#"[{"result":1"#, false),
        ] {
            let mut search = IdSearch::default();
            search.feed(text.as_bytes());
            assert_eq!(search.is_answer(), is_answer, "{text}");
        }
    }

    #[test]
    fn a_message_cut_short_gives_what_it_had() {
        assert_eq!(id(r#"{"id":7,"result":{"a":["#), Some(7));
        assert_eq!(id(r#"{"id":7"#), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut search = IdSearch::default();
            search.feed(&bytes);
            let _ = search.id();
        }
    }
}
