//! The digest of a body as it passes. That of a long one is made by another thread, a piece at a time, since it takes as
//! long as half of what else is done to the body.
//!
//! What a body holds so while nothing passes is handed over too, once whoever carries it says so.
//!
//! Failure paths: where no thread has time, whoever brings the next piece digests what waits, and so does whoever asks
//! for the digest. So nothing waits for a thread that never comes, and what waits is bounded.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use footbridge_core::digest::Digest;
use ring::digest::{Context as Sha, SHA256};
use tokio::task::spawn_blocking;

/// How long something of a body is held where nothing more comes, for its digest, or as it could be the beginning of a
/// credential: whoever reads a stream must not wait for what comes next to have what came.
pub(crate) const HELD: Duration = Duration::from_millis(500);
/// From this many bytes on a body is a long one.
const LONG: u64 = 1024 * 1024;
/// What is handed over at once, bytes: a thread is woken for each.
const PIECE: usize = 128 * 1024;
/// The same behind so many of them.
const LARGE_PIECE: usize = 256 * 1024;
const BEFORE_LARGE: u64 = 64;
/// A part that is shorter is copied, bytes.
const SMALL: usize = 4 * 1024;

/// The digest of a body as it passes.
#[derive(Default)]
pub(crate) struct BodyDigest {
    passed: u64,
    /// Of what passed before it was a long one.
    sha: Option<Sha>,
    long: Option<LongDigest>,
}

/// That of a long one, which holds up to two pieces of it.
struct LongDigest {
    piece: Vec<Bytes>,
    /// What comes behind that, of parts that are short.
    tail: BytesMut,
    /// How long both are, and are to be.
    length: usize,
    size: usize,
    handed_over: u64,
    beside: Arc<Beside>,
}

/// What another thread may go on with.
struct Beside {
    /// Of all before what waits. Locked before `waiting`, where both are.
    sha: Mutex<Sha>,
    waiting: Mutex<Vec<Bytes>>,
}

impl BodyDigest {
    /// Takes what comes next of the body. In a runtime.
    pub(crate) fn push(&mut self, data: &Bytes) {
        self.passed += data.len() as u64;
        if self.passed < LONG {
            return self.sha.get_or_insert_with(new_sha).update(data);
        }
        let sha = &mut self.sha;
        self.long.get_or_insert_with(|| LongDigest::new(sha.take().unwrap_or_else(new_sha))).push(data);
    }

    /// Whether it holds some of what passed.
    pub(crate) fn holds(&self) -> bool {
        self.long.as_ref().is_some_and(|long| long.length > 0)
    }

    /// Lets go of what it holds: for while nothing passes. In a runtime.
    pub(crate) fn settle(&mut self) {
        if let Some(long) = self.long.as_mut().filter(|long| long.length > 0) {
            long.hand_over();
        }
    }

    /// The digest of all that passed so far; none where nothing did.
    pub(crate) fn so_far(&mut self) -> Option<Digest> {
        let sha = match &mut self.long {
            Some(long) => long.so_far(),
            None => self.sha.clone()?,
        };
        Digest::from_bytes(sha.finish().as_ref())
    }
}

fn new_sha() -> Sha {
    Sha::new(&SHA256)
}

impl LongDigest {
    fn new(sha: Sha) -> Self {
        let beside = Arc::new(Beside { sha: Mutex::new(sha), waiting: Mutex::default() });
        Self { piece: Vec::new(), tail: BytesMut::new(), length: 0, size: PIECE, handed_over: 0, beside }
    }

    fn push(&mut self, data: &Bytes) {
        // A short one would hold all of the memory that it is a part of, and there may be very many.
        if data.len() < SMALL {
            self.tail.extend_from_slice(data);
        } else {
            self.end_tail();
            self.piece.push(data.clone());
        }
        self.length += data.len();
        if self.length >= self.size {
            self.hand_over();
        }
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.piece.push(std::mem::take(&mut self.tail).freeze());
        }
    }

    fn hand_over(&mut self) {
        self.end_tail();
        let piece = std::mem::take(&mut self.piece);
        let mut waiting = self.beside.waiting();
        if !waiting.is_empty() {
            drop(waiting);
            self.beside.catch_up();
            waiting = self.beside.waiting();
        }
        *waiting = piece;
        drop(waiting);
        let is_whole = self.length >= self.size;
        (self.length, self.handed_over) = (0, self.handed_over + u64::from(is_whole));
        if self.handed_over == BEFORE_LARGE {
            self.size = LARGE_PIECE;
        }
        let beside = Arc::clone(&self.beside);
        // Whether it comes to it or not: whoever needs it done does it then.
        drop(spawn_blocking(move || beside.catch_up()));
    }

    fn so_far(&mut self) -> Sha {
        self.beside.catch_up();
        self.end_tail();
        let mut sha = self.beside.sha();
        self.piece.drain(..).for_each(|part| sha.update(&part));
        self.length = 0;
        sha.clone()
    }
}

impl Beside {
    fn sha(&self) -> MutexGuard<'_, Sha> {
        self.sha.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Digests what waits. Whoever comes while another does waits for that one, a fraction of a millisecond.
    fn catch_up(&self) {
        let mut sha = self.sha();
        let piece = std::mem::take(&mut *self.waiting());
        piece.iter().for_each(|part| sha.update(part));
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Instant};

    use tokio::runtime::Builder;

    use super::*;

    /// Its digest, and that of its first part, when it passes in pieces of these lengths, over and over.
    fn check(body: &[u8], lengths: &[usize]) {
        let (mut digest, mut left) = (BodyDigest::default(), body);
        for length in lengths.iter().cycle() {
            let passed = body.len() - left.len();
            if passed % 7 == 1 || left.is_empty() {
                let expected = (passed > 0).then(|| Digest::of(&body[..passed]));
                assert_eq!(digest.so_far(), expected, "{passed} of {} bytes by {lengths:?}", body.len());
            }
            if left.is_empty() {
                return;
            }
            let now;
            (now, left) = left.split_at(left.len().min(*length));
            digest.push(&Bytes::copy_from_slice(now));
        }
    }

    fn bodies() -> impl Iterator<Item = Vec<u8>> {
        let long = usize::try_from(LONG).unwrap();
        [
            0,
            1,
            100,
            long - 1,
            long,
            long + 1,
            long + PIECE,
            long + 7 * PIECE + 11,
            long + 64 * PIECE + 2 * LARGE_PIECE + 1,
        ]
        .into_iter()
        .map(|length| (0..length).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect())
    }

    #[tokio::test]
    async fn it_is_sha_256_however_long_the_body_is_and_however_it_comes() {
        for body in bodies() {
            for lengths in [&[16 * 1024][..], &[1, 40_000, 3, 90_001], &[PIECE, 2 * PIECE + 1], &[usize::MAX]] {
                check(&body, lengths);
            }
        }
    }

    fn eventually_none_waits(digest: &BodyDigest) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !digest.long.as_ref().unwrap().beside.waiting().is_empty() {
            assert!(Instant::now() < deadline, "nobody did");
        }
    }

    #[tokio::test]
    async fn short_parts_are_one_and_none_take_no_room() {
        let mut digest = BodyDigest::default();
        digest.push(&Bytes::from(vec![b'x'; usize::try_from(LONG).unwrap()]));
        for _ in 0..10_000 {
            digest.push(&Bytes::from_static(b"y"));
            digest.push(&Bytes::new());
        }
        let long = digest.long.as_ref().unwrap();
        assert!(long.piece.len() <= 1 && long.tail.len() == 10_000, "{} parts", long.piece.len());
        assert!(digest.holds());
        digest.settle();
        let long = digest.long.as_ref().unwrap();
        assert!(!digest.holds() && long.piece.capacity() == 0 && long.tail.capacity() == 0, "nothing of it");
        eventually_none_waits(&digest);
        digest.settle();
        let body = [vec![b'x'; usize::try_from(LONG).unwrap()], vec![b'y'; 10_000]].concat();
        assert_eq!(digest.so_far(), Some(Digest::of(&body)));
    }

    #[test]
    fn another_thread_digests_what_nobody_asks_for() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let body = Bytes::from(vec![b'x'; usize::try_from(LONG).unwrap() + PIECE]);
        let mut digest = BodyDigest::default();
        runtime.block_on(async { digest.push(&body) });
        eventually_none_waits(&digest);
        assert_eq!(digest.so_far(), Some(Digest::of(&body)));
    }

    #[test]
    fn it_needs_no_thread_that_has_time() {
        let runtime = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let (busy, until) = mpsc::channel::<()>();
        let other = runtime.spawn_blocking(move || until.recv());
        runtime.block_on(async {
            for body in bodies() {
                check(&body, &[16 * 1024, 5]);
            }
        });
        assert!(!other.is_finished());
        drop(busy);
    }
}
