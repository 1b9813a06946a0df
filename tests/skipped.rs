//! Says what a machine cannot test: `scripts/test` prints it at the end, so that nothing is skipped silently.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;

/// Notes that a test, or a part of one, did not run, and why.
pub(crate) fn skipped(what: &str, why: impl Display) {
    let line = format!("SKIPPED: {what}: {why}\n");
    if let Some(list) = std::env::var_os("FOOTBRIDGE_SKIPPED") {
        // One write, so that lines of other tests do not mix with it.
        File::options().append(true).create(true).open(list).unwrap().write_all(line.as_bytes()).unwrap();
    }
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
