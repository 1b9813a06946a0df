//! What keeps a program away from others of the same user: a Landlock domain of its own.
//!
//! A process in a domain can look into no process outside it (`/proc/PID/environ`, `mem`, its descriptors; tracing).
//! From Linux 6.12 on it cannot signal one either, nor connect to its abstract sockets. What it starts is in the domain
//! with it. Whoever is outside, as the keeper is, reaches in as before. Root is not kept away from anything in earnest:
//! since Linux 6.15, for one, CAP_PERFMON alone lets it read the memory of others.
//!
//! The domain takes nothing else away: files, folders, mounts and the network are as they were. There is one price:
//! without privileges the kernel makes no domain for a process that could still gain some, so set-user-id programs
//! (`sudo`, `newuidmap` of rootless Podman) gain nothing in it.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use nix::errno::Errno;

use crate::refusal::{StartRefusal, Step};

/// How well the kernel can confine a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It neither looks into other processes nor signals them: Linux 6.12 and later.
    Full,
    /// It does not look into other processes, and can signal them: Linux 5.19 and later. It cannot mount anything
    /// either, not even in a user namespace of its own.
    Partial,
    /// Not at all: an older kernel, one without Landlock, or a container engine that forbids it.
    None,
}

impl Confinement {
    /// What this kernel can do. Asking changes nothing.
    #[must_use]
    pub fn here() -> Self {
        let can = |confinement: &Self| confinement.ruleset().is_ok();
        [Self::Full, Self::Partial].into_iter().find(can).unwrap_or(Self::None)
    }

    /// What is missing, for the operator.
    #[must_use]
    pub fn gap(self) -> Option<&'static str> {
        match self {
            Self::Full => None,
            Self::Partial => {
                Some("MCP servers cannot look into each other here, but can signal each other: Linux 6.12 closes that")
            }
            Self::None => Some(
                "MCP servers of one user can look into each other and signal each other here: \
                 Landlock is missing (Linux 5.19 or later, with landlock in /sys/kernel/security/lsm)",
            ),
        }
    }

    /// A domain that is ready to be entered. An error means that the kernel has none such.
    fn ruleset(self) -> Result<Option<RulesetCreated>, landlock::RulesetError> {
        let base = landlock::Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        match self {
            Self::Full => base.scope(Scope::from_all(ABI::V6))?.create().map(Some),
            // The kernel refuses a domain without any right. Of all rights this one has to be given back anyway: a
            // domain over files forbids renames across folders otherwise. Linux 5.13 to 5.18 cannot give it back.
            Self::Partial => base.handle_access(AccessFs::Refer)?.create().map(Some),
            Self::None => Ok(None),
        }
    }

    /// Puts this thread, and all that comes of it, into a domain of its own.
    pub(super) fn enter(self) -> Result<(), StartRefusal> {
        let refused = |error| StartRefusal::at(Step::Confinement)(errno_of(&error));
        let Some(mut ruleset) = self.ruleset().map_err(refused)? else { return Ok(()) };
        if self == Self::Partial {
            let root = PathFd::new("/").map_err(|_| StartRefusal::at(Step::Confinement)(Errno::ENOENT))?;
            ruleset = ruleset.add_rule(PathBeneath::new(root, AccessFs::Refer)).map_err(refused)?;
        }
        ruleset.restrict_self().map(drop).map_err(refused)
    }
}

/// The kernel's reason, which the library has somewhere below its own.
fn errno_of(error: &(dyn std::error::Error + 'static)) -> Errno {
    let below = std::iter::successors(Some(error), |error| error.source());
    let numbers = below.filter_map(|error| error.downcast_ref::<std::io::Error>()?.raw_os_error());
    numbers.last().map_or(Errno::ENOSYS, Errno::from_raw)
}

#[cfg(test)]
mod tests;
