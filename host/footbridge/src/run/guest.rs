//! Where the guest's binaries are: beside the host's own, as they are built and installed together, and out of reach of the
//! command, which could put others in their place.

use std::{
    env,
    path::{Component, Path, PathBuf},
};

use crate::config::Writable;

/// The binaries that go into a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct GuestBinaries {
    pub(crate) tool_cli: PathBuf,
    pub(crate) relay: PathBuf,
}

/// A binary is missing.
#[derive(Debug, thiserror::Error)]
#[error("cannot find {name} in {}: build it with scripts/build, or name its folder with FOOTBRIDGE_GUEST_DIR", folder.display())]
pub(crate) struct MissingBinary {
    name: &'static str,
    folder: PathBuf,
}

/// A program of Footbridge's that the command could replace, by whatever name the operator starts it.
#[derive(Debug, thiserror::Error)]
#[error(
    "the command could put another program in the place of {}, which lies where it may write, and that one would run outside: \
     keep Footbridge's programs elsewhere (\"cp -a {}/. ~/.local/bin/\" copies them), or start in another folder",
    program.display(), folder.display()
)]
pub(crate) struct ReplaceableProgram {
    program: PathBuf,
    folder: PathBuf,
}

impl GuestBinaries {
    /// Finds them, where a guest that may write this can replace neither them nor this program, by any of their names.
    pub(crate) fn out_of_reach(writable: &Writable) -> anyhow::Result<Self> {
        let guest = Self::find()?;
        let own = [env::current_exe().ok(), as_started()].into_iter().flatten();
        let mut all: Vec<PathBuf> = own.chain([guest.tool_cli.clone(), guest.relay.clone()]).collect();
        let replaceable = |program: &Path, exposed: PathBuf| {
            let folder = program.parent().map(Path::to_owned).unwrap_or_default();
            ReplaceableProgram { program: exposed, folder }
        };
        if let Some(program) = all.iter().find(|program| writable.reaches(program)) {
            return Err(replaceable(program, program.clone()).into());
        }
        // Of one that has other names, a folder is looked through for them.
        all.iter_mut().for_each(|program| *program = program.canonicalize().unwrap_or_else(|_| program.clone()));
        all.dedup();
        match all.iter().find_map(|program| Some((program, writable.another_name(program)?.0))) {
            Some((program, name)) => Err(replaceable(program, name).into()),
            None => Ok(guest),
        }
    }

    /// Finds them in the folder that `FOOTBRIDGE_GUEST_DIR` names, or beside this program.
    pub(crate) fn find() -> Result<Self, MissingBinary> {
        let named = env::var_os("FOOTBRIDGE_GUEST_DIR").map(PathBuf::from);
        let own = || env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
        let folder = named.or_else(own).unwrap_or_default();
        let find = |name| {
            let path = folder.join(name);
            if path.is_file() { Ok(path) } else { Err(MissingBinary { name, folder: folder.clone() }) }
        };
        Ok(Self { tool_cli: find("tool-cli")?, relay: find("footbridge-relay")? })
    }
}

/// A path without `..` behind folders that are no links: it does not lead through those.
fn without_parents(path: &Path) -> PathBuf {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    path.components().fold(PathBuf::new(), |before, component| match component {
        Component::ParentDir if is_folder(&before) => before.parent().unwrap_or(&before).to_owned(),
        other => before.join(other),
    })
}

/// The name that this program was started by: a link may lead to it, or a folder of `PATH` hold it.
fn as_started() -> Option<PathBuf> {
    let name = PathBuf::from(env::args_os().next()?);
    if name.components().count() > 1 {
        return std::path::absolute(name).ok().map(|path| without_parents(&path));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(&name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_path_leads_through_no_folder_that_it_leaves_again_unless_that_is_a_link() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        fs::create_dir_all(at.join("work/below")).unwrap();
        symlink("work/below", at.join("link")).unwrap();
        for (written, read) in [
            ("work/../bin/footbridge", "bin/footbridge"),
            ("work/below/../../bin/footbridge", "bin/footbridge"),
            ("work/footbridge", "work/footbridge"),
            ("link/../footbridge", "link/../footbridge"),
            ("none/../footbridge", "none/../footbridge"),
        ] {
            assert_eq!(without_parents(&at.join(written)), at.join(read), "{written}");
        }
    }
}
