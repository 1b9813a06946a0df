//! Whether a folder can have a layer here that takes its writes: the kernel, and the file system below it, decide.

use std::path::Path;

use crate::keeper::{Kept, SpawnError, StartRefusal, Step};

/// Tries it, with a program that any user may run and that ends at once. `at` is an empty folder.
///
/// # Errors
/// Why not.
pub async fn can_be_laid(folder: &Path, at: &Path, program: &Path) -> Result<(), StartRefusal> {
    let tried = Kept::command(program).args(["--version"]).mounted(Some([folder, at]), &[]).spawn().await;
    match tried {
        Ok(mut kept) => {
            let _whatever_it_said = kept.wait().await;
            Ok(())
        }
        Err(SpawnError::Refused(refusal)) => Err(refusal),
        Err(_) => Err(StartRefusal { step: Step::Layer(folder.to_string_lossy().into_owned()), errno: 0 }),
    }
}
