//! Whether a folder can have a layer here that takes its writes: the kernel, and the file system below it, decide. And
//! whether there can be mounts at all.

use std::path::Path;

use nix::errno::Errno;

use crate::file_plan::FilePlan;
use crate::keeper::{Kept, SpawnError, StartRefusal, Step};

/// Tries it, with a program that any user may run and that ends at once. `at` is an empty folder.
///
/// # Errors
/// Why not.
pub async fn can_be_laid(folder: &Path, at: &Path, program: &Path) -> Result<(), StartRefusal> {
    can_mount(Some([folder, at]), program).await
}

/// Whether a child of the keeper can make mounts in namespaces of its own, tried as [`can_be_laid`] does.
///
/// # Errors
/// Why not.
pub async fn mounts_can_be_made(program: &Path) -> Result<(), StartRefusal> {
    can_mount(None, program).await
}

async fn can_mount(layer: Option<[&Path; 2]>, program: &Path) -> Result<(), StartRefusal> {
    let step = || layer.map_or(Step::Namespaces, |[folder, _]| Step::Layer(folder.to_string_lossy().into_owned()));
    let tried = Kept::command(program).args(["--version"]).mounted(layer, FilePlan::default()).spawn().await;
    match tried {
        Ok(mut kept) => {
            let _whatever_it_said = kept.wait().await;
            Ok(())
        }
        Err(SpawnError::Refused(refusal)) => Err(refusal),
        Err(SpawnError::Keeper(error) | SpawnError::Pipes(error)) => Err(StartRefusal::io_at(step())(error)),
        // It was killed, or nobody knows.
        Err(SpawnError::Lost) => Err(StartRefusal::at(step())(Errno::ECHILD)),
    }
}
