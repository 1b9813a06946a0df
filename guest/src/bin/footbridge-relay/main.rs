//! `footbridge-relay`: a byte pipe from a loopback port inside a sandbox to the harness outside, and, with a command,
//! the sandbox's init.
//!
//! It reads nothing of what it carries. It listens before it says so, and before the command starts. Its exit status
//! is the command's (128 and the signal's number where one ended it), or one of its own: 1 it cannot listen, 2 usage,
//! 125 the harness is gone, or a mount is not what it is to be, 126 the command cannot be run, 127 there is no such command.

mod args;
mod descriptors;
mod direction;
mod init;
mod lifeline;
mod listen;
mod mounted;
mod mux;
mod orphans;
mod pump;
mod reach;
mod refuse;
mod scratch;
mod signals;
mod stream;
mod terminal;
mod vsock;

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write},
    net::SocketAddr,
    os::fd::OwnedFd,
    path::Path,
    process::ExitCode,
    rc::Rc,
};

use footbridge_domains::{FilterError, refuse_calls, write_below};
use footbridge_guest::sys::{self, Ignored, OpenFiles};

use crate::{
    args::{Options, Parsed},
    descriptors::Pairs,
    listen::{Bound, ListenError, Relay},
    reach::Reach,
    signals::Signals,
};

/// Why the relay could not do its work, each with its exit status.
#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error("cannot use descriptor {number} of --ready-fd: {source}")]
    ReadyFd { number: i32, source: io::Error },
    #[error("cannot say on descriptor {number} of --ready-fd that it listens: {source}")]
    Announce { number: i32, source: io::Error },
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("cannot keep to what it may write: {0}")]
    WriteBelow(#[source] nix::errno::Errno),
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(transparent)]
    Replaced(#[from] mounted::Replaced),
    #[error("cannot start: {0}")]
    Start(#[source] io::Error),
    #[error(transparent)]
    Command(#[from] init::CommandError),
    #[error("the harness was gone for {0:?}, so the command was ended")]
    Gone(std::time::Duration),
}

impl RelayError {
    fn status(&self) -> u8 {
        match self {
            Self::ReadyFd { .. } => 2,
            Self::Announce { .. } | Self::Listen(_) | Self::WriteBelow(_) | Self::Filter(_) | Self::Start(_) => 1,
            Self::Command(error) => error.status(),
            Self::Gone(_) | Self::Replaced(_) => 125,
        }
    }
}

fn main() -> ExitCode {
    sys::wait_for_children();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let parsed = args::parse(&args, &|name| std::env::var_os(name));
    let options = match parsed {
        Ok(Parsed::Run(options)) => options,
        Ok(Parsed::Say(text)) => {
            return if io::stdout().write_all(text.as_bytes()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(error) => {
            say(&error);
            return ExitCode::from(2);
        }
    };
    match start(*options) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say(&error);
            ExitCode::from(error.status())
        }
    }
}

/// One line on standard error. Where that fails there is nobody left to tell.
fn say(message: &dyn std::fmt::Display) {
    let _ = writeln!(io::stderr(), "footbridge-relay: {message}");
}

fn start(options: Options) -> Result<u8, RelayError> {
    // Before anything is opened: the number must still be the one that was inherited.
    let ready = match options.ready_fd {
        Some(number) => {
            Some((number, sys::take_descriptor(number).map_err(|source| RelayError::ReadyFd { number, source })?))
        }
        None => None,
    };
    sys::close_the_rest_on_exec();
    if !options.write_below.is_empty() {
        write_below(options.write_below.iter().map(Path::new)).map_err(RelayError::WriteBelow)?;
    }
    mounted::check(&options.mounted)?;
    if let Some(nesting) = options.filter {
        refuse_calls(nesting)?;
    }
    let open_files = OpenFiles::raise().map_err(RelayError::Start)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RelayError::Start)?;
    tokio::task::LocalSet::new().block_on(&runtime, run(options, ready, open_files))
}

async fn run(options: Options, ready: Option<(i32, OwnedFd)>, open_files: OpenFiles) -> Result<u8, RelayError> {
    let ignored = Ignored::now();
    // What it says may go to a file; without that it goes on as well.
    let _ = sys::outlive_file_size_limit();
    let signals = if options.command.is_empty() { Signals::ending(ignored) } else { Signals::of_init(ignored) };
    let mut signals = signals.map_err(RelayError::Start)?;
    let bound = Bound::bind(&options.listen).await?;
    let reach = Rc::new(Reach::new(options.to.clone(), options.patience));
    let address = bound.address;
    let pairs = Pairs::of(OpenFiles::left().map_err(RelayError::Start)?);
    let relay = Rc::new(Relay::new(Rc::clone(&reach), options.max_connections, pairs));
    if let Some((number, fd)) = ready {
        announce(fd, address).map_err(|source| RelayError::Announce { number, source })?;
    }
    // Whoever it serves is the same user, and could stop it or write into its memory: then nobody could end it any more.
    // What it starts is as every program.
    let _ = nix::sys::prctl::set_dumpable(false);
    let serving = bound.serve(relay);
    if options.command.is_empty() {
        return tokio::select! {
            () = serving => Ok(1),
            _ = signals.next() => Ok(0),
        };
    }
    let place = init::Place { address, path_first: options.path_first.as_deref() };
    let child = init::Child::spawn(&options.command, &place, open_files, ignored)?;
    // The relay itself starts nothing any more.
    let _ = nix::sys::prctl::set_no_new_privs();
    tokio::select! {
        () = serving => Ok(1),
        status = child.tend(signals, lifeline::gone(&reach, options.lifeline_grace)) => match status {
            init::End::Command(status) => Ok(status),
            init::End::Lifeline => Err(RelayError::Gone(options.lifeline_grace)),
        },
    }
}

fn announce(fd: OwnedFd, address: SocketAddr) -> io::Result<()> {
    File::from(fd).write_all(format!("tcp:{address}\n").as_bytes())
}
