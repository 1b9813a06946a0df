//! The operator's webhook: what is asked is posted to it as JSON, its answer comes back as JSON.
//!
//! Only a decision with a status of 200 to 299 and in time is an answer. Everything else is none, a redirect too, and
//! others may still answer. It is asked once; its address and headers show in no log.

use std::{error::Error, fmt, time::Duration};

use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header};
use tokio::time::timeout;

use super::decision::{self, MAX_ANSWER, Unreadable};
use footbridge_calls::approval::{Approver, ApproverAnswer};
use footbridge_outbound::{
    BadAddress, HttpSpec,
    web::{BodyError, SendError, Web, piece},
};

/// Headers that are set here and nowhere else.
pub(crate) const OURS: [&str; 5] = ["accept", "connection", "content-type", "content-length", "host"];

/// How long a connection may take; the answer has its own time.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// An address that is asked, over a connection of its own for each question: what one sends beyond its answer is an answer
/// to nothing.
#[derive(Clone)]
pub struct Webhook {
    spec: HttpSpec,
    time: Duration,
    web: Web,
}

impl Webhook {
    /// This address, which answers within this time. It may be a private one.
    ///
    /// # Errors
    /// Where the address may not be used, or a header cannot be sent.
    pub(crate) fn new(spec: HttpSpec, time: Duration) -> Result<Self, BadAddress> {
        let web = Web::new(&spec, &OURS, CONNECT_TIME.min(time))?;
        Ok(Self { spec, time, web })
    }

    /// The name of its host.
    #[must_use]
    pub fn host(&self) -> String {
        self.spec.url.host_str().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("host", &self.host()).field("time", &self.time).finish_non_exhaustive()
    }
}

impl PartialEq for Webhook {
    fn eq(&self, other: &Self) -> bool {
        (&self.spec, self.time) == (&other.spec, other.time)
    }
}

impl Eq for Webhook {}

/// Why there is no answer. Never holds the address.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("it did not answer within {0:?}")]
    Slow(Duration),
    #[error("it answered HTTP {0}, a redirect, which is not followed; configure the final URL")]
    Redirect(u16),
    #[error("it answered HTTP {0}")]
    Status(u16),
    #[error("its answer is longer than {MAX_ANSWER} bytes")]
    TooLong,
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

impl Approver for Webhook {
    fn name(&self) -> String {
        format!("webhook {}", self.host())
    }

    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<ApproverAnswer, Box<dyn Error + Send + Sync>>> {
        Box::pin(async { Ok(ask(self, question.to_owned()).await?) })
    }
}

/// Asks it, once. Dropping this ends the request.
async fn ask(webhook: &Webhook, question: String) -> Result<ApproverAnswer, NoAnswer> {
    timeout(webhook.time, converse(webhook, question)).await.unwrap_or(Err(NoAnswer::Slow(webhook.time)))
}

async fn converse(webhook: &Webhook, question: String) -> Result<ApproverAnswer, NoAnswer> {
    let mut request = webhook.web.request(Method::POST).map(|()| question.into());
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(header::ACCEPT, json.clone());
    request.headers_mut().insert(header::CONTENT_TYPE, json);
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let mut response = webhook.web.send(request).await?;
    match response.status() {
        StatusCode::NOT_MODIFIED => return Err(NoAnswer::Status(304)),
        status if status.is_redirection() => return Err(NoAnswer::Redirect(status.as_u16())),
        status if !status.is_success() => return Err(NoAnswer::Status(status.as_u16())),
        _ => {}
    }
    let mut answered = Vec::new();
    while let Some(come) = piece(response.body_mut()).await? {
        if answered.len() + come.len() > MAX_ANSWER {
            return Err(NoAnswer::TooLong);
        }
        answered.extend_from_slice(&come);
    }
    Ok(decision::read(&answered)?)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use footbridge_calls::approval::Answer;
    use footbridge_core::secret::Secret;

    fn webhook(url: &str, time: Duration) -> Webhook {
        let headers = vec![("x-key".parse().unwrap(), Secret::new("s3cret-value"))];
        Webhook::new(HttpSpec { url: url.parse().unwrap(), headers, allow_private: true }, time).unwrap()
    }

    async fn heard(stream: &mut TcpStream) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(b"{\"asked\":1}") {
            let mut piece = [0; 4096];
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => break,
                Ok(read) => heard.extend_from_slice(&piece[..read]),
            }
        }
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// What a webhook that answers this comes to, and what it heard.
    async fn answered(response: &[u8]) -> (Result<ApproverAnswer, NoAnswer>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a?b=hidden", listener.local_addr().unwrap());
        let answers = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let heard = heard(&mut stream).await;
            let _ = stream.write_all(response).await;
            heard
        };
        let webhook = webhook(&url, Duration::from_secs(20));
        tokio::join!(ask(&webhook, "{\"asked\":1}".to_owned()), answers)
    }

    fn ok(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    #[tokio::test]
    async fn it_is_posted_the_question_and_its_decision_counts() {
        let (answer, heard) = answered(&ok(r#"{"decision":"allow","approver":"zoe"}"#)).await;
        let named = ApproverAnswer { answer: Answer::Allow { remember: false }, who: Some("zoe".into()) };
        assert_eq!(answer.unwrap(), named);
        assert!(heard.starts_with("POST /a?b=hidden HTTP/1.1\r\n") && heard.contains("x-key: s3cret-value"), "{heard}");
        assert!(heard.contains("content-type: application/json"), "{heard}");
        assert_eq!(answered(&ok(r#"{"decision":"deny"}"#)).await.0.unwrap().answer, Answer::Deny);
    }

    #[tokio::test]
    async fn anything_else_is_no_answer() {
        let body = r#"{"decision":"allow"}"#;
        let status =
            |line: &str| format!("HTTP/1.1 {line}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes();
        let long = ok(&format!("{}{body}", " ".repeat(MAX_ANSWER)));
        let there = format!("HTTP/1.1 307 X\r\nlocation: /other\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        for (response, why) in [
            (ok("allow"), "something other"),
            (ok(""), "something other"),
            (status("500 X"), "HTTP 500"),
            (status("403 X"), "HTTP 403"),
            (status("304 X"), "HTTP 304"),
            (there.into_bytes(), "redirect"),
            (long, "longer than"),
            (format!("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{body}").into_bytes(), "connection failed"),
            (b"\x16\x03\x01 rubbish\r\n\r\n".to_vec(), "connection failed"),
            (Vec::new(), "connection failed"),
        ] {
            let said = answered(&response).await.0.unwrap_err().to_string();
            assert!(said.contains(why), "{why}: {said}");
            assert!(!said.contains("hidden") && !said.contains("s3cret"), "{said}");
        }
    }

    #[tokio::test]
    async fn what_comes_behind_an_answer_answers_no_other_question() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let answers = async {
            let (mut first, _) = listener.accept().await.unwrap();
            heard(&mut first).await;
            first.write_all(&ok(r#"{"decision":"allow"}"#).repeat(3)).await.unwrap();
            // The first connection stays open, and is not the one that the second question comes by.
            let (mut second, _) = listener.accept().await.unwrap();
            heard(&mut second).await;
            second.write_all(&ok(r#"{"decision":"deny"}"#)).await.unwrap();
        };
        let webhook = webhook(&url, Duration::from_secs(20));
        let asks = async {
            let first = ask(&webhook, "{\"asked\":1}".to_owned()).await.unwrap().answer;
            (first, ask(&webhook, "{\"asked\":1}".to_owned()).await.unwrap().answer)
        };
        let (answered, ()) = tokio::join!(asks, answers);
        assert_eq!(answered, (Answer::Allow { remember: false }, Answer::Deny));
    }

    #[tokio::test]
    async fn one_that_cannot_be_reached_or_trusted_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // It speaks no TLS: what it says first is no handshake.
        let talks = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"decision\":\"allow\"}").await;
        };
        let secure = webhook(&format!("https://{address}/hidden"), Duration::from_secs(20));
        let (answer, ()) = tokio::join!(ask(&secure, String::new()), talks);
        assert!(
            matches!(answer, Err(NoAnswer::Send(why @ SendError::Connect(_))) if !why.to_string().contains("hidden"))
        );
        drop(listener);
        let refused = ask(&webhook(&format!("http://{address}/hidden"), Duration::from_secs(20)), String::new()).await;
        assert!(
            matches!(refused, Err(NoAnswer::Send(why @ SendError::Connect(_))) if !why.to_string().contains("hidden"))
        );
    }

    #[tokio::test]
    async fn a_slow_one_is_let_go_of() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let slow = webhook(&format!("http://{}/", listener.local_addr().unwrap()), Duration::from_millis(50));
        let lets_go = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // Ends when the other side closes.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        };
        let (answer, ()) = tokio::join!(ask(&slow, "{}".to_owned()), lets_go);
        assert!(matches!(answer, Err(NoAnswer::Slow(_))));
    }
}
