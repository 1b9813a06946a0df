//! The stdio transport under the MCP library: one JSON message a line, over any pair of byte streams.
//!
//! It has its own line limit, slows a flooding server down, and gives up on a server that takes no input. States: open,
//! then closed at end of input, on an error of either stream, or when the library closes it. A line that is cut off by
//! the end of input is taken as it is: some servers forget the last line break.

use footbridge_processes::launch::Reader;
use footbridge_processes::launch::Writer;
use std::{borrow::Cow, collections::VecDeque, io, sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Mutex,
    task::{JoinError, JoinHandle, spawn_blocking},
};
use tokio_util::sync::CancellationToken;

use super::{
    ignored::Pace,
    interceptor::{Interceptor, Kind},
    message,
    message_buffer::{BufferedMessage, MessageBuffer, Room},
    pending_request::PendingRequest,
};

/// What is read at a time.
const CHUNK: usize = 16 * 1024;

/// A message beyond this is read beside the workers, bytes.
const LARGE: usize = 1024 * 1024;

/// What a large message came to.
struct LargeMessage {
    messages: VecDeque<ServerJsonRpcMessage>,
    /// Its length, where nobody waited for it.
    unwanted: usize,
}

/// The transport of one connection.
pub(super) struct Lines {
    reader: Reader,
    writer: Arc<Mutex<Option<Writer>>>,
    interceptor: Arc<Interceptor>,
    buffer: MessageBuffer,
    chunk: Vec<u8>,
    filled: std::ops::Range<usize>,
    ready: VecDeque<ServerJsonRpcMessage>,
    /// A large message that is being read beside the workers, which others wait for.
    reading: Option<JoinHandle<LargeMessage>>,
    pace: Pace,
    ended: bool,
    write_time: Duration,
    broken: CancellationToken,
}

impl Lines {
    /// A transport over two streams. A write that takes longer than `write_time` breaks it.
    pub(super) fn new(
        reader: Reader,
        writer: Writer,
        interceptor: Arc<Interceptor>,
        room: Room,
        write_time: Duration,
    ) -> Self {
        Self {
            reader,
            writer: Arc::new(Mutex::new(Some(writer))),
            interceptor,
            buffer: MessageBuffer::new(room),
            chunk: vec![0; CHUNK],
            filled: 0..0,
            ready: VecDeque::new(),
            reading: None,
            pace: Pace::new(),
            ended: false,
            write_time,
            broken: CancellationToken::new(),
        }
    }

    /// Cancelled at the end of input and when it breaks.
    pub(super) fn broken(&self) -> CancellationToken {
        self.broken.clone()
    }

    /// Reads until there is a message for the library, or the input ends. Safe to cancel: what was read stays.
    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if let Some(reading) = &mut self.reading {
                let read = reading.await;
                self.reading = None;
                self.take_in(read).await;
                continue;
            }
            if self.ended {
                return None;
            }
            if self.filled.is_empty() {
                self.fill().await;
                continue;
            }
            self.take_piece().await;
        }
    }

    async fn fill(&mut self) {
        let read = tokio::select! {
            read = self.reader.read(&mut self.chunk) => read,
            () = self.buffer.overdue() => return self.buffer.give_up(),
        };
        match read {
            Ok(0) | Err(_) => {
                self.ended = true;
                self.finish_line();
                self.broken.cancel();
            }
            Ok(read) => self.filled = 0..read,
        }
    }

    /// Moves one piece, up to a line break, from the chunk to the line.
    ///
    /// The only wait before the piece counts as taken is for the budget, inside `push`; cancelled there it is taken
    /// again from its start, which `push` has not stored yet.
    async fn take_piece(&mut self) {
        let piece = &self.chunk[self.filled.clone()];
        let (piece, used, complete) = match piece.iter().position(|byte| *byte == b'\n') {
            Some(at) => (&piece[..at], at + 1, true),
            None => (piece, piece.len(), false),
        };
        self.buffer.push(piece).await;
        self.filled.start += used;
        let dropped = if self.buffer.dropping().is_some() { used } else { 0 };
        let unwanted = if complete { self.finish_line() } else { 0 };
        if dropped + unwanted > 0 {
            self.pace.unwanted(dropped + unwanted).await;
        }
    }

    /// Takes what came of a large message.
    async fn take_in(&mut self, read: Result<LargeMessage, JoinError>) {
        match read {
            Ok(LargeMessage { messages, unwanted }) => {
                self.ready.extend(messages);
                if unwanted > 0 {
                    self.pace.unwanted(unwanted).await;
                }
            }
            Err(error) => tracing::error!(%error, "a large message of a server could not be read"),
        }
    }

    /// Hands the line on. Gives its length if nobody waited for it.
    fn finish_line(&mut self) -> usize {
        if self.buffer.is_empty() {
            return 1;
        }
        match self.buffer.finish() {
            BufferedMessage::Whole(bytes, held) => {
                let length = bytes.len();
                if bytes.iter().all(u8::is_ascii_whitespace) {
                    return length;
                }
                if length > LARGE {
                    let interceptor = Arc::clone(&self.interceptor);
                    self.reading = Some(spawn_blocking(move || {
                        let mut messages = VecDeque::new();
                        let kind = interceptor.arrived(bytes, held, &mut messages);
                        LargeMessage { messages, unwanted: if kind == Kind::Answer { 0 } else { length } }
                    }));
                    return 0;
                }
                match self.interceptor.arrived(bytes, held, &mut self.ready) {
                    Kind::Answer => 0,
                    Kind::Other => length,
                }
            }
            BufferedMessage::Dropped { id, why, head } => {
                self.interceptor.dropped(id, why, &head, &mut self.ready);
                1
            }
        }
    }
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        Cow::Borrowed("stdio")
    }

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (writer, interceptor) = (Arc::clone(&self.writer), Arc::clone(&self.interceptor));
        let (broken, limit) = (self.broken.clone(), self.write_time);
        async move {
            let pending = message::pending(&item);
            let mut writer = tokio::select! {
                writer = writer.lock() => writer,
                () = withdrawn(pending.as_ref()) => return Err(withheld()),
                () = broken.cancelled() => return Err(io::ErrorKind::BrokenPipe.into()),
            };
            let mut line = message::written(&item)?;
            line.push(b'\n');
            let Some(open) = writer.as_mut() else { return Err(io::ErrorKind::BrokenPipe.into()) };
            if !interceptor.departs(&item) {
                return Err(withheld());
            }
            let written = tokio::time::timeout(limit, async {
                open.write_all(&line).await?;
                open.flush().await
            });
            let written = written.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            if written.is_err() {
                *writer = None;
                broken.cancel();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.next().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.broken.cancel();
        // Whoever still writes ends by the cancellation of its task; the pipe closes with the last of them.
        if let Ok(mut writer) = self.writer.try_lock() {
            *writer = None;
        }
        Ok(())
    }
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
