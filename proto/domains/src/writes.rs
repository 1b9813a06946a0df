//! A domain that writes below its own places alone.
//!
//! A sandbox's mounts decide about what is found by a path. A descriptor of a folder that another sandbox hands over leads
//! past them: what that one holds by mounts of its own is an ordinary name for whoever does not have those mounts. The
//! kernel asks a domain about the file itself, however it was reached.
//!
//! It takes the rights to write, cut, make, remove and move files, and gives them back below these places. Reading, running,
//! devices' own calls, sockets that are connected to and the network are as they were. Like any domain over files it can
//! mount nothing, so that it is not for programs that make sandboxes.

use std::os::fd::AsFd;
use std::path::Path;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError,
};
use nix::errno::Errno;
use nix::libc;
use nix::sys::stat::fstat;

use crate::errno_of;

/// The rights that the kernel knows. Linux 5.13 to 5.18 forbid each move between two folders in a domain over files, and
/// programs need those; from Linux 6.2 on files that are only cut are among it.
const KNOWN: [ABI; 2] = [ABI::V3, ABI::V2];

/// A domain in the making.
struct WritesBelow {
    ruleset: RulesetCreated,
    rights: BitFlags<AccessFs>,
}

impl WritesBelow {
    /// One that may write nowhere yet; none where the kernel has no such domain.
    fn nowhere() -> nix::Result<Option<Self>> {
        for abi in KNOWN {
            let rights = AccessFs::from_write(abi);
            let base = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
            match base.handle_access(rights).and_then(Ruleset::create) {
                Ok(ruleset) => return Ok(Some(Self { ruleset, rights })),
                Err(error) => match errno_of(&error) {
                    // Not built, not switched on, not let through, or older than these rights.
                    Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::EPERM | Errno::EINVAL => {}
                    other => return Err(other),
                },
            }
        }
        Ok(None)
    }

    /// What is not there, or not to be reached, it needs no right to.
    fn and_below(self, place: &Path) -> nix::Result<Self> {
        match PathFd::new(place) {
            Ok(held) => self.and_at(&held).map_err(|error| errno_of(&error)),
            Err(_) => Ok(self),
        }
    }

    /// The terminals that are the standard streams: they may be of another `/dev`, and are opened again by name.
    fn and_own_terminals(mut self) -> nix::Result<Self> {
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        for stream in [input.as_fd(), output.as_fd(), error.as_fd()] {
            if fstat(stream).is_ok_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFCHR) {
                self = self.and_at(stream).map_err(|error| errno_of(&error))?;
            }
        }
        Ok(self)
    }

    fn and_at(self, held: impl AsFd) -> Result<Self, RulesetError> {
        let is_folder = fstat(&held).is_ok_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFDIR);
        let rights = if is_folder { self.rights } else { self.rights & AccessFs::from_file(ABI::V3) };
        Ok(Self { ruleset: self.ruleset.add_rule(PathBeneath::new(held, rights))?, ..self })
    }
}

/// Puts this thread, and all that comes of it, into a domain that may write these files, below these folders, and its own
/// terminals. Nothing changes where the kernel has no such domain.
///
/// # Errors
/// What the kernel says.
pub fn write_below<'a>(places: impl IntoIterator<Item = &'a Path>) -> nix::Result<()> {
    let Some(nowhere) = WritesBelow::nowhere()? else { return Ok(()) };
    let all = places.into_iter().try_fold(nowhere, WritesBelow::and_below)?.and_own_terminals()?;
    all.ruleset.restrict_self().map(drop).map_err(|error| errno_of(&error))
}

#[cfg(test)]
mod tests;
