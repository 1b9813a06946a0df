//! The keeper process itself: starts the program, waits, and leaves nothing behind.
//!
//! States: starting (the pipe for refusals is open), running, ending. It ends when the program ends or when the other
//! end of its socket is gone, which is when the harness asked for it or died. In ending it kills all descendants; those of
//! a program that may leave others, and ended by itself, it leaves.
//! Every failure of its own ends it too, and with it the program. `kill -9` of the keeper ends the program by the kernel,
//! and all that came of it where it has a pid namespace ([`OwnProcesses`]); elsewhere its descendants may stay.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_dumpable};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::{ForkResult, Pid, dup2_stdin, pipe2, read};

use super::channel;
use super::finish::{Ending, children_of, end_all, reap};
use super::order::{Cleanup, Opening, Order, Report, Request, Slot, Target};
use super::own_processes::OwnProcesses;
use super::program::{ChildDescriptors, become_program};
use crate::isolation::Isolation;
use crate::refusal::{StartRefusal, Step};
use crate::sys;

/// Status of a keeper that could not do its work, as in `sysexits.h`.
const INTERNAL: i32 = 70;

/// Runs this process as a keeper to its end; gives the status to exit with.
pub(super) fn keep() -> i32 {
    match start() {
        Ok(keeper) => keeper.watch(),
        Err(_harness_sees_the_socket_close) => INTERNAL,
    }
}

struct Keeper {
    program: Pid,
    target: Target,
    cleanup: Option<Cleanup>,
    leaves_others: bool,
    channel: OwnedFd,
    signals: SignalFd,
    /// Open until the program runs.
    starting: Option<File>,
    local_terminal: Option<(OwnedFd, Termios)>,
    /// Open as long as anything is left.
    _held: Option<OwnedFd>,
    /// The first process of the program's namespace lives as long as its end of this.
    own_processes: Option<OwnProcesses>,
}

enum Event {
    News,
    ProgramEnded(Ending),
    HarnessGone,
}

fn start() -> nix::Result<Keeper> {
    // Whoever started the harness may have left some open: they are nothing to the program, and numbers of others.
    let _an_old_kernel_keeps_them = sys::close_from(3);
    let channel = take_channel()?;
    let (opening, descriptors) = channel::receive::<Opening>(&channel)?.ok_or(Errno::EPIPE)?;
    let mut descriptors = descriptors.into_iter();
    // Before the order is read, so that the copy of this process has nothing of it.
    let own_processes = own_processes(&opening).map_err(|refusal| told(&channel, refusal))?;
    let order = read_order(descriptors.next())?;
    if order.isolation.is_none() {
        set_dumpable(false)?;
    }
    let signals = all_signals()?;
    set_child_subreaper(true)?;
    let count = opening.streams.iter().filter(|slot| **slot == Slot::Given).count();
    let given: Vec<OwnedFd> = descriptors.by_ref().take(count).collect();
    let local_terminal = if opening.local_terminal { descriptors.next() } else { None };
    let held = if opening.held { descriptors.next() } else { None };
    let (starting, refusals) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    match fork(order.isolation.as_ref()) {
        Ok(ForkResult::Child) => {
            drop(starting);
            let local_terminal = local_terminal.as_ref();
            let more = descriptors.collect();
            let ours = ChildDescriptors {
                channel: &channel,
                refusals: &refusals,
                streams: opening.streams,
                given,
                local_terminal,
                more,
                own_processes: own_processes.is_some(),
            };
            let Err(refusal) = become_program(&order, ours);
            refuse(&refusal, refusals)
        }
        Ok(ForkResult::Parent { child }) => {
            // From here on nobody of the same user may look into the environment that the order holds.
            set_dumpable(false)?;
            let local_terminal = local_terminal.and_then(|fd| tcgetattr(&fd).ok().map(|state| (fd, state)));
            let Order { target, cleanup, leaves_others, .. } = order;
            Ok(Keeper {
                program: child,
                target,
                cleanup,
                leaves_others,
                channel,
                signals,
                starting: Some(File::from(starting)),
                local_terminal,
                _held: held,
                own_processes,
            })
        }
        Err(refusal) => Err(told(&channel, refusal)),
    }
}

/// The namespace that was asked for; none where none was, or none is to be had here.
fn own_processes(opening: &Opening) -> Result<Option<OwnProcesses>, StartRefusal> {
    let begin = || OwnProcesses::begin().map_err(StartRefusal::at(Step::Confinement));
    Ok(opening.own_processes.then(begin).transpose()?.flatten())
}

/// Tells the harness why there is no program; gives what that ends this process with.
fn told(channel: &OwnedFd, refusal: StartRefusal) -> Errno {
    let _harness_may_be_gone = channel::send(channel, &Report::Refused(refusal), &[]);
    Errno::ECHILD
}

/// The order in this file.
fn read_order(file: Option<OwnedFd>) -> nix::Result<Order> {
    let file = File::from(file.ok_or(Errno::EBADMSG)?);
    serde_json::from_reader(std::io::BufReader::new(file)).map_err(|_| Errno::EBADMSG)
}

/// The socket to the harness, which this process got as its standard input.
fn take_channel() -> nix::Result<OwnedFd> {
    let channel = std::io::stdin().as_fd().try_clone_to_owned().map_err(|_| Errno::EBADF)?;
    dup2_stdin(File::open("/dev/null").map_err(|_| Errno::ENOENT)?)?;
    Ok(channel)
}

/// All signals, which from now on are read and do nothing else.
fn all_signals() -> nix::Result<SignalFd> {
    SigSet::all().thread_block()?;
    SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

fn fork(isolation: Option<&Isolation>) -> Result<ForkResult, StartRefusal> {
    match isolation {
        None => sys::fork().map_err(StartRefusal::at(Step::Fork)),
        Some(isolation) => sys::fork_into(isolation.namespaces()).map_err(StartRefusal::at(Step::Namespaces)),
    }
}

fn refuse(refusal: &StartRefusal, pipe: OwnedFd) -> ! {
    let text = serde_json::to_vec(refusal).unwrap_or_default();
    let _keeper_may_be_gone = File::from(pipe).write_all(&text);
    std::process::exit(refusal.exit_code())
}

impl Keeper {
    fn watch(mut self) -> i32 {
        let ending = loop {
            match self.next_event() {
                Ok(Event::News) => {}
                Ok(Event::ProgramEnded(ending)) => break Some(ending),
                Ok(Event::HarnessGone) | Err(_) => break None,
            }
        };
        if ending.is_some() {
            self.settle_start();
        }
        let (ending, is_gone) = match ending {
            Some(Ending::Exited(_)) if self.leaves_others => (ending, true),
            Some(_) | None => self.end(ending),
        };
        let (report, status) = match ending {
            Some(Ending::Exited(code)) => (Report::Exited(code), code),
            Some(Ending::Signaled(signal)) => (Report::Signaled(signal), 128 + signal),
            None => return INTERNAL,
        };
        if !is_gone {
            let _harness_may_be_gone = channel::send(&self.channel, &Report::MayBeLeft, &[]);
        }
        let _harness_may_be_gone = channel::send(&self.channel, &report, &[]);
        self.restore_local_terminal();
        status
    }

    /// Leaves nothing behind, given how the program ended, if it did; says how, and whether all of it is known to be gone.
    fn end(&self, ended: Option<Ending>) -> (Option<Ending>, bool) {
        let cleaned = self.cleanup.as_ref().map(|cleanup| cleanup.run(self.program, ended, &self.signals));
        let killed = end_all(self.program, &self.signals);
        let ordered = cleaned.and_then(|cleaned| cleaned.ending);
        (ended.or(ordered).or(killed), cleaned.is_none_or(|cleaned| cleaned.is_gone))
    }

    /// Undoes the raw mode that a harness left behind, in the middle of a question too; one that lives does so itself,
    /// after the last output.
    ///
    /// Waits for the harness to have heard the report: the program can notice that it is being killed, and end, before
    /// the kernel closes its end of the socket.
    fn restore_local_terminal(&self) {
        let Some((terminal, before)) = &self.local_terminal else { return };
        while let Ok(Some(_too_late)) = channel::receive::<Request>(&self.channel) {}
        if !self.is_harness_gone() {
            return;
        }
        crate::terminal::restore_unended(terminal, before);
    }

    /// Gone, not merely done: one that has heard the report closes its end for writing only.
    fn is_harness_gone(&self) -> bool {
        let mut harness = [PollFd::new(self.channel.as_fd(), PollFlags::empty())];
        poll(&mut harness, PollTimeout::ZERO).is_ok()
            && harness[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
    }

    fn next_event(&mut self) -> nix::Result<Event> {
        let mut watched = vec![
            PollFd::new(self.channel.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        if let Some(pipe) = &self.starting {
            watched.push(PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut watched, PollTimeout::NONE) {
            Err(Errno::EINTR) => return Ok(Event::News),
            other => other?,
        };
        let ready: Vec<bool> = watched.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        if ready.get(2) == Some(&true) {
            self.settle_start();
        }
        if ready.first() == Some(&true) && !self.serve_request()? {
            return Ok(Event::HarnessGone);
        }
        if ready.get(1) == Some(&true) {
            return self.take_signals();
        }
        Ok(Event::News)
    }

    /// Tells the harness how the start went, once that is known. Blocks only until the program is executed or refused.
    fn settle_start(&mut self) {
        let Some(pipe) = self.starting.take() else { return };
        let mut text = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = read(&pipe, &mut chunk) {
            text.extend_from_slice(&chunk[..count]);
        }
        let report = match serde_json::from_slice::<StartRefusal>(&text) {
            Ok(refusal) => Report::Refused(refusal),
            Err(_nothing_was_refused) => {
                Report::Started { pid: self.program.as_raw(), own_processes: self.own_processes.is_some() }
            }
        };
        let _harness_may_be_gone = channel::send(&self.channel, &report, &[]);
    }

    /// False when the harness is gone.
    fn serve_request(&self) -> nix::Result<bool> {
        match channel::receive::<Request>(&self.channel)? {
            Some((Request::Signal(number), _)) => {
                if let Ok(signal) = Signal::try_from(number) {
                    self.forward(signal);
                }
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn take_signals(&self) -> nix::Result<Event> {
        while let Some(info) = self.signals.read_signal()? {
            let number = i32::try_from(info.ssi_signo).unwrap_or(0);
            match Signal::try_from(number) {
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => self.forward(signal),
            }
        }
        Ok(match reap(self.program).program {
            Some(ending) => Event::ProgramEnded(ending),
            None => Event::News,
        })
    }

    fn forward(&self, signal: Signal) {
        match self.target {
            Target::Group if kill(Pid::from_raw(-self.program.as_raw()), signal) != Err(Errno::ESRCH) => {}
            // Not yet the leader of its group, where it is a group.
            Target::Group | Target::Program => {
                let _it_may_have_ended = kill(self.program, signal);
            }
            Target::Child => {
                for child in children_of(self.program) {
                    let _it_may_have_ended = kill(child, signal);
                }
            }
        }
    }
}
