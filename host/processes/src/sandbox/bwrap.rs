//! Bubblewrap: namespaces as in [`super::net`], made by another program, with the same files.
//!
//! The relay is pid 1 inside (`--as-pid-1`), so that bubblewrap's own arguments, which name what is hidden, show to
//! nobody inside, and orphans are reaped. bubblewrap itself stays outside, above it: signals and the terminal go past
//! it. It knows no layers that every version has, so the one over the home folder is laid before, by the keeper's child,
//! at a place of its own. That child holds links, too, which bubblewrap would follow, makes devices read-only, which
//! bubblewrap binds so that whoever owns them could change their modes, and cuts its mounts off from the host's: bubblewrap
//! would show what is mounted there later, and as it is.
//!
//! Failure: bubblewrap says on standard error what it could not do, and ends with 1, as many commands do. So the relay
//! says on a pipe that it runs; a pipe that closes before is a sandbox that did not start.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::files::is_kernels;
use super::{FilterError, Nesting, filter_bytes};
use crate::file_plan::{FileAccess, FilePlan, FileStep, MountsBefore};
use crate::isolation::of_the_machine;
use crate::keeper::{Kept, KeptCommand};
use crate::refusal::namespaces_hint;

/// The name of the program and of its package.
pub const PROGRAM: &str = "bwrap";
const PACKAGE: &str = "bubblewrap";

/// Why there is no such sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BwrapError {
    /// The program is not there.
    #[error(
        "cannot find {PROGRAM} on PATH: install the package {PACKAGE}, or use --sandbox net, which needs no program"
    )]
    Missing,
    /// It ended before the command could start.
    #[error("{PROGRAM} could not make the sandbox; what it said is above this line ({hint})", hint = namespaces_hint())]
    NotStarted,
    /// No filter for system calls.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// No pipe.
    #[error("cannot make a pipe: {0}")]
    Pipe(#[source] io::Error),
}

/// How bubblewrap is run.
#[derive(Debug, Clone, Copy)]
pub struct BwrapLayout<'a> {
    /// The program `bwrap`.
    pub program: &'a Path,
    /// The folder that the command starts in.
    pub folder: &'a Path,
    /// An empty folder, where a folder with a layer is before it shows at its own place.
    pub layer: &'a Path,
    /// Whether the command may make namespaces.
    pub nesting: Nesting,
}

/// The command, which still needs its environment and streams, and the pipe on which the relay says that it runs.
///
/// `relay_args` is from [`super::net::relay_args`].
///
/// # Errors
/// [`BwrapError`].
pub fn command(
    place: BwrapLayout<'_>,
    plan: &FilePlan,
    relay_args: Vec<OsString>,
) -> Result<(KeptCommand, PipeReader), BwrapError> {
    let filter = readable(&filter_bytes(place.nesting)?).map_err(BwrapError::Pipe)?;
    let (ready, announced) = io::pipe().map_err(BwrapError::Pipe)?;
    let [filter_number, ready_number] = KeptCommand::NUMBERS;
    let mut args = Words::default();
    args.add(["--unshare-all", "--new-session", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--seccomp"]);
    args.add([filter_number.to_string()]);
    files(&mut args, plan, place.layer, &of_the_machine());
    args.add(["--chdir".as_ref(), place.folder.as_os_str()]);
    args.add(["--".as_ref(), plan.program.as_os_str(), "--ready-fd".as_ref()]);
    args.add([ready_number.to_string()]);
    args.add(relay_args);
    let mut command = Kept::command(place.program).args(args.0).wrapper().more([filter, announced.into()]);
    if plan.mounts_before == MountsBefore::Made {
        let layer = plan.steps.iter().find(|step| step.access == FileAccess::Layer);
        let layer = layer.map(|step| [Path::new(&step.from), place.layer]);
        command = command.mounted(layer, plan.clone());
    }
    Ok((command, ready))
}

/// Later mounts cover earlier ones, so the order is the meaning.
fn files(args: &mut Words, plan: &FilePlan, layer: &Path, machine: &[PathBuf]) {
    args.add(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    // Its own rules for these leave root what has no capability in its way.
    for path in machine {
        args.mount("--ro-bind", path.as_os_str(), path.as_os_str());
    }
    for FileStep { path, access, from } in &plan.steps {
        match access {
            // What is gone meanwhile needs no cover, and bubblewrap could not make a place for one.
            FileAccess::EmptyFile | FileAccess::Empty if is_missing(path) => {}
            FileAccess::Empty | FileAccess::Private => args.add(["--tmpfs".as_ref(), path.as_os_str()]),
            FileAccess::Layer => args.mount("--bind", layer.as_os_str(), path),
            // It would take what makes them devices from those that are named.
            FileAccess::ReadOnly if is_kernels(Path::new(path)) => args.mount("--dev-bind", from, path),
            FileAccess::EmptyFile | FileAccess::ReadOnly => args.mount("--ro-bind", from, path),
            FileAccess::Writable => args.mount("--bind", from, path),
            // It comes with what it is in, as the mount that it was made before.
            FileAccess::Link => {}
        }
    }
    let empty = plan.steps.iter().filter(|step| step.access == FileAccess::Empty && !is_missing(&step.path));
    for step in empty {
        args.add(["--remount-ro".as_ref(), step.path.as_os_str()]);
    }
}

fn is_missing(path: &OsStr) -> bool {
    Path::new(path).symlink_metadata().is_err()
}

/// A descriptor from which these few bytes can be read.
fn readable(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (reader, mut writer) = io::pipe()?;
    // Far less than what a pipe holds.
    writer.write_all(bytes)?;
    Ok(reader.into())
}

#[derive(Debug, Default)]
struct Words(Vec<OsString>);

impl Words {
    fn add(&mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
    }

    fn mount(&mut self, how: &str, from: &OsStr, at: &OsStr) {
        self.add([how.as_ref(), from, at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_plan::Watched;

    #[test]
    fn the_host_s_root_comes_first_and_empty_folders_are_closed_last() {
        let step = |path: &str, access, from: &str| FileStep { path: path.into(), access, from: from.into() };
        let plan = FilePlan::new(
            vec![
                step("/dev/dri", FileAccess::ReadOnly, "/dev/dri"),
                step("/h", FileAccess::Layer, "/h"),
                step("/h/missing", FileAccess::EmptyFile, "/empty"),
                step("/proc/version", FileAccess::EmptyFile, "/empty"),
                step("/h/work", FileAccess::Writable, "/h/work"),
                step("/h/none", FileAccess::Empty, "/h/none"),
                step("/run", FileAccess::Empty, "/run"),
                step("/run/s", FileAccess::ReadOnly, "/run/s"),
                step("/tmp", FileAccess::Private, "/tmp"),
            ],
            OsString::new(),
            Watched::default(),
        );
        let mut args = Words::default();
        files(&mut args, &plan, Path::new("/layer"), &["/proc/sys".into()]);
        let words: Vec<&str> = args.0.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            words.join(" "),
            "--ro-bind / / --dev /dev --proc /proc --ro-bind /proc/sys /proc/sys --dev-bind /dev/dri /dev/dri \
             --bind /layer /h --ro-bind /empty /proc/version --bind /h/work /h/work --tmpfs /run --ro-bind /run/s /run/s --tmpfs /tmp \
             --remount-ro /run"
        );
    }
}
