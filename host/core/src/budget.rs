//! A bound on the bytes that the harness holds for others at any moment.
//!
//! Bodies, long lines and results take from one budget, so that many large things at once end in `busy`, not in the
//! kernel's out-of-memory killer. What was taken comes back when its [`Held`] is dropped.
//!
//! Each session and each server has a [`Share`]: it may hold as much as it leaves for the others, and a little. So one
//! that holds all it can leaves half, two leave a third, and so on.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The granularity: a semaphore counts to 2^29 on small machines, bytes would not fit for long.
const UNIT: usize = 1024;

/// What arrives is not taken from the budget while it is smaller: nearly everything is, and how much is read at a time
/// is bounded anyway. A result is, whatever its size, until its reader has it.
pub const UNCOUNTED_BYTES: usize = 64 * 1024;

/// How many bytes may be held in all. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget {
    units: Arc<Semaphore>,
    in_all: usize,
}

/// Bytes taken from a [`Budget`].
#[derive(Debug)]
pub struct Held {
    permit: OwnedSemaphorePermit,
    holder: Option<Holder>,
}

/// Whose bytes they are.
#[derive(Debug)]
struct Holder {
    units: usize,
    of: Arc<AtomicUsize>,
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.of.fetch_sub(self.units, Ordering::Relaxed);
    }
}

/// What a session may hold beyond what it leaves, bytes: one large body.
const ALWAYS: usize = 1024 * 1024;

/// The part of a [`Budget`] that one session, or one server, holds.
#[derive(Debug, Clone)]
pub struct Share {
    budget: Budget,
    units: Arc<AtomicUsize>,
}

impl Share {
    /// Takes bytes, or says at once that there are none for this session.
    ///
    /// # Errors
    /// [`Spent`].
    pub fn take(&self, bytes: usize) -> Result<Held, Spent> {
        self.hold(self.budget.take(bytes)?)
    }

    /// Takes bytes, waiting for them; then as [`Self::take`].
    ///
    /// # Errors
    /// [`Spent`].
    pub async fn wait(&self, bytes: usize) -> Result<Held, Spent> {
        self.hold(self.budget.wait(bytes).await?)
    }

    /// Counts bytes that were taken for this session elsewhere.
    ///
    /// # Errors
    /// [`Spent`] when it would hold more than it leaves; the bytes are given back.
    pub fn hold(&self, mut held: Held) -> Result<Held, Spent> {
        let units = held.permit.num_permits();
        let now = self.units.fetch_add(units, Ordering::Relaxed) + units;
        let holder = Holder { units, of: Arc::clone(&self.units) };
        if now > self.budget.units.available_permits() + ALWAYS / UNIT {
            return Err(Spent);
        }
        held.holder = Some(holder);
        Ok(held)
    }
}

/// The budget is spent for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many bytes are held at once")]
pub struct Spent;

impl Budget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let in_all = bytes / UNIT;
        Self { units: Arc::new(Semaphore::new(in_all)), in_all }
    }

    /// The share of a session that holds nothing.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), units: Arc::default() }
    }

    /// Takes bytes, or says at once that there are none.
    ///
    /// # Errors
    /// [`Spent`].
    pub fn take(&self, bytes: usize) -> Result<Held, Spent> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| Spent)?;
        let permit = Arc::clone(&self.units).try_acquire_many_owned(units).map_err(|_| Spent)?;
        Ok(Held { permit, holder: None })
    }

    /// Takes bytes, waiting for them.
    ///
    /// # Errors
    /// [`Spent`] when the budget could never hold them.
    pub async fn wait(&self, bytes: usize) -> Result<Held, Spent> {
        let units = bytes.div_ceil(UNIT);
        if units > self.in_all {
            return Err(Spent);
        }
        let units = u32::try_from(units).map_err(|_| Spent)?;
        let permit = Arc::clone(&self.units).acquire_many_owned(units).await.map_err(|_| Spent)?;
        Ok(Held { permit, holder: None })
    }
}

impl Held {
    /// Adds what `more` holds, of the same holder.
    pub fn add(&mut self, more: Self) {
        self.permit.merge(more.permit);
        match (&mut self.holder, more.holder) {
            (Some(holder), Some(mut more)) if Arc::ptr_eq(&holder.of, &more.of) => {
                holder.units += std::mem::take(&mut more.units);
            }
            // Bytes of somebody else count for nobody.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_comes_back() {
        let budget = Budget::new(4096);
        let held = budget.take(3000).unwrap();
        assert_eq!(budget.take(2048).unwrap_err(), Spent);
        drop(held);
        assert!(budget.take(4096).is_ok());
        assert_eq!(budget.take(usize::MAX).unwrap_err(), Spent);
    }

    #[test]
    fn whoever_holds_all_it_can_leaves_something_for_the_next() {
        const MIB: usize = 1024 * 1024;
        let budget = Budget::new(32 * MIB);
        let (first, second, third) = (budget.share(), budget.share(), budget.share());
        let largest = first.take(16 * MIB).unwrap();
        assert_eq!(first.take(2 * MIB).unwrap_err(), Spent);
        let fill = |share: &Share| std::iter::from_fn(|| share.take(MIB).ok()).collect::<Vec<_>>();
        let held = [fill(&first), fill(&second), fill(&third)];
        assert!(held[2].len() >= 3, "{:?}", held.iter().map(Vec::len).collect::<Vec<_>>());
        drop(held);
        drop(largest);
        assert!(second.take(16 * MIB).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_never_fit_is_refused_and_not_waited_for() {
        let budget = Budget::new(4096);
        let waited = tokio::time::timeout(std::time::Duration::from_secs(9), budget.wait(4097)).await;
        assert_eq!(waited.unwrap().unwrap_err(), Spent);
        assert!(budget.wait(4096).await.is_ok());
    }
}
