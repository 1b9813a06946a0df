//! What a command left in folders of git by which git outside would write, delete or read files that are none of its own:
//! a forged index or list of conflicts. Git looks at neither. Such a file is set aside, under a name that git does not read.
//!
//! It is looked at when the command and all that came of it have ended, and before the next one starts. Files are opened
//! and renamed below folders that are held, and no link is followed. What could not be looked at is told.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use footbridge_core::{digest::Digest, random::random_text};
use rustix::fs::{AtFlags, renameat, statat};

use super::git_index::{IndexFault, check_index};
use super::git_replaced::replaced_in;
use super::git_rerere::{ConflictsFault, check_conflicts};
use super::git_settings::{leads_to, object_format};
use super::guarded::{GitFolder, common, is_git};
use super::held_folder::HeldFolder;
use crate::regular_file::open_regular_in;

/// How long is looked at most.
const LIMIT: Duration = Duration::from_secs(4);
/// Folders of git that are looked at.
const MAX_FOLDERS: usize = 10_000;
/// Bytes of a list of conflicts.
const MAX_CONFLICTS: u64 = 1 << 20;

const INDEX: &str = "index";
const CONFLICTS: &str = "MERGE_RR";
const RESOLUTIONS: &str = "rr-cache";

/// A file that git should not read as it was found.
#[derive(Debug)]
pub struct ForgedFile {
    /// Where it was found.
    pub path: PathBuf,
    /// What is wrong with it, in the words of whoever wrote it, too.
    pub why: String,
    /// What became of it.
    pub fate: ForgedFate,
}

/// What became of such a file.
#[derive(Debug)]
pub enum ForgedFate {
    /// It has this name now.
    SetAside(String),
    /// It is where it was, and git may read it: it is not known to be forged, or could not be set aside.
    Stays(Option<io::Error>),
}

/// What was found in folders of git.
#[derive(Debug, Default)]
pub struct GitLeft {
    /// Files that git should not read.
    pub forged: Vec<ForgedFile>,
    /// Folders by whose being there git remembers resolutions of conflicts, and repeats them.
    pub resolutions: BTreeSet<PathBuf>,
    /// What git takes for repositories by itself.
    pub repositories: BTreeSet<PathBuf>,
    /// What has git show something else than a repository holds, by its path, with what it says.
    pub replaced: BTreeMap<PathBuf, Digest>,
    /// Whether all of them could be looked at.
    pub is_whole: bool,
}

impl GitLeft {
    /// Looks at these, as far as they are in what is held, and sets aside what is forged.
    #[must_use]
    pub fn look<'a>(held: &'a [HeldFolder], gits: Vec<GitFolder>) -> Self {
        let until = Instant::now() + LIMIT;
        let places: Vec<(PathBuf, &HeldFolder)> = held.iter().filter_map(|held| Some((held.now()?, held))).collect();
        let (mut left, mut seen) = (Self { is_whole: true, ..Self::default() }, HashSet::new());
        let mut found = Vec::new();
        for git in gits {
            // Where one leads, too, may take a while to find out.
            if Instant::now() > until {
                left.is_whole = false;
                break;
            }
            found.extend(FoundFolder::of(git));
        }
        found.sort_by_key(|git| !git.is_repository);
        for git in found {
            let below =
                |(at, held): &(PathBuf, &'a HeldFolder)| Some((*held, git.folder.strip_prefix(at).ok()?.to_owned()));
            let Some((held, below)) = places.iter().find_map(below) else { continue };
            if !seen.insert(git.folder.clone()) {
                continue;
            }
            if seen.len() > MAX_FOLDERS || Instant::now() > until {
                left.is_whole = false;
                break;
            }
            if git.is_repository {
                left.repositories.insert(git.folder.clone());
            }
            match held.folder_below(&below) {
                Ok(at) => left.look_in(&Opened { at, git: &git, until }),
                Err(_) => left.is_whole = false,
            }
        }
        left
    }

    fn look_in(&mut self, git: &Opened<'_>) {
        let looked_at = git.looks_at(INDEX);
        match git.index(INDEX) {
            Ok(None) => {}
            Ok(Some(shared)) => {
                let shared = git.looks_at(&format!("sharedindex.{shared}"));
                if let Err(fault) = git.index(&shared.name) {
                    let why = format!("it goes on {}: {fault}", shared.name);
                    self.add(git, looked_at, why, fault.is_forged());
                    self.add(git, shared, fault.to_string(), fault.is_forged());
                }
            }
            Err(fault) => self.add(git, looked_at, fault.to_string(), fault.is_forged()),
        }
        let looked_at = git.looks_at(CONFLICTS);
        if let Err(fault) = git.conflicts() {
            self.add(git, looked_at, fault.to_string(), fault.is_forged());
        }
        let (found, is_whole) = replaced_in(&git.at, git.until);
        self.replaced.extend(found.into_iter().map(|(name, says)| (git.git.folder.join(name), says)));
        self.is_whole &= is_whole;
        if statat(&git.at, RESOLUTIONS, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            self.resolutions.insert(git.git.folder.join(RESOLUTIONS));
        }
    }

    fn add(&mut self, git: &Opened<'_>, file: LookedAt, why: String, is_forged: bool) {
        let fate = if is_forged && git.git.is_repository { git.set_aside(&file) } else { ForgedFate::Stays(None) };
        self.forged.push(ForgedFile { path: git.git.folder.join(file.name), why, fate });
    }
}

/// A file of a folder of git, as it was before it was looked at.
struct LookedAt {
    name: String,
    /// Which one it was; none where there was none.
    was: Option<(u64, u64)>,
}

/// A folder of git that was found.
struct FoundFolder {
    /// By where it really is.
    folder: PathBuf,
    tree: Option<PathBuf>,
    /// Whether git takes it for a repository by itself, and not just whoever goes there: it may be a sample of one, in whose
    /// files nothing is changed.
    is_repository: bool,
}

impl FoundFolder {
    /// Nothing where none is.
    fn of(GitFolder { folder, tree }: GitFolder) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        let is_named = folder.iter().any(|part| part == ".git");
        let named = |tree: &PathBuf| leads_to(&tree.join(".git")).and_then(|git| git.canonicalize().ok());
        let is_repository = is_named || tree.as_ref().and_then(named).is_some_and(|git| git == folder);
        (is_repository || is_git(&folder)).then_some(Self { folder, tree, is_repository })
    }
}

/// One that is looked at.
struct Opened<'a> {
    at: OwnedFd,
    git: &'a FoundFolder,
    until: Instant,
}

/// What is at a name.
enum Found {
    Nothing,
    File(File),
    /// A link, a pipe or the like, which git never makes there.
    Other,
}

impl Opened<'_> {
    /// A file in it. Whatever is in its place holds nothing up.
    fn open(&self, name: &str) -> io::Result<Found> {
        match open_regular_in(&self.at, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            found => Ok(found?.map_or(Found::Other, Found::File)),
        }
    }

    /// Looks through an index, and gives the one that it goes on.
    fn index(&self, name: &str) -> Result<Option<String>, IndexFault> {
        let file = match self.open(name)? {
            Found::Nothing => return Ok(None),
            Found::Other => return Err(IndexFault::Malformed("it is no file")),
            Found::File(file) => file,
        };
        let main = common(&self.git.folder).unwrap_or_else(|| self.git.folder.clone());
        let format = object_format(&main).ok_or(IndexFault::Settings)?;
        check_index(&file, format, self.until)
    }

    fn conflicts(&self) -> Result<(), ConflictsFault> {
        let file = match self.open(CONFLICTS)? {
            Found::Nothing => return Ok(()),
            Found::Other => return Err(ConflictsFault::Malformed),
            Found::File(file) => file,
        };
        let mut text = Vec::new();
        file.take(MAX_CONFLICTS + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_CONFLICTS {
            return Err(ConflictsFault::Malformed);
        }
        check_conflicts(&text, self.git.tree.as_deref(), self.until)
    }

    fn looks_at(&self, name: &str) -> LookedAt {
        LookedAt { name: name.to_owned(), was: self.which(name) }
    }

    fn which(&self, name: &str) -> Option<(u64, u64)> {
        statat(&self.at, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|found| (found.st_dev, found.st_ino))
    }

    /// Unless somebody put another in its place meanwhile, as git outside does: then that one stays, and is named.
    fn set_aside(&self, LookedAt { name, was }: &LookedAt) -> ForgedFate {
        let Ok(random) = random_text::<6>() else { return ForgedFate::Stays(None) };
        if self.which(name) != *was {
            return ForgedFate::Stays(Some(io::Error::other("another is in its place by now")));
        }
        let aside = format!("{name}.set-aside-{random}");
        match renameat(&self.at, name.as_str(), &self.at, &aside) {
            Ok(()) => ForgedFate::SetAside(aside),
            Err(error) => ForgedFate::Stays(Some(error.into())),
        }
    }
}

#[cfg(test)]
mod tests;
