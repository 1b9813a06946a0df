//! Bubblewrap: namespaces as in [`super::net`], and besides a file system that is read-only.
//!
//! The command may write to its working folder, to a private /tmp and to nothing else. The root is the host's, less
//! what is hidden; /proc and /dev are its own. The relay is pid 1 inside (`--as-pid-1`), so that bubblewrap's own
//! arguments, which name what is hidden, show to nobody inside, and orphans are reaped. bubblewrap itself stays
//! outside, above it: signals and the terminal go past it.
//!
//! Failure: bubblewrap says on standard error what it could not do, and ends with 1, as many commands do. So the relay
//! says on a pipe that it runs; a pipe that closes before is a sandbox that did not start.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::net::{View, strings};
use super::{FilterError, filter_bytes};
use crate::isolation::paths_to_hide;
use crate::keeper::{Kept, KeptCommand};
use crate::refusal::{StartRefusal, namespaces_hint};

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
    /// All of the file system would be writable.
    #[error(
        "the working folder is /, and --sandbox bwrap makes the working folder writable: start from a folder of your own"
    )]
    Root,
    /// The working folder is gone.
    #[error("cannot find the working folder: {0}")]
    Folder(#[source] io::Error),
    /// Something cannot be hidden.
    #[error(transparent)]
    Hide(#[from] StartRefusal),
    /// No filter for system calls.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// No pipe.
    #[error("cannot make a pipe: {0}")]
    Pipe(#[source] io::Error),
}

/// What stands where.
#[derive(Debug, Clone)]
pub struct BwrapLayout<'a> {
    /// The program `bwrap`.
    pub program: &'a Path,
    /// What goes inside, by its path outside and the empty file that it is mounted on; the relay comes first.
    pub mounted: [(&'a Path, PathBuf); 2],
    /// An empty file, which covers hidden ones.
    pub empty: &'a Path,
    /// The folder that the command may write to.
    pub folder: PathBuf,
}

/// The command, which still needs its environment and streams, and the pipe on which the relay says that it runs.
///
/// `relay_args` is from [`super::net::relay_args`].
pub fn command(
    place: &BwrapLayout<'_>,
    view: &View,
    relay_args: Vec<OsString>,
) -> Result<(KeptCommand, PipeReader), BwrapError> {
    let hidden: Vec<PathBuf> =
        paths_to_hide(&strings(&view.hidden_folders), &view.all_hidden_files())?.into_iter().collect();
    let filter = readable(&filter_bytes()?).map_err(BwrapError::Pipe)?;
    let (ready, announced) = io::pipe().map_err(BwrapError::Pipe)?;
    let [filter_number, ready_number] = KeptCommand::NUMBERS;
    let mut args = Words::default();
    args.add(["--unshare-all", "--new-session", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--seccomp"]);
    args.add([filter_number.to_string()]);
    files(&mut args, place, &hidden, &view.socket_folder);
    args.add(["--chdir".as_ref(), place.folder.as_os_str()]);
    let [(_, relay), _] = &place.mounted;
    args.add(["--".as_ref(), relay.as_os_str(), "--ready-fd".as_ref()]);
    args.add([ready_number.to_string()]);
    args.add(relay_args);
    let command = Kept::command(place.program).args(args.0).wrapper().more([filter, announced.into()]);
    Ok((command, ready))
}

/// Later mounts cover earlier ones, so the order is the meaning.
fn files(args: &mut Words, place: &BwrapLayout<'_>, hidden: &[PathBuf], shown: &Path) {
    args.add(["--ro-bind", "/", "/", "--tmpfs", "/tmp"]);
    args.mount("--bind", &place.folder, &place.folder);
    for pin in pins(hidden, &place.folder) {
        args.mount("--bind", pin, pin);
    }
    args.add(["--dev", "/dev", "--proc", "/proc"]);
    for path in hidden {
        if path.is_dir() {
            args.add(["--tmpfs".as_ref(), path.as_os_str()]);
        } else {
            args.mount("--ro-bind", place.empty, path);
        }
    }
    args.mount("--ro-bind", shown, shown);
    for (program, at) in &place.mounted {
        args.mount("--ro-bind", program, at);
    }
    for path in hidden.iter().filter(|path| path.is_dir() && *path != shown) {
        args.add(["--remount-ro".as_ref(), path.as_os_str()]);
    }
}

/// The folders between the writable one and what is hidden in it, outermost first. They become mounts, or the command
/// could rename them and put folders of its own at the hidden paths, which the harness would open for ours later.
fn pins<'a>(hidden: &'a [PathBuf], folder: &Path) -> std::collections::BTreeSet<&'a Path> {
    let inside = |above: &&Path| *above != folder && above.starts_with(folder);
    hidden.iter().flat_map(|path| path.ancestors().skip(1)).filter(inside).collect()
}

/// A descriptor from which these few bytes can be read.
fn readable(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (reader, mut writer) = io::pipe()?;
    // Far less than what a pipe holds.
    writer.write_all(bytes)?;
    Ok(reader.into())
}

/// The working folder as the sandbox will have it.
pub fn working_folder() -> Result<PathBuf, BwrapError> {
    let folder = std::env::current_dir().and_then(|folder| folder.canonicalize()).map_err(BwrapError::Folder)?;
    if folder == Path::new("/") { Err(BwrapError::Root) } else { Ok(folder) }
}

#[derive(Debug, Default)]
struct Words(Vec<OsString>);

impl Words {
    fn add(&mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
    }

    fn mount(&mut self, how: &str, from: &Path, at: &Path) {
        self.add([how.as_ref(), from.as_os_str(), at.as_os_str()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_above_what_is_hidden_are_pinned_within_the_writable_one_only() {
        let hidden = [PathBuf::from("/h/me/.config/footbridge"), PathBuf::from("/etc/footbridge"), "/h/me/x".into()];
        let found: Vec<&Path> = pins(&hidden, Path::new("/h/me")).into_iter().collect();
        assert_eq!(found, [Path::new("/h/me/.config")]);
        assert!(pins(&hidden, Path::new("/h/me/.config/footbridge")).is_empty());
    }

    #[test]
    fn the_host_s_root_comes_first_and_what_is_shown_comes_after_what_is_hidden() {
        let place = BwrapLayout {
            program: Path::new("/b"),
            mounted: [(Path::new("/relay"), "/run/s/relay".into()), (Path::new("/tool"), "/run/s/tool".into())],
            empty: Path::new("/run/empty"),
            folder: "/work".into(),
        };
        let mut args = Words::default();
        files(&mut args, &place, &["/etc".into(), "/no/such/file".into()], Path::new("/run/s"));
        let words: Vec<&str> = args.0.iter().map(|word| word.to_str().unwrap()).collect();
        let text = words.join(" ");
        assert_eq!(
            text,
            "--ro-bind / / --tmpfs /tmp --bind /work /work --dev /dev --proc /proc --tmpfs /etc \
             --ro-bind /run/empty /no/such/file --ro-bind /run/s /run/s --ro-bind /relay /run/s/relay \
             --ro-bind /tool /run/s/tool --remount-ro /etc"
        );
    }
}
