//! What a command has done to the terminal, so that somebody else can use it for a while and give it back.
//!
//! Everything that the command writes goes through [`Modes::feed`] when it has gone to the terminal. Of all that, it
//! knows the modes that would disturb whoever reads and draws there (ECMA-48, and the private ones of DEC and xterm),
//! whether the alternate screen is in use, and the piece of a sequence that is not whole yet.
//!
//! What takes the terminal over trusts nothing of it: whatever the command wrote, half a sequence or a string without
//! an end included, the screen is a clean one afterwards. A command that misleads this spoils its own screen only.

mod colours;
mod written;

use std::collections::BTreeSet;

use colours::Colours;
use written::Written;

use crate::terminal::{CLEAN, MAIN_SCREEN, SWITCHED_OFF};

/// Private modes that are off at first: cursor keys, reversed screen, origin, margins left and right, mouse, focus,
/// bracketed paste, synchronized output, reports of colours and of the window's size, keys as Windows has them.
const OFF: [u16; 19] =
    [1, 5, 6, 69, 9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031, 2048, 9001];
/// Private modes that are on at first: wrapping lines, the cursor shows.
const ON: [u16; 2] = [7, 25];
/// The private modes that turn to the alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];
/// Public modes that are off at first: locked keyboard, insert, Enter sends a line feed too.
const PUBLIC: [u16; 3] = [2, 4, 20];
/// The public mode that is on at first: the terminal does not echo keys itself.
const NO_ECHO: u16 = 12;

/// Longest piece of a sequence that is kept. Of a longer one the rest is swallowed as its middle is missing.
const PIECE: usize = 4096;
/// Largest screen that is written full, in rows and in columns.
const MOST: u16 = 1000;
/// Most parameters of a sequence that are looked at.
const PARAMETERS: usize = 64;

/// Ends a sequence or a string, and colours: nothing of it shows.
pub(super) const ENDS: &str = "\x18\x1b\\\x1b[0m";

/// The private mode by which rows are counted from the top of the scrolling region.
const ORIGIN: u16 = 6;

/// Where in the output the terminal is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum At {
    /// Between sequences and characters.
    #[default]
    Ground,
    /// In a character of which so many bytes are to come.
    Character(u8),
    /// After ESC, and after intermediate bytes.
    Escape,
    /// After CSI.
    Control,
    /// In a string: of an operating system command, which BEL ends too, or another.
    String { bell: bool },
    /// After ESC in a string.
    StringEscape { bell: bool },
}

/// What the command has set, as far as it matters.
#[derive(Debug, Default)]
pub(super) struct Modes {
    at: At,
    piece: Vec<u8>,
    /// Those that are not as they are at first.
    private: BTreeSet<u16>,
    public: BTreeSet<u16>,
    alternate: bool,
    keypad: bool,
    /// How much of the keyboard comes as sequences (modifyOtherKeys of xterm).
    other_keys: Option<String>,
    /// The parameters that set the scrolling region.
    region: Option<String>,
    colours: Colours,
    written: Written,
}

impl Modes {
    /// Takes what has gone to the terminal.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.colours.take(*byte);
            self.written.take(*byte);
            self.take(*byte);
        }
    }

    /// Whether the command left the terminal as one that only wrote text does, in whatever colours, and asked it nothing.
    pub(super) fn is_left_clean(&self) -> bool {
        self.is_as_at_first() && self.written.is_drawn()
    }

    /// Whether no mode, no screen and no colour of the terminal is another than at first, and nothing is open.
    fn is_as_at_first(&self) -> bool {
        let no_modes = self.private.is_empty() && self.public.is_empty() && self.region.is_none();
        let no_more = !self.keypad && self.other_keys.is_none() && !self.colours.may_be_changed();
        self.at == At::Ground && no_modes && !self.alternate && no_more
    }

    /// What makes the terminal fit for whoever uses it after the command: nothing after text, and where the command left it
    /// clean nothing that shows. With `only_ends`, whoever draws there besides keeps their modes.
    pub(super) fn ended(&self, only_ends: bool) -> String {
        if self.written.is_text() && self.is_as_at_first() {
            return String::new();
        }
        // Who has their own screen and modes there keeps them where the command can have changed none.
        if only_ends || (self.is_as_at_first() && self.written.is_told()) {
            return ENDS.to_owned();
        }
        let mut text = CLEAN.to_owned();
        text.push_str(if self.colours.may_be_changed() { colours::BACK } else { "" });
        // The first puts the cursor where it was, so it is only for whoever is there; the second is for who misled this.
        text.push_str(if self.alternate { "\x1b[?1049l" } else { MAIN_SCREEN });
        text.push_str(SWITCHED_OFF);
        // What was put back has the origin in it.
        text.push_str(if self.private.contains(&ORIGIN) { "\x1b[?6l\x1b[999;1H" } else { "" });
        text
    }

    /// Whether the command is on the alternate screen.
    pub(super) fn is_alternate(&self) -> bool {
        self.alternate
    }

    /// What makes the terminal a clean screen for somebody else. With rows and columns, every cell is written: what
    /// protects characters from being cleared does not protect them from that.
    pub(super) fn taken(&self, size: Option<(u16, u16)>) -> String {
        let mut text = CLEAN.to_owned();
        // Text in the colour of what is behind it would be on no screen.
        text.push_str(if self.colours.may_be_changed() { colours::BACK } else { "" });
        text.push_str(if self.alternate { "\x1b7" } else { "\x1b[?1049h" });
        // Keys come as plain bytes, whatever keyboard protocol was asked for.
        text.push_str("\x1b[>0u\x1b[>4m\x1b[0m\x1b(B\x0f\x1b[r\x1b>");
        PUBLIC.iter().for_each(|mode| text.push_str(&format!("\x1b[{mode}l")));
        text.push_str(&format!("\x1b[{NO_ECHO}h"));
        OFF.iter().for_each(|mode| text.push_str(&format!("\x1b[?{mode}l")));
        ON.iter().for_each(|mode| text.push_str(&format!("\x1b[?{mode}h")));
        // No character is protected from now on: EPA, and DECSCA, after which xterm clears those of SPA too.
        text.push_str("\x1bW\x1b[0\"q\x1b[2J");
        let (rows, columns) = size.map_or((0, 0), |(rows, columns)| (rows.min(MOST), columns.min(MOST)));
        for row in 1..=rows {
            text.push_str(&format!("\x1b[{row};1H{:1$}", "", usize::from(columns)));
        }
        text.push_str("\x1b[H");
        text
    }

    /// What gives it back to the command, with the piece of a sequence that it was in.
    pub(super) fn given_back(&self) -> Vec<u8> {
        let mut text = "\x18\x1b\\\x1b[0m\x1b[2J\x1b[<u".to_owned();
        for mode in &self.public {
            let word = if *mode == NO_ECHO { 'l' } else { 'h' };
            text.push_str(&format!("\x1b[{mode}{word}"));
        }
        for mode in &self.private {
            let word = if ON.contains(mode) { 'l' } else { 'h' };
            text.push_str(&format!("\x1b[?{mode}{word}"));
        }
        if let Some(keys) = &self.other_keys {
            text.push_str(&format!("\x1b[>{keys}m"));
        }
        if self.keypad {
            text.push_str("\x1b=");
        }
        // Setting the region moves the cursor, so that is put back last.
        let region = self.region.as_ref().map(|region| format!("\x1b[{region}r"));
        match (self.alternate, region) {
            (true, region) => text.push_str(&format!("{}\x1b8", region.unwrap_or_default())),
            (false, None) => text.push_str("\x1b[?1049l"),
            (false, Some(region)) => text.push_str(&format!("\x1b[?1049l\x1b7{region}\x1b8")),
        }
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.piece);
        bytes
    }

    fn take(&mut self, byte: u8) {
        let next = match (self.at, byte) {
            (_, 0x18 | 0x1a) => At::Ground,
            (At::String { bell }, 0x1b) => At::StringEscape { bell },
            (At::StringEscape { .. }, b'\\') | (At::String { bell: true }, 0x07) => At::Ground,
            (At::String { bell }, _) => At::String { bell },
            (_, 0x1b) => {
                self.piece.clear();
                At::Escape
            }
            // Anything but ST: the string is over, and a sequence begins.
            (At::StringEscape { .. }, _) => {
                self.piece = vec![0x1b];
                self.escape(byte)
            }
            (At::Escape, _) => self.escape(byte),
            (At::Control, 0x40..=0x7e) => self.control(byte),
            (At::Control, _) => At::Control,
            (At::Character(more @ 2..), 0x80..=0xbf) => At::Character(more - 1),
            (At::Character(_), 0x80..=0xbf) => At::Ground,
            (At::Ground | At::Character(_), _) => {
                self.piece.clear();
                match byte {
                    0xc2..=0xdf => At::Character(1),
                    0xe0..=0xef => At::Character(2),
                    0xf0..=0xf4 => At::Character(3),
                    _ => At::Ground,
                }
            }
        };
        self.at = next;
        if next == At::Ground {
            self.piece.clear();
        } else if self.piece.len() < PIECE {
            self.piece.push(byte);
        }
    }

    /// After ESC.
    fn escape(&mut self, byte: u8) -> At {
        match byte {
            b'[' if self.piece == [0x1b] => return At::Control,
            b']' if self.piece == [0x1b] => return At::String { bell: true },
            b'P' | b'X' | b'^' | b'_' if self.piece == [0x1b] => return At::String { bell: false },
            b'c' if self.piece == [0x1b] => {
                let (colours, written) = (std::mem::take(&mut self.colours), std::mem::take(&mut self.written));
                *self = Self { colours, written, ..Self::default() };
            }
            b'=' => self.keypad = true,
            b'>' => self.keypad = false,
            // Intermediate bytes, and control characters, which are carried out in between.
            0..=0x2f => return At::Escape,
            _ => {}
        }
        At::Ground
    }

    /// A whole control sequence: what is collected, and its final byte.
    fn control(&mut self, last: u8) -> At {
        let inner = self.piece.get(2..).unwrap_or_default();
        let text: String = inner.iter().filter(|byte| **byte >= 0x20).map(|byte| char::from(*byte)).collect();
        let (private, numbers) = match text.strip_prefix('?') {
            Some(numbers) => (true, numbers),
            None => (false, text.as_str()),
        };
        let numbers = numbers.to_owned();
        match last {
            b'h' | b'l' => {
                for mode in numbers.split(';').take(PARAMETERS).filter_map(|number| number.parse().ok()) {
                    self.set(private, mode, last == b'h');
                }
            }
            b'r' if !private && numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') => {
                self.region = Some(numbers).filter(|numbers| !numbers.is_empty());
            }
            b'p' if text == "!" => self.soft_reset(),
            b'm' | b'n' if text.starts_with('>') => self.set_keys(text.trim_start_matches('>'), last == b'm'),
            _ => {}
        }
        At::Ground
    }

    fn set(&mut self, private: bool, mode: u16, on: bool) {
        let set = if private { &mut self.private } else { &mut self.public };
        let other = match (private, mode) {
            (true, mode) if ALTERNATE.contains(&mode) => {
                self.alternate = on;
                return;
            }
            (true, mode) if OFF.contains(&mode) => on,
            (true, mode) if ON.contains(&mode) => !on,
            (false, mode) if PUBLIC.contains(&mode) => on,
            (false, NO_ECHO) => !on,
            _ => return,
        };
        if other {
            set.insert(mode)
        } else {
            set.remove(&mode)
        };
    }

    /// XTMODKEYS, and what turns it off: of its resources the one that makes sequences of plain keys.
    fn set_keys(&mut self, numbers: &str, on: bool) {
        let (resource, value) = numbers.split_once(';').unwrap_or((numbers, ""));
        let value = value.parse::<u8>().ok().filter(|value| on && *value > 0);
        match resource {
            "4" => self.other_keys = value.map(|value| format!("4;{value}")),
            "" => self.other_keys = None,
            _ => {}
        }
    }

    /// DECSTR: the modes that it puts back (VT510 manual).
    fn soft_reset(&mut self) {
        self.private.retain(|mode| ![1, 6, 7, 25, 69].contains(mode));
        self.public.retain(|mode| ![2, 4, NO_ECHO].contains(mode));
        (self.keypad, self.region) = (false, None);
    }
}

#[cfg(test)]
mod tests;
