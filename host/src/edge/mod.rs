//! The edge: from a connection to requests, and from answers back to it. HTTP/1.1 by hyper, every limit by us.
//!
//! A connection never owns a call. The call runs in a tracked task of its own, and the handler only holds a guard
//! whose drop cancels it: hyper drops the handler when the client leaves.
//!
//! Failure paths: a refused head drains what the client still sends, within limits, and answers; a broken connection
//! ends alone; out of descriptors, accepting pauses and goes on.

mod body;
mod handler;
mod head;
mod listings;
mod rpc;
mod stream;

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::Semaphore,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::Peer,
    call::Stages,
    limits::{CallLimits, EdgeLimits},
    listener::{AcceptError, Listener},
    session::Session,
};
use handler::Handler;

/// How long accepting pauses when the system has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Large bodies that are read at a time.
const LARGE_BODIES: usize = 2;

/// What a client over its session's connections gets, and then the end.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 32\r\nConnection: close\r\n\r\n{\"error\":\"Too many connections\"}";

/// Serves sessions on listeners. Clones share their limits and tasks.
#[derive(Clone)]
pub struct Edge {
    stages: Stages,
    limits: EdgeLimits,
    calls: CallLimits,
    answer_after: Duration,
    allowed_hosts: Arc<[String]>,
    wrong_tokens: Arc<AtomicU64>,
    large_bodies: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Edge {
    /// An edge in front of these stages. `allowed_hosts` are names besides loopback that a `Host` header may give.
    #[must_use]
    pub fn new(stages: Stages, limits: &crate::limits::Limits, allowed_hosts: Vec<String>) -> Self {
        Self {
            stages,
            limits: limits.edge.clone(),
            calls: limits.calls.clone(),
            answer_after: limits.approval.answer_after,
            allowed_hosts: allowed_hosts.into(),
            wrong_tokens: Arc::default(),
            large_bodies: Arc::new(Semaphore::new(LARGE_BODIES)),
            tasks: TaskTracker::new(),
        }
    }

    /// Serves a session on a listener until it ends, or `shutdown`.
    pub async fn run(&self, listener: Listener, session: Arc<Session>, shutdown: CancellationToken) {
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => return,
                () = session.over().cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, &session, &shutdown),
                Err(AcceptError::Passing(_)) => {}
                Err(AcceptError::Exhausted(error)) => {
                    tracing::warn!(%error, "no new connection can be accepted for a moment");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits until every connection and call has ended. Shut the runs down first.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn admit<S>(&self, stream: S, peer: Peer, session: &Arc<Session>, shutdown: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match session.shares().connections.enter() {
            Some(place) => {
                let handler = Handler { edge: self.clone(), session: Arc::clone(session), peer };
                self.tasks.spawn(handler.serve(stream, place, shutdown.clone()));
            }
            None => {
                self.tasks.spawn(refuse_connection(stream));
            }
        }
    }
}

async fn refuse_connection(mut stream: impl AsyncWrite + Unpin) {
    // The client may be gone already; there is nothing more to tell it.
    let told = async {
        stream.write_all(TOO_MANY).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), told).await;
}
