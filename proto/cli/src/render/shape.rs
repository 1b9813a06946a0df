//! How a result is to be printed, and a result made so: as recorded, as the text that a reader wants, as a table or YAML,
//! or a part of it.

use serde_json::value::{RawValue, to_raw_value};

use super::{Part, Rendered};
use crate::{
    laid_out::{table, yaml},
    pick::{NotPicked, PickPath, members},
};

/// How results are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// As the public command does: the structured result where there is one, or the blocks.
    #[default]
    Recorded,
    /// The blocks, or else the structured result; a single text as it is; images, audio and blobs as a line each.
    Text,
    /// All of the result, on one line.
    Json,
    /// The text or the bytes, with nothing added.
    Raw,
    /// Rows and columns, where there are any.
    Table,
    /// YAML.
    Yaml,
}

impl Format {
    /// The words for those that can be asked for.
    pub const WORDS: [(&'static str, Self); 5] =
        [("text", Self::Text), ("json", Self::Json), ("raw", Self::Raw), ("table", Self::Table), ("yaml", Self::Yaml)];

    /// By its word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, format)| *format)
    }
}

/// How a result is to be printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// In which form.
    pub format: Format,
    /// What of it.
    pub pick: Option<PickPath>,
    /// The bytes that are printed at most; all of it goes to a file where there are more.
    pub max_bytes: Option<usize>,
}

impl Shape {
    /// Whether the result is printed as the bridge gave it.
    pub(crate) fn is_all_json(&self) -> bool {
        self.format == Format::Json && self.pick.is_none()
    }
}

impl Rendered {
    /// Gives it this shape, for a terminal or for anything else.
    ///
    /// # Errors
    /// [`NotPicked`]; then it is as it was.
    pub(crate) fn set_shape(&mut self, shape: &Shape, on_terminal: bool) -> Result<(), NotPicked> {
        if let Some(path) = &shape.pick {
            self.pick(path)?;
        }
        let laid_out = |raw: &RawValue| match shape.format {
            Format::Yaml => Some(yaml(raw)),
            Format::Table => table(raw, on_terminal),
            _ => None,
        };
        match shape.format {
            Format::Recorded => {}
            Format::Json => {
                self.compact = true;
                self.unquoted = false;
            }
            Format::Raw | Format::Text => {
                self.prefer_blocks();
                self.is_bare = shape.format == Format::Raw;
                self.brief_media = shape.format == Format::Text;
            }
            Format::Yaml | Format::Table => {
                self.brief_media = true;
                if let Some(text) = self.data().as_deref().and_then(laid_out) {
                    self.structured = None;
                    self.parts.retain(|part| matches!(part, Part::Data(_)));
                    self.parts.insert(0, Part::Text(text));
                }
            }
        }
        Ok(())
    }

    /// The result as JSON: what is structured, or the one text that is JSON itself.
    fn data(&self) -> Option<Box<RawValue>> {
        if let Some(structured) = &self.structured {
            return Some(structured.clone());
        }
        let mut rest = self.parts.iter().filter(|part| !matches!(part, Part::Data(_)));
        match (rest.next()?, rest.next()) {
            (Part::Text(text), None) => serde_json::from_str(text.trim()).ok(),
            (Part::Json(json), None) => Some(json.clone()),
            _ => None,
        }
    }

    fn pick(&mut self, path: &PickPath) -> Result<(), NotPicked> {
        let text = || {
            let texts = self
                .parts
                .iter()
                .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
            to_raw_value(&texts.collect::<Vec<_>>().join("\n")).ok()
        };
        // A text that is no JSON is one value.
        let Some(data) = self.data().or_else(text) else { return Ok(()) };
        let found = path.of(&data)?;
        let compact = path.is_of_several();
        self.parts = found.into_iter().map(|raw| Part::Json(raw.to_owned())).collect();
        self.structured = None;
        self.compact = compact;
        self.unquoted = true;
        Ok(())
    }

    /// Blocks say it for a reader; a structured copy of them says it again. Of a structure with one text it is that.
    fn prefer_blocks(&mut self) {
        let has_blocks = self.parts.iter().any(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        if has_blocks {
            self.structured = None;
            return;
        }
        let only = self.structured.as_deref().and_then(members).and_then(|members| {
            let mut values = members.into_values();
            let first = values.next().filter(|_| values.next().is_none())?;
            serde_json::from_str::<String>(first.get()).ok()
        });
        if let Some(text) = only {
            self.structured = None;
            self.parts = vec![Part::Text(text)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(result: &str, shape: &Shape) -> Result<String, String> {
        let mut rendered = Rendered::call(serde_json::from_str(result).unwrap());
        rendered.set_shape(shape, false).map_err(|error| error.to_string())?;
        let mut out = String::new();
        rendered.write(false, &mut out).unwrap();
        Ok(out)
    }

    fn of(format: Format, pick: Option<&str>) -> Shape {
        Shape { format, pick: pick.map(|path| PickPath::new(path).unwrap()), max_bytes: None }
    }

    const BOTH: &str = r#"{"content":[{"type":"text","text":"a\nb"}],"structuredContent":{"content":"a\nb"}}"#;
    const ONE: &str = r#"{"content":[],"structuredContent":{"result":"a\nb"}}"#;
    const DATA: &str = r#"{"content":[{"type":"text","text":"{\"n\": 1.50, \"l\": [{\"x\":\"u\"},{\"x\":\"v\"}]}"}]}"#;
    const IMAGE: &str =
        r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"text","text":"t"}]}"#;

    #[test]
    fn a_reader_gets_the_text_and_no_bytes_of_a_picture() {
        for result in [BOTH, ONE] {
            assert_eq!(shaped(result, &of(Format::Text, None)).unwrap(), "a\nb");
            assert_eq!(shaped(result, &of(Format::Raw, None)).unwrap(), "a\nb");
        }
        assert!(shaped(BOTH, &Shape::default()).unwrap().starts_with("{\n"), "as recorded it is the structured one");
        assert_eq!(shaped(IMAGE, &of(Format::Text, None)).unwrap(), "[image image/png, 8 bytes: use --out FILE]\nt");
    }

    #[test]
    fn a_part_keeps_its_digits_and_several_are_a_line_each() {
        assert_eq!(shaped(DATA, &of(Format::Recorded, Some(".n"))).unwrap(), "1.50");
        assert_eq!(shaped(DATA, &of(Format::Text, Some(".l[].x"))).unwrap(), "u\nv");
        assert_eq!(shaped(DATA, &of(Format::Json, Some(".l[].x"))).unwrap(), "\"u\"\n\"v\"");
        assert_eq!(shaped(DATA, &of(Format::Recorded, Some(".l[]"))).unwrap(), "{\"x\":\"u\"}\n{\"x\":\"v\"}");
        assert_eq!(shaped(DATA, &of(Format::Table, Some(".l"))).unwrap(), "x\nu\nv");
        assert!(shaped(DATA, &of(Format::Text, Some(".m"))).unwrap_err().contains("there are l, n"));
        assert!(shaped(BOTH, &of(Format::Text, Some(".x"))).unwrap_err().contains("there are content"));
    }

    #[test]
    fn what_has_no_rows_is_printed_as_it_is() {
        assert_eq!(shaped(DATA, &of(Format::Yaml, None)).unwrap(), "l:\n  -\n    x: u\n  -\n    x: v\n\"n\": 1.50");
        let text = r#"{"content":[{"type":"text","text":"plain"}]}"#;
        for format in [Format::Yaml, Format::Table] {
            assert_eq!(shaped(text, &of(format, None)).unwrap(), "plain");
        }
    }
}
