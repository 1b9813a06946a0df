//! The edge: from a connection to requests, and from answers back to it. HTTP/1.1 by hyper, every limit by us.
//!
//! A connection never owns a call. The call runs in a tracked task of its own, and the handler only holds a guard
//! whose drop cancels it: hyper drops the handler when the client leaves. Once a stream of events has begun, the guard
//! is in its body, which hyper drops then.
//!
//! Failure paths: a refused head drains what the client still sends, within limits, and answers; a broken connection
//! ends alone; where accepting fails, it pauses and goes on.

mod bridge;
mod calls;
mod http;
pub mod listener;
mod live;
mod requests;

#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::sync::{Arc, atomic::AtomicU64};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use crate::bridge::wording::error_of;
pub use crate::http::connections::{ConnectionShare, Connections};
use crate::{
    http::overload::OverloadNotices,
    listener::{AcceptPause, Listener},
    requests::Handler,
};
use footbridge_calls::{auth::Peer, call::Stages, session::Session};
use footbridge_core::limits::{CallLimits, EdgeLimits};

/// Large bodies that are read at a time.
const LARGE_BODIES: usize = 2;

/// Serves sessions on listeners. Clones share their limits and tasks.
#[derive(Clone)]
pub struct Edge {
    stages: Stages,
    limits: EdgeLimits,
    calls: CallLimits,
    allowed_hosts: Arc<[String]>,
    wrong_tokens: Arc<AtomicU64>,
    large_bodies: Arc<Semaphore>,
    overload: OverloadNotices,
    accept_pause: Arc<AcceptPause>,
    tasks: TaskTracker,
}

/// A session, and the places that its connections have. Clones share both.
#[derive(Debug, Clone)]
pub struct ServedSession {
    /// The session.
    pub session: Arc<Session>,
    /// Its places.
    pub connections: Arc<ConnectionShare>,
}

impl Edge {
    /// An edge in front of these stages. `allowed_hosts` are names besides loopback that a `Host` header may give.
    #[must_use]
    pub fn new(stages: Stages, limits: &footbridge_core::limits::Limits, allowed_hosts: Vec<String>) -> Self {
        Self {
            stages,
            limits: limits.edge.clone(),
            calls: limits.calls.clone(),
            allowed_hosts: allowed_hosts.into(),
            wrong_tokens: Arc::default(),
            large_bodies: Arc::new(Semaphore::new(LARGE_BODIES)),
            overload: OverloadNotices::new(),
            accept_pause: Arc::new(AcceptPause::new("guests")),
            tasks: TaskTracker::new(),
        }
    }

    /// Serves a session on a listener until it ends, or `shutdown`.
    pub async fn run(&self, listener: Listener, served: ServedSession, shutdown: CancellationToken) {
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => return,
                () = served.session.over().cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    self.accept_pause.is_over();
                    self.admit(stream, peer, &served, &shutdown);
                }
                Err(error) => self.accept_pause.wait_after(error).await,
            }
        }
    }

    /// Waits until every connection and call has ended. Shut the runs down first.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn admit<S>(&self, stream: S, peer: Peer, served: &ServedSession, shutdown: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match served.connections.enter() {
            Some(place) => {
                let handler = Handler { edge: self.clone(), session: Arc::clone(&served.session), peer };
                self.tasks.spawn(handler.serve(stream, place, shutdown.clone()));
            }
            None => self.overload.send(stream, &self.tasks),
        }
    }
}
