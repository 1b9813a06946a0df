//! How many descriptors this process may have open.
//!
//! Many machines give a process 1,024 to begin with and let it take many more: those are for programs that cannot deal
//! with large numbers, which this one can. What it starts gets back the limits that it was started with.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::sys::Inherited;

/// Raises the limit to this many, or as far as it may go; gives what it is then. It is never lowered.
pub fn raise(needed: usize) -> usize {
    // Before it changes: the children get it back.
    let _noted = Inherited::of_this_process();
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let wanted = u64::try_from(needed).unwrap_or(u64::MAX).min(hard);
        if wanted > soft
            && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
        {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
    }
    limit()
}

/// The limit as it is.
#[must_use]
pub fn limit() -> usize {
    let soft = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    usize::try_from(soft).unwrap_or(usize::MAX)
}
