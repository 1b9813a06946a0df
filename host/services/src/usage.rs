//! What an answer says of its use of a model, read as it passes: of Anthropic's, OpenAI's and Google's APIs, whole or as
//! events. Nothing is kept but the text of one small object.
//!
//! A `usage` or `usageMetadata` counts that is a member of the answer, or of a member of it: deeper ones are what the
//! model wrote. What an answer says later replaces what it said before, number by number.
//!
//! One meaning for all: what went in counts what was kept from before and what is kept from now on, and what came out
//! counts thoughts. Anthropic's numbers say the first apart from each other, and Google's the second.

use footbridge_audit::UsageRecord;
use http::{HeaderMap, Method, Uri};
use serde_json::Value;

use crate::shape::ErrorShape;

/// Longest object that is read, and longest name or model, bytes.
const OBJECT: usize = 8 * 1024;
const TEXT: usize = 128;

/// Deepest object whose members count: the answer is 1.
const DEEPEST: usize = 2;

/// More tokens than any answer uses: an origin that says more does not decide how much is left of a budget.
const MOST: u64 = 1 << 32;

/// Whose use an answer tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum UsageOf {
    /// Its own.
    #[default]
    Request,
    /// That of an answer which was given before, and counted then, unless it was made in the background.
    Earlier,
}

impl UsageOf {
    /// By what is asked; none where tokens are only counted.
    pub(crate) fn asked(method: &Method, uri: &Uri) -> Option<Self> {
        let path = uri.path();
        let only_counts = path.ends_with("/count_tokens") || path.ends_with(":countTokens");
        let of = if *method == Method::GET { Self::Earlier } else { Self::Request };
        (!only_counts).then_some(of)
    }
}

/// The word by which a request has its answer leave out what was used, where its API has one: Google's hand out parts of an
/// answer, and in other formats than JSON.
pub(crate) fn hides_usage(shape: ErrorShape, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
    if shape != ErrorShape::Gemini {
        return None;
    }
    if headers.contains_key("x-goog-fieldmask") {
        return Some("x-goog-fieldmask");
    }
    uri.query().unwrap_or_default().split(['&', ';']).find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name.trim_start_matches('$').to_ascii_lowercase().as_str() {
            "fields" => Some("\"fields\" in a query"),
            "alt" if !["", "json", "sse"].contains(&value) => Some("\"alt\" but json and sse"),
            // One that is encoded nobody had to encode.
            name if name.contains('%') => Some("encoded names in a query"),
            _ => None,
        }
    })
}

/// Reads an answer as it passes.
#[derive(Debug, Default)]
pub(crate) struct UsageReader {
    found: UsageRecord,
    of: UsageOf,
    /// Whether what it says cannot be read, and why.
    unread: Option<Unread>,
    /// Whether it says that it was made in the background.
    is_of_background: bool,
    depth: usize,
    string: Option<Text>,
    /// The name that was read last, at a depth that counts, and whether its colon was.
    name: Option<(Name, bool)>,
    /// The object that is kept, and the depth that it is in.
    object: Option<(Vec<u8>, usize)>,
    /// Whether it comes as events.
    has_events: bool,
    line: LineEnds,
}

/// Where lines end, and where an event does: behind a line that is empty.
#[derive(Debug, Default)]
struct LineEnds {
    last: u8,
    is_empty: bool,
}

impl LineEnds {
    /// Whether a line ends with this byte, and whether an event does.
    fn step(&mut self, byte: u8) -> (bool, bool) {
        let ends = byte == b'\r' || (byte == b'\n' && self.last != b'\r');
        let is_event = ends && self.is_empty;
        if byte != b'\n' || ends {
            self.is_empty = ends;
        }
        self.last = byte;
        (ends, is_event)
    }
}

/// About how many bytes a token takes: of a text, of pictures and files, and of a stream that says each in an event of its
/// own.
const TOKEN_BYTES: u64 = 4;
const TOKEN_IN_FILES_BYTES: u64 = 256;
const TOKEN_IN_EVENTS_BYTES: u64 = 128;
/// The same of what is compressed.
const ENCODED_TOKEN_BYTES: u64 = 1;

/// Why an answer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is compressed.
    Encoded,
    /// It is pictures, sound, or others of a kind.
    Media,
    /// It is no text, which there may be in it.
    Binary,
}

/// What a request has beyond this is taken for pictures and files, bytes.
const TEXT_SENT: u64 = 512 * 1024;

/// About how many tokens there are in what was sent.
pub(crate) fn estimated(sent: u64) -> u64 {
    sent.min(TEXT_SENT) / TOKEN_BYTES + sent.saturating_sub(TEXT_SENT) / TOKEN_IN_FILES_BYTES
}

/// A string that is being read.
#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    escaped: bool,
    plain: bool,
}

/// Whose value comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Usage,
    Model,
    Background,
}

impl UsageReader {
    /// Of an answer that can be read, or not.
    pub(crate) fn new(of: UsageOf, unread: Option<Unread>) -> Self {
        Self { of, unread, ..Self::default() }
    }

    /// The same of an answer that comes as events: between these nothing is open, whatever the one before left so.
    pub(crate) fn with_events(self, has_events: bool) -> Self {
        Self { has_events, ..self }
    }

    /// Takes what passes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.unread.is_some() {
            return;
        }
        for byte in bytes {
            self.byte(*byte);
        }
    }

    /// Tokens, in and out, that it said so far.
    pub(crate) fn tokens(&self) -> u64 {
        if !self.is_new() {
            return 0;
        }
        self.found.tokens_in.unwrap_or_default().saturating_add(self.found.tokens_out.unwrap_or_default())
    }

    /// Whether what it says was not counted before.
    fn is_new(&self) -> bool {
        self.of == UsageOf::Request || self.is_of_background
    }

    /// About how many tokens were used that it did not say, by the bytes that passed, of a stream of events or of another
    /// answer.
    pub(crate) fn unsaid(&self, sent: u64, received: u64, of_events: bool) -> u64 {
        let tokens_in = if self.found.tokens_in.is_some() { 0 } else { estimated(sent) };
        let tokens_out = match (self.unread, of_events) {
            (Some(Unread::Encoded), _) => received / ENCODED_TOKEN_BYTES,
            (Some(Unread::Media), _) => received / TOKEN_IN_FILES_BYTES,
            (None, true) => received / TOKEN_IN_EVENTS_BYTES,
            (Some(Unread::Binary), _) | (None, false) => received / TOKEN_BYTES,
        };
        tokens_in + tokens_out.saturating_sub(self.found.tokens_out.unwrap_or_default())
    }

    /// What was found, with what may have been used besides; none where there is nothing.
    pub(crate) fn into_found(self, estimated: Option<u64>) -> Option<UsageRecord> {
        let is_new = self.is_new();
        let said = if is_new { self.found } else { UsageRecord { model: self.found.model, ..UsageRecord::default() } };
        let found = UsageRecord { tokens_estimated: estimated, ..said };
        (found != UsageRecord::default()).then_some(found)
    }

    fn byte(&mut self, byte: u8) {
        let (ends_line, ends_event) = self.line.step(byte);
        if ends_line {
            // A string of JSON has no line's end in it: what was taken for one was none.
            (self.string, self.name) = (None, None);
        }
        if ends_event && self.has_events {
            (self.depth, self.object) = (0, None);
        }
        if let Some((object, _)) = &mut self.object {
            if object.len() == OBJECT {
                self.object = None;
            } else {
                object.push(byte);
            }
        }
        match &mut self.string {
            Some(text) => {
                if text.step(byte) {
                    let text = self.string.take().unwrap_or_default();
                    self.ended(&text);
                }
            }
            None => self.outside(byte),
        }
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'"' => self.string = Some(Text { plain: true, ..Text::default() }),
            b':' => {
                if let Some((_, is_followed)) = &mut self.name {
                    *is_followed = true;
                }
            }
            b'{' => {
                if self.name.take() == Some((Name::Usage, true)) && self.object.is_none() {
                    self.object = Some((vec![byte], self.depth));
                }
                self.depth += 1;
            }
            b'[' => {
                self.name = None;
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.object.as_ref().is_some_and(|(_, depth)| *depth == self.depth)
                    && let Some((object, _)) = self.object.take()
                {
                    self.read(&object);
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.is_of_background |= self.name.take() == Some((Name::Background, true)) && byte == b't',
        }
    }

    fn ended(&mut self, text: &Text) {
        match self.name.take() {
            Some((Name::Model, true)) if text.plain => {
                // The first: what else is called so may be the caller's own words, given back.
                let model = || String::from_utf8(text.bytes.clone()).ok().filter(|model| !model.is_empty());
                self.found.model = self.found.model.take().or_else(model);
            }
            _ if !text.plain || self.depth == 0 || self.depth > DEEPEST => {}
            _ => match text.bytes.as_slice() {
                b"usage" | b"usageMetadata" => self.name = Some((Name::Usage, false)),
                b"model" | b"modelVersion" => self.name = Some((Name::Model, false)),
                b"background" => self.name = Some((Name::Background, false)),
                _ => {}
            },
        }
    }

    fn read(&mut self, object: &[u8]) {
        let Ok(usage) = serde_json::from_slice::<Value>(object) else { return };
        let number = |value: &Value| value.as_u64().map(|tokens| tokens.min(MOST));
        let first = |paths: &[&str]| paths.iter().find_map(|path| number(usage.pointer(path)?));
        let cached = first(&[
            "/cache_read_input_tokens",
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/cachedContentTokenCount",
        ]);
        // Those that are there, together.
        let sum = |names: &[&str]| {
            let there = names.iter().filter_map(|name| number(usage.get(name)?));
            there.reduce(u64::saturating_add)
        };
        let anthropic = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
        let tokens_in = first(&["/prompt_tokens"]).or(sum(&anthropic));
        let tokens_in = tokens_in.or(sum(&["promptTokenCount", "toolUsePromptTokenCount"]));
        let tokens_out = first(&["/output_tokens", "/completion_tokens"]);
        let tokens_out = tokens_out.or(sum(&["candidatesTokenCount", "thoughtsTokenCount"]));
        let found = &mut self.found;
        // An end of Anthropic's streams may name fewer parts than their beginning.
        found.tokens_in = found.tokens_in.max(tokens_in);
        found.tokens_out = tokens_out.or(found.tokens_out);
        found.tokens_cached = cached.or(found.tokens_cached);
    }
}

impl Text {
    /// Takes a byte; true at the end of the string.
    fn step(&mut self, byte: u8) -> bool {
        match (self.escaped, byte) {
            (true, _) => {
                self.escaped = false;
                self.plain = false;
            }
            (false, b'\\') => self.escaped = true,
            (false, b'"') => return true,
            (false, _) if self.bytes.len() < TEXT => self.bytes.push(byte),
            (false, _) => self.plain = false,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_said_is_estimated_and_what_was_is_not() {
        let of = |text: &str| {
            let mut reader = UsageReader::default();
            reader.push(text.as_bytes());
            (reader.unsaid(400, 640, true), reader.unsaid(400, 640, false))
        };
        assert_eq!(of("{}"), (100 + 5, 100 + 160));
        assert_eq!(estimated(2 << 20), 131_072 + 6144, "two mebibytes are pictures");
        let begun = r#"{"type":"message_start","message":{"usage":{"input_tokens":2000,"output_tokens":3}}}"#;
        assert_eq!(of(begun), (2, 157), "what went in was said");
        assert_eq!(of(r#"{"usage":{"prompt_tokens":2000,"completion_tokens":500}}"#), (0, 0));
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_estimated_whatever_it_is() {
        for (unread, tokens) in [(Unread::Encoded, 1024), (Unread::Binary, 256), (Unread::Media, 4)] {
            let mut reader = UsageReader::new(UsageOf::Request, Some(unread));
            reader.push(br#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#);
            assert_eq!((reader.tokens(), reader.unsaid(400, 1024, false)), (0, 100 + tokens), "{unread:?}");
        }
    }

    #[test]
    fn what_was_counted_before_or_is_only_counted_is_not_counted() {
        let of = |method: Method, path: &'static str| UsageOf::asked(&method, &Uri::from_static(path));
        assert_eq!(of(Method::POST, "/v1/messages/count_tokens"), None);
        assert_eq!(of(Method::POST, "/v1beta/models/g:countTokens"), None);
        assert_eq!(of(Method::POST, "/v1/messages"), Some(UsageOf::Request));
        assert_eq!(of(Method::GET, "/v1/responses/r"), Some(UsageOf::Earlier));
        for (background, tokens) in [("false", 0), ("true", 9), ("\"true\"", 0)] {
            let mut reader = UsageReader::new(UsageOf::Earlier, None);
            let text =
                format!(r#"{{"background":{background},"model":"m","usage":{{"input_tokens":7,"output_tokens":2}}}}"#);
            reader.push(text.as_bytes());
            assert_eq!(reader.tokens(), tokens, "{background}");
            let found = reader.into_found(None).unwrap();
            assert_eq!((found.model.as_deref(), found.tokens_in), (Some("m"), (tokens > 0).then_some(7)));
        }
    }

    #[test]
    fn an_origin_cannot_say_more_than_there_is() {
        let text = r#"{"usage":{"input_tokens":18446744073709551615,"output_tokens":18446744073709551615}}"#;
        assert_eq!(found(text), Some((String::new(), MOST, MOST, u64::MAX)));
    }

    fn found(text: &str) -> Option<(String, u64, u64, u64)> {
        let whole = {
            let mut reader = UsageReader::default();
            reader.push(text.as_bytes());
            reader.into_found(None)
        };
        let mut reader = UsageReader::default();
        text.as_bytes().chunks(3).for_each(|part| reader.push(part));
        assert_eq!(reader.into_found(None), whole);
        whole.map(|found| {
            let number = |n: Option<u64>| n.unwrap_or(u64::MAX);
            (
                found.model.unwrap_or_default(),
                number(found.tokens_in),
                number(found.tokens_out),
                number(found.tokens_cached),
            )
        })
    }

    #[test]
    fn three_formats_whole_and_as_events() {
        let anthropic = r#"{"id":"m","model":"claude","content":[{"type":"text","text":"\"usage\":{\"input_tokens\":9}"}],
            "usage":{"input_tokens":11,"cache_read_input_tokens":3,"output_tokens":5}}"#;
        assert_eq!(found(anthropic), Some(("claude".to_owned(), 14, 5, 3)));
        let events = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\",\"usage\":{\"input_tokens\":11,\"cache_read_input_tokens\":0,\"output_tokens\":1}}}\n\n\
            event: content_block_delta\ndata: {\"delta\":{\"partial_json\":\"{\\\"usage\\\": {\\\"output_tokens\\\": 999}}\"}}\n\n\
            event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end\"},\"usage\":{\"output_tokens\":42}}\n\n";
        assert_eq!(found(events), Some(("claude".to_owned(), 11, 42, 0)));
        let chat = "data: {\"model\":\"gpt\",\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":null}\n\n\
            data: {\"model\":\"gpt\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\ndata: [DONE]\n\n";
        assert_eq!(found(chat), Some(("gpt".to_owned(), 7, 2, 1)));
        let responses = "data: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt\",\"usage\":{\"input_tokens\":7,\"input_tokens_details\":{\"cached_tokens\":4},\"output_tokens\":2}}}\n\n";
        assert_eq!(found(responses), Some(("gpt".to_owned(), 7, 2, 4)));
        let gemini = r#"{"candidates":[],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":6,"cachedContentTokenCount":0},"modelVersion":"g"}"#;
        assert_eq!(found(gemini), Some(("g".to_owned(), 4, 6, 0)));
    }

    #[test]
    fn what_was_kept_and_what_was_thought_counts_alike_in_all_formats() {
        let anthropic = "data: {\"message\":{\"model\":\"c\",\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":300,\"cache_creation_input_tokens\":50,\"output_tokens\":1}}}\n\n\
            data: {\"usage\":{\"input_tokens\":10,\"output_tokens\":7}}\n\n";
        assert_eq!(found(anthropic), Some(("c".to_owned(), 360, 7, 300)));
        let openai = r#"{"model":"o","usage":{"input_tokens":360,"input_tokens_details":{"cached_tokens":300},"output_tokens":7,
            "output_tokens_details":{"reasoning_tokens":4}}}"#;
        assert_eq!(found(openai), Some(("o".to_owned(), 360, 7, 300)));
        let gemini = "data: {\"usageMetadata\":{\"promptTokenCount\":350,\"thoughtsTokenCount\":4},\"modelVersion\":\"g\"}\n\n\
            data: {\"usageMetadata\":{\"promptTokenCount\":350,\"toolUsePromptTokenCount\":10,\"cachedContentTokenCount\":300,\
            \"candidatesTokenCount\":3,\"thoughtsTokenCount\":4},\"modelVersion\":\"g\"}\n\n";
        assert_eq!(found(gemini), Some(("g".to_owned(), 360, 7, 300)));
    }

    #[test]
    fn what_is_odd_in_one_event_hides_nothing_of_the_next() {
        let usage = "data: {\"usage\":{\"input_tokens\":7,\"output_tokens\":2}}";
        for before in [
            ": it\"s\n",
            ": it\"s\n\n",
            "data: {{{[\n\n",
            "data: {{{[\r\n\r\n",
            "data: {\"usage\":{\"x\n\n",
            "\r\r{\"\r\r",
        ] {
            for end in ["\n\n", "\r\n\r\n"] {
                let mut reader = UsageReader::new(UsageOf::Request, None).with_events(true);
                reader.push(format!("{before}{usage}{end}").as_bytes());
                assert_eq!(reader.tokens(), 9, "{before:?}");
            }
        }
        let pretty =
            "{\n\n  \"id\": \"x\",\n  \"usage\": {\n    \"input_tokens\": 7,\n\n    \"output_tokens\": 2\n  }\n}\n";
        assert_eq!(
            found(pretty),
            Some((String::new(), 7, 2, u64::MAX)),
            "what is no stream of events may have empty lines"
        );
    }

    #[test]
    fn a_request_by_which_its_answer_would_not_say_what_was_used_is_known() {
        let hides = |query: &str| {
            let uri = format!("/v1beta/models/g:generateContent?{query}").parse().unwrap();
            hides_usage(ErrorShape::Gemini, &uri, &HeaderMap::new()).is_some()
        };
        for query in [
            "fields=candidates",
            "$fields=x",
            "alt=proto",
            "%24alt=proto",
            "a=b&$alt=media",
            "f%69elds=x",
            "a;fields=x",
        ] {
            assert!(hides(query), "{query}");
        }
        for query in ["", "alt=sse", "alt=json&key=x", "$alt=json;enum-encoding=int"] {
            assert!(!hides(query), "{query}");
        }
        let mask = [(http::HeaderName::from_static("x-goog-fieldmask"), http::HeaderValue::from_static("candidates"))];
        let (uri, mask) = (Uri::from_static("/x"), mask.into_iter().collect());
        assert!(hides_usage(ErrorShape::Gemini, &uri, &mask).is_some());
        assert!(hides_usage(ErrorShape::OpenAi, &Uri::from_static("/x?fields=y"), &mask).is_none());
    }

    #[test]
    fn what_a_model_writes_is_no_usage_and_nothing_grows() {
        let deep = r#"{"content":[{"input":{"usage":{"input_tokens":1},"model":"x"}}]}"#;
        assert_eq!(found(deep), None);
        assert_eq!(found(&format!("{{\"usage\":{{\"x\":\"{}\"}}}}", "y".repeat(3 * OBJECT))), None);
        assert_eq!(found(r#"{"usage":[{"input_tokens":1}],"x":"usage","y":{"input_tokens":2}}"#), None);
        assert_eq!(found("}}}]]] \"usage\": {\"input_tokens\":1}"), None);
    }
}
