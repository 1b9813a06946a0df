//! Whether a command may have changed the colours of the terminal itself, so that text would not show.
//!
//! It looks for operating system commands and nothing else, whatever else they stand in: a command cannot set a colour
//! without one that is seen here. One that may do so counts.

/// Those that change no colour: titles, the working folder, links, notes, the pointer, the clipboard, marks of shells.
const HARMLESS: [&[u8]; 12] = [b"0", b"1", b"2", b"7", b"8", b"9", b"22", b"52", b"133", b"633", b"777", b"3008"];
/// Those that set a colour for each value, and only ask for it where that is `?`; of the palette its index comes first.
const ASKS: [&[u8]; 3] = [b"10", b"11", b"12"];
const PALETTE: &[u8] = b"4";
/// Longest number of a command that is looked at.
const NUMBER: usize = 4;

/// Puts the palette, text, background, cursor and selection back to what they are configured to be: xterm's, and the
/// console's of Linux.
pub(super) const BACK: &str =
    "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b]117\x1b\\\x1b]119\x1b\\\x1b]R\x1b\\";

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Colours {
    may_be_changed: bool,
    before: u8,
    at: At,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Elsewhere,
    /// After ESC, and control characters, which are carried out in between.
    Escape,
    /// In the number of an operating system command.
    Number(Vec<u8>),
    /// In an index of the palette.
    Index,
    /// Before a value, or behind one that asks; with `indexed`, one of the palette.
    Value {
        indexed: bool,
    },
    Asked {
        indexed: bool,
    },
}

impl Colours {
    pub(super) fn may_be_changed(&self) -> bool {
        self.may_be_changed
    }

    pub(super) fn take(&mut self, byte: u8) {
        // By one character: U+009D, and by a single byte where it continues no other.
        let begins = byte == 0x9d && (self.before == 0xc2 || self.before < 0x80);
        self.before = byte;
        self.at = match (std::mem::take(&mut self.at), byte) {
            (At::Number(mut number), b'0'..=b'9') if number.len() < NUMBER => {
                number.push(byte);
                At::Number(number)
            }
            (At::Number(number), b';') if ASKS.contains(&number.as_slice()) => At::Value { indexed: false },
            (At::Number(number), b';') if number == PALETTE => At::Index,
            (At::Index, b'0'..=b'9') => At::Index,
            (At::Index, b';') => At::Value { indexed: true },
            (At::Value { indexed }, b'?') => At::Asked { indexed },
            (At::Asked { indexed: true }, b';') => At::Index,
            (At::Asked { indexed: false }, b';') => At::Value { indexed: false },
            (At::Asked { .. }, 0x07) => At::Elsewhere,
            (At::Asked { .. }, 0x1b) => At::Escape,
            (At::Number(number), _) => {
                self.may_be_changed |= !HARMLESS.contains(&number.as_slice());
                if byte == 0x1b { At::Escape } else { At::Elsewhere }
            }
            (At::Index | At::Value { .. } | At::Asked { .. }, _) => {
                self.may_be_changed = true;
                if byte == 0x1b { At::Escape } else { At::Elsewhere }
            }
            (At::Escape, b']') => At::Number(Vec::new()),
            (At::Escape, 0..=0x1f | 0x7f) | (_, 0x1b) => At::Escape,
            _ if begins => At::Number(Vec::new()),
            _ => At::Elsewhere,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_be_changed(bytes: &[u8]) -> bool {
        let mut colours = Colours::default();
        bytes.iter().for_each(|byte| colours.take(*byte));
        colours.may_be_changed()
    }

    #[test]
    fn whatever_sets_a_colour_is_seen() {
        for bytes in [
            &b"\x1b]10;#ffffff\x07"[..],
            b"\x1b]4;0;red\x1b\\",
            b"x\x1b\x00]11;white",
            b"\x1bP\x1b]0011;white",
            b"\xc2\x9d11;white\xc2\x9c",
            b"a\x9d11;white",
            b"\x1b]Pf000000",
            b"\x1b]2;t\x07\x1b]17;x",
            b"\x1b]1337;SetColors=fg=000",
            b"\x1b]10;?;#fff\x07",
            b"\x1b]4;0;?;1;#fff\x07",
            b"\x1b]11;?x\x07",
        ] {
            assert!(may_be_changed(bytes), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_shells_write_all_the_time_is_not_taken_for_it() {
        for bytes in [
            "\x1b]0;title\x07\x1b]7;file:///x\x1b\\\x1b]133;A\x07\x1b]8;;https://x\x07",
            "\x1b[31mred\x1b[0m ]10; \u{201d}]4;",
            "\u{9e}4;",
            "\x1b]11;?\x07\x1b]10;?;?\x1b\\\x1b]4;0;?;255;?\x07\x1b]22;pointer\x07",
        ] {
            assert!(!may_be_changed(bytes.as_bytes()), "{bytes:?}");
        }
    }
}
