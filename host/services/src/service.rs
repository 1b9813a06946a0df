//! One service: what is asked of it is made ready, sent once, and becomes an answer, or what there is in its place.
//!
//! Failure paths: no credential, no connection (nothing was sent); nobody waits any more, silence, an answer that cannot be
//! used, an end without one (unknown, unless there was no connection yet).

use std::{
    borrow::Cow,
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use footbridge_audit::UsageRecord;
use footbridge_calls::{
    provider::{NoAnswer, NotSent, Outcome, Outgoing, Unanswered},
    request::OutgoingRequest,
    service::ServiceCall,
    session::Spending,
};
use footbridge_core::{
    limits::{Limits, ServiceLimits},
    redact::Redactor,
};
use footbridge_outbound::{InterimAnswers, head_bytes};
use h2::Reason;
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use hyper::body::{Body as _, Incoming};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    answer::{ServiceAnswer, ServiceBody, crossing},
    answer_body::AnswerBody,
    client::{Clients, ServiceClient, ServiceLease},
    connect::{Connector, Dialling, Protocols},
    connections::{Carrier, Known, RequestError},
    no_connection::NoConnection,
    pace::Pace,
    passing::Begun,
    request::Parcel,
    spec::ServiceSpec,
    told::Told,
    upload::{Tally, UploadBounds, UploadError, Uploaded},
    usage::{UsageOf, estimated, hides_usage},
    websocket::{Handshake, WebSocket, say_upgrade},
};

/// A service with its connections.
pub(crate) struct Service {
    pub(crate) spec: ServiceSpec,
    /// No other one of this process has the same.
    pub(crate) revision: u64,
    /// Finds what must not show of its credential.
    redactor: Redactor,
    clients: Clients,
    /// For requests that become WebSockets, each over a connection of its own.
    websockets: Option<Clients>,
    pub(crate) told: Told,
}

/// How many services were made.
static REVISIONS: AtomicU64 = AtomicU64::new(0);

impl Service {
    /// As it is written, of whose connections so many are kept idle for a session.
    ///
    /// # Errors
    /// Where the certificates of the machine cannot be read.
    pub(crate) fn new(spec: ServiceSpec, dialling: &Dialling, most_idle: usize) -> Result<Self, rustls::Error> {
        let connector = |protocols| Connector::new(&spec, dialling, protocols);
        // Of hosts there are as many as a guest thinks of: nothing is kept for each of them.
        let idle = if spec.origin.authority.is_some() { most_idle } else { 0 };
        let clients = Clients::new(connector(Protocols::All)?, idle);
        let own = spec.rules.websocket.then(|| connector(Protocols::Http1)).transpose()?;
        let websockets = own.map(|connector| Clients::new(connector, 0));
        let revision = REVISIONS.fetch_add(1, Ordering::Relaxed);
        let redactor = Redactor::of_one(&spec.secrets);
        Ok(Self { clients, websockets, redactor, spec, revision, told: Told::default() })
    }
}

/// Whether an answer came that cannot be read: its head is none of HTTP/1, or has more headers than are read.
fn is_unreadable(error: &RequestError) -> bool {
    error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>()).is_some_and(hyper::Error::is_parse)
}

/// Whether an origin says that it has not processed a request, and will not (RFC 9113, 8.7). That a connection goes away says
/// so of later streams alone, and which one this was is not in the error.
fn is_refused(error: &RequestError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(said) = error.downcast_ref::<h2::Error>() {
            return said.is_remote() && said.is_reset() && said.reason() == Some(Reason::REFUSED_STREAM);
        }
        cause = error.source();
    }
    false
}

/// An answer, but for the beginning of a WebSocket that nobody asked for or agreed to: nobody could know what comes then.
fn agreed(response: Response<Incoming>, asked: Option<Handshake>) -> Result<Response<Incoming>, Outcome> {
    let is_agreed = || asked.is_some_and(|asked| asked.is_agreed(response.headers()));
    if response.status() != StatusCode::SWITCHING_PROTOCOLS || is_agreed() {
        return Ok(response);
    }
    Err(Outcome::Unknown(NoAnswer::Unusable))
}

/// An answer, if all that was said is within its limit, its body is coded as chunks alone, and the budget has as many bytes left as
/// it says that it has.
fn usable(
    response: Response<Incoming>,
    interim: &InterimAnswers,
    limits: &ServiceLimits,
    spending: Option<&Spending>,
) -> Result<Response<Incoming>, Outcome> {
    let headers = response.headers();
    let said = interim.bytes() + head_bytes(headers);
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_coded = match (codings.next(), codings.next()) {
        (None, _) => false,
        (Some(coding), None) => !coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        _ => true,
    };
    if said > limits.answer_head_bytes || is_coded {
        return Err(Outcome::Unknown(NoAnswer::Unusable));
    }
    let covers = match (spending, response.body().size_hint().exact()) {
        (Some(spending), Some(length)) => spending.covers(length),
        _ => Ok(()),
    };
    covers.map_or_else(|of| Err(Outcome::Unknown(NoAnswer::OverBudget(of))), |()| Ok(response))
}

/// What is asked of the service with this number, where that is the one that was decided about.
pub(crate) fn asked_of(
    revision: u64,
    request: OutgoingRequest,
    other: impl FnOnce() -> Outcome,
) -> Result<Box<ServiceCall>, Outcome> {
    match request {
        OutgoingRequest::Service(call) if call.revision() == revision => Ok(call),
        OutgoingRequest::Service(_) => Err(Outcome::NotSent(NotSent::Changed)),
        _ => Err(other()),
    }
}

/// A request that can be sent, and what is done about its answer.
pub(crate) struct Ready {
    service: Arc<Service>,
    client: Arc<ServiceClient>,
    request: Request<Box<Uploaded>>,
    carrier: Carrier,
    tally: Arc<Tally>,
    handshake: Option<Handshake>,
    interim: InterimAnswers,
    usage: Option<UsageOf>,
    redactor: Redactor,
    limits: Arc<Limits>,
    spending: Option<Spending>,
    pace: Pace,
}

impl Ready {
    pub(crate) async fn send(self: Box<Self>, cancel: &CancellationToken) -> Result<ServiceAnswer, Unanswered> {
        let (service, carrier, tally, interim) = (&self.service, &self.carrier, &self.tally, &self.interim);
        let (limits, spending) = (&self.limits.services, self.spending.as_ref());
        let since = Instant::now();
        let until = since + limits.total_time;
        let answered = tokio::select! {
            // In a place of its own, which is free again while the answer is read.
            answered = Box::pin(self.client.request(self.request, carrier)) => {
                answered.map_err(|error| service.failed(&error, tally))
            }
            () = interim.too_much() => Err(Outcome::Unknown(NoAnswer::Unusable)),
            () = cancel.cancelled() => Err(service.given_up(carrier, NoAnswer::Cancelled)),
            is_silent = tally.silent(limits.silence_time, until) => {
                if is_silent {
                    carrier.connection().iter().for_each(Known::gives_no_more);
                }
                Err(service.given_up(carrier, NoAnswer::Timeout))
            }
        };
        let handshake = self.handshake;
        let answered = answered.and_then(|(response, lease)| Ok((agreed(response, handshake)?, lease)));
        let usable = |response| usable(response, interim, limits, spending);
        let answered = answered.and_then(|(response, lease)| Ok((usable(response)?, lease)));
        let (response, lease) = answered.map_err(|outcome| service.unanswered(outcome, tally, spending))?;
        let first_byte_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (silence, redactor, usage) = (limits.silence_time, self.redactor, self.usage);
        let (upload, spending, pace) = (self.tally, self.spending, self.pace);
        let begun = Begun { upload, redactor, usage, silence, until, first_byte_ms, spending, pace };
        Ok(if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.service.websocket(response, begun, &self.limits.services, &lease)
        } else {
            self.service.answer(response, begun, lease)
        })
    }
}

impl Service {
    /// In a place of its own: whoever waits for the answer needs no room for what a request is made of.
    pub(crate) fn make_ready(self: Arc<Self>, outgoing: Outgoing, mut parcel: Parcel) -> Result<Box<Ready>, Outcome> {
        self.has_credential()?;
        let all: Arc<Limits> = outgoing.limits();
        let limits = &all.services;
        let (spending, session, pace) = (outgoing.spending().cloned(), outgoing.session(), Pace::new(outgoing.looks()));
        let takes_trailers = parcel.keep_own_headers();
        let redactor = self.sparing(&outgoing, &parcel.headers);
        let (server, request) = outgoing.into_parts();
        let unusable = || Outcome::not_offered(&server);
        let call = asked_of(self.revision, request, unusable)?;
        let uri = self.spec.origin.uri(call.path().as_written(), call.query()).map_err(|_| unusable())?;
        let (bytes, sent) = (limits.request_bytes, redactor.sent());
        let bounds = UploadBounds { bytes, spending: spending.clone(), sent, pace: pace.another() };
        let (mut request, tally) = parcel.into_request(takes_trailers, &self.spec, uri, bounds).ok_or_else(unusable)?;
        let handshake = call.is_websocket().then(|| Handshake::begin(request.headers_mut()));
        self.leaves_no_tokens_uncounted(request.uri(), request.headers(), handshake.is_some(), spending.as_ref())?;
        let interim = InterimAnswers::count(&mut request, limits.answer_head_bytes);
        let usage = UsageOf::asked(request.method(), request.uri()).filter(|_| self.spec.usage);
        let of_websockets = self.websockets.as_ref().filter(|_| handshake.is_some());
        let client = of_websockets.unwrap_or(&self.clients).of(session, limits);
        Ok(Box::new(Ready {
            service: self,
            client,
            request,
            carrier: Carrier::default(),
            tally,
            handshake,
            interim,
            usage,
            redactor,
            limits: all,
            spending,
            pace,
        }))
    }

    /// A WebSocket of a model is none where its tokens count, nor is a request whose answer is not to tell of them.
    fn leaves_no_tokens_uncounted(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        is_websocket: bool,
        spending: Option<&Spending>,
    ) -> Result<(), Outcome> {
        if !self.spec.usage || !spending.is_some_and(Spending::limits_tokens) {
            return Ok(());
        }
        let what = match () {
            () if is_websocket => "opens no WebSocket".to_owned(),
            () if let Some(word) = hides_usage(self.spec.shape, uri, headers) => format!("takes no {word}"),
            () => return Ok(()),
        };
        let why = format!(
            "Service \"{}\" {what} in a session with budget.tokens: nobody reads there how many are used. Nothing was sent",
            self.spec.name
        );
        Err(Outcome::NotSent(NotSent::Unreached { why, may_pass: false }))
    }

    /// What became of a request that nobody waits for any more: with a connection it may have left, and without one it has
    /// not.
    fn given_up(&self, carrier: &Carrier, why: NoAnswer) -> Outcome {
        if carrier.connection().is_some() {
            return Outcome::Unknown(why);
        }
        Outcome::NotSent(match why {
            NoAnswer::Cancelled => NotSent::Cancelled,
            _ => self.unreached(NoConnection::TooSlow),
        })
    }

    /// A request without an answer, and what of it went. What a model was asked it may have done, and it counts.
    fn unanswered(&self, outcome: Outcome, tally: &Tally, spending: Option<&Spending>) -> Unanswered {
        // From here on nothing more of it goes.
        tally.stop(UploadError::Unanswered);
        let mut passed = (!matches!(outcome, Outcome::NotSent(_))).then(|| tally.passed_on());
        let counts = self.spec.usage && matches!(outcome, Outcome::Unknown(_));
        if let Some(passed) = passed.as_mut().filter(|_| counts) {
            let tokens = estimated(passed.sent);
            // Whoever is over its budget by it hears so at the next request.
            let _over = spending.map(|spending| spending.tokens(tokens));
            passed.usage = Some(UsageRecord { tokens_estimated: Some(tokens), ..UsageRecord::default() });
        }
        Unanswered { outcome, passed }
    }

    fn unreached(&self, why: NoConnection) -> NotSent {
        why.not_sent(format_args!("Service \"{}\"", self.spec.name))
    }

    /// What finds the credential in the answer, but for where its guest said it.
    fn sparing(&self, outgoing: &Outgoing, own: &HeaderMap) -> Redactor {
        let headers: Vec<Cow<'_, str>> = own.values().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let said = outgoing.request().texts().chain(headers.iter().map(|value| &**value));
        self.redactor.sparing(said).counting_anew()
    }

    /// What there is to send with is there.
    fn has_credential(&self) -> Result<(), Outcome> {
        let Some(why) = &self.spec.lacks_credential else { return Ok(()) };
        let name = &self.spec.name;
        self.told.no_credential(name.as_str(), why);
        let why = format!(
            "Service \"{name}\" has no credential: \"footbridge services check {name}\" says why to the operator. \
             Nothing was sent"
        );
        Err(Outcome::NotSent(NotSent::Unreached { why, may_pass: false }))
    }

    fn answer(&self, response: Response<Incoming>, begun: Begun, lease: ServiceLease) -> ServiceAnswer {
        let (head, body) = response.into_parts();
        if head.status == StatusCode::UNAUTHORIZED && self.spec.credential.is_some() {
            self.told.not_taken(self.spec.name.as_str());
        }
        let redactor = begun.redactor.clone();
        let body = ServiceBody::Passes(Box::new(AnswerBody::new(body, &head, begun, lease)));
        ServiceAnswer { status: head.status, headers: crossing(head.headers, &self.spec, &redactor), body }
    }

    fn websocket(
        &self,
        mut response: Response<Incoming>,
        begun: Begun,
        limits: &ServiceLimits,
        lease: &ServiceLease,
    ) -> ServiceAnswer {
        lease.meter().iter().for_each(|meter| meter.ends());
        let connection = hyper::upgrade::on(&mut response);
        let status = response.status();
        let mut headers = crossing(std::mem::take(response.headers_mut()), &self.spec, &begun.redactor);
        say_upgrade(&mut headers);
        ServiceAnswer {
            status,
            headers,
            body: ServiceBody::WebSocket(Box::new(WebSocket::new(connection, begun, limits, self.spec.usage))),
        }
    }

    /// What became of a request that has no answer.
    fn failed(&self, error: &RequestError, tally: &Tally) -> Outcome {
        let name = &self.spec.name;
        if matches!(error, RequestError::Connect(_)) {
            let why = NoConnection::of(error);
            self.told.no_connection(name.as_str(), &self.spec.origin, why);
            tracing::debug!(service = %name, error = ?error, "why there is no connection");
            return Outcome::NotSent(self.unreached(why));
        }
        tracing::debug!(service = %name, error = ?error, "no answer");
        match () {
            () if is_refused(error) => Outcome::Refused(format!(
                "Service \"{name}\" did not take the request: it may be made again. Nothing was done"
            )),
            () if let Some(of) = tally.spent() => Outcome::Unknown(NoAnswer::OverBudget(of)),
            () if tally.why() == Some(UploadError::Over) => Outcome::Unknown(NoAnswer::TooMuchSent),
            () if tally.why() == Some(UploadError::Cut) => Outcome::Unknown(NoAnswer::BodyBroken),
            () if is_unreadable(error) => Outcome::Unknown(NoAnswer::Unusable),
            () => Outcome::Unknown(NoAnswer::ServerGone),
        }
    }
}
