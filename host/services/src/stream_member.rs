//! Whether the body of a request says that its answer is to be a stream: a member `stream` of its JSON object, as APIs of
//! models have it.
//!
//! It is looked for on the way of a request, so no more is read than it takes: up to that member, and never further than
//! [`LOOKED_AT`]. What is behind it need not even be JSON: that is for the origin to say.

use std::fmt;

use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};

/// How far it is looked for, bytes: about a millisecond, and as much as a person is asked about by default.
const LOOKED_AT: usize = 1 << 20;

/// Whether a body has `"stream": true` at its top.
pub(crate) fn asks_for_stream(body: &[u8]) -> bool {
    let looked_at = &body[..body.len().min(LOOKED_AT)];
    let mut asks = false;
    // It ends with an error wherever something is left behind what was looked for.
    let _ended = serde_json::Deserializer::from_slice(looked_at).deserialize_map(StreamMember(&mut asks));
    asks
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum MemberName {
    Stream,
    #[serde(other)]
    Another,
}

/// Reads members up to the one that is looked for, and puts down what it says.
struct StreamMember<'a>(&'a mut bool);

impl<'de> Visitor<'de> for StreamMember<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key()? {
            match name {
                MemberName::Stream => {
                    *self.0 = members.next_value()?;
                    return Ok(());
                }
                MemberName::Another => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_asked_for_at_the_top_of_an_object_by_a_word_of_json() {
        for asks in
            [r#"{"stream":true}"#, r#" {"model": "m", "messages": [{"stream": false}], "str\u0065am": true, "n": 1}"#]
        {
            assert!(asks_for_stream(asks.as_bytes()), "{asks}");
        }
        for other in [
            "",
            "null",
            "[true]",
            "stream=true",
            "{}",
            r#"{"stream":false}"#,
            r#"{"stream":"true"}"#,
            r#"{"stream":null}"#,
            r#"{"stream":"#,
            r#"{"options":{"stream":true}}"#,
            r#"["stream",true]"#,
            "\u{0}\u{1}",
        ] {
            assert!(!asks_for_stream(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn no_more_is_read_than_it_takes() {
        assert!(asks_for_stream(br#"{"stream":true,what is behind it is not read"#));
        let behind = |bytes: usize| format!(r#"{{"messages":"{}","stream":true}}"#, "x".repeat(bytes));
        assert!(asks_for_stream(behind(LOOKED_AT - 100).as_bytes()));
        assert!(!asks_for_stream(behind(LOOKED_AT).as_bytes()), "it is no further looked for");
        let before = format!(r#"{{"stream":true,"messages":"{}"}}"#, "x".repeat(2 * LOOKED_AT));
        assert!(asks_for_stream(before.as_bytes()));
    }
}
