//! Where the guest's binaries are: beside the host's own, as they are built and installed together, and out of reach of the
//! command, which could put others in their place.

use std::{
    env,
    path::{Path, PathBuf},
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
    /// Checks that where a guest may write this nothing of it is, nor this program, by any of their names.
    pub(crate) fn check_out_of_reach(&self, writable: &Writable) -> Result<(), ReplaceableProgram> {
        let own = [env::current_exe().ok(), as_started()].into_iter().flatten();
        for program in own.chain([self.tool_cli.clone(), self.relay.clone()]) {
            let another = writable.another_name(&program).map(|(name, _)| name);
            if let Some(exposed) = writable.reaches(&program).then(|| program.clone()).or(another) {
                let folder = program.parent().map(Path::to_owned).unwrap_or_default();
                return Err(ReplaceableProgram { program: exposed, folder });
            }
        }
        Ok(())
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

/// The name that this program was started by: a link may lead to it, or a folder of `PATH` hold it.
fn as_started() -> Option<PathBuf> {
    let name = PathBuf::from(env::args_os().next()?);
    if name.components().count() > 1 {
        return std::path::absolute(name).ok();
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(&name)).find(|program| program.is_file())
}
