//! A text as it reads where nothing in it is escaped, and where each part of it stands in the text itself.
//!
//! An encoder may escape any letter of a value, and another one all but that: they cannot be listed as spellings. So the
//! escapes of JSON, the character references of HTML and percent signs are read, up to three of them in one another.
//!
//! It refuses to know what is looked for. Of a text it takes a few times the memory: who has a large one reads it in
//! windows.

use memchr::{memchr3, memchr3_iter};

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

/// How references by number are read that have no semicolon: browsers read them, and who reads none, as of JSON, has what
/// follows as it is. What stands before a value may be such a reference's beginning, and the value its digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    Read,
    Kept,
}

/// The text, and what was done to get to it.
pub(super) struct Unescaped {
    bare: Bare,
    /// After each round. What is a value after one may be an escape to the next.
    texts: Vec<Vec<u8>>,
    rounds: Vec<Round>,
}

/// Behind each escape: where that is in the text that it gave, and in the one that it stood in; and whether one of them was
/// a reference without a semicolon.
struct Round {
    behind: Vec<(u32, u32)>,
    has_bare: bool,
}

impl Unescaped {
    /// All readings of a text; none where nothing is escaped that the spellings of a value do not have.
    pub(super) fn all_of(text: &[u8]) -> impl Iterator<Item = Self> + use<> {
        let all = Self::of(text);
        let other = all.as_ref().filter(|all| all.has_bare()).and_then(|_| Self::read(text, Bare::Kept));
        all.into_iter().chain(other)
    }

    /// As browsers read it.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        if !is_worthwhile(text) || u32::try_from(text.len()).is_err() {
            return None;
        }
        Self::read(text, Bare::Read)
    }

    fn read(text: &[u8], bare: Bare) -> Option<Self> {
        let (plain, round) = unescape(text, bare)?;
        let mut all = Self { bare, texts: vec![plain], rounds: vec![round] };
        while all.goes_on() {}
        Some(all)
    }

    /// All readings of a text that goes on: as far as no escape at its end is only a part of one.
    pub(super) fn all_of_part(text: &[u8]) -> impl Iterator<Item = Self> + use<> {
        let all = Self::read_part(text, Bare::Read);
        let other = all.has_bare().then(|| Self::read_part(text, Bare::Kept));
        [all].into_iter().chain(other)
    }

    fn read_part(text: &[u8], bare: Bare) -> Self {
        let mut all = Self { bare, texts: vec![finished(text, bare, ROUNDS).to_owned()], rounds: Vec::new() };
        while all.goes_on() {
            let end = finished(all.text(), bare, ROUNDS - all.rounds.len()).len();
            all.texts.iter_mut().last().into_iter().for_each(|text| text.truncate(end));
        }
        all
    }

    /// Reads what is still escaped, once more; false where there is nothing to do.
    fn goes_on(&mut self) -> bool {
        if self.rounds.len() == ROUNDS {
            return false;
        }
        let Some((text, round)) = unescape(self.text(), self.bare) else { return false };
        self.texts.push(text);
        self.rounds.push(round);
        true
    }

    fn has_bare(&self) -> bool {
        self.rounds.iter().any(|round| round.has_bare)
    }

    /// With nothing escaped in it any more.
    pub(super) fn text(&self) -> &[u8] {
        self.texts.last().map_or(&[], Vec::as_slice)
    }

    /// After each round, with how many those were.
    pub(super) fn texts(&self) -> impl Iterator<Item = (usize, &[u8])> {
        // Of a text that goes on the first is what it was itself.
        let before = self.rounds.len() + 1 - self.texts.len();
        self.texts.iter().enumerate().map(move |(at, text)| (at + before, text.as_slice()))
    }

    /// Where a position of the text after so many rounds, between two characters, is in the escaped one.
    pub(super) fn origin(&self, rounds: usize, position: usize) -> usize {
        self.rounds[..rounds].iter().rev().fold(position, |position, round| round.origin(position))
    }
}

/// Whether there is an escape that the spellings of a value do not have.
fn is_worthwhile(text: &[u8]) -> bool {
    let behind = |at: usize| text.get(at + 1).copied();
    memchr3_iter(b'\\', b'&', b'%', text).any(|at| text[at] != b'\\' || matches!(behind(at), Some(b'u' | b'/')))
}

impl Round {
    fn origin(&self, position: usize) -> usize {
        let before = self.behind.partition_point(|(here, _)| *here as usize <= position);
        let (here, there) = before.checked_sub(1).map_or((0, 0), |last| self.behind[last]);
        there as usize + (position - here as usize)
    }
}

/// The text with every escape read once; none where there is none.
fn unescape(text: &[u8], bare: Bare) -> Option<(Vec<u8>, Round)> {
    let (mut plain, mut behind, mut done, mut at) = (Vec::new(), Vec::new(), 0, 0);
    let mut has_bare = false;
    while let Some(found) = memchr3(b'\\', b'&', b'%', &text[at..]) {
        let start = at + found;
        let Some((character, length)) = escape(&text[start..], bare) else {
            at = start + 1;
            continue;
        };
        has_bare |= text[start] == b'&' && text[start + length - 1] != b';';
        plain.extend_from_slice(&text[done..start]);
        plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        (done, at) = (start + length, start + length);
        behind.push((u32::try_from(plain.len()).ok()?, u32::try_from(done).ok()?));
    }
    if behind.is_empty() {
        return None;
    }
    plain.extend_from_slice(&text[done..]);
    Some((plain, Round { behind, has_bare }))
}

/// The character that an escape at the beginning stands for, and the bytes that it takes.
fn escape(text: &[u8], bare: Bare) -> Option<(char, usize)> {
    match text.first()? {
        b'&' => return reference(text, bare),
        b'%' => return percent(text),
        _ => {}
    }
    let plain = match text.get(1)? {
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

fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let first = unit(text)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, 6));
    }
    let second = unit(text.get(6..)?)?;
    let mut pair = char::decode_utf16([first, second]);
    Some((pair.next()?.ok()?, 12))
}

fn unit(text: &[u8]) -> Option<u16> {
    let digits = hexadecimal(text.strip_prefix(b"\\u")?.get(..4)?)?;
    u16::from_str_radix(digits, 16).ok()
}

fn reference(text: &[u8], bare: Bare) -> Option<(char, usize)> {
    if let Some((name, character)) = NAMED.iter().find(|(name, _)| text.starts_with(name.as_bytes())) {
        return Some((*character, name.len()));
    }
    let (digits, radix) = by_number(text)?;
    let count = digits.iter().take(DIGITS).take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let number = u32::from_str_radix(std::str::from_utf8(&digits[..count]).ok()?, radix).ok()?;
    let semicolon = usize::from(digits[count..].starts_with(b";"));
    if semicolon == 0 && bare == Bare::Kept {
        return None;
    }
    Some((char::from_u32(number)?, text.len() - digits.len() + count + semicolon))
}

/// What follows the beginning of a character reference by number, and what its digits are of.
fn by_number(text: &[u8]) -> Option<(&[u8], u32)> {
    match text.strip_prefix(b"&#")? {
        [b'x' | b'X', digits @ ..] => Some((digits, 16)),
        digits => Some((digits, 10)),
    }
}

/// An encoded byte that is a character by itself.
fn percent(text: &[u8]) -> Option<(char, usize)> {
    let byte = u8::from_str_radix(hexadecimal(text.get(1..3)?)?, 16).ok().filter(u8::is_ascii)?;
    Some((char::from(byte), 3))
}

/// Digits and nothing else.
fn hexadecimal(digits: &[u8]) -> Option<&str> {
    digits.iter().all(u8::is_ascii_hexdigit).then(|| std::str::from_utf8(digits).ok())?
}

/// Longest escape: a character reference by number with all digits that are read.
const LONGEST: usize = "&#x;".len() + DIGITS;

/// A text without the escapes at its end that more of it could complete, or make others. What one of them stands for may
/// be a letter of the one before it, in as many rounds as it is read in.
fn finished(text: &[u8], bare: Bare, rounds: usize) -> &[u8] {
    (0..rounds.max(1)).fold(text, |text, _| &text[..unfinished(text, bare)])
}

/// Where an escape begins at the end of a text that more of it could complete, or make another one; its end where none
/// does.
fn unfinished(text: &[u8], bare: Bare) -> usize {
    let mut at = text.len().saturating_sub(LONGEST);
    // From the first of backslashes in a row, of which two are one.
    while at > 0 && text[at - 1] == b'\\' {
        at -= 1;
    }
    while let Some(found) = memchr3(b'\\', b'&', b'%', &text[at..]) {
        let start = at + found;
        if could_go_on(&text[start..]) {
            return start;
        }
        at = start + escape(&text[start..], bare).map_or(1, |(_, length)| length);
    }
    text.len()
}

/// Whether this, which begins as an escape does, is only a part of one as far as it goes.
fn could_go_on(text: &[u8]) -> bool {
    let are_hexadecimal = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match text {
        [b'\\'] => true,
        [b'\\', b'u', digits @ ..] if digits.len() < 4 => are_hexadecimal(digits),
        // The first half of a pair.
        [b'\\', b'u', first @ ..] if first.len() < 10 => {
            unit(text).is_some_and(|unit| (0xd800..0xdc00).contains(&unit))
                && b"\\u".starts_with(&first[4..first.len().min(6)])
        }
        [b'%', digits @ ..] => digits.len() < 2 && are_hexadecimal(digits),
        [b'&', ..] => match by_number(text) {
            // Without its semicolon a number goes on for as long as there are digits.
            Some((digits, radix)) => {
                digits.len() < DIGITS && digits.iter().all(|byte| char::from(*byte).is_digit(radix))
            }
            None => NAMED.iter().any(|(name, _)| name.len() > text.len() && name.as_bytes().starts_with(text)),
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands for a part of the plain text.
    fn stands_for<'t>(escaped: &'t str, plain: &str) -> &'t str {
        let all = Unescaped::of(escaped.as_bytes()).unwrap();
        let start = std::str::from_utf8(all.text()).unwrap().find(plain).unwrap();
        let origin = |at| all.origin(all.rounds.len(), at);
        &escaped[origin(start)..origin(start + plain.len())]
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
            assert!(Unescaped::of(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Unescaped::of(b"plain").is_none());
    }

    #[test]
    fn what_more_text_could_complete_is_open() {
        for (text, open) in [
            ("abc", ""),
            ("abc\\", "\\"),
            (r"a\\", ""),
            (r"a\u00", r"\u00"),
            (r"a\u0063", ""),
            (r"a\ud83d", r"\ud83d"),
            (r"a\ud83d\ude", r"\ud83d\ude"),
            (r"a\ud83dx", ""),
            (r"a\n", ""),
            ("a%", "%"),
            ("a%4", "%4"),
            ("a%41", ""),
            ("a%zz", ""),
            ("a&", "&"),
            ("a&am", "&am"),
            ("a&amp;", ""),
            ("a&x", ""),
            ("a&#", "&#"),
            ("a&#x4", "&#x4"),
            ("a&#65;", ""),
        ] {
            assert_eq!(&text[unfinished(text.as_bytes(), Bare::Read)..], open, "{text}");
        }
        for count in [39, 40, 41, 100] {
            let text = "\\".repeat(count);
            assert_eq!(unfinished(text.as_bytes(), Bare::Read), count - count % 2, "{count}");
        }
    }
}
