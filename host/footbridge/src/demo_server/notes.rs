//! Notes. They live as long as the server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Most notes that are kept.
const MAX_NOTES: usize = 1_000;
/// Longest note, characters.
pub(super) const MAX_TEXT: usize = 4_000;

/// What every note's URI starts with.
const SCHEME: &str = "note:///";

/// All notes, by number. A number is never given twice.
#[derive(Debug, Default)]
pub(super) struct Notes {
    texts: BTreeMap<u64, String>,
    last: u64,
}

/// No more notes are kept.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("There are {MAX_NOTES} notes already. delete_all_notes makes room.")]
pub(super) struct TooManyNotes;

impl Notes {
    /// Keeps a note and gives its number.
    ///
    /// # Errors
    /// [`TooManyNotes`].
    pub(super) fn add(&mut self, text: String) -> Result<u64, TooManyNotes> {
        if self.texts.len() >= MAX_NOTES {
            return Err(TooManyNotes);
        }
        self.last += 1;
        self.texts.insert(self.last, text);
        Ok(self.last)
    }

    /// Forgets all, and says how many they were.
    pub(super) fn delete_all(&mut self) -> usize {
        std::mem::take(&mut self.texts).len()
    }

    /// Number, URI and text of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, String, &str)> {
        self.texts.iter().map(|(id, text)| (*id, uri(*id), text.as_str()))
    }

    /// As `list_notes` shows them.
    pub(super) fn listed(&self) -> Value {
        let listed = self.iter().map(|(id, uri, text)| json!({"id": id, "uri": uri, "text": text}));
        Value::Array(listed.collect())
    }

    /// The text behind a URI, if it is exactly one that was given out.
    pub(super) fn read(&self, wanted: &str) -> Option<&str> {
        let id: u64 = wanted.strip_prefix(SCHEME)?.parse().ok()?;
        if uri(id) == wanted { self.texts.get(&id).map(String::as_str) } else { None }
    }
}

/// Where a note is read.
pub(super) fn uri(id: u64) -> String {
    format!("{SCHEME}{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_given_twice() {
        let mut notes = Notes::default();
        assert_eq!(notes.add("a".to_owned()), Ok(1));
        assert_eq!(notes.delete_all(), 1);
        assert_eq!(notes.add("b".to_owned()), Ok(2));
        assert_eq!(notes.read("note:///2"), Some("b"));
    }

    #[test]
    fn only_the_exact_uri_finds_a_note() {
        let mut notes = Notes::default();
        notes.add("a".to_owned()).unwrap();
        for wrong in
            ["note:///01", "note:///+1", "note:///1/", "NOTE:///1", "note://1", "note:///", "1", "note:///../1"]
        {
            assert_eq!(notes.read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_full_book_says_what_to_do() {
        let mut notes = Notes::default();
        for _ in 0..MAX_NOTES {
            notes.add(String::new()).unwrap();
        }
        assert!(notes.add(String::new()).unwrap_err().to_string().contains("delete_all_notes"));
    }
}
