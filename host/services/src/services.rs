//! All services of one harness, and what carries admitted requests to them.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    error::Error as _,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use footbridge_audit::UsageRecord;
use footbridge_calls::{
    cause::Cause,
    provider::{NoAnswer, NotSent, Outcome, Outgoing, Unanswered},
    request::OutgoingRequest,
    service::{Forward, HeldRequest, KnownService, ServiceCall},
    session::Spending,
};
use footbridge_core::{
    budget::Share,
    limits::{Limits, ServiceLimits},
    names::ServerName,
    redact::Redactor,
    service::TUNNELS,
};
use footbridge_outbound::{InterimAnswers, Lookup, SystemLookup, head_bytes};
use futures::future::BoxFuture;
use h2::Reason;
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use hyper::body::{Body as _, Incoming};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::{
    answer::{ServiceAnswer, ServiceBody, crossing},
    answer_body::AnswerBody,
    client::{Clients, ServiceClient, ServiceLease, most_idle},
    connect::{Connector, Dialling, Protocols, Way, connected},
    connections::{Carrier, Known, RequestError},
    no_connection::NoConnection,
    pace::Pace,
    passing::Begun,
    request::Parcel,
    shape::ErrorShape,
    shares::Shares,
    spec::ServiceSpec,
    told::Told,
    upload::{Tally, UploadBounds, UploadError, Uploaded},
    usage::{UsageOf, estimated, hides_usage},
    websocket::{Handshake, WebSocket, say_upgrade},
    windows::unanswered,
};

/// All services. Clones share them.
#[derive(Clone)]
pub struct Services(Arc<Inner>);

struct Inner {
    all: RwLock<BTreeMap<String, Arc<Service>>>,
    dialling: Dialling,
    /// Connections that are kept idle of one session and service, at most.
    most_idle: usize,
}

/// A service with its connections.
struct Service {
    spec: ServiceSpec,
    /// No other one of this process has the same.
    revision: u64,
    /// Finds what must not show of its credential.
    redactor: Redactor,
    clients: Clients,
    /// For requests that become WebSockets, each over a connection of its own.
    websockets: Option<Clients>,
    told: Told,
}

/// What a new configuration changed, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServicesChanged {
    /// Services that are new.
    pub added: Vec<ServerName>,
    /// Services that are gone.
    pub removed: Vec<ServerName>,
    /// Services that are something else than before.
    pub changed: Vec<ServerName>,
}

impl ServicesChanged {
    fn between(before: &BTreeMap<String, Arc<Service>>, now: &BTreeMap<String, Arc<Service>>) -> Self {
        let names = |all: &BTreeMap<String, Arc<Service>>, is_it: &dyn Fn(&str, &Arc<Service>) -> bool| {
            let those = all.iter().filter(|(name, service)| is_it(name, service));
            those.map(|(_, service)| service.spec.name.clone()).collect()
        };
        Self {
            added: names(now, &|name, _| !before.contains_key(name)),
            removed: names(before, &|name, _| !now.contains_key(name)),
            changed: names(now, &|name, service| before.get(name).is_some_and(|old| !Arc::ptr_eq(old, service))),
        }
    }
}

/// How many services were made.
static REVISIONS: AtomicU64 = AtomicU64::new(0);

/// Whether something can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCheck {
    /// The service's name, or the host and port of a tunnel.
    pub what: String,
    /// Why not; nothing of a pattern that stands for many hosts.
    pub found: Option<Result<(), NoConnection>>,
}

/// Whether a host of tunnels takes connections.
async fn reachable(services: &Services, authority: &str) -> Result<(), NoConnection> {
    let service = services.get(TUNNELS).ok_or(NoConnection::Name)?;
    connected(Way::to(&service.spec, &services.0.dialling, None), authority).await.map(drop)
}

impl Services {
    /// These services, to which there may be so many connections, and whose names the system resolves.
    #[must_use]
    pub fn new(specs: Vec<ServiceSpec>, limits: &ServiceLimits, connections: usize) -> Self {
        Self::resolving(specs, limits, connections, Arc::new(SystemLookup))
    }

    /// These services, whose names are resolved like this.
    #[must_use]
    pub fn resolving(
        specs: Vec<ServiceSpec>,
        limits: &ServiceLimits,
        connections: usize,
        lookup: Arc<dyn Lookup>,
    ) -> Self {
        let dialling = Dialling {
            lookup,
            shares: Arc::new(Shares::new(connections)),
            time: limits.connect_time,
            silence: limits.silence_time,
            unanswered: unanswered(limits),
        };
        let (all, most_idle) = (RwLock::default(), most_idle(connections));
        let services = Self(Arc::new(Inner { all, dialling, most_idle }));
        services.replace(specs);
        services
    }

    /// Takes these instead. Those that are as they were keep their connections; requests that run go on. One whose
    /// credential cannot be read any more keeps the one that it had.
    pub fn replace(&self, specs: Vec<ServiceSpec>) -> ServicesChanged {
        // Certificates are read for those that are new: requests do not wait for that.
        let before = self.0.all.read().unwrap_or_else(PoisonError::into_inner).clone();
        let kept = |spec: ServiceSpec| {
            let before = before.get(spec.name.as_str());
            let spec = match before {
                Some(before) => spec.with_credential_of(&before.spec),
                None => spec,
            };
            let name = spec.name.to_string();
            match before {
                Some(same) if same.spec == spec => Some((name, Arc::clone(same))),
                _ => match self.connected(spec) {
                    Ok(service) => Some((name, Arc::new(service))),
                    Err(error) => {
                        tracing::error!(service = %name, %error, "this service cannot be used: its certificates cannot be read");
                        None
                    }
                },
            }
        };
        let now: BTreeMap<String, Arc<Service>> = specs.into_iter().filter_map(kept).collect();
        let changed = ServicesChanged::between(&before, &now);
        *self.0.all.write().unwrap_or_else(PoisonError::into_inner) = now;
        changed
    }

    fn connected(&self, spec: ServiceSpec) -> Result<Service, rustls::Error> {
        let connector = |protocols| Connector::new(&spec, &self.0.dialling, protocols);
        // Of hosts there are as many as a guest thinks of: nothing is kept for each of them.
        let idle = if spec.origin.authority.is_some() { self.0.most_idle } else { 0 };
        let clients = Clients::new(connector(Protocols::All)?, idle);
        let own = spec.rules.websocket.then(|| connector(Protocols::Http1)).transpose()?;
        let websockets = own.map(|connector| Clients::new(connector, 0));
        let revision = REVISIONS.fetch_add(1, Ordering::Relaxed);
        let redactor = Redactor::of_one(&spec.secrets);
        Ok(Service { clients, websockets, redactor, spec, revision, told: Told::default() })
    }

    fn get(&self, name: &str) -> Option<Arc<Service>> {
        self.0.all.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// What a service is; none where there is none of this name.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<ServiceSpec> {
        self.get(name).map(|service| service.spec.clone())
    }

    /// Connects to a service, or to each host that tunnels may lead to, and says why that fails. Nothing is asked of it.
    pub async fn check(&self, name: &str) -> Vec<HostCheck> {
        let Some(service) = self.get(name).filter(|_| name == TUNNELS) else {
            return vec![HostCheck { what: name.to_owned(), found: Some(self.check_one(name).await) }];
        };
        let mut all = Vec::new();
        for pattern in service.spec.rules.requests.iter().flatten() {
            let host = pattern.path().trim_start_matches('/').trim_end_matches("/**");
            let found = if host.starts_with("*.") { None } else { Some(reachable(self, host).await) };
            all.push(HostCheck { what: host.to_owned(), found });
        }
        all
    }

    async fn check_one(&self, name: &str) -> Result<(), NoConnection> {
        let Some(service) = self.get(name) else { return Err(NoConnection::Name) };
        let connector = Connector::new(&service.spec, &self.0.dialling, Protocols::All);
        let mut connector = connector.map_err(|_| NoConnection::Certificate)?;
        let address = service.spec.origin.uri("/", None).map_err(|_| NoConnection::Name)?;
        connector.call(address).await.map(drop).map_err(|error| NoConnection::of(&*error))
    }

    /// The way to what a service leads to, and which one of its name that is.
    pub(crate) fn way(&self, name: &str, session: u64, limits: &ServiceLimits) -> Option<(Way, u64)> {
        let service = self.get(name)?;
        Some((Way::to(&service.spec, &self.0.dialling.within(limits), Some(session)), service.revision))
    }

    /// Tells the operator that a tunnel could not be opened.
    pub(crate) fn has_no_tunnel(&self, authority: &str, why: NoConnection) {
        if let Some(service) = self.get(TUNNELS) {
            service.told.no_connection(TUNNELS, &authority, why);
        }
    }

    /// The shape of errors that clients of a service expect.
    #[must_use]
    pub fn shape(&self, name: &str) -> ErrorShape {
        self.get(name).map(|service| service.spec.shape).unwrap_or_default()
    }
}

impl Forward for Services {
    type Parcel = Parcel;
    type Answer = ServiceAnswer;

    fn known(&self, service: &str) -> Option<KnownService> {
        let known = |service: Arc<Service>| {
            let (rules, revision) = (Arc::clone(&service.spec.rules), service.revision);
            KnownService { rules, revision }
        };
        self.get(service).map(known)
    }

    fn hold<'a>(
        &'a self,
        parcel: &'a mut Parcel,
        room: &'a Share,
        limit: usize,
    ) -> BoxFuture<'a, Result<HeldRequest, Cause>> {
        let headers = parcel.headers_that_matter();
        Box::pin(async move { Ok(HeldRequest { headers, ..parcel.body.hold(room, limit).await? }) })
    }

    fn send(
        &self,
        outgoing: Outgoing,
        parcel: Parcel,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<ServiceAnswer, Unanswered>> + Send {
        // Here, since a future has room for all that it is given.
        let gone = || Outcome::not_offered(outgoing.server());
        let service = self.get(outgoing.server().as_str()).ok_or_else(gone);
        let ready = service.and_then(|service| service.make_ready(outgoing, parcel));
        async move { ready?.send(cancel).await }
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
struct Ready {
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
    async fn send(self: Box<Self>, cancel: &CancellationToken) -> Result<ServiceAnswer, Unanswered> {
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
    fn make_ready(self: Arc<Self>, outgoing: Outgoing, mut parcel: Parcel) -> Result<Box<Ready>, Outcome> {
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
