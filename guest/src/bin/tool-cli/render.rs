//! Results of calls and resources as text or bytes.
//!
//! In a pipe and in a file a block is its text, or its JSON indented, as recorded. On a terminal an image, audio or
//! blob is one line. A result that is exactly one of these goes into a file as its bytes.

use footbridge_guest::answers::{Block, CallResult, Content, Data, DecodeError, ResourceContents, decode};
use serde_json::value::RawValue;

use crate::layout;

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
pub(crate) struct Rendered {
    parts: Vec<Part>,
}

impl Rendered {
    /// The structured result where there is one, or the blocks.
    pub(crate) fn call(result: CallResult) -> Self {
        let parts = match result.structured_content {
            Some(json) => vec![Part::Json(json)],
            None => result.content.into_iter().map(block).collect(),
        };
        Self { parts }
    }

    /// The parts of a resource; where there are several, each below a line that says which it is.
    pub(crate) fn resource(contents: ResourceContents) -> Self {
        let several = contents.contents.len() > 1;
        let parts = contents.contents.into_iter().map(|raw| content(raw, several)).collect();
        Self { parts }
    }

    /// What is printed, without the last line's end; empty when there is nothing to print.
    pub(crate) fn text(&self, on_terminal: bool) -> String {
        self.lines(on_terminal).join("\n")
    }

    /// One text a part.
    pub(crate) fn lines(&self, on_terminal: bool) -> Vec<String> {
        self.parts.iter().map(|part| part.text(on_terminal)).collect()
    }

    /// What a file gets.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, DecodeError> {
        match self.parts.as_slice() {
            [Part::Data { base64, .. }] => decode(base64),
            _ => Ok(self.text(false).into_bytes()),
        }
    }
}

impl Part {
    fn text(&self, on_terminal: bool) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Json(json) => layout::indented(json),
            Self::Data { kind, base64, .. } if on_terminal => {
                let data = base64.trim_ascii().trim_end_matches('=');
                format!("[{kind}, {} bytes: use --out FILE]", data.len() * 3 / 4)
            }
            Self::Data { json, .. } => layout::indented(json),
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
            Part::Text(format!("# {} ({kind})\n{text}", content.uri))
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

    const IMAGE: &str = r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}"#;

    #[test]
    fn an_image_is_a_line_on_a_terminal_and_json_in_a_pipe() {
        assert_eq!(call(IMAGE).text(true), "[image image/png, 8 bytes: use --out FILE]");
        assert!(call(IMAGE).text(false).starts_with("{\n  \"type\": \"image\",\n  \"data\": \"iVBOR"));
    }

    #[test]
    fn a_file_gets_the_bytes_of_a_single_image_and_the_text_of_all_else() {
        assert_eq!(call(IMAGE).bytes().unwrap(), b"\x89PNG\r\n\x1a\n");
        let two = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"eA=="}]}"#;
        assert_eq!(call(two).bytes().unwrap(), b"a\n{\n  \"type\": \"image\",\n  \"data\": \"eA==\"\n}");
        let blob = r#"{"contents":[{"uri":"u:x","blob":"eA"}]}"#;
        assert_eq!(Rendered::resource(serde_json::from_str(blob).unwrap()).bytes().unwrap(), b"x");
        assert!(call(r#"{"content":[{"type":"audio","data":"%"}]}"#).bytes().is_err());
    }

    #[test]
    fn blocks_of_odd_shapes_are_printed_as_they_are() {
        let odd = r#"{"content":[7,{"type":"text"},{"type":"new","x":1},{"no":"type"}]}"#;
        assert_eq!(call(odd).lines(false).len(), 4);
        assert_eq!(call(odd).lines(false)[0], "7");
    }

    #[test]
    fn parts_of_a_resource_are_named_where_there_are_several() {
        let two = r#"{"contents":[{"uri":"a:1","text":"x"},{"uri":"a:2","mimeType":"t/p","text":"y"}]}"#;
        assert_eq!(
            Rendered::resource(serde_json::from_str(two).unwrap()).text(false),
            "# a:1 (text)\nx\n# a:2 (t/p)\ny"
        );
    }
}
