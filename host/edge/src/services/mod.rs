//! Requests to services: `/s/NAME/...`, with the session's token where a client puts its key; and what a proxy is asked
//! for, which is the service of tunnels.
//!
//! `head` reads what is asked, `errors` says why it is refused in the shape that the service's client prints, and here
//! it is carried out, to its end whatever becomes of its client: when that leaves it is cancelled, as far as the
//! connection to the origin. What the client hears while a person is asked is in `waiting`. A tunnel's connection, and a
//! WebSocket's, is handed on by hyper once its answer is written. It refuses to know what the stages decide, and how a
//! request gets to its service.
//!
//! Failure paths: a refused head reads past the body within limits, but where its client waits to be asked for it; an
//! answer that breaks off cuts its connection, so that nobody takes it for whole.

mod errors;
mod head;
mod waiting;

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Response, header, request::Parts};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    detach_on_drop::DetachOnDrop,
    http::{
        body,
        connections::ConnectionPlace,
        response::{self, Next, Pieces, Source},
        stream::Phase,
    },
    live::LEAST_HEARTBEAT,
};
use footbridge_calls::{
    auth::Principal,
    call::Stages,
    cause::Cause,
    service::{Forward, ServiceRequest, Waiter, WholeRequest, still_passes},
    session::Session,
    watcher::Watcher,
};
use footbridge_services::{
    AnswerBody, AnswerPart, Behind, CarryOver, ErrorShape, Parcel, ServiceAnswer, ServiceBody, Services, Tunnel,
    Tunnels, Upload, WebSocket,
};

pub(crate) use errors::RefusedHead;
use errors::Told;
pub(crate) use head::{ServiceHead, is_of_proxy, is_service_path};
use waiting::{Begun, RunningRequest, Telling, Waiting};

/// A connection that may become a tunnel, or a WebSocket.
pub(crate) struct Upgrade {
    pub(crate) connection: OnUpgrade,
    pub(crate) phase: Phase,
    /// Its place, for as long as the tunnel lasts.
    pub(crate) place: Arc<ConnectionPlace>,
    /// Ends it with the harness.
    pub(crate) shutdown: CancellationToken,
    /// Done once what passes over it may not any more.
    pub(crate) no_more: BoxFuture<'static, ()>,
}

impl Upgrade {
    /// Has it end once rules or services do not let this request pass any more, where it becomes more than a request.
    fn ends_with_its_rules<F>(&mut self, carrier: &F, principal: &Principal, request: &ServiceRequest)
    where
        F: Forward + Clone + 'static,
    {
        if request.is_websocket || request.is_tunnel() {
            self.no_more = passes_no_more(carrier.clone(), principal.clone(), request.clone()).boxed();
        }
    }
}

/// What carries requests to services out.
pub(crate) struct ServiceFront<'a> {
    pub(crate) stages: &'a Arc<Stages>,
    pub(crate) services: &'a Services,
    pub(crate) tasks: &'a TaskTracker,
    pub(crate) session: &'a Session,
    /// How long a stream of events may be quiet.
    pub(crate) heartbeat: Duration,
}

impl ServiceFront<'_> {
    /// Refuses a head of nobody who is known, in the shape of its service. What was not read of it is read past.
    pub(crate) async fn refuse(&self, head: &ServiceHead<'_>, why: RefusedHead, unread: Incoming) -> Response<Pieces> {
        if !head.waits_to_send() {
            body::drain_upload(unread, self.session).await;
        }
        errors::refused(self.told(head), why, None)
    }

    /// The same of a principal: that is recorded.
    pub(crate) async fn refuse_of(
        &self,
        principal: Principal,
        head: &ServiceHead<'_>,
        why: RefusedHead,
        unread: Option<Incoming>,
    ) -> Response<Pieces> {
        if let Some(unread) = unread.filter(|_| !head.waits_to_send()) {
            body::drain_upload(unread, self.session).await;
        }
        let told = self.told(head);
        let failure = self.stages.refuse_head(principal, head.service, head.recorded(why), why.cause()).await;
        match &failure.record {
            Some(record) if *failure.cause == why.cause() => errors::refused(told, why, Some(record)),
            _ => errors::failed(told, &failure),
        }
    }

    /// Whom errors of this head are told: as its service does, if the session may know of it.
    fn told(&self, head: &ServiceHead<'_>) -> Told {
        let is_seen = self.session.sees_service(head.service);
        let shape = if is_seen { self.services.shape(head.service) } else { ErrorShape::default() };
        let shape = shape.of_request(head.method(), head.path());
        Told { shape, of_proxy: head.is_of_proxy() }
    }

    /// Carries a request out and answers it. Dropping this future, or the answer's body, cancels it.
    pub(crate) async fn carry_out(
        &self,
        principal: Principal,
        head: Parts,
        incoming: Incoming,
        mut upgrade: Upgrade,
    ) -> Response<Pieces> {
        let asked = ServiceHead::of(&head);
        let told = self.told(&asked);
        let request = match asked.request(principal.session().limits().services.request_bytes) {
            Ok(request) => request,
            Err(why) => return Box::pin(self.refuse_of(principal, &asked, why, Some(incoming))).await,
        };
        let (waits, is_websocket) = (asked.waits_to_send(), request.is_websocket);
        upgrade.ends_with_its_rules(self.services, &principal, &request);
        let cancel = principal.session().over().child_token();
        let guard = cancel.clone().drop_guard();
        let accepts_events = waiting::accepts_events(&head.headers);
        let whole = WholeRequest { request, parcel: Parcel::new(head.method, head.headers, incoming) };
        let upload = whole.parcel.body.clone();
        let behind = Behind { tasks: self.tasks.clone(), cancel: cancel.clone(), guard };
        let (watcher, question) = Watcher::listening_for_question();
        let (stages, services) = (Arc::clone(self.stages), self.services.clone());
        let waiter = Waiter { cancel, watcher };
        let forwards = async move { stages.forward(principal, whole, &services, waiter).await };
        let mut running = RunningRequest::new(self.tasks, forwards, || Err(Cause::HarnessFailed.into()));
        let every = self.heartbeat.max(LEAST_HEARTBEAT);
        let forwarded = tokio::select! {
            biased;
            forwarded = &mut running => forwarded,
            asked = waiting::asked_for_long(question, every) => {
                let takes_events = accepts_events || upload.asks_for_stream();
                if told.shape.takes_comments() && takes_events && !is_websocket {
                    let telling = Telling { shape: told.shape, phase: upgrade.phase, behind };
                    return response::events(Waiting::new(running, &asked, every, telling, begun));
                }
                running.await
            }
        };
        match forwarded {
            Ok(answer) => self.answer(answer, told.shape, upgrade, behind),
            Err(failure) => {
                let is_asked_for = !waits || upload.is_begun();
                self.read_past(errors::failed(told, &failure), upload, is_asked_for).await
            }
        }
    }

    /// A refusal, once what was not read of the request is read past.
    async fn read_past(&self, mut refusal: Response<Pieces>, upload: Upload, is_asked_for: bool) -> Response<Pieces> {
        match upload.left() {
            // To read it would be to ask for it.
            Some(_) if !is_asked_for => {
                refusal.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Some(left) => Box::pin(body::drain_upload(left, self.session)).await,
            None => {}
        }
        refusal
    }

    /// The answer, while it comes.
    fn answer(&self, answer: ServiceAnswer, shape: ErrorShape, upgrade: Upgrade, behind: Behind) -> Response<Pieces> {
        let ServiceAnswer { status, mut headers, body } = answer;
        let pieces = match body {
            ServiceBody::WebSocket(websocket) => {
                upgrade.phase.becomes_tunnel();
                self.tasks.spawn(carry(Far::WebSocket(websocket), upgrade, behind));
                Pieces::default()
            }
            ServiceBody::Passes(body) => {
                if body.is_early() {
                    // What the client still sends is the rest of this request, and no other one.
                    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
                    upgrade.phase.goes_on();
                }
                let passing = Passing::begin(body, shape, upgrade.phase, behind);
                if passing.body.is_over() { Pieces::default() } else { response::live(passing) }
            }
        };
        let mut response = Response::new(pieces);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    /// Opens a tunnel, and answers once it is open. Dropping this future cancels it.
    pub(crate) async fn open_tunnel(
        &self,
        principal: Principal,
        head: Parts,
        mut upgrade: Upgrade,
    ) -> Response<Pieces> {
        let asked = ServiceHead::of(&head);
        let told = self.told(&asked);
        let request = match asked.request(0) {
            Ok(request) => request,
            Err(why) => return self.refuse_of(principal, &asked, why, None).await,
        };
        let cancel = principal.session().over().child_token();
        let guard = cancel.clone().drop_guard();
        let behind = Behind { tasks: self.tasks.clone(), cancel: cancel.clone(), guard };
        let (stages, tunnels) = (Arc::clone(self.stages), Tunnels(self.services.clone()));
        upgrade.ends_with_its_rules(&tunnels, &principal, &request);
        let waiter = Waiter { cancel, watcher: Watcher::silent() };
        let whole = WholeRequest { request, parcel: () };
        let opening = async move { stages.forward(principal, whole, &tunnels, waiter).await };
        match DetachOnDrop::new(self.tasks, opening, || Err(Cause::HarnessFailed.into())).await {
            Ok(tunnel) => {
                upgrade.phase.becomes_tunnel();
                self.tasks.spawn(carry(Far::Tunnel(Box::new(tunnel)), upgrade, behind));
                Response::new(Pieces::default())
            }
            Err(failure) => errors::failed(told, &failure),
        }
    }
}

/// What a connection is handed on to.
enum Far {
    Tunnel(Box<Tunnel>),
    WebSocket(Box<WebSocket>),
}

/// How often it is looked whether what passes over an open connection may still.
const LOOK: Duration = Duration::from_secs(1);

/// Waits until rules or services are others, and do not let a request pass any more.
async fn passes_no_more<F: Forward>(carrier: F, principal: Principal, request: ServiceRequest) {
    while still_passes(&carrier, &principal, &request) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Carries what passes over a connection to its end.
async fn carry(far: Far, upgrade: Upgrade, behind: Behind) {
    let Upgrade { connection, place: _place, shutdown, no_more, .. } = upgrade;
    let over = async {
        tokio::select! {
            () = behind.cancel.cancelled() => CarryOver::Ended,
            () = shutdown.cancelled() => CarryOver::Ended,
            () = no_more => CarryOver::NotAllowed,
        }
    };
    match (connection.await, far) {
        (Ok(client), Far::Tunnel(tunnel)) => tunnel.carry(TokioIo::new(client), over).await,
        (Ok(client), Far::WebSocket(websocket)) => websocket.carry(TokioIo::new(client), over).await,
        // Its client left before it was told; the record says so as what it waited for is dropped.
        (Err(error), _) => tracing::debug!(%error, "a connection that nobody waited for"),
    }
}

/// An answer that is to be handed on behind something else; no WebSocket, which cannot be opened any more then.
fn begun(answer: ServiceAnswer, telling: Telling) -> Option<Begun> {
    let ServiceAnswer { status, headers, body } = answer;
    let Telling { shape, phase, behind } = telling;
    match body {
        ServiceBody::Passes(body) => Some((status, headers, Box::new(Passing::begin(body, shape, phase, behind)))),
        ServiceBody::WebSocket(_) => None,
    }
}

/// A body that passes.
struct Passing {
    body: Box<AnswerBody>,
    /// How its client is told of an error, and which record is of it.
    shape: ErrorShape,
    record: String,
    phase: Phase,
}

impl Passing {
    /// Its client has as long to read it as its service has to write it.
    fn begin(mut body: Box<AnswerBody>, shape: ErrorShape, phase: Phase, behind: Behind) -> Self {
        let record = body.record().unwrap_or_default().to_owned();
        phase.may_be_unread(body.silence(), body.until());
        body.handed_on(behind);
        Self { body, shape, record, phase }
    }
}

impl Source for Passing {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Next>> {
        let part = ready!(self.body.poll_part(cx));
        self.phase.answer_begins();
        Poll::Ready(part.map(|part| match part {
            Ok(AnswerPart::Data(data)) => Next::Piece(data),
            Ok(AnswerPart::Trailers(all)) => Next::Trailers(all),
            Ok(AnswerPart::Spent(of)) => Next::Piece(errors::spent(self.shape, of, &self.record)),
            Err(why) => {
                tracing::debug!(%why, "an answer of a service is cut");
                Next::Broken
            }
        }))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if self.phase.is_unread() {
            self.body.is_not_read();
        }
        self.phase.answered();
    }
}
