//! The HTTP client of addresses that the operator configured: MCP servers, and whoever is asked for approvals.
//!
//! TLS is verified, plain HTTP goes to loopback only, no redirect is followed and nothing is sent twice. What comes
//! before the head of an answer has a bound, each head too: a server that goes on with `100 Continue` for ever loses
//! its connection.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header::USER_AGENT};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};

use crate::{
    address::{self, BadAddress, HttpSpec},
    connect::Connector,
    interim::InterimAnswers,
    resolver::{CheckedResolver, Lookup, SystemLookup},
};

/// Bytes of interim answers (1xx) before the head of one answer, about: two a second for ten minutes are fewer.
const MAX_INTERIM: usize = 64 * 1024;
/// Bytes of one head, and of what is read at once.
const MAX_HEAD: usize = 64 * 1024;
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
        Self::resolving(spec, ours, connect_time, Arc::new(SystemLookup))
    }

    fn resolving(
        spec: &HttpSpec,
        ours: &[&str],
        connect_time: Duration,
        lookup: Arc<dyn Lookup>,
    ) -> Result<Self, BadAddress> {
        let local = address::check(&spec.url)?;
        let uri = spec.url.as_str().parse().map_err(BadAddress::Uri)?;
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("footbridge/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &spec.headers {
            let value = HttpSpec::header_value(name, value, ours)?;
            if name == USER_AGENT {
                headers.remove(USER_AGENT);
            }
            headers.append(name.clone(), value);
        }
        let resolver = CheckedResolver { lookup, allow_private: spec.allow_private };
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
        let interim = InterimAnswers::count(&mut request, MAX_INTERIM);
        let sending = self.client.request(request);
        async move {
            tokio::select! {
                biased;
                () = interim.too_much() => Err(SendError::Interim),
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::resolver::{OnlyPrivate, tests::Changing};

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_is_not_dialled_unless_that_is_meant() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = |allow_private| {
            let url = format!("https://a.test:{port}/").parse().unwrap();
            let spec = HttpSpec { url, headers: Vec::new(), allow_private };
            let lookup = Arc::new(Changing(vec!["127.0.0.1"], AtomicUsize::new(0)));
            let web = Web::resolving(&spec, &[], Duration::from_secs(20), lookup).unwrap();
            web.send(web.request(http::Method::GET).map(|()| Bytes::new()))
        };
        let refused = sent(false).await.unwrap_err().to_string();
        assert!(refused.contains(&OnlyPrivate.to_string()), "{refused}");
        let dialled = async { drop(listener.accept().await.unwrap()) };
        let (sent, ()) = tokio::join!(sent(true), dialled);
        assert!(matches!(sent, Err(SendError::Connect(_))));
    }
}
