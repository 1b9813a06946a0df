//! Bubblewrap: namespaces as in [`super::net`], made by another program, with the same files.
//!
//! The relay is pid 1 inside (`--as-pid-1`), so that bubblewrap's own arguments, which name what is hidden, show to
//! nobody inside, and orphans are reaped. bubblewrap itself stays outside, above it: signals and the terminal go past
//! it. It knows no layers that every version has, so the one over the home folder is laid before, by the keeper's child,
//! at a place of its own. That child holds links, too, which bubblewrap would follow, makes devices read-only, which
//! bubblewrap binds so that whoever owns them could change their modes, covers what may be gone by the time that bubblewrap
//! would, which does not start then, and cuts its mounts off from the host's: bubblewrap would show what is mounted there
//! later, and as it is. The domain that writes in the sandbox's own places alone is the relay's to enter, as the last step.
//!
//! Failure: bubblewrap says on standard error what it could not do, and ends with 1, as many commands do. So the relay
//! says on a pipe that it runs; a pipe that closes before is a sandbox that did not start.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::files::is_kernels;
use super::{FilterError, Nesting, filter_bytes};
use crate::file_plan::{FileAccess, FilePlan, FileStep, MountsBefore, with_above};
use crate::isolation::of_the_machine;
use crate::keeper::{Kept, KeptCommand};
use crate::refusal::namespaces_hint;

/// The name of the program and of its package.
pub const PROGRAM: &str = "bwrap";
const PACKAGE: &str = "bubblewrap";

/// It takes so many arguments in all, its name and the command's own among them.
const MAX_WORDS: usize = 9_000;

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
    /// It takes no more arguments.
    #[error(
        "{PROGRAM} cannot keep so much from the command: {count} files and folders that others run or obey, most of them in \
         {}; start in a folder further down, or use --sandbox net", folder.display()
    )]
    TooMany {
        /// How many are kept.
        count: usize,
        /// The folder that holds most of them.
        folder: PathBuf,
    },
    /// As [`BwrapError::TooMany`], by the command's own.
    #[error(
        "{PROGRAM} takes {MAX_WORDS} arguments in all, and the command has {0}: hand them over in a file, or use --sandbox net"
    )]
    LongCommand(usize),
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
    let (before, left) = match plan.mounts_before {
        MountsBefore::Made => split(&plan.steps, place.program),
        MountsBefore::Refused => (Vec::new(), plan.steps.iter().collect()),
    };
    files(&mut args, &left, place.layer, &of_the_machine());
    let kept = args.0.len();
    args.add(["--chdir".as_ref(), place.folder.as_os_str()]);
    args.add(["--".as_ref(), plan.program.as_os_str(), "--ready-fd".as_ref()]);
    args.add([ready_number.to_string()]);
    if place.nesting == Nesting::Refused {
        // bubblewrap has to mount yet, so that the relay enters the domain.
        let written = plan.written();
        args.add(written.iter().flat_map(|place| [OsStr::new("--write-below"), place.as_os_str()]));
    }
    args.add(relay_args);
    if args.0.len() >= MAX_WORDS {
        let others = args.0.len() - kept;
        return Err(if kept < others { BwrapError::LongCommand(others) } else { too_many(&left) });
    }
    let mut command = Kept::command(place.program).args(args.0).wrapper().more([filter, announced.into()]);
    if plan.mounts_before == MountsBefore::Made {
        let layer = plan.steps.iter().find(|step| step.access == FileAccess::Layer);
        let layer = layer.map(|step| [Path::new(&step.from), place.layer]);
        command = command.mounted(layer, FilePlan { steps: before, ..FilePlan::default() });
    }
    Ok((command, ready))
}

/// The steps that the keeper's child takes before, and those that are left for bubblewrap: only where nothing is shown
/// in it can something of the host's be hidden before, and nothing that bubblewrap itself needs: its program, and what
/// shows elsewhere. What is kept in a folder that can be written comes with that, as the mount that it was made before:
/// there may be more of it than bubblewrap takes arguments.
fn split<'a>(steps: &'a [FileStep], program: &Path) -> (Vec<FileStep>, Vec<&'a FileStep>) {
    let (mut before, mut left) = (Vec::new(), Vec::new());
    let elsewhere = steps.iter().filter(|step| step.from != step.path).map(|step| PathBuf::from(&step.from));
    let needed: BTreeSet<PathBuf> = elsewhere.chain([program.to_owned()]).chain(program.canonicalize().ok()).collect();
    let is_needed = |step: &FileStep| needed.iter().any(|path| path.starts_with(&step.path));
    for (number, (step, above)) in with_above(steps).enumerate() {
        let shown_by = above.map(|folder| folder.access);
        let is_host_s = matches!(shown_by, None | Some(FileAccess::ReadOnly | FileAccess::Writable));
        let is_alone = steps.get(number + 1).is_none_or(|next| !next.is_below(step));
        match step.access {
            FileAccess::Link => before.push(step.clone()),
            FileAccess::EmptyFile | FileAccess::Empty if is_host_s && is_alone && !is_needed(step) => {
                before.push(step.clone())
            }
            FileAccess::ReadOnly if is_kernels(Path::new(&step.path)) => {
                before.extend(Path::new(&step.path).starts_with("/dev").then(|| step.clone()));
                left.push(step);
            }
            _ if step.is_in_place_below(above) => before.push(step.clone()),
            _ => left.push(step),
        }
    }
    (before, left)
}

/// Later mounts cover earlier ones, so the order is the meaning.
fn files(args: &mut Words, steps: &[&FileStep], layer: &Path, machine: &[PathBuf]) {
    args.add(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    // Its own rules for these leave root what has no capability in its way.
    for path in machine {
        args.mount("--ro-bind", path.as_os_str(), path.as_os_str());
    }
    for FileStep { path, access, from } in steps {
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
    let empty = steps.iter().filter(|step| step.access == FileAccess::Empty && !is_missing(&step.path));
    for step in empty {
        args.add(["--remount-ro".as_ref(), step.path.as_os_str()]);
    }
}

fn is_missing(path: &OsStr) -> bool {
    Path::new(path).symlink_metadata().is_err()
}

/// Names the folder that can be written and holds most of what has to be kept.
fn too_many(left: &[&FileStep]) -> BwrapError {
    let written = left.iter().filter(|step| step.access == FileAccess::Writable);
    let in_it = |folder: &FileStep| left.iter().filter(|step| step.is_below(folder)).count();
    let most = written.max_by_key(|folder| in_it(folder)).map(|folder| PathBuf::from(&folder.path));
    BwrapError::TooMany { count: left.len(), folder: most.unwrap_or_default() }
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

    #[test]
    fn what_is_hidden_of_the_host_s_and_has_nothing_in_it_that_shows_is_covered_before() {
        let step = |path: &str, access| FileStep { path: path.into(), access, from: path.into() };
        let steps = [
            step("/a.sock", FileAccess::EmptyFile),
            step("/bin", FileAccess::Empty),
            step("/dev/dri", FileAccess::ReadOnly),
            step("/h", FileAccess::Layer),
            step("/h/secret", FileAccess::EmptyFile),
            step("/h/work", FileAccess::Writable),
            step("/h/work/.env", FileAccess::EmptyFile),
            step("/h/work/.envrc", FileAccess::Link),
            step("/h/work/.git", FileAccess::Writable),
            step("/h/work/.git/hooks", FileAccess::ReadOnly),
            step("/h/work/keys", FileAccess::Empty),
            step("/run", FileAccess::Empty),
            step("/run/s", FileAccess::ReadOnly),
            FileStep { from: "/state/bin/relay".into(), ..step("/s/relay", FileAccess::ReadOnly) },
            step("/state", FileAccess::Empty),
            step("/tmp", FileAccess::Private),
            step("/tmp/state", FileAccess::Empty),
        ];
        let (before, left) = split(&steps, Path::new("/bin/bwrap"));
        let paths =
            |steps: &[&FileStep]| steps.iter().map(|step| step.path.to_string_lossy()).collect::<Vec<_>>().join(" ");
        assert_eq!(
            paths(&before.iter().collect::<Vec<_>>()),
            "/a.sock /dev/dri /h/work/.env /h/work/.envrc /h/work/.git /h/work/.git/hooks /h/work/keys"
        );
        assert_eq!(paths(&left), "/bin /dev/dri /h /h/secret /h/work /run /run/s /s/relay /state /tmp /tmp/state");
    }

    #[test]
    fn more_than_bubblewrap_takes_is_refused_by_the_folder_that_holds_most() {
        let step = |path: &str, access| FileStep { path: path.into(), access, from: path.into() };
        let mut steps = vec![step("/a", FileAccess::Writable), step("/w", FileAccess::Writable)];
        steps.extend((0..3_000).map(|number| step(&format!("/w/{number}"), FileAccess::ReadOnly)));
        let place = |nesting| BwrapLayout {
            program: Path::new("/bin/bwrap"),
            folder: Path::new("/w"),
            layer: Path::new("/layer"),
            nesting,
        };
        let plan = FilePlan { steps, mounts_before: MountsBefore::Refused, ..FilePlan::default() };
        let refused = command(place(Nesting::Refused), &plan, Vec::new()).unwrap_err().to_string();
        assert!(refused.contains("3002 files") && refused.contains("most of them in /w;"), "{refused}");
        let plan = FilePlan { mounts_before: MountsBefore::Made, ..plan };
        assert!(command(place(Nesting::Refused), &plan, Vec::new()).is_ok());
    }

    #[test]
    fn the_host_s_root_comes_first_and_empty_folders_are_closed_last() {
        let step = |path: &str, access, from: &str| FileStep { path: path.into(), access, from: from.into() };
        let steps = [
            step("/dev/dri", FileAccess::ReadOnly, "/dev/dri"),
            step("/h", FileAccess::Layer, "/h"),
            step("/h/missing", FileAccess::EmptyFile, "/empty"),
            step("/proc/version", FileAccess::EmptyFile, "/empty"),
            step("/h/work", FileAccess::Writable, "/h/work"),
            step("/h/none", FileAccess::Empty, "/h/none"),
            step("/run", FileAccess::Empty, "/run"),
            step("/run/s", FileAccess::ReadOnly, "/run/s"),
            step("/tmp", FileAccess::Private, "/tmp"),
        ];
        let mut args = Words::default();
        files(&mut args, &steps.each_ref(), Path::new("/layer"), &["/proc/sys".into()]);
        let words: Vec<&str> = args.0.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            words.join(" "),
            "--ro-bind / / --dev /dev --proc /proc --ro-bind /proc/sys /proc/sys --dev-bind /dev/dri /dev/dri \
             --bind /layer /h --ro-bind /empty /proc/version --bind /h/work /h/work --tmpfs /run --ro-bind /run/s /run/s --tmpfs /tmp \
             --remount-ro /run"
        );
    }
}
