//! Where in a TOML text a key is set, and reading a part of it with every mistake at once.

mod plain_words;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use footbridge_proto::text::Escaped;
pub use plain_words::{closest, not_parsed};
use plain_words::{in_plain_words, missing_field, unknown_field};
use serde::de::DeserializeOwned;
use toml::{
    Table, Value,
    de::{DeTable, DeValue},
};

/// Mistakes that are reported at most of one part; a file with more is not a settings file.
const MAX_MISTAKES: usize = 50;

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file.
    pub file: PathBuf,
    /// The line, where there is one.
    pub line: Option<usize>,
    /// The column in that line, in characters from 1 on, where it is known.
    pub column: Option<usize>,
    /// What is wrong, and what to do.
    pub what: String,
}

impl Mistake {
    /// Of a file as a whole.
    pub fn of_file(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, column: None, what: what.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Escaped(&self.file.display().to_string()))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", Escaped(&self.what))
    }
}

/// A settings file: its name and its text.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> File<'a> {
    /// A file with this text.
    #[must_use]
    pub fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, text }
    }

    /// Its name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.path.to_owned()
    }

    /// All of it, or where it does not parse.
    pub fn parse(&self) -> Result<Table, Mistake> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().map(|span| span.start);
            let (line, column) = (at.map(|at| self.line_at(at)), at.map(|at| self.column_at(at)));
            Mistake { file: self.path(), line, column, what: not_parsed(error.message()) }
        })
    }

    /// A mistake at a key; parts of a list are called by their index.
    pub fn mistake(&self, keys: &[String], what: impl Into<String>) -> Mistake {
        let mut place = String::new();
        for key in keys {
            match key.parse::<usize>() {
                Ok(index) => place.push_str(&format!("[{}]", index + 1)),
                Err(_) if place.is_empty() => place.push_str(key),
                Err(_) => place.push_str(&format!(".{key}")),
            }
        }
        let what = if place.is_empty() { what.into() } else { format!("{place}: {}", what.into()) };
        Mistake { file: self.path(), line: self.find_line(keys), column: None, what }
    }

    /// Reads the part at these keys. After a mistake the key that it names is left out and the rest is read again.
    pub fn read<T: DeserializeOwned>(&self, at: &[String], part: Table) -> Result<T, Vec<Mistake>> {
        let (read, mistakes) = self.read_in_part(at, part);
        read.filter(|_| mistakes.is_empty()).ok_or(mistakes)
    }

    /// The same, and with mistakes what the rest of it says, if that is enough.
    pub fn read_in_part<T: DeserializeOwned>(&self, at: &[String], mut part: Table) -> (Option<T>, Vec<Mistake>) {
        let mut mistakes = Vec::new();
        let mut left_out: Vec<Vec<String>> = Vec::new();
        loop {
            let error = match serde_path_to_error::deserialize::<_, T>(Value::Table(part.clone())) {
                Ok(read) => return (Some(read), mistakes),
                Err(error) => error,
            };
            let mut keys: Vec<String> = error.path().iter().map(key_of).collect();
            let message = error.inner().message().trim();
            if let Some(unknown) = unknown_field(message)
                && keys.last().map(String::as_str) != Some(unknown)
            {
                keys.push(unknown.to_owned());
            }
            if let Some(missing) = missing_field(message) {
                let missing: Vec<String> = keys.iter().cloned().chain([missing.to_owned()]).collect();
                // It is there, with a mistake that was named.
                if left_out.iter().any(|keys| keys.starts_with(&missing)) {
                    return (None, mistakes);
                }
            }
            let whole: Vec<String> = at.iter().chain(&keys).cloned().collect();
            mistakes.push(self.mistake(&whole, in_plain_words(message)));
            if !remove(&mut part, &keys) || mistakes.len() == MAX_MISTAKES {
                return (None, mistakes);
            }
            left_out.push(keys);
        }
    }

    fn line_at(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|b| *b == b'\n').count()
    }

    /// The column of a byte, in characters from 1 on.
    fn column_at(&self, offset: usize) -> usize {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        1 + before.rsplit('\n').next().unwrap_or_default().chars().count()
    }

    /// The line that sets a key, by reading the file once more for its places.
    fn find_line(&self, keys: &[String]) -> Option<usize> {
        let parsed = DeTable::parse(self.text).ok()?;
        let mut line = None;
        let mut value = &DeValue::Table(parsed.into_inner());
        for key in keys {
            let found = match value {
                DeValue::Table(table) => {
                    let Some((name, found)) = table.get_key_value(key.as_str()) else { break };
                    line = Some(self.line_at(name.span().start));
                    found
                }
                DeValue::Array(items) => {
                    let Some(found) = key.parse().ok().and_then(|index: usize| items.get(index)) else { break };
                    line = Some(self.line_at(found.span().start));
                    found
                }
                _ => break,
            };
            value = found.get_ref();
        }
        line
    }
}

fn key_of(segment: &serde_path_to_error::Segment) -> String {
    match segment {
        serde_path_to_error::Segment::Seq { index } => index.to_string(),
        other => other.to_string(),
    }
}

fn remove(table: &mut Table, keys: &[String]) -> bool {
    match keys {
        [] => false,
        [last] => table.remove(last).is_some(),
        [first, rest @ ..] => {
            let inner = table.get_mut(first).and_then(Value::as_table_mut);
            // An element of a list, or a path that leads nowhere: the whole key goes.
            inner.is_some_and(|inner| remove(inner, rest)) || table.remove(first).is_some()
        }
    }
}
