//! The stdio transport under the MCP library: one JSON message a line, over any pair of byte streams.
//!
//! It has its own line limit, and slows a flooding server down; what writes is in `line_writer`. States: open, then closed
//! at end of input, on an error of either stream, or when the library closes it. A line that is cut off by
//! the end of input is taken as it is: some servers forget the last line break.

use std::{
    borrow::Cow,
    collections::VecDeque,
    io,
    sync::{Arc, LazyLock},
};

use footbridge_calls::low_threads::LowThreads;
use footbridge_processes::launch::Reader;
use futures::{FutureExt as _, future::BoxFuture};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::io::AsyncReadExt;

use super::{
    ignored::Pace,
    interceptor::{Interceptor, Kind},
    line_writer::LineWriter,
    message_buffer::{BufferedMessage, MessageBuffer, Room},
};

/// What is read at a time.
const CHUNK: usize = 16 * 1024;

/// Where messages are read that take long: beside the workers, and behind them.
static READERS: LazyLock<LowThreads> = LazyLock::new(LowThreads::apart);

/// U+FEFF as the first bytes of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What a large message came to.
struct LargeMessage {
    messages: VecDeque<ServerJsonRpcMessage>,
    /// Its length, where nobody waited for it.
    unwanted: usize,
}

/// The transport of one connection.
pub(super) struct Lines {
    reader: Reader,
    writer: LineWriter,
    interceptor: Arc<Interceptor>,
    buffer: MessageBuffer,
    chunk: Vec<u8>,
    filled: std::ops::Range<usize>,
    ready: VecDeque<ServerJsonRpcMessage>,
    /// A large message that is being read beside the workers, which others wait for.
    reading: Option<BoxFuture<'static, Option<LargeMessage>>>,
    pace: Pace,
    /// Whether there was a line.
    has_begun: bool,
    ended: bool,
}

impl Lines {
    /// A transport over two streams.
    pub(super) fn new(reader: Reader, writer: LineWriter, interceptor: Arc<Interceptor>, room: Room) -> Self {
        Self {
            reader,
            writer,
            interceptor,
            buffer: MessageBuffer::new(room),
            chunk: vec![0; CHUNK],
            filled: 0..0,
            ready: VecDeque::new(),
            reading: None,
            pace: Pace::new(),
            has_begun: false,
            ended: false,
        }
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
            () = self.buffer.overdue() => {
                self.buffer.give_up();
                return self.tell_lost();
            }
        };
        match read {
            Ok(0) | Err(_) => {
                self.ended = true;
                self.finish_line();
                self.writer.broken().cancel();
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
        self.tell_lost();
        let dropped = if self.buffer.dropping().is_some() { used } else { 0 };
        let unwanted = if complete { self.finish_line() } else { 0 };
        if dropped + unwanted > 0 {
            self.pace.unwanted(dropped + unwanted).await;
        }
    }

    /// Whoever waits for an answer that is dropped hears it before its line ends, which may never be.
    fn tell_lost(&mut self) {
        if let Some(lost) = self.buffer.lost() {
            self.interceptor.lost(lost, &mut self.ready);
        }
    }

    /// Takes what came of a large message.
    async fn take_in(&mut self, read: Option<LargeMessage>) {
        match read {
            Some(LargeMessage { messages, unwanted }) => {
                self.ready.extend(messages);
                if unwanted > 0 {
                    self.pace.unwanted(unwanted).await;
                }
            }
            None => tracing::error!("a large message of a server could not be read"),
        }
    }

    /// Hands the line on. Gives its length if nobody waited for it.
    fn finish_line(&mut self) -> usize {
        if self.buffer.is_empty() {
            return 1;
        }
        match self.buffer.finish() {
            BufferedMessage::Whole(mut bytes, held) => {
                // Some programs begin their output with it, whatever it is.
                if !std::mem::replace(&mut self.has_begun, true) && bytes.starts_with(BYTE_ORDER_MARK) {
                    bytes.drain(..BYTE_ORDER_MARK.len());
                }
                let length = bytes.len();
                if bytes.iter().all(u8::is_ascii_whitespace) {
                    return length;
                }
                if self.interceptor.takes_long(&bytes) {
                    let interceptor = Arc::clone(&self.interceptor);
                    let read = move || {
                        let mut messages = VecDeque::new();
                        let kind = interceptor.arrived(bytes, held, &mut messages);
                        LargeMessage { messages, unwanted: if kind == Kind::Answer { 0 } else { length } }
                    };
                    self.reading = Some(READERS.run(read).boxed());
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
        self.writer.clone().write(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.next().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.close().await;
        Ok(())
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // However it ends: nobody would read an answer any more.
        self.writer.broken().cancel();
    }
}
