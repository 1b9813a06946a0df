//! What a test says when it cannot run here.

#![allow(clippy::print_stderr, reason = "a test that was skipped must not look like one that passed")]

use std::{fs::OpenOptions, io::Write};

/// Says so on standard error, and in the file that `FOOTBRIDGE_SKIPPED` names.
pub(super) fn skipped(test: &str, reason: &str) {
    let line = format!("SKIPPED: {test}: {reason}\n");
    eprint!("{line}");
    let Some(path) = std::env::var_os("FOOTBRIDGE_SKIPPED") else { return };
    let noted = OpenOptions::new().append(true).create(true).open(path);
    noted.and_then(|mut file| file.write_all(line.as_bytes())).expect("FOOTBRIDGE_SKIPPED names a file to append to");
}
