//! Requests, each from its head to its answer: what all dialects share.
//!
//! Failure paths: a refused head drains what the client still sends, within limits, and is answered in the shape of its
//! dialect; a request that cannot be read keeps nobody else from being read.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header, request::Parts};
use hyper::body::Incoming;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    attending::attend,
    calls::{CallEnd, RunningCall, RunningCalls, WaitingClient},
    dialect::{Action, Answer, Asked, CallAction, CallOf, Dialect, Encoder, Keep, Lookup, ReadRequest},
    http::{
        accept::Accepts,
        body::{self, Collected},
        connections::ConnectionPlace,
        head,
        refusal::Refusal,
        response::{self, Pieces},
        serve::serve,
        stream::Phase,
    },
    listener::Abort,
    live::{self, Client},
    services::{self, RefusedHead, ServiceFront, ServiceHead, Upgrade},
};
use footbridge_calls::cause::Cause;
use footbridge_calls::{
    auth::{Principal, authenticate},
    call::Stages,
    events::LogLevel,
    provider::RawResult,
    request::CallRequest,
    resolve::QUICK,
    session::Session,
};
use footbridge_core::{
    budget::{Held, SMALL_BYTES},
    limits::EdgeLimits,
};
use footbridge_services::{Services, TUNNELS};

/// Large bodies that are read at a time.
pub(crate) const LARGE_BODIES: usize = 2;

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) stages: Arc<Stages>,
    pub(crate) dialects: Vec<Arc<dyn Dialect>>,
    pub(crate) services: Services,
    pub(crate) limits: EdgeLimits,
    /// Names besides loopback that a `Host` header may give.
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) wrong_tokens: AtomicU64,
    pub(crate) large_bodies: Arc<Semaphore>,
    /// Calls that a second request may end.
    pub(crate) running: RunningCalls,
    pub(crate) tasks: TaskTracker,
}

impl Shared {
    fn dialect_of(&self, head: &Parts) -> Option<&Arc<dyn Dialect>> {
        let path = head::path(head);
        self.dialects.iter().find(|dialect| dialect.has_path(path))
    }
}

/// What the requests of one connection share.
pub(crate) struct Requests {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Arc<Session>,
    /// Who is at the other end, as the [`Peer`](footbridge_calls::auth::Peer) shows.
    pub(crate) peer: Arc<str>,
    /// Whether its connection can end so that nobody takes that for the end of an answer.
    pub(crate) can_abort: bool,
    /// Ends what has no end of its own.
    pub(crate) shutdown: CancellationToken,
    /// The connection's place, for as long as anything of it is there.
    pub(crate) place: Arc<ConnectionPlace>,
}

/// Where a request goes.
enum Route {
    /// It asks whether we are here.
    Health,
    Dialect(Arc<dyn Dialect>),
}

impl Requests {
    /// Serves a connection to its end, or until its session ends; on shutdown what runs is finished first.
    pub(crate) async fn serve<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Abort + Unpin + Send + 'static,
    {
        let answer = |request, phase| self.answer(request, phase);
        // Cut when the session ends: whoever holds the connection has no session any more.
        let ended = serve(stream, &self.shared.limits, answer, self.session.over(), &self.shutdown).await;
        if let Err(error) = ended {
            tracing::debug!(peer = %self.peer, %error, "a connection ended early");
        }
    }

    async fn answer(&self, mut request: Request<Incoming>, phase: Phase) -> Response<Pieces> {
        let connection = hyper::upgrade::on(&mut request);
        let (head, incoming) = request.into_parts();
        if services::is_service_path(&head) || self.is_of_proxy(&head) {
            let (place, shutdown) = (Arc::clone(&self.place), self.shutdown.clone());
            let no_more = std::future::pending().boxed();
            let upgrade = Upgrade { connection, phase, place, shutdown, no_more };
            return self.service(head, incoming, upgrade).await;
        }
        let dialect = match self.route(&head) {
            Ok(Route::Health) => return response::empty(StatusCode::NO_CONTENT),
            Ok(Route::Dialect(dialect)) => dialect,
            Err(refusal) => return self.refuse(self.shared.dialect_of(&head), refusal, Some(incoming)).await,
        };
        let Some(principal) = self.principal(&head.headers).await else {
            return self.refuse(Some(&dialect), Refusal::Token, Some(incoming)).await;
        };
        if let Err(refusal) = head::check_framing(&head.headers).and_then(|()| dialect.check_body(&head)) {
            return self.refuse(Some(&dialect), refusal, Some(incoming)).await;
        }
        let accepts = Accepts::of(&head.headers);
        let collected = match body::collect(incoming, &self.session).await {
            Ok(collected) => collected,
            Err(refusal) => return self.refuse(Some(&dialect), refusal, None).await,
        };
        let Collected { bytes, held } = collected;
        match self.read(&dialect, head, bytes, held).await {
            // A token that was replaced while the body came is none any more; a call refuses and records that itself.
            Ok((ReadRequest::Answered(_) | ReadRequest::Cancels(..), _held)) if !principal.is_current() => {
                self.refuse(Some(&dialect), Refusal::Token, None).await
            }
            Ok((ReadRequest::Answered(response), _held)) => response,
            Ok((ReadRequest::Cancels(key, response), _held)) => {
                self.shared.running.cancel(&key);
                response
            }
            Ok((ReadRequest::Asked { action, encoder }, held)) => {
                let client = Client { encoder, accepts, phase, heartbeat: self.shared.limits.heartbeat_time };
                self.carry_out(principal, action, held, client).await
            }
            Err(refusal) => self.refuse(Some(&dialect), refusal, None).await,
        }
    }

    /// Whether it is asked as of a proxy, by whom the tunnels of a session are for, or who shows what could be its token.
    fn is_of_proxy(&self, head: &Parts) -> bool {
        let has_tunnels = || self.session.service(TUNNELS).is_some();
        services::is_of_proxy(head) && (head.headers.contains_key(header::PROXY_AUTHORIZATION) || has_tunnels())
    }

    /// Answers a request to a service, or to a proxy. What is rare of it has a place of its own, so that this takes little.
    async fn service(&self, head: Parts, incoming: Incoming, upgrade: Upgrade) -> Response<Pieces> {
        let Shared { stages, services, tasks, limits, .. } = &*self.shared;
        let heartbeat = limits.heartbeat_time;
        let front = ServiceFront { stages, services, tasks, session: &self.session, heartbeat };
        let asked = ServiceHead::of(&head);
        // What a proxy is asked for has the name of another host, and comes from pages as well; names of headers are names.
        let of_proxy = services::is_of_proxy(&head);
        if let Err(refusal) = head::check_origin(&head, &self.shared.allowed_hosts)
            && (!of_proxy || refusal == Refusal::HeaderName)
        {
            return Box::pin(front.refuse(&asked, RefusedHead::Any(refusal), incoming)).await;
        }
        let shown = asked.credentials();
        let opens = |token| Some((authenticate(&self.session, &self.peer, token).ok()?, token));
        let Some((principal, token)) = shown.iter().map(Cow::as_ref).find_map(opens) else {
            if !shown.is_empty() {
                self.wrong_token().await;
            }
            let why = if of_proxy { RefusedHead::ProxyToken } else { RefusedHead::Token };
            return Box::pin(front.refuse(&asked, why, incoming)).await;
        };
        // Where an answer breaks off, its client would take it for whole.
        if head.version < Version::HTTP_11 && !self.can_abort && !asked.is_tunnel() {
            return Box::pin(front.refuse_of(principal, &asked, RefusedHead::Version, Some(incoming))).await;
        }
        if asked.leaks(token) {
            return Box::pin(front.refuse_of(principal, &asked, RefusedHead::TokenLeaks, Some(incoming))).await;
        }
        if asked.is_tunnel() {
            return Box::pin(front.open_tunnel(principal, head, upgrade)).await;
        }
        front.carry_out(principal, head, incoming, upgrade).await
    }

    fn route(&self, head: &Parts) -> Result<Route, Refusal> {
        if services::is_of_proxy(head) {
            return Err(Refusal::NoTunnels);
        }
        head::check_origin(head, &self.shared.allowed_hosts)?;
        if head::asks_for_health(head) {
            return Ok(Route::Health);
        }
        let dialect = self.shared.dialect_of(head).ok_or(Refusal::NotFound)?;
        dialect.check_method(&head.method)?;
        Ok(Route::Dialect(Arc::clone(dialect)))
    }

    /// Who asks, if the right token is shown. A wrong one waits.
    async fn principal(&self, headers: &HeaderMap) -> Option<Principal> {
        let shown = head::token(headers).and_then(|token| authenticate(&self.session, &self.peer, token).ok());
        if shown.is_none() && headers.contains_key(header::AUTHORIZATION) {
            self.wrong_token().await;
        }
        shown
    }

    /// A wrong token waits.
    async fn wrong_token(&self) {
        self.note_wrong_token();
        sleep(self.shared.limits.wrong_token_delay).await;
    }

    /// Logs the first wrong token, the second, the fourth, and so on: a flood of them is no flood of lines.
    fn note_wrong_token(&self) {
        let count = self.shared.wrong_tokens.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(session = %self.session.name(), peer = %self.peer, count, "wrong tokens were shown");
        }
    }

    /// Reads a body. A large one is read beside the workers and behind them, so that it keeps nobody else waiting.
    ///
    /// The turns and the bytes go with the work: it goes on when the client leaves, and so does what it takes.
    async fn read(
        &self,
        dialect: &Arc<dyn Dialect>,
        head: Parts,
        body: Bytes,
        held: Held,
    ) -> Result<(ReadRequest, Held), Refusal> {
        let depth = self.session.limits().edge.body_depth;
        if body.len() <= QUICK {
            return Ok((dialect.read(Asked { head: &head, body: &body, depth, session: &self.session }), held));
        }
        let own = self.session.turn().await;
        // Never closed; and without a turn it would only be slower.
        let turn = Arc::clone(&self.shared.large_bodies).acquire_owned().await;
        let (dialect, session) = (Arc::clone(dialect), Arc::clone(&self.session));
        let read = move || {
            let _turns = (own, turn);
            (dialect.read(Asked { head: &head, body: &body, depth, session: &session }), held)
        };
        self.shared.stages.resolver.threads().run(read).await.ok_or(Refusal::Unreadable)
    }

    async fn carry_out(&self, principal: Principal, action: Action, held: Held, client: Client) -> Response<Pieces> {
        let stages = Arc::clone(&self.shared.stages);
        let answer = match action {
            Action::Call(CallAction { call, meta, key, hears_waiting, logs, kept }) => {
                // To find out which one it is may take seconds, in which it can be taken back.
                let end = self.shared.running.begin(&self.session, key);
                let call = match call {
                    CallOf::Known(call) => call,
                    CallOf::Sought(find) => find(Arc::clone(&stages), principal.clone()).await,
                };
                let held = match self.held_for_sending(held, &call) {
                    Ok(held) => held,
                    Err(busy) => return live::whole(&*client.encoder, Err(busy.into())),
                };
                let call = CallRequest { held: Some(held), meta: meta.or(call.meta), ..call };
                if let Some(keep) = kept {
                    return live::whole(&*client.encoder, self.keep(principal, call, keep, logs));
                }
                let waits = WaitingClient { accepts: client.accepts, hears_waiting, logs, end };
                let running = RunningCall::start(&self.shared.tasks, stages, principal, call, waits);
                return live::answer(running, client).await;
            }
            Action::Listen(listen) => match self.listing(&principal) {
                Ok(()) => {
                    let ends = vec![self.shutdown.clone(), self.session.over().child_token()];
                    return live::stream(listen(stages, principal), ends, client);
                }
                Err(cause) => Err(cause.into()),
            },
            Action::Check(_) if !principal.is_current() => Err(Cause::SessionReplaced.into()),
            Action::Check(call) => {
                let checked = stages.check(principal, CallRequest { held: Some(held), ..call }).await;
                checked.map(|checked| RawResult { text: client.encoder.checked(checked), held: None })
            }
            Action::LookUp(lookup) => self.look_up(stages, principal, lookup).await,
        };
        let encoder: &dyn Encoder = &*client.encoder;
        live::whole(encoder, answer)
    }

    /// Starts a call that is kept, and says so.
    fn keep(&self, principal: Principal, call: CallRequest, keep: Keep, logs: Option<LogLevel>) -> Answer {
        let Keep { calls, client, time, told } = keep;
        let kept = calls.place(&self.session, client, time)?;
        // Whoever waits for it waits for long, and hears of all that happens.
        let accepts = Accepts { events: true, json: true, waits: true };
        let waits = WaitingClient { accepts, hears_waiting: true, logs, end: CallEnd::of(&self.session) };
        let (tasks, stages) = (&self.shared.tasks, Arc::clone(&self.shared.stages));
        let running = RunningCall::start(tasks, stages, principal, call, waits);
        let ends = [self.session.over().child_token(), self.shutdown.clone()];
        let text = told(&kept);
        attend(calls, tasks, kept, running, ends);
        Ok(RawResult { text, held: None })
    }

    /// Holds as much again where arguments are large: what is sent on is a text of its own.
    fn held_for_sending(&self, mut held: Held, call: &CallRequest) -> Result<Held, Cause> {
        let length = call.arguments.as_ref().map_or(0, |arguments| arguments.get().len());
        if length > SMALL_BYTES {
            held.add(self.session.bytes().take_of_large(length).map_err(|_| Cause::BytesHeld)?);
        }
        Ok(held)
    }

    async fn look_up(&self, stages: Arc<Stages>, principal: Principal, lookup: Lookup) -> Answer {
        self.listing(&principal)?;
        let text = lookup(stages, principal.clone()).await?;
        // To find it may have taken seconds.
        still_current(&principal)?;
        // What is found may have megabytes, and its reader all the time in the world.
        let held = self.session.bytes().take(text.get().len()).map_err(|_| Cause::BytesHeld)?;
        Ok(RawResult { text, held: Some(held) })
    }

    /// Counts a listing, for whoever has the session's token still: another may have come while the body did.
    fn listing(&self, principal: &Principal) -> Result<(), Cause> {
        still_current(principal)?;
        self.session.list().map_err(Cause::OverLimit)
    }

    /// Refuses a request, in the shape of the dialect that it is for, if any. What was not read of it is read past.
    async fn refuse(
        &self,
        dialect: Option<&Arc<dyn Dialect>>,
        refusal: Refusal,
        unread: Option<Incoming>,
    ) -> Response<Pieces> {
        if let Some(incoming) = unread.filter(|_| !refusal.ends_body()) {
            body::drain(incoming, &self.session).await;
        }
        let mut response = match dialect {
            Some(dialect) => dialect.refuse(refusal),
            None => response::refused(refusal),
        };
        if refusal.closes() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if refusal == Refusal::NotPost {
            let methods = dialect.map_or("POST", |dialect| dialect.methods());
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
        }
        response
    }
}

fn still_current(principal: &Principal) -> Result<(), Cause> {
    if principal.is_current() { Ok(()) } else { Err(Cause::SessionReplaced) }
}
