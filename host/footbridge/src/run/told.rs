//! How paths are told of: in one line, escaped, not too long and not too many. What is left out is in the run's log file,
//! which is named then: whatever a command called what it left, none of it goes unseen, and no note drives away the others.

use std::path::{Path, PathBuf};

use footbridge_proto::text::Escaped;

use crate::{log, report};

/// Paths that are named in one line, and bytes of each.
const NAMED: usize = 20;
const LONGEST: usize = 240;

/// Says what is new of a kind, if anything is. What counts most stands first.
pub(super) fn say_new(paths: &[PathBuf], what: &str, next: &str) {
    if !paths.is_empty() {
        let names = names_of(paths);
        report::note(&format!("footbridge: new since the command started, {what}: {names}; {next}"));
    }
}

/// These paths in one line, the first of them if they are many, and where all are then.
pub(super) fn names_of(paths: &[PathBuf]) -> String {
    let mut names: Vec<String> = paths.iter().take(NAMED).map(|path| shown(path)).collect();
    let more = paths.len().saturating_sub(NAMED);
    names.extend((more > 0).then(|| format!("{more} more")));
    let names = names.join(", ");
    if more == 0 && paths.iter().all(|path| whole(path).len() <= LONGEST) {
        return names;
    }
    match log::keep_list(paths.iter().map(|path| whole(path))) {
        Some((file, true)) => format!("{names} (all are named in {})", shown(&file)),
        Some((file, false)) => format!("{names} (more of them are named in {}, but not all)", shown(&file)),
        None => names,
    }
}

/// A path in one line. Of a long one both ends show.
pub(super) fn shown(path: &Path) -> String {
    shortened(&whole(path))
}

/// An escaped text of which both ends show.
pub(super) fn shortened(all: &str) -> String {
    if all.len() <= LONGEST {
        return all.to_owned();
    }
    let (first, last) = (all.floor_char_boundary(LONGEST / 2), all.ceil_char_boundary(all.len() - LONGEST / 2));
    format!("{}[... {} bytes ...]{}", &all[..first], last - first, &all[last..])
}

fn whole(path: &Path) -> String {
    Escaped(&path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_counted_and_of_long_ones_both_ends_show() {
        let many: Vec<PathBuf> = (0..150).map(|at| PathBuf::from(format!("/w/a{at:03}"))).collect();
        let names = names_of(&many);
        assert!(names.contains("/w/a019, 130 more") && !names.contains("a020"), "{names}");
        let deep = Path::new("/begin").join("x\u{1b}é/".repeat(1000)).join("end");
        let names = names_of(&vec![deep; 200]);
        assert!(names.len() < NAMED * (LONGEST + 40) && !names.contains('\u{1b}'), "{}", names.len());
        assert!(names.starts_with("/begin/x") && names.contains(" bytes ...]") && names.contains("/end, "), "{names}");
        assert_eq!(names_of(&many[..2]), "/w/a000, /w/a001");
    }
}
