//! Runs that were killed before they could look at what their commands left: the next one looks in their place.
//!
//! What was there before is not known any more, so all is told that was written since the command started.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use footbridge_audit::lock_file::LockFile;
use footbridge_processes::{
    remove_tree::remove_tree,
    sandbox::{files::FilePlan, held_folder::HeldFolder},
};

use super::{
    appeared::{Ended, Repositories},
    git_files::GitBefore,
    told::names_of,
};
use crate::report;

/// What it kept of itself in its folder, which stays until that is told: whoever tells it may be killed, too.
#[derive(Debug)]
pub(super) struct KilledRun {
    folder: PathBuf,
    _lock: LockFile,
    writes: Vec<PathBuf>,
    since: SystemTime,
}

impl KilledRun {
    /// Reads the file in its folder in which it noted where its command can write, right before that started; nothing where
    /// there is none.
    pub(super) fn read(folder: PathBuf, lock: LockFile, file: &Path) -> io::Result<Option<Self>> {
        let found = fs::read(file).and_then(|noted| Ok((noted, file.metadata()?.modified()?)));
        let (noted, since) = match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let names = noted.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let writes = names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        Ok(Some(Self { folder, _lock: lock, writes, since }))
    }

    /// Looks at it now, and removes its folder.
    pub(super) fn say_what_it_left(self, homes: Vec<PathBuf>) {
        if !self.writes.is_empty() {
            self.look(homes);
        }
        // What cannot be removed now is told by the next run once more.
        let _ = remove_tree(&self.folder);
    }

    fn look(&self, homes: Vec<PathBuf>) {
        report::note(&format!(
            "footbridge: an earlier run was killed before it could look for what its command left that others run or obey, \
             in {}: that is looked at now; look at \"git status\" with core.fsmonitor=false, too, before you use git there",
            names_of(&self.writes)
        ));
        let (held, gone): (Vec<_>, Vec<_>) =
            self.writes.iter().map(|path| HeldFolder::hold(path).ok()).partition(Option::is_some);
        if !gone.is_empty() {
            report::note("footbridge: some of that is where it was no more, and is not looked at");
        }
        let held: Vec<HeldFolder> = held.into_iter().flatten().collect();
        let ended = Ended {
            writes: &held,
            since: self.since,
            homes,
            plan: &FilePlan::default(),
            is_bare: true,
            repositories: &Repositories::default(),
            git: &GitBefore::default(),
            found: None,
            session: None,
        };
        ended.say_what_appeared();
    }
}
