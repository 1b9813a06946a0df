//! Folders that a command could write and that are elsewhere now: somebody renamed them while it ran, or put others in
//! their places. What it wrote is in those that are held.

use std::path::{Path, PathBuf};

use footbridge_processes::sandbox::held_folder::HeldFolder;

use super::told::names_of;
use crate::report;

/// Where each was, and where it is.
#[derive(Debug)]
pub(super) struct Moved(Vec<Whereabouts>);

#[derive(Debug)]
struct Whereabouts {
    before: PathBuf,
    now: Option<PathBuf>,
}

impl Moved {
    pub(super) fn of(held: &[HeldFolder]) -> Self {
        let whereabouts = |held: &HeldFolder| Whereabouts { before: held.path().to_owned(), now: held.now() };
        Self(held.iter().map(whereabouts).collect())
    }

    /// Where they are, as far as they are anywhere.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        self.0.iter().filter_map(|one| one.now.clone()).collect()
    }

    /// Where what was at this path is now.
    pub(super) fn now(&self, path: &Path) -> PathBuf {
        let moved = self.0.iter().find_map(|one| Some(one.now.as_ref()?.join(path.strip_prefix(&one.before).ok()?)));
        moved.unwrap_or_else(|| path.to_owned())
    }

    /// Where what is at this path was.
    pub(super) fn before(&self, path: &Path) -> PathBuf {
        let moved = self.0.iter().find_map(|one| Some(one.before.join(path.strip_prefix(one.now.as_ref()?).ok()?)));
        moved.unwrap_or_else(|| path.to_owned())
    }

    pub(super) fn say_which(&self) {
        for Whereabouts { before, now } in &self.0 {
            let Some(now) = now.as_ref().filter(|now| *now != before) else { continue };
            report::note(&format!(
                "footbridge: {} was moved while the command ran: what it wrote is in {}, and is looked at there; whatever \
                 is at the old path now is not what it wrote",
                names_of(std::slice::from_ref(before)),
                names_of(std::slice::from_ref(now))
            ));
        }
    }

    /// Says which are gone, or were moved again meanwhile.
    pub(super) fn say_which_were_not_looked_at(&self, held: &[HeldFolder]) {
        let is_there = |(one, held): &(&Whereabouts, &HeldFolder)| one.now.as_ref().is_some_and(|now| held.is_at(now));
        let gone = self.0.iter().zip(held).filter(|both| !is_there(both)).map(|(one, _)| one.before.clone());
        let gone: Vec<PathBuf> = gone.collect();
        if !gone.is_empty() {
            report::note(&format!(
                "footbridge: not looked at for what the command left that other programs run or obey, since somebody \
                 removed or moved them: {}",
                names_of(&gone)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_below_a_folder_is_below_where_it_is_now_and_the_other_way_around() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        ["one", "other", "gone"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        let held: Vec<_> = ["one", "other", "gone"].iter().map(|name| HeldFolder::hold(&at(name)).unwrap()).collect();
        fs::rename(at("one"), at("two")).unwrap();
        fs::create_dir(at("one")).unwrap();
        fs::remove_dir(at("gone")).unwrap();
        let moved = Moved::of(&held);
        assert_eq!(moved.folders(), [at("two"), at("other")]);
        for (before, now) in [("one/a", "two/a"), ("one", "two"), ("other/b", "other/b"), ("else", "else")] {
            assert_eq!((moved.now(&at(before)), moved.before(&at(now))), (at(now), at(before)));
        }
    }
}
