//! Results of calls and resources as text or bytes.
//!
//! In a pipe a block is its text, or its JSON indented, as recorded; on a terminal an image, audio or blob is one line.
//! Into a file goes what is printed, unless there is one image, audio or blob among it: then its bytes do, and the rest
//! is printed. Names of files are made here, since a server's could be any.

use std::fmt;

use footbridge_proto::text::Escaped;
use serde_json::value::RawValue;

mod shape;

use crate::{
    answers::{Block, CallResult, Content, Data, DecodeError, FilledPrompt, ResourceContents, decode},
    layout,
};

pub use shape::{Format, Shape};

/// Ends of names of files, by what is in them.
const EXTENSIONS: [(&str, &str); 16] = [
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("image/bmp", "bmp"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("application/pdf", "pdf"),
    ("application/json", "json"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
    ("text/plain", "txt"),
];

/// One part of a result.
enum Part {
    Text(String),
    Data(Media),
    Json(Box<RawValue>),
}

/// An image, audio or blob.
pub struct Media {
    kind: &'static str,
    mime_type: Option<String>,
    base64: String,
    json: Box<RawValue>,
}

/// A result, read as far as printing it needs.
pub struct Rendered {
    /// What is printed in place of the parts, where there is one.
    structured: Option<Box<RawValue>>,
    parts: Vec<Part>,
    /// JSON is on one line.
    compact: bool,
    /// JSON that is a text is the text.
    unquoted: bool,
    /// Images, audio and blobs are a line each wherever they are printed.
    brief_media: bool,
    /// Nothing is added to it, no end of a line either.
    is_bare: bool,
}

impl Rendered {
    fn of(structured: Option<Box<RawValue>>, parts: Vec<Part>) -> Self {
        Self { structured, parts, compact: false, unquoted: false, brief_media: false, is_bare: false }
    }

    /// Whether what a pipe gets has the data of all images, sounds and blobs in it.
    pub(crate) fn has_all_data(&self) -> bool {
        !self.brief_media && self.unprinted().is_empty()
    }

    /// Whether not even the end of a line is added to it.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.is_bare
    }

    /// The structured result where there is one, or the blocks.
    #[must_use]
    pub fn call(result: CallResult) -> Self {
        Self::of(result.structured_content, result.content.into_iter().map(block).collect())
    }

    /// The parts of a resource; where there are several, each below a line that says which it is.
    #[must_use]
    pub fn resource(contents: ResourceContents) -> Self {
        let several = contents.contents.len() > 1;
        Self::of(None, contents.contents.into_iter().map(|raw| content(raw, several)).collect())
    }

    /// The messages of a prompt; where there are several, each below a line that says whose it is.
    #[must_use]
    pub fn prompt(prompt: FilledPrompt) -> Self {
        let several = prompt.messages.len() > 1;
        let parts = prompt.messages.into_iter().flat_map(|message| {
            let role = several.then(|| Part::Text(format!("# {}", Escaped(&message.role))));
            role.into_iter().chain([block(message.content)])
        });
        Self::of(None, parts.collect())
    }

    /// Whether there is nothing to print.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self.parts.as_slice() {
            _ if self.structured.is_some() => false,
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
        self.write_parts(on_terminal, out, |_| true)
    }

    /// The same without images, audio and blobs.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn write_rest(&self, on_terminal: bool, out: &mut dyn fmt::Write) -> fmt::Result {
        self.write_parts(on_terminal, out, |part| !matches!(part, Part::Data(_)))
    }

    /// Whether there is anything besides images, audio and blobs.
    #[must_use]
    pub(crate) fn has_rest(&self) -> bool {
        let says = |part: &Part| match part {
            Part::Text(text) => !text.is_empty(),
            Part::Json(_) => true,
            Part::Data(_) => false,
        };
        self.structured.is_some() || self.parts.iter().any(says)
    }

    fn write_parts(&self, on_terminal: bool, out: &mut dyn fmt::Write, is_in: fn(&Part) -> bool) -> fmt::Result {
        if let Some(json) = &self.structured {
            return self.write_json(json, out);
        }
        for (at, part) in self.parts.iter().filter(|part| is_in(part)).enumerate() {
            if at > 0 {
                out.write_str("\n")?;
            }
            match part {
                Part::Json(json) => self.write_json(json, out)?,
                part => part.write(on_terminal || self.brief_media, out)?,
            }
        }
        Ok(())
    }

    fn write_json(&self, json: &RawValue, out: &mut dyn fmt::Write) -> fmt::Result {
        let text: Option<String> = serde_json::from_str(json.get()).ok().filter(|_| self.unquoted);
        match text {
            Some(text) => out.write_str(&text),
            None if self.compact => out.write_str(&layout::one_line(json)),
            None => layout::write_indented(json, out),
        }
    }

    /// The images, audio and blobs that are not printed, since the structured result is.
    pub(crate) fn unprinted(&self) -> Vec<&Media> {
        if self.structured.is_some() { self.media() } else { Vec::new() }
    }

    /// The images, audio and blobs in it.
    #[must_use]
    pub fn media(&self) -> Vec<&Media> {
        self.parts.iter().filter_map(|part| if let Part::Data(media) = part { Some(media) } else { None }).collect()
    }
}

impl Part {
    fn write(&self, on_terminal: bool, out: &mut dyn fmt::Write) -> fmt::Result {
        match self {
            Self::Text(text) => out.write_str(text),
            Self::Json(json) => layout::write_indented(json, out),
            Self::Data(media) if on_terminal => write!(out, "[{media}: use --out FILE]"),
            Self::Data(media) => layout::write_indented(&media.json, out),
        }
    }
}

/// What it is, and its size.
impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, mime_type, base64, .. } = self;
        let data = base64.trim_ascii().trim_end_matches('=');
        let mime_type = mime_type.as_ref().map_or_else(String::new, |name| format!(" {}", Escaped(name)));
        write!(f, "{kind}{mime_type}, {} bytes", data.len() * 3 / 4)
    }
}

impl Media {
    /// Its bytes.
    ///
    /// # Errors
    /// When they are not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, DecodeError> {
        decode(&self.base64)
    }

    /// What it is, as its server says.
    #[must_use]
    pub fn mime_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }

    /// A name for a file of it, the one of this number in its result.
    #[must_use]
    pub fn file_name(&self, number: usize) -> String {
        let bare = self.mime_type().and_then(|name| name.split(';').next()).unwrap_or_default().trim();
        let known = EXTENSIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(bare));
        format!("{}-{number}.{}", self.kind, known.map_or("bin", |(_, end)| end))
    }
}

/// Whether a block or a part of a resource is an image, audio or a blob.
pub(crate) fn is_media(raw: &RawValue, in_resource: bool) -> bool {
    let raw = raw.to_owned();
    matches!(if in_resource { content(raw, false) } else { block(raw) }, Part::Data(_))
}

fn block(raw: Box<RawValue>) -> Part {
    let data = |kind, Data { base64, mime_type }: Data, json| Part::Data(Media { kind, mime_type, base64, json });
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
        (None, Some(base64)) => Part::Data(Media { kind: "blob", mime_type: content.mime_type, base64, json: raw }),
        (None, None) => Part::Json(raw),
    }
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
    fn images_audio_and_blobs_are_told_from_the_rest() {
        let only = |rendered: Rendered| rendered.media()[0].bytes();
        assert_eq!(only(call(IMAGE)).unwrap(), b"\x89PNG\r\n\x1a\n");
        assert!(!call(IMAGE).has_rest());
        let two = call(r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"eA=="},{"type":"new"}]}"#);
        let mut rest = String::new();
        two.write_rest(false, &mut rest).unwrap();
        assert_eq!((two.media().len(), two.has_rest(), rest.as_str()), (1, true, "a\n{\n  \"type\": \"new\"\n}"));
        assert!(text(&two, false).starts_with("a\n{\n  \"type\": \"image\",\n  \"data\": \"eA==\"\n}"));
        let blob = r#"{"contents":[{"uri":"u:x","blob":"eA"}]}"#;
        assert_eq!(only(Rendered::resource(serde_json::from_str(blob).unwrap())).unwrap(), b"x");
        assert!(only(call(r#"{"content":[{"type":"audio","data":"%"}]}"#)).is_err());
        // The structured form stands for the texts, not for the image.
        let both = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"eA=="}],"structuredContent":{}}"#;
        assert_eq!((text(&call(both), false).as_str(), call(both).media().len()), ("{}", 1));
    }

    #[test]
    fn a_server_names_no_file() {
        let named = |mime_type: &str| {
            let block = serde_json::json!({"type": "image", "data": "eA==", "mimeType": mime_type});
            call(&serde_json::json!({ "content": [block] }).to_string()).media()[0].file_name(3)
        };
        assert_eq!(named("image/png"), "image-3.png");
        assert_eq!(named("Image/JPEG; q=1"), "image-3.jpg");
        for odd in ["image/../../x", "image/sh", "", "png\n"] {
            assert_eq!(named(odd), "image-3.bin", "{odd}");
        }
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
