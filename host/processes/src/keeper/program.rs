//! The child of the keeper on its way to becoming the program.
//!
//! It runs between fork and exec. Every step that fails ends it with a [`StartRefusal`]; success is the exec itself, which
//! closes the pipe that a refusal would have gone through. Order matters: privileges go last, since the steps before
//! need them, and the death signal is set after them, since the kernel clears it when credentials change.

use std::convert::Infallible;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use footbridge_domains::Confinement;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::pty::{PtyMaster, posix_openpt, ptsname_r, unlockpt};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout, setsid};

use super::channel;
use super::exec::execute;
use super::order::{FIRST_MORE, Order, Report, Slot, Target};
use super::own_processes;
use super::tie::tie_to_keeper;
use crate::refusal::{StartRefusal, Step};
use crate::sys::{self, Inherited};
use crate::terminal::window;

/// The descriptors that the child has besides the order.
#[derive(Debug)]
pub(super) struct ChildDescriptors<'a> {
    /// Reports go here; only the one that carries the terminal comes from the child.
    pub(super) channel: &'a OwnedFd,
    /// Where a refusal goes: its other end is held by the keeper alone, so that it also tells when that is gone.
    pub(super) refusals: &'a OwnedFd,
    /// What stdin, stdout and stderr shall be.
    pub(super) streams: [Slot; 3],
    /// The descriptors for those that are given.
    pub(super) given: Vec<OwnedFd>,
    /// The terminal that the program's own is to look like.
    pub(super) local_terminal: Option<&'a OwnedFd>,
    /// What else the program gets.
    pub(super) more: Vec<OwnedFd>,
    /// Whether it was born into a pid namespace of its own.
    pub(super) own_processes: bool,
}

/// Becomes the program, or says why not.
pub(super) fn become_program(order: &Order, descriptors: ChildDescriptors<'_>) -> Result<Infallible, StartRefusal> {
    setsid().map_err(StartRefusal::at(Step::Session))?;
    // For what is held while its files are put in place.
    let (_, most) = order.inherited.files;
    let _lower_is_often_enough = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    if let Some(isolation) = &order.isolation {
        isolation.enter()?;
    }
    if descriptors.own_processes {
        own_processes::show_them(&order.own_files)?;
    }
    place_streams(&descriptors, order.target)?;
    enter_folder(order)?;
    restore(&order.inherited)?;
    sys::close_on_exec_above_stderr().map_err(StartRefusal::at(Step::Descriptors))?;
    if let Some(isolation) = &order.isolation {
        isolation.give_up_privileges()?;
    }
    pass_on(&descriptors.more)?;
    if order.confined {
        Confinement::here().enter().map_err(StartRefusal::at(Step::Confinement))?;
    }
    tie_to_keeper(descriptors.refusals)?;
    let program = order.program.to_string_lossy().into_owned();
    Err(StartRefusal::at(Step::Program(program))(execute(order)))
}

/// Makes copies that stay open when the program is executed, with numbers that are agreed on.
fn pass_on(more: &[OwnedFd]) -> Result<(), StartRefusal> {
    for (descriptor, number) in more.iter().zip(FIRST_MORE..) {
        let got = fcntl(descriptor, FcntlArg::F_DUPFD(number)).map_err(StartRefusal::at(Step::PassOn))?;
        if got != number {
            return Err(StartRefusal::at(Step::PassOn)(Errno::EBUSY));
        }
    }
    Ok(())
}

fn place_streams(descriptors: &ChildDescriptors<'_>, target: Target) -> Result<(), StartRefusal> {
    let needs_terminal = descriptors.streams.contains(&Slot::Terminal);
    let own = || own_terminal(descriptors, target).map_err(StartRefusal::at(Step::Terminal));
    let terminal = if needs_terminal { Some(own()?) } else { None };
    let mut given = descriptors.given.iter();
    for (number, slot) in descriptors.streams.iter().enumerate() {
        let source = match slot {
            Slot::Given => given.next(),
            Slot::Terminal => terminal.as_ref(),
        };
        let source = source.ok_or(Errno::EBADF).map_err(StartRefusal::at(Step::Streams))?;
        let placed = match number {
            0 => dup2_stdin(source),
            1 => dup2_stdout(source),
            _ => dup2_stderr(source),
        };
        placed.map_err(StartRefusal::at(Step::Streams))?;
    }
    Ok(())
}

/// A new terminal, the controlling one of this session unless a child shall have it; its other end goes to the harness.
///
/// It is made here, not in the harness, so that in a sandbox it belongs to the sandbox's own /dev/pts.
fn own_terminal(descriptors: &ChildDescriptors<'_>, target: Target) -> nix::Result<OwnedFd> {
    let master: PtyMaster = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    unlockpt(&master)?;
    let name = ptsname_r(&master)?;
    let slave = open(Path::new(&name), OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC, Mode::empty())?;
    if let Some(local) = descriptors.local_terminal {
        tcsetattr(&slave, SetArg::TCSANOW, &tcgetattr(local)?)?;
        window::copy(local, &slave)?;
    }
    if target != Target::Child {
        sys::take_controlling_terminal(&slave)?;
    }
    channel::send(descriptors.channel, &Report::Terminal, &[master.as_raw_fd()])?;
    Ok(slave)
}

fn enter_folder(order: &Order) -> Result<(), StartRefusal> {
    let Some(folder) = &order.folder else { return Ok(()) };
    let named = || Step::Folder(folder.to_string_lossy().into_owned());
    chdir(folder.as_os_str()).map_err(|errno| StartRefusal::at(named())(errno))
}

fn restore(inherited: &Inherited) -> Result<(), StartRefusal> {
    restore_limits(inherited)?;
    sys::reset_signal_actions(inherited.ignored);
    sys::set_blocked_signals(inherited.blocked).map_err(StartRefusal::at(Step::Signals))
}

/// Gives this process the mask and the limits back that the harness was started with.
pub(super) fn restore_limits(inherited: &Inherited) -> Result<(), StartRefusal> {
    umask(Mode::from_bits_truncate(inherited.umask));
    let limits = [(Resource::RLIMIT_CORE, inherited.core), (Resource::RLIMIT_NOFILE, inherited.files)];
    for (resource, (soft, hard)) in limits {
        setrlimit(resource, soft, hard).map_err(StartRefusal::at(Step::Limits))?;
    }
    Ok(())
}
