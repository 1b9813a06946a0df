//! Whether a command wrote anything to its terminal that may stay in force once it has ended.
//!
//! It reads less than a terminal does, and takes what it does not know for what stays: a command that misleads it only has
//! more put back than it changed.

/// Private modes that programs switch and leave as they were, and that make nothing come as if it were typed: wrapping
/// lines, a cursor that blinks or shows, bracketed paste, synchronized output. Whether they are left on is known besides.
const KNOWN: [&[u8]; 5] = [b"7", b"12", b"25", b"2004", b"2026"];
/// Longest parameters of a sequence that are looked at; colours have many.
const LONGEST: usize = 64;

/// What was written so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    most: Most,
    within: Within,
}

/// What was written at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Most {
    /// Text and line ends.
    #[default]
    Text,
    /// Colours, where text goes, and what is erased.
    Drawn,
    /// Besides, what stays no longer than it is written, but that the terminal may answer or show elsewhere: titles, links,
    /// questions.
    Told,
    /// Something else.
    Anything,
}

/// Where in the output this is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    /// In a character of which so many bytes are to come; `control` is one that a control character may be.
    Character {
        more: u8,
        control: bool,
    },
    Escape,
    /// After `ESC (`, which says what letters look like.
    Letters,
    /// In a control sequence, with its parameters.
    Sequence(Vec<u8>),
}

impl Written {
    pub(super) fn is_text(&self) -> bool {
        self.most == Most::Text
    }

    /// Whether nothing else stays than colours, and nothing is answered.
    pub(super) fn is_drawn(&self) -> bool {
        self.most <= Most::Drawn
    }

    /// Whether it can have switched no mode and no screen.
    pub(super) fn is_told(&self) -> bool {
        self.most <= Most::Told
    }

    pub(super) fn take(&mut self, byte: u8) {
        let (most, within) = match (std::mem::take(&mut self.within), byte) {
            (_, 0x1b) => (Most::Drawn, Within::Escape),
            // Bell, backspace, tab, line ends.
            (Within::Text | Within::Character { .. }, 0x07..=0x0d) => (Most::Text, Within::Text),
            // What a terminal passes over, or answers.
            (Within::Text | Within::Character { .. }, 0 | 0x05) => (Most::Told, Within::Text),
            (_, 0..=0x1f) => (Most::Anything, Within::Text),
            // A title, a link, a colour of the palette; what comes of it is text here.
            (Within::Escape, b']') => (Most::Told, Within::Text),
            (Within::Escape, b'[') => (Most::Drawn, Within::Sequence(Vec::new())),
            (Within::Escape, b'(') => (Most::Drawn, Within::Letters),
            // The cursor saved, put back, and moved by a line; the end of a string.
            (Within::Escape, b'7' | b'8' | b'D' | b'E' | b'M' | b'\\') => (Most::Drawn, Within::Text),
            (Within::Letters, b'B') => (Most::Drawn, Within::Text),
            (Within::Sequence(mut so_far), 0x20..=0x3f) if so_far.len() < LONGEST => {
                so_far.push(byte);
                (Most::Drawn, Within::Sequence(so_far))
            }
            (Within::Sequence(parameters), 0x40..=0x7e) => (what_is(&parameters, byte), Within::Text),
            (Within::Escape | Within::Letters | Within::Sequence(_), _) => (Most::Anything, Within::Text),
            (Within::Character { control: true, .. }, 0x80..=0x9f) => (Most::Anything, Within::Text),
            (Within::Character { more: more @ 2.., .. }, 0x80..=0xbf) => {
                (Most::Text, Within::Character { more: more - 1, control: false })
            }
            (Within::Character { .. }, 0x80..=0xbf) => (Most::Text, Within::Text),
            (Within::Text | Within::Character { .. }, byte) => match byte {
                0xc2..=0xdf => (Most::Text, Within::Character { more: 1, control: byte == 0xc2 }),
                0xe0..=0xef => (Most::Text, Within::Character { more: 2, control: false }),
                0xf0..=0xf4 => (Most::Text, Within::Character { more: 3, control: false }),
                // By itself it is a control character, where characters are single bytes.
                0x80..=0x9f => (Most::Anything, Within::Text),
                _ => (Most::Text, Within::Text),
            },
        };
        self.most = self.most.max(most);
        self.within = within;
    }
}

/// What a whole control sequence is.
fn what_is(parameters: &[u8], last: u8) -> Most {
    let is_plain = parameters.iter().all(|byte| byte.is_ascii_digit() || [b';', b':'].contains(byte));
    let is_known = match last {
        b'h' | b'l' => parameters.strip_prefix(b"?").is_some_and(|mode| KNOWN.contains(&mode)),
        // Where text goes, what is erased, inserted or removed, and colours.
        b'@'..=b'H' | b'J'..=b'M' | b'P' | b'X' | b'`' | b'a' | b'd'..=b'f' | b'm' => is_plain,
        _ => false,
    };
    match last {
        _ if is_known => Most::Drawn,
        b'n' | b'c' => Most::Told,
        _ => Most::Anything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: &[u8]) -> Written {
        let mut written = Written::default();
        bytes.iter().for_each(|byte| written.take(*byte));
        written
    }

    #[test]
    fn text_and_what_only_draws_are_told_from_all_else() {
        assert!(after("a\tb\r\n\x07日本 é \u{a0}\u{1f600}".as_bytes()).is_text());
        for drawn in [
            "\x1b[1;31mred\x1b[0m\x1b(B\x1b[m\x1b[2K\r\x1b[3;4H\x1b[J",
            "\x1b[?25l\x1b[38:2::1:2:3m\x1b[?25h\x1b7\x1b[1A\x1b8\x1b[?2004l",
        ] {
            let written = after(drawn.as_bytes());
            assert!(!written.is_text() && written.is_drawn(), "{drawn:?}");
        }
        for else_ in [
            &b"\x1bP"[..],
            b"\x1b[?1003h",
            b"\x1b[?25;1003h",
            b"\x1b[?1003r",
            b"\x1b[>4;2m",
            b"\x1b[4h",
            b"\x1b(0",
            b"\x0e",
            b"a\x90b",
            b"\xc2\x9d0;t",
            b"\x1b[1\x0em",
        ] {
            assert!(!after(else_).is_told(), "{}", else_.escape_ascii());
        }
        for told in [&b"\x1b[c"[..], b"\x1b]0;t\x07", b"\x1b]8;;a\x1b\\", b"\x1b[6n", b"\x05", b"a\0b", b"\x1b[\x1b[c"]
        {
            let written = after(told);
            assert!(!written.is_drawn() && written.is_told(), "{}", told.escape_ascii());
        }
    }
}
