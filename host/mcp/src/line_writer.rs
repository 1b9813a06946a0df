//! The half of the stdio transport that writes: one JSON message a line, each of them whole.
//!
//! The library's own messages come here by its transport, the handshake among them. Requests of ours come straight from
//! whoever waits for their answers: by way of the library two more tasks would take turns at each, which costs a call
//! more than what it has to say. The interceptor knows them by their pending requests either way. Once it is broken, by an
//! error, at the end of the other direction or when it is closed, nothing leaves any more.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use footbridge_processes::launch::Writer;
use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientRequest, GetMeta as _, NumberOrString, ProgressToken, RequestId,
};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::Mutex,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{interceptor::Interceptor, message, pending_request::PendingRequest};

/// Where ids of requests begin that do not come from the library. It counts its own from 0, and has a handshake and a
/// subscription to number.
const FIRST_ID: i64 = 1_000_000;

/// The way to the standard input of one server. Clones are the same.
#[derive(Clone)]
pub(super) struct LineWriter(Arc<Shared>);

struct Shared {
    /// None once it is broken or closed.
    writer: Mutex<Option<Writer>>,
    interceptor: Arc<Interceptor>,
    /// Writes that go on when nobody waits for them any more.
    tracker: TaskTracker,
    /// A write that takes longer breaks it.
    write_time: Duration,
    broken: CancellationToken,
    next_id: AtomicI64,
}

impl fmt::Debug for LineWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWriter").field("is_broken", &self.0.broken.is_cancelled()).finish_non_exhaustive()
    }
}

impl LineWriter {
    /// Writes to a program's standard input. What goes on behind whoever waits belongs to `tracker`.
    pub(super) fn new(
        writer: Writer,
        interceptor: Arc<Interceptor>,
        write_time: Duration,
        tracker: TaskTracker,
    ) -> Self {
        let (broken, next_id) = (CancellationToken::new(), AtomicI64::new(FIRST_ID));
        let writer = Mutex::new(Some(writer));
        Self(Arc::new(Shared { writer, interceptor, tracker, write_time, broken, next_id }))
    }

    /// Cancelled when nothing can be written any more, and by whoever reads the other direction, at its end.
    pub(super) fn broken(&self) -> &CancellationToken {
        &self.0.broken
    }

    /// A request of ours as a message: with an id that nothing else on this connection has, and what the library puts into
    /// its own; `us`: where each request has to say who sends it, in which revision (MCP 2026-07-28).
    pub(super) fn request(
        &self,
        mut request: ClientRequest,
        us: Option<ClientConfig>,
    ) -> (RequestId, ClientJsonRpcMessage) {
        let number = NumberOrString::Number(self.0.next_id.fetch_add(1, Ordering::Relaxed));
        let meta = request.get_meta_mut();
        if let Some(us) = us {
            meta.set_protocol_version(us.protocol_version);
            meta.set_client_info(us.client_info);
            meta.set_client_capabilities(us.capabilities);
        }
        meta.set_progress_token(ProgressToken(number.clone()));
        (number.clone(), ClientJsonRpcMessage::request(request, number))
    }

    /// Writes a message. A line that has begun is written to its end, although nobody waits for it any more: half a line
    /// would spoil the next one.
    ///
    /// # Errors
    /// When its request was withdrawn before, or nothing can be written any more.
    pub(super) async fn write(self, message: ClientJsonRpcMessage) -> io::Result<()> {
        let tracker = self.0.tracker.clone();
        let mut writing = Box::pin(self.write_now(message));
        match futures::poll!(&mut writing) {
            Poll::Ready(written) => written,
            Poll::Pending => tracker.spawn(writing).await.map_err(io::Error::other)?,
        }
    }

    /// The same, which has to be polled to its end.
    async fn write_now(self, message: ClientJsonRpcMessage) -> io::Result<()> {
        let Shared { writer, interceptor, write_time, broken, .. } = &*self.0;
        let pending = message::pending(&message);
        let mut writer = tokio::select! {
            biased;
            writer = writer.lock() => writer,
            () = withdrawn(pending.as_ref()) => return Err(withheld()),
            () = broken.cancelled() => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        // Whatever is broken is closed by whoever comes next, and nothing leaves by it any more.
        if broken.is_cancelled() {
            *writer = None;
        }
        let mut line = message::written(&message)?;
        line.push(b'\n');
        let Some(open) = writer.as_mut() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if !interceptor.departs(&message) {
            return Err(withheld());
        }
        let written = tokio::select! {
            biased;
            written = tokio::time::timeout(*write_time, all(open, &line)) => {
                written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            }
            () = broken.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if written.is_err() {
            *writer = None;
            broken.cancel();
        }
        written
    }

    /// Writes nothing any more, and closes the pipe: whoever writes ends at once.
    pub(super) async fn close(&self) {
        self.0.broken.cancel();
        *self.0.writer.lock().await = None;
    }
}

async fn all(open: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
    open.write_all(line).await?;
    open.flush().await
}

async fn withdrawn(pending: Option<&PendingRequest>) {
    match pending {
        Some(pending) => pending.withdrawn().await,
        None => std::future::pending().await,
    }
}

fn withheld() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "withdrawn before it was sent")
}

#[cfg(test)]
mod tests {
    use footbridge_core::redact::Redactor;
    use rmcp::model::{GetExtensions as _, ListToolsRequest};
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

    use super::{super::ignored::IgnoredMessages, *};

    /// A writer to a pipe that holds so little that a line does not fit, and its other end.
    fn narrow() -> (LineWriter, DuplexStream) {
        let (ours, theirs) = duplex(16);
        let ignored = Arc::new(IgnoredMessages::of("x".parse().unwrap(), None, Redactor::default()));
        let interceptor = Arc::new(Interceptor::new(Redactor::default(), ignored, false, false));
        (LineWriter::new(Box::new(ours), interceptor, Duration::from_secs(60), TaskTracker::new()), theirs)
    }

    fn request(writer: &LineWriter) -> (PendingRequest, ClientJsonRpcMessage) {
        let pending = PendingRequest::new();
        let mut request = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        request.extensions_mut().insert(pending.clone());
        (pending, writer.request(request, None).1)
    }

    async fn rest(mut theirs: DuplexStream) -> String {
        let mut came = String::new();
        theirs.read_to_string(&mut came).await.unwrap();
        came
    }

    #[tokio::test]
    async fn a_line_that_has_begun_comes_whole_although_its_caller_left() {
        let (writer, theirs) = narrow();
        let (pending, message) = request(&writer);
        let mut writing = Box::pin(writer.clone().write(message));
        assert!(futures::poll!(&mut writing).is_pending());
        drop(writing);
        assert!(!pending.withdraw(), "it has left");
        let closed = async {
            writer.0.tracker.close();
            writer.0.tracker.wait().await;
            writer.close().await;
        };
        let (came, ()) = tokio::join!(rest(theirs), closed);
        assert!(came.ends_with('\n') && came.matches("tools/list").count() == 1, "{came}");
        assert!(serde_json::from_str::<serde_json::Value>(&came).is_ok(), "{came}");
    }

    #[tokio::test]
    async fn nothing_leaves_once_it_is_broken() {
        let (writer, theirs) = narrow();
        let (pending, message) = request(&writer);
        writer.broken().cancel();
        assert_eq!(writer.clone().write(message).await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(pending.withdraw(), "it has not left");
        assert_eq!(rest(theirs).await, "", "and its pipe is closed");
    }

    #[tokio::test]
    async fn who_closes_does_not_wait_for_a_program_that_does_not_read() {
        let (writer, theirs) = narrow();
        let (_pending, message) = request(&writer);
        let mut writing = Box::pin(writer.clone().write(message));
        assert!(futures::poll!(&mut writing).is_pending());
        writer.close().await;
        assert!(writing.await.is_err());
        assert!(!rest(theirs).await.ends_with('\n'));
    }
}
