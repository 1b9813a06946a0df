//! What a command put in place of what was kept from it: with namespaces of its own it can, since what is kept is kept by
//! mounts. Nothing is put back; it is said, and first of all if Footbridge itself would obey it at the next start.

use std::path::PathBuf;

use footbridge_processes::{
    keeper::Confinement,
    sandbox::{Nesting, files::FilePlan, kept_names::KeptNames},
};

use super::{Run, moved::Moved, told::names_of};
use crate::report;

/// What is kept in a run whose command, or another run, may have a way past that.
#[derive(Debug, Default)]
pub(super) struct KeptFiles {
    names: KeptNames,
    /// Configurations and files of secrets.
    own: Vec<PathBuf>,
}

impl KeptFiles {
    /// As it is now.
    pub(super) fn of(run: &Run, plan: &FilePlan) -> Self {
        if run.nesting == Nesting::Refused && Confinement::here() != Confinement::None {
            return Self::default();
        }
        let own = run.config.files.iter().chain(&run.config.gathered.files);
        Self { names: KeptNames::of(plan), own: own.filter_map(|path| path.canonicalize().ok()).collect() }
    }

    /// Says what is not as it was, wherever the folders are that it is in.
    pub(super) fn say_what_was_replaced(&self, moved: &Moved) {
        let replaced = self.names.replaced(|path| moved.now(path));
        if replaced.is_empty() {
            return;
        }
        report::note(&format!(
            "footbridge: WARNING: replaced, removed or changed while the command ran, though kept from it: {}; a command with \
             namespaces of its own can do that: look at each before you run or open anything there",
            names_of(&replaced)
        ));
        let is_replaced = |path: &PathBuf| path.ancestors().any(|above| replaced.iter().any(|one| one == above));
        let own: Vec<PathBuf> = self.own.iter().map(|path| moved.now(path)).filter(is_replaced).collect();
        if !own.is_empty() {
            report::note(&format!(
                "footbridge: WARNING: of these, configuration or secrets of Footbridge: {}; the next run would start, outside \
                 of any sandbox, what is written there now, and show what is hidden no more: put them right before it",
                names_of(&own)
            ));
        }
    }
}
