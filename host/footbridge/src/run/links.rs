//! Links on the way to what a command is given: an earlier command may have left one in a folder that it could write,
//! and it would decide what the next one sees or writes.
//!
//! A link counts where a guest may have left it: not directly in a home folder or above one, which no run opens, and not
//! root's, unless this is root. What it leads to counts where it is hidden, or out of the folder that the link is in; where it
//! is only to be read, if it is at home or this user may write it. To have that, its own path has to be written.

use std::{
    env,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, access};

use crate::config::trust::walk;

/// What the folder that a command starts in is called.
pub(super) const WORKING_FOLDER: &str = "the working folder";

/// A link leads to what nobody named.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what} {} leads by the link {} to {}, {}: an earlier command may have left that link; if you mean it, {}",
    path.display(), link.display(), to.display(),
    if *is_hidden { "which is hidden" } else { "which is elsewhere" }, in_its_place(what, to)
)]
pub(crate) struct LinkElsewhere {
    what: &'static str,
    path: PathBuf,
    link: PathBuf,
    to: PathBuf,
    is_hidden: bool,
}

/// What to write in place of the link.
fn in_its_place(what: &str, to: &Path) -> String {
    let to = to.display();
    if what == WORKING_FOLDER { format!("change to {to} itself") } else { format!("write {what} {to}") }
}

/// What links must not lead to.
#[derive(Debug)]
pub(super) struct KeptBack {
    /// Credentials and the like, by the paths that they are known by.
    pub(super) hidden: Vec<PathBuf>,
    /// The home folders of this user, by where they really are.
    pub(super) homes: Vec<PathBuf>,
}

impl KeptBack {
    /// The hidden place that this path, which has no links in it, is in.
    pub(super) fn hides(&self, real: &Path) -> Option<&Path> {
        let holds = |hidden: &&PathBuf| hidden.canonicalize().is_ok_and(|hidden| real.starts_with(hidden));
        self.hidden.iter().find(holds).map(PathBuf::as_path)
    }

    /// Refuses what a link leads to that nobody named. `real` is where `path` leads; the command `writes` there, or only reads.
    pub(super) fn check(
        &self,
        what: &'static str,
        path: &Path,
        real: &Path,
        writes: bool,
    ) -> Result<(), LinkElsewhere> {
        let written = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_named = self.hidden.iter().any(|hidden| written.starts_with(hidden));
        // It leads somewhere, so there is an end to it.
        let steps = walk(path).map(|(steps, _)| steps).unwrap_or_default();
        let mut links = steps.into_iter().filter(|step| step.is_link && !is_named).map(|step| step.path);
        let is_hidden = self.hides(real).is_some();
        // What may be written below what it leads to nobody looks through.
        let found = links.find(|link| {
            let counts = || !is_inside(link, real) && (writes || self.is_at_home_or_writable(real));
            self.may_be_left(link) && (is_hidden || counts())
        });
        let (path, to) = (path.to_owned(), real.to_owned());
        found.map_or(Ok(()), |link| Err(LinkElsewhere { what, path, link, to, is_hidden }))
    }

    fn may_be_left(&self, link: &Path) -> bool {
        let above = link.parent().unwrap_or(link);
        let is_roots =
            || link.symlink_metadata().is_ok_and(|meta| meta.uid() == 0) && !nix::unistd::geteuid().is_root();
        !self.homes.iter().any(|home| home.starts_with(above)) && !is_roots()
    }

    fn is_at_home_or_writable(&self, real: &Path) -> bool {
        self.homes.iter().any(|home| real.starts_with(home)) || access(real, AccessFlags::W_OK).is_ok()
    }
}

/// Whether a link leads no further than the folder that it is in.
fn is_inside(link: &Path, real: &Path) -> bool {
    link.parent().is_some_and(|folder| real.starts_with(folder))
}

/// The working folder as it was come to: by links, where the shell says so.
pub(super) fn working_folder(real: &Path) -> PathBuf {
    let said = env::var_os("PWD").map(PathBuf::from);
    let is_it = |path: &PathBuf| path.is_absolute() && path.canonicalize().is_ok_and(|path| path == real);
    said.filter(is_it).unwrap_or_else(|| real.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_link_that_a_guest_may_have_left_gives_nothing_away_that_is_not_named() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        for folder in ["home/.ssh", "home/proj/src", "home/other", "data", "home/dots/aws"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for (link, to) in [
            ("home/proj/build", "../.ssh"),
            ("home/proj/other", "../other"),
            ("home/proj/here", "src"),
            ("home/proj/data", "../../data"),
            ("home/work", "proj"),
            ("home/.aws", "dots/aws"),
        ] {
            symlink(to, at(link)).unwrap();
        }
        let kept = KeptBack { hidden: vec![at("home/.ssh"), at("home/.aws")], homes: vec![at("home")] };
        for (path, is_refused) in [
            ("home/proj/build", true),
            ("home/work/build", true),
            ("home/proj/src/../build", true),
            ("home/proj/other", true),
            ("home/.ssh", false),
            ("home/.aws", false),
            ("home/work/src", false),
            ("home/proj/here", false),
            ("home/proj/data", true),
        ] {
            let real = at(path).canonicalize().unwrap();
            assert_eq!(kept.check("--write", &at(path), &real, true).is_err(), is_refused, "{path}");
        }
        assert_eq!(kept.hides(&at("home/dots/aws/x")), Some(at("home/.aws").as_path()));
    }
}
