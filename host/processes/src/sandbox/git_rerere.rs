//! The list of conflicts that git remembers the resolutions of (`MERGE_RR`): a name of one, a tab and a path, each ended by
//! a zero. By it `git commit` reads those files into its own folder, by links too, and may write them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Instant;

use super::{git_index::MAX_PATH, git_names::is_gits};

/// Why a list is not one to let git read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConflictsFault {
    #[error("it names {0}, which git itself never puts there, and git would read or write that file")]
    Path(String),
    #[error("it names {0}, which is or is behind a link, and git would read or write what that leads to")]
    Link(String),
    #[error("it is not as git writes it")]
    Malformed,
    #[error("it names files, and where they are is not known")]
    NoTree,
    #[error("it could not be looked through in time")]
    Late,
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl ConflictsFault {
    /// Whether git may read it all the same, to do what it says.
    pub(super) fn is_forged(&self) -> bool {
        matches!(self, Self::Path(_) | Self::Link(_) | Self::Malformed)
    }
}

/// Looks through the list of a work tree, until then.
pub(super) fn check_conflicts(text: &[u8], tree: Option<&Path>, until: Instant) -> Result<(), ConflictsFault> {
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    if text.is_empty() {
        return Ok(());
    }
    let tree = tree.ok_or(ConflictsFault::NoTree)?;
    text.split(|byte| *byte == 0).try_for_each(|line| {
        let tab = line.iter().position(|byte| *byte == b'\t').ok_or(ConflictsFault::Malformed)?;
        if !is_name(&line[..tab]) {
            return Err(ConflictsFault::Malformed);
        }
        let path = &line[tab + 1..];
        if path.len() > MAX_PATH {
            return Err(ConflictsFault::Malformed);
        }
        let shown = || String::from_utf8_lossy(path).into_owned();
        if !is_gits(path) {
            return Err(ConflictsFault::Path(shown()));
        }
        let path = Path::new(OsStr::from_bytes(path));
        path.ancestors().filter(|above| *above != Path::new("")).try_for_each(|above| {
            if Instant::now() > until {
                return Err(ConflictsFault::Late);
            }
            if tree.join(above).is_symlink() { Err(ConflictsFault::Link(shown())) } else { Ok(()) }
        })
    })
}

/// That of a conflict, and perhaps the number of a variant of it.
fn is_name(name: &[u8]) -> bool {
    let dot = name.iter().position(|byte| *byte == b'.').unwrap_or(name.len());
    let (name, variant) = name.split_at(dot);
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_number = |digits: &[u8]| (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    matches!(name.len(), 40 | 64) && name.iter().all(is_hex) && (variant.is_empty() || is_number(&variant[1..]))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;

    #[test]
    fn lists_of_git_are_fine_and_what_leads_elsewhere_is_found() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path();
        fs::create_dir(tree.join("a")).unwrap();
        symlink("/etc", tree.join("out")).unwrap();
        symlink("a", tree.join("a/link")).unwrap();
        let name = "0123456789abcdef0123456789abcdef01234567";
        let until = Instant::now() + Duration::from_secs(60);
        let check = |text: String| check_conflicts(text.as_bytes(), Some(tree), until);
        let of = |paths: &[&str]| check(paths.iter().map(|path| format!("{name}\t{path}\0")).collect());
        of(&[]).unwrap();
        of(&["f", "a/missing", "with\ttab"]).unwrap();
        check(format!("{name}.12\tf\0{name}{}\tf\0", &name[..24])).unwrap();
        for path in ["/etc/passwd", "../x", ".git/config", "", "a/./b"] {
            assert!(matches!(of(&["f", path]), Err(ConflictsFault::Path(_))), "{path}");
        }
        for path in ["out/passwd", "a/link"] {
            assert!(matches!(of(&["f", path]), Err(ConflictsFault::Link(_))), "{path}");
        }
        assert!(check_conflicts(b"", None, until).is_ok() && check_conflicts(b"x", None, until).is_err());
        for text in ["x", "\0\0", "0123\tf\0", &format!("{name}. \t5\tf"), &format!("{name}.\tf"), &format!("{name}f")]
        {
            assert!(matches!(check(text.to_owned()), Err(ConflictsFault::Malformed)), "{text:?}");
        }
        assert!(matches!(of(&[&"a/".repeat(MAX_PATH)]), Err(ConflictsFault::Malformed)), "no file has that path");
        let late =
            check_conflicts(format!("{name}\ta\0").as_bytes(), Some(tree), Instant::now() - Duration::from_secs(1));
        assert!(matches!(late, Err(ConflictsFault::Late)));
    }
}
