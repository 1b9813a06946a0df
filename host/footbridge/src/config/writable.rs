//! What a guest can write of the host's files for good, and what may therefore be neither run nor obeyed outside.
//!
//! A thing is in a guest's hands when it, a folder or a link on the way to it lies in a folder that the sandbox can
//! write: also where it is not there yet, since a guest could make it. How a sandbox keeps single files in such a folder
//! read-only is not known here; links it cannot keep.

use std::{
    fs,
    os::unix::fs::{DirEntryExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use footbridge_processes::mount_table::MountTable;

use super::trust::walk;

/// How long a folder is looked through for another name of a file.
const LOOK: Duration = Duration::from_secs(2);

/// Folders that guests write, by their real paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writable(Vec<PathBuf>);

/// Something in a guest's hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InHands {
    /// What a guest could replace: the thing itself, or what is on the way to it.
    pub(super) place: PathBuf,
    /// The folder that the sandbox can write.
    pub(super) folder: PathBuf,
}

/// A search path without what guests write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SearchPath {
    /// What is left; nothing if that is nothing.
    pub(crate) kept: Option<String>,
    /// What was left out.
    pub(crate) left_out: Vec<String>,
}

impl Writable {
    /// These folders, and all that is in them, by whatever mount it shows.
    pub fn folders(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let real = |folder: PathBuf| folder.canonicalize().unwrap_or(folder);
        let mut all: Vec<PathBuf> = folders.into_iter().map(real).collect();
        let mounts = MountTable::read();
        all.extend(all.iter().flat_map(|folder| mounts.other_places(folder)).collect::<Vec<_>>());
        Self(all)
    }

    /// The folder that this process was started in, as a run that is started there has it; none where that would be all
    /// files, or all of the home folder, which no run opens unasked.
    #[must_use]
    pub fn here() -> Self {
        Self::folders(std::env::current_dir().ok().and_then(|here| narrow(&here)))
    }

    /// As [`Self::here`], for runs that are started in this folder too.
    pub(super) fn here_or_in(folder: &Path) -> Self {
        Self::folders(std::env::current_dir().ok().iter().map(PathBuf::as_path).chain([folder]).filter_map(narrow))
    }

    /// Whether a guest could replace this, or what is on the way to it.
    #[must_use]
    pub fn reaches(&self, path: &Path) -> bool {
        self.holds(path).is_some()
    }

    /// What a guest could replace of this or on the way to it.
    pub(super) fn holds(&self, path: &Path) -> Option<InHands> {
        self.first(path, |_| true)
    }

    /// As [`Self::holds`]; or a folder that guests write lies in this one.
    pub(super) fn holds_or_is_in(&self, place: &Path) -> Option<InHands> {
        self.holds(place).or_else(|| {
            let real = place.canonicalize().ok().filter(|_| !self.0.is_empty())?;
            let folder = self.0.iter().find(|folder| folder.starts_with(&real))?.clone();
            Some(InHands { place: real, folder })
        })
    }

    /// Whether a variable with this value leads to where guests write: by a path that it is or has in it.
    pub(super) fn is_led_to_by(&self, value: &str) -> bool {
        let paths = value.split(':').chain(value.split([':', ' ', '=', ',', ';', '"', '\'']));
        let is_reached = |text: &str| text.starts_with('/') && self.reaches(Path::new(text));
        let is_path = |text: &str| text.find('/').is_some_and(|at| is_reached(&text[at..]));
        // Another folder's name may begin with this one's.
        let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_named =
            |folder: &str| value.match_indices(folder).any(|(at, _)| !value[at + folder.len()..].starts_with(goes_on));
        !self.0.is_empty() && (paths.into_iter().any(is_path) || self.names().any(is_named))
    }

    /// A link on the way to this that a guest could have lead elsewhere.
    pub(super) fn holds_link(&self, path: &Path) -> Option<InHands> {
        self.first(path, |is_link| is_link)
    }

    fn first(&self, path: &Path, counts: impl Fn(bool) -> bool) -> Option<InHands> {
        if self.0.is_empty() {
            return None;
        }
        // A way without an end leads to nothing that could be used.
        let (steps, _) = walk(path).ok()?;
        steps.into_iter().filter(|step| counts(step.is_link)).find_map(|step| {
            let folder = self.0.iter().find(|folder| step.path.starts_with(folder))?;
            Some(InHands { folder: folder.clone(), place: step.path })
        })
    }

    /// A folder in which a file that this user may write could have another name; how many it has.
    pub(super) fn may_hold_another_name(&self, file: &Path) -> Option<(u64, &Path)> {
        let meta = file.metadata().ok()?;
        let ours = meta.nlink() > 1 && meta.uid() == nix::unistd::geteuid().as_raw();
        let same_device = |folder: &&PathBuf| folder.metadata().is_ok_and(|folder| folder.dev() == meta.dev());
        let folder = self.0.iter().filter(|_| ours).find(same_device)?;
        Some((meta.nlink(), folder))
    }

    /// The name that this file has in a folder that guests write, where it has several (hard links), and the folder. A
    /// large folder is looked through for so long and no longer.
    pub(crate) fn another_name(&self, file: &Path) -> Option<(PathBuf, &Path)> {
        let meta = file.metadata().ok().filter(fs::Metadata::is_file)?;
        let _it_may = self.may_hold_another_name(file)?;
        self.0.iter().find_map(|folder| Some((name_of_in(&meta, folder)?, folder.as_path())))
    }

    /// The folders, as texts that could occur in a script.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|folder| folder.to_str())
    }

    /// Leaves out of a PATH what guests write, and what is relative.
    pub(crate) fn search_path(&self, path: &str) -> SearchPath {
        let is_safe = |entry: &&str| entry.starts_with('/') && !self.reaches(Path::new(entry));
        let (kept, left_out): (Vec<&str>, Vec<&str>) = path.split(':').partition(is_safe);
        let kept = (!kept.is_empty()).then(|| kept.join(":"));
        // An empty one means the working folder.
        let said = |entry: &str| if entry.is_empty() { ".".to_owned() } else { entry.to_owned() };
        SearchPath { kept, left_out: left_out.into_iter().map(said).collect() }
    }
}

/// A folder that a run would open unasked, by its real path.
fn narrow(folder: &Path) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    let real = folder.canonicalize().ok()?;
    let is_narrow = real.parent().is_some() && !home.is_some_and(|home| home.starts_with(&real));
    is_narrow.then_some(real)
}

/// The name of this file in this folder or below it.
fn name_of_in(file: &fs::Metadata, folder: &Path) -> Option<PathBuf> {
    let (end, mut ahead) = (Instant::now() + LOOK, vec![folder.to_owned()]);
    while let Some(inner) = ahead.pop().filter(|_| Instant::now() < end) {
        for entry in fs::read_dir(&inner).into_iter().flatten().flatten() {
            let is_it = || entry.metadata().is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => ahead.push(entry.path()),
                Ok(kind) if kind.is_file() && entry.ino() == file.ino() && is_it() => return Some(entry.path()),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_in_a_folder_or_is_reached_through_it_is_in_a_guest_s_hands() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("guest/inner")).unwrap();
        fs::create_dir_all(at("outside")).unwrap();
        fs::write(at("outside/file"), "").unwrap();
        fs::write(at("guest/file"), "").unwrap();
        symlink(at("outside"), at("guest/out")).unwrap();
        symlink(at("guest"), at("outside/in")).unwrap();
        let writable = Writable::folders([at("outside/in")]);
        for (path, place) in [
            ("guest", Some("guest")),
            ("guest/file", Some("guest")),
            ("guest/missing/x", Some("guest")),
            ("outside/in/file", Some("guest")),
            ("guest/out/file", Some("guest")),
            ("guest/inner/../../outside/file", Some("guest")),
            ("outside/file", None),
            ("outside/missing", None),
            (".", None),
        ] {
            assert_eq!(writable.holds(&at(path)).map(|held| held.place), place.map(at), "{path}");
            assert!(!Writable::default().reaches(&at(path)));
        }
        assert_eq!(writable.holds_link(&at("guest/out/file")).unwrap().place, at("guest/out"));
        assert_eq!(writable.holds_link(&at("outside/in/file")), None, "this link is not in it");
    }

    #[test]
    fn a_search_path_keeps_what_is_whole_and_out_of_reach() {
        let place = tempfile::tempdir().unwrap();
        let guest = place.path().canonicalize().unwrap();
        let link = tempfile::tempdir().unwrap();
        symlink(&guest, link.path().join("bin")).unwrap();
        let writable = Writable::folders([guest.clone()]);
        let [own, linked] = [guest.join("bin"), link.path().join("bin")].map(|path| path.display().to_string());
        let found = writable.search_path(&format!("/usr/bin:{own}:bin::{linked}:/bin"));
        assert_eq!(found.kept.as_deref(), Some("/usr/bin:/bin"));
        assert_eq!(found.left_out, [own, "bin".into(), ".".into(), linked]);
        assert_eq!(writable.search_path(".").kept, None);
    }

    #[test]
    fn a_file_with_another_name_may_have_it_in_a_guest_s_folder() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("guest")).unwrap();
        let writable = Writable::folders([place.path().join("guest")]);
        let file = place.path().join("servers.json");
        fs::write(&file, "").unwrap();
        assert_eq!(writable.may_hold_another_name(&file), None);
        fs::hard_link(&file, place.path().join("guest/x")).unwrap();
        assert_eq!(writable.may_hold_another_name(&file).unwrap().0, 2);
        assert!(writable.another_name(&file).unwrap().0.ends_with("guest/x"));
        fs::rename(place.path().join("guest/x"), place.path().join("x")).unwrap();
        assert_eq!(writable.another_name(&file), None);
        assert_eq!(Writable::default().may_hold_another_name(&file), None);
    }
}
