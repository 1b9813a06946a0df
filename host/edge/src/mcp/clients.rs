//! Clients that have initialized: by an id that they show with each request. So many are kept of a session; the one that
//! was used longest ago makes room, and has to initialize again.
//!
//! A client is nothing but the revision and the level of logging that it chose, and one stream of changes. What it may do is
//! its session's matter.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use footbridge_core::random::random_text;
use footbridge_proto::rpc::{ErrorCode, ErrorObject};
use http::StatusCode;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{request::Params, revision::Revision};
use crate::json_rpc::envelope_error;
use footbridge_calls::{events::LogLevel, session::Session};

/// Most clients of one session that are known at a time.
const KEPT: usize = 64;

/// Who a request is of.
#[derive(Debug, Clone)]
pub(super) struct McpClient {
    /// What it shows; empty for one that has no handshake.
    pub(super) id: Arc<str>,
    pub(super) revision: Revision,
    /// The least that it wants to hear of logs; none where it wants none.
    pub(super) level: Option<LogLevel>,
}

impl McpClient {
    /// One that is to be known by a new id; none where the system has no random bytes.
    pub(super) fn to_be_known(revision: Revision) -> Option<Self> {
        Some(Self { id: random_text::<16>().ok()?.into(), revision, level: Some(LogLevel::Info) })
    }

    /// One that says all of it with its request.
    pub(super) fn stateless(revision: Revision, params: &Params<'_>) -> Self {
        Self { id: Arc::default(), revision, level: params.log_level() }
    }
}

/// The clients of all sessions.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// By the number of their session.
    sessions: Mutex<HashMap<u64, ClientsOfSession>>,
}

#[derive(Debug)]
struct ClientsOfSession {
    session: Weak<Session>,
    clients: HashMap<Arc<str>, KnownClient>,
    uses: u64,
}

#[derive(Debug)]
struct KnownClient {
    client: McpClient,
    /// When it was used last, by a count of uses.
    used: u64,
    /// Ends the stream of changes that it reads, with the client.
    stream: Option<DropGuard>,
}

impl Clients {
    /// Adds one.
    pub(super) fn add(&self, session: &Arc<Session>, client: McpClient) {
        let mut sessions = self.sessions();
        // Of sessions that ended nothing is kept.
        sessions.retain(|_, of| of.session.upgrade().is_some_and(|session| session.over().is_going_on()));
        let of = sessions.entry(session.serial()).or_insert_with(|| ClientsOfSession {
            session: Arc::downgrade(session),
            clients: HashMap::new(),
            uses: 0,
        });
        if of.clients.len() >= KEPT {
            let oldest = of.clients.iter().min_by_key(|(_, known)| known.used).map(|(id, _)| Arc::clone(id));
            oldest.and_then(|id| of.clients.remove(&id));
        }
        of.uses += 1;
        of.clients.insert(Arc::clone(&client.id), KnownClient { client, used: of.uses, stream: None });
    }

    /// The one of this session that shows this.
    pub(super) fn find(&self, session: &Session, id: &str) -> Option<McpClient> {
        let mut sessions = self.sessions();
        let of = sessions.get_mut(&session.serial())?;
        of.uses += 1;
        let known = of.clients.get_mut(id)?;
        known.used = of.uses;
        Some(known.client.clone())
    }

    /// Until when a client reads the stream of changes that begins now: until it is gone, which it may be already, or has
    /// another.
    pub(super) fn streams(&self, session: &Session, id: &str) -> CancellationToken {
        let until = CancellationToken::new();
        let reads = until.clone().drop_guard();
        if let Some(known) = self.sessions().get_mut(&session.serial()).and_then(|of| of.clients.get_mut(id)) {
            known.stream = Some(reads);
        }
        until
    }

    /// What a client wants to hear of logs from now on.
    pub(super) fn set_level(&self, session: &Session, id: &str, level: LogLevel) {
        if let Some(known) = self.sessions().get_mut(&session.serial()).and_then(|of| of.clients.get_mut(id)) {
            known.client.level = Some(level);
        }
    }

    /// Forgets one.
    pub(super) fn remove(&self, session: &Session, id: &str) {
        if let Some(of) = self.sessions().get_mut(&session.serial()) {
            of.clients.remove(id);
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<u64, ClientsOfSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client is told that is not known here, or shows nothing.
pub(super) fn unknown(status: StatusCode) -> ErrorObject {
    let message = if status == StatusCode::NOT_FOUND {
        "This Mcp-Session-Id is not known here (any more): send initialize again"
    } else {
        "Mcp-Session-Id is missing: send initialize first, or MCP-Protocol-Version 2026-07-28"
    };
    envelope_error(ErrorCode::InvalidRequest, message)
}
