//! What is found of a chain that is checked, and the first thing in it that is wrong.
//!
//! Values that others print; how something is found is `walk`'s and `verify`'s to know.

use std::io;

use serde::Serialize;

use super::ChainFolder;

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// It is not what was written.
    Changed,
    /// Records that were before it are gone.
    Missing,
    /// It stands elsewhere than it was written.
    Reordered,
    /// It was never written here.
    Inserted,
    /// Records that were behind it are gone.
    Cut,
    /// A head that the harness's key did not sign.
    Forged,
    /// It, or what is in its place, cannot be read.
    Unreadable,
}

/// The first record that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainProblem {
    /// In which way.
    pub kind: ProblemKind,
    /// The file in the chain's folder; empty of one that cannot be read.
    pub file: String,
    /// The line in the file, from 1.
    pub line: u64,
    /// The record's number, or what it should be.
    pub seq: u64,
    /// What shows it.
    pub what: String,
}

/// What was found of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Its folder's name.
    pub folder: String,
    /// Its name in its own first line and in heads; empty if it cannot be read.
    pub chain: String,
    /// How many files it has.
    pub files: usize,
    /// Records up to the first bad one.
    pub records: u64,
    /// Whether the harness ended it in order. One that was killed did not, and one that runs did not yet.
    pub ended: bool,
    /// Bytes of half a line at its end, as a crash leaves it or a write that is under way.
    pub torn: usize,
    /// Signed heads that agree with it, those in it and those from elsewhere.
    pub heads: u64,
    /// The last record that such a head covers or is; what is behind it can be cut or rewritten unseen.
    pub covered: u64,
    /// Whether the key that signed was known here.
    pub key_known: bool,
    /// Calls that have an intent and no outcome: they may have happened, or run still.
    pub unknown: usize,
    /// The ids of the first of them.
    pub unknown_calls: Vec<String>,
    /// The first thing that is wrong.
    pub problem: Option<ChainProblem>,
}

impl Report {
    /// Of a chain that cannot be read; the error names the file.
    #[must_use]
    pub fn unreadable(chain: &ChainFolder, error: &io::Error) -> Self {
        let (kind, what) = (ProblemKind::Unreadable, error.to_string());
        let problem = ChainProblem { kind, file: String::new(), line: 0, seq: 0, what };
        Self { folder: chain.name.clone(), problem: Some(problem), ..Self::default() }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.problem.is_none()
    }
}
