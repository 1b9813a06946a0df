//! Describing a program and starting it under a keeper.
//!
//! The environment and arguments of the program never show in the keeper's own: they go to it in a file without a
//! name, and the streams as descriptors in a message. So nothing has to run between fork and exec of the keeper, and a
//! harness with much memory starts one as fast as a small one.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::Pid;
use tokio::net::unix::pipe::{Receiver, Sender};

use super::KEEPER;
use super::order::{Cleanup, FIRST_MORE, MORE, Opening, Order, Report, Slot, Target};
use super::{Kept, SpawnError, channel};
use crate::file_plan::FilePlan;
use crate::isolation::Isolation;
use crate::sys::{self, Inherited};

/// What one of the program's three streams is.
#[derive(Debug, Default)]
pub enum ProgramStream {
    /// Nothing to read, and writes go nowhere.
    #[default]
    Null,
    /// The harness's own.
    Inherit,
    /// A pipe whose other end is in [`Kept`].
    Pipe,
    /// This descriptor.
    Given(OwnedFd),
    /// The program's own terminal, one for all streams that say so.
    Terminal,
}

/// A program to be started.
#[derive(Debug)]
pub struct KeptCommand {
    helper: PathBuf,
    order: Order,
    streams: [ProgramStream; 3],
    local_terminal: Option<OwnedFd>,
    held: Option<OwnedFd>,
    more: Vec<OwnedFd>,
}

impl KeptCommand {
    pub(super) fn new(program: &OsStr) -> Self {
        let order = Order {
            program: program.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
            inherited: Inherited::of_this_process(),
            isolation: None,
            target: Target::Group,
            confined: false,
            own_files: FilePlan::default(),
            cleanup: None,
            leaves_others: false,
        };
        let helper = PathBuf::from("/proc/self/exe");
        Self { helper, order, streams: Default::default(), local_terminal: None, held: None, more: Vec::new() }
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.order.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets the whole environment; there is no other.
    pub fn env(mut self, env: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>) -> Self {
        self.order.env = env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self
    }

    /// Sets the working folder; without it, the harness's.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.order.folder = Some(folder.as_ref().as_os_str().to_owned());
        self
    }

    /// Sets stdin, stdout and stderr, all nothing otherwise.
    pub fn streams(mut self, stdin: ProgramStream, stdout: ProgramStream, stderr: ProgramStream) -> Self {
        self.streams = [stdin, stdout, stderr];
        self
    }

    /// The terminal that the program's own starts out like, in size and settings. Should the harness be killed, the
    /// keeper also gives it back the settings that it had at the start.
    pub fn local_terminal(mut self, terminal: OwnedFd) -> Self {
        self.local_terminal = Some(terminal);
        self
    }

    /// Has the keeper hold this open until nothing of the program is left, also where the harness is killed before: a locked
    /// file stays locked. The program does not get it.
    pub fn held(mut self, file: OwnedFd) -> Self {
        self.held = Some(file);
        self
    }

    /// The program that calls [`crate::keeper::become_one_if_told`] first thing in its `main`; without it, this very one. A
    /// program that only embeds this library names the installed `footbridge` here.
    pub fn helper(mut self, helper: impl Into<PathBuf>) -> Self {
        self.helper = helper.into();
        self
    }

    /// Keeps the program away from other processes, of the same user too, as far as the kernel can: see
    /// [`super::Confinement`]. The keeper, and whoever else is not confined with it, reaches it as before. Where pid
    /// namespaces can be had it lives in one, and the kernel ends all that came of it with the keeper; there it also
    /// finds the files as in this plan, and [`Kept::is_apart`] says so.
    pub fn confined(mut self, own_files: FilePlan) -> Self {
        self.order.confined = true;
        self.order.own_files = own_files;
        self
    }

    /// Has the program be the first one of namespaces of its own, with this view of the host.
    pub(crate) fn isolated(mut self, isolation: Isolation) -> Self {
        self.order.isolation = Some(isolation);
        self.order.target = Target::Program;
        self
    }

    /// Has the program see a folder of the host at another place too, an empty folder, where what it writes goes into a
    /// layer in memory; and what of these files it could not keep from those that it starts.
    pub(crate) fn mounted(mut self, layer: Option<[&Path; 2]>, files: FilePlan) -> Self {
        self.order.isolation = Some(Isolation::mounts(layer, files));
        self
    }

    /// Says that the program only wraps another one, its single child: that one gets the signals and the terminal.
    pub fn wrapper(mut self) -> Self {
        self.order.target = Target::Child;
        self
    }

    /// Gives the program these descriptors besides its three streams, with the numbers of [`KeptCommand::NUMBERS`].
    pub fn more(mut self, descriptors: [OwnedFd; MORE]) -> Self {
        self.more = descriptors.into();
        self
    }

    /// The numbers that the program knows the descriptors of [`KeptCommand::more`] by.
    pub(crate) const NUMBERS: [RawFd; MORE] = [FIRST_MORE, FIRST_MORE + 1];

    /// A command that the keeper runs when the program ends, however it does, before it kills what is left: for
    /// programs that have others run what matters, out of reach. It prints something where it removed anything; `late` is
    /// how long what it removes may still come after the program is gone.
    #[must_use]
    pub fn cleanup(mut self, words: &[OsString], env: &[(OsString, OsString)], late: Duration) -> Self {
        self.order.cleanup = words.split_first().map(|(program, args)| Cleanup {
            program: program.clone(),
            args: args.to_owned(),
            env: env.to_owned(),
            inherited: self.order.inherited,
            late,
        });
        self
    }

    /// Says that the program may leave a process of its user's behind when it ends by itself, as Podman without root does,
    /// whose first command starts the one that holds the namespaces of all others. In any other case nothing is left.
    pub(crate) fn leaves_others(mut self) -> Self {
        self.order.leaves_others = true;
        self
    }

    /// Starts it; returns when the program runs or is known not to.
    pub async fn spawn(mut self) -> Result<Kept, SpawnError> {
        if self.order.folder.is_none() {
            self.order.folder = std::env::current_dir().ok().map(PathBuf::into_os_string);
        }
        let (ours, keepers) = channel::pair().map_err(pipes)?;
        fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(pipes)?;
        let ours = sys::watched(ours).map_err(SpawnError::Pipes)?;
        let pipes_of_streams = StreamPipes::open(self.streams).map_err(SpawnError::Pipes)?;
        let order = channel::file_of(&self.order).map_err(pipes)?;
        let opening = Opening {
            streams: pipes_of_streams.slots,
            local_terminal: self.local_terminal.is_some(),
            held: self.held.is_some(),
            own_processes: self.order.confined && self.order.isolation.is_none(),
        };
        let mut descriptors: Vec<RawFd> = vec![order.as_raw_fd()];
        let others = pipes_of_streams.given.iter().chain(&self.local_terminal).chain(&self.held).chain(&self.more);
        descriptors.extend(others.map(AsRawFd::as_raw_fd));
        channel::send(&ours, &opening, &descriptors).map_err(pipes)?;
        let keeper = tokio::process::Command::new(&self.helper)
            .arg0("footbridge")
            .arg(KEEPER)
            .env_clear()
            .stdin(Stdio::from(keepers))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(SpawnError::Keeper)?;
        drop((order, pipes_of_streams.given, self.held, self.more));
        let [stdin, stdout, stderr] = pipes_of_streams.ends;
        let mut kept = Kept {
            stdin: stdin.and_then(End::sender),
            stdout: stdout.and_then(End::receiver),
            stderr: stderr.and_then(End::receiver),
            terminal: None,
            pid: Pid::from_raw(0),
            apart: false,
            keeper,
            channel: ours,
            ended: None,
            may_be_left: false,
        };
        kept.hear_start().await?;
        Ok(kept)
    }
}

fn pipes(errno: nix::errno::Errno) -> SpawnError {
    SpawnError::Pipes(errno.into())
}

impl Kept {
    async fn hear_start(&mut self) -> Result<(), SpawnError> {
        loop {
            match super::receive::<Report>(&self.channel).await {
                Ok(Some((Report::Terminal, descriptors))) => self.terminal = descriptors.into_iter().next(),
                Ok(Some((Report::Started { pid, own_processes }, _))) => {
                    self.pid = Pid::from_raw(pid);
                    self.apart = own_processes;
                    return Ok(());
                }
                Ok(Some((Report::Refused(refusal), _))) => {
                    let _nothing_is_left = self.keeper.wait().await;
                    return Err(SpawnError::Refused(refusal));
                }
                Ok(Some((Report::MayBeLeft, _))) => {}
                Ok(Some((Report::Exited(_) | Report::Signaled(_), _)) | None) | Err(_) => {
                    let _nothing_is_left = self.keeper.wait().await;
                    return Err(SpawnError::Lost);
                }
            }
        }
    }
}

/// The harness's end of a pipe.
enum End {
    Write(Sender),
    Read(Receiver),
}

impl End {
    fn sender(self) -> Option<Sender> {
        match self {
            Self::Write(sender) => Some(sender),
            Self::Read(_) => None,
        }
    }

    fn receiver(self) -> Option<Receiver> {
        match self {
            Self::Read(receiver) => Some(receiver),
            Self::Write(_) => None,
        }
    }
}

/// Both ends of the three streams.
struct StreamPipes {
    slots: [Slot; 3],
    given: Vec<OwnedFd>,
    ends: [Option<End>; 3],
}

impl StreamPipes {
    fn open(streams: [ProgramStream; 3]) -> io::Result<Self> {
        let mut pipes_of_streams = Self { slots: [Slot::Given; 3], given: Vec::new(), ends: [None, None, None] };
        let places = pipes_of_streams.slots.iter_mut().zip(&mut pipes_of_streams.ends);
        for ((number, stream), (slot, end)) in streams.into_iter().enumerate().zip(places) {
            let given = match stream {
                ProgramStream::Terminal => {
                    *slot = Slot::Terminal;
                    continue;
                }
                ProgramStream::Null => {
                    OpenOptions::new().read(true).write(true).open("/dev/null").map(OwnedFd::from)?
                }
                ProgramStream::Inherit => inherited(number)?,
                ProgramStream::Given(descriptor) => descriptor,
                ProgramStream::Pipe => {
                    let (reader, writer) = io::pipe()?;
                    if number == 0 {
                        *end = Some(End::Write(Sender::from_owned_fd(writer.into())?));
                        reader.into()
                    } else {
                        *end = Some(End::Read(Receiver::from_owned_fd(reader.into())?));
                        writer.into()
                    }
                }
            };
            pipes_of_streams.given.push(given);
        }
        Ok(pipes_of_streams)
    }
}

fn inherited(number: usize) -> io::Result<OwnedFd> {
    match number {
        0 => io::stdin().as_fd().try_clone_to_owned(),
        1 => io::stdout().as_fd().try_clone_to_owned(),
        _ => io::stderr().as_fd().try_clone_to_owned(),
    }
}
