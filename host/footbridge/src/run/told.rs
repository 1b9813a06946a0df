//! How paths are told of: in one line, escaped, and not too many.

use std::path::PathBuf;

use footbridge_proto::text::Escaped;

use crate::report;

/// Paths that are named in one line.
const NAMED: usize = 150;

/// Says what is new of a kind, if anything is.
pub(super) fn say_new(paths: &[PathBuf], what: &str, next: &str) {
    if !paths.is_empty() {
        let names = names_of(paths);
        report::note(&format!("footbridge: new since the command started, {what}: {names}; {next}"));
    }
}

/// These paths in one line, if they are not too many.
pub(super) fn names_of(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| Escaped(&path.to_string_lossy()).to_string();
    let mut names: Vec<String> = paths.iter().take(NAMED).map(name).collect();
    names.extend((paths.len() > NAMED).then(|| format!("{} more", paths.len() - NAMED)));
    names.join(", ")
}
