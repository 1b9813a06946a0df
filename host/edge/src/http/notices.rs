//! Connections that are not served: each is told why, and closed. Each takes a task and a descriptor until its client has
//! heard it, so only so many are told at a time; those beyond are closed without a word.
//!
//! What its client has sent meanwhile is read, up to a limit, and nothing of it is looked at: where some of it were unread,
//! the close would be a reset, and the client could lose what it was told.

use std::{sync::Arc, time::Duration};

use footbridge_proto::rpc::{ErrorObject, Reason, error_answer};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, sink},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::task::TaskTracker;

/// Clients for which there is no place that are told at a time, and users who may not connect, in all. One that reads is told
/// within a moment. The descriptors of both are kept from all else.
pub(crate) const NO_PLACE_AT_ONCE: usize = 48;
pub(crate) const NOT_ALLOWED_AT_ONCE: usize = 16;

/// How long a client that does not read, or does not leave, may take.
const TIME: Duration = Duration::from_secs(1);

/// Most that is read of what it sent: more than any request of the bridge.
const MOST_READ: u64 = 2 << 20;

/// What there is no place for.
pub(crate) fn too_many() -> String {
    notice("503 Service Unavailable", r#"{"error":"Too many connections"}"#)
}

/// What a user is told who may not connect.
pub(crate) fn not_allowed(uid: u32) -> String {
    let why = format!(
        "User {uid}, as the host has it, may not connect here: only some users may. Nothing was read of the request; who may \
         connect is said on the host, by --allow-uid"
    );
    notice("403 Forbidden", &error_answer(None, &ErrorObject::new(Reason::DeniedByPolicy, why)))
}

/// An answer, and the end.
fn notice(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// The places of those that are told. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ClosingNotices(Arc<Semaphore>);

impl ClosingNotices {
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Tells a client this, in a task of these.
    pub(crate) fn send(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        notice: impl FnOnce() -> String,
        tasks: &TaskTracker,
    ) {
        let Ok(place) = Arc::clone(&self.0).try_acquire_owned() else { return };
        let notice = notice();
        tasks.spawn(async move {
            let _place = place;
            let told = async {
                stream.write_all(notice.as_bytes()).await?;
                stream.shutdown().await?;
                tokio::io::copy(&mut stream.take(MOST_READ), &mut sink()).await
            };
            // The client may be gone already; there is nothing more to tell it.
            let _ = timeout(TIME, told).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{DuplexStream, duplex},
        net::UnixStream,
    };

    use super::*;

    /// A client that is told, through a pipe of so many bytes.
    fn told(notices: &ClosingNotices, tasks: &TaskTracker, room: usize) -> DuplexStream {
        let (client, stream) = duplex(room);
        notices.send(stream, too_many, tasks);
        client
    }

    async fn heard(mut client: DuplexStream) -> String {
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        all
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_do_not_read_take_so_many_places_and_no_more_and_give_them_back() {
        let (notices, tasks) = (ClosingNotices::new(3), TaskTracker::new());
        let unread: Vec<_> = (0..3).map(|_| told(&notices, &tasks, 1)).collect();
        assert_eq!((tasks.len(), heard(told(&notices, &tasks, 1024)).await), (3, String::new()));
        tasks.close();
        timeout(TIME * 2, tasks.wait()).await.unwrap();
        assert_eq!(heard(told(&notices, &tasks, 1024)).await, too_many());
        drop(unread);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hears_it_and_does_not_leave_has_its_place_for_a_moment() {
        let (notices, tasks) = (ClosingNotices::new(1), TaskTracker::new());
        let (mut client, stream) = duplex(4096);
        notices.send(stream, || not_allowed(7), &tasks);
        client.write_all(&[b'x'; 100_000]).await.unwrap();
        tasks.close();
        timeout(TIME * 2, tasks.wait()).await.unwrap();
        assert!(client.write_all(b"x").await.is_err());
    }

    #[tokio::test]
    async fn whoever_sent_a_whole_request_hears_all_of_it_and_then_the_end() {
        let (notices, tasks) = (ClosingNotices::new(1), TaskTracker::new());
        let (mut client, stream) = UnixStream::pair().unwrap();
        client.write_all(&[b'x'; 4096]).await.unwrap();
        notices.send(stream, || not_allowed(7), &tasks);
        client.write_all(&[b'x'; 500_000]).await.unwrap();
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, not_allowed(7));
        let (head, body) = all.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 403 ") && head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(body.contains("User 7") && body.contains(r#""reason":"denied_by_policy""#), "{body}");
    }
}
