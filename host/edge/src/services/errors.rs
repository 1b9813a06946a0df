//! Why a request to a service has no answer of the service: a status that fits, in the shape that its client prints,
//! with the reason and the record.

use bytes::Bytes;
use footbridge_calls::{
    cause::{BudgetOf, Cause, Failure},
    provider::NoAnswer,
    session::OverLimit,
};
use footbridge_core::service::BadPath;
use footbridge_proto::rpc::Reason;
use footbridge_services::{ErrorShape, Said};
use http::{HeaderValue, Response, StatusCode, header};
use hyper::ext::ReasonPhrase;
use serde_json::Value;

use crate::{
    http::{
        refusal::Refusal,
        response::{self, Pieces},
    },
    wording::{ended_by_budget, error_of},
};

/// Whom an error is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// How it reads errors.
    pub(super) shape: ErrorShape,
    /// Whether it asks as of a proxy: such clients show the first line alone.
    pub(super) of_proxy: bool,
}

/// Why a head goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedHead {
    /// For what every request is refused.
    Any(Refusal),
    /// It shows no token, or a wrong one.
    Token,
    /// The same, where it is asked as a proxy is.
    ProxyToken,
    /// It names a host as no proxy is asked for one.
    Address,
    /// A version whose answers end with the connection, where that cannot be told from one that broke off.
    Version,
    /// A tunnel is asked for with a body.
    TunnelBody,
    /// Its token stands where it would leak.
    TokenLeaks,
    /// A method that no service takes.
    Method,
    /// How long its body is can be read in two ways.
    Framing,
    /// Its body is over this limit, bytes.
    TooLarge(usize),
    /// Its path can be read in two ways.
    Path(BadPath),
}

impl RefusedHead {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Any(refusal) => refusal.status(),
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::ProxyToken => StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::TokenLeaks | Self::Framing | Self::TunnelBody | Self::Path(_) | Self::Address => {
                StatusCode::BAD_REQUEST
            }
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    /// The same for the record.
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::TooLarge(limit) => Cause::BodyTooLarge { limit, asked: false },
            _ => Cause::BadHead { why: self.message() },
        }
    }

    fn message(self) -> String {
        match self {
            Self::Any(refusal) => refusal.message().to_owned(),
            Self::Token => "The session's token is not the key of this request: set the client's key to it, as \
                            \"footbridge run --service\" does"
                .to_owned(),
            Self::ProxyToken => {
                "The session's token is not the password of this proxy: set HTTPS_PROXY and HTTP_PROXY \
                                 to http://session:TOKEN@127.0.0.1:PORT, as \"footbridge run --service tunnels\" does"
                    .to_owned()
            }
            Self::Address => "The address is refused: a proxy is asked for \"CONNECT HOST:PORT\", or for \
                              http://HOST[:PORT]/PATH"
                .to_owned(),
            Self::TokenLeaks => "The session's token stands in the address or in a header that would go to the \
                                 service: send it as the key alone"
                .to_owned(),
            Self::Method => {
                "This method is refused: services take methods in capital letters, but for TRACE and CONNECT".to_owned()
            }
            Self::Version => {
                "HTTP/1.0 is refused here: its client could not tell an answer that breaks off from a whole \
                              one. Ask in HTTP/1.1"
                    .to_owned()
            }
            Self::TunnelBody => "A tunnel is asked for without a body: CONNECT has none".to_owned(),
            Self::Framing => "The length of the body is not said once and plainly".to_owned(),
            Self::TooLarge(limit) => format!("The body is over {limit} bytes (limit services.request_bytes)"),
            Self::Path(why) => format!("The path is refused: {why}"),
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Token | Self::ProxyToken => "unauthorized",
            Self::TooLarge(_) => "too_large",
            _ => "bad_request",
        }
    }
}

/// The answer to a head that goes no further, with the record of it, if there is one.
pub(super) fn refused(to: Told, why: RefusedHead, record: Option<&str>) -> Response<Pieces> {
    let status = why.status();
    let said = Said { status: status.as_u16(), message: &why.message(), reason: why.reason(), record };
    let mut response = written(to, status, said);
    add_record(&mut response, record);
    // What is behind it may have been read in another way.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if why == RefusedHead::ProxyToken {
        let basic = HeaderValue::from_static("Basic realm=\"footbridge\"");
        response.headers_mut().insert(header::PROXY_AUTHENTICATE, basic);
    }
    response
}

/// The answer to a request that the stages refused, or that failed.
pub(super) fn failed(to: Told, failure: &Failure) -> Response<Pieces> {
    let status = status_of(&failure.cause, to.shape);
    let message = message_of(failure);
    let reason = failure.cause.reason().as_str();
    let record = failure.record.as_deref();
    let mut response = written(to, status, Said { status: status.as_u16(), message: &message, reason, record });
    let headers = response.headers_mut();
    if let Some(seconds) = retry_after(&failure.cause) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    } else {
        // What the SDKs of model APIs ask before they repeat a request by themselves.
        let says = if matches!(*failure.cause, Cause::NotProcessed(_)) { "true" } else { "false" };
        headers.insert("x-should-retry", HeaderValue::from_static(says));
    }
    add_record(&mut response, record);
    response
}

fn add_record(response: &mut Response<Pieces>, record: Option<&str>) {
    if let Some(record) = record.and_then(|record| HeaderValue::from_str(record).ok()) {
        response.headers_mut().insert("footbridge-record", record);
    }
}

/// What is said of a failure: of services in their own words, where those of all calls name a server.
fn message_of(failure: &Failure) -> String {
    let over =
        |limit: &str| format!("Too many requests at once: try again in a moment. The operator can raise {limit}");
    let sent = "The request was sent, and may have had its effect; do not repeat it blindly";
    match &*failure.cause {
        Cause::OverLimit(OverLimit::Busy) => over("services.in_flight and services.tunnels"),
        Cause::OverLimit(OverLimit::Rate { .. }) => over("services.per_second and services.burst"),
        Cause::NoAnswer { server, why: NoAnswer::Timeout } => format!(
            "Nothing passed to or from service \"{server}\" for too long (limits services.silence_time and \
             services.total_time). {sent}"
        ),
        Cause::NoAnswer { server, why: NoAnswer::ServerGone } => {
            format!("Service \"{server}\" broke off before it answered. {sent}")
        }
        Cause::NoAnswer { server, why: NoAnswer::Unusable } => {
            format!("The answer of service \"{server}\" cannot be used. {sent}")
        }
        _ => error_of(failure).message,
    }
}

/// The event for a request that the stages refused, or that failed, where a stream has begun.
pub(super) fn failed_event(shape: ErrorShape, failure: &Failure) -> Bytes {
    let status = status_of(&failure.cause, shape).as_u16();
    let (message, reason) = (message_of(failure), failure.cause.reason().as_str());
    let said = Said { status, message: &message, reason, record: failure.record.as_deref() };
    shape.event(said).into()
}

/// How the event for an answer begins that is no stream, where one has begun.
pub(super) fn answered_event_begins(status: StatusCode) -> &'static str {
    if status.is_success() { "data: " } else { "event: error\ndata: " }
}

/// The event for such an answer. JSON is what its clients read; of anything else this may be the beginning.
pub(super) fn answered_event(shape: ErrorShape, status: StatusCode, body: &[u8], is_whole: bool) -> Bytes {
    if let (true, Ok(value @ Value::Object(_))) = (is_whole, serde_json::from_slice(body)) {
        return format!("{}{value}\n\n", answered_event_begins(status)).into();
    }
    let more = if is_whole { String::new() } else { format!(", of which these are the first {} bytes", body.len()) };
    let message = format!("the service answered {status}{more}: {}", String::from_utf8_lossy(body));
    let said = Said { status: status.as_u16(), message: &message, reason: "http_error", record: None };
    shape.event(said).into()
}

/// The event that ends a stream whose budget is spent.
pub(super) fn spent(shape: ErrorShape, of: BudgetOf, record: &str) -> Bytes {
    let status = shape.refusal().as_u16();
    let reason = Reason::BudgetSpent.as_str();
    let said = Said { status, message: &ended_by_budget(of), reason, record: Some(record) };
    shape.event(said).into()
}

fn written(to: Told, status: StatusCode, said: Said<'_>) -> Response<Pieces> {
    let (media, body) = to.shape.write(said);
    let mut response = response::typed(to.shape.status(status), media, body.into());
    if to.of_proxy
        && let Some(phrase) = phrase(said)
    {
        response.extensions_mut().insert(phrase);
    }
    response
}

/// What is said, as the end of the first line.
fn phrase(said: Said<'_>) -> Option<ReasonPhrase> {
    let plain = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
    let message: String = said.message.chars().map(plain).collect();
    let record = said.record.map(|record| format!(" (record {record})")).unwrap_or_default();
    ReasonPhrase::try_from(format!("{message}{record}").into_bytes()).ok()
}

fn status_of(cause: &Cause, shape: ErrorShape) -> StatusCode {
    match cause {
        Cause::UnknownService { .. } | Cause::UnknownServer { .. } => StatusCode::NOT_FOUND,
        Cause::RequestNotAllowed { .. }
        | Cause::NoWebSockets { .. }
        | Cause::Policy { .. }
        | Cause::DeniedBefore { .. }
        | Cause::DeniedByPerson
        | Cause::ApprovalExpired
        | Cause::NoUsableAnswer
        | Cause::ApprovalRequired { .. }
        | Cause::BudgetSpent(_)
        | Cause::NoAnswer { why: NoAnswer::OverBudget(_), .. }
        | Cause::ChangedWhileAsked => shape.refusal(),
        Cause::SessionReplaced => StatusCode::UNAUTHORIZED,
        Cause::OverLimit(_) | Cause::ApprovalsPending(_) => StatusCode::TOO_MANY_REQUESTS,
        Cause::BodyTooLarge { .. } | Cause::NoAnswer { why: NoAnswer::TooMuchSent, .. } => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        Cause::BadHead { .. } | Cause::BodyBroken | Cause::NoAnswer { why: NoAnswer::BodyBroken, .. } => {
            StatusCode::BAD_REQUEST
        }
        Cause::NoAnswer { why: NoAnswer::Timeout, .. } => StatusCode::GATEWAY_TIMEOUT,
        Cause::Unavailable(_) | Cause::NotProcessed(_) | Cause::NoAnswer { .. } => StatusCode::BAD_GATEWAY,
        Cause::NotRecorded
        | Cause::GrantNotRecorded
        | Cause::OutcomeNotRecorded
        | Cause::BytesHeld
        | Cause::NoThread
        | Cause::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// How long a person is given before one is asked again, seconds: clients that repeat a request by themselves wait so long.
const A_PERSON: u64 = 30;

/// When it may be asked again, seconds, of what may simply be asked again.
fn retry_after(cause: &Cause) -> Option<u64> {
    match cause {
        Cause::OverLimit(OverLimit::Rate { retry_after_ms }) => Some(retry_after_ms.div_ceil(1000)),
        Cause::OverLimit(OverLimit::Busy) | Cause::BytesHeld | Cause::NoThread => Some(1),
        Cause::ApprovalsPending(_) => Some(A_PERSON),
        _ => None,
    }
}
