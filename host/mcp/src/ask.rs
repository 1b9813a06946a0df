//! One request of ours: sent once, watched until there is an answer or a reason why there is none.
//!
//! Ends: an answer; the idle time without a sign of life; the total time; cancelled by the caller; the server gone. In
//! all but the first the request is withdrawn if it has not left, which is certain, and otherwise the server is told
//! with `notifications/cancelled` and the outcome is unknown. Nothing is ever sent again.

use std::{sync::OnceLock, time::Duration};

use rmcp::{
    RoleClient,
    model::{CancelledNotification, CancelledNotificationParam, ClientRequest, GetExtensions, RequestId},
    service::{Peer, PeerRequestOptions},
};
use tokio_util::sync::CancellationToken;

use super::{
    NoAnswer,
    live::Live,
    pending_request::{Answer, PendingRequest},
};

/// How long a caller waits until the server was told that its request is cancelled; the telling goes on without it.
pub(super) const TELLING: Duration = Duration::from_millis(200);

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Without a sign of life.
    pub(super) idle: Duration,
    /// In all.
    pub(super) total: Duration,
}

/// How a request ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// With something from the server or its connection.
    Answered(Answer),
    /// Without; whether it had left.
    Unanswered { left: bool, why: NoAnswer },
}

/// Sends one request and waits for its end.
pub(super) async fn ask(
    live: &Live,
    request: ClientRequest,
    pending: PendingRequest,
    times: Times,
    cancel: &CancellationToken,
) -> Ended {
    let _forgotten = Forgotten { live, pending: &pending };
    sent(live, request, &pending, times, cancel).await
}

/// The same of a request that goes on behind its answer: it is forgotten by whoever holds a [`Forgotten`].
pub(super) async fn sent(
    live: &Live,
    mut request: ClientRequest,
    pending: &PendingRequest,
    times: Times,
    cancel: &CancellationToken,
) -> Ended {
    // What is known now, before anything leaves.
    for (ended, why) in [(cancel, NoAnswer::Cancelled), (&live.gone, NoAnswer::ServerGone)] {
        if ended.is_cancelled() {
            return unanswered(pending, why);
        }
    }
    request.extensions_mut().insert(pending.clone());
    let (pause, id) = (pending.pause(), OnceLock::new());
    let answered = async {
        let Some(lines) = &live.lines else { return Box::pin(by_library(&live.peer, request, &id)).await };
        let (own, message) = lines.request(request, live.us());
        id.get_or_init(|| own);
        let written = lines.clone().write(message);
        tokio::select! {
            biased;
            () = pending.answered() => {}
            // It may be answered while it is written.
            Err(_) = written => {}
            () = lines.broken().cancelled() => {}
        }
    };
    let why = tokio::select! {
        biased;
        why = watch(live, answered, pending, times.idle, cancel) => why,
        () = pause.pass(times.total) => NoAnswer::Timeout,
    };
    if let Some(answer) = pending.take() {
        return Ended::Answered(answer);
    }
    let ended = unanswered(pending, why);
    if let Ended::Unanswered { left: true, why: NoAnswer::Timeout | NoAnswer::Silent | NoAnswer::Cancelled } = ended
        && let Some(id) = id.into_inner()
    {
        Box::pin(tell(&live.peer, id, why)).await;
    }
    ended
}

/// Has the library send it and wait until there is an answer, or can be none. Its `id` is known once it has one.
async fn by_library(peer: &Peer<RoleClient>, request: ClientRequest, id: &OnceLock<RequestId>) {
    if let Ok(handle) = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await {
        id.get_or_init(|| handle.id);
        _ = handle.rx.await;
    }
}

/// Has the connection forget a request, however the wait for it ends: nothing of it is kept for an answer that may never
/// come. A question of its server to a person ends with it.
pub(super) struct Forgotten<'a> {
    pub(super) live: &'a Live,
    pub(super) pending: &'a PendingRequest,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.pending.over().cancel();
        // One that has not left will not, so that it cannot be noted after this.
        self.pending.withdraw();
        self.live.interceptor.forget_pending(self.pending);
    }
}

/// Waits until it is answered, or can be no more, or something ends the waiting.
async fn watch(
    live: &Live,
    answered: impl Future<Output = ()>,
    pending: &PendingRequest,
    idle_time: Duration,
    cancel: &CancellationToken,
) -> NoAnswer {
    let pause = pending.pause();
    let idle = pause.pass(idle_time);
    tokio::pin!(idle, answered);
    loop {
        tokio::select! {
            biased;
            () = &mut answered => return NoAnswer::ServerGone,
            () = cancel.cancelled() => return NoAnswer::Cancelled,
            () = live.gone.cancelled() => return NoAnswer::ServerGone,
            () = pending.sign_of_life() => idle.set(pause.pass(idle_time)),
            () = &mut idle => return NoAnswer::Silent,
        }
    }
}

fn unanswered(pending: &PendingRequest, why: NoAnswer) -> Ended {
    Ended::Unanswered { left: !pending.withdraw(), why }
}

async fn tell(peer: &Peer<RoleClient>, id: RequestId, why: NoAnswer) {
    let reason = if why == NoAnswer::Cancelled { "the caller left" } else { "it took too long" };
    let param = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
    let notification = CancelledNotification::new(param);
    let _told = tokio::time::timeout(TELLING, peer.send_notification(notification.into())).await;
}
