//! A bound on the bytes that the harness holds for others at any moment.
//!
//! Bodies, long lines and results take from one budget, so that many large things at once end in `busy`, not in the
//! kernel's out-of-memory killer. What was taken comes back when its [`Held`] is dropped.
//!
//! Each session and each server has a [`Share`]: it may hold as much as it leaves for the others, and a little. So one
//! that holds all it can leaves half, two leave a third, and so on.
//!
//! A part is kept for what is small, so that many who hold much do not make every small request `busy`; of that part
//! each session has a little, however many small ones it makes.
//!
//! Besides, there is room for results that are larger than any of the harness may be: those of sessions that an operator
//! gave a larger limit. It is nothing until there is one.

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

/// What is small, bytes: nearly every request and result.
pub const SMALL_BYTES: usize = 16 * 1024;
/// The part of a budget that only what is small may take: one in so many.
const KEPT_FOR_SMALL: usize = 8;
/// What one session may hold of that part, bytes.
const SMALL_EACH: usize = 64 * 1024;

/// What may be held at a time of results beyond the harness's limit: two of the largest that a session may have.
const LARGE_IN_ALL: usize = 2 * (crate::limits::MAX_RESULT_BYTES + 1024 * 1024);

/// How many bytes may be held in all. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget {
    units: Arc<Semaphore>,
    for_small: Arc<Semaphore>,
    for_large: Arc<Semaphore>,
    in_all: usize,
}

/// The parts of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Common,
    Small,
    Large,
}

/// Bytes taken from a [`Budget`].
#[derive(Debug)]
pub struct Held(Vec<Taken>);

/// Bytes taken from one part of a budget.
#[derive(Debug)]
struct Taken {
    permit: OwnedSemaphorePermit,
    part: Part,
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
    of_small: Arc<AtomicUsize>,
}

impl Share {
    /// Takes bytes, or says at once that there are none for this session.
    ///
    /// # Errors
    /// [`Spent`].
    pub fn take(&self, bytes: usize) -> Result<Held, Spent> {
        self.hold(self.budget.take(bytes)?)
    }

    /// Takes more bytes for something that is not small in all, as [`Self::take`].
    ///
    /// # Errors
    /// [`Spent`].
    pub fn take_of_large(&self, bytes: usize) -> Result<Held, Spent> {
        Ok(Held(vec![self.count(self.budget.take_common(bytes)?)?]))
    }

    /// Takes bytes of a result that is beyond the harness's limit, waiting for them. They count for no session: an
    /// operator gave this one more than all others.
    ///
    /// # Errors
    /// [`Spent`] when there could never be so many.
    pub async fn wait_beyond(&self, bytes: usize) -> Result<Held, Spent> {
        let units = bytes.div_ceil(UNIT);
        let units = u32::try_from(units).ok().filter(|_| units <= LARGE_IN_ALL / UNIT).ok_or(Spent)?;
        let permit = Arc::clone(&self.budget.for_large).acquire_many_owned(units).await.map_err(|_| Spent)?;
        Ok(Held(vec![Taken { permit, part: Part::Large, holder: None }]))
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
    pub fn hold(&self, Held(parts): Held) -> Result<Held, Spent> {
        Ok(Held(parts.into_iter().map(|taken| self.hold_part(taken)).collect::<Result<_, _>>()?))
    }

    fn hold_part(&self, taken: Taken) -> Result<Taken, Spent> {
        let bytes = taken.permit.num_permits() * UNIT;
        let may_be_small = taken.part == Part::Common && bytes <= SMALL_BYTES;
        match self.count(taken) {
            Err(Spent) if may_be_small => self.count(self.budget.take_small(bytes)?),
            counted => counted,
        }
    }

    fn count(&self, mut taken: Taken) -> Result<Taken, Spent> {
        let units = taken.permit.num_permits();
        let of = match taken.part {
            Part::Large => return Ok(taken),
            Part::Small => &self.of_small,
            Part::Common => &self.units,
        };
        let now = of.fetch_add(units, Ordering::Relaxed) + units;
        let is_spent =
            if taken.part == Part::Small { now > SMALL_EACH / UNIT } else { now > self.budget.left() + ALWAYS / UNIT };
        // Counted back when it is dropped, here or later.
        taken.holder = Some(Holder { units, of: Arc::clone(of) });
        if is_spent { Err(Spent) } else { Ok(taken) }
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
        let for_small = in_all / KEPT_FOR_SMALL;
        let units = in_all - for_small;
        let of = |units| Arc::new(Semaphore::new(units));
        Self { units: of(units), for_small: of(for_small), for_large: of(LARGE_IN_ALL / UNIT), in_all: units }
    }

    /// The share of a session that holds nothing.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), units: Arc::default(), of_small: Arc::default() }
    }

    /// Takes bytes, or says at once that there are none.
    ///
    /// # Errors
    /// [`Spent`].
    pub fn take(&self, bytes: usize) -> Result<Held, Spent> {
        let taken = match self.take_common(bytes) {
            Err(Spent) if bytes <= SMALL_BYTES => self.take_small(bytes)?,
            common => common?,
        };
        Ok(Held(vec![taken]))
    }

    /// Takes bytes, waiting for them.
    ///
    /// # Errors
    /// [`Spent`] when the budget could never hold them.
    pub async fn wait(&self, bytes: usize) -> Result<Held, Spent> {
        if let Ok(held) = self.take(bytes) {
            return Ok(held);
        }
        let units = bytes.div_ceil(UNIT);
        if units > self.in_all {
            return Err(Spent);
        }
        let units = u32::try_from(units).map_err(|_| Spent)?;
        let permit = Arc::clone(&self.units).acquire_many_owned(units).await.map_err(|_| Spent)?;
        Ok(Held(vec![Taken { permit, part: Part::Common, holder: None }]))
    }

    fn take_common(&self, bytes: usize) -> Result<Taken, Spent> {
        Ok(Taken { permit: permit(&self.units, bytes)?, part: Part::Common, holder: None })
    }

    fn take_small(&self, bytes: usize) -> Result<Taken, Spent> {
        Ok(Taken { permit: permit(&self.for_small, bytes)?, part: Part::Small, holder: None })
    }

    /// Units that nobody holds.
    fn left(&self) -> usize {
        self.units.available_permits() + self.for_small.available_permits()
    }
}

fn permit(units: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, Spent> {
    let count = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| Spent)?;
    Arc::clone(units).try_acquire_many_owned(count).map_err(|_| Spent)
}

impl Held {
    /// Adds what `more` holds, of the same holder.
    pub fn add(&mut self, more: Self) {
        for taken in more.0 {
            match self.0.iter_mut().find(|held| held.part == taken.part) {
                Some(held) => held.add(taken),
                None => self.0.push(taken),
            }
        }
    }
}

impl Taken {
    fn add(&mut self, more: Self) {
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

    #[test]
    fn what_is_small_has_room_while_others_hold_all_that_they_may() {
        const MIB: usize = 1024 * 1024;
        let budget = Budget::new(32 * MIB);
        let greedy: Vec<Share> = (0..40).map(|_| budget.share()).collect();
        let held: Vec<Held> = greedy.iter().flat_map(|share| std::iter::from_fn(|| share.take(MIB).ok())).collect();
        let more: Vec<Held> =
            greedy.iter().flat_map(|share| std::iter::from_fn(|| share.take_of_large(1).ok())).collect();
        let neighbour = budget.share();
        assert!(neighbour.take(SMALL_BYTES).is_ok() && neighbour.take(SMALL_BYTES + 1).is_err());
        let small: Vec<Held> =
            greedy.iter().flat_map(|share| std::iter::from_fn(|| share.take(SMALL_BYTES).ok())).collect();
        assert!(small.len() <= 40 * SMALL_EACH / SMALL_BYTES && neighbour.take(1).is_ok(), "each has a little of it");
        let elsewhere = budget.take(1000).unwrap();
        let mut its = neighbour.hold(elsewhere).unwrap();
        its.add(neighbour.take(1000).unwrap());
        drop((held, more, small, its));
        assert!(greedy[0].take(16 * MIB).is_ok(), "all of it came back");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_beyond_the_limit_takes_nothing_from_the_others_and_is_bounded_itself() {
        let budget = Budget::new(4096);
        let share = budget.share();
        let largest = crate::limits::MAX_RESULT_BYTES;
        let mut first = share.wait_beyond(largest).await.unwrap();
        first.add(share.wait_beyond(1024).await.unwrap());
        let first = share.hold(first).unwrap();
        let second = budget.share().wait_beyond(largest).await.unwrap();
        assert!(budget.take(3000).is_ok());
        let third = || tokio::time::timeout(std::time::Duration::from_secs(9), share.wait_beyond(largest));
        assert!(third().await.is_err());
        drop(first);
        drop((third().await.unwrap().unwrap(), second));
        assert_eq!(share.wait_beyond(usize::MAX).await.unwrap_err(), Spent);
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_never_fit_is_refused_and_not_waited_for() {
        let budget = Budget::new(4096);
        let waited = tokio::time::timeout(std::time::Duration::from_secs(9), budget.wait(4097)).await;
        assert_eq!(waited.unwrap().unwrap_err(), Spent);
        assert!(budget.wait(4096).await.is_ok());
    }
}
