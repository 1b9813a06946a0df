//! Requests over HTTP that have no answer: why, and who has to be told.

use std::time::Duration;

use footbridge_outbound::web::SendError;
use http::{Response, header};
use rmcp::{model::ClientJsonRpcMessage, transport::streamable_http_client::StreamableHttpError};

use super::{
    message,
    pending_request::{Answer, PendingRequest},
};

/// Why a server wants other credentials, for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Login {
    /// It got none.
    #[error(
        "it needs a login. Put its token into \"headers\" of its entry, for example \
         {{\"Authorization\": \"Bearer ${{TOKEN}}\"}}"
    )]
    Missing,
    /// It got none, and offers OAuth.
    #[error(
        "it needs a login by OAuth, which is not spoken here. If it takes tokens too, put one into \"headers\" of its \
         entry, for example {{\"Authorization\": \"Bearer ${{TOKEN}}\"}}"
    )]
    OAuth,
    /// It got some.
    #[error("it does not accept the credentials in \"headers\" of its entry. Look whether they expired")]
    Refused,
    /// It knows who asks.
    #[error("it forbids what was asked. Look at what the credentials in \"headers\" of its entry may do")]
    Forbidden,
}

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
    #[error("it answered HTTP {0}: {1}")]
    Login(u16, Login),
    /// It leads elsewhere.
    #[error("it answered HTTP {0}, a redirect, which is not followed; configure the final URL")]
    Redirect(u16),
    /// It is asked too often; for how long to wait, if it says that.
    #[error("it answered HTTP 429: it is asked too often")]
    Throttled(Option<Duration>),
    /// Another status.
    #[error("it answered HTTP {0}")]
    Status(u16),
    /// An answer that is none.
    #[error("its answer cannot be used: {0}")]
    Unusable(&'static str),
    /// A message that is no JSON.
    #[error("the message cannot be written")]
    Unwritten,
    /// The caller left first.
    #[error("withdrawn before it was sent")]
    Withdrawn,
}

impl HttpError {
    /// Whether the server may have the request, and carry it out, though it said nothing.
    pub(super) fn may_have_got_there(&self) -> bool {
        matches!(self, Self::Send(SendError::Lost(_) | SendError::Interim) | Self::Lost(_))
    }

    /// The same for whoever waits for the answer to a request; `not_taken`: the server says by its status that it did
    /// not take the request.
    pub(super) fn answer(&self, not_taken: bool) -> Answer {
        match self {
            Self::Send(SendError::Connect(_)) => {
                Answer::Refused("cannot be reached. Nothing was sent; try again, or ask the operator")
            }
            Self::Send(SendError::Lost(_)) | Self::Lost(_) => Answer::Lost,
            Self::Login(..) => Answer::Declined("needs a login, it says, and did nothing; ask the operator"),
            // The same is to be asked elsewhere; of others, it may be what came of it that is there (RFC 9110, 15.4).
            Self::Redirect(307 | 308) => Answer::Declined(
                "answered with a redirect, which is not followed, and did nothing; ask the operator, who can configure the \
                 final URL",
            ),
            Self::Throttled(retry_after) => Answer::Throttled(*retry_after),
            // What MCP has it say, by any request of a session that it ended.
            Self::Status(404) if not_taken => Answer::Declined(
                "ended its session, it says (HTTP 404), and did nothing. A new one is opened: call again; if it says so \
                 again, try other arguments, or ask the operator",
            ),
            Self::Status(_) if not_taken => Answer::Declined(
                "did not take the request, it says (HTTP 400), and did nothing. If its session ended, a new one is opened: \
                 call again, or with other arguments",
            ),
            Self::Unwritten | Self::Withdrawn => Answer::Refused("was not sent the request; try again"),
            Self::Send(SendError::Interim) | Self::Redirect(_) | Self::Status(_) | Self::Unusable(_) => {
                Answer::Unusable
            }
        }
    }
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

    /// Whether it is a request of a caller, and none of the connection's own.
    pub(super) fn is_callers(&self) -> bool {
        self.pending.is_some()
    }

    /// Puts the answer in, if somebody waits.
    pub(super) fn answer(&self, answer: Answer) {
        if let Some(pending) = &self.pending {
            pending.answer(answer);
        }
    }

    /// The same with what an error means, and the error for the library.
    pub(super) fn failed(&self, error: HttpError, not_taken: bool) -> Failure {
        self.fails(error.answer(not_taken), error)
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
