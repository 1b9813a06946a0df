//! The HTTP client under the MCP library: what is sent to a server over HTTP, and how its answers are told apart.
//!
//! It follows no redirect, cuts no stream short by a total time, and never sends anything twice. What became of a
//! request goes into its pending request: it certainly did not get there (no connection, or the server refused it), or
//! it may have. What may mean a lost session fails its own request at once and has the session checked; only a check
//! that confirms it breaks the connection, and its supervisor opens another one.
//!
//! Proxies: for `https:` the usual variables (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) hold; a proxy resolves names
//! itself, so that the check of private addresses is then the proxy's. Loopback uses none.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use footbridge_outbound::{
    BadAddress, HttpSpec,
    web::{SendError, Web},
};
use futures::{StreamExt as _, stream::BoxStream};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;

use super::{
    body::{self, Arrived, Reader, Reading},
    ignored::SharedPace,
    interceptor::Interceptor,
    message,
    message_buffer::Room,
    own_thread::OwnThread,
    pending_request::Answer,
    refusals::Refusals,
    session_check::{Pinged, SessionChecks, is_shortage},
    unanswered::{Asker, Failure, HttpError, Media, media_type},
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";
const BOTH: &str = "application/json, text/event-stream";
/// Headers of requests to servers that are set here and nowhere else.
pub const OWN_HEADERS: [&str; 6] = ["accept", "content-type", "content-length", "host", SESSION, LAST_EVENT];
/// Pause before a stream that ended is asked for again.
pub(super) const STREAM_PAUSE: Duration = Duration::from_secs(1);

/// How long the head of an answer may take where no call waits for it.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(60);

/// One server over HTTP. Clones share its connections.
#[derive(Debug, Clone)]
pub(super) struct HttpClient {
    web: Web,
    interceptor: Arc<Interceptor>,
    room: Room,
    checks: SessionChecks,
    thread: OwnThread,
    pace: SharedPace,
    refusals: Refusals,
    next_stream: Arc<tokio::sync::Mutex<tokio::time::Instant>>,
    /// Whether the server says that it has no stream of its own, on which answers could come.
    has_no_stream: Arc<AtomicBool>,
}

/// What a connection over HTTP has, whichever transport it speaks. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Means {
    pub(super) web: Web,
    pub(super) thread: OwnThread,
    pub(super) interceptor: Arc<Interceptor>,
    pub(super) room: Room,
    pub(super) refusals: Refusals,
}

impl Means {
    /// For one server, if its address may be used.
    pub(super) fn new(
        spec: &HttpSpec,
        thread: OwnThread,
        interceptor: Arc<Interceptor>,
        room: Room,
        connect_time: Duration,
    ) -> Result<Self, BadAddress> {
        let web = Web::new(spec, &OWN_HEADERS, connect_time)?;
        let refusals = Refusals::of(web.request(Method::GET).headers());
        Ok(Self { web, thread, interceptor, room, refusals })
    }
}

/// Where a message went.
struct Sent<'a> {
    session: Option<&'a str>,
    version: Option<HeaderValue>,
}

impl HttpClient {
    /// A client for one server.
    pub(super) fn new(means: Means, checks: SessionChecks) -> Self {
        let Means { web, thread, interceptor, room, refusals } = means;
        let next_stream = Arc::new(tokio::sync::Mutex::new(tokio::time::Instant::now()));
        let (pace, has_no_stream) = (SharedPace::new(), Arc::default());
        Self { web, interceptor, room, checks, thread, pace, refusals, next_stream, has_no_stream }
    }

    fn request(&self, method: Method, session: Option<&str>, more: HashMap<HeaderName, HeaderValue>) -> Request<()> {
        let mut request = self.web.request(method);
        let configured = std::mem::replace(request.headers_mut(), more.into_iter().collect());
        // What the operator configured replaces what the library adds.
        request.headers_mut().extend(configured);
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            request.headers_mut().insert(SESSION, session);
        }
        request
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = message::written(message)?;
        if !self.interceptor.departs(message) {
            return Err(HttpError::Withdrawn.into());
        }
        let sent = Sent { session, version: headers.get(VERSION).cloned() };
        let answered = self.exchange(self.posting(session, headers).map(|()| body.into()), message, &sent).await;
        if let Err(error) = &answered {
            self.interceptor.forget(message, matches!(error, Failure::Client(why) if why.may_have_got_there()));
            // Whoever called hears that it cannot be used, and only the operator can mend why.
            if Asker::of(message).is_callers()
                && let Failure::Client(
                    why @ (HttpError::Unusable(_)
                    | HttpError::Redirect(_)
                    | HttpError::Throttled(_)
                    | HttpError::Status(_)),
                ) = error
            {
                self.interceptor.ignore(&format!("an answer over HTTP: {why}"));
            }
        }
        answered
    }

    /// A POST that has no body yet.
    fn posting(&self, session: Option<&str>, headers: HashMap<HeaderName, HeaderValue>) -> Request<()> {
        let mut request = self.request(Method::POST, session, headers);
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(BOTH));
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        message: &ClientJsonRpcMessage,
        sent: &Sent<'_>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let asker = Asker::of(message);
        let response = match self.head(request, &asker).await {
            Some(Ok(response)) => response,
            Some(Err(error)) => return Err(self.unsent(&asker, error, sent)),
            None => return Err(asker.failed(HttpError::Lost("no head came"), false)),
        };
        let status = response.status();
        if status.is_success() {
            self.refusals.taken();
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return self.accepted(&asker, sent);
        }
        if !status.is_success() {
            return self.refused(response, message, &asker, sent).await;
        }
        let new_session = response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        match media_type(&response) {
            Media::Events => {
                let stream = self.events(response);
                Ok(StreamableHttpPostResponse::Sse(stream, new_session))
            }
            Media::Json => self.json(response, &asker, new_session).await,
            Media::Other if !asker.is_request => Ok(StreamableHttpPostResponse::Accepted),
            Media::Other => Err(asker.fails(Answer::Unusable, HttpError::Unusable("its content type is unknown"))),
        }
    }

    /// The response has no answer: one to a request can come on the stream of a session, where there is such a stream.
    fn accepted(&self, asker: &Asker, sent: &Sent<'_>) -> Result<StreamableHttpPostResponse, Failure> {
        let can_come = sent.session.is_some() && !self.has_no_stream.load(Ordering::Relaxed);
        if asker.is_request && !can_come {
            let why = "it accepts the request without an answer, and has no stream on which one could come";
            return Err(asker.fails(Answer::Unusable, HttpError::Unusable(why)));
        }
        Ok(StreamableHttpPostResponse::Accepted)
    }

    /// Sends a request and waits for the head of its answer, as long as somebody waits for that. None if nobody does,
    /// or it takes too long.
    async fn head(&self, request: Request<Bytes>, asker: &Asker) -> Option<Result<Response<Incoming>, SendError>> {
        tokio::select! {
            response = self.thread.run(self.web.send(request)) => response,
            () = asker.over(HEAD_TIME) => None,
        }
    }

    /// What is not about a call.
    async fn send(&self, request: Request<()>) -> Result<Response<Incoming>, HttpError> {
        let request = request.map(|()| Bytes::new());
        match tokio::time::timeout(HEAD_TIME, self.thread.run(self.web.send(request))).await {
            Ok(Some(sent)) => Ok(sent?),
            _ => Err(HttpError::Lost("no head came")),
        }
    }

    fn events(&self, response: Response<Incoming>) -> BoxStream<'static, Result<Sse, SseError>> {
        let reader = Reader { interceptor: Arc::clone(&self.interceptor), thread: self.thread.clone() };
        Reading::new(response.into_body(), reader, self.room.clone(), self.pace.clone()).into_stream()
    }

    /// Reads a body that is one message.
    async fn message(&self, response: Response<Incoming>) -> Arrived {
        let (interceptor, room) = (Arc::clone(&self.interceptor), self.room.clone());
        let read = body::json(response.into_body(), interceptor, room, self.pace.clone());
        self.thread.run(read).await.unwrap_or(Arrived::Cut)
    }

    async fn json(
        &self,
        response: Response<Incoming>,
        asker: &Asker,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        match self.message(response).await {
            Arrived::Message(message) => Ok(StreamableHttpPostResponse::Json(*message, session)),
            _ if !asker.is_request => Ok(StreamableHttpPostResponse::Accepted),
            Arrived::Nothing => {
                Err(asker.fails(Answer::Unusable, HttpError::Unusable("it does not answer what was asked")))
            }
            Arrived::TooLong => Err(asker.fails(Answer::TooLarge, HttpError::Unusable("it is too long"))),
            Arrived::NoRoom => Err(asker.fails(Answer::Busy, HttpError::Unusable("there is no memory for it"))),
            Arrived::Cut => Err(asker.failed(HttpError::Lost("it was cut off"), false)),
        }
    }

    /// The request got no response.
    fn unsent(&self, asker: &Asker, error: SendError, sent: &Sent<'_>) -> Failure {
        match &error {
            SendError::Interim => {
                self.interceptor.ignore("interim answers (HTTP 1xx) without end; the connection was closed");
            }
            SendError::Connect(_) if !is_shortage(&error) => self.check_session(sent, false),
            SendError::Connect(_) | SendError::Lost(_) => {}
        }
        asker.failed(error.into(), false)
    }

    /// The response says that something is wrong.
    async fn refused(
        &self,
        response: Response<Incoming>,
        message: &ClientJsonRpcMessage,
        asker: &Asker,
        sent: &Sent<'_>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let error = self.refusals.refused(&response);
        if let HttpError::Login(..) | HttpError::Redirect(_) | HttpError::Throttled(_) = error {
            // Of its own requests the supervisor says why there is no connection.
            if let HttpError::Login(..) = error
                && asker.is_callers()
            {
                self.interceptor.refused(&error);
            }
            return Err(asker.failed(error, false));
        }
        if let Some(rejected) = body::discover_rejected(message, status) {
            // What it says itself is better: it may speak other revisions of the newer kind.
            return match media_type(&response) {
                Media::Json => match self.message(response).await {
                    Arrived::Message(message) => Ok(StreamableHttpPostResponse::Json(*message, None)),
                    _ => Ok(rejected),
                },
                _ => Ok(rejected),
            };
        }
        let in_session = sent.session.is_some();
        if status == StatusCode::NOT_FOUND && in_session {
            self.check_session(sent, true);
        }
        if let Media::Json = media_type(&response)
            && let Arrived::Message(message) = self.message(response).await
        {
            return Ok(StreamableHttpPostResponse::Json(*message, None));
        }
        // 404 is how a server says that it does not know the session, and some say it with an error without our id.
        // Both may as well be about this request alone.
        let not_taken = matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) && in_session;
        if not_taken {
            self.check_session(sent, true);
        }
        Err(asker.failed(error, not_taken))
    }

    /// Has it looked at whether the server is there and knows the session.
    fn check_session(&self, sent: &Sent<'_>, is_answer: bool) {
        let version = sent.version.clone().map(|version| (HeaderName::from_static(VERSION), version));
        let pinged = Pinged {
            web: self.web.clone(),
            request: self.posting(sent.session, version.into_iter().collect()),
            in_session: sent.session.is_some(),
            interceptor: Arc::clone(&self.interceptor),
            thread: self.thread.clone(),
        };
        self.checks.start(pinged, is_answer);
    }

    /// Waits its turn: a server that ends its streams at once is not asked for new ones without end.
    async fn pace(&self) {
        let mut next = self.next_stream.lock().await;
        tokio::time::sleep_until(*next).await;
        *next = tokio::time::Instant::now() + STREAM_PAUSE;
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(&message, session_id.as_deref(), custom_headers).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        if self.checks.is_broken() {
            return Ok(());
        }
        let request = self.request(Method::DELETE, Some(&session_id), custom_headers);
        // Whatever it answers, we are done with the session.
        self.send(request).await.map(|_| ()).map_err(Into::into)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.pace().await;
        let is_resumed = last_event_id.is_some();
        let sent = Sent { session: session_id.as_deref(), version: custom_headers.get(VERSION).cloned() };
        let mut request = self.request(Method::GET, session_id.as_deref(), custom_headers);
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(value) = last_event_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            request.headers_mut().insert(LAST_EVENT, value);
        }
        let response = self.send(request).await?;
        let status = response.status();
        let has_none =
            matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED);
        if !is_resumed && (has_none || status.is_success()) {
            self.has_no_stream.store(has_none, Ordering::Relaxed);
        }
        // It had one, and now does not know it: most likely it does not know the session either.
        if matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) && self.interceptor.hearing().was_open() {
            self.check_session(&sent, true);
        }
        match media_type(&response) {
            Media::Events if status.is_success() && !is_resumed => {
                let heard = self.interceptor.hearing().begins();
                Ok(self.events(response).inspect(move |_| _ = &heard).boxed())
            }
            // Whose it is cannot be told: of the session, or of one answer.
            Media::Events if status.is_success() => Ok(self.events(response)),
            _ if status.is_client_error() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Err(HttpError::Status(status.as_u16()).into()),
        }
    }
}
