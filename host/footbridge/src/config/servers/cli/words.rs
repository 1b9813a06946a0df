//! Words of a template as they are written: `{name}` is a place for an argument, `{*}` one for all of them as JSON,
//! `{{` and `}}` are braces, and `${NAME}` is a variable and `~` the home folder, as everywhere in these files.

use footbridge_core::secret::Secret;
use footbridge_mcp::wrapped::{Piece, Word};

use crate::config::secrets::{Reader, SecretError};

/// Why a word is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::config) enum BadWord {
    #[error(
        "\"{0}\" has a brace by itself: write {{name}} for an argument, {{*}} for all of them, {{{{ or }}}} for a brace"
    )]
    Brace(String),
    #[error(
        "\"{{{1}}}\" in \"{0}\" names no argument: names have letters, digits, _, - and .; for braces of the program's own write \
         {{{{ and }}}}"
    )]
    Name(String, String),
    #[error("\"{0}\": {1}")]
    Secret(String, SecretError),
}

/// Reads a word.
pub(super) fn word(text: &str, reader: &mut Reader<'_>) -> Result<Word, BadWord> {
    let (mut pieces, mut literal) = (Vec::new(), String::new());
    let mut rest = text;
    if let Some(after) = text.strip_prefix('~').filter(|after| after.is_empty() || after.starts_with('/')) {
        let home = reader.path("~").map_err(|error| BadWord::Secret(text.to_owned(), error))?;
        literal.push_str(home.expose());
        rest = after;
    }
    let brace = || BadWord::Brace(text.to_owned());
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        let (length, piece) = if from.starts_with("{{") || from.starts_with("}}") {
            literal.push_str(before);
            literal.push_str(&from[..1]);
            (2, None)
        } else if from.starts_with('}') {
            return Err(brace());
        } else {
            let inner = &from[1..from.find('}').ok_or_else(brace)?];
            match before.strip_suffix('$') {
                Some(before) => {
                    literal.push_str(before);
                    let value = reader.text(&format!("${{{inner}}}"));
                    literal.push_str(value.map_err(|error| BadWord::Secret(text.to_owned(), error))?.expose());
                    (inner.len() + 2, None)
                }
                None => {
                    literal.push_str(before);
                    let no_name = || BadWord::Name(text.to_owned(), inner.to_owned());
                    (inner.len() + 2, Some(place(inner).ok_or_else(no_name)?))
                }
            }
        };
        if let Some(piece) = piece {
            keep(&mut pieces, &mut literal);
            pieces.push(piece);
        }
        rest = &from[length..];
    }
    literal.push_str(rest);
    if pieces.is_empty() || !literal.is_empty() {
        pieces.push(Piece::Literal(Secret::new(literal)));
    }
    Ok(Word { pieces, may_be_option: false })
}

fn keep(pieces: &mut Vec<Piece>, literal: &mut String) {
    if !literal.is_empty() {
        pieces.push(Piece::Literal(Secret::new(std::mem::take(literal))));
    }
}

fn place(name: &str) -> Option<Piece> {
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-.".contains(letter));
    match name {
        "*" => Some(Piece::All),
        name if is_name => Some(Piece::Value(name.to_owned())),
        _ => None,
    }
}

/// What of a word is the same in each call.
pub(super) fn literal_text(word: &Word) -> String {
    let literal = |piece: &Piece| match piece {
        Piece::Literal(text) => Some(text.expose().to_owned()),
        Piece::Value(_) | Piece::All => None,
    };
    word.pieces.iter().filter_map(literal).collect()
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, path::Path};

    use super::*;
    use crate::config::{Commands, secrets::Gathered};

    fn pieces(text: &str) -> Result<Vec<String>, BadWord> {
        let var = |name: &str| (name == "KEY").then(|| OsString::from("a{value}"));
        let commands = Commands::default();
        let mut reader = Reader { var: &var, base: Path::new("/"), commands: &commands, gathered: Gathered::default() };
        let shown = |piece: &Piece| match piece {
            Piece::Literal(text) => text.expose().to_owned(),
            Piece::Value(name) => format!("<{name}>"),
            Piece::All => "<all>".to_owned(),
        };
        Ok(word(text, &mut reader)?.pieces.iter().map(shown).collect())
    }

    #[test]
    fn places_variables_and_braces_are_told_apart() {
        for (text, expected) in [
            ("", &[""][..]),
            ("-n", &["-n"]),
            ("{path}", &["<path>"]),
            ("--since={since}!", &["--since=", "<since>", "!"]),
            ("{a}{b-c}", &["<a>", "<b-c>"]),
            ("{*}", &["<all>"]),
            ("{{.[] | {{a: .b}} }}", &["{.[] | {a: .b} }"]),
            ("k=${KEY}:{a}", &["k=a{value}:", "<a>"]),
            ("${NONE:-x}", &["x"]),
            ("$HOME", &["$HOME"]),
        ] {
            assert_eq!(pieces(text).unwrap(), expected, "{text}");
        }
        for text in ["{", "a}", "{a", "{{{a"] {
            assert_eq!(pieces(text), Err(BadWord::Brace(text.to_owned())), "{text}");
        }
        for (text, name) in [("{}", ""), ("x{a b}", "a b"), ("{\"a\": 1}", "\"a\": 1")] {
            assert_eq!(pieces(text), Err(BadWord::Name(text.to_owned(), name.to_owned())), "{text}");
        }
        let said = pieces("x{a b}").unwrap_err().to_string();
        assert!(
            said.starts_with("\"{a b}\" in \"x{a b}\" names no argument") && said.ends_with("write {{ and }}"),
            "{said}"
        );
        assert!(pieces("${NONE}").unwrap_err().to_string().contains("NONE is not set"));
    }
}
