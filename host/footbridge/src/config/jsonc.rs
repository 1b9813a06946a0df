//! JSON as people write it, with comments and trailing commas, into values with their places.
//!
//! Refused, with line and column: whatever parsers are known to read differently (a name twice in one object, half a
//! surrogate pair), nesting beyond a limit, and all that is neither JSON nor one of the two liberties.

use std::{collections::HashMap, path::Path, sync::Arc};

use footbridge_core::settings_file::Mistake;
use footbridge_proto::json::MAX_BODY_DEPTH;
use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{ObjectPropName, Value},
    common::Ranged as _,
    parse_to_ast,
};

use super::{
    jsonc_errors::TextMistake,
    node::{Member, Node, NodeValue, WrittenAt},
};

/// What is taken besides JSON: comments and trailing commas.
pub(crate) const LIBERTIES: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Where lines begin in a text, so that a place costs no second look at all of it.
#[derive(Debug)]
pub(super) struct Places<'t> {
    file: Arc<Path>,
    text: &'t str,
    lines: Vec<usize>,
    /// The columns of the whole text before each block of it: all may be one line, with a million places in it.
    columns: Vec<usize>,
}

/// Bytes of a block.
const BLOCK: usize = 1024;

impl<'t> Places<'t> {
    pub(super) fn new(file: &Path, text: &'t str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        let mut places = Self { file: file.into(), text, lines, columns: vec![0] };
        for block in 1..=text.len() / BLOCK {
            let before = places.columns_before(block * BLOCK);
            places.columns.push(before);
        }
        places
    }

    /// The place of a byte of the text.
    pub(super) fn at(&self, offset: usize) -> WrittenAt {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = 1 + self.columns_before(offset).saturating_sub(self.columns_before(start));
        WrittenAt { file: Arc::clone(&self.file), line, column }
    }

    /// The columns of the whole text up to a byte of it.
    fn columns_before(&self, offset: usize) -> usize {
        let bytes = self.text.as_bytes();
        let offset = offset.min(bytes.len());
        let block = (offset / BLOCK).min(self.columns.len() - 1);
        // A character takes one, and a byte order mark none.
        let takes_one = |at: &usize| bytes[*at] & 0xc0 != 0x80 && !bytes[*at..].starts_with("\u{feff}".as_bytes());
        self.columns[block] + (block * BLOCK..offset).filter(takes_one).count()
    }
}

/// Reads a text; nothing where there is nothing but comments in it.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Option<Node>, Mistake> {
    let places = Places::new(file, text);
    // Editors on other systems write a byte order mark.
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let skipped = text.len() - bare.len();
    let parsed = parse_to_ast(bare, &CollectOptions::default(), &LIBERTIES);
    if let Some(TextMistake { at, what }) = TextMistake::first(bare, parsed.as_ref().err()) {
        return Err(places.at(at + skipped).mistake(what));
    }
    let Ok(parsed) = parsed else { return Ok(None) };
    let tree = Tree { places, skipped };
    parsed.value.map(|value| tree.node(&value, 0)).transpose()
}

struct Tree<'t> {
    places: Places<'t>,
    skipped: usize,
}

impl Tree<'_> {
    fn at(&self, offset: usize) -> WrittenAt {
        self.places.at(offset + self.skipped)
    }

    fn node(&self, value: &Value<'_>, depth: usize) -> Result<Node, Mistake> {
        let at = self.at(value.start());
        if depth > MAX_BODY_DEPTH {
            return Err(at.mistake(format!("it is nested deeper than {MAX_BODY_DEPTH}")));
        }
        let value = match value {
            Value::NullKeyword(_) => NodeValue::Null,
            Value::BooleanLit(literal) => NodeValue::Bool(literal.value),
            Value::NumberLit(literal) => NodeValue::Number(literal.value.to_owned()),
            Value::StringLit(literal) => NodeValue::Text(literal.value.clone().into_owned()),
            Value::Array(array) => {
                let elements = array.elements.iter().map(|element| self.node(element, depth + 1));
                NodeValue::List(elements.collect::<Result<_, _>>()?)
            }
            Value::Object(object) => {
                let mut lines: HashMap<&str, usize> = HashMap::new();
                let mut members = Vec::with_capacity(object.properties.len());
                for property in &object.properties {
                    let at = self.at(property.name.start());
                    let name = name(&property.name);
                    if let Some(line) = lines.insert(name, at.line) {
                        let what = format!("{name:?} appears twice in one object, first in line {line}: keep one");
                        return Err(at.mistake(what));
                    }
                    members.push(Member { name: name.to_owned(), at, node: self.node(&property.value, depth + 1)? });
                }
                NodeValue::Object(members)
            }
        };
        Ok(Node { at, value })
    }
}

fn name<'n>(name: &'n ObjectPropName<'_>) -> &'n str {
    match name {
        ObjectPropName::String(literal) => &literal.value,
        ObjectPropName::Word(word) => word.value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        parse(Path::new("/c/s.json"), text).unwrap_err().to_string()
    }

    #[test]
    fn comments_trailing_commas_and_a_byte_order_mark_are_taken_and_places_are_right() {
        let text = "\u{feff}// mine\n{ /* ü */ \"a\": [1, true,], // end\n  \"b\\u0041\": {\"c\": \"x\\\"y\",},\n}\n";
        let node = parse(Path::new("/c/s.json"), text).unwrap().unwrap();
        assert_eq!(node.to_json(), serde_json::json!({"a": [1, true], "bA": {"c": "x\"y"}}));
        let at = |place: &WrittenAt| (place.line, place.column);
        assert_eq!(at(&node.at), (2, 1));
        assert_eq!(at(&node.member("a").unwrap().at), (2, 11));
        assert_eq!(at(&node.member("bA").unwrap().node.member("c").unwrap().node.at), (3, 20));
        let first = parse(Path::new("/c/s.json"), "\u{feff}{\"a\": 1}").unwrap().unwrap();
        assert_eq!((at(&first.at), at(&first.member("a").unwrap().at)), ((1, 1), (1, 2)));
        assert_eq!(parse(Path::new("f"), "// nothing\n").unwrap(), None);
        assert_eq!(parse(Path::new("f"), "").unwrap(), None);
    }

    #[test]
    fn a_place_costs_the_same_wherever_it_is_in_a_long_line() {
        let long = |end: &str| format!("{}[{}{end}", " ".repeat(200_000), "\"\u{fc}\",".repeat(100_000));
        assert!(said(&long("")).starts_with("/c/s.json:1:"));
        let node = parse(Path::new("f"), &long("1]")).unwrap().unwrap();
        let columns: Vec<usize> = node.elements().unwrap().iter().map(|element| element.at.column).collect();
        assert!(columns.iter().enumerate().all(|(n, column)| *column == 200_002 + 4 * n));
        let text = "\u{feff}a\u{fc}\n".repeat(700) + &"\u{fc}\u{1f600}\u{feff}".repeat(500);
        let places = Places::new(Path::new("f"), &text);
        for (at, _) in text.char_indices() {
            let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
            let before = text[start..at].chars().filter(|c| *c != '\u{feff}').count();
            assert_eq!(places.at(at).column, 1 + before);
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_what_is_expected() {
        for (text, says) in [
            ("{\n\"a\": {,}}", "/c/s.json:2:7: it does not parse: expected a name in double quotes"),
            ("{\"a\": }", "/c/s.json:1:"),
            ("{\"a\" 1}", "expected \":\" after the name, not \"1\""),
            (
                "{\"a\": 1\n \"b\": 2}",
                "/c/s.json:1:8: it does not parse: expected \",\" between two values, not the end of",
            ),
            ("{\"a\": 1   \"b\": 2}", "expected \",\" between two values, not a text"),
            (
                "{\n  \"a\": {\n    \"command\": \"sh,\n    \"args\": [\"x\"]\n  }\n}\n",
                "/c/s.json:3:16: it does not parse: this text is not ended in its line: \" is missing",
            ),
            ("{\"command\":\"s\nh\"}", "/c/s.json:1:12: it does not parse: this text is not ended in its line"),
            ("{\"a\": \"s\th\"}", "/c/s.json:1:7: it does not parse: this text has a control character"),
            ("{'a': \"x\n\"}", "/c/s.json:1:2: it does not parse: texts and names are in double quotes"),
            ("// \"it's\n/* \"\n */ {\"a\": \"x\n\"}", "/c/s.json:3:11: it does not parse: this text is not ended"),
            ("{\"a\": \"C:\\Users\"}", "write \\\\ for a backslash itself, as in C:\\\\Users"),
            (
                "{\n  \"a\": {\n    \"b\": {\n      \"c\": 1,\n    \"d\": {\n      \"e\": 1\n    }\n  }\n}\n",
                "/c/s.json:3:10: it does not parse: this object is not ended: \"}\" is missing, as its lines are indented",
            ),
            (
                "{\n  \"a\": {\n    \"b\": {\n      \"c\": 1\n  }\n}\n",
                "/c/s.json:3:10: it does not parse: this object is not ended",
            ),
            (
                "{\"a\": {\n\"b\": 1\n}\n\n",
                "/c/s.json:1:1: it does not parse: this object is not ended: \"}\" is missing, here or",
            ),
            ("{a: 1}", "/c/s.json:1:2: it does not parse: expected a name in double quotes"),
            ("{'a': 1}", "double quotes"),
            ("{\"a\": 'x'}", "/c/s.json:1:7: it does not parse: texts and names are in double quotes"),
            ("{\"a\": x}", "/c/s.json:1:7: it does not parse: expected a value"),
            ("[1, 2", "this list is not ended"),
            ("{\"a\": \"x", "/c/s.json:1:7: it does not parse: this text is not ended: \" is missing"),
            ("{} {}", "/c/s.json:1:4: it does not parse: expected nothing more"),
            ("{\"a\": \"\\ud800\"}", "unicode escape"),
            ("{\"a\": 0x1}", "it does not parse"),
            ("/* x", "this comment is not ended"),
            (
                "{\"a\": 1,\n \"b\": {\"c\": 1, \"\\u0063\": 2}}",
                "/c/s.json:2:16: \"c\" appears twice in one object, first in line 2",
            ),
        ] {
            let found = said(text);
            assert!(found.contains(says), "{text}: {found}");
            assert!(!found.contains("serde") && !found.contains("EOF"), "{found}");
        }
        let deep = format!("{}1{}", "[".repeat(400), "]".repeat(400));
        assert!(said(&deep).contains("nested deeper than 128"), "{}", said(&deep));
        let deeper = "[".repeat(200_000);
        assert!(said(&deeper).contains("nested too deep"), "{}", said(&deeper));
    }
}
