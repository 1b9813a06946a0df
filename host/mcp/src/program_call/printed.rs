//! What a program printed, as the result of a call. No tree is built of it, and it grows to its limit and no further.

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write},
};

use footbridge_proto::json::{JsonError, JsonMistake, MAX_RESULT_DEPTH, check_result};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::wrapped::Prints;

/// Why what was printed is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoResult {
    /// It is something else than the tool says.
    #[error("{0}")]
    Unfit(String),
    /// It is too large as a result.
    #[error("it is too large")]
    TooLarge,
}

/// A result of what was printed, of at most this many bytes.
pub(super) fn result(printed: &str, prints: Prints, limit: usize) -> Result<Box<RawValue>, NoResult> {
    match prints {
        Prints::Text => write(&Wrapped { content: [Text::of(printed)], structured: None }, limit),
        Prints::Json => {
            let value = json(printed, "JSON", 1)?;
            let structured = value.get().starts_with('{').then_some(value);
            write(&Wrapped { content: [Text::of(value.get())], structured }, limit)
        }
        Prints::Result => {
            let value = json(printed, "CallToolResult in JSON", 0)?;
            // The library takes a list for one, too.
            if !value.get().starts_with('{') {
                let what = "it printed JSON that is no CallToolResult: expected an object, in { and }";
                return Err(NoResult::Unfit(what.to_owned()));
            }
            let checked: Result<CallToolResult<'_>, _> = serde_json::from_str(value.get());
            let unfit = |error| {
                let mistake = JsonMistake::of(printed, &error);
                NoResult::Unfit(format!("it printed JSON that is no CallToolResult: {mistake}"))
            };
            checked.map_err(unfit)?;
            Ok(value.to_owned())
        }
    }
}

/// JSON that is to be so deep inside of a result.
fn json<'p>(printed: &'p str, what: &str, inside: usize) -> Result<&'p RawValue, NoResult> {
    // Programs of other systems mark their text.
    let printed = printed.strip_prefix('\u{feff}').unwrap_or(printed);
    if printed.trim().is_empty() {
        return Err(NoResult::Unfit(format!("it printed nothing, where {what} is expected")));
    }
    let unfit = |error| NoResult::Unfit(format!("it printed no {what}: {}", JsonMistake::of(printed, &error)));
    let value: &RawValue = serde_json::from_str(printed.trim()).map_err(unfit)?;
    strictly(printed, value.get(), MAX_RESULT_DEPTH - inside)
        .map_err(|why| NoResult::Unfit(format!("it printed no {what}: {why}")))?;
    Ok(value)
}

/// Whether it could go on as a result, or as a part of one: elsewhere it would be taken for a failure of ours.
fn strictly(printed: &str, value: &str, depth: usize) -> Result<(), String> {
    let start = printed.len() - printed.trim_start().len();
    let placed = |at: usize, what: &str| {
        let before = &printed[..printed.floor_char_boundary(start + at)];
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Err(format!("line {}, column {column}: {what}", before.matches('\n').count() + 1))
    };
    match check_result(value, depth) {
        Ok(()) => Ok(()),
        Err(JsonError::DuplicateName(at)) => placed(at, "a member name that its object has already"),
        Err(JsonError::Syntax(at)) => placed(at, "not JSON"),
        Err(why @ (JsonError::TooDeep(_) | JsonError::LoneSurrogate(_) | JsonError::NotUtf8)) => Err(why.to_string()),
    }
}

fn write(result: &Wrapped<'_>, limit: usize) -> Result<Box<RawValue>, NoResult> {
    let mut text = Bounded { bytes: Vec::new(), limit };
    serde_json::to_writer(&mut text, result).map_err(|_| NoResult::TooLarge)?;
    let text = String::from_utf8(text.bytes).map_err(|_| NoResult::TooLarge)?;
    RawValue::from_string(text).map_err(|_| NoResult::TooLarge)
}

/// What takes so many bytes, and then fails.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Serialize)]
struct Wrapped<'a> {
    content: [Text<'a>; 1],
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    structured: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Self {
        Self { kind: "text", text }
    }
}

/// A `CallToolResult` of MCP 2025-11-25, as far as its members have to be what they are. Unknown members go on.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallToolResult<'a> {
    #[serde(rename = "content")]
    _content: Blocks,
    #[serde(default, borrow, deserialize_with = "object", rename = "structuredContent")]
    _structured: Option<&'a RawValue>,
    #[serde(default, rename = "isError")]
    _is_error: bool,
}

fn object<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    let raw = <&RawValue>::deserialize(from)?;
    if raw.get().starts_with('{') { Ok(Some(raw)) } else { Err(D::Error::custom("structuredContent is no object")) }
}

/// A list of blocks, looked at one by one.
struct Blocks;

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Self)
    }
}

impl<'de> Visitor<'de> for Blocks {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of content blocks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Self, A::Error> {
        while let Some(block) = blocks.next_element::<Block<'de>>()? {
            block.check().map_err(A::Error::custom)?;
        }
        Ok(self)
    }
}

/// A block of content: what each kind cannot be without.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
}

impl Block<'_> {
    fn check(&self) -> Result<(), String> {
        let needed = match &*self.kind {
            "text" => vec![("text", self.text, '"')],
            "image" | "audio" => vec![("data", self.data, '"'), ("mimeType", self.mime_type, '"')],
            "resource" => vec![("resource", self.resource, '{')],
            "resource_link" => vec![("uri", self.uri, '"'), ("name", self.name, '"')],
            other => return Err(format!("{other:?} is no type of content")),
        };
        let lacks = |(_, value, start): &&(&str, Option<&RawValue>, char)| {
            !value.is_some_and(|value| value.get().starts_with(*start))
        };
        match needed.iter().find(lacks) {
            Some((member, ..)) => Err(format!("a block of type {:?} has no {member}", self.kind)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUCH: usize = 1 << 20;

    fn of(printed: &str, prints: Prints) -> String {
        match result(printed, prints, MUCH) {
            Ok(result) => result.get().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn text_and_json_become_blocks() {
        assert_eq!(of("a \"b\"\n", Prints::Text), r#"{"content":[{"type":"text","text":"a \"b\"\n"}]}"#);
        assert_eq!(of("", Prints::Text), r#"{"content":[{"type":"text","text":""}]}"#);
        let object = r#"{"content":[{"type":"text","text":"{\"a\":1.0}"}],"structuredContent":{"a":1.0}}"#;
        assert_eq!(of("\n{\"a\":1.0}\n", Prints::Json), object);
        assert_eq!(of("[1]", Prints::Json), r#"{"content":[{"type":"text","text":"[1]"}]}"#);
    }

    #[test]
    fn a_result_goes_on_as_it_was_printed() {
        let all = r#"{"content":[{"type":"text","text":"a","x":1},{"type":"image","data":"","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"a:b"}},{"type":"resource_link","uri":"a:b","name":"n"}],
            "structuredContent":{"a":1},"isError":true,"_meta":{"a":1}}"#;
        assert_eq!(of(all, Prints::Result), all);
    }

    #[test]
    fn what_is_none_says_why() {
        for (printed, says) in [
            ("", "printed nothing"),
            ("\n Error: no", "no CallToolResult in JSON: line 2, column 2: expected a value: a text"),
            ("{\n}{}", "line 2, column 2: expected nothing more after the object"),
            ("[[], {}, true]", "no CallToolResult: expected an object, in { and }"),
            ("{}", "\"content\" is missing"),
            (r#"{"content":"x"}"#, "a list of content blocks"),
            (r#"{"content":[{"type":"text"}]}"#, "has no text"),
            (r#"{"content":[{"type":"text","text":1}]}"#, "has no text"),
            (r#"{"content":[{"type":"video"}]}"#, "\"video\" is no type of content"),
            (r#"{"content":[{"text":"x"}]}"#, "\"type\" is missing"),
            (r#"{"content":[],"isError":"yes"}"#, "expected true or false"),
            (r#"{"content":[],"structuredContent":[1]}"#, "structuredContent is no object"),
        ] {
            let said = of(printed, Prints::Result);
            assert!(said.contains(says), "{printed}: {said}");
        }
        assert!(of("no", Prints::Json).contains("printed no JSON"));
    }

    #[test]
    fn what_is_no_strict_json_says_where_in_what_was_printed() {
        let twice = "\n{\"a\": 1,\n  \"\u{fc}\": {\"b\": 1, \"b\": 2}}";
        assert_eq!(
            of(twice, Prints::Json),
            "it printed no JSON: line 3, column 17: a member name that its object has already"
        );
        let twice = r#"{"content":[],"structuredContent":{"b":1,"b":2}}"#;
        assert!(of(twice, Prints::Result).contains("CallToolResult in JSON: line 1, column 42: a member name"));
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let result = |levels: usize| format!("{{\"content\":[],\"x\":{}}}", deep(levels));
        assert!(of(&format!("{{\"x\":{}}}", deep(126)), Prints::Json).contains("\"structuredContent\""));
        assert!(of(&format!("{{\"x\":{}}}", deep(127)), Prints::Json).ends_with("nested deeper than 127"));
        assert_eq!(of(&result(127), Prints::Result), result(127));
        assert!(of(&result(128), Prints::Result).ends_with("nested deeper than 128"));
    }

    #[test]
    fn a_result_that_outgrows_its_limit_is_none() {
        let many = "\u{1}".repeat(1000);
        assert!(matches!(result(&many, Prints::Text, 5_000), Err(NoResult::TooLarge)));
        assert!(result(&many, Prints::Text, 7_000).is_ok());
    }
}
