//! The command of the sandbox, and the life of its init.
//!
//! running: signals are passed on, orphans are reaped, a stop is handled by [`terminal`]. It ends when the command
//! does, with its status, or when the lifeline stays gone: then the command's group gets SIGTERM, two seconds, and
//! SIGKILL. Either way whatever the command left behind is killed before the relay leaves, as the kernel does it for
//! pid 1. The relay is a subreaper, so that orphans come to it elsewhere too.

use std::{
    ffi::{OsStr, OsString},
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
    time::Duration,
};

use footbridge_guest::sys::{self, ChildChange, Ignored, OpenFiles};
use footbridge_proto::vars;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, getpid},
};
use tokio::time::{Instant, sleep_until};

use crate::{signals::Signals, terminal};

/// Variables of this prefix are the relay's own and not the command's.
const OWN_PREFIX: &str = "FOOTBRIDGE_";
/// How long the command has to end itself once the harness is gone.
const END_GRACE: Duration = Duration::from_secs(2);

/// Why the command does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("cannot run {name:?}: {}", missing(name))]
    NotFound { name: OsString },
    #[error("cannot run {name:?}: {source}{}", hint(name, source))]
    NotRun { name: OsString, source: io::Error },
}

fn missing(name: &OsStr) -> &'static str {
    let is_path = name.as_encoded_bytes().contains(&b'/');
    if is_path && Path::new(name).symlink_metadata().is_ok() {
        "the file is there, but not what it needs to run: the interpreter in its first line, or its loader (ldd), or \
         where a link leads"
    } else if is_path {
        "there is no such file (check the path; what a sandbox hides is not there)"
    } else {
        "there is no such command (check the name and PATH)"
    }
}

fn hint(name: &OsStr, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if Path::new(name).is_dir() => " (this is a folder: name a program)",
        io::ErrorKind::PermissionDenied => " (make the file executable with chmod +x, and reachable)",
        io::ErrorKind::ArgumentListTooLong => " (its arguments and environment are too long)",
        _ if error.raw_os_error() == Some(Errno::ENOEXEC as i32) => {
            " (it is no program of this machine: a script begins with #! and its interpreter, or is run by one, as in \
             \"sh FILE\")"
        }
        _ => "",
    }
}

impl CommandError {
    /// As shells have it.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotRun { .. } => 126,
        }
    }
}

/// How it all ended.
pub(crate) enum End {
    /// With the command, and its exit status.
    Command(u8),
    /// With the harness.
    Lifeline,
}

/// What the command is told of where it is.
pub(crate) struct Place<'a> {
    /// Where the relay listens.
    pub(crate) address: SocketAddr,
    /// What goes first on its PATH.
    pub(crate) path_first: Option<&'a OsStr>,
}

/// The running command.
pub(crate) struct Child {
    pid: Pid,
    /// Whether it holds the terminal.
    foreground: bool,
}

impl Child {
    /// Starts the command with the port in its environment.
    pub(crate) fn spawn(
        words: &[OsString],
        place: &Place<'_>,
        open_files: OpenFiles,
        ignored: Ignored,
    ) -> Result<Self, CommandError> {
        // Where the kernel has no subreapers, orphans go to the real init.
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let foreground = terminal::is_ours();
        let (name, rest) = words.split_first().map_or((OsString::new(), words), |(name, rest)| (name.clone(), rest));
        let mut command = Command::new(&name);
        command.args(rest);
        set_environment(&mut command, place);
        sys::start_afresh(&mut command, foreground, open_files, ignored);
        match command.spawn() {
            Ok(child) => Ok(Self { pid: pid_of(&child), foreground }),
            Err(e) => {
                if foreground {
                    terminal::take_back();
                }
                Err(match e.kind() {
                    io::ErrorKind::NotFound => CommandError::NotFound { name },
                    _ => CommandError::NotRun { name, source: e },
                })
            }
        }
    }

    /// Stays with the command to the end.
    pub(crate) async fn tend(self, mut signals: Signals, gone: impl Future<Output = ()>) -> End {
        let mut gone = std::pin::pin!(gone);
        let end = loop {
            tokio::select! {
                signal = signals.next() => {
                    if let Some(status) = self.on_signal(signal) {
                        break End::Command(status);
                    }
                }
                () = &mut gone => {
                    self.end(&mut signals).await;
                    break End::Lifeline;
                }
            }
        };
        if self.foreground {
            terminal::take_back();
        }
        sweep(&mut signals).await;
        end
    }

    /// The command's exit status, once it has one.
    fn on_signal(&self, signal: Signal) -> Option<u8> {
        if signal == Signal::SIGCHLD {
            return self.reap();
        }
        // What keys at a terminal send goes to all that the command runs, as from there. Others are the command's own to
        // hand on: whoever ends its children in order, or knows SIGUSR1, should.
        let by_key = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGCONT, Signal::SIGWINCH];
        let to = if by_key.contains(&signal) { killpg } else { kill };
        // It may have ended already, which SIGCHLD will tell.
        let _ = to(self.pid, signal);
        None
    }

    /// Reaps all that ended, the command or an orphan.
    fn reap(&self) -> Option<u8> {
        let mut status = None;
        loop {
            match sys::next_child_change() {
                Ok(Some(ChildChange::Ended { pid, status: ended })) if pid == self.pid => status = Some(ended),
                Ok(Some(ChildChange::Stopped { pid })) if pid == self.pid => {
                    terminal::stopped(self.pid, self.foreground);
                }
                Ok(None) => return status,
                Ok(Some(_)) | Err(Errno::EINTR) => {}
                Err(_) => return status,
            }
        }
    }

    /// Asks the command's group to end, and makes it.
    async fn end(&self, signals: &mut Signals) {
        let _ = killpg(self.pid, Signal::SIGTERM);
        // A stopped process takes its SIGTERM only when continued.
        let _ = killpg(self.pid, Signal::SIGCONT);
        let limit = Instant::now() + END_GRACE;
        loop {
            tokio::select! {
                signal = signals.next() => {
                    if signal == Signal::SIGCHLD && self.reap().is_some() {
                        break;
                    }
                }
                () = sleep_until(limit) => break,
            }
        }
        let _ = killpg(self.pid, Signal::SIGKILL);
    }
}

fn pid_of(child: &std::process::Child) -> Pid {
    // A pid is at most 2^22.
    Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX))
}

/// The PATH before which `first` goes, where there is none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn set_environment(command: &mut Command, place: &Place<'_>) {
    let address = place.address;
    if let Some(first) = place.path_first {
        let rest = std::env::var_os("PATH").filter(|path| !path.is_empty());
        let mut path = first.to_owned();
        path.push(":");
        path.push(rest.unwrap_or_else(|| DEFAULT_PATH.into()));
        command.env("PATH", path);
    }

    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(OWN_PREFIX.as_bytes()) {
            command.env_remove(name);
        }
    }
    // Beside a port a socket would be ambiguous, and another host wrong.
    command.env_remove(vars::SOCKET).env_remove(vars::HOST).env(vars::PORT, address.port().to_string());
    if address.ip() != IpAddr::V4(Ipv4Addr::LOCALHOST) && !address.ip().is_unspecified() {
        command.env(vars::HOST, address.ip().to_string());
    }
}

/// Kills what is left until there is no child. Those of a killed child come to this process, so it goes in rounds.
async fn sweep(signals: &mut Signals) {
    if getpid().as_raw() == 1 {
        // Kernel's work, and at once.
        return;
    }
    let limit = Instant::now() + END_GRACE;
    loop {
        for pid in children() {
            let _ = kill(pid, Signal::SIGKILL);
        }
        loop {
            match sys::next_child_change() {
                Ok(None) => break,
                Ok(Some(_)) | Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
        tokio::select! {
            _ = signals.next() => {}
            () = sleep_until(limit) => return,
        }
    }
}

/// The children of this process, where the kernel tells them.
fn children() -> Vec<Pid> {
    let list = std::fs::read_to_string(format!("/proc/self/task/{}/children", getpid())).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}
