//! A tiny MCP server over HTTP on loopback, with traps.
//!
//! It counts what it was sent, so that tests can tell that nothing came twice.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode, body::Frame, body::Incoming, header::HeaderValue, service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::older_server;

pub(super) type Body = BoxBody<Bytes, Infallible>;

/// What the server does when a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trap {
    Json,
    Sse,
    /// Loses the session at the first call, and answers 404 until there is a new one.
    Lost404,
    /// The same with 400 and an error without an id.
    Lost400,
    /// The same at every call.
    LostAlways,
    /// Keeps its session, answers as the argument `how` says, and a call without it when it is released.
    Picky,
    /// Redirects to another origin.
    Redirect,
    /// Says that what came of it is elsewhere.
    SeeOther,
    /// Is asked too often.
    Throttles,
    /// A stream of comments and progress without end.
    EndlessSse,
    /// A JSON body of 8 MiB.
    HugeBody,
    /// One event of 8 MiB, the id last, and a stream that goes on.
    HugeEvent,
    /// One event that begins with the id and does not end.
    EndlessEvent,
    WrongType,
    /// Accepts a call, and has no stream on which it could be answered.
    Accepts,
    /// Closes the connection when it has read the call.
    Hangup,
    /// Answers a call 404, and leaves for good when it has read a ping.
    LeavesInPing,
    Unauthorized,
    /// A stream that ends without an answer.
    SseEnds,
    WrongId,
    /// Of the stateless revision, with tools whose parameters are repeated in headers, and some that are marked wrongly.
    Marked,
    /// Of the stateless revision; it takes subscriptions, which end when it is replaced, and has another tool then.
    Subscribed,
    /// The same, and it has the other tool once it is asked for a subscription: nothing says so.
    ChangesUnheard,
    /// The same without subscriptions.
    Unsubscribed,
    /// The same with a prompt, and when it is replaced it fails to list that.
    LosesPrompts,
    /// The same, and it says that it takes subscriptions, and answers with an error.
    RefusesSubscriptions,
    /// Has a stream for its session, and loses both when it is replaced.
    Streams,
    /// Of a later revision of the stateless kind.
    Later,
    /// Answers everything 404.
    Nowhere,
    /// Answers what is no request 500.
    NoNotices,
    /// Wants a login for everything.
    Login,
    LoginByOAuth,
    Forbids,
    /// Of the older transport alone.
    Older,
    /// The same, with an address on another origin.
    OlderForeign,
    /// The same, and takes no message.
    OlderRefuses,
}

pub(super) struct HttpServer {
    pub(super) address: SocketAddr,
    state: Arc<State>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

pub(super) struct State {
    pub(super) trap: Trap,
    pub(super) seen: Mutex<Vec<String>>,
    /// The stream of the older transport.
    pub(super) stream: Mutex<Option<mpsc::Sender<String>>>,
    sprung: Mutex<bool>,
    lost: Mutex<bool>,
    hang_up: CancellationToken,
    release: CancellationToken,
    /// Cancelled when another one is in its place.
    replaced: CancellationToken,
    /// Cancelled when it takes no new connection.
    draining: CancellationToken,
}

impl HttpServer {
    pub(super) async fn start(trap: Trap) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let hang_up = CancellationToken::new();
        let (release, draining) = (CancellationToken::new(), stop.child_token());
        let replaced = CancellationToken::new();
        let (seen, sprung, lost) = (Mutex::default(), Mutex::default(), Mutex::default());
        let stream = Mutex::default();
        let state = Arc::new(State { trap, seen, stream, sprung, lost, hang_up, release, replaced, draining });
        let (connections, shared) = (tracker.clone(), Arc::clone(&state));
        let stopped = stop.clone();
        tracker.spawn(async move {
            while let Some(Ok((stream, _))) = shared.draining.run_until_cancelled(listener.accept()).await {
                let (state, stop) = (Arc::clone(&shared), stopped.clone());
                connections.spawn(async move {
                    let hang_up = state.hang_up.clone();
                    let service = service_fn(move |request| {
                        let state = Arc::clone(&state);
                        async move {
                            let mut response = answer(Arc::clone(&state), request).await?;
                            if state.draining.is_cancelled() {
                                response.headers_mut().insert("connection", HeaderValue::from_static("close"));
                            }
                            Ok::<_, Infallible>(response)
                        }
                    });
                    let serving =
                        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    tokio::select! {
                        _ = serving => {}
                        () = hang_up.cancelled() => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        });
        Self { address, state, stop, tracker }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The methods that were received, in order.
    pub(super) fn seen(&self) -> Vec<String> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(super) fn calls(&self) -> usize {
        self.seen().iter().filter(|method| *method == "tools/call").count()
    }

    /// Answers the calls that wait.
    pub(super) fn release(&self) {
        self.state.release.cancel();
    }

    /// Puts another one in its place, which knows nothing of sessions and subscriptions.
    pub(super) fn replace(&self) {
        *self.state.lost.lock().unwrap() = self.state.trap == Trap::Streams;
        self.state.replaced.cancel();
    }

    /// Takes no new connection, and closes each that it has after its next answer.
    pub(super) async fn drain(&self) {
        self.state.draining.cancel();
        while tokio::net::TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// Listens in front of a server and passes on what goes there and back, but to a call it answers `100 Continue` without
/// end. Ends with its token; what it gives is cancelled once nobody reads that any more.
pub(super) async fn continuing(
    to: SocketAddr,
    stop: CancellationToken,
) -> (SocketAddr, CancellationToken, TaskTracker) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (address, unread, tracker) = (listener.local_addr().unwrap(), CancellationToken::new(), TaskTracker::new());
    let (connections, over) = (tracker.clone(), unread.clone());
    tracker.spawn(async move {
        while let Some(Ok((mut near, _))) = stop.run_until_cancelled(listener.accept()).await {
            let (stop, over) = (stop.clone(), over.clone());
            connections.spawn(stop.run_until_cancelled_owned(async move {
                let mut far = tokio::net::TcpStream::connect(to).await.unwrap();
                let mut chunk = vec![0; 64 * 1024];
                loop {
                    let mut back = vec![0; 64 * 1024];
                    tokio::select! {
                        read = near.read(&mut chunk) => match read {
                            Ok(0) | Err(_) => return,
                            Ok(n) if String::from_utf8_lossy(&chunk[..n]).contains("tools/call") => break,
                            Ok(n) => far.write_all(&chunk[..n]).await.unwrap(),
                        },
                        read = far.read(&mut back) => match read {
                            Ok(0) | Err(_) => return,
                            Ok(n) => near.write_all(&back[..n]).await.unwrap(),
                        },
                    }
                }
                let flood = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000);
                while near.write_all(flood.as_bytes()).await.is_ok() {}
                over.cancel();
            }));
        }
    });
    (address, unread, tracker)
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if let Trap::Older | Trap::OlderForeign | Trap::OlderRefuses = state.trap {
        return Ok(older_server::answer(state, request).await);
    }
    if state.trap == Trap::Nowhere {
        return Ok(status(StatusCode::NOT_FOUND));
    }
    if request.method() != Method::POST {
        state.seen.lock().unwrap().push(request.method().to_string());
        return Ok(match (state.trap, request.method()) {
            (Trap::Streams, &Method::GET) if *state.lost.lock().unwrap() => status(StatusCode::NOT_FOUND),
            (Trap::Streams, &Method::GET) => until_replaced(": hello\n\n".to_owned(), &state),
            _ => status(StatusCode::METHOD_NOT_ALLOWED),
        });
    }
    let echoed = if state.trap == Trap::Marked { "mcp-param-region" } else { "x-key" };
    let secret = request.headers().get(echoed).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok(handle(state, &message, &secret).await)
}

/// What a message is answered.
pub(super) async fn handle(state: Arc<State>, message: &Value, secret: &str) -> Response<Body> {
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    state.seen.lock().unwrap().push(method.clone());
    let id = &message["id"];
    if let Some(refused) = wants_login(state.trap) {
        return refused;
    }
    if state.trap == Trap::NoNotices && id.is_null() {
        return status(StatusCode::INTERNAL_SERVER_ERROR);
    }
    if method == "server/discover" {
        return discovered(state.trap, id);
    }
    if method == "subscriptions/listen" {
        if state.trap == Trap::ChangesUnheard {
            state.replaced.cancel();
        }
        return subscribed(&state, id);
    }
    if method == "prompts/list" && state.replaced.is_cancelled() {
        let error = json!({"code": -32603, "message": "asked too often"});
        return json_body(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
    }
    if method == "initialize" {
        *state.lost.lock().unwrap() = false;
    } else if *state.lost.lock().unwrap() {
        return unknown_session(state.trap);
    }
    let result = match method.as_str() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "http", "version": "0"},
        }),
        "tools/list" if state.trap == Trap::Marked => marked(),
        "tools/list" if state.trap.is_stateless() => {
            let name = if state.replaced.is_cancelled() { "other" } else { "echo" };
            json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [
                {"name": name, "inputSchema": {"type": "object"}},
            ]})
        }
        "prompts/list" => {
            json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "prompts": [{"name": "p"}]})
        }
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            if state.trap == Trap::Picky && message["params"]["arguments"]["how"].is_null() {
                state.release.cancelled().await;
            }
            return called(&state, id, &message["params"], secret);
        }
        "ping" if state.trap == Trap::LeavesInPing => {
            state.draining.cancel();
            state.hang_up.cancel();
            return std::future::pending().await;
        }
        "ping" => json!({}),
        _ => return status(StatusCode::ACCEPTED),
    };
    let mut response = json_body(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    response.headers_mut().insert("mcp-session-id", "s-1".parse().unwrap());
    response
}

/// A subscription that is there until it is replaced.
fn subscribed(state: &State, id: &Value) -> Response<Body> {
    if !state.trap.is_subscribed() {
        let error = json!({"code": -32601, "message": "Method not found"});
        return json_body(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
    }
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    let method = "notifications/subscriptions/acknowledged";
    let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
    until_replaced(format!("data: {told}\n\n"), state)
}

/// A stream of this, which ends when the server is replaced; one after that goes on.
fn until_replaced(first: String, state: &State) -> Response<Body> {
    let replaced = state.replaced.clone();
    let is_old = !replaced.is_cancelled();
    let rest = futures::stream::once(async move {
        if is_old {
            replaced.cancelled().await;
        } else {
            std::future::pending::<()>().await;
        }
        ": gone\n\n".to_owned()
    });
    stream(futures::stream::iter([first]).chain(rest))
}

impl Trap {
    fn is_stateless(self) -> bool {
        let is_plain =
            matches!(self, Self::Marked | Self::Unsubscribed | Self::LosesPrompts | Self::RefusesSubscriptions);
        is_plain || self.is_subscribed()
    }

    fn is_subscribed(self) -> bool {
        matches!(self, Self::Subscribed | Self::ChangesUnheard)
    }
}

fn wants_login(trap: Trap) -> Option<Response<Body>> {
    let (code, challenge) = match trap {
        Trap::Login => (StatusCode::UNAUTHORIZED, "Bearer realm=\"x\""),
        Trap::LoginByOAuth => (StatusCode::UNAUTHORIZED, "Bearer resource_metadata=\"https://x.test/y\""),
        Trap::Forbids => (StatusCode::FORBIDDEN, "Bearer error=\"insufficient_scope\""),
        _ => return None,
    };
    let mut response = status(code);
    response.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
    Some(response)
}

fn discovered(trap: Trap, id: &Value) -> Response<Body> {
    let answer = match trap {
        _ if trap.is_stateless() => {
            let says_so = trap.is_subscribed() || trap == Trap::RefusesSubscriptions;
            let mut capabilities = json!({"tools": {"listChanged": says_so}});
            if trap == Trap::LosesPrompts {
                capabilities["prompts"] = json!({});
            }
            json!({"result": {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private",
            }})
        }
        Trap::Later => json!({"error": {
            "code": -32022, "message": "Unsupported protocol version",
            "data": {"supported": ["2031-01-01"], "requested": "2026-07-28"},
        }}),
        _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
    };
    let mut body = json!({"jsonrpc": "2.0", "id": id});
    body.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
    let mut response = json_body(body.to_string());
    if !trap.is_stateless() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    response
}

/// Tools of which one is marked as it should be.
fn marked() -> Value {
    let tool = |name: &str, region: Value| json!({"name": name, "inputSchema": {"type": "object", "properties": {"region": region}}});
    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [
        tool("echo", json!({"type": "string", "x-mcp-header": "Region"})),
        tool("\u{1b}[2Jempty", json!({"type": "string", "x-mcp-header": ""})),
        tool("spaced", json!({"type": "string", "x-mcp-header": "a b"})),
        tool("object", json!({"type": "object", "x-mcp-header": "Region"})),
    ]})
}

fn called(state: &State, id: &Value, params: &Value, secret: &str) -> Response<Body> {
    let good = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": secret}], "n": 1}});
    let first = !std::mem::replace(&mut *state.sprung.lock().unwrap(), true);
    let token = &params["_meta"]["progressToken"];
    let progress = |n: usize| {
        let params = json!({"progressToken": token, "progress": n});
        format!("data: {}\n\n", json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
    };
    match state.trap {
        _ if state.trap.is_stateless() => {
            let mut good = good;
            good["result"]["logs"] = params["_meta"]["io.modelcontextprotocol/logLevel"].clone();
            json_body(good.to_string())
        }
        Trap::Json | Trap::Streams | Trap::Older | Trap::Nowhere | Trap::NoNotices => json_body(good.to_string()),
        Trap::Sse => sse(vec![": hello\n\n".to_owned(), progress(1), format!("id: 7\ndata: {good}\n\n")], false),
        Trap::Lost404 | Trap::Lost400 | Trap::LostAlways if first || state.trap == Trap::LostAlways => {
            *state.lost.lock().unwrap() = true;
            unknown_session(state.trap)
        }
        Trap::Lost404 | Trap::Lost400 | Trap::LostAlways => json_body(good.to_string()),
        Trap::Picky => match params["arguments"]["how"].as_str() {
            Some("html") => html(StatusCode::BAD_REQUEST),
            Some("html404") => html(StatusCode::NOT_FOUND),
            Some(_) => no_id(),
            None => json_body(good.to_string()),
        },
        Trap::Redirect => {
            let mut response = status(StatusCode::TEMPORARY_REDIRECT);
            response.headers_mut().insert("location", "http://127.0.0.2:1/elsewhere".parse().unwrap());
            response
        }
        Trap::EndlessSse => sse(vec![": still here\n\n".to_owned()], true),
        Trap::HugeBody => json_body(format!("{{\"x\":\"{}\"}}", "h".repeat(8 << 20))),
        Trap::HugeEvent => sse(
            vec![format!("data: {{\"result\":{{\"x\":\"{}\"}},\"id\":{id}}}\n\n", "h".repeat(8 << 20)), progress(1)],
            true,
        ),
        Trap::EndlessEvent => {
            sse(vec![format!("data: {{\"id\":{id},\"result\":{{\"x\":\"{}\n", "h".repeat(8 << 20))], true)
        }
        Trap::SeeOther => status(StatusCode::SEE_OTHER),
        Trap::Throttles => {
            let mut response = status(StatusCode::TOO_MANY_REQUESTS);
            response.headers_mut().insert("retry-after", HeaderValue::from_static("7"));
            response
        }
        Trap::WrongType => html(StatusCode::OK),
        Trap::Accepts => status(StatusCode::ACCEPTED),
        Trap::LeavesInPing => html(StatusCode::NOT_FOUND),
        Trap::Hangup => {
            state.hang_up.cancel();
            sse(Vec::new(), true)
        }
        Trap::Unauthorized => status(StatusCode::UNAUTHORIZED),
        Trap::SseEnds => sse(vec![progress(1)], false),
        Trap::Later | Trap::Login | Trap::LoginByOAuth | Trap::Forbids | Trap::OlderForeign | Trap::OlderRefuses => {
            status(StatusCode::INTERNAL_SERVER_ERROR)
        }
        Trap::WrongId
        | Trap::Marked
        | Trap::Subscribed
        | Trap::ChangesUnheard
        | Trap::Unsubscribed
        | Trap::LosesPrompts
        | Trap::RefusesSubscriptions => json_body(json!({"jsonrpc": "2.0", "id": 77_777, "result": {}}).to_string()),
    }
}

fn unknown_session(trap: Trap) -> Response<Body> {
    if trap == Trap::Lost404 { status(StatusCode::NOT_FOUND) } else { no_id() }
}

/// 400 with an error without an id.
fn no_id() -> Response<Body> {
    let error = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request"}, "id": null});
    let mut response = json_body(error.to_string());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// What a proxy says.
fn html(status: StatusCode) -> Response<Body> {
    let mut response = json_body("<html>sign in</html>".to_owned());
    response.headers_mut().insert("content-type", "text/html".parse().unwrap());
    *response.status_mut() = status;
    response
}

pub(super) fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(http_body_util::Empty::new().boxed());
    *response.status_mut() = status;
    response
}

fn json_body(text: String) -> Response<Body> {
    let mut response = Response::new(http_body_util::Full::new(Bytes::from(text)).boxed());
    response.headers_mut().insert("content-type", "application/json; charset=utf-8".parse().unwrap());
    response
}

/// A stream of these parts; then it ends, or goes on with comments every 20 ms.
fn sse(parts: Vec<String>, endless: bool) -> Response<Body> {
    let first = futures::stream::iter(parts);
    let rest = futures::stream::unfold((), move |()| async move {
        if !endless {
            return None;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Some((": more\n\n".to_owned(), ()))
    });
    stream(first.chain(rest))
}

fn stream(parts: impl futures::Stream<Item = String> + Send + 'static) -> Response<Body> {
    let body = StreamBody::new(parts.map(|part| Ok(Frame::data(Bytes::from(part)))));
    let mut response = Response::new(BodyExt::boxed(SyncBody::new(body)));
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

/// Makes a stream's body shareable, which the boxed one has to be.
pub(super) struct SyncBody<B>(Mutex<std::pin::Pin<Box<B>>>);

impl<B> SyncBody<B> {
    pub(super) fn new(body: B) -> Self {
        Self(Mutex::new(Box::pin(body)))
    }
}

impl<B: hyper::body::Body> hyper::body::Body for SyncBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.get_mut().0.get_mut().unwrap().as_mut().poll_frame(context)
    }
}
