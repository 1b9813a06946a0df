//! The edge: from a connection to calls, and from answers back to it.
//!
//! A connection comes from a [`listener`]; `http` serves it, with every limit by us; `requests` takes each request from
//! its head to its answer, for the session of its listener; `dialect` says what is different from one way of asking to
//! another: `bridge` is the protocol of `tool-cli`, and `mcp` is MCP over HTTP; `calls` runs a call to its end,
//! and `live` answers it, with events where its client takes them; `kept_calls` keeps one whose client asks for it later,
//! and `attending` hears of it meanwhile. Each uses only what comes before it in this order:
//! `http`, `dialect`, `calls`, `live`, `requests`; a dialect uses the first two, and what dialects share: `json_rpc`,
//! `lookups`, `search` and `wording`.
//!
//! Another dialect is one more module like these, and a line in [`Edge::new`]. `services` is none: what it carries is
//! no message with an answer but a request whose body and answer pass as they come.
//!
//! It refuses to know what a call goes through, who is asked about it and what carries it out: that is in
//! `footbridge_calls`. It knows no file but a socket's, and makes no session.
//!
//! Failure paths: a refused head drains what the client still sends, within limits, and answers; a broken connection
//! ends alone; where accepting fails, it pauses and goes on.

mod attending;
mod bridge;
mod calls;
mod detach_on_drop;
mod dialect;
mod http;
mod json_rpc;
mod kept_calls;
pub mod listener;
mod live;
mod lookups;
mod mcp;
mod requests;
mod search;
mod services;

#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;
#[cfg(test)]
mod tests;
mod wording;

use std::sync::{Arc, atomic::AtomicU64};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use crate::http::connections::{ConnectionShare, Connections, NoDescriptors};
pub use crate::search::entries;
pub use crate::wording::{error_of, error_of_own_call};
use crate::{
    bridge::Bridge,
    calls::RunningCalls,
    dialect::Dialect,
    http::notices::{self, ClosingNotices},
    listener::{Abort, AcceptPause, Listener},
    mcp::Mcp,
    requests::{LARGE_BODIES, Requests, Shared},
};
use footbridge_calls::{auth::Peer, call::Stages, session::Session};
use footbridge_core::limits::Limits;
use footbridge_services::Services;

/// Serves sessions on listeners. Clones share their limits and tasks.
#[derive(Clone)]
pub struct Edge {
    shared: Arc<Shared>,
    no_place: ClosingNotices,
    not_allowed: ClosingNotices,
    accept_pause: Arc<AcceptPause>,
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
    /// An edge in front of these stages and services. `allowed_hosts` are names besides loopback that a `Host` header may give.
    #[must_use]
    pub fn new(stages: Stages, limits: &Limits, allowed_hosts: Vec<String>, services: Services) -> Self {
        let bridge = Bridge { list_wait: limits.calls.list_wait };
        let mcp = Mcp::new(limits.calls.list_wait);
        Self::speaking(vec![Arc::new(bridge), Arc::new(mcp)], stages, limits, allowed_hosts, services)
    }

    fn speaking(
        dialects: Vec<Arc<dyn Dialect>>,
        stages: Stages,
        limits: &Limits,
        allowed_hosts: Vec<String>,
        services: Services,
    ) -> Self {
        let shared = Shared {
            stages: Arc::new(stages),
            services,
            dialects,
            limits: limits.edge.clone(),
            allowed_hosts,
            wrong_tokens: AtomicU64::default(),
            large_bodies: Arc::new(Semaphore::new(LARGE_BODIES)),
            running: RunningCalls::default(),
            tasks: TaskTracker::new(),
        };
        Self {
            shared: Arc::new(shared),
            no_place: ClosingNotices::new(notices::NO_PLACE_AT_ONCE),
            not_allowed: ClosingNotices::new(notices::NOT_ALLOWED_AT_ONCE),
            accept_pause: Arc::new(AcceptPause::new("guests")),
        }
    }

    /// Serves a session on a listener until it ends, or `shutdown`.
    pub async fn run(&self, listener: Listener, served: ServedSession, shutdown: CancellationToken) {
        let refuse = |stream, uid| {
            self.not_allowed.send(stream, || notices::not_allowed(uid), &self.shared.tasks);
        };
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => return,
                () = served.session.over().cancelled() => return,
                accepted = listener.accept(refuse) => accepted,
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
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    fn admit<S>(&self, stream: S, peer: Peer, served: &ServedSession, shutdown: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Abort + Unpin + Send + 'static,
    {
        let tasks = &self.shared.tasks;
        match served.connections.enter() {
            Some(place) => {
                let (shared, session) = (Arc::clone(&self.shared), Arc::clone(&served.session));
                let peer = peer.to_string().into();
                let (shutdown, place, can_abort) = (shutdown.clone(), Arc::new(place), stream.can_abort());
                let requests = Requests { shared, session, peer, can_abort, shutdown, place };
                tasks.spawn(requests.serve(stream));
            }
            None => self.no_place.send(stream, notices::too_many, tasks),
        }
    }
}
