//! A text as it reads where nothing in it is escaped, and where each part of it stands in the text itself.
//!
//! An encoder may escape any letter of a value, and another one all but that: they cannot be listed as spellings. So the
//! escapes of JSON, the character references of HTML and percent signs are read, up to three of them in one another.
//!
//! It refuses to know what is looked for. Its memory is bounded by twice that of the text.

use memchr::memchr3_iter;

/// How deep escapes may stand in one another: a JSON text, in a JSON text, that an HTML encoder wrote.
const ROUNDS: usize = 3;

/// The references of HTML that encoders write by name.
const NAMED: [(&str, char); 31] = [
    ("&amp;", '&'),
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&quot;", '"'),
    ("&apos;", '\''),
    ("&excl;", '!'),
    ("&num;", '#'),
    ("&dollar;", '$'),
    ("&percnt;", '%'),
    ("&lpar;", '('),
    ("&rpar;", ')'),
    ("&ast;", '*'),
    ("&plus;", '+'),
    ("&comma;", ','),
    ("&period;", '.'),
    ("&sol;", '/'),
    ("&colon;", ':'),
    ("&semi;", ';'),
    ("&equals;", '='),
    ("&quest;", '?'),
    ("&commat;", '@'),
    ("&lsqb;", '['),
    ("&bsol;", '\\'),
    ("&rsqb;", ']'),
    ("&Hat;", '^'),
    ("&lowbar;", '_'),
    ("&grave;", '`'),
    ("&lcub;", '{'),
    ("&vert;", '|'),
    ("&rcub;", '}'),
    ("&hyphen;", '\u{2010}'),
];

/// Most digits of a character reference by number that are read, zeros in front among them.
const DIGITS: usize = 32;

/// The text, and what was done to get to it.
pub(super) struct Unescaped {
    text: String,
    rounds: Vec<Round>,
}

/// Behind each escape: where that is in the text that it gave, and in the one that it stood in.
struct Round(Vec<(u32, u32)>);

impl Unescaped {
    /// None where nothing is escaped that the spellings of a value do not have.
    pub(super) fn of(text: &str) -> Option<Self> {
        if !is_worthwhile(text.as_bytes()) || u32::try_from(text.len()).is_err() {
            return None;
        }
        let (text, round) = unescape(text)?;
        let mut all = Self { text, rounds: vec![round] };
        while all.rounds.len() < ROUNDS
            && let Some((text, round)) = unescape(&all.text)
        {
            all.text = text;
            all.rounds.push(round);
        }
        Some(all)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where a position of the text, between two characters, is in the escaped one.
    pub(super) fn origin(&self, position: usize) -> usize {
        self.rounds.iter().rev().fold(position, |position, round| round.origin(position))
    }
}

/// Whether there is an escape that the spellings of a value do not have.
fn is_worthwhile(text: &[u8]) -> bool {
    let behind = |at: usize| text.get(at + 1).copied();
    memchr3_iter(b'\\', b'&', b'%', text).any(|at| text[at] != b'\\' || matches!(behind(at), Some(b'u' | b'/')))
}

impl Round {
    fn origin(&self, position: usize) -> usize {
        let before = self.0.partition_point(|(here, _)| *here as usize <= position);
        let (here, there) = before.checked_sub(1).map_or((0, 0), |last| self.0[last]);
        there as usize + (position - here as usize)
    }
}

/// The text with every escape read once; none where there is none.
fn unescape(text: &str) -> Option<(String, Round)> {
    let (mut plain, mut behind, mut done, mut at) = (String::new(), Vec::new(), 0, 0);
    while let Some(found) = text[at..].find(['\\', '&', '%']) {
        let start = at + found;
        let Some((character, length)) = escape(&text[start..]) else {
            at = start + 1;
            continue;
        };
        plain.push_str(&text[done..start]);
        plain.push(character);
        (done, at) = (start + length, start + length);
        behind.push((u32::try_from(plain.len()).ok()?, u32::try_from(done).ok()?));
    }
    if behind.is_empty() {
        return None;
    }
    plain.push_str(&text[done..]);
    Some((plain, Round(behind)))
}

/// The character that an escape at the beginning stands for, and the bytes that it takes.
fn escape(text: &str) -> Option<(char, usize)> {
    match text.as_bytes().first()? {
        b'&' => return reference(text),
        b'%' => return percent(text),
        _ => {}
    }
    let plain = match text.as_bytes().get(1)? {
        b'u' => return unicode(text),
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        other @ (b'"' | b'\\' | b'/') => char::from(*other),
        _ => return None,
    };
    Some((plain, 2))
}

fn unicode(text: &str) -> Option<(char, usize)> {
    let first = unit(text)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, 6));
    }
    let second = unit(text.get(6..)?)?;
    let mut pair = char::decode_utf16([first, second]);
    Some((pair.next()?.ok()?, 12))
}

fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

fn reference(text: &str) -> Option<(char, usize)> {
    if let Some((name, character)) = NAMED.iter().find(|(name, _)| text.starts_with(name)) {
        return Some((*character, name.len()));
    }
    let number = text.strip_prefix("&#")?;
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let count = digits.bytes().take(DIGITS).take_while(|byte| char::from(*byte).is_digit(radix)).count();
    let number = u32::from_str_radix(&digits[..count], radix).ok()?;
    // Browsers do without the semicolon.
    let semicolon = usize::from(digits[count..].starts_with(';'));
    Some((char::from_u32(number)?, text.len() - digits.len() + count + semicolon))
}

/// An encoded byte that is a character by itself.
fn percent(text: &str) -> Option<(char, usize)> {
    let digits = text.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    let byte = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)?;
    Some((char::from(byte), 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands for a part of the plain text.
    fn stands_for<'t>(escaped: &'t str, plain: &str) -> &'t str {
        let all = Unescaped::of(escaped).unwrap();
        let start = all.text().find(plain).unwrap();
        &escaped[all.origin(start)..all.origin(start + plain.len())]
    }

    #[test]
    fn a_part_is_found_with_all_that_it_is_written_in() {
        assert_eq!(stands_for(r#"a\nb\u0063d e"#, "bcd"), r"b\u0063d");
        assert_eq!(stands_for(r#"a\n\u0063d\u0065 e"#, "cde"), r"\u0063d\u0065");
        assert_eq!(stands_for(r#"x\\u0063\\\\u0064\/e"#, "cd/"), r"\\u0063\\\\u0064\/");
        assert_eq!(stands_for("a\u{e9}&amp;&#x41;&#66;c", "&AB"), "&amp;&#x41;&#66;");
        assert_eq!(stands_for(r"a\u0026amp;b", "a&b"), r"a\u0026amp;b");
        assert_eq!(stands_for("x&#83e&#x00000053;&sol;%41b", "SeS/Ab"), "&#83e&#x00000053;&sol;%41b");
        assert_eq!(stands_for(r"a\ud83d\ude00b", "\u{1f600}"), r"\ud83d\ude00");
    }

    #[test]
    fn what_is_no_escape_stays() {
        for text in [r"C:\users \u12 \ud83d x", "a & b &nosuch; &#; &#x110000; & 100% %zz %e9", r"\u+123 \"] {
            assert!(Unescaped::of(text).is_none(), "{text}");
        }
        assert!(Unescaped::of("plain").is_none());
    }
}
