//! The older transport over HTTP (HTTP+SSE, revision 2024-11-05): one stream of events from the server, which names the
//! address that each message to it is posted to.
//!
//! States: opening, until the stream has named that address; open; gone with the stream. Another origin than the
//! stream's is refused: messages carry the operator's credentials. Everything else is as in `http`: nothing is sent
//! twice, and a message that a server does not take fails its own request alone.

use std::{borrow::Cow, io, sync::Arc, time::Duration};

use footbridge_outbound::{
    HttpSpec,
    web::{SendError, Web},
};
use futures::{StreamExt as _, stream::BoxStream};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{Transport, streamable_http_client::SseError},
};
use sse_stream::Sse;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    body::{Reader, Reading},
    http::{HEAD_TIME, Means},
    ignored::SharedPace,
    interceptor::Interceptor,
    message,
    own_thread::OwnThread,
    refusals::Refusals,
    unanswered::{Asker, HttpError, Media, media_type},
};

/// How long a server has to show that it speaks this transport, where another one was configured.
const PROBE_TIME: Duration = Duration::from_secs(5);

/// A server's connection over this transport.
pub(super) struct HttpSse {
    events: BoxStream<'static, Result<Sse, SseError>>,
    poster: Arc<Poster>,
    broken: CancellationToken,
}

/// What posts messages.
struct Poster {
    web: Web,
    endpoint: Uri,
    thread: OwnThread,
    interceptor: Arc<Interceptor>,
    refusals: Refusals,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoStream {
    /// The stream was not had.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// It ended before it named an address.
    #[error("its stream of events names no address to post to")]
    NoEndpoint,
    /// The address is none, or on another origin.
    #[error("its stream of events names an address that is not its own to post to")]
    Foreign,
}

impl HttpSse {
    /// Asks for the stream and waits for the address. `broken` is cancelled when the stream ends.
    pub(super) async fn open(spec: &HttpSpec, means: Means, broken: CancellationToken) -> Result<Self, NoStream> {
        let (reading, named) = first(&means).await?;
        let endpoint = endpoint(&spec.url, &named).ok_or(NoStream::Foreign)?;
        let Means { web, thread, interceptor, refusals, .. } = means;
        let poster = Arc::new(Poster { web, endpoint, thread, interceptor, refusals });
        Ok(Self { events: reading.into_stream(), poster, broken })
    }

    /// Whether an address speaks this transport: it is asked for its stream once.
    pub(super) async fn is_spoken(means: &Means) -> bool {
        matches!(tokio::time::timeout(PROBE_TIME, first(means)).await, Ok(Ok(_)))
    }
}

/// The stream and the address that it names first.
async fn first(means: &Means) -> Result<(Reading, String), NoStream> {
    let mut request = means.web.request(Method::GET).map(|()| bytes::Bytes::new());
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    let sent = tokio::time::timeout(HEAD_TIME, means.thread.run(means.web.send(request))).await;
    let Ok(Some(sent)) = sent else { return Err(HttpError::Lost("no head came").into()) };
    let response = sent.map_err(HttpError::from)?;
    match (response.status(), media_type(&response)) {
        (status, Media::Events) if status.is_success() => {}
        (status, _) if status.is_success() => return Err(NoStream::NoEndpoint),
        _ => return Err(means.refusals.refused(&response).into()),
    }
    let reader = Reader { interceptor: Arc::clone(&means.interceptor), thread: means.thread.clone() };
    let mut reading = Reading::new(response.into_body(), reader, means.room.clone(), SharedPace::new());
    let named = reading.endpoint().await.ok_or(NoStream::NoEndpoint)?;
    Ok((reading, named))
}

/// The address to post to, if it is on the origin of the stream.
fn endpoint(stream: &Url, named: &str) -> Option<Uri> {
    let joined = stream.join(named).ok().filter(|joined| joined.origin() == stream.origin())?;
    let plain = joined.username().is_empty() && joined.password().is_none();
    plain.then(|| joined.as_str().parse().ok()).flatten()
}

impl Poster {
    async fn post(&self, message: &ClientJsonRpcMessage) -> Result<(), HttpError> {
        let body = message::written(message).map_err(|_| HttpError::Unwritten)?;
        if !self.interceptor.departs(message) {
            return Err(HttpError::Withdrawn);
        }
        let sent = self.exchange(message, body).await;
        if let Err(error) = &sent {
            self.interceptor.forget(message, error.may_have_got_there());
        }
        sent
    }

    async fn exchange(&self, message: &ClientJsonRpcMessage, body: Vec<u8>) -> Result<(), HttpError> {
        let asker = Asker::of(message);
        let mut request: Request<bytes::Bytes> = self.web.request(Method::POST).map(|()| body.into());
        *request.uri_mut() = self.endpoint.clone();
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = tokio::select! {
            sent = self.thread.run(self.web.send(request)) => sent,
            () = asker.over(HEAD_TIME) => None,
        };
        let (answer, error) = match sent {
            // Its answer comes over the stream.
            Some(Ok(response)) if response.status().is_success() => return Ok(()),
            Some(Ok(response)) => {
                let status = response.status();
                let error = self.refusals.refused(&response);
                (error.answer(status == StatusCode::BAD_REQUEST || status == StatusCode::NOT_FOUND), error)
            }
            Some(Err(error)) => {
                if let SendError::Interim = error {
                    self.interceptor.ignore("interim answers (HTTP 1xx) without end; the connection was closed");
                }
                let error = HttpError::from(error);
                (error.answer(false), error)
            }
            None => {
                let error = HttpError::Lost("no head came");
                (error.answer(false), error)
            }
        };
        asker.answer(answer);
        Err(error)
    }
}

impl Transport<RoleClient> for HttpSse {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        Cow::Borrowed("HTTP+SSE")
    }

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (poster, broken) = (Arc::clone(&self.poster), self.broken.clone());
        async move {
            let posted = broken.run_until_cancelled(poster.post(&item)).await;
            posted.unwrap_or(Err(HttpError::Lost("its stream ended"))).map_err(io::Error::other)
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        while let Some(Ok(event)) = self.events.next().await {
            if let Some(message) = event.data.and_then(|data| serde_json::from_str(&data).ok()) {
                return Some(message);
            }
        }
        self.broken.cancel();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.broken.cancel();
        self.events = futures::stream::empty().boxed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_origin_of_the_stream_alone() {
        let stream = Url::parse("https://example.org:8443/sse?x=1").unwrap();
        for (named, expected) in [
            ("/messages?session=1", Some("https://example.org:8443/messages?session=1")),
            ("messages", Some("https://example.org:8443/messages")),
            ("?session=1", Some("https://example.org:8443/sse?session=1")),
            ("https://example.org:8443/m", Some("https://example.org:8443/m")),
            ("https://example.org/m", None),
            ("http://example.org:8443/m", None),
            ("//evil.test/m", None),
            ("https://user:pw@example.org:8443/m", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(endpoint(&stream, named).map(|uri| uri.to_string()).as_deref(), expected, "{named}");
        }
    }
}
