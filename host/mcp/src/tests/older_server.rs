//! The older transport in front of the tiny server's answers: a stream of events, and messages that are posted beside it.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, StreamBody};
use hyper::{Method, Request, Response, StatusCode, body::Frame, body::Incoming};
use serde_json::Value;
use tokio::sync::mpsc;

use super::http_server::{Body, State, SyncBody, Trap, handle, status};

/// Where messages go.
const MESSAGES: &str = "/messages";

pub(super) async fn answer(state: Arc<State>, request: Request<Incoming>) -> Response<Body> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, _) => {
            state.seen.lock().unwrap().push("GET".to_owned());
            stream(&state)
        }
        (&Method::POST, MESSAGES) if state.trap == Trap::OlderRefuses => status(StatusCode::INTERNAL_SERVER_ERROR),
        (&Method::POST, MESSAGES) => {
            let secret = request.headers().get("x-key").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
            let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            posted(state, serde_json::from_slice(&body).unwrap_or_default(), &secret).await
        }
        _ => status(StatusCode::METHOD_NOT_ALLOWED),
    }
}

fn stream(state: &State) -> Response<Body> {
    let (sender, receiver) = mpsc::channel::<String>(16);
    *state.stream.lock().unwrap() = Some(sender);
    let origin = if state.trap == Trap::OlderForeign { "http://127.0.0.2:1" } else { "" };
    let first = futures::stream::iter([format!(
        ": hello\n\nretry: 2000\nid: 1\n\nevent: endpoint\ndata: {origin}{MESSAGES}?session=1\n\n"
    )]);
    let rest = futures::stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let body = StreamBody::new(first.chain(rest).map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from(part)))));
    let mut response = Response::new(BodyExt::boxed(SyncBody::new(body)));
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

async fn posted(state: Arc<State>, message: Value, secret: &str) -> Response<Body> {
    let how = message["params"]["arguments"]["how"].as_str().map(str::to_owned);
    let answered = handle(Arc::clone(&state), &message, secret).await;
    match how.as_deref() {
        Some("refused") => return status(StatusCode::BAD_REQUEST),
        Some("cut") => drop(state.stream.lock().unwrap().take()),
        _ => {}
    }
    let answer = answered.into_body().collect().await.unwrap().to_bytes();
    let sender = state.stream.lock().unwrap().clone();
    if let (false, Some(sender)) = (answer.is_empty(), sender) {
        let data = String::from_utf8_lossy(&answer);
        sender.send(format!("event: message\ndata: {data}\n\n")).await.unwrap();
    }
    status(StatusCode::ACCEPTED)
}
