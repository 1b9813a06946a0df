//! Connections for which there is no place: each is told so, and closed. Each takes a task and a descriptor until its
//! client has heard it, so only so many are told at a time; those beyond are closed without a word.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::task::TaskTracker;

/// Clients that are told at a time, in all. One that reads is told within a moment.
const AT_ONCE: usize = 64;

/// How long a client that does not read may take.
const TIME: Duration = Duration::from_secs(1);

/// What a client gets, and then the end.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 32\r\nConnection: close\r\n\r\n{\"error\":\"Too many connections\"}";

/// The places of those that are told. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct OverloadNotices(Arc<Semaphore>);

impl OverloadNotices {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }

    /// Tells a client, in a task of these.
    pub(crate) fn send(&self, mut stream: impl AsyncWrite + Unpin + Send + 'static, tasks: &TaskTracker) {
        let Ok(place) = Arc::clone(&self.0).try_acquire_owned() else { return };
        tasks.spawn(async move {
            let _place = place;
            let told = async {
                stream.write_all(TOO_MANY).await?;
                stream.shutdown().await
            };
            // The client may be gone already; there is nothing more to tell it.
            let _ = timeout(TIME, told).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

    use super::*;

    /// A client that is told, through a pipe of so many bytes.
    fn told(notices: &OverloadNotices, tasks: &TaskTracker, room: usize) -> DuplexStream {
        let (client, stream) = duplex(room);
        notices.send(stream, tasks);
        client
    }

    async fn heard(mut client: DuplexStream) -> Vec<u8> {
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.unwrap();
        all
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_do_not_read_take_so_many_places_and_no_more_and_give_them_back() {
        let (notices, tasks) = (OverloadNotices::new(), TaskTracker::new());
        let unread: Vec<_> = (0..AT_ONCE).map(|_| told(&notices, &tasks, 1)).collect();
        assert_eq!((tasks.len(), heard(told(&notices, &tasks, 1024)).await), (AT_ONCE, Vec::new()));
        tasks.close();
        timeout(TIME * 2, tasks.wait()).await.unwrap();
        assert_eq!(heard(told(&notices, &tasks, 1024)).await, TOO_MANY);
        drop(unread);
    }
}
