//! What keeps a program away from others of the same user: a Landlock domain of its own.
//!
//! A process in a domain can look into no process outside it (`/proc/PID/environ`, `mem`, its descriptors; tracing).
//! From Linux 6.12 on it cannot signal one either, nor connect to its abstract sockets. What it starts is in the domain
//! with it. Whoever is outside, as the keeper is, reaches in as before. Root is not kept away from anything in earnest:
//! since Linux 6.15, for one, CAP_PERFMON alone lets it read the memory of others.
//!
//! The domain takes one thing else away: nothing in it mounts anything, not even in a user namespace of its own. What a
//! server must not replace is kept by mounts, and with other mounts it would be a name like any other. So the domain is one
//! over files, with the one right that has to be given back anyway, since moves between folders are forbidden otherwise.
//! Files, folders and the network are as they were. And without privileges the kernel makes no domain for a process that
//! could still gain some, so set-user-id programs (`sudo`, `newuidmap` of rootless Podman) gain nothing in it.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use nix::errno::Errno;

use crate::errno_of;

/// How well the kernel can confine a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It neither looks into other processes nor signals them: Linux 6.12 and later.
    Full,
    /// It does not look into other processes, and can signal them: Linux 5.19 and later.
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
        let base = || {
            let base = landlock::Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
            // Linux 5.13 to 5.18 cannot give it back.
            base.handle_access(AccessFs::Refer)
        };
        match self {
            Self::Full => base()?.scope(Scope::from_all(ABI::V6))?.create().map(Some),
            Self::Partial => base()?.create().map(Some),
            Self::None => Ok(None),
        }
    }

    /// Puts this thread, and all that comes of it, into a domain of its own.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enter(self) -> nix::Result<()> {
        let Some(ruleset) = self.ruleset().map_err(|error| errno_of(&error))? else { return Ok(()) };
        let root = PathFd::new("/").map_err(|_| Errno::ENOENT)?;
        let given_back = ruleset.add_rule(PathBeneath::new(root, AccessFs::Refer));
        given_back.and_then(RulesetCreated::restrict_self).map(drop).map_err(|error| errno_of(&error))
    }
}

#[cfg(test)]
mod tests;
