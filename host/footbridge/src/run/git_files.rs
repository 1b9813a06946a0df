//! What is told of files by which git outside would write, delete or read what is none of its own: an earlier command of
//! a sandbox, or the one that has just ended, left them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use footbridge_processes::sandbox::{
    git_left::{ForgedFate, ForgedFile, GitLeft},
    guarded::{GitFolder, git_folders},
    held_folder::HeldFolder,
};
use footbridge_proto::text::Escaped;

use super::told::say_new;
use crate::report;

/// Files that are told of, a line each.
const NAMED: usize = 20;

/// What was found.
#[must_use]
pub(super) struct GitFiles(GitLeft);

/// Looks at the repositories that are found in these folders, and at what may be others in them.
pub(super) fn look_at_all(held: &[HeldFolder], others: Vec<PathBuf>) -> GitFiles {
    let known = held.iter().filter_map(HeldFolder::now).flat_map(|folder| git_folders(&folder));
    let tree = |git: &Path| git.parent().filter(|_| git.ends_with(".git")).map(Path::to_owned);
    let others = others.into_iter().map(|folder| GitFolder { tree: tree(&folder), folder });
    GitFiles(GitLeft::look(held, known.chain(others).collect()))
}

impl GitFiles {
    /// Tells of what there was before the command starts, and gives the folders by which git remembers resolutions.
    pub(super) fn say_before(self) -> BTreeSet<PathBuf> {
        self.say_forged();
        self.0.resolutions
    }

    /// Tells of what there is at its end.
    pub(super) fn say_at_the_end(self, was_there: &dyn Fn(&Path) -> bool) {
        self.say_forged();
        let new: Vec<PathBuf> = self.0.resolutions.into_iter().filter(|git| !was_there(git)).collect();
        let what = "by which git outside remembers how conflicts were resolved, and does so again (rerere)";
        say_new(&new, what, "remove them if you do not want that");
    }

    fn say_forged(&self) {
        for file in self.0.forged.iter().take(NAMED) {
            report::note(&format!("footbridge: {}", said_of(file)));
        }
        if let Some(more) = self.0.forged.len().checked_sub(NAMED).filter(|more| *more > 0) {
            report::note(&format!("footbridge: {more} more files that git must not read as they are, or were"));
        }
        if !self.0.is_whole {
            report::note(
                "footbridge: not all repositories could be looked at for forged indexes, by which git would write, delete or \
                 read any file of yours: remove .git/index and .git/MERGE_RR before you use git in one that is not yours alone",
            );
        }
    }
}

fn said_of(ForgedFile { path, why, fate }: &ForgedFile) -> String {
    let (shown, why) = (path.to_string_lossy(), Escaped(why));
    let shown = Escaped(&shown);
    let next = if path.ends_with("MERGE_RR") {
        "git does without it"
    } else {
        "run \"git reset\" there, which makes a new index, and look through \"git diff\" before you go on"
    };
    match fate {
        ForgedFate::SetAside(name) => {
            format!("do not trust what a command left in {shown}: {why}; it is set aside as {}; {next}", Escaped(name))
        }
        ForgedFate::Stays(error) => {
            let error = error.as_ref().map(|error| format!(" (it cannot be set aside: {error})")).unwrap_or_default();
            format!("do not let git read {shown}: {why}{error}; move it away before you use git there, then {next}")
        }
    }
}
