//! What is kept of a command's output, and what is said to take its terminal and to give it back.

use super::*;

fn after(text: &str) -> Modes {
    let mut modes = Modes::default();
    modes.feed(text.as_bytes());
    modes
}

fn given_back(text: &str) -> String {
    String::from_utf8_lossy(&after(text).given_back()).into_owned()
}

#[test]
fn plain_output_leaves_nothing_to_put_back() {
    let plain = "\x18\x1b\\\x1b[0m\x1b[2J\x1b[<u\x1b[?1049l";
    for text in ["", "a\r\nb\x1b[1;31mé\x1b[0m\x1b]0;title\x07日本\x1b(B\x1b[2J\x1b[3;4H", "\x1bPq...\x1b\\x"] {
        assert_eq!(given_back(text), plain, "{text:?}");
    }
    assert!(after("").taken(None).contains("\x1b[?1049h") && !after("").is_alternate());
}

#[test]
fn modes_are_put_back_as_they_were() {
    let back = given_back("\x1b[?1;2004h\x1b[?1003h\x1b[?25l\x1b=\x1b[4h\x1b[?1003l\x1b[2;20r");
    for part in ["\x1b[?1h", "\x1b[?2004h", "\x1b[?25l", "\x1b=", "\x1b[4h", "\x1b[?1049l\x1b7\x1b[2;20r\x1b8"] {
        assert!(back.contains(part), "{part:?} in {back:?}");
    }
    assert!(!back.contains("1003"), "{back:?}");
    let keys = "\x1b[>4;2m\x1b[?9001;2048h\x1b[2h\x1b[12l";
    let (taken, back) = (after(keys).taken(None), given_back(keys));
    for part in ["\x1b[>4m", "\x1b[?9001l", "\x1b[?2048l", "\x1b[2l", "\x1b[12h"] {
        assert!(taken.contains(part), "{part:?} in {taken:?}");
    }
    for part in ["\x1b[>4;2m", "\x1b[?9001h", "\x1b[?2048h", "\x1b[2h", "\x1b[12l"] {
        assert!(back.contains(part), "{part:?} in {back:?}");
    }
    for off in ["\x1b[>4m", "\x1b[>m", "\x1b[>4n", "\x1b[>4;0m"] {
        assert_eq!(given_back(&format!("\x1b[>4;1m{off}")), given_back(""), "{off:?}");
    }
    assert_eq!(given_back("\x1b[?1;25;2004h\x1b[?1049h\x1bc"), given_back(""), "a reset forgets all");
    assert_eq!(given_back("\x1b[?1h\x1b[?25l\x1b=\x1b[3;4r\x1b[!p"), given_back(""), "a soft one these");
    assert_eq!(given_back("\x1b[2;20r\x1b[r"), given_back(""));
}

#[test]
fn who_is_on_the_alternate_screen_stays_there() {
    for mode in ALTERNATE {
        let modes = after(&format!("\x1b[?{mode}h"));
        assert!(modes.is_alternate() && !modes.taken(None).contains("1049"));
        assert!(String::from_utf8(modes.given_back()).unwrap().ends_with("\x1b8"));
        assert!(!after(&format!("\x1b[?{mode}h\x1b[?{mode}l")).is_alternate());
    }
}

#[test]
fn half_a_sequence_is_written_again() {
    for (text, piece) in [
        ("x\x1b", "\x1b"),
        ("x\x1b[?20", "\x1b[?20"),
        ("x\x1b]52;c;abc", "\x1b]52;c;abc"),
        ("x\x1bPabc\x1b", "\x1bPabc\x1b"),
        ("x\x1b(", "\x1b("),
        ("\x1b]0;a\x1b[?20", "\x1b[?20"),
    ] {
        assert!(given_back(text).ends_with(&format!("\x1b[?1049l{piece}")), "{text:?}: {:?}", given_back(text));
    }
    let mut modes = after("日");
    modes.feed(&"本".as_bytes()[..2]);
    assert!(modes.given_back().ends_with(&"本".as_bytes()[..2]));
    modes.feed(&"本".as_bytes()[2..]);
    assert_eq!(modes.given_back(), after("").given_back());
}

#[test]
fn no_output_makes_it_hold_much_or_fail() {
    let mut modes = Modes::default();
    modes.feed(&b"\x1b]"[..]);
    modes.feed(&vec![b'x'; 1 << 20]);
    assert_eq!(modes.piece.len(), PIECE);
    let mut modes = after(&format!("\x1b[{}h", "4;".repeat(1 << 16)));
    for byte in 0..=u8::MAX {
        for other in 0..=u8::MAX {
            modes.feed(&[byte, other, 0x1b, byte, other, b'[', byte, b'?', other, b'h']);
        }
    }
    assert!(modes.piece.len() <= PIECE && modes.private.len() <= OFF.len() + ON.len());
    assert!(modes.taken(Some((u16::MAX, u16::MAX))).len() < 2 << 20);
}

#[test]
fn whatever_was_written_before_a_clean_screen_is_one() {
    // Ends strings, sequences, VT52 mode and printing before anything else is said.
    for text in ["\x1b]0;", "\x1bP", "\x1b[", "\x1b[?2l", "\x1b[5i"] {
        let taken = after(text).taken(None);
        assert!(taken.starts_with("\x18\x1b\\\x1b<\x1b[4i") && taken.ends_with("\x1b[2J\x1b[H"), "{taken:?}");
    }
    // Characters that the command protected are cleared too, and written over.
    let taken = after("\x1bVprotected").taken(Some((2, 5)));
    assert!(taken.ends_with("\x1bW\x1b[0\"q\x1b[2J\x1b[1;1H     \x1b[2;1H     \x1b[H"), "{taken:?}");
}

#[test]
fn colours_are_those_of_the_terminal_where_the_command_may_have_changed_them() {
    let taken = |bytes: &str| {
        let mut modes = Modes::default();
        modes.feed(bytes.as_bytes());
        modes.taken(None)
    };
    assert!(taken("\x1b]10;#fff\x07\x1b]11;#fff\x07\x1bc").contains("\x1b]110\x1b\\\x1b]111\x1b\\"));
    assert_eq!(taken("\x1b]0;title\x07"), taken(""));
}

#[test]
fn what_a_command_leaves_is_ended_and_a_clean_terminal_stays_as_it_is() {
    for text in ["", "a\r\nb\t日本\x07"] {
        assert_eq!(after(text).ended(false), "", "{text:?}");
    }
    for clean in ["\x1b[31mred", "\x1b[?25l 10%\r\x1b[K\x1b[?25h\x1b(B\x1b[m"] {
        assert!(after(clean).is_left_clean() && after(clean).ended(false) == ENDS, "{clean:?}");
    }
    for left in ["\x1b[?25l", "\x1b["] {
        assert!(!after(left).is_left_clean(), "{left:?}");
    }
    for open in ["\x1b]0;vim", "\x1b[?1049h\x1b[H\x1bP", "\x1b[c\x1b[?1003h", "\u{90}"] {
        let ended = after(open).ended(false);
        assert!(ended.starts_with(CLEAN) && !after(open).is_left_clean(), "{open:?}");
        for part in ["\x1b[?1003l", "\x1b[?1006l", "\x1b[?2004l", "\x1b[?1l", "\x1b>", "\x1b[?25h", "\x1b(B\x0f"] {
            assert!(ended.contains(part), "{part:?} in {ended:?}");
        }
        // What is on the screen stays, and so does where text goes on.
        assert!(!ended.contains("\x1b[2J") && ended.contains("\x1b7") && ended.contains("\x1b8"));
        assert_eq!(ended.contains("\x1b[?1049l"), open.contains("1049"));
        assert_eq!(after(open).ended(true), ENDS, "the modes of who is in front");
    }
    for told in ["\x1b]0;a title\x07", "\x1b]8;;a\x1b\\", "\x1b[c", "a\0b", "\x1b]11;?\x07"] {
        assert!(!after(told).is_left_clean() && after(told).ended(false) == ENDS, "{told:?}");
    }
    assert!(after("\x1b]11;#000\x07").ended(false).contains(colours::BACK));
    assert!(after("\x1b[?6h").ended(false).ends_with("\x1b[?6l\x1b[999;1H"), "the origin is put back with the cursor");
    let switched = |mode: &u16, word: char| SWITCHED_OFF.contains(&format!("\x1b[?{mode}{word}"));
    assert!(OFF.iter().all(|mode| switched(mode, 'l')) && ON.iter().all(|mode| switched(mode, 'h')));
    assert!(PUBLIC.iter().all(|mode| SWITCHED_OFF.contains(&format!("\x1b[{mode}l"))));
}
