//! Why a program could not be started: the step, the kernel's reason, and what to do next.
//!
//! The words are made here and nowhere else; in between a refusal is a value that crosses from one process to another.

use std::fmt;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// The step on the way to a running program that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Step {
    /// Executing the program of this name or path.
    Program(String),
    /// Entering the working folder.
    Folder(String),
    /// Forking.
    Fork,
    /// Tying the program's life to the keeper's.
    Tie,
    /// Making a session of its own.
    Session,
    /// Making a terminal of its own.
    Terminal,
    /// Putting the three streams in place.
    Streams,
    /// Giving back the limits of open files and core files.
    Limits,
    /// Giving back the signal mask.
    Signals,
    /// Closing every other descriptor.
    Descriptors,
    /// Passing on the descriptors that it gets beyond its streams.
    PassOn,
    /// Confining the program to processes of its own.
    Confinement,
    /// Making the namespaces.
    Namespaces,
    /// Mapping the user and group into the namespaces.
    Identity,
    /// Cutting the mounts off from the host's.
    Propagation,
    /// Making the host's files read-only.
    ReadOnly,
    /// Putting in place what shows at this path.
    File(String),
    /// Laying a layer over this folder.
    Layer(String),
    /// Mounting a private /dev.
    Devices,
    /// Mounting a private /proc.
    Proc,
    /// Mounting a private /dev/pts.
    Terminals,
    /// Bringing up the interface `lo`.
    Loopback,
    /// Dropping all capabilities.
    Capabilities,
    /// Letting it write in its own places alone.
    OwnPlaces,
    /// Installing the system call filter.
    Filter,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(name) => write!(f, "start {name:?}"),
            Self::Folder(path) => write!(f, "enter the working folder {path:?}"),
            Self::Fork => f.write_str("fork"),
            Self::Tie => f.write_str("tie the program's life to the harness's"),
            Self::Session => f.write_str("make a session of its own"),
            Self::Terminal => f.write_str("make a terminal of its own"),
            Self::Streams => f.write_str("put stdin, stdout and stderr in place"),
            Self::Limits => f.write_str("give back the limits of open files and core files"),
            Self::Signals => f.write_str("give back the signal mask"),
            Self::Descriptors => f.write_str("close other descriptors"),
            Self::PassOn => f.write_str("pass on its descriptors"),
            Self::Confinement => f.write_str("confine it to processes of its own"),
            Self::Namespaces => f.write_str("make the sandbox's namespaces"),
            Self::Identity => f.write_str("map the user into the sandbox"),
            Self::Propagation => f.write_str("separate the sandbox's mounts from the host's"),
            Self::ReadOnly => f.write_str("make the host's files read-only in the sandbox"),
            Self::File(path) => write!(f, "put {path:?} in place in the sandbox"),
            Self::Layer(path) => write!(f, "lay a layer over {path:?} in the sandbox"),
            Self::Devices => f.write_str("mount a private /dev in the sandbox"),
            Self::Proc => f.write_str("mount a private /proc in the sandbox"),
            Self::Terminals => f.write_str("mount a private /dev/pts in the sandbox"),
            Self::Loopback => f.write_str("bring up loopback in the sandbox"),
            Self::Capabilities => f.write_str("drop capabilities in the sandbox"),
            Self::OwnPlaces => f.write_str("keep the sandbox to what it may write"),
            Self::Filter => f.write_str("install the sandbox's system call filter"),
        }
    }
}

/// A program that was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRefusal {
    /// What failed.
    pub step: Step,
    /// The kernel's reason, as a number.
    pub errno: i32,
}

impl StartRefusal {
    /// A closure for `map_err` that names the step.
    pub(crate) fn at(step: Step) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { step, errno: errno as i32 }
    }

    /// As [`StartRefusal::at`], for errors of the standard library.
    pub(crate) fn io_at(step: Step) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self { step, errno: error.raw_os_error().unwrap_or(0) }
    }

    /// The kernel's reason.
    pub fn cause(&self) -> Errno {
        Errno::from_raw(self.errno)
    }

    /// The status that shells give for it: 127 for a program that is not there, 126 for anything else.
    pub fn exit_code(&self) -> i32 {
        let missing = matches!(self.cause(), Errno::ENOENT | Errno::ENOTDIR);
        if missing && matches!(self.step, Step::Program(_)) { 127 } else { 126 }
    }

    /// The kernel's reason and what to do next, for whoever names the step.
    pub fn reason(&self) -> String {
        let cause = self.cause().desc();
        self.hint().map_or_else(|| cause.to_owned(), |hint| format!("{cause} ({hint})"))
    }

    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match (&self.step, self.cause()) {
            (Step::Program(name), Errno::ENOENT) => Some(missing_hint(name).to_owned()),
            (Step::Program(name), Errno::EACCES) if std::path::Path::new(name).is_dir() => {
                Some("this is a folder: name a program".to_owned())
            }
            (Step::Program(_), Errno::ENOEXEC) => Some(
                "it is no program of this machine: a script begins with #! and its interpreter, or is run by one"
                    .to_owned(),
            ),
            (Step::Program(_), Errno::EACCES) => Some(
                "make the file executable (chmod +x) and reachable, and the interpreter in its first line if it is a script"
                    .to_owned(),
            ),
            (Step::Program(_), Errno::E2BIG) => Some("its arguments and environment are too long".to_owned()),
            (Step::Folder(_), _) => {
                Some("what a sandbox hides shows as empty folders inside: docs/sandboxes.md".to_owned())
            }
            (Step::Namespaces | Step::Identity | Step::Propagation | Step::Loopback, _) => Some(namespaces_hint()),
            (Step::Proc, Errno::EPERM) => Some(
                "a container engine that masks parts of /proc forbids this: allow it there (Docker: \
                 --security-opt systempaths=unconfined), or use --sandbox none"
                    .to_owned(),
            ),
            (Step::Descriptors, Errno::ENOSYS | Errno::EINVAL) => Some("this needs Linux 5.11 or later".to_owned()),
            (Step::PassOn, Errno::EINVAL) => Some("the limit of open files is too low for it: ulimit -n 64".to_owned()),
            (_, Errno::EMFILE) => Some("the limit of open files is too low for it: ulimit -n 256".to_owned()),
            (Step::File(path), Errno::ENOSPC) => Some(format!(
                "what is kept read-only around it takes more mounts than fs.mount-max: start in a folder further down \
                 than the one that holds {path:?}"
            )),
            (Step::ReadOnly | Step::File(_), Errno::ENOSYS) => Some("this needs Linux 5.12 or later".to_owned()),
            (Step::Confinement, Errno::EAGAIN) => Some(
                "the machine has no process or memory for it at the moment, or none is left of ulimit -u, TasksMax of a \
                 service or pids of a container: try again"
                    .to_owned(),
            ),
            (Step::Confinement, _) => Some("\"confine\": false in its entry goes without".to_owned()),
            (Step::Terminal | Step::Terminals, _) => {
                Some("check that /dev/pts is mounted and has ptys left (kernel.pty.max)".to_owned())
            }
            _ => None,
        }
    }
}

fn missing_hint(program: &str) -> &'static str {
    if program.contains(char::is_whitespace) {
        "this is all taken for the name: write what follows the program as its arguments"
    } else if program.contains('/') {
        "check the path, and the interpreter if it is a script"
    } else {
        "check the name and PATH"
    }
}

/// Names the settings that forbid user namespaces, those that do so here first.
pub(crate) fn namespaces_hint() -> String {
    const FORBIDDING: [(&str, &str, &str); 3] = [
        ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for footbridge with `userns,`",
        ),
    ];
    let set = FORBIDDING.iter().find(|(name, forbids, _)| {
        std::fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|value| value.trim() == *forbids)
    });
    match set {
        Some((_, _, remedy)) => format!("user namespaces are switched off here: {remedy}; or use --sandbox none"),
        None => "see kernel.unprivileged_userns_clone, user.max_user_namespaces, \
                 kernel.apparmor_restrict_unprivileged_userns, and the container engine's seccomp profile; \
                 or use another --sandbox"
            .to_owned(),
    }
}

impl fmt::Display for StartRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.step, self.reason())
    }
}

impl std::error::Error for StartRefusal {}
