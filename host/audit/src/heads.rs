//! When heads are signed, and where they go.
//!
//! The writer signs. A thread of its own hands heads on, so that a slow place holds up no call: to the file of all
//! heads beside the chains, to a configured command, and to whatever else the program keeps them in. A place that
//! fails is logged and counted, and left out of that head alone. Where the writer does not sync, this thread does before
//! it hands a head on: one that is known of lines that the power took would say for good that somebody cut them off.

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use tokio::runtime::Runtime;

use super::{
    chain::{Chain, End, now},
    head::{HeadKey, SignedHead},
    to_sync::ToSync,
};

/// Heads that wait to be handed on; more than that, and some are left out.
const WAITING: usize = 16;
/// However many records there are, heads are not closer together than this.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// A place that keeps signed heads.
pub trait HeadSink: Send {
    /// Keeps heads, the newest last: those that came while it was busy come together. It may block: it has a thread,
    /// and the runtime that this runs in, for itself and the other places.
    ///
    /// # Errors
    /// Whatever keeps it from that. It is logged.
    fn keep<'a>(&'a mut self, heads: &'a [SignedHead]) -> BoxFuture<'a, Result<(), NotKept>>;
}

impl HeadSink for Box<dyn HeadSink> {
    fn keep<'a>(&'a mut self, heads: &'a [SignedHead]) -> BoxFuture<'a, Result<(), NotKept>> {
        (**self).keep(heads)
    }
}

/// Why heads were not kept.
pub type NotKept = Box<dyn Error + Send + Sync>;

/// When heads are signed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    pub(super) records: u64,
    pub(super) time: Duration,
}

/// The heads of one chain.
pub(super) struct Heads {
    key: HeadKey,
    schedule: Schedule,
    publisher: Publisher,
    /// The last record that a head says something of, or that is one.
    covered: u64,
    tried: Instant,
}

impl Heads {
    pub(super) fn start(key: HeadKey, schedule: Schedule, sinks: Vec<Box<dyn HeadSink>>) -> io::Result<Self> {
        Ok(Self { key, schedule, publisher: Publisher::start(sinks)?, covered: 0, tried: Instant::now() })
    }

    pub(super) fn key(&self) -> &str {
        self.key.public()
    }

    /// What is up to this record is for others to sign.
    pub(super) fn begin_behind(&mut self, seq: u64) {
        self.covered = seq;
    }

    /// Whether a chain that ends here wants a head.
    pub(super) fn is_due(&self, seq: u64) -> bool {
        self.wait(seq).is_some_and(|wait| wait.is_zero())
    }

    /// How long until it does, where there is anything new. One that could not be written is not tried again at once.
    pub(super) fn wait(&self, seq: u64) -> Option<Duration> {
        let Schedule { records, time } = self.schedule;
        let pause = if seq.saturating_sub(self.covered) >= records { time.min(AT_MOST_EVERY) } else { time };
        (seq > self.covered).then(|| pause.saturating_sub(self.tried.elapsed()))
    }

    /// Signs what the line at the end of a chain is, or would be.
    pub(super) fn sign(&mut self, chain: &Chain, end: End) -> Option<SignedHead> {
        self.tried = Instant::now();
        Some(self.key.sign(chain.id(), end.seq, end.hash?, now()))
    }

    /// Nothing can be written now: what is due is not tried again at once.
    pub(super) fn put_off(&mut self) {
        self.tried = Instant::now();
    }

    /// Hands a head on, once what it says is durable. It says something of everything up to `covered`.
    pub(super) fn publish(&mut self, head: SignedHead, covered: u64, to_sync: io::Result<Option<ToSync>>) {
        match to_sync {
            Ok(to_sync) => {
                self.covered = covered;
                self.publisher.publish(Written { head, to_sync });
            }
            // The next one is tried again, whether or not anything is recorded meanwhile.
            Err(error) => self.publisher.not_synced(&error),
        }
    }
}

/// A head that is written.
struct Written {
    head: SignedHead,
    /// The file in which it is, where that is not synced.
    to_sync: Option<ToSync>,
}

/// The thread that hands heads on. Dropping it waits for that.
struct Publisher {
    sender: Option<SyncSender<Written>>,
    thread: Option<thread::JoinHandle<()>>,
    left_out: Arc<AtomicU64>,
}

impl Publisher {
    fn start(sinks: Vec<Box<dyn HeadSink>>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&left_out);
        let (built, is_built) = sync_channel(1);
        let handing_on = move || {
            // Made here: where a thread cannot be had, a runtime in the hands of another one could not be dropped.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| drop(built.send(Err(error))));
            if let Ok(runtime) = runtime
                && built.send(Ok(())).is_ok()
            {
                hand_on(&runtime, &receiver, sinks, &theirs);
            }
        };
        let thread = thread::Builder::new().name("audit-heads".to_owned()).spawn(handing_on)?;
        is_built.recv().map_err(io::Error::other)??;
        Ok(Self { sender: Some(sender), thread: Some(thread), left_out })
    }

    fn not_synced(&self, error: &io::Error) {
        not_synced(&self.left_out, error);
    }

    fn publish(&self, head: Written) {
        let Some(sender) = &self.sender else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sender.try_send(head) {
            let count = self.left_out.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(count, "a head of the record was not handed on: those before it take too long");
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that hands heads on panicked");
        }
    }
}

/// Counts a head that would say what the power can still take.
fn not_synced(left_out: &AtomicU64, error: &io::Error) {
    let count = left_out.fetch_add(1, Ordering::Relaxed) + 1;
    tracing::warn!(%error, count, "a head of the record was not handed on: what it says cannot be synced");
}

fn hand_on(runtime: &Runtime, heads: &Receiver<Written>, mut sinks: Vec<Box<dyn HeadSink>>, left_out: &AtomicU64) {
    let durable = |Written { head, to_sync }: Written| match to_sync.as_ref().map_or(Ok(()), ToSync::sync) {
        Ok(()) => Some(head),
        Err(error) => {
            not_synced(left_out, &error);
            None
        }
    };
    while let Ok(head) = heads.recv() {
        let all: Vec<SignedHead> = std::iter::once(head).chain(heads.try_iter()).filter_map(durable).collect();
        if all.is_empty() {
            continue;
        }
        for sink in &mut sinks {
            if let Err(error) = runtime.block_on(sink.keep(&all)) {
                let count = left_out.fetch_add(all.len() as u64, Ordering::Relaxed) + all.len() as u64;
                tracing::warn!(%error, count, "heads of the record were not kept");
            }
        }
    }
}

/// Heads as lines of JSON.
///
/// # Errors
/// Never, for heads that were signed here.
pub fn lines_of(heads: &[SignedHead]) -> serde_json::Result<String> {
    heads.iter().map(|head| Ok(serde_json::to_string(head)? + "\n")).collect()
}
