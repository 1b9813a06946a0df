//! Where the guest's binaries are: beside the host's own, as they are built and installed together.

use std::path::{Path, PathBuf};

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

impl GuestBinaries {
    /// Finds them in the folder that `FOOTBRIDGE_GUEST_DIR` names, or beside this program.
    pub(crate) fn find() -> Result<Self, MissingBinary> {
        let named = std::env::var_os("FOOTBRIDGE_GUEST_DIR").map(PathBuf::from);
        let own = || std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
        let folder = named.or_else(own).unwrap_or_default();
        let find = |name| {
            let path = folder.join(name);
            if path.is_file() { Ok(path) } else { Err(MissingBinary { name, folder: folder.clone() }) }
        };
        Ok(Self { tool_cli: find("tool-cli")?, relay: find("footbridge-relay")? })
    }
}
