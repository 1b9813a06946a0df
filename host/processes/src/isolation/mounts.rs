//! What the sandbox sees of the file system: the host's, read-only, but for the steps of a [`FilePlan`].
//!
//! Whatever of the host shows somewhere is copied as a mount before anything is changed, and put in place by an open
//! descriptor of that place. Only what shows in its own place in something of the host's is copied there, once that is in
//! place: there may be thousands of these, and only so many descriptors. No path is followed over a link: they are
//! resolved, and one that has a link now was replaced meanwhile.
//!
//! Devices open below /dev alone, and there those that are put in place: for whoever is root outside, a node anywhere else
//! would be a disk of the host's.
//!
//! What this process may not reach, with its capabilities still in hand, the command may not reach either: it is
//! passed over.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata, read_dir};
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use super::held::{Held, of, open, open_link, try_open};
use super::layer;
use crate::file_plan::{FileAccess, FilePlan, FileStep};
use crate::refusal::{StartRefusal, Step};
use crate::sys;

/// How an empty folder is mounted.
const EMPTY_FOLDER: &str = "mode=0755,size=64k,nr_inodes=256";

/// The devices of a private /dev.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Where those are.
fn own_devices() -> [PathBuf; 6] {
    DEVICES.map(|name| Path::new("/dev").join(name))
}

/// What of /proc is no process and might be changed: it is of the whole machine. Who is root outside may write to it, and
/// give all of it other modes, without any capability, and ordinary users may write to some of it. Whatever a kernel has
/// more of is among it.
pub(crate) fn of_the_machine() -> Vec<PathBuf> {
    let own = nix::unistd::geteuid().as_raw();
    let may_be_changed = |path: &PathBuf| {
        let is_process = path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        let found = path.symlink_metadata().ok().filter(|_| !is_process);
        let is_open = |meta: &Metadata| meta.mode() & 0o222 != 0 || meta.uid() == own;
        found.is_some_and(|meta| meta.is_dir() || (meta.is_file() && is_open(&meta)))
    };
    let mut all: Vec<PathBuf> = read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.retain(may_be_changed);
    all.sort();
    all
}

/// Keeps mounts made here from showing outside.
pub(super) fn cut_off() -> Result<(), StartRefusal> {
    nix::unistd::chdir("/").map_err(StartRefusal::at(Step::Propagation))?;
    mount_plain(None, Path::new("/"), None, MsFlags::MS_REC | MsFlags::MS_PRIVATE)
        .map_err(StartRefusal::at(Step::Propagation))
}

/// What a step needs of the host, had before the host's files change.
enum Source {
    None,
    Copy(OwnedFd),
    /// A file that many steps show.
    Shared(Rc<Held>),
    Lower(Held),
    /// What is there when the step is taken.
    InPlace,
}

/// Builds the view, as the first process of new namespaces.
pub(super) fn build_view(plan: &FilePlan) -> Result<(), StartRefusal> {
    cut_off()?;
    hold(plan.links())?;
    let sources = sources(plan)?;
    let devices = copies_of_devices()?;
    refuse_devices(&sources)?;
    let limits = MsFlags::MS_RDONLY | MsFlags::MS_NODEV;
    sys::limit_mount(&open(Path::new("/"))?.fd, limits, true).map_err(StartRefusal::at(Step::ReadOnly))?;
    mount_own_proc()?;
    mount_own_devices(devices).map_err(StartRefusal::at(Step::Devices))?;
    mount_terminals()?;
    take_all(plan, sources)?;
    close(Path::new("/dev"))
}

/// Takes the steps of a plan and changes nothing else, in a mount namespace of this process's own.
pub(crate) fn cover(plan: &FilePlan) -> Result<(), StartRefusal> {
    take_all(plan, sources(plan)?)
}

/// Whether the kernel gives this process, in namespaces of its own, what [`cover`] takes.
///
/// # Errors
/// Its reason.
pub(crate) fn can_cover() -> nix::Result<()> {
    sys::limit_mount(&sys::copy_of_mount(&try_open(Path::new("/"))?.fd)?, MsFlags::MS_RDONLY, false)
}

fn sources(plan: &FilePlan) -> Result<Vec<(&FileStep, Source)>, StartRefusal> {
    let mut shared: HashMap<&OsStr, Rc<Held>> = HashMap::new();
    let mut all = Vec::new();
    for (step, above) in plan.with_above() {
        let source = match step.access {
            // They are held, and come with what they are in.
            FileAccess::Link => continue,
            _ if step.is_in_place_below(above) => Source::InPlace,
            FileAccess::EmptyFile => match shared.entry(&step.from) {
                Entry::Occupied(held) => Source::Shared(Rc::clone(held.get())),
                Entry::Vacant(free) => Source::Shared(Rc::clone(free.insert(Rc::new(open(Path::new(&step.from))?)))),
            },
            _ => source(step)?,
        };
        all.push((step, source));
    }
    Ok(all)
}

/// Makes each of these links a mount of its own, which nobody can replace who sees it, also in copies of what it is in.
/// It lacks all that bubblewrap would take from it, since that looks for it where it leads.
fn hold<'a>(links: impl Iterator<Item = &'a Path>) -> Result<(), StartRefusal> {
    let limits = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    for path in links {
        let link = open_link(path)?;
        let copy = sys::copy_of_mount(&link.fd).map_err(StartRefusal::at(of(path)))?;
        sys::limit_mount(&copy, limits, false).map_err(StartRefusal::at(of(path)))?;
        sys::place_mount(&copy, &link.fd).map_err(StartRefusal::at(of(path)))?;
    }
    Ok(())
}

/// Takes what steps a program that makes a sandbox by itself cannot, or not so many, each where it is: keeps what is in
/// something that it will show, holds links, covers what is hidden and not gone by now, and makes read-only what will show
/// of the host's /dev.
pub(super) fn prepare(plan: &FilePlan) -> Result<(), StartRefusal> {
    let all = |accesses: &'static [FileAccess]| plan.steps.iter().filter(|step| accesses.contains(&step.access));
    let is_device = |step: &FileStep| Path::new(&step.path).starts_with("/dev");
    for step in all(&[FileAccess::ReadOnly, FileAccess::Writable]).filter(|step| !is_device(step)) {
        keep_there(step)?;
    }
    hold(plan.links())?;
    for step in all(&[FileAccess::Empty, FileAccess::EmptyFile]) {
        let source = source(step)?;
        match try_open(Path::new(&step.path)) {
            Err(errno) if is_gone(errno) => {}
            held => cover_there(step, source, &held.map_err(StartRefusal::at(of_step(step)))?)?,
        }
    }
    let shown = all(&[FileAccess::ReadOnly]).filter(|step| is_device(step)).map(|step| PathBuf::from(&step.path));
    for path in own_devices().into_iter().chain(shown) {
        if let Some((held, copy)) = read_only_copy(&path)? {
            sys::place_mount(&copy, &held.fd).map_err(StartRefusal::at(Step::Devices))?;
        }
    }
    Ok(())
}

/// Takes a step about what stays where it is. As [`cover_there`], without what bubblewrap would take from it.
fn keep_there(step: &FileStep) -> Result<(), StartRefusal> {
    let failed = || StartRefusal::at(of_step(step));
    let held = open(Path::new(&step.path))?;
    let copy = sys::copy_of_mount(&held.fd).map_err(failed())?;
    let read_only = if step.access == FileAccess::ReadOnly { MsFlags::MS_RDONLY } else { MsFlags::empty() };
    let limits = read_only | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    sys::limit_mount(&copy, limits, true).map_err(failed())?;
    sys::place_mount(&copy, &held.fd).map_err(failed())
}

/// Takes a step that hides something, where that is. The mount lacks from its start all that bubblewrap would take from it,
/// or it would look for it again.
fn cover_there(step: &FileStep, source: Source, at: &Held) -> Result<(), StartRefusal> {
    let limits = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let covered = match source {
        Source::Copy(copy) => sys::limit_mount(&copy, limits, false).and_then(|()| sys::place_mount(&copy, &at.fd)),
        Source::None | Source::Lower(_) | Source::Shared(_) | Source::InPlace => {
            mount_plain(Some("tmpfs"), &at.through_descriptor(), Some(EMPTY_FOLDER), closed() | limits)
        }
    };
    match covered {
        // It went away while it was held.
        Err(Errno::ENOENT) => Ok(()),
        covered => covered.map_err(StartRefusal::at(of_step(step))),
    }
}

fn of_step(step: &FileStep) -> Step {
    of(Path::new(&step.path))
}

/// No device opens by what the steps show but below /dev.
fn refuse_devices(sources: &[(&FileStep, Source)]) -> Result<(), StartRefusal> {
    for (step, source) in sources {
        let path = Path::new(&step.path);
        if let Source::Copy(copy) = source
            && !path.starts_with("/dev")
        {
            sys::limit_mount(copy, MsFlags::MS_NODEV, true).map_err(StartRefusal::at(of(path)))?;
        }
    }
    Ok(())
}

fn take_all(plan: &FilePlan, sources: Vec<(&FileStep, Source)>) -> Result<(), StartRefusal> {
    for (step, source) in sources {
        match take(step, source) {
            // What was there when this was planned and is not now, as a socket or a folder of some, needs nothing.
            Err(refusal) if is_gone(refusal.cause()) && !step.is_needed() => {}
            taken => taken?,
        }
    }
    for step in plan.steps.iter().filter(|step| step.access == FileAccess::Empty) {
        match close(Path::new(&step.path)) {
            Err(refusal) if is_gone(refusal.cause()) => {}
            closed => closed?,
        }
    }
    Ok(())
}

/// Whether nothing is there that this process may reach. A folder that is a file by now is none of these.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::ENOENT | Errno::EACCES)
}

fn source(step: &FileStep) -> Result<Source, StartRefusal> {
    let from = Path::new(&step.from);
    match step.access {
        FileAccess::Empty | FileAccess::Private | FileAccess::Link => Ok(Source::None),
        FileAccess::Layer => Ok(Source::Lower(open(from)?)),
        FileAccess::EmptyFile | FileAccess::ReadOnly | FileAccess::Writable => {
            let copy = sys::copy_of_mount(&open(from)?.fd).map_err(StartRefusal::at(of(from)))?;
            Ok(Source::Copy(copy))
        }
    }
}

fn take(step: &FileStep, source: Source) -> Result<(), StartRefusal> {
    let path = Path::new(&step.path);
    let failed = || StartRefusal::at(of(path));
    match source {
        Source::None => {
            let (options, flags) = match step.access {
                FileAccess::Private => ("mode=1777", MsFlags::MS_NOSUID | MsFlags::MS_NODEV),
                _ => (EMPTY_FOLDER, closed()),
            };
            let target = made(path, true)?;
            mount_plain(Some("tmpfs"), &target.through_descriptor(), Some(options), flags).map_err(failed())
        }
        Source::Lower(lower) => {
            made(path, true)?;
            layer::lay(&lower, path)
        }
        Source::Copy(copy) => place(step, &copy, None),
        Source::Shared(held) => place(step, &sys::copy_of_mount(&held.fd).map_err(failed())?, None),
        Source::InPlace => {
            let held = open(path)?;
            place(step, &sys::copy_of_mount(&held.fd).map_err(failed())?, Some(held))
        }
    }
}

/// Puts a copy where the step says, which may be open already.
fn place(step: &FileStep, copy: &OwnedFd, at: Option<Held>) -> Result<(), StartRefusal> {
    let failed = || StartRefusal::at(of_step(step));
    if step.access != FileAccess::Writable {
        sys::limit_mount(copy, MsFlags::MS_RDONLY, true).map_err(failed())?;
    }
    let at = match at {
        Some(held) => held,
        None => made(Path::new(&step.path), is_folder(copy).map_err(failed())?)?,
    };
    sys::place_mount(copy, &at.fd).map_err(failed())
}

fn is_folder(at: impl AsFd) -> nix::Result<bool> {
    let kind = nix::sys::stat::fstat(at)?.st_mode & nix::libc::S_IFMT;
    Ok(kind == nix::libc::S_IFDIR)
}

/// What is at this path. Where nothing is it is made, in folders that are the sandbox's own: others are read-only.
fn made(path: &Path, folder: bool) -> Result<Held, StartRefusal> {
    match try_open(path) {
        Err(Errno::ENOENT) => {}
        found => return found.map_err(StartRefusal::at(of(path))),
    }
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::ReadOnlyFilesystem => StartRefusal::at(of(path))(Errno::ENOENT),
        _ => StartRefusal::io_at(of(path))(error),
    };
    let above = if folder { path } else { path.parent().unwrap_or(path) };
    DirBuilder::new().recursive(true).mode(0o755).create(above).map_err(failed)?;
    if !folder {
        File::create_new(path).map_err(failed)?;
    }
    open(path)
}

/// /proc shows only the sandbox's processes, and what acts on the machine only to be read.
fn mount_own_proc() -> Result<(), StartRefusal> {
    mount_plain(Some("proc"), Path::new("/proc"), None, closed()).map_err(StartRefusal::at(Step::Proc))?;
    for held in of_the_machine().iter().filter_map(|path| try_open(path).ok()) {
        let copy = sys::copy_of_mount(&held.fd).map_err(StartRefusal::at(Step::Proc))?;
        sys::limit_mount(&copy, MsFlags::MS_RDONLY, true).map_err(StartRefusal::at(Step::Proc))?;
        sys::place_mount(&copy, &held.fd).map_err(StartRefusal::at(Step::Proc))?;
    }
    Ok(())
}

fn copies_of_devices() -> Result<Vec<(PathBuf, OwnedFd)>, StartRefusal> {
    let mut copies = Vec::new();
    for path in own_devices() {
        copies.extend(read_only_copy(&path)?.map(|(_, copy)| (path, copy)));
    }
    Ok(copies)
}

/// What is in /dev, and a copy of it, if it is there. Devices that are read-only are read and written all the same, but
/// whoever owns them outside cannot change their modes.
fn read_only_copy(path: &Path) -> Result<Option<(Held, OwnedFd)>, StartRefusal> {
    let held = match try_open(path) {
        Err(Errno::ENOENT) => return Ok(None),
        held => held.map_err(StartRefusal::at(Step::Devices))?,
    };
    let copy = sys::copy_of_mount(&held.fd).map_err(StartRefusal::at(Step::Devices))?;
    sys::limit_mount(&copy, MsFlags::MS_RDONLY, true).map_err(StartRefusal::at(Step::Devices))?;
    Ok(Some((held, copy)))
}

/// /dev has what every program expects, and shared memory of its own.
fn mount_own_devices(devices: Vec<(PathBuf, OwnedFd)>) -> nix::Result<()> {
    let errno = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(0));
    let dev = Path::new("/dev");
    mount_plain(Some("tmpfs"), dev, Some("mode=0755"), MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC)?;
    for (path, copy) in devices {
        File::create_new(&path).map_err(errno)?;
        sys::place_mount(&copy, &try_open(&path)?.fd)?;
    }
    let streams = [("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")];
    for (name, to) in streams.into_iter().chain([("fd", "/proc/self/fd"), ("ptmx", "pts/ptmx")]) {
        symlink(to, dev.join(name)).map_err(errno)?;
    }
    for name in ["pts", "shm"] {
        DirBuilder::new().mode(0o755).create(dev.join(name)).map_err(errno)?;
    }
    mount_plain(Some("tmpfs"), &dev.join("shm"), Some("mode=1777"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV)
}

/// /dev/pts shows only the sandbox's terminals.
fn mount_terminals() -> Result<(), StartRefusal> {
    let devices = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    mount_plain(Some("devpts"), Path::new("/dev/pts"), options, devices).map_err(StartRefusal::at(Step::Terminals))
}

/// Makes a folder of the sandbox's own read-only, and nothing that is mounted in it.
fn close(path: &Path) -> Result<(), StartRefusal> {
    sys::limit_mount(&open(path)?.fd, MsFlags::MS_RDONLY, false).map_err(StartRefusal::at(of(path)))
}

fn closed() -> MsFlags {
    MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC
}

fn mount_plain(kind: Option<&str>, target: &Path, options: Option<&str>, flags: MsFlags) -> nix::Result<()> {
    mount(kind, target, kind, flags, options)
}
