//! The bodies of HTTP responses: one JSON message, or a stream of events, each message through the interceptor.

use std::{collections::VecDeque, sync::Arc};

use footbridge_core::budget::Held;
use footbridge_outbound::web::piece;
use footbridge_proto::text::needs_escape;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use http::StatusCode;
use hyper::body::Incoming;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage},
    transport::streamable_http_client::{SseError, StreamableHttpPostResponse},
};
use sse_stream::Sse;

use super::{
    ignored::SharedPace,
    interceptor::{Interceptor, Kind},
    message_buffer::{BufferedMessage, Dropped, MessageBuffer, Room},
    own_thread::OwnThread,
    sse::Events,
};

/// Bounds of the pause that a server may ask for before its stream is asked for again, ms.
const RETRY_MS: std::ops::RangeInclusive<u64> = 1_000..=30_000;

/// Longest address that a stream of the older transport names.
const MAX_ENDPOINT: usize = 8 * 1024;

/// What a JSON body held.
pub(super) enum Arrived {
    /// A message for the library.
    Message(Box<ServerJsonRpcMessage>),
    /// None that somebody waits for.
    Nothing,
    /// More than may be kept.
    TooLong,
    /// The budget was spent.
    NoRoom,
    /// The connection ended inside of it.
    Cut,
}

/// Reads a body that is one JSON message. One that nobody waits for, or that is too long, is read at the server's pace.
pub(super) async fn json(body: Incoming, interceptor: Arc<Interceptor>, room: Room, pace: SharedPace) -> Arrived {
    let mut length = 0;
    let arrived = whole(body, &interceptor, room, &mut length).await;
    if !matches!(arrived, Arrived::Message(_)) {
        pace.unwanted(length).await;
    }
    arrived
}

async fn whole(mut body: Incoming, interceptor: &Interceptor, room: Room, length: &mut usize) -> Arrived {
    let mut buffer = MessageBuffer::new(room);
    loop {
        let chunk = tokio::select! {
            chunk = piece(&mut body) => chunk,
            () = buffer.overdue() => return Arrived::NoRoom,
        };
        match chunk {
            Ok(Some(chunk)) => {
                *length += chunk.len();
                buffer.push(&chunk).await;
            }
            Ok(None) => break,
            Err(_) => return Arrived::Cut,
        }
        if let Some(why) = buffer.dropping() {
            // There is no message after it that would be worth reading on.
            return match why {
                Dropped::TooLong => Arrived::TooLong,
                Dropped::NoRoom => Arrived::NoRoom,
            };
        }
    }
    let BufferedMessage::Whole(bytes, held) = buffer.finish() else { return Arrived::TooLong };
    let mut out = VecDeque::new();
    interceptor.arrived(bytes, held, &mut out);
    out.pop_front().map_or(Arrived::Nothing, |message| Arrived::Message(Box::new(message)))
}

/// A stream of events that is being read.
pub(super) struct Reading {
    body: Incoming,
    reader: Reader,
    events: Events,
    chunk: bytes::Bytes,
    ready: VecDeque<Sse>,
    pace: SharedPace,
}

impl Reading {
    /// Nothing is read yet.
    pub(super) fn new(body: Incoming, reader: Reader, room: Room, pace: SharedPace) -> Self {
        let (events, chunk) = (Events::new(room), bytes::Bytes::new());
        Self { body, reader, events, chunk, ready: VecDeque::new(), pace }
    }

    /// The rest of it. It ends with the first error.
    pub(super) fn into_stream(self) -> BoxStream<'static, Result<Sse, SseError>> {
        stream::unfold(Some(self), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Some(Ok(event)) => Some((Ok(event), Some(reading))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        })
        .boxed()
    }

    /// What its first event says, where that is of the kind `endpoint`.
    pub(super) async fn endpoint(&mut self) -> Option<String> {
        loop {
            if self.chunk.is_empty() {
                self.chunk = piece(&mut self.body).await.ok()??;
            }
            let (used, event) = self.events.take(&self.chunk).await;
            self.chunk = self.chunk.slice(used..);
            let Some(event) = event else {
                self.pace.unwanted(used).await;
                continue;
            };
            // Without data it is no event, only how to go on (HTML, server-sent events).
            let Some(data) = event.data else {
                self.pace.unwanted(used).await;
                continue;
            };
            let BufferedMessage::Whole(named, _) = data else { return None };
            let is_named = event.event.as_deref() == Some("endpoint") && named.len() <= MAX_ENDPOINT;
            return is_named.then(|| String::from_utf8(named).ok()).flatten();
        }
    }

    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.chunk.is_empty() {
                let chunk = tokio::select! {
                    chunk = piece(&mut self.body) => chunk,
                    () = self.events.overdue() => {
                        self.events.give_up();
                        self.tell_lost();
                        continue;
                    }
                };
                match chunk {
                    Ok(Some(chunk)) => self.chunk = chunk,
                    Ok(None) => return None,
                    Err(error) => return Some(Err(SseError::Body(Box::new(error)))),
                }
                continue;
            }
            let (used, event) = self.events.take(&self.chunk).await;
            self.chunk = self.chunk.slice(used..);
            self.tell_lost();
            let wanted = match event {
                Some(event) => self.event(event).await == Kind::Answer,
                None => self.events.is_keeping(),
            };
            if !wanted {
                self.pace.unwanted(used).await;
            }
        }
    }

    /// Passes the event's data through the interceptor; its id and pause go on, so that a stream can be taken up again.
    async fn event(&mut self, event: super::sse::Event) -> Kind {
        let mut out = VecDeque::new();
        let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
        let kind = match event.data {
            Some(BufferedMessage::Whole(bytes, held)) if is_message => self.reader.arrived(bytes, held, &mut out).await,
            Some(BufferedMessage::Dropped { id, why, head }) => {
                self.reader.interceptor.dropped(id, why, &head, &mut out);
                Kind::Other
            }
            _ => Kind::Other,
        };
        let retry = event.retry.map(|ms| ms.clamp(*RETRY_MS.start(), *RETRY_MS.end()));
        // The library logs the id as it is; one that is not plain is not worth a stream that goes on.
        let id = event.id.filter(|id| !id.chars().any(needs_escape));
        self.ready.push_back(Sse { event: None, data: None, id, retry });
        self.hand_on(out);
        kind
    }

    /// Whoever waits for an answer that is dropped hears it before its event ends, which may never be.
    fn tell_lost(&mut self) {
        if let Some(lost) = self.events.lost() {
            let mut out = VecDeque::new();
            self.reader.interceptor.lost(lost, &mut out);
            self.hand_on(out);
        }
    }

    fn hand_on(&mut self, messages: VecDeque<ServerJsonRpcMessage>) {
        for message in messages {
            let data = serde_json::to_string(&message).ok();
            self.ready.push_back(Sse { event: None, data, id: None, retry: None });
        }
    }
}

/// What reads messages of streams.
pub(super) struct Reader {
    pub(super) interceptor: Arc<Interceptor>,
    /// Where large ones are read: to look through megabytes keeps a worker from all others.
    pub(super) thread: OwnThread,
}

impl Reader {
    async fn arrived(&self, bytes: Vec<u8>, held: Option<Held>, out: &mut VecDeque<ServerJsonRpcMessage>) -> Kind {
        if !self.interceptor.takes_long(&bytes) {
            return self.interceptor.arrived(bytes, held, out);
        }
        let interceptor = Arc::clone(&self.interceptor);
        let read = self.thread.run(async move {
            let mut messages = VecDeque::new();
            let kind = interceptor.arrived(bytes, held, &mut messages);
            (kind, messages)
        });
        let Some((kind, mut messages)) = read.await else {
            tracing::error!("a message of a server made its reader panic; it is lost");
            return Kind::Other;
        };
        out.append(&mut messages);
        kind
    }
}

/// What a server of the older revisions answers to the question of the newer one, with an id that cannot be trusted:
/// turned into the answer that makes the library go on with the handshake.
pub(super) fn discover_rejected(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
) -> Option<StreamableHttpPostResponse> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    if !matches!(request.request, ClientRequest::DiscoverRequest(_)) || !status.is_client_error() {
        return None;
    }
    let error = ErrorData::invalid_request("the server does not know server/discover", None);
    let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
    Some(StreamableHttpPostResponse::Json(message, None))
}
