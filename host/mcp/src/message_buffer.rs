//! Collects one message of a server from the pieces that arrive, within its size and within the budget for all.
//!
//! A message that is longer than the harness takes may be the answer to a session whose own limit is larger: as long as
//! such a call waits, it is kept up to that, beside the budget.
//!
//! States: keeping, then dropping once the message is too long or there is no room for it. What is dropped streams
//! through a [`IdSearch`] and is never held, so that the caller who waits for it can still be told at once.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::id_search::IdSearch;
use footbridge_core::budget::{Held, Share, UNCOUNTED_BYTES};

/// How much a large message grows at a time.
const STEP_BYTES: usize = 1024 * 1024;
/// How much of a dropped message stays, for the log.
const HEAD_BYTES: usize = 256;
/// How long a message that takes from the budget may take to arrive.
const WHOLE: Duration = Duration::from_secs(60);

/// Bounds of one message.
#[derive(Debug, Clone)]
pub(super) struct Room {
    /// Longest message.
    pub(super) limit: usize,
    /// Where the bytes of large ones are taken from: the server's part, so that it leaves some for others.
    pub(super) share: Share,
    /// How long to wait for the budget.
    pub(super) patience: Duration,
    /// What calls that wait may have beyond the limit.
    pub(super) beyond: Beyond,
}

/// The result limits of calls that wait and may have more than the harness's limit. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Beyond(Arc<Mutex<BTreeMap<usize, usize>>>);

/// A call that waits. Dropping it is the end of that.
#[derive(Debug)]
pub(super) struct Awaited(Beyond, usize);

/// What a message has besides its result, bytes.
const ENVELOPE: usize = 64 * 1024;

impl Beyond {
    /// A call waits for a result of at most so many bytes.
    pub(super) fn awaits(&self, bytes: usize) -> Awaited {
        *self.lock().entry(bytes).or_default() += 1;
        Awaited(self.clone(), bytes)
    }

    /// The longest message that one of them could be answered with.
    fn most(&self) -> usize {
        self.lock().last_key_value().map_or(0, |(bytes, _)| bytes.saturating_add(ENVELOPE))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        let mut all = self.0.lock();
        if let Entry::Occupied(mut count) = all.entry(self.1) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                let _nobody_waits = count.remove();
            }
        }
    }
}

/// The message that is arriving.
#[derive(Debug)]
pub(super) struct MessageBuffer {
    room: Room,
    bytes: Vec<u8>,
    held: Option<Held>,
    held_bytes: usize,
    deadline: Option<tokio::time::Instant>,
    /// Until when a message that takes from the budget must be whole.
    due: Option<tokio::time::Instant>,
    dropping: Option<(IdSearch, Dropped)>,
    /// Whether it was said whose answer is being dropped.
    is_told: bool,
}

/// An answer that is being dropped, and may never end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostAnswer {
    /// The request that it is to, if that has come by now.
    pub(super) id: Option<i64>,
    /// Why it is dropped.
    pub(super) why: Dropped,
}

/// A message that has arrived.
#[derive(Debug)]
pub(super) enum BufferedMessage {
    /// All of it.
    Whole(Vec<u8>, Option<Held>),
    /// Nothing of it but its id and its first bytes.
    Dropped { id: Option<i64>, why: Dropped, head: Vec<u8> },
}

/// Why a message was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// Longer than the limit.
    TooLong,
    /// The budget was spent.
    NoRoom,
}

impl MessageBuffer {
    /// Nothing has arrived.
    pub(super) fn new(room: Room) -> Self {
        Self {
            room,
            bytes: Vec::new(),
            held: None,
            held_bytes: 0,
            deadline: None,
            due: None,
            dropping: None,
            is_told: false,
        }
    }

    /// Whether nothing has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.dropping.is_none()
    }

    /// Why the message is being dropped, if it is.
    pub(super) fn dropping(&self) -> Option<Dropped> {
        self.dropping.as_ref().map(|(_, why)| *why)
    }

    /// The answer that is being dropped, as soon as it shows that it is one, once: who waits for it need not wait for its
    /// end.
    pub(super) fn lost(&mut self) -> Option<LostAnswer> {
        let (search, why) = self.dropping.as_ref().filter(|(search, _)| search.is_answer() && !self.is_told)?;
        let lost = LostAnswer { id: search.id(), why: *why };
        self.is_told = true;
        Some(lost)
    }

    /// Takes more of the message.
    pub(super) async fn push(&mut self, more: &[u8]) {
        if self.dropping.is_none() {
            match self.make_room(self.bytes.len() + more.len()).await {
                Ok(()) => {
                    self.bytes.extend_from_slice(more);
                    return;
                }
                Err(why) => self.start_dropping(why),
            }
        }
        if let Some((search, _)) = &mut self.dropping {
            search.feed(more);
        }
    }

    /// The message is complete; the next one starts.
    pub(super) fn finish(&mut self) -> BufferedMessage {
        let bytes = std::mem::take(&mut self.bytes);
        let held = self.held.take();
        self.held_bytes = 0;
        self.due = None;
        self.is_told = false;
        match self.dropping.take() {
            Some((search, why)) => BufferedMessage::Dropped { id: search.id(), why, head: bytes },
            None => BufferedMessage::Whole(bytes, held),
        }
    }

    async fn make_room(&mut self, needed: usize) -> Result<(), Dropped> {
        let is_beyond = needed > self.room.limit;
        let limit = if is_beyond { self.room.beyond.most() } else { self.room.limit };
        if needed > limit {
            return Err(Dropped::TooLong);
        }
        let target = needed.next_power_of_two().min(needed.next_multiple_of(STEP_BYTES)).min(limit);
        if is_beyond && self.held_bytes <= self.room.limit {
            // All of it is held there, and nothing here any more.
            self.held_bytes = 0;
        }
        if needed > UNCOUNTED_BYTES && needed > self.held_bytes {
            let more = target - self.held_bytes;
            let at_once = if is_beyond { None } else { self.room.share.take(more).ok() };
            let taken = match at_once {
                Some(taken) => taken,
                None => self.wait_for(more, is_beyond).await.ok_or(Dropped::NoRoom)?,
            };
            self.deadline = None;
            self.due.get_or_insert_with(|| tokio::time::Instant::now() + WHOLE);
            match &mut self.held {
                Some(held) if self.held_bytes > 0 => held.add(taken),
                _ => self.held = Some(taken),
            }
            self.held_bytes = target;
        }
        if needed > self.bytes.capacity() {
            self.bytes.reserve_exact(target - self.bytes.len());
        }
        Ok(())
    }

    /// The deadline outlives a wait that is cancelled and taken up again.
    async fn wait_for(&mut self, bytes: usize, is_beyond: bool) -> Option<Held> {
        let Room { share, patience, .. } = &self.room;
        let deadline = *self.deadline.get_or_insert_with(|| tokio::time::Instant::now() + *patience);
        let held = async { if is_beyond { share.wait_beyond(bytes).await } else { share.wait(bytes).await } };
        tokio::time::timeout_at(deadline, held).await.ok()?.ok()
    }

    /// Waits until a message that takes from the budget is overdue: it would hold its bytes for ever.
    pub(super) async fn overdue(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Gives up a message that is overdue; what still comes of it streams by.
    pub(super) fn give_up(&mut self) {
        self.due = None;
        if self.dropping.is_none() {
            self.start_dropping(Dropped::NoRoom);
        }
    }

    fn start_dropping(&mut self, why: Dropped) {
        let mut search = IdSearch::default();
        search.feed(&self.bytes);
        self.bytes.truncate(HEAD_BYTES);
        self.bytes.shrink_to_fit();
        self.held = None;
        self.held_bytes = 0;
        self.deadline = None;
        self.dropping = Some((search, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_core::budget::Budget;

    fn buffer(limit: usize, budget: usize) -> MessageBuffer {
        let (share, patience) = (Budget::new(budget).share(), Duration::from_millis(10));
        MessageBuffer::new(Room { limit, share, patience, beyond: Beyond::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_beyond_the_limit_is_kept_beside_the_budget_while_somebody_waits_for_it() {
        let mut buffer = buffer(100_000, 1 << 20);
        for is_awaited in [true, false] {
            let awaited = [300_000, 200_000].map(|bytes| buffer.room.beyond.awaits(bytes));
            for _ in 0..300 {
                buffer.push(&[b'x'; 1000]).await;
            }
            assert_eq!(buffer.dropping(), None);
            // Nothing of the budget is held for it any more.
            assert!(buffer.room.share.take(800_000).is_ok());
            if !is_awaited {
                drop(awaited);
                buffer.push(&[b'x'; ENVELOPE]).await;
                let BufferedMessage::Dropped { why: Dropped::TooLong, .. } = buffer.finish() else { panic!("kept") };
                continue;
            }
            let BufferedMessage::Whole(bytes, Some(_held)) = buffer.finish() else { panic!("dropped") };
            assert_eq!(bytes.len(), 300_000);
        }
        assert_eq!(buffer.room.beyond.most(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_within_its_bounds_arrives_whole() {
        let mut buffer = buffer(1 << 20, 1 << 20);
        for _ in 0..100 {
            buffer.push(&[b'x'; 1000]).await;
        }
        let BufferedMessage::Whole(bytes, held) = buffer.finish() else { panic!("dropped") };
        assert_eq!((bytes.len(), held.is_some()), (100_000, true));
        buffer.push(b"y").await;
        assert!(matches!(buffer.finish(), BufferedMessage::Whole(bytes, None) if bytes == b"y"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_beyond_the_limit_streams_by_and_gives_its_id() {
        let mut buffer = buffer(100_000, 2 << 20);
        buffer.push(b"{\"result\":\"").await;
        for _ in 0..200 {
            buffer.push(&[b'x'; 1000]).await;
        }
        buffer.push(b"\",\"id\":5}").await;
        assert_eq!(buffer.lost(), Some(LostAnswer { id: Some(5), why: Dropped::TooLong }));
        assert_eq!(buffer.lost(), None, "once");
        assert!(buffer.bytes.len() <= HEAD_BYTES && buffer.room.share.take(1 << 20).is_ok());
        assert!(matches!(buffer.finish(), BufferedMessage::Dropped { id: Some(5), why: Dropped::TooLong, .. }));
        assert!(buffer.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_without_room_is_dropped_after_a_short_wait() {
        let mut buffer = buffer(1 << 20, 100 * 1024);
        let _others = buffer.room.share.take(80 * 1024).unwrap();
        buffer.push(&[b' '; 80_000]).await;
        buffer.push(b"{\"id\":1,").await;
        assert!(matches!(buffer.finish(), BufferedMessage::Dropped { id: Some(1), why: Dropped::NoRoom, .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_never_ends_gives_its_bytes_back() {
        let mut buffer = buffer(1 << 20, 2 << 20);
        buffer.push(&[b'x'; 80_000]).await;
        let start = tokio::time::Instant::now();
        buffer.overdue().await;
        assert_eq!(start.elapsed(), WHOLE);
        buffer.give_up();
        assert!(buffer.room.share.take(1 << 20).is_ok());
        buffer.push(&[b'x'; 80_000]).await;
        assert!(matches!(buffer.finish(), BufferedMessage::Dropped { why: Dropped::NoRoom, .. }));
    }
}
