//! Words as they are typed in a shell.

use footbridge_proto::text::Escaped;

/// A word as a shell takes it.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A name that somebody else chose, as it is typed in a shell: no part of it is more than a name.
#[must_use]
pub fn typed_name(name: &str) -> String {
    let word = quoted(&Escaped(name).to_string());
    if name.starts_with('-') { format!("-- {word}") } else { word }
}
