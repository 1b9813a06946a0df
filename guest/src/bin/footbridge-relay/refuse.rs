//! What a client hears where the harness cannot be reached: one fixed answer, decided without reading a byte.

use std::{io, time::Duration};

use footbridge_proto::rpc::{ErrorObject, Reason, Response};

use crate::{scratch::Scratch, stream::Stream};

/// How much of a request is read after the answer, so that the client sees the answer and not a reset.
const DRAIN_BYTES: usize = 1 << 20;
/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// The whole answer.
pub(crate) fn answer() -> Vec<u8> {
    let message = "The harness cannot be reached from this sandbox, so nothing was called. Check that it still runs.";
    let response = Response::error(None, ErrorObject::new(Reason::ServerUnavailable, message));
    let body = serde_json::to_string(&response).unwrap_or_default();
    format!(
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Answers and hangs up. A client that left early misses nothing.
pub(crate) async fn refuse(client: &Stream, answer: &[u8], scratch: &Scratch) {
    let sent = tokio::time::timeout(DRAIN_TIME, client.write_all(answer)).await;
    if matches!(sent, Ok(Ok(()))) {
        client.shut_write();
        drain(client, scratch).await;
    }
}

/// Reads what the client still sends and drops it, up to a limit in size and time.
pub(crate) async fn drain(client: &Stream, scratch: &Scratch) {
    let all = async {
        let mut left = DRAIN_BYTES;
        while left > 0 && client.readable().await.is_ok() {
            let read = client.try_read(&mut scratch.bytes.borrow_mut());
            match read {
                Ok(read @ 1..) => left = left.saturating_sub(read),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return,
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, all).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_whole_json_rpc() {
        let text = String::from_utf8(answer()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        let response: Response = serde_json::from_str(body).unwrap();
        assert_eq!(response.error.unwrap().reason(), Some(Reason::ServerUnavailable));
        assert!(body.ends_with("\"id\":null}"), "{body}");
    }
}
