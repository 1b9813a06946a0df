//! What a client hears where the harness cannot be reached: one fixed answer for each cause, decided without reading a
//! byte.

use std::{io, time::Duration};

use footbridge_proto::rpc::{ErrorObject, Reason, Response};

use crate::{reach::Unreached, scratch::Scratch, stream::Stream};

/// How much of a request is read after the answer, so that the client sees the answer and not a reset.
const DRAIN_BYTES: usize = 1 << 20;
/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// When a client may come again that there were no descriptors for.
const RETRY_AFTER_MS: u64 = 1000;

/// The whole answer.
pub(crate) fn answer(unreached: Unreached) -> Vec<u8> {
    let (status, error) = match unreached {
        Unreached::Harness => {
            let message =
                "The harness cannot be reached from this sandbox, so nothing was called. Check that it still runs.";
            ("502 Bad Gateway", ErrorObject::new(Reason::ServerUnavailable, message))
        }
        Unreached::Exhausted => {
            let message = "The relay of this sandbox has no descriptors or memory left to reach the harness with, so nothing \
                           was called. Let connections end, or raise its limit (ulimit -n).";
            ("503 Service Unavailable", ErrorObject::new(Reason::Busy, message).with("retryAfterMs", RETRY_AFTER_MS))
        }
    };
    let response = Response::error(None, error);
    let body = serde_json::to_string(&response).unwrap_or_default();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
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
        for (unreached, status, reason) in [
            (Unreached::Harness, "502 ", Reason::ServerUnavailable),
            // A client that asks again when it is told to is helped by this one.
            (Unreached::Exhausted, "503 ", Reason::Busy),
        ] {
            let text = String::from_utf8(answer(unreached)).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
            let response: Response = serde_json::from_str(body).unwrap();
            assert_eq!(response.error.unwrap().reason(), Some(reason));
            assert!(body.ends_with("\"id\":null}"), "{body}");
        }
    }
}
