//! Making text that a server or a guest wrote safe to show on a terminal or to put into a log.
//!
//! Escaped are control characters, the bidirectional controls of Unicode (UAX #9) that reorder what a person reads,
//! and characters of no width that hide in it.

use std::fmt;

/// Shows `0` on one line with everything that could steer a terminal or deceive a reader escaped.
///
/// ```
/// # use footbridge_proto::text::Escaped;
/// assert_eq!(Escaped("a\u{1b}[2Jb\n").to_string(), "a\\u{1b}[2Jb\\n");
/// assert_eq!(Escaped("ge\u{202e}txt").to_string(), "ge\\u{202e}txt");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(self.0, f, false)
    }
}

/// As [`Escaped`], but line breaks and tabs stay: for text that is meant to have several lines.
#[derive(Debug, Clone, Copy)]
pub struct EscapedLines<'a>(pub &'a str);

impl fmt::Display for EscapedLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(self.0, f, true)
    }
}

fn write_escaped(text: &str, out: &mut impl fmt::Write, keep_lines: bool) -> fmt::Result {
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        if !needs_escape(c) || (keep_lines && matches!(c, '\n' | '\t')) {
            continue;
        }
        out.write_str(&text[plain..at])?;
        plain = at + c.len_utf8();
        match c {
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c => write!(out, "\\u{{{:x}}}", u32::from(c))?,
        }
    }
    out.write_str(&text[plain..])
}

/// Shows JSON text with what may not reach a terminal as its `\\u` escapes: the same values, and plain to read.
///
/// Such characters stand in JSON only within texts, where their escapes mean the same; line breaks of a pretty text are
/// not among them, so that it must be in one line.
#[derive(Debug, Clone, Copy)]
pub struct SafeJson<'a>(pub &'a str);

impl fmt::Display for SafeJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, c)) = first_to_escape(rest) {
            f.write_str(&rest[..at])?;
            rest = &rest[at + c.len_utf8()..];
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(f, "\\u{unit:04x}")?;
            }
        }
        f.write_str(rest)
    }
}

/// JSON text that becomes what [`SafeJson`] shows of it; the same where nothing needs to be escaped.
#[must_use]
pub fn safe_json(text: String) -> String {
    if first_to_escape(&text).is_none() { text } else { SafeJson(&text).to_string() }
}

/// So many bytes are looked at together.
const BLOCK: usize = 32;

/// The first character that needs to be escaped, and where it is. Every record is looked through, so what is printable
/// ASCII is passed over as bytes, in blocks.
fn first_to_escape(text: &str) -> Option<(usize, char)> {
    let is_other = |byte: &u8| !(b' '..=b'~').contains(byte);
    let mut at = 0;
    loop {
        let rest = &text.as_bytes()[at..];
        // All bytes of a block are looked at: the compiler makes that few steps.
        let is_plain = |block: &&[u8; BLOCK]| !block.iter().fold(false, |any, byte| any | is_other(byte));
        let plain = rest.as_chunks().0.iter().take_while(is_plain).count() * BLOCK;
        at += plain + rest.get(plain..)?.iter().position(is_other)?;
        let c = text[at..].chars().next()?;
        if needs_escape(c) {
            return Some((at, c));
        }
        at += c.len_utf8();
    }
}

/// Whether `c` may not reach a terminal as it is: what steers it, what reorders text, and all that Unicode calls
/// ignorable by default (`Default_Ignorable_Code_Point`), which shows as nothing.
#[must_use]
pub fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}'                    // soft hyphen
            | '\u{034f}'                  // combining grapheme joiner
            | '\u{061c}'                  // Arabic letter mark
            | '\u{115f}' | '\u{1160}'     // Hangul fillers
            | '\u{17b4}' | '\u{17b5}'     // Khmer vowels that do not show
            | '\u{180b}'..='\u{180f}'     // Mongolian variation selectors, vowel separator
            | '\u{200b}'..='\u{200f}'     // zero width, left and right marks
            | '\u{2028}'..='\u{202e}'     // line and paragraph separators, embeddings, overrides
            | '\u{2060}'..='\u{206f}'     // word joiner, invisible operators, isolates
            | '\u{3164}' | '\u{ffa0}'     // Hangul fillers
            | '\u{fe00}'..='\u{fe0f}'     // variation selectors
            | '\u{feff}'                  // byte order mark
            | '\u{fff0}'..='\u{fffb}'     // kept for ignorables, interlinear annotation
            | '\u{1bca0}'..='\u{1bca3}'   // shorthand format controls
            | '\u{1d173}'..='\u{1d17a}'   // musical format controls
            | '\u{e0000}'..='\u{e0fff}'   // tags, more variation selectors
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_of_any_script_stays() {
        for s in ["", "Zürich", "東京", "مرحبا", "🎈"] {
            assert_eq!(Escaped(s).to_string(), s);
        }
    }

    #[test]
    fn what_shows_as_nothing_is_escaped() {
        for c in "\u{34f}\u{17b4}\u{17b5}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{180b}\u{180f}\u{fe0f}\u{fff4}\u{1bca0}\u{1d17a}\u{e0041}\u{e0100}".chars() {
            assert_eq!(Escaped(&format!("a{c}b")).to_string(), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
    }

    #[test]
    fn json_keeps_what_it_says_and_shows_as_what_it_is() {
        for (text, safe) in [
            ("", ""),
            ("plain ~", "plain ~"),
            ("Zürich 🎈", "Zürich 🎈"),
            ("\u{7f}a\u{200b}ü\u{e0041}", "\\u007fa\\u200bü\\udb40\\udc41"),
            ("a\n", "a\\u000a"),
        ] {
            assert_eq!(SafeJson(text).to_string(), safe);
            for before in 0..70 {
                let before = "x".repeat(before);
                assert_eq!(safe_json(format!("{before}{text}")), format!("{before}{safe}"));
            }
        }
    }

    #[test]
    fn lines_stay_only_where_asked() {
        assert_eq!(EscapedLines("a\n\tb\r\u{7}").to_string(), "a\n\tb\\r\\u{7}");
        assert_eq!(Escaped("a\n\tb").to_string(), "a\\n\\tb");
    }
}
