//! Whether a server over HTTP still knows its session, after one request failed in a way that may mean that it does
//! not, or that nobody is there any more.
//!
//! One guest's arguments can provoke such an answer, and one connection may fail for want of a descriptor. So that
//! request fails alone, and a `ping` on the same session decides: the connection is given up when the ping is refused
//! as well, or when nobody can be reached time and again and no call is in flight, which a server that drains its
//! calls may still answer. At most one such check runs at a time; nothing but pings is sent.

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use footbridge_outbound::web::{SendError, Web, piece};
use footbridge_proto::rpc::{ErrorCode, IncomingError, IncomingMessage, Request};
use http::StatusCode;
use hyper::body::Incoming;
use nix::errno::Errno;
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{interceptor::Interceptor, own_thread::OwnThread};
use footbridge_core::limits::ServerLimits;

/// Pings in a row that reach nobody, before a server counts as gone.
const FAILURES: u32 = 3;
/// Pings whose connections end without an answer, before that counts as the server's way with pings. A connection that
/// was kept ends so when the server has left; the next one is new.
const CUT_SHORT: u32 = 6;
/// Longest pause between two of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long an answer may take beyond the time to connect. Silence proves nothing.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Longest answer that is looked at.
const MAX_ANSWER: usize = 64 * 1024;
/// The code of an unknown method: whoever says so knows the session.
const METHOD_NOT_FOUND: i64 = ErrorCode::MethodNotFound.number();

/// Ids of pings: none may come twice in a session.
static PINGS: AtomicU64 = AtomicU64::new(0);

/// The checks of one connection. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct SessionChecks {
    broken: CancellationToken,
    tracker: TaskTracker,
    first_pause: Duration,
    ping_time: Duration,
    checking: Arc<AtomicBool>,
    /// Tells a check that pauses of another reason for one: the server may be back, without the session.
    again: Arc<Notify>,
}

/// Where pings go.
pub(super) struct Pinged {
    /// The client.
    pub(super) web: Web,
    /// All but the body.
    pub(super) request: http::Request<()>,
    /// Whether it names a session.
    pub(super) in_session: bool,
    /// Who knows what is in flight.
    pub(super) interceptor: Arc<Interceptor>,
    /// Where they are sent from.
    pub(super) thread: OwnThread,
}

/// What a ping says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PingOutcome {
    /// Nothing that would be a reason to give the connection up.
    Fine,
    Lost,
    Unreachable,
    /// The connection ended.
    CutShort,
}

impl SessionChecks {
    /// No checks yet. `broken` is cancelled once one of them finds the session lost, and ends a check when it is
    /// cancelled; checks belong to `tracker`.
    pub(super) fn new(broken: CancellationToken, tracker: TaskTracker, limits: &ServerLimits) -> Self {
        let (first_pause, ping_time) = (limits.first_pause, limits.connect_time + ANSWER_TIME);
        Self { broken, tracker, first_pause, ping_time, checking: Arc::default(), again: Arc::default() }
    }

    /// Whether the connection is given up.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_cancelled()
    }

    /// Looks whether the server is there and knows the session, in the background, unless that is being done.
    /// `is_answer`: the server was reached.
    pub(super) fn start(&self, pinged: Pinged, is_answer: bool) {
        if self.is_broken() {
            return;
        }
        if self.checking.swap(true, Ordering::AcqRel) {
            // One that did not reach it says nothing new.
            if is_answer {
                self.again.notify_waiters();
            }
            return;
        }
        let checks = self.clone();
        self.tracker.spawn(async move {
            let is_gone = checks.broken.run_until_cancelled(checks.is_gone(&pinged)).await;
            checks.checking.store(false, Ordering::Release);
            if is_gone == Some(true) {
                checks.broken.cancel();
            }
        });
    }

    async fn is_gone(&self, pinged: &Pinged) -> bool {
        let (mut failures, mut cut_short) = (0, 0);
        loop {
            match tokio::time::timeout(self.ping_time, ping(pinged)).await.unwrap_or(PingOutcome::Fine) {
                PingOutcome::Fine => return false,
                PingOutcome::Lost => return true,
                PingOutcome::Unreachable => failures += 1,
                PingOutcome::CutShort => cut_short += 1,
            }
            if cut_short >= CUT_SHORT {
                return false;
            }
            if failures >= FAILURES && !pinged.interceptor.has_calls() {
                return true;
            }
            let pause = self.first_pause.saturating_mul(1 << (failures + cut_short).min(16));
            let _sooner = tokio::time::timeout(pause.min(LONGEST_PAUSE), self.again.notified()).await;
        }
    }
}

async fn ping(pinged: &Pinged) -> PingOutcome {
    let id = format!("footbridge-ping-{}", PINGS.fetch_add(1, Ordering::Relaxed));
    let Ok(body) = serde_json::to_vec(&Request::without_params(id, "ping")) else { return PingOutcome::Fine };
    let request = pinged.request.clone().map(|()| body.into());
    let response = match pinged.thread.run(pinged.web.send(request)).await {
        Some(Ok(response)) => response,
        Some(Err(error @ SendError::Connect(_))) if !is_shortage(&error) => return PingOutcome::Unreachable,
        Some(Err(SendError::Lost(_))) => return PingOutcome::CutShort,
        _ => return PingOutcome::Fine,
    };
    let is_refused = matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST);
    let is_lost = pinged.in_session && is_refused && !knows_no_ping(response.into_body()).await;
    if is_lost { PingOutcome::Lost } else { PingOutcome::Fine }
}

/// Whether the answer says no more than that there is no such method.
async fn knows_no_ping(mut body: Incoming) -> bool {
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = piece(&mut body).await {
        text.extend_from_slice(&chunk);
        if text.len() > MAX_ANSWER {
            return false;
        }
    }
    let refusal = serde_json::from_slice::<IncomingMessage<'_>>(&text).ok();
    let error = refusal.and_then(|refusal| serde_json::from_str::<IncomingError>(refusal.error?.get()).ok());
    error.is_some_and(|error| error.code == METHOD_NOT_FOUND)
}

/// Whether a connection failed for want of something on this machine, which says nothing of the server.
pub(super) fn is_shortage(error: &(dyn Error + 'static)) -> bool {
    const SHORT: [Errno; 5] = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM, Errno::EADDRNOTAVAIL];
    let mut cause = Some(error);
    while let Some(error) = cause {
        let code = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if code.is_some_and(|code| SHORT.contains(&Errno::from_raw(code))) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_descriptors_says_nothing_of_the_server() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot connect")]
        struct Outer(#[source] io::Error);
        let of = |errno: Errno| Outer(io::Error::from_raw_os_error(errno as i32));
        assert!(is_shortage(&of(Errno::EMFILE)) && is_shortage(&of(Errno::ENFILE)));
        assert!(!is_shortage(&of(Errno::ECONNREFUSED)));
    }
}
