//! JSON as a table or as YAML, each value with the text that it came with.
//!
//! What is nested deeper than anybody reads stays JSON, on one line.

use std::fmt::Write as _;

use footbridge_proto::text::Escaped;
use serde_json::value::RawValue;

use crate::{
    layout::one_line,
    pick::{items, members},
};

/// How deep YAML goes.
const MOST_DEPTH: usize = 32;
/// How wide a cell is where a person reads it, and to which others are filled up, as [`width`] counts; and columns of a table.
const MOST_CELL: usize = 60;
const MOST_COLUMNS: usize = 20;

/// JSON as YAML, without the last line's end.
#[must_use]
pub(crate) fn yaml(raw: &RawValue) -> String {
    let mut out = String::new();
    add_yaml(raw, 0, &mut out);
    out.trim_start_matches('\n').trim_end_matches('\n').to_owned()
}

/// Behind a name or a dash: on the same line where it is one value, and otherwise on lines of its own.
fn add_yaml(raw: &RawValue, depth: usize, out: &mut String) {
    let indent = |out: &mut String| {
        let _ = write!(out, "\n{:1$}", "", depth * 2);
    };
    if let Some(items) = items(raw).filter(|items| !items.is_empty() && depth < MOST_DEPTH) {
        for item in items {
            indent(out);
            out.push('-');
            add_yaml(item, depth + 1, out);
        }
    } else if let Some(members) = members(raw).filter(|members| !members.is_empty() && depth < MOST_DEPTH) {
        for (name, member) in members {
            indent(out);
            let _ = write!(out, "{}:", plain_or_json(&name));
            add_yaml(member, depth + 1, out);
        }
    } else {
        let text: Option<String> = serde_json::from_str(raw.get()).ok();
        let text = text.map_or_else(|| one_line(raw), |text| plain_or_json(&text));
        let _ = write!(out, "{}{text}", if depth > 0 { " " } else { "" });
    }
}

/// A text as YAML: as it is where it can be nothing else, and otherwise in quotes.
fn plain_or_json(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '/' | '.' | ',' | '(' | ')' | '+');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let starts = text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '_'));
    let is_word = words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if starts && !is_word && !text.ends_with(' ') && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

/// A list of objects as a table, a row each, or an object as its members, a row each; nothing where JSON is neither.
/// Long cells are cut where a terminal shows it; whatever reads a pipe or a file gets them whole.
#[must_use]
pub(crate) fn table(raw: &RawValue, on_terminal: bool) -> Option<String> {
    let most = if on_terminal { MOST_CELL } else { usize::MAX };
    if let Some(members) = members(raw) {
        // Lists come as the one list of an object, too.
        let mut lists = members.values().filter(|member| is_of_objects(member));
        if let (Some(list), None) = (lists.next(), lists.next()) {
            return table(list, on_terminal);
        }
        let rows: Vec<Vec<String>> =
            members.iter().map(|(name, member)| vec![cell_of(name, most), cell(member, most)]).collect();
        return Some(aligned(&rows));
    }
    let rows: Vec<_> = items(raw).filter(|_| is_of_objects(raw))?.into_iter().filter_map(members).collect();
    let mut columns: Vec<&String> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !columns.contains(&name) && columns.len() < MOST_COLUMNS {
            columns.push(name);
        }
    }
    let head = columns.iter().map(|name| cell_of(name, most)).collect();
    let line = |row: &std::collections::BTreeMap<String, &RawValue>| {
        columns.iter().map(|name| row.get(*name).map_or_else(String::new, |value| cell(value, most))).collect()
    };
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().map(line)).collect();
    Some(aligned(&all))
}

fn is_of_objects(raw: &RawValue) -> bool {
    items(raw).is_some_and(|items| !items.is_empty() && items.iter().all(|item| item.get().starts_with('{')))
}

fn cell(raw: &RawValue, most: usize) -> String {
    let text: Option<String> = serde_json::from_str(raw.get()).ok();
    cell_of(&text.unwrap_or_else(|| one_line(raw)), most)
}

fn cell_of(text: &str, most: usize) -> String {
    let text = Escaped(text).to_string();
    let mut wide = 0;
    let end = text.char_indices().find(|(_, letter)| {
        wide += letter_width(*letter);
        wide > most
    });
    match end {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// How wide a terminal shows a text, where it shows it as almost all do.
fn width(text: &str) -> usize {
    text.chars().map(letter_width).sum()
}

/// Letters of East Asia and most pictures take two places, and marks on the letter before them none.
fn letter_width(letter: char) -> usize {
    match letter {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{303e}' | '\u{3041}'..='\u{a4cf}' | '\u{a960}'..='\u{a97c}' => 2,
        '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' => 2,
        '\u{ffe0}'..='\u{ffe6}' | '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}' => 2,
        '\u{1f900}'..='\u{1f9ff}' | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max();
    // One that is longer takes no room in all other rows.
    let widths: Vec<usize> = (0..columns).map(|at| widest(at).unwrap_or_default().min(MOST_CELL + 3)).collect();
    let line = |row: &Vec<String>| {
        let filled = |(cell, all): (&String, &usize)| format!("{cell}{:1$}", "", all.saturating_sub(width(cell)));
        let cells = row.iter().zip(&widths).map(filled);
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn yaml_is_read_back_as_the_same_values() {
        let text = r#"{"a":[1.50,{"b":"x y","c":[]},[true]],"d":"no","e":"two\nlines","f g":{},"h":"- x","i":""}"#;
        let lines = [
            "a:",
            "  - 1.50",
            "  -",
            "    b: x y",
            "    c: []",
            "  -",
            "    - true",
            "d: \"no\"",
            "e: \"two\\nlines\"",
            "f g: {}",
            "h: \"- x\"",
            "i: \"\"",
        ];
        assert_eq!(yaml(&raw(text)), lines.join("\n"));
        assert_eq!((yaml(&raw("7")), yaml(&raw("[]"))), ("7".to_owned(), "[]".to_owned()));
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(yaml(&raw(&deep)).len() < 10_000);
    }

    #[test]
    fn a_list_of_objects_is_a_row_each() {
        let list = r#"{"total":2,"items":[{"name":"Zürich","n":1},{"name":"B\u001bern","x":[1,2]}]}"#;
        let text = table(&raw(list), true).unwrap();
        assert_eq!(text, "n  name        x\n1  Zürich\n   B\\u{1b}ern  [1,2]");
        assert_eq!(table(&raw(r#"{"a":1,"bc":"x\ny"}"#), true).unwrap(), "a   1\nbc  x\\ny");
        let none = |text| table(&raw(text), true).is_none();
        assert!(none("[1]") && none("\"x\"") && none("[]"));
    }

    #[test]
    fn columns_stand_where_letters_are_wide_or_marks() {
        let list = r#"[{"city":"東京","n":1},{"city":"Zu\u0308rich","n":2},{"city":"서울🚀","n":3}]"#;
        assert_eq!(table(&raw(list), true).unwrap(), "city    n\n東京    1\nZu\u{308}rich  2\n서울🚀  3");
        let long = raw(&format!(r#"[{{"a":"{}","b":1}}]"#, "京".repeat(100)));
        assert!(table(&long, true).unwrap().contains(&format!("\n{}...  1", "京".repeat(MOST_CELL / 2))));
    }

    #[test]
    fn a_long_cell_is_cut_on_a_terminal_alone_and_fills_up_no_other_row() {
        let long = "x".repeat(1000);
        let list = raw(&format!(r#"[{{"a":"{long}","b":1}},{{"a":"y","b":2}}]"#));
        assert!(table(&list, true).unwrap().contains(&format!("\n{}...  1\n", &long[..MOST_CELL])));
        let whole = table(&list, false).unwrap();
        assert!(whole.contains(&format!("\n{long}  1\n")) && whole.len() < 1200, "{whole}");
    }
}
