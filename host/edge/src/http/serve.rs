//! One connection, from its first request to its end. What a request is answered is somebody else's matter.

use std::{convert::Infallible, future::Future};

use http::{HeaderValue, Request, Response, Version, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{
    response::Pieces,
    stream::{Phase, Timed},
    when_woken::WhenWoken,
};
use crate::listener::Abort;
use footbridge_calls::session::Life;
use footbridge_core::limits::EdgeLimits;

/// Serves a connection to its end, or until `cut`; on `shutdown` what runs is finished first.
pub(crate) fn serve<'a, S, A, F>(
    stream: S,
    limits: &EdgeLimits,
    answer: A,
    cut: &'a Life,
    shutdown: &'a CancellationToken,
) -> impl Future<Output = hyper::Result<()>> + use<'a, S, A, F>
where
    S: AsyncRead + AsyncWrite + Abort + Unpin + Send + 'static,
    A: Fn(Request<Incoming>, Phase) -> F + 'a,
    F: Future<Output = Response<Pieces>> + 'a,
{
    let stream = Timed::new(stream, limits);
    let (phase, of_connection) = (stream.phase(), stream.phase());
    let ends = phase.clone();
    let mut http = http1::Builder::new();
    // Whether its client left is looked at below, without a buffer for each request.
    http.half_close(true);
    http.max_headers(limits.headers).max_header_size(limits.head_bytes).max_buf_size(limits.head_bytes.max(64 * 1024));
    let service = service_fn(move |request: Request<Incoming>| {
        phase.busy();
        if request.version() < Version::HTTP_11 {
            phase.ends_answers();
        }
        let chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        // In a place of its own, which is free again while the answer is read: a stream may be idle for hours.
        let (response, phase) = (WhenWoken::new(Box::pin(answer(request, phase.clone()))), phase.clone());
        async move { Ok::<_, Infallible>(finished(response.await, chunked, &phase)) }
    });
    // Made out here, and in a place of its own: a future keeps room for whatever is moved in it.
    let connection = Box::pin(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let mut connection = WhenWoken::new(connection);
    async move {
        let ended = tokio::select! {
            biased;
            () = cut.cancelled() => None,
            ended = &mut connection => Some(ended),
            () = shutdown.cancelled() => {
                // One whose request goes on behind its answer takes no other, and would be ended in the middle of it.
                if !of_connection.is_going_on() {
                    connection.inner().as_mut().graceful_shutdown();
                }
                tokio::select! {
                    biased;
                    () = cut.cancelled() => None,
                    ended = &mut connection => Some(ended),
                }
            }
        };
        if !matches!(ended, Some(Ok(()))) {
            ends.breaks_off();
        }
        drop(connection);
        ended.unwrap_or(Ok(()))
    }
}

fn finished(mut response: Response<Pieces>, chunked: bool, phase: &Phase) -> Response<Pieces> {
    if chunked {
        // Whatever the answer: where its body ended may be read in two ways, so nothing after it is read at all.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if !response.body().is_live() {
        phase.answered();
    }
    response
}
