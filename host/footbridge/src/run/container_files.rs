//! What a container gets of the host's files by the operator's own arguments. What is mounted is as it is: what must not be
//! written or seen is refused, and so is what a link leads to that an earlier command may have left.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use footbridge_processes::sandbox::{
    engine_args::{Unmountable, ambiguous, host_mounts, opening, unfit, with_sources},
    held_folder::HeldFolder,
    places::is_guarded,
};

use super::{
    Run,
    links::{KeptBack, LinkElsewhere},
};
use crate::{config::trust::walk, report};

/// What the source of a mount is called.
const SOURCE: &str = "--engine-arg with the source";

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
    /// Engines would not agree on the path.
    #[error("--engine-arg {0}")]
    Ambiguous(String),
    /// The flag cannot hold it.
    #[error(transparent)]
    Unmountable(#[from] Unmountable),
    /// It is not there.
    #[error("--engine-arg with the source {}: {source}; mount something that is there", path.display())]
    Missing {
        /// What is to be mounted.
        path: PathBuf,
        /// Why it cannot be found.
        source: io::Error,
    },
    /// A link leads to what nobody named.
    #[error(transparent)]
    Link(#[from] LinkElsewhere),
    /// It is another one by now.
    #[error(
        "--engine-arg with the source {}: it was replaced while it was looked at: see what else writes there", .0.display()
    )]
    Replaced(PathBuf),
    /// Programs and files of the configuration were looked at with others.
    #[error(
        "what --engine-arg mounts was replaced while the configuration was read, or mounted elsewhere: start it again, and \
         see what else writes there"
    )]
    Changed,
    /// A secret of the configuration.
    #[error(
        "{} is a secret of the configuration, and would show in the container: mount a folder that it is not in",
        .0.display()
    )]
    Secret(PathBuf),
}

/// What a container gets of the host's files.
#[derive(Debug, Default)]
pub(super) struct ContainerFiles {
    /// The engine's arguments, with each source where it was found.
    pub(super) engine_args: Vec<OsString>,
    /// What its relay is to find, as `DEVICE:INODE:PATH`.
    pub(super) mounted: Vec<OsString>,
    /// All that is mounted.
    pub(super) sources: Vec<PathBuf>,
    /// The folders that it can write.
    pub(super) written: Vec<HeldFolder>,
    /// All else, which stays what it is as long as it is held: no new file gets its numbers.
    _held: Vec<HeldFolder>,
}

impl ContainerFiles {
    /// All that its arguments mount, where it may have that. Says what takes isolation away.
    ///
    /// What is decided about is held first, and known by where it is then. The engine is told that place, and the relay
    /// whether it found the same file there: another container may put a link there meanwhile.
    pub(super) fn of(run: &Run, own: &[PathBuf], kept: &KeptBack) -> Result<Self, ContainerFilesError> {
        if let Some(arg) = unfit(&run.engine_args) {
            return Err(ContainerFilesError::Unfit(arg));
        }
        if let Some(told) = ambiguous(&run.engine_args) {
            return Err(ContainerFilesError::Ambiguous(told));
        }
        let mounts = host_mounts(&run.engine_args);
        let held: Vec<HeldFolder> = mounts.iter().map(|mount| hold(&mount.source, kept)).collect::<Result<_, _>>()?;
        let sources: Vec<&Path> = held.iter().map(HeldFolder::path).collect();
        check(run, own, &sources)?;
        let engine_args = with_sources(&run.engine_args, &sources)?;
        let writable = run.sandbox.writable(&engine_args, &[]);
        if writable != run.writable {
            return Err(ContainerFilesError::Changed);
        }
        if let Some(file) = run.config.files.iter().find(|file| writable.reaches(file)) {
            return Err(ContainerFilesError::Obeyed(file.clone()));
        }
        say_what_opens(
            run,
            mounts.iter().zip(&sources).filter(|(mount, _)| mount.is_writable).map(|(_, source)| *source),
        );
        let sources = sources.into_iter().map(Path::to_owned).collect();
        let (mut mounted, mut written, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (mount, held) in mounts.into_iter().zip(held) {
            // The layer over it has numbers of its own.
            if !mount.is_layered {
                mounted.push(numbered(&held, &mount.target)?);
            }
            let kind = if mount.is_writable && held.path().is_dir() { &mut written } else { &mut others };
            kind.push(held);
        }
        Ok(Self { engine_args, mounted, sources, written, _held: others })
    }
}

/// How the relay is told which file is to be at this path inside.
pub(super) fn numbered(held: &HeldFolder, inside: &Path) -> Result<OsString, ContainerFilesError> {
    let missing = |source| ContainerFilesError::Missing { path: held.path().to_owned(), source };
    let mut text = OsString::from(held.numbers().map_err(missing)?);
    text.push(":");
    text.push(inside);
    Ok(text)
}

/// What this source leads to, by no link that opens what nobody named.
fn hold(source: &Path, kept: &KeptBack) -> Result<HeldFolder, ContainerFilesError> {
    let missing = |error| ContainerFilesError::Missing { path: source.to_owned(), source: error };
    let held = HeldFolder::hold_by(source).map_err(missing)?;
    kept.check(SOURCE, source, held.path(), true)?;
    // The links that were looked at are those by which it was found.
    match walk(source) {
        Ok((_, real)) if real == held.path() => Ok(held),
        Ok(_) | Err(_) => Err(ContainerFilesError::Replaced(source.to_owned())),
    }
}

/// Refuses what must not be seen inside.
fn check(run: &Run, own: &[PathBuf], sources: &[&Path]) -> Result<(), ContainerFilesError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for source in sources {
        if let Some(own) =
            own.iter().map(|own| real(own)).find(|own| own.starts_with(source) || source.starts_with(own))
        {
            return Err(ContainerFilesError::Own { path: source.to_path_buf(), own });
        }
        if let Some(secret) = run.config.gathered.files.iter().find(|secret| real(secret).starts_with(source)) {
            return Err(ContainerFilesError::Secret(secret.clone()));
        }
    }
    Ok(())
}

fn say_what_opens<'a>(run: &Run, written: impl Iterator<Item = &'a Path>) {
    let mut opening = opening(&run.engine_args);
    let guarded = written.filter(|source| is_guarded(source));
    opening.extend(
        guarded.map(|source| format!("{} (what is written there runs, or is obeyed, outside)", source.display())),
    );
    if !opening.is_empty() {
        report::note(&format!("footbridge: less isolated by --engine-arg: {}", opening.join(", ")));
    }
}
