//! Whether a chain is whole, and which record is the first that is not.

use std::io;

use super::{
    ChainFolder, KnownHeads, Lines,
    report::{ChainProblem, ProblemKind, Report},
    walk::Walk,
};

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
        Some(found) if found.kind == ProblemKind::Missing && stands_elsewhere(&files, found.seq)? => {
            let what = format!("record {} stands further down", found.seq);
            Some(ChainProblem { kind: ProblemKind::Reordered, what, ..found })
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
