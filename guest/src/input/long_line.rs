//! A line that is too long to be held: how long it is, and whose it is, from bytes that are forgotten at once.
//!
//! The id of a request may be its last member, so the whole line is looked at. Only members of the line's own object
//! count, and only an id that is a number or a short string; what is no JSON has none.

use footbridge_proto::json::{Part, Scanner};
use serde_json::value::RawValue;

/// The longest name or value of a member that is looked at.
const MOST: usize = 512;

/// What is known of such a line so far, and at its end.
#[derive(Debug, Default)]
pub struct LongLine {
    /// How many bytes it has.
    pub bytes: usize,
    /// Its member `id`, as it is written.
    pub id: Option<Box<RawValue>>,
    /// Whether it has a member `method`, as requests of JSON-RPC do.
    pub has_method: bool,
    scanner: Scanner,
    /// What a member's name or value says, as far as it is looked at.
    text: Vec<u8>,
    /// It is longer, or no single token.
    is_more: bool,
    /// The value that comes next is the id.
    is_id: bool,
    /// It is no object.
    is_other: bool,
}

impl LongLine {
    /// Looks at the next of its bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        if !self.is_other {
            bytes.iter().for_each(|byte| self.step(*byte));
        }
    }

    fn step(&mut self, byte: u8) {
        let part = self.scanner.step(byte);
        match (part, self.scanner.depth()) {
            (Part::Open, 1) => self.is_other = byte != b'{',
            (Part::Colon, 1) => self.named(),
            (Part::Comma, 1) | (Part::Close, 0) => self.valued(),
            (Part::Space, _) if self.text.is_empty() => {}
            (Part::Open | Part::Close, _) => self.is_more = true,
            (_, 1) if self.text.len() < MOST => self.text.push(byte),
            // A list or an object within it, or a text that is too long.
            _ => self.is_more = true,
        }
    }

    /// A member's name is over.
    fn named(&mut self) {
        self.is_id = !self.is_more && self.text.trim_ascii() == b"\"id\"";
        self.has_method |= !self.is_more && self.text.trim_ascii() == b"\"method\"";
        self.text.clear();
        self.is_more = false;
    }

    /// A member's value is over.
    fn valued(&mut self) {
        if self.is_id && !self.is_more && self.text.trim_ascii() != b"null" {
            self.id = serde_json::from_slice(self.text.trim_ascii()).ok();
        }
        self.is_id = false;
        self.text.clear();
        self.is_more = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id, and whether there is a method, of a line that comes in pieces.
    fn looked_at(line: &str) -> (Option<String>, bool) {
        let mut long = LongLine::default();
        line.as_bytes().chunks(3).for_each(|piece| long.feed(piece));
        assert_eq!(long.bytes, line.len());
        (long.id.map(|id| id.get().to_owned()), long.has_method)
    }

    #[test]
    fn the_id_is_found_wherever_it_is() {
        for (line, id) in [
            (r#"{"id":7,"method":"x","params":{"id":8}}"#, "7"),
            (r#"{"method":"x", "params" : {"id":8,"a":[{"id":9}]} , "id" : -1.50 }"#, "-1.50"),
            (r#"{"method":"x","params":["id"],"id":"a\"},{b"}"#, r#""a\"},{b""#),
        ] {
            assert_eq!(looked_at(line), (Some(id.to_owned()), true), "{line}");
        }
        assert_eq!(looked_at(r#"{"id":7,"result":{"method":"x"}}"#), (Some("7".to_owned()), false));
    }

    #[test]
    fn what_is_no_id_is_none() {
        let long = format!(r#"{{"method":"x","id":"{}"}}"#, "y".repeat(MOST));
        for line in [
            r#"{"method":"x","id":null}"#,
            r#"{"method":"x","id":[1]}"#,
            r#"{"method":"x","id":{}}"#,
            r#"{"method":"x","id":1 2}"#,
            r#"{"method":"x","id":1"#,
            r#"{"method":"x","params":{"id":1}}"#,
            &long,
        ] {
            assert_eq!(looked_at(line).0, None, "{line}");
        }
        for line in [r#"[{"method":"x","id":1}]"#, "id: 7, method", "\"id\":7", "}}}{\"id\"7"] {
            assert_eq!(looked_at(line), (None, false), "{line}");
        }
    }
}
