//! The HTTP client of addresses that the operator configured: MCP servers, and whoever is asked for approvals.
//!
//! TLS is verified, plain HTTP goes to loopback only, no redirect is followed and nothing is sent twice. What comes
//! before the head of an answer has a bound, each head too: a server that goes on with `100 Continue` for ever loses
//! its connection.

use std::{
    error::Error,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header::USER_AGENT};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, ext::on_informational};
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use tokio_util::sync::CancellationToken;

use super::{
    HttpSpec,
    address::{self, BadAddress},
    connect::Connector,
};

/// Bytes of interim answers (1xx) before the head of one answer, about: two a second for ten minutes are fewer.
const MAX_INTERIM: usize = 64 * 1024;
/// Bytes of one head, and of what is read at once.
const MAX_HEAD: usize = 64 * 1024;
/// About what the first line of an answer takes.
const STATUS_LINE: usize = 25;
/// What a line of a head takes besides name and value.
const SEPARATORS: usize = 4;
/// How long a connection without a request is kept.
const IDLE: Duration = Duration::from_secs(90);

/// A client for one address, and the headers that go with each request of it. Clones share connections.
#[derive(Debug, Clone)]
pub struct Web {
    client: Client<Connector, Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
}

/// Why a request has no answer. Never holds the address.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection: nothing was sent.
    #[error("it cannot be reached: {}", causes(.0))]
    Connect(#[source] legacy::Error),
    /// It answered without end that the answer is yet to come.
    #[error("it sent over {MAX_INTERIM} bytes of interim answers (HTTP 1xx) and no answer")]
    Interim,
    /// The connection failed later, or what came is no HTTP.
    #[error("its connection failed: {}", causes(.0))]
    Lost(#[source] legacy::Error),
}

/// Why the rest of an answer did not come.
#[derive(Debug, thiserror::Error)]
#[error("its connection failed: {}", causes(.0))]
pub struct BodyError(#[from] hyper::Error);

impl Web {
    /// A client for one address, if it may be used. The headers `ours` are set with each request and cannot be
    /// configured.
    ///
    /// # Errors
    /// [`BadAddress`].
    pub fn new(spec: &HttpSpec, ours: &[&str], connect_time: Duration) -> Result<Self, BadAddress> {
        let local = address::check(&spec.url)?;
        let uri = spec.url.as_str().parse().map_err(BadAddress::Uri)?;
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("footbridge/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &spec.headers {
            let refused = || BadAddress::Header(name.to_string());
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| refused())?;
            value.set_sensitive(true);
            if ours.contains(&name.as_str()) {
                return Err(refused());
            }
            if name == USER_AGENT {
                headers.remove(USER_AGENT);
            }
            headers.append(name.clone(), value);
        }
        let resolver = address::resolver(spec.url.host_str().unwrap_or_default(), spec.allow_private);
        let connector = Connector::new(resolver, spec.url.scheme() == "https", !local, connect_time)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(MAX_HEAD)
            .build(connector);
        Ok(Self { client, uri, headers })
    }

    /// A request to the address with the configured headers, without a body.
    #[must_use]
    pub fn request(&self, method: http::Method) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Sends a request and waits for the head of its answer. Dropping this ends the request, and its connection.
    ///
    /// # Errors
    /// [`SendError`]. Over a connection that had been kept, one that closed before anything was written is made anew.
    pub fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendError>> + Send + use<> {
        let mut request = request.map(Full::new);
        let (come, too_much) = (AtomicUsize::new(0), CancellationToken::new());
        let ends = too_much.clone();
        on_informational(&mut request, move |head| {
            let line =
                |(name, value): (&http::HeaderName, &HeaderValue)| name.as_str().len() + value.len() + SEPARATORS;
            let length = STATUS_LINE + head.headers().iter().map(line).sum::<usize>();
            if come.fetch_add(length, Ordering::Relaxed) + length > MAX_INTERIM {
                ends.cancel();
            }
        });
        let sending = self.client.request(request);
        async move {
            tokio::select! {
                biased;
                () = too_much.cancelled() => Err(SendError::Interim),
                sent = sending => sent.map_err(|error| {
                    if error.is_connect() { SendError::Connect(error) } else { SendError::Lost(error) }
                }),
            }
        }
    }
}

/// The next piece of a body; none at its end.
///
/// # Errors
/// [`BodyError`].
pub async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, BodyError> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// An error with what caused it.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
