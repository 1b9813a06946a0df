//! What is told of files and links by which git outside would write, delete or read what is none of its own: an earlier
//! command of a sandbox, or the one that has just ended, left them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use footbridge_core::digest::Digest;
use footbridge_processes::sandbox::{
    git_left::{ForgedFate, ForgedFile, GitLeft},
    git_links::GitLinksBefore,
    git_links_aside::{GitLink, GitLinkFate, GitLinksAfter, GitLinksLeft},
    guarded::{GitFolder, git_folders},
    held_folder::HeldFolder,
};
use footbridge_proto::text::Escaped;

use super::told::{say_new, shortened, shown};
use crate::report;

/// Files and links that are told of, a line each.
const NAMED: usize = 20;

/// What was found.
#[must_use]
pub(super) struct GitFiles(GitLeft);

/// What there is of git before a command starts.
#[derive(Debug, Default)]
pub(super) struct GitBefore {
    /// Folders by which git remembers resolutions.
    pub(super) resolutions: BTreeSet<PathBuf>,
    /// What has git show something else than a repository holds.
    pub(super) replaced: BTreeMap<PathBuf, Digest>,
    /// Links in folders of git.
    pub(super) links: GitLinksBefore,
}

/// Looks at the repositories that are found in these folders, and at what may be others in them.
pub(super) fn look_at_all(held: &[HeldFolder], others: Vec<PathBuf>) -> GitFiles {
    let known = held.iter().filter_map(HeldFolder::now).flat_map(|folder| git_folders(&folder));
    let tree = |git: &Path| git.parent().filter(|_| git.ends_with(".git")).map(Path::to_owned);
    let others = others.into_iter().map(|folder| GitFolder { tree: tree(&folder), folder });
    GitFiles(GitLeft::look(held, known.chain(others).collect()))
}

impl GitFiles {
    /// Tells of what there was before the command starts, and gives what is compared at its end.
    pub(super) fn say_before(self) -> GitBefore {
        self.say_forged();
        GitBefore {
            links: GitLinksBefore::of(&self.0.repositories),
            resolutions: self.0.resolutions,
            replaced: self.0.replaced,
        }
    }

    /// Tells of what there is at its end; `was_at` says where what is at a path now was before.
    pub(super) fn say_at_the_end(&self, before: &GitBefore, was_at: &dyn Fn(&Path) -> PathBuf) {
        self.say_forged();
        // A new link is set aside.
        let is_new = |git: &&PathBuf| !before.resolutions.contains(&was_at(git)) && !git.is_symlink();
        let new: Vec<PathBuf> = self.0.resolutions.iter().filter(is_new).cloned().collect();
        let what = "by which git outside remembers how conflicts were resolved, and does so again (rerere)";
        say_new(&new, what, "remove them if you do not want that");
        let is_as_before = |(path, says): &(&PathBuf, &Digest)| before.replaced.get(&was_at(path)) == Some(*says);
        let replaced = self.0.replaced.iter().filter(|one| !is_as_before(one)).map(|(path, _)| path.clone());
        say_new(
            &replaced.collect::<Vec<_>>(),
            "or changed, by which git shows other commits and files here than a clone has (replacements, grafts, a shallow history)",
            "remove those that you do not know before you review by git diff, or set GIT_NO_REPLACE_OBJECTS=1, which knows \
             replacements alone",
        );
    }

    /// Sets aside the links in folders of git that changed or are new, and tells of it.
    pub(super) fn set_links_aside(&self, held: &[HeldFolder], before: &GitBefore, changed: Vec<PathBuf>) {
        say_links(GitLinksAfter { held, found: &self.0, before: &before.links }.set_aside(changed));
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
                 read any file of yours, and for replacements, by which it shows others than it has: remove .git/index and \
                 .git/MERGE_RR before you use git in one that is not yours alone, and use git --no-replace-objects",
            );
        }
    }
}

fn said_of(ForgedFile { path, why, fate }: &ForgedFile) -> String {
    let (shown, why) = (shown(path), shortened(&Escaped(why).to_string()));
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

/// Tells of new links in folders of git.
fn say_links(GitLinksLeft { links, more, is_cut }: GitLinksLeft) {
    let is_of_git = |link: &GitLink| !matches!(link.fate, GitLinkFate::Stays(None));
    let (links, others): (Vec<_>, Vec<_>) = links.into_iter().partition(is_of_git);
    // What is where it was comes first.
    let (aside, stay): (Vec<_>, Vec<_>) =
        links.into_iter().partition(|link| matches!(link.fate, GitLinkFate::SetAside(_)));
    for link in stay.iter().take(NAMED).chain(aside.iter().take(NAMED)) {
        report::note(&format!("footbridge: {}", said_of_link(link)));
    }
    let more = more + aside.len().saturating_sub(NAMED);
    if more > 0 {
        report::note(&format!(
            "footbridge: {more} more such links are set aside, as *.set-aside-* at the top of the folders of git that they were in"
        ));
    }
    if is_cut || stay.len() > NAMED {
        report::note(
            "footbridge: WARNING: not all links that a command left in folders of git could be set aside, and git outside \
             would write, delete or read what they lead to: look for them with \"find . -path '*.git/*' -type l\", and remove \
             what you do not know, before you use git there",
        );
    }
    let others: Vec<PathBuf> = others.into_iter().map(|link| link.path).collect();
    let what =
        "links in what looks like a folder of git, where git makes none, and writes and removes what they lead to";
    say_new(&others, what, "remove them before you use git there");
}

fn said_of_link(GitLink { path, to, fate }: &GitLink) -> String {
    let (path, to) = (shown(path), shown(to));
    let why = "git itself makes no such link, and would write, delete or read what it leads to";
    match fate {
        GitLinkFate::SetAside(now) => format!(
            "do not trust the link to {to} that a command left as {path}: {why}; it is set aside as {}; put it back only if \
             you know what made it",
            shown(now)
        ),
        GitLinkFate::Stays(error) => {
            let error = error.as_ref().map(|error| format!(" (it cannot be set aside: {error})")).unwrap_or_default();
            format!(
                "do not let git find the link that a command left as {path}: {why}{error}; remove it before you use git there"
            )
        }
    }
}
