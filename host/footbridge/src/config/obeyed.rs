//! Files that say what is run, or what with: the operator's alone, and no guest may be able to put others in their place.
//!
//! A file in a folder that the sandbox can write is fine: sandboxes keep it as it is, by a mount on it and on each folder
//! above. A link there is not, since nothing can be mounted on a link; nor is a file with a second name.

use std::path::{Path, PathBuf};

use super::{trust, writable::Writable};

/// What a file resolves to that says what is run, or what with. It must be the operator's alone, and no guest may be able
/// to put another in its place.
pub(super) fn obeyed(path: &Path, writable: &Writable) -> Result<PathBuf, String> {
    // As of a shell's <(...): there is something, and no path leads to it.
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err("it is no regular file (<(...) of a shell is a pipe): write it to one first".to_owned());
    }
    let real = trust::check(path).map_err(|error| error.to_string())?;
    if let Some(what) = link_in_reach(path, writable) {
        return Err(format!("{what}. Name {} itself, or move the link out of there", real.display()));
    }
    if real.is_dir() {
        return Err("it is a folder, and a file is expected".to_owned());
    }
    if let Some((names, folder)) = writable.may_hold_another_name(&real) {
        return Err(format!(
            "it has {names} names (hard links), and by one in {} the sandbox could write it: replace it by a copy",
            folder.display()
        ));
    }
    Ok(real)
}

/// A link on the way that a guest could have lead elsewhere: no sandbox can keep a link as it is in a folder that can be
/// written.
pub(super) fn link_in_reach(path: &Path, writable: &Writable) -> Option<String> {
    let found = writable.holds_link(path)?;
    let (link, folder) = (found.place.display(), found.folder.display());
    Some(format!("{link}, on the way to it, is a link in {folder}, which the sandbox can write"))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_pipe_is_told_from_what_is_not_there() {
        let (read, _write) = nix::unistd::pipe().unwrap();
        let said = |path: &str| obeyed(Path::new(path), &Writable::default()).unwrap_err();
        assert!(said(&format!("/dev/fd/{}", read.as_raw_fd())).starts_with("it is no regular file"));
        assert!(said("/nowhere/at/all").contains("No such file"));
    }
}
