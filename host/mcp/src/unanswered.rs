//! Requests over HTTP that have no answer: why, and who has to be told.

use std::time::Duration;

use http::{Response, header};
use rmcp::{model::ClientJsonRpcMessage, transport::streamable_http_client::StreamableHttpError};

use super::{
    message,
    pending_request::{Answer, PendingRequest},
    web::SendError,
};

/// Why a request over HTTP has no answer. Never holds the address.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// No head of an answer came.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The same, or the rest of it did not come.
    #[error("its connection failed: {0}")]
    Lost(&'static str),
    /// It wants other credentials.
    #[error("it answered HTTP {0}: its credentials are missing or wrong")]
    Credentials(u16),
    /// It leads elsewhere.
    #[error("it answered HTTP {0}, a redirect, which is not followed; configure the final URL")]
    Redirect(u16),
    /// Another status.
    #[error("it answered HTTP {0}")]
    Status(u16),
    /// An answer that is none.
    #[error("its answer cannot be used: {0}")]
    Unusable(&'static str),
    /// The caller left first.
    #[error("withdrawn before it was sent")]
    Withdrawn,
}

/// What the library is told.
pub(super) type Failure = StreamableHttpError<HttpError>;

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Client(error)
    }
}

/// Who waits for the answer to a message.
pub(super) struct Asker {
    pending: Option<PendingRequest>,
    /// Whether it is a request: only those have answers.
    pub(super) is_request: bool,
}

impl Asker {
    /// Of a message that leaves.
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Self {
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        Self { pending: message::pending(message), is_request }
    }

    /// Waits until nobody waits for the answer any more; where that cannot be told, for so long.
    pub(super) async fn over(&self, at_most: Duration) {
        match &self.pending {
            Some(pending) => pending.over().cancelled().await,
            None => tokio::time::sleep(at_most).await,
        }
    }

    /// Puts the answer in, if somebody waits.
    pub(super) fn answer(&self, answer: Answer) {
        if let Some(pending) = &self.pending {
            pending.answer(answer);
        }
    }

    /// The same, and the error for the library.
    pub(super) fn fails(&self, answer: Answer, error: HttpError) -> Failure {
        self.answer(answer);
        error.into()
    }
}

/// What a body is.
pub(super) enum Media {
    Json,
    Events,
    Other,
}

/// What the body of a response is.
pub(super) fn media_type<B>(response: &Response<B>) -> Media {
    let value = response.headers().get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    match essence.as_slice() {
        b"application/json" => Media::Json,
        b"text/event-stream" => Media::Events,
        _ => Media::Other,
    }
}
