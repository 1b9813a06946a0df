//! What a container gets of the host's files by the operator's own arguments. What is mounted is as it is: what must not be
//! written or seen is refused.

use std::path::{Path, PathBuf};

use footbridge_processes::sandbox::{
    engine_args::{HostMount, host_mounts, opening, unfit},
    places::is_guarded,
};

use super::Run;
use crate::report;

/// Why a container cannot have what its arguments say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ContainerFilesError {
    /// It would not be in our hands.
    #[error(
        "--engine-arg {0}: by it the container would not be Footbridge's own to see, to signal and to remove; leave it out"
    )]
    Unfit(String),
    /// What is obeyed outside could be written.
    #[error(
        "{} is obeyed here, and in a folder that the container can write: what it puts there would run outside, as you, \
         the next time. Keep it elsewhere, or mount the folder with :ro", .0.display()
    )]
    Obeyed(PathBuf),
    /// The harness's own.
    #[error(
        "{} would be mounted, and Footbridge keeps its own files in {}, tokens and the record's key among them: mount \
         another folder", path.display(), own.display()
    )]
    Own {
        /// What is mounted.
        path: PathBuf,
        /// The harness's folder.
        own: PathBuf,
    },
    /// A secret of the configuration.
    #[error(
        "{} is a secret of the configuration, and would show in the container: mount a folder that it is not in",
        .0.display()
    )]
    Secret(PathBuf),
}

/// The folders that a container can write, where it may have all that its arguments mount. Says what takes isolation away.
///
/// # Errors
/// [`ContainerFilesError`].
pub(super) fn written(run: &Run, own: &[PathBuf]) -> Result<Vec<PathBuf>, ContainerFilesError> {
    if let Some(arg) = unfit(&run.engine_args) {
        return Err(ContainerFilesError::Unfit(arg));
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mounts: Vec<HostMount> = host_mounts(&run.engine_args)
        .into_iter()
        .map(|mount| HostMount { source: real(&mount.source), ..mount })
        .collect();
    for HostMount { source, .. } in &mounts {
        if let Some(own) =
            own.iter().map(|own| real(own)).find(|own| own.starts_with(source) || source.starts_with(own))
        {
            return Err(ContainerFilesError::Own { path: source.clone(), own });
        }
        if let Some(secret) = run.config.gathered.files.iter().find(|secret| real(secret).starts_with(source)) {
            return Err(ContainerFilesError::Secret(secret.clone()));
        }
    }
    let writable = run.sandbox.writable(&run.engine_args, &[]);
    if let Some(file) = run.config.files.iter().find(|file| writable.reaches(file)) {
        return Err(ContainerFilesError::Obeyed(file.clone()));
    }
    let mut opening = opening(&run.engine_args);
    let guarded = mounts.iter().filter(|mount| mount.is_writable && is_guarded(&mount.source));
    opening.extend(
        guarded.map(|mount| format!("{} (what is written there runs, or is obeyed, outside)", mount.source.display())),
    );
    if !opening.is_empty() {
        report::note(&format!("footbridge: less isolated by --engine-arg: {}", opening.join(", ")));
    }
    let written = mounts.into_iter().filter(|mount| mount.is_writable && mount.source.is_dir());
    Ok(written.map(|mount| mount.source).collect())
}
