//! Bytes that pass both ways until both sides are done: those of a tunnel, and of a request that became a WebSocket.
//!
//! States: begun; where a greeting has to come first, greeted; passing, where either side may end its own half first; over.
//! Each end is an outcome: both sides ended (`ok`), the greeting was another (`refused`), a budget (`budget_spent`), silence,
//! the end of its time, a broken connection, or the session's end (`unknown`).

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use footbridge_audit::{ExchangeRecord, RecordedOutcome};
use footbridge_calls::{
    service::OpenExchange,
    session::{BudgetOf, Spending},
};
use footbridge_core::{limits::ServiceLimits, redact::Redactor};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, copy_bidirectional},
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::greeting::{NotGreeted, greeting};

/// Parts of the time of silence in which it is looked whether anything moved.
const LOOKS: u32 = 4;

/// The other side of what passes, and what is known of it.
#[derive(Debug)]
pub(crate) struct Carried<S> {
    pub(crate) stream: S,
    /// The host that a greeting has to name, where one has to come first.
    pub(crate) greets: Option<String>,
    /// What the client was answered.
    pub(crate) status: u16,
    pub(crate) first_byte_ms: u64,
    pub(crate) limits: ServiceLimits,
    /// When it ends whatever passes.
    pub(crate) until: Option<Instant>,
    pub(crate) spending: Option<Spending>,
    /// Whether it talks to a model, whose tokens nobody reads there: it ends where its session gets a budget of them.
    pub(crate) is_of_model: bool,
    /// What counts the values that were taken out.
    pub(crate) redactor: Redactor,
}

/// Why it ended before both sides were done.
#[derive(Debug, thiserror::Error)]
enum CarryEnd {
    #[error(transparent)]
    NotGreeted(NotGreeted),
    #[error("nothing passed for {0:?}")]
    Silent(Duration),
    #[error("over the session's budget ({0})")]
    Spent(&'static str),
    #[error("it took longer than services.total_time")]
    TooLong,
    #[error("a connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("its session, or the harness, ended")]
    Ended,
    #[error("the policy of its session, or the configuration, does not let it pass any more")]
    NotAllowed,
}

/// Why nothing more is carried, from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarryOver {
    /// The session is over, or the harness.
    Ended,
    /// Rules and services are others, and do not let it pass.
    NotAllowed,
}

impl CarryEnd {
    fn outcome(&self) -> RecordedOutcome {
        match self {
            Self::Spent(_) => RecordedOutcome::BudgetSpent,
            Self::NotGreeted(_) => RecordedOutcome::Refused,
            Self::Silent(_) | Self::TooLong | Self::Broken(_) | Self::Ended | Self::NotAllowed => {
                RecordedOutcome::Unknown
            }
        }
    }
}

impl From<NotGreeted> for CarryEnd {
    fn from(why: NotGreeted) -> Self {
        match why {
            NotGreeted::Broken(error) => Self::Broken(error),
            other => Self::NotGreeted(other),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Carried<S> {
    /// Carries what comes and goes until both sides are done, or `over` is, and records what became of it.
    pub(crate) async fn carry<C>(self, client: C, exchange: OpenExchange, over: impl Future<Output = CarryOver>)
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let Self { stream, greets, status, first_byte_ms, limits, until, spending, is_of_model, redactor } = self;
        let (sent, received) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut client =
            Counted { inner: client, written: Arc::clone(&received), spending, is_of_model, is_spent: None };
        // What was read and is not written, as it was refused or is over a budget, was not sent.
        let mut origin =
            Counted { inner: stream, written: Arc::clone(&sent), spending: None, is_of_model: false, is_spent: None };
        let ended = tokio::select! {
            ended = pass(&mut client, &mut origin, greets.as_deref(), limits.connect_time) => ended,
            why = silent(&sent, &received, limits.silence_time) => Err(why),
            () = at(until) => Err(CarryEnd::TooLong),
            over = over => Err(match over {
                CarryOver::Ended => CarryEnd::Ended,
                CarryOver::NotAllowed => CarryEnd::NotAllowed,
            }),
        };
        let ended = client.is_spent.map_or(ended, |budget| Err(CarryEnd::Spent(budget.word())));
        let outcome = ended.as_ref().err().map_or(RecordedOutcome::Ok, CarryEnd::outcome);
        let detail = ended.err().map(|why| why.to_string());
        let passed = ExchangeRecord {
            status: Some(status),
            sent: sent.load(Ordering::Relaxed),
            received: received.load(Ordering::Relaxed),
            first_byte_ms: Some(first_byte_ms),
            redacted: redactor.replaced(),
            ..ExchangeRecord::default()
        };
        exchange.close(outcome, detail, passed);
    }
}

/// Passes bytes both ways until both sides are done, once the client has greeted the host that it has to, within this time.
async fn pass<C, O>(client: &mut C, origin: &mut O, greets: Option<&str>, time: Duration) -> Result<(), CarryEnd>
where
    C: AsyncRead + AsyncWrite + Unpin,
    O: AsyncRead + AsyncWrite + Unpin,
{
    if let Some(host) = greets {
        let greeting = timeout(time, Box::pin(greeting(client, host))).await.map_err(|_| CarryEnd::Silent(time))??;
        origin.write_all(&greeting).await?;
    }
    copy_bidirectional(client, origin).await?;
    Ok(())
}

async fn at(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Ends once nothing has moved for so long.
async fn silent(sent: &AtomicU64, received: &AtomicU64, silence: Duration) -> CarryEnd {
    let moved = || (sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
    let (mut before, mut quiet) = (moved(), 0);
    while quiet < LOOKS {
        sleep(silence / LOOKS).await;
        let now = moved();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
    CarryEnd::Silent(silence)
}

/// A connection, and what was written to it.
struct Counted<C> {
    inner: C,
    written: Arc<AtomicU64>,
    /// Of the client's alone: each byte that passes counts once.
    spending: Option<Spending>,
    is_of_model: bool,
    /// The budget that has less than what passed.
    is_spent: Option<BudgetOf>,
}

impl<C> Counted<C> {
    fn spend(&mut self, bytes: usize) -> io::Result<()> {
        let Some(spending) = &self.spending else { return Ok(()) };
        let is_uncounted = self.is_of_model && spending.limits_tokens();
        let counted = if is_uncounted { Err(BudgetOf::Tokens) } else { spending.bytes(bytes) };
        self.is_spent = self.is_spent.or(counted.err());
        counted.map_err(|_| io::Error::other("over the session's budget"))
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Counted<C> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let done = ready!(Pin::new(&mut this.inner).poll_read(cx, buffer));
        let count = buffer.filled().len() - before;
        Poll::Ready(done.and_then(|()| this.spend(count)))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Counted<C> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.inner).poll_write(cx, bytes))?;
        this.written.fetch_add(count as u64, Ordering::Relaxed);
        this.spend(count)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_the_last_byte() {
        let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
        let (start, silence) = (Instant::now(), Duration::from_secs(40));
        let talks = async {
            for _ in 0..10 {
                sleep(Duration::from_secs(15)).await;
                received.fetch_add(1, Ordering::Relaxed);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = silent(&sent, &received, silence) => {}
            () = talks => {}
        }
        assert!((190..=210).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    }
}
