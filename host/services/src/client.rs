//! Whose connections to a service are, how many are kept, what is spoken over them, and how it is noticed that the other end is
//! gone.
//!
//! Each session has its own: who leaves its answers unread holds a connection of HTTP/2, and takes the streams that an
//! origin gives it. Requests of one session share one, so one whose origin went away unheard would hold them all. It is
//! asked by pings whether somebody is there, and one that was silent for too long is given no other request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use footbridge_core::limits::ServiceLimits;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioTimer;
use tokio::time::Instant;

use crate::{
    connect::Connector,
    connection_task::ConnectionTasks,
    connections::{Connections, IDLE_TIME, Lease},
    upload::Uploaded,
    windows::{WINDOW, window},
};

/// Makes requests of one session to one service.
pub(crate) type ServiceClient = Connections<Connector, Box<Uploaded>>;

/// What an answer to one comes over.
pub(crate) type ServiceLease = Lease<Box<Uploaded>>;

/// The clients of one service, by the numbers of the sessions that they are of.
pub(crate) struct Clients {
    connector: Connector,
    /// Connections that are kept idle of one session.
    most_idle: usize,
    kept: Mutex<Kept>,
}

struct Kept {
    all: HashMap<u64, (Arc<ServiceClient>, Instant)>,
    looked_at: Instant,
}

impl Clients {
    pub(crate) fn new(connector: Connector, most_idle: usize) -> Self {
        let kept = Kept { all: HashMap::new(), looked_at: Instant::now() };
        Self { connector, most_idle, kept: Mutex::new(kept) }
    }

    /// The client of a session, within its limits. One that made no request for as long as idle
    /// connections are kept has none by now, and is forgotten; what it has under way goes on.
    pub(crate) fn of(&self, session: u64, limits: &ServiceLimits) -> Arc<ServiceClient> {
        let (mut kept, now) = (self.kept.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if now.duration_since(kept.looked_at) > IDLE_TIME {
            kept.all.retain(|_, (_, used)| now.duration_since(*used) <= IDLE_TIME);
            kept.looked_at = now;
        }
        let new = || {
            // As many as it can use at once, so that its next requests find them.
            let (connector, most) = (self.connector.of(session, limits), limits.in_flight.min(self.most_idle));
            let tasks = ConnectionTasks::default();
            (Arc::new(Connections::new(connector, http1(limits), http2(limits, &tasks), tasks, most)), now)
        };
        let (client, used) = kept.all.entry(session).or_insert_with(new);
        *used = now;
        Arc::clone(client)
    }
}

/// How many idle connections of one session to one service are kept at most, where there are so many for all.
pub(crate) fn most_idle(connections: usize) -> usize {
    (connections / PART_KEPT).max(FEW)
}

/// One of so many connections may be kept idle for one session and service, or these few.
const PART_KEPT: usize = 32;
const FEW: usize = 8;

/// After so long without a frame a connection of HTTP/2 is asked whether it is there, and has so long to say so: behind a
/// large body on a slow line the question waits for its turn.
const PING: Duration = Duration::from_secs(10);
const PONG: Duration = Duration::from_secs(20);

/// How HTTP/1.1 is spoken. An answer has 100 headers at most, for which hyper has room already.
fn http1(limits: &ServiceLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.max_buf_size(limits.answer_head_bytes.max(16 * 1024));
    http
}

/// How HTTP/2 is spoken.
fn http2(limits: &ServiceLimits, tasks: &ConnectionTasks) -> http2::Builder<ConnectionTasks> {
    let mut http = http2::Builder::new(tasks.clone());
    http.timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(window(limits))
        // What an origin gives room for, and does not read, is no more than that of an answer.
        .max_send_buf_size(WINDOW as usize)
        .max_header_list_size(u32::try_from(limits.answer_head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .keep_alive_while_idle(true);
    http
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use footbridge_outbound::SystemLookup;
    use http::Request;
    use http_body_util::Empty;
    use tokio::time::Instant;

    use super::*;
    use crate::{
        connect::{Dialling, Protocols},
        connections::{Carrier, tests::Dialler},
        shares::Shares,
    };

    #[tokio::test(start_paused = true)]
    async fn each_session_has_a_client_of_its_own_for_as_long_as_its_connections_may_be_kept() {
        let spec = crate::request::tests::spec();
        let dialling = Dialling {
            lookup: Arc::new(SystemLookup),
            shares: Arc::new(Shares::new(1)),
            time: PONG,
            silence: PONG,
            unanswered: 1,
        };
        let connector = Connector::new(&spec, &dialling, Protocols::All).unwrap();
        let clients = Clients::new(connector, 1);
        let limits = ServiceLimits::default();
        let (one, other) = (clients.of(1, &limits), clients.of(2, &limits));
        assert!(!Arc::ptr_eq(&one, &other) && Arc::ptr_eq(&one, &clients.of(1, &limits)));
        tokio::time::advance(IDLE_TIME * 3 / 4).await;
        assert!(Arc::ptr_eq(&one, &clients.of(1, &limits)));
        tokio::time::advance(IDLE_TIME / 2).await;
        assert!(Arc::ptr_eq(&one, &clients.of(1, &limits)));
        assert_eq!(clients.kept.lock().unwrap().all.len(), 1, "the other one asked for nothing since");
        assert!(!Arc::ptr_eq(&other, &clients.of(2, &limits)));
    }

    #[test]
    fn few_connections_are_kept_where_there_are_few() {
        assert_eq!([0, 240, 512, 6666].map(most_idle), [8, 8, 16, 208]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_origin_that_went_away_unheard_is_noticed_long_before_its_silence_counts() {
        let limits = ServiceLimits::default();
        // The other end is there, and says nothing.
        let ((dialler, _other), tasks) = (Dialler::new(true), ConnectionTasks::default());
        let client = Arc::new(Connections::new(dialler, http1(&limits), http2(&limits, &tasks), tasks, 1));
        let start = Instant::now();
        let request = Request::get("https://a.test/").body(Empty::<Bytes>::new()).unwrap();
        let carrier = Carrier::default();
        let asked = client.request(request, &carrier);
        let answered = tokio::time::timeout(limits.silence_time, asked).await;
        assert!(answered.is_ok_and(|answer| answer.is_err()), "it was waited for");
        assert!(start.elapsed() < PING + PONG + Duration::from_secs(5), "{:?}", start.elapsed());
    }
}
