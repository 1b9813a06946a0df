//! Whether a chain is whole, and which record is the first that is not.

use std::io;

use serde::Serialize;

use super::{ChainFolder, KnownHeads, Lines, walk::Walk};

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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
}

/// The first record that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// In which way.
    pub kind: Kind,
    /// The file in the chain's folder.
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
    /// The first thing that is wrong.
    pub problem: Option<Problem>,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.problem.is_none()
    }
}

/// Reads a whole chain, and compares it with itself and with heads.
///
/// # Errors
/// When its files cannot be read.
pub fn verify(chain: &ChainFolder, known: &KnownHeads) -> io::Result<Report> {
    let files = chain.files()?;
    let mut walk = Walk::new(&chain.name, known);
    let mut problem = None;
    'files: for (number, path) in &files {
        if let Err(found) = walk.file(*number) {
            problem = Some(found);
            break;
        }
        let mut lines = Lines::open(path, 0)?;
        while let Some(line) = lines.next_line()? {
            if let Err(found) = walk.line(&line) {
                problem = Some(found);
                break 'files;
            }
        }
    }
    let problem = match problem {
        Some(problem) => Some(walk.settled(problem)),
        None => walk.end().err(),
    };
    // Whether what is missing stands further down.
    let problem = match problem {
        Some(found) if found.kind == Kind::Missing && stands_elsewhere(&files, found.seq)? => {
            let what = format!("record {} stands further down", found.seq);
            Some(Problem { kind: Kind::Reordered, what, ..found })
        }
        other => other,
    };
    Ok(Report { files: files.len(), problem, ..walk.into_report() })
}

/// Whether a record with this number is in any of the files.
fn stands_elsewhere(files: &[(u32, std::path::PathBuf)], seq: u64) -> io::Result<bool> {
    #[derive(serde::Deserialize)]
    struct Number {
        seq: u64,
    }
    for (_, path) in files {
        let mut lines = Lines::open(path, 0)?;
        while let Some(line) = lines.next_line()? {
            if serde_json::from_slice::<Number>(&line.bytes).is_ok_and(|found| found.seq == seq) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
