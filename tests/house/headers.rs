//! Every file says first what it is, and a library says more than one line about itself.

use crate::{report::Violation, tree::Tree};

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.rust() {
        let (line, header) = header(text);
        if header == 0 {
            let broken = "a file starts with `//!`";
            found.push(Violation::new(path, line, broken, "Say in a line what it is for."));
        } else if header == 1 && path.ends_with("src/lib.rs") {
            let broken = "the header of a library has more than one line";
            found.push(Violation::new(
                path,
                line,
                broken,
                "Say what the crate has, in which order to read it, and what it refuses.",
            ));
        }
    }
    found
}

/// The line where a header is or should be, and how many lines with text it has.
fn header(text: &str) -> (usize, usize) {
    let is_command = text.starts_with("#!") && !text.starts_with("#![");
    let mut rest = if is_command { text.split_once('\n').map_or("", |(_, rest)| rest) } else { text }.trim_start();
    while rest.starts_with("#![") {
        rest = after_attribute(rest).trim_start();
    }
    let header = rest.lines().map_while(|line| line.trim_start().strip_prefix("//!"));
    let before = text.len() - rest.len();
    (text[..before].matches('\n').count() + 1, header.filter(|line| !line.trim().is_empty()).count())
}

fn after_attribute(text: &str) -> &str {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' if depth == 1 => return &text[at + 1..],
            ']' => depth -= 1,
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::places;

    fn found(path: &str, text: &str) -> Vec<String> {
        places(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn a_file_starts_with_its_header() {
        for text in [
            "//! A.\nfn f() {}",
            "#![allow(x, reason = \"[1]\")]\n\n//! A.",
            "#![allow(\n    x\n)] #![y]\n//! A.",
            "#!/usr/bin/env x\n//! A.",
        ] {
            assert_eq!(found("tests/a.rs", text), [] as [&str; 0], "{text}");
        }
        for text in ["", "fn f() {}\n//! A.", "// A.", "/// A.", "//!\nfn f() {}"] {
            assert_eq!(found("host/edge/tests/a.rs", text), ["host/edge/tests/a.rs:1"], "{text}");
        }
        assert_eq!(found("a.rs", "#![x]\n\nfn f() {}"), ["a.rs:3"]);
    }

    #[test]
    fn a_library_has_a_longer_one() {
        assert_eq!(found("proto/src/lib.rs", "//! A.\n//!\n//! B."), [] as [&str; 0]);
        assert_eq!(found("proto/src/lib.rs", "//! A.\n//!\nmod a;"), ["proto/src/lib.rs:1"]);
    }
}
