//! What harness and keeper say to each other.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file_plan::FilePlan;
use crate::isolation::Isolation;
use crate::refusal::StartRefusal;
use crate::sys::Inherited;

/// Where one of the program's three streams comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Slot {
    /// A descriptor that comes with the order.
    Given,
    /// The program's own terminal, which is made on its side.
    Terminal,
}

/// The number of the first descriptor that a program gets beyond its three streams: above those that the keeper's child
/// holds, and below any limit that a program can be started with.
pub(super) const FIRST_MORE: i32 = 24;

/// Most descriptors that a program can get beyond its three streams.
pub(super) const MORE: usize = 2;

/// Who takes the signals that are meant for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Target {
    /// The program's whole group.
    Group,
    /// The program alone, which passes them on: the first process of a pid namespace.
    Program,
    /// The program's child: the program only wraps it. The terminal is the child's to take, too.
    Child,
}

/// A command that is run when the program ends, however it does. It prints something where it removed anything.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cleanup {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) inherited: Inherited,
    /// How long what it removes may still come after the program is gone, if that was not answered.
    pub(super) late: Duration,
}

/// Everything the keeper needs to know to start the program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) folder: Option<OsString>,
    pub(super) inherited: Inherited,
    pub(super) isolation: Option<Isolation>,
    pub(super) target: Target,
    /// Whether it gets a domain of its own, as far as the kernel has one.
    pub(super) confined: bool,
    /// What a confined program sees of the harness's own files, where it has namespaces of its own.
    pub(super) own_files: FilePlan,
    pub(super) cleanup: Option<Cleanup>,
    /// Whether what it started stays when it ends by itself.
    pub(super) leaves_others: bool,
}

/// The first message, with the order's file, the given streams, the local terminal, what is held, and then what else the
/// program gets as descriptors.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Opening {
    pub(super) streams: [Slot; 3],
    pub(super) local_terminal: bool,
    /// Whether there is something that the keeper has open as long as anything is left.
    pub(super) held: bool,
    /// Whether the program gets a pid namespace, where there are any.
    pub(super) own_processes: bool,
}

/// What the harness may ask of a running keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Pass this signal to the program.
    Signal(i32),
}

/// What the keeper tells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// The controlling end of the program's terminal comes with this message.
    Terminal,
    /// The program runs under this pid.
    Started {
        pid: i32,
        /// Whether it has namespaces of its own, and does not see what is the harness's.
        own_processes: bool,
    },
    /// It could not be started.
    Refused(StartRefusal),
    /// What it had others run may go on: they do not answer. How it ended follows.
    MayBeLeft,
    /// It ended by itself with this status.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
}
