//! Words that are code in some files alone: `unsafe`, and the database's crate.

use proc_macro2::{TokenStream, TokenTree};

use crate::{
    House,
    report::Violation,
    tree::{Tree, is_below},
};

/// Where something is unsafe, or may be, outside files named `sys.rs`.
pub(crate) fn unchecked(tree: &Tree) -> Vec<Violation> {
    const REMEDY: &str = "Move it into the crate's sys.rs, behind a safe function.";
    let files = tree.rust().filter(|(path, _)| path.rsplit('/').next() != Some("sys.rs"));
    of(files, &["unsafe", "unsafe_code"], "is in files named sys.rs alone", REMEDY)
}

/// Where the database is named outside the store.
pub(crate) fn database(tree: &Tree, house: &House) -> Vec<Violation> {
    const REMEDY: &str = "Let the store do it and hand out what it found in types of its own.";
    let in_host = |path: &str| house.host.iter().any(|one| is_below(path, one.folder));
    let files = tree.rust().filter(|(path, _)| in_host(path) && !is_below(path, house.database));
    of(files, &["sqlx"], "is named below the store alone", REMEDY)
}

fn of<'a>(
    files: impl Iterator<Item = (&'a str, &'a str)>,
    words: &[&str],
    rule: &str,
    remedy: &'static str,
) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in files.filter(|(_, text)| words.iter().any(|word| text.contains(word))) {
        match text.parse() {
            Ok(tokens) => {
                let mut seen = Vec::new();
                look(tokens, words, &mut seen);
                let violation = |(line, word)| Violation::new(path, line, format!("{word} {rule}"), remedy);
                found.extend(seen.into_iter().map(violation));
            }
            Err(error) => found.push(Violation::new(path, 1, format!("this is not Rust: {error}"), remedy)),
        }
    }
    found
}

/// The lines of these words, comments and texts left out; a lint may be denied anywhere.
fn look<'a>(tokens: TokenStream, words: &[&'a str], found: &mut Vec<(usize, &'a str)>) {
    let mut is_denied = false;
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                let word = words.iter().find(|word| name == word);
                found.extend(word.map(|word| (name.span().start().line, *word)));
                is_denied = name == "deny" || name == "forbid";
            }
            TokenTree::Group(group) if !is_denied => look(group.stream(), words, found),
            _ => is_denied = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, report::places};

    fn unchecked_in(path: &str, text: &str) -> Vec<String> {
        places(&unchecked(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn unsafe_code_is_in_files_named_sys_alone() {
        for text in [
            "fn f() {\n unsafe { g() } }",
            "\nunsafe fn f() {}",
            "\nunsafe impl Send for A {}",
            "\n#![allow(unsafe_code, reason = \"x\")]",
            "fn f() { m!(\nunsafe {}) }",
        ] {
            assert_eq!(unchecked_in("guest/src/a.rs", text), ["guest/src/a.rs:2"], "{text}");
            assert_eq!(unchecked_in("guest/src/sys.rs", text), [] as [&str; 0], "{text}");
        }
        for text in ["// unsafe\nfn f() { \"unsafe\" }", "#![deny(unsafe_code)]", "#![forbid(unsafe_code)]"] {
            assert_eq!(unchecked_in("guest/src/a.rs", text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn the_database_is_named_in_the_store_alone() {
        let uses = "//! sqlx\nuse sqlx::Row;";
        let found = |path: &str| places(&database(&Tree::of(&[(path, uses)]), &HOUSE));
        assert_eq!(found("host/footbridge/src/store/kind.rs"), ["host/footbridge/src/store/kind.rs:2"]);
        assert_eq!(found("host/edge/src/store/a.rs"), ["host/edge/src/store/a.rs:2"]);
        assert_eq!(found("host/footbridge/src/store/sqlite/open.rs"), [] as [&str; 0]);
        assert_eq!(found("tests/src/lib.rs"), [] as [&str; 0]);
    }
}
