//! The descriptors that the relay may still open, in pairs: a connection takes one for as long as it lasts, and a pipe
//! one more while its bytes are not taken.
//!
//! Nothing is opened without a pair. A client that takes the last descriptor would wait for another to reach the harness
//! by, with its own in its hands, and so would all that came with it: those beyond wait to be accepted. Pipes leave half of
//! the pairs to connections; where there is none for them, the buffer does it too.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is opened besides: the lifeline's connection, the start of the command, a look at the kernel's lists.
const OTHERS: usize = 8;

/// A pair of descriptors that may be opened, until it is dropped.
pub(crate) struct Pair {
    _permit: OwnedSemaphorePermit,
}

/// All of them.
pub(crate) struct Pairs {
    free: Arc<Semaphore>,
    of_connections: usize,
}

impl Pairs {
    /// Of so many descriptors that may still be opened.
    pub(crate) fn of(left: usize) -> Self {
        Self::new((left.saturating_sub(OTHERS) / 2).max(1))
    }

    /// So many.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(count)), of_connections: count.div_ceil(2) }
    }

    /// One for a connection, once there is one.
    pub(crate) async fn for_connection(&self) -> Option<Pair> {
        // The semaphore is never closed, so this is never none.
        Arc::clone(&self.free).acquire_owned().await.ok().map(|permit| Pair { _permit: permit })
    }

    /// One for a pipe, where enough are left.
    pub(crate) fn for_pipe(&self) -> Option<Pair> {
        if self.are_scarce() {
            return None;
        }
        Arc::clone(&self.free).try_acquire_owned().ok().map(|permit| Pair { _permit: permit })
    }

    /// Whether what is left is for connections.
    pub(crate) fn are_scarce(&self) -> bool {
        self.free.available_permits() <= self.of_connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pipes_leave_half_of_them_to_connections() {
        for (left, connections) in [(0, 1), (OTHERS + 2, 1), (OTHERS + 3, 1), (OTHERS + 20, 5), (OTHERS + 22, 6)] {
            let pairs = Pairs::of(left);
            let pipes: Vec<Pair> = std::iter::from_fn(|| pairs.for_pipe()).collect();
            assert!(left < OTHERS || 2 * (pipes.len() + connections) + OTHERS <= left, "{left}");
            let mut taken = Vec::new();
            for _ in 0..connections {
                taken.push(pairs.for_connection().await.unwrap());
            }
            assert_eq!((pairs.free.available_permits(), pairs.are_scarce()), (0, true), "{left}");
        }
    }
}
