//! Runs that ended before they could look at what their commands left, killed mostly: the next one looks in their place.
//!
//! What was there before is not known any more, so all is told that was written since the command started.

use std::path::{Path, PathBuf};

use footbridge_processes::sandbox::{files::FilePlan, held_folder::HeldFolder};

use super::{
    appeared::{Ended, Repositories},
    git_files::GitBefore,
    note::Left,
    told::names_of,
};
use crate::report;

/// Looks now at what they left. What they noted stays until that is told: whoever tells it may be killed, too.
pub(super) fn say_what_killed_runs_left(state: &Path, homes: impl Fn() -> Vec<PathBuf>) {
    for left in Left::all(state) {
        look(&left, homes());
        left.forget();
    }
}

fn look(left: &Left, homes: Vec<PathBuf>) {
    report::note(&format!(
        "footbridge: an earlier run ended before it could look for what its command left that others run or obey, \
         in {}: that is looked at now; look at \"git status\" with core.fsmonitor=false, too, before you use git there",
        names_of(&left.writes)
    ));
    let (held, gone): (Vec<_>, Vec<_>) =
        left.writes.iter().map(|path| HeldFolder::hold(path).ok()).partition(Option::is_some);
    if !gone.is_empty() {
        report::note("footbridge: some of that is where it was no more, and is not looked at");
    }
    let held: Vec<HeldFolder> = held.into_iter().flatten().collect();
    let ended = Ended {
        writes: &held,
        since: left.since,
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
