//! The harness's own folders, as programs find them: where they start, and what a confined one does not see.
//!
//! An MCP server is a program of the same user, so permissions keep it from nothing. Its mount namespace does: state and
//! sockets show as empty folders, and the configuration can only be read. So it cannot accept its own changed
//! definitions, answer for a person, lock the store, or replace the record's file. The folders above are mounts of their
//! own, which cannot be renamed from inside: another one in their place would be taken for ours at the next start. Where
//! the same files are mounted a second time, the same is done there.

use std::{
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, access};

use super::{StartFolder, StartFolders};
use crate::file_plan::{FileAccess, FilePlan, FileStep, Watched};
use crate::mount_table::MountTable;

/// The harness's own folders. What is missing when a program starts is passed over.
#[derive(Debug, Clone, Default)]
pub struct OwnFolders {
    /// Where programs start that name no folder.
    pub start: StartFolders,
    /// These show as empty to confined programs, but for the folder that they start in.
    pub hidden: Vec<PathBuf>,
    /// These can only be read by confined programs.
    pub read_only: Vec<PathBuf>,
}

impl OwnFolders {
    /// What is done about files for a program that got this folder to start in.
    pub(super) fn plan(&self, start: Option<&StartFolder>) -> FilePlan {
        let mounts = MountTable::read();
        let steps = |path: &PathBuf, access| step_everywhere(path, access, &mounts);
        let hidden: Vec<FileStep> = self.hidden.iter().flat_map(|path| steps(path, FileAccess::Empty)).collect();
        let is_hidden = |path: &Path| hidden.iter().any(|above| path.ancestors().skip(1).any(|up| up == above.path));
        for path in &self.read_only {
            // One that a program made would be obeyed. Where it cannot be made, no program of this user can either.
            let _made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        }
        let read_only = self.read_only.iter().flat_map(|path| steps(path, FileAccess::ReadOnly));
        // One below another is hidden with it.
        let all = hidden.iter().cloned().chain(read_only);
        let mut steps: Vec<FileStep> = all.filter(|one| !is_hidden(Path::new(&one.path))).collect();
        steps.extend(steps.iter().flat_map(|step| pins(Path::new(&step.path))).collect::<Vec<_>>());
        steps.extend(start.and_then(|start| step(start.path(), FileAccess::Writable)));
        steps.sort_by(|one, other| one.path.cmp(&other.path));
        steps.dedup_by(|one, other| one.path == other.path);
        FilePlan::new(steps, std::ffi::OsString::new(), Watched::default())
    }
}

/// The folders above this one that this user could rename.
fn pins(path: &Path) -> Vec<FileStep> {
    let can_rename = |above: &&Path| above.parent().is_some_and(|parent| access(parent, AccessFlags::W_OK).is_ok());
    path.ancestors().skip(1).filter(can_rename).filter_map(|above| step(above, FileAccess::Writable)).collect()
}

/// The step at what this path resolves to: a link on the way would be refused where the step is taken.
fn step(path: &Path, access: FileAccess) -> Option<FileStep> {
    let path = path.canonicalize().ok().filter(|path| path.is_dir() && path != Path::new("/"))?;
    Some(FileStep { from: path.clone().into_os_string(), path: path.into_os_string(), access })
}

/// That step, and the same wherever else those files show.
fn step_everywhere(path: &Path, access: FileAccess, mounts: &MountTable) -> Vec<FileStep> {
    let Some(first) = step(path, access) else { return Vec::new() };
    let others = mounts.other_places(Path::new(&first.path));
    let others: Vec<FileStep> = others.iter().filter_map(|path| step(path, access)).collect();
    std::iter::once(first).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(plan: &FilePlan) -> Vec<(&Path, FileAccess)> {
        plan.steps.iter().map(|step| (Path::new(&step.path), step.access)).collect()
    }

    #[test]
    fn the_folder_it_starts_in_shows_in_what_is_hidden_and_a_folder_comes_before_what_is_in_it() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (state, config, link) = (base.join("state"), base.join("config"), base.join("link"));
        for folder in [&state, &config, &state.join("sockets")] {
            std::fs::create_dir(folder).unwrap();
        }
        std::os::unix::fs::symlink(&state, &link).unwrap();
        let own = OwnFolders {
            start: StartFolders::below(state.join("programs")),
            hidden: vec![link, state.join("sockets"), state.clone(), base.join("missing")],
            read_only: vec![config.clone()],
        };
        let start = own.start.make().unwrap();
        let plan = own.plan(Some(&start));
        let seen =
            seen(&plan).into_iter().filter(|(path, _)| path.starts_with(&base) && *path != base).collect::<Vec<_>>();
        let expected = [
            (config.as_path(), FileAccess::ReadOnly),
            (state.as_path(), FileAccess::Empty),
            (start.path(), FileAccess::Writable),
        ];
        assert_eq!(seen, expected);
        assert!(plan.steps.iter().any(|step| step.path == base && step.access == FileAccess::Writable), "its parent");
    }

    #[test]
    fn a_program_that_starts_elsewhere_gets_no_way_in() {
        let base = tempfile::tempdir().unwrap();
        let own = OwnFolders { hidden: vec![base.path().to_owned(), "/".into()], ..OwnFolders::default() };
        let base = base.path().canonicalize().unwrap();
        assert_eq!(seen(&own.plan(None)).pop(), Some((base.as_path(), FileAccess::Empty)));
    }
}
