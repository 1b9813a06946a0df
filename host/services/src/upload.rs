//! The body of a request, as it passes: counted, digested and bounded.
//!
//! It is taken from its connection once: to be sent as it comes, or to be read whole before a person is asked. Whoever
//! refuses the request first can still read past it.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use footbridge_audit::ExchangeRecord;
use footbridge_calls::{
    cause::{BudgetOf, Cause},
    service::{HeldRequest, ShownBody},
    session::Spending,
};
use footbridge_core::{
    budget::{Held, Share},
    digest::{Digest, digest_text},
    redact::SentText,
};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use ring::digest::{Context as Sha, SHA256};
use tokio::time::{Instant, sleep_until, timeout};

/// How long a body may take that is read before anybody is asked.
const HOLD_TIME: Duration = Duration::from_secs(60);

/// The body of a request. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Upload(Arc<Mutex<Source>>);

#[derive(Debug)]
enum Source {
    /// Nothing of it was read.
    Unread(Incoming),
    /// It was read whole.
    Whole(Bytes, Held),
    Taken,
}

impl Upload {
    pub(crate) fn new(body: Incoming) -> Self {
        Self(Arc::new(Mutex::new(Source::Unread(body))))
    }

    fn take(&self) -> Source {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Source::Taken)
    }

    fn put(&self, source: Source) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = source;
    }

    /// The body, if nothing of it was read.
    #[must_use]
    pub fn unread(&self) -> Option<Incoming> {
        match self.take() {
            Source::Unread(body) => Some(body),
            other => {
                self.put(other);
                None
            }
        }
    }

    /// Whether it was read whole, and says as JSON that its answer is to be a stream.
    #[must_use]
    pub fn asks_for_stream(&self) -> bool {
        #[derive(serde::Deserialize)]
        struct Asked {
            #[serde(default)]
            stream: bool,
        }
        let bytes = match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Source::Whole(bytes, _) => bytes.clone(),
            _ => return false,
        };
        serde_json::from_slice::<Asked>(&bytes).is_ok_and(|asked| asked.stream)
    }

    /// Reads all of it.
    pub(crate) async fn hold(&self, room: &Share, limit: usize) -> Result<HeldRequest, Cause> {
        let Some(body) = self.unread() else { return Err(Cause::BodyBroken) };
        let collected = timeout(HOLD_TIME, collect(body, room, limit)).await;
        let (bytes, held) = collected.unwrap_or(Err(Cause::BodyBroken))?;
        let (digest, shown) = (Digest::of(&bytes), ShownBody::of(&bytes));
        let body = HeldRequest { digest, bytes: bytes.len(), shown, headers: BTreeMap::new() };
        self.put(Source::Whole(bytes, held));
        Ok(body)
    }

    /// To be sent, and what counts it. None where it was taken before. In a box, since hyper has room for 32 requests in
    /// each connection to an origin.
    pub(crate) fn into_body(self, bounds: UploadBounds) -> Option<(Box<Uploaded>, Arc<Tally>)> {
        let source = self.take();
        if matches!(source, Source::Taken) {
            return None;
        }
        let tally = Arc::new(Tally::default());
        Some((Box::new(Uploaded { source, tally: Arc::clone(&tally), bounds }), tally))
    }
}

async fn collect(mut body: Incoming, room: &Share, limit: usize) -> Result<(Bytes, Held), Cause> {
    let too_large = || Cause::BodyTooLarge { limit, asked: true };
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        return Err(too_large());
    }
    let mut held = room.take(0).map_err(|_| Cause::BytesHeld)?;
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Cause::BodyBroken)?.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(too_large());
        }
        held.add(room.take_of_large(data.len()).map_err(|_| Cause::BytesHeld)?);
        bytes.extend_from_slice(&data);
    }
    Ok((bytes.into(), held))
}

/// What passed of a body, for whoever waits for the answer.
pub(crate) struct Tally {
    bytes: AtomicU64,
    broken: AtomicU8,
    spent: OnceLock<BudgetOf>,
    /// Of what passed, once something did: most requests have no body.
    sha: Mutex<Option<Box<Sha>>>,
    since: Mutex<Instant>,
}

const OVER: u8 = 1;
const CUT: u8 = 2;

impl Default for Tally {
    fn default() -> Self {
        let (sha, since) = (Mutex::default(), Mutex::new(Instant::now()));
        let (bytes, broken, spent) = (AtomicU64::default(), AtomicU8::default(), OnceLock::new());
        Self { bytes, broken, spent, sha, since }
    }
}

impl Tally {
    fn passed(&self, data: &[u8]) -> u64 {
        let mut sha = self.sha.lock().unwrap_or_else(PoisonError::into_inner);
        sha.get_or_insert_with(|| Box::new(Sha::new(&SHA256))).update(data);
        drop(sha);
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.bytes.fetch_add(data.len() as u64, Ordering::Relaxed) + data.len() as u64
    }

    /// Bytes that passed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it was over its limit.
    pub(crate) fn was_over(&self) -> bool {
        self.broken.load(Ordering::Relaxed) == OVER
    }

    /// Whether it broke off.
    pub(crate) fn was_cut(&self) -> bool {
        self.broken.load(Ordering::Relaxed) == CUT
    }

    /// The budget that it was more than the rest of.
    pub(crate) fn spent(&self) -> Option<BudgetOf> {
        self.spent.get().copied()
    }

    /// The digest of what passed; none where nothing did.
    pub(crate) fn digest(&self) -> Option<String> {
        if self.bytes() == 0 {
            return None;
        }
        let sha = self.sha.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Digest::from_bytes(sha.finish().as_ref()).map(digest_text)
    }

    /// What of the body went, for the record of a request that has no answer; none where nothing did.
    pub(crate) fn passed_on(&self) -> Option<Box<ExchangeRecord>> {
        let (sent, sent_digest) = (self.bytes(), self.digest());
        (sent > 0).then(|| Box::new(ExchangeRecord { sent, sent_digest, ..ExchangeRecord::default() }))
    }

    /// Ends when nothing passed for so long.
    pub(crate) async fn silent(&self, time: Duration) {
        loop {
            let until = *self.since.lock().unwrap_or_else(PoisonError::into_inner) + time;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// What a body may come to, and who looks at it as it passes.
pub(crate) struct UploadBounds {
    /// Most bytes.
    pub(crate) bytes: usize,
    /// What its bytes are counted for.
    pub(crate) spending: Option<Spending>,
    /// Values in it are left in the answer.
    pub(crate) sent: SentText,
}

/// A body on its way.
pub(crate) struct Uploaded {
    source: Source,
    tally: Arc<Tally>,
    bounds: UploadBounds,
}

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("the body is over its limit")]
    Over,
    #[error("the body is more than is left of a budget")]
    Spent,
    #[error("the body broke off")]
    Cut,
}

impl Body for Uploaded {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = self.get_mut();
        let frame = match &mut this.source {
            Source::Unread(body) => ready!(Pin::new(body).poll_frame(cx)),
            Source::Whole(..) => match std::mem::replace(&mut this.source, Source::Taken) {
                Source::Whole(bytes, _held) if !bytes.is_empty() => Some(Ok(Frame::data(bytes))),
                _ => None,
            },
            Source::Taken => None,
        };
        let Some(frame) = frame else { return Poll::Ready(None) };
        let Ok(frame) = frame else {
            this.tally.broken.store(CUT, Ordering::Relaxed);
            return Poll::Ready(Some(Err(UploadError::Cut)));
        };
        // What stands behind a body could be a credential, or hold the token: it ends here.
        if frame.is_trailers() {
            this.source = Source::Taken;
            return Poll::Ready(None);
        }
        if let Some(data) = frame.data_ref() {
            let passed = this.tally.passed(data);
            if usize::try_from(passed).unwrap_or(usize::MAX) > this.bounds.bytes {
                this.tally.broken.store(OVER, Ordering::Relaxed);
                return Poll::Ready(Some(Err(UploadError::Over)));
            }
            if let Some(Err(of)) = this.bounds.spending.as_ref().map(|spending| spending.bytes(data.len())) {
                let _first = this.tally.spent.set(of);
                return Poll::Ready(Some(Err(UploadError::Spent)));
            }
            this.bounds.sent.pass(data);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Unread(body) => body.is_end_stream(),
            Source::Whole(bytes, _) => bytes.is_empty(),
            Source::Taken => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Unread(body) => body.size_hint(),
            Source::Whole(bytes, _) => SizeHint::with_exact(bytes.len() as u64),
            Source::Taken => SizeHint::with_exact(0),
        }
    }
}
