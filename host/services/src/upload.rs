//! The body of a request, as it passes: counted, digested and bounded.
//!
//! It is taken from its connection once: to be sent as it comes, or to be read whole before a person is asked. Whoever
//! refuses the request first can still read past it.
//!
//! States: coming or whole, then over (it came to its end) or stopped: by a limit, by who sends it, or from outside. Stopped it
//! passes no more byte, whatever its connection to the origin still does, so that what was counted by then is all.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker, ready},
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
    digest::Digest,
    redact::{LookPiece, SentText},
};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    body_digest::BodyDigest,
    pace::{PIECE, Pace},
    stream_member::asks_for_stream,
};

/// How long a body may take that is read before anybody is asked.
const HOLD_TIME: Duration = Duration::from_secs(60);

/// How long it is read past what a client still sends where nobody takes it any more.
const LINGER: Duration = Duration::from_secs(5);

/// The body of a request. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Upload(Arc<Mutex<Passage>>);

#[derive(Debug)]
struct Passage {
    source: Source,
    /// What came and did not pass yet.
    rest: Bytes,
    /// Whether anything of it was asked for.
    is_begun: bool,
    /// Whoever sends it and waits for more of it.
    sender: Option<Waker>,
    /// Why it ended before its end.
    why: Option<UploadError>,
}

#[derive(Debug)]
enum Source {
    /// As it comes.
    Comes(Incoming),
    /// It was read whole.
    Whole(Bytes),
    /// It came to its end.
    Over,
    /// Nothing more of it is sent; what did not come yet.
    Stopped(Option<Incoming>),
}

impl Upload {
    pub(crate) fn new(body: Incoming) -> Self {
        let source = Source::Comes(body);
        let rest = Bytes::new();
        Self(Arc::new(Mutex::new(Passage { source, rest, is_begun: false, sender: None, why: None })))
    }

    fn lock(&self) -> MutexGuard<'_, Passage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything of it was asked for.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.lock().is_begun
    }

    /// What of the body was not read, if it did not come to its end. Nothing more of it is sent.
    #[must_use]
    pub fn left(&self) -> Option<Incoming> {
        self.lock().left()
    }

    /// Whether it was read whole, and says as JSON that its answer is to be a stream, as far as that is looked for.
    #[must_use]
    pub fn asks_for_stream(&self) -> bool {
        let bytes = match &self.lock().source {
            Source::Whole(bytes) => bytes.clone(),
            _ => return false,
        };
        asks_for_stream(&bytes)
    }

    /// Reads all of it.
    pub(crate) async fn hold(&self, room: &Share, limit: usize) -> Result<HeldRequest, Cause> {
        let Some(mut body) = self.left() else { return Err(Cause::BodyBroken) };
        // What says that it is longer is not asked for.
        self.lock().is_begun |= declared(&body) <= limit;
        let collected = timeout(HOLD_TIME, collect(&mut body, room, limit)).await;
        let bytes = collected.unwrap_or(Err(Cause::BodyBroken)).inspect_err(|_| {
            self.lock().source = Source::Stopped(Some(body));
        })?;
        let (digest, shown) = (Digest::of(&bytes), ShownBody::of(&bytes));
        let body = HeldRequest { digest, bytes: bytes.len(), shown, headers: BTreeMap::new() };
        self.lock().source = Source::Whole(bytes);
        Ok(body)
    }

    /// To be sent, and what counts it. None where it was taken before. In a box, since hyper has room for 32 requests in
    /// each connection to an origin.
    pub(crate) fn into_body(self, bounds: UploadBounds) -> Option<(Box<Uploaded>, Arc<Tally>)> {
        if matches!(self.lock().source, Source::Stopped(_)) {
            return None;
        }
        let UploadBounds { bytes, spending, sent, pace } = bounds;
        let tally = Arc::new(Tally::of(self, bytes));
        Some((Box::new(Uploaded { tally: Arc::clone(&tally), spending, sent, pace }), tally))
    }
}

impl Passage {
    /// Whether there is something of it to pass, which is its rest then.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(), UploadError>>> {
        while self.rest.is_empty() {
            match ready!(self.next(cx)) {
                Some(Ok(data)) => self.rest = data,
                Some(Err(why)) => return Poll::Ready(Some(Err(why))),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(Ok(())))
    }

    /// What comes next of it.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, UploadError>>> {
        self.is_begun = true;
        let body = match &mut self.source {
            Source::Comes(body) => body,
            Source::Whole(..) => return Poll::Ready(self.whole().map(Ok)),
            Source::Over => return Poll::Ready(None),
            // Its end would look like the end of the body.
            Source::Stopped(_) => return Poll::Ready(Some(Err(self.why.unwrap_or(UploadError::Cut)))),
        };
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else {
            if !self.sender.as_ref().is_some_and(|sender| sender.will_wake(cx.waker())) {
                self.sender = Some(cx.waker().clone());
            }
            return Poll::Pending;
        };
        Poll::Ready(match frame.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => {
                if body.is_end_stream() {
                    self.source = Source::Over;
                }
                Some(Ok(data))
            }
            // What stands behind a body could be a credential, or hold the token: it ends here.
            Some(Ok(Err(_))) | None => {
                self.source = Source::Over;
                None
            }
            Some(Err(_)) => {
                (self.source, self.why) = (Source::Stopped(None), Some(UploadError::Cut));
                Some(Err(UploadError::Cut))
            }
        })
    }

    fn whole(&mut self) -> Option<Bytes> {
        match std::mem::replace(&mut self.source, Source::Over) {
            Source::Whole(bytes) if !bytes.is_empty() => Some(bytes),
            _ => None,
        }
    }

    /// How long it says that it is; nothing where a person was asked about it, who was shown what a short one has.
    fn announced(&self) -> Option<u64> {
        match &self.source {
            Source::Comes(body) => body.size_hint().exact(),
            Source::Whole(_) | Source::Over | Source::Stopped(_) => None,
        }
    }

    fn is_at_its_end(&self) -> bool {
        if !self.rest.is_empty() {
            return false;
        }
        match &self.source {
            Source::Comes(body) => body.is_end_stream(),
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Over => true,
            Source::Stopped(_) => false,
        }
    }

    fn is_over(&self) -> bool {
        self.is_at_its_end() || matches!(self.source, Source::Stopped(_))
    }

    /// Ends it where it is. Whoever sends it is to hear that.
    fn stop(&mut self, why: UploadError) -> Option<Waker> {
        if !self.is_over() {
            let source = std::mem::replace(&mut self.source, Source::Stopped(None));
            self.why = Some(why);
            self.rest = Bytes::new();
            if let Source::Comes(body) = source {
                self.source = Source::Stopped(Some(body));
            }
        }
        self.sender.take()
    }

    fn left(&mut self) -> Option<Incoming> {
        match std::mem::replace(&mut self.source, Source::Stopped(None)) {
            Source::Comes(body) => Some(body),
            Source::Stopped(left) => left,
            other => {
                self.source = other;
                None
            }
        }
    }
}

/// The length that a body says it has at least.
fn declared(body: &impl Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

async fn collect<B>(mut body: B, room: &Share, limit: usize) -> Result<Bytes, Cause>
where
    B: Body<Data = Bytes> + Unpin,
{
    let too_large = || Cause::BodyTooLarge { limit, asked: true };
    if declared(&body) > limit {
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
    Ok(Bytes::from_owner(HeldBytes { bytes, _held: held }))
}

/// What was read whole. It counts for as long as anything of it is there: an origin may take it slowly.
struct HeldBytes {
    bytes: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What passed of a body, for whoever waits for the answer.
pub(crate) struct Tally {
    upload: Upload,
    /// What it may come to, bytes.
    most: usize,
    bytes: AtomicU64,
    spent: OnceLock<BudgetOf>,
    /// The length that it announced, bytes.
    announced: Option<u64>,
    /// Of what passed, once something did: most requests have no body.
    digest: Mutex<Option<Box<BodyDigest>>>,
    since: Mutex<Instant>,
    /// Told when nothing more of it will pass.
    over: Notify,
}

impl Tally {
    fn of(upload: Upload, most: usize) -> Self {
        let (announced, digest) = (upload.lock().announced(), Mutex::default());
        let (since, over) = (Mutex::new(Instant::now()), Notify::new());
        let (bytes, spent) = (AtomicU64::default(), OnceLock::new());
        Self { upload, most, announced, bytes, spent, digest, since, over }
    }

    fn passed(&self, data: &Bytes) {
        let mut digest = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        digest.get_or_insert_with(|| Box::new(BodyDigest::of(self.announced))).push(data);
        drop(digest);
        self.moves();
        self.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
    }

    /// Something passed, of it or of its answer.
    pub(crate) fn moves(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// When something passed last.
    pub(crate) fn moved(&self) -> Instant {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that passed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Why it ended before its end, if it did.
    pub(crate) fn why(&self) -> Option<UploadError> {
        self.upload.lock().why
    }

    /// Whether it came to its end.
    pub(crate) fn is_whole(&self) -> bool {
        self.upload.lock().is_at_its_end()
    }

    /// Whether nothing more of it will pass.
    pub(crate) fn is_over(&self) -> bool {
        self.upload.lock().is_over()
    }

    /// Ends when nothing more of it will pass. For one at a time.
    pub(crate) async fn over(&self) {
        while !self.is_over() {
            self.over.notified().await;
        }
    }

    /// Has nothing more of it pass, from now on.
    pub(crate) fn stop(&self, why: UploadError) {
        let sender = self.upload.lock().stop(why);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Reads past what still comes of it, for a while, so that its client has its answer and no reset.
    pub(crate) async fn read_past(&self) {
        let Some(left) = self.upload.left() else { return };
        let passed = usize::try_from(self.bytes()).unwrap_or(usize::MAX);
        let mut left = Limited::new(left, self.most.saturating_sub(passed));
        let all = async { while let Some(Ok(_)) = left.frame().await {} };
        // Whether it came to its end: there is no more to do.
        let _ended = timeout(LINGER, all).await;
    }

    /// Has nobody wait for what did not come of it.
    pub(crate) fn forget(&self) {
        drop(self.upload.left());
    }

    /// The budget that it was more than the rest of.
    pub(crate) fn spent(&self) -> Option<BudgetOf> {
        self.spent.get().copied()
    }

    /// The digest of what passed; none where nothing did.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.digest.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.so_far()
    }

    /// What of the body went, for the record of a request that has no answer.
    pub(crate) fn passed_on(&self) -> Box<ExchangeRecord> {
        let (sent, sent_digest) = (self.bytes(), self.digest());
        Box::new(ExchangeRecord { sent, sent_digest, ..ExchangeRecord::default() })
    }

    /// Ends when nothing passed for so long, or at this time if that comes first; whether it was silent.
    pub(crate) async fn silent(&self, time: Duration, until: Instant) -> bool {
        loop {
            sleep_until((self.moved() + time).min(until)).await;
            let now = Instant::now();
            let is_silent = self.moved() + time <= now;
            if is_silent || until <= now {
                return is_silent;
            }
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
    /// How fast it is looked at.
    pub(crate) pace: Pace,
}

/// A body on its way.
pub(crate) struct Uploaded {
    tally: Arc<Tally>,
    spending: Option<Spending>,
    sent: SentText,
    pace: Pace,
}

/// Why a body ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("the body is over its limit")]
    Over,
    #[error("the body is more than is left of a budget")]
    Spent,
    #[error("the body broke off")]
    Cut,
    #[error("the service took no more of it")]
    NotTaken,
    #[error("nothing passed for too long")]
    Silence,
    #[error("the request took too long")]
    TooLong,
    #[error("its session, or the harness, ended")]
    Ended,
    #[error("nobody waits for its answer")]
    Unanswered,
}

/// Looks whether some of a body may pass, and counts it if it does.
fn passes(
    data: Bytes,
    tally: &Tally,
    spending: Option<&Spending>,
    sent: &mut SentText,
) -> Result<Frame<Bytes>, UploadError> {
    if tally.bytes() + data.len() as u64 > tally.most as u64 {
        return Err(UploadError::Over);
    }
    if let Some(Err(of)) = spending.map(|spending| spending.bytes(data.len())) {
        let _first = tally.spent.set(of);
        return Err(UploadError::Spent);
    }
    tally.passed(&data);
    sent.pass(&data);
    Ok(Frame::data(data))
}

impl Body for Uploaded {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        // Counted before anybody can stop it: what is recorded then is all that passed.
        let Self { tally, spending, sent, pace } = self.get_mut();
        let mut passage = tally.upload.lock();
        let frame = match ready!(passage.poll_rest(cx)) {
            None => None,
            Some(Err(why)) => Some(Err(why)),
            Some(Ok(())) => {
                let LookPiece { length, cost } = sent.next_piece(&passage.rest, PIECE);
                let _turn = ready!(pace.poll(cost, cx));
                // What was held for it is free once it is sent.
                let piece = passage.rest.split_to(length);
                Some(passes(piece, tally, spending.as_ref(), sent))
            }
        };
        if let Some(Err(why)) = &frame {
            passage.stop(*why);
        }
        if passage.is_over() {
            tally.over.notify_one();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.tally.upload.lock().is_at_its_end()
    }

    fn size_hint(&self) -> SizeHint {
        let passage = self.tally.upload.lock();
        let mut left = match &passage.source {
            Source::Comes(body) => body.size_hint(),
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Over => SizeHint::with_exact(0),
            Source::Stopped(_) => return SizeHint::default(),
        };
        let rest = passage.rest.len() as u64;
        if let Some(most) = left.upper() {
            left.set_upper(most.saturating_add(rest));
        }
        left.set_lower(left.lower().saturating_add(rest));
        left
    }
}

impl Drop for Uploaded {
    fn drop(&mut self) {
        // Nobody sends more of it.
        let _sender = self.tally.upload.lock().stop(UploadError::NotTaken);
        self.tally.over.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use footbridge_core::{budget::Budget, redact::Redactor, secret::Secret};
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn what_was_read_whole_counts_until_the_last_of_it_is_gone() {
        let budget = Budget::new(256 * 1024);
        let share = budget.share();
        let bytes = collect(&mut Full::from(vec![b'x'; 100 * 1024]), &share, 1 << 20).await.unwrap();
        let queued = bytes.slice(1..2);
        drop(bytes);
        assert!(budget.take(200 * 1024).is_err(), "an origin has not taken it yet");
        drop(queued);
        assert!(budget.take(200 * 1024).is_ok());
    }

    #[tokio::test]
    async fn what_was_sent_counts_no_more_while_its_answer_goes_on() {
        let budget = Budget::new(256 * 1024);
        let bytes = collect(&mut Full::from(vec![b'%'; 100 * 1024]), &budget.share(), 1 << 20).await.unwrap();
        let (source, rest) = (Source::Whole(bytes), Bytes::new());
        let upload = Upload(Arc::new(Mutex::new(Passage { source, rest, is_begun: false, sender: None, why: None })));
        let sent = Redactor::new(&[Secret::new("s3cret-value")]).sparing([]).sent();
        let pace = Pace::new(Arc::new(tokio::sync::Semaphore::new(1)));
        let bounds = UploadBounds { bytes: 1 << 20, spending: None, sent, pace };
        let (mut body, tally) = upload.into_body(bounds).unwrap();
        let mut sizes = Vec::new();
        while let Some(frame) = body.frame().await {
            sizes.push(frame.unwrap().into_data().unwrap().len());
        }
        assert_eq!((sizes.iter().sum::<usize>(), sizes.iter().max()), (100 * 1024, Some(&PIECE)));
        assert!(tally.is_whole() && tally.bytes() == 100 * 1024);
        assert!(budget.take(200 * 1024).is_ok(), "it is kept for the tally");
    }
}
