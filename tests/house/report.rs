//! What a check found, and how a test says it.

use std::fmt;

/// A place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The rule and what is against it.
    pub(crate) broken: String,
    /// One sentence.
    pub(crate) remedy: &'static str,
}

impl Violation {
    pub(crate) fn new(file: &str, line: usize, broken: impl Into<String>, remedy: &'static str) -> Self {
        Self { file: file.to_owned(), line, broken: broken.into(), remedy }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}. {}", self.file, self.line, self.broken, self.remedy)
    }
}

/// Fails with all of them.
#[track_caller]
pub(crate) fn none(found: &[Violation]) {
    let lines: Vec<_> = found.iter().map(|violation| format!("{violation}\n")).collect();
    assert!(found.is_empty(), "{} places are against this rule:\n{}", found.len(), lines.concat());
}

/// Where they are, for the tests of the rules.
#[cfg(test)]
pub(crate) fn places(found: &[Violation]) -> Vec<String> {
    found.iter().map(|violation| format!("{}:{}", violation.file, violation.line)).collect()
}
