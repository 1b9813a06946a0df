//! One connection: its requests, each from its head to its answer.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use footbridge_proto::rpc::{ErrorObject, Reason, raw};
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::bridge::wording::error_of;
use crate::{
    Edge,
    bridge::{
        listings,
        rpc::{self, Parsed, Request as RpcRequest},
        search,
    },
    calls::Asked,
    http::{
        accept::Accepts,
        body::{self, BadBody, Pieces},
        connections::ConnectionPlace,
        head::{self, Route},
        stream::{Phase, Timed},
    },
};
use footbridge_calls::cause::{Cause, Refusal};
use footbridge_calls::provider::RawResult;
use footbridge_calls::{
    auth::{Peer, Principal, authenticate},
    call::Stages,
    resolve::QUICK,
    session::{OverLimit, Session},
};
use footbridge_core::budget::Held;

/// What the requests of one connection share.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) edge: Edge,
    pub(crate) session: Arc<Session>,
    pub(crate) peer: Peer,
}

impl Handler {
    /// Serves it to its end, or until its session ends; on `shutdown` what runs is finished first.
    pub(crate) async fn serve<S>(self, stream: S, _place: ConnectionPlace, shutdown: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = Timed::new(stream, &self.edge.limits);
        let phase = stream.phase();
        let mut http = http1::Builder::new();
        http.max_headers(self.edge.limits.headers)
            .max_header_size(self.edge.limits.head_bytes)
            .max_buf_size(self.edge.limits.head_bytes.max(64 * 1024));
        let service = service_fn(|request| self.answer(request, phase.clone()));
        let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            biased;
            // Cut: whoever holds it has no session any more.
            () = self.session.over().cancelled() => return,
            ended = connection.as_mut() => ended,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    biased;
                    () = self.session.over().cancelled() => return,
                    ended = connection.as_mut() => ended,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %self.peer, %error, "a connection ended early");
        }
    }

    async fn answer(&self, request: Request<Incoming>, phase: Phase) -> Result<Response<Pieces>, Infallible> {
        phase.busy();
        let chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let mut response = self.respond(request, &phase).await;
        if chunked {
            // Whatever the answer: where its body ended may be read in two ways, so nothing after it is read at all.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if !response.body().is_live() {
            phase.answered();
        }
        Ok(response)
    }

    async fn respond(&self, request: Request<Incoming>, phase: &Phase) -> Response<Pieces> {
        let (head, incoming) = request.into_parts();
        match head::before_auth(&head, &self.edge.allowed_hosts) {
            Ok(Route::Health) => return body::empty(StatusCode::NO_CONTENT),
            Ok(Route::Rpc) => {}
            Err(refusal) => return refuse(refusal, incoming).await,
        }
        let shown = head::token(&head.headers).map(|token| authenticate(&self.session, &self.peer, token));
        let Some(Ok(principal)) = shown else {
            if head.headers.contains_key(header::AUTHORIZATION) {
                self.note_wrong_token();
                sleep(self.edge.limits.wrong_token_delay).await;
            }
            body::drain(incoming).await;
            return body::refusal(head::Refusal {
                status: StatusCode::UNAUTHORIZED,
                body: head::RefusalBody::Short("Unauthorized"),
                close: false,
            });
        };
        if let Err(refusal) = head::before_body(&head.headers) {
            return refuse(refusal, incoming).await;
        }
        let length = incoming.size_hint().exact();
        let (bytes, held) = match body::collect(length, incoming, &self.session).await {
            Ok(collected) => collected,
            Err(bad) => return bad_body(bad),
        };
        let (Parsed { id, request }, held) = self.parse(bytes, held).await;
        let listed = match request {
            Ok(RpcRequest::Call(mut call)) => {
                call.held = held;
                let asked = Asked { id, accepts: Accepts::of(&head.headers), phase: phase.clone() };
                let run = |stages: Stages, watcher, cancel| async move {
                    stages.call(principal, call, &watcher, &cancel).await
                };
                return self.call(asked, run).await;
            }
            Ok(RpcRequest::Check(mut call)) => {
                call.held = held;
                let checked = self.edge.stages.check(principal, call).await;
                checked.map(|checked| RawResult { text: listings::checked(checked), held: None })
            }
            Ok(listing) => self.list(&principal, listing).await.map_err(Refusal::from),
            Err(error) => return body::error(StatusCode::OK, id.as_deref(), &error),
        };
        match listed {
            Ok(result) => body::result(id.as_deref(), result),
            Err(refusal) => body::error(StatusCode::OK, id.as_deref(), &error_of(&refusal)),
        }
    }

    /// Reads a body. A large one is read beside the workers, so that it keeps nobody else waiting.
    ///
    /// The turns and the bytes go with the work: it goes on when the client leaves, and so does what it takes.
    async fn parse(&self, body: Bytes, held: Held) -> (Parsed, Option<Held>) {
        let depth = self.session.limits().edge.body_depth;
        if body.len() <= QUICK {
            return (rpc::parse(&body, depth), Some(held));
        }
        let own = self.session.turn().await;
        // Never closed; and without a turn it would only be slower.
        let turn = Arc::clone(&self.edge.large_bodies).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            let _turns = (own, turn);
            (rpc::parse(&body, depth), Some(held))
        });
        let failed = || ErrorObject::new(Reason::Internal, "The request could not be read");
        read.await.unwrap_or_else(|_| (Parsed { id: None, request: Err(failed()) }, None))
    }

    /// Logs the first wrong token, the second, the fourth, and so on: a flood of them is no flood of lines.
    fn note_wrong_token(&self) {
        let count = self.edge.wrong_tokens.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(session = %self.session.name(), peer = %self.peer, count, "wrong tokens were shown");
        }
    }

    async fn list(&self, principal: &Principal, listing: RpcRequest) -> Result<RawResult, Cause> {
        let stages = &self.edge.stages;
        self.session.list().map_err(Cause::OverLimit)?;
        let listed = match listing {
            RpcRequest::Call(_) | RpcRequest::Check(_) | RpcRequest::BridgeInfo => listings::info(),
            RpcRequest::AwaitApproval { id } => listings::approval(stages, principal, &id).await,
            RpcRequest::Servers => listings::servers(stages, principal, &self.edge.calls).await,
            RpcRequest::Tools { server } => listings::tools(stages, principal, &server).await?,
            RpcRequest::Tool { server, tool } => listings::tool(stages, principal, &server, &tool).await?,
            RpcRequest::Resources { server } => listings::resources(stages, principal, &server).await?,
            RpcRequest::Search { query, server, limit } => {
                let within = search::within(stages, principal, server.as_deref(), &self.edge.calls).await?;
                search::tools(principal, query, within, limit).await?
            }
            RpcRequest::Prompts { server } => listings::prompts(stages, principal, &server).await?,
            RpcRequest::Templates { server } => listings::templates(stages, principal, &server).await?,
        };
        // A listing may have megabytes, and its reader all the time in the world.
        let held = self.session.bytes().take(listed.get().len()).map_err(|_| Cause::BytesHeld)?;
        Ok(RawResult { text: listed, held: Some(held) })
    }
}

async fn refuse(refusal: head::Refusal, incoming: Incoming) -> Response<Pieces> {
    if !refusal.close {
        body::drain(incoming).await;
    }
    body::refusal(refusal)
}

fn bad_body(bad: BadBody) -> Response<Pieces> {
    let refused = |status, message| body::refusal(head::Refusal { close: true, ..head::rpc(status, message) });
    match bad {
        BadBody::TooLarge => refused(StatusCode::PAYLOAD_TOO_LARGE, "Request too large"),
        BadBody::TooSlow => refused(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time"),
        BadBody::Broken => refused(StatusCode::BAD_REQUEST, "The body did not arrive whole"),
        BadBody::Busy => body::error(StatusCode::OK, None, &error_of(&Cause::BytesHeld.into())),
    }
}
