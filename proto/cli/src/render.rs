//! Results of calls and resources as text or bytes.
//!
//! In a pipe and in a file a block is its text, or its JSON indented, as recorded. On a terminal an image, audio or
//! blob is one line. A result that is exactly one of these goes into a file as its bytes.

use std::fmt;

use footbridge_proto::text::Escaped;
use serde_json::value::RawValue;

use crate::{
    answers::{Block, CallResult, Content, Data, DecodeError, ResourceContents, decode},
    layout,
};

/// One part of a result.
enum Part {
    Text(String),
    /// Bytes in base64, and what they are.
    Data {
        kind: String,
        base64: String,
        json: Box<RawValue>,
    },
    Json(Box<RawValue>),
}

/// A result, read as far as printing it needs.
pub struct Rendered {
    parts: Vec<Part>,
}

impl Rendered {
    /// The structured result where there is one, or the blocks.
    #[must_use]
    pub fn call(result: CallResult) -> Self {
        let parts = match result.structured_content {
            Some(json) => vec![Part::Json(json)],
            None => result.content.into_iter().map(block).collect(),
        };
        Self { parts }
    }

    /// The parts of a resource; where there are several, each below a line that says which it is.
    #[must_use]
    pub fn resource(contents: ResourceContents) -> Self {
        let several = contents.contents.len() > 1;
        let parts = contents.contents.into_iter().map(|raw| content(raw, several)).collect();
        Self { parts }
    }

    /// Whether there is nothing to print.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self.parts.as_slice() {
            [] => true,
            [Part::Text(text)] => text.is_empty(),
            _ => false,
        }
    }

    /// Writes what is printed, without the last line's end.
    ///
    /// # Errors
    /// When `out` takes no more.
    pub fn write(&self, on_terminal: bool, out: &mut dyn fmt::Write) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                out.write_str("\n")?;
            }
            part.write(on_terminal, out)?;
        }
        Ok(())
    }

    /// The bytes that a file gets, where the result is nothing but one image, audio or blob.
    #[must_use]
    pub fn only_data(&self) -> Option<Result<Vec<u8>, DecodeError>> {
        match self.parts.as_slice() {
            [Part::Data { base64, .. }] => Some(decode(base64)),
            _ => None,
        }
    }
}

impl Part {
    fn write(&self, on_terminal: bool, out: &mut dyn fmt::Write) -> fmt::Result {
        match self {
            Self::Text(text) => out.write_str(text),
            Self::Json(json) => layout::write_indented(json, out),
            Self::Data { kind, base64, .. } if on_terminal => {
                let data = base64.trim_ascii().trim_end_matches('=');
                write!(out, "[{}, {} bytes: use --out FILE]", Escaped(kind), data.len() * 3 / 4)
            }
            Self::Data { json, .. } => layout::write_indented(json, out),
        }
    }
}

fn block(raw: Box<RawValue>) -> Part {
    let data =
        |kind: &str, Data { base64, mime_type }: Data, json| Part::Data { kind: named(kind, mime_type), base64, json };
    match Block::read(&raw) {
        Block::Text(text) => Part::Text(text),
        Block::Image(image) => data("image", image, raw),
        Block::Audio(audio) => data("audio", audio, raw),
        Block::Resource(Content { blob: Some(base64), mime_type, .. }) => {
            data("resource", Data { base64, mime_type }, raw)
        }
        Block::Resource(_) | Block::Other(_) => Part::Json(raw),
    }
}

fn content(raw: Box<RawValue>, several: bool) -> Part {
    let Ok(content) = serde_json::from_str::<Content>(raw.get()) else { return Part::Json(raw) };
    match (content.text, content.blob) {
        (Some(text), _) if several => {
            let kind = content.mime_type.as_deref().unwrap_or("text");
            Part::Text(format!("# {} ({})\n{text}", Escaped(&content.uri), Escaped(kind)))
        }
        (Some(text), _) => Part::Text(text),
        (None, Some(base64)) => Part::Data { kind: named("blob", content.mime_type), base64, json: raw },
        (None, None) => Part::Json(raw),
    }
}

fn named(kind: &str, mime_type: Option<String>) -> String {
    mime_type.map_or_else(|| kind.to_owned(), |mime_type| format!("{kind} {mime_type}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> Rendered {
        Rendered::call(serde_json::from_str(text).unwrap())
    }

    fn text(rendered: &Rendered, on_terminal: bool) -> String {
        let mut out = String::new();
        rendered.write(on_terminal, &mut out).unwrap();
        out
    }

    const IMAGE: &str = r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}"#;

    #[test]
    fn an_image_is_a_line_on_a_terminal_and_json_in_a_pipe() {
        assert_eq!(text(&call(IMAGE), true), "[image image/png, 8 bytes: use --out FILE]");
        assert!(text(&call(IMAGE), false).starts_with("{\n  \"type\": \"image\",\n  \"data\": \"iVBOR"));
    }

    #[test]
    fn a_file_gets_the_bytes_of_a_single_image_and_the_text_of_all_else() {
        assert_eq!(call(IMAGE).only_data().unwrap().unwrap(), b"\x89PNG\r\n\x1a\n");
        let two = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"eA=="}]}"#;
        assert!(call(two).only_data().is_none());
        assert_eq!(text(&call(two), false), "a\n{\n  \"type\": \"image\",\n  \"data\": \"eA==\"\n}");
        let blob = r#"{"contents":[{"uri":"u:x","blob":"eA"}]}"#;
        assert_eq!(Rendered::resource(serde_json::from_str(blob).unwrap()).only_data().unwrap().unwrap(), b"x");
        assert!(call(r#"{"content":[{"type":"audio","data":"%"}]}"#).only_data().unwrap().is_err());
    }

    #[test]
    fn blocks_of_odd_shapes_are_printed_as_they_are() {
        let odd = r#"{"content":[7,{"type":"text"},{"type":"new","x":1},{"no":"type"}]}"#;
        assert!(text(&call(odd), false).starts_with("7\n{\n  \"type\": \"text\"\n}\n{"), "{}", text(&call(odd), false));
    }

    #[test]
    fn parts_of_a_resource_are_named_where_there_are_several() {
        let two = r#"{"contents":[{"uri":"a:1","text":"x"},{"uri":"a:2","mimeType":"t/p","text":"y"}]}"#;
        let resource = |text: &str| Rendered::resource(serde_json::from_str(text).unwrap());
        assert_eq!(text(&resource(two), false), "# a:1 (text)\nx\n# a:2 (t/p)\ny");
        let forged =
            r#"{"contents":[{"uri":"a:1\n# a:3 (text)","text":"x"},{"uri":"a:2","mimeType":"t\np","text":"y"}]}"#;
        assert_eq!(text(&resource(forged), false), "# a:1\\n# a:3 (text) (text)\nx\n# a:2 (t\\np)\ny");
    }
}
