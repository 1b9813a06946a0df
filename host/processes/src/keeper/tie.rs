//! How a process below the keeper dies with it, though nothing is left that could kill it.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use crate::refusal::{StartRefusal, Step};

/// Dies with the keeper. This is the second line: it also works when the keeper is killed by the one signal that
/// leaves it no time to clean up, but reaches only this process (and all of a pid namespace whose first it is).
pub(super) fn tie_to_keeper(refusals: &OwnedFd) -> Result<(), StartRefusal> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(StartRefusal::at(Step::Tie))?;
    let mut keeper = [PollFd::new(refusals.as_fd(), PollFlags::empty())];
    poll(&mut keeper, PollTimeout::ZERO).map_err(StartRefusal::at(Step::Tie))?;
    let gone = keeper[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR));
    if gone { Err(StartRefusal::at(Step::Tie)(Errno::EPIPE)) } else { Ok(()) }
}
