//! Requests that become WebSockets (RFC 6455): what is asked of the origin, whether it agreed, and what passes then.
//!
//! No extension is offered, so nothing is compressed: messages of the origin pass without the credential, as far as it
//! stands in one piece of what came. What a guest sends is read without its mask, so that an echo tells it nothing.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use footbridge_audit::{ExchangeRecord, RecordedOutcome};
use footbridge_calls::service::OpenExchange;
use footbridge_core::{
    limits::ServiceLimits,
    redact::{LookPiece, SentText, StreamRedactor},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{Context as Sha, SHA1_FOR_LEGACY_USE_ONLY};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    carried::{Carried, CarryOver},
    pace::{PIECE, Pace},
    passing::Begun,
};

/// What an origin puts behind the key to show that it knows the protocol.
const KNOWS: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Bytes that are read at a time.
const READ: usize = 8 * 1024;

/// What an origin has to say to agree.
#[derive(Debug)]
pub(crate) struct Handshake(String);

impl Handshake {
    /// Has a request ask for it.
    pub(crate) fn begin(headers: &mut HeaderMap) -> Self {
        headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        say_upgrade(headers);
        let mut sha = Sha::new(&SHA1_FOR_LEGACY_USE_ONLY);
        sha.update(headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default());
        sha.update(KNOWS);
        Self(STANDARD.encode(sha.finish()))
    }

    /// Whether an answer agrees: it knows the key, and takes nothing that was not offered.
    pub(crate) fn is_agreed(&self, headers: &HeaderMap) -> bool {
        let upgrade = headers.get(header::UPGRADE).map(HeaderValue::as_bytes).unwrap_or_default();
        let accept = headers.get(header::SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes).unwrap_or_default();
        accept == self.0.as_bytes()
            && upgrade.eq_ignore_ascii_case(b"websocket")
            && !headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS)
    }
}

/// Says on one hop that it becomes a WebSocket.
pub(crate) fn say_upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// A WebSocket that its origin agreed to, that nothing went through yet.
pub struct WebSocket {
    connection: OnUpgrade,
    begun: Begun,
    limits: ServiceLimits,
    is_of_model: bool,
    exchange: Option<OpenExchange>,
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebSocket")
    }
}

impl WebSocket {
    pub(crate) fn new(connection: OnUpgrade, begun: Begun, limits: &ServiceLimits, is_of_model: bool) -> Self {
        Self { connection, begun, limits: limits.clone(), is_of_model, exchange: None }
    }

    pub(crate) fn recorded_by(&mut self, exchange: OpenExchange) {
        self.exchange = Some(exchange);
    }

    /// Carries what comes and goes until both sides are done, or `over` is, and records what became of it.
    pub async fn carry<C>(self, client: C, over: impl Future<Output = CarryOver>)
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(exchange) = self.exchange else { return };
        let Begun { redactor, first_byte_ms, until, spending, pace, .. } = self.begun;
        let status = StatusCode::SWITCHING_PROTOCOLS.as_u16();
        let connection = match self.connection.await {
            Ok(connection) => connection,
            Err(error) => {
                let (status, first_byte_ms) = (Some(status), Some(first_byte_ms));
                let nothing = ExchangeRecord { status, first_byte_ms, ..ExchangeRecord::default() };
                return exchange.close(RecordedOutcome::Unknown, Some(format!("a connection broke: {error}")), nothing);
            }
        };
        let stream = Messages {
            inner: TokioIo::new(connection),
            frames: Frames::default(),
            sent: redactor.sent(),
            text: redactor.stream(),
            paces: [pace.another(), pace],
            came: Bytes::new(),
            ready: Bytes::new(),
            is_over: false,
        };
        let (limits, until, is_of_model) = (self.limits, Some(until), self.is_of_model);
        let carried =
            Carried { stream, greets: None, status, first_byte_ms, limits, until, spending, is_of_model, redactor };
        carried.carry(client, exchange, over).await;
    }
}

/// An origin's connection: what is written to it is read as frames, and what comes of it is without the credential.
struct Messages<S> {
    inner: S,
    frames: Frames,
    sent: SentText,
    text: StreamRedactor,
    /// How fast what is written is looked at, and what comes.
    paces: [Pace; 2],
    /// What came and is still to be looked through.
    came: Bytes,
    /// What came and can go on.
    ready: Bytes,
    is_over: bool,
}

impl<S: AsyncRead + Unpin> AsyncRead for Messages<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.ready.is_empty() && !this.is_over {
            if !this.came.is_empty() {
                let LookPiece { length, cost } = this.text.next_piece(&this.came, PIECE);
                let _turn = ready!(this.paces[1].poll(cost, cx));
                let piece = this.came.split_to(length);
                this.ready = this.text.push(piece);
                continue;
            }
            let mut space = [0; READ];
            let mut read = ReadBuf::new(&mut space);
            let came = match Pin::new(&mut this.inner).poll_read(cx, &mut read) {
                // Many end TLS without saying so; messages have ends of their own.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(()),
                came => came?,
            };
            this.is_over = came.is_ready() && read.filled().is_empty();
            if came.is_ready() && !this.is_over {
                this.came = Bytes::copy_from_slice(read.filled());
                continue;
            }
            // No message waits for the next one: what could have been the beginning of a value goes on.
            this.ready = this.text.finish().into();
            if came.is_pending() && this.ready.is_empty() {
                return Poll::Pending;
            }
        }
        let count = this.ready.len().min(buffer.remaining());
        buffer.put_slice(&this.ready.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Messages<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // What is said in it is known once it is written.
        let (bytes, cost) =
            if this.sent.is_idle() { (bytes, 0) } else { (&bytes[..PIECE.min(bytes.len())], PIECE.min(bytes.len())) };
        let _turn = ready!(this.paces[0].poll(cost, cx));
        let count = ready!(Pin::new(&mut this.inner).poll_write(cx, bytes))?;
        let said = this.frames.data(bytes.get(..count).unwrap_or_default());
        this.sent.pass(&said);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

/// Reads the frames of a client, wherever they are cut (RFC 6455, 5.2).
#[derive(Debug, Default)]
struct Frames {
    /// What came of the head of a frame.
    head: Vec<u8>,
    /// Bytes that are still to come of its data.
    left: u64,
    mask: [u8; 4],
    /// Bytes that came of its data.
    at: usize,
}

impl Frames {
    /// The data in what passes, without their mask.
    fn data(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut data = Vec::with_capacity(bytes.len());
        while let Some((first, rest)) = bytes.split_first() {
            if self.left == 0 {
                self.head.push(*first);
                self.begin();
                bytes = rest;
                continue;
            }
            let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            let (now, rest) = bytes.split_at(count);
            let masks = self.mask.iter().cycle().skip(self.at % self.mask.len());
            data.extend(now.iter().zip(masks).map(|(byte, mask)| byte ^ mask));
            (self.at, self.left, bytes) = (self.at.wrapping_add(count), self.left - count as u64, rest);
        }
        data
    }

    /// Goes on to the data once a head is whole.
    fn begin(&mut self) {
        let Some(said) = self.head.get(1).copied() else { return };
        let (length, is_masked) = (said & 0x7f, said & 0x80 != 0);
        let extended = match length {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let masks = if is_masked { self.mask.len() } else { 0 };
        if self.head.len() < 2 + extended + masks {
            return;
        }
        let (lengths, mask) = self.head[2..].split_at(extended);
        let longer = lengths.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        self.left = if extended > 0 { longer } else { length.into() };
        self.mask = mask.try_into().unwrap_or_default();
        self.at = 0;
        self.head.clear();
    }
}

#[cfg(test)]
mod tests {
    use footbridge_core::{redact::Redactor, secret::Secret};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    /// A frame of a client.
    fn frame(data: &[u8]) -> Vec<u8> {
        let mask = [7, 1, 250, 3];
        let mut frame = vec![0x81];
        match data.len() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
            length => frame.extend([&[0xfe][..], &u16::try_from(length).unwrap().to_be_bytes()].concat()),
        }
        frame.extend(mask);
        frame.extend(data.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        frame
    }

    #[test]
    fn data_are_read_wherever_frames_are_cut() {
        let long = "x".repeat(300);
        let said = [b"hello".as_slice(), b"", long.as_bytes(), b"bye"];
        let all: Vec<u8> = said.iter().flat_map(|data| frame(data)).collect();
        for size in [1, 2, 3, 7, all.len()] {
            let mut frames = Frames::default();
            let data: Vec<u8> = all.chunks(size).flat_map(|part| frames.data(part)).collect();
            assert_eq!(data, said.concat(), "{size}");
        }
        assert_eq!(Frames::default().data(b"\x81\x02hi"), b"hi", "without a mask");
    }

    fn messages(redactor: &Redactor) -> (Messages<DuplexStream>, DuplexStream) {
        let (inner, origin) = duplex(1 << 16);
        let (sent, text) = (redactor.sent(), redactor.stream());
        let pace = Pace::new(std::sync::Arc::new(tokio::sync::Semaphore::new(1)));
        let (frames, came, ready, is_over) = (Frames::default(), Bytes::new(), Bytes::new(), false);
        (Messages { inner, frames, sent, text, paces: [pace.another(), pace], came, ready, is_over }, origin)
    }

    #[tokio::test]
    async fn the_credential_is_taken_out_unless_the_guest_said_it_and_nothing_waits_for_the_next_message() {
        let redactor = Redactor::new(&[Secret::new("s3cret-value")]);
        let (mut own, mut origin) = messages(&redactor.sparing([]));
        origin.write_all(b"\x81\x12key = s3cret-value\x81\x03s3c").await.unwrap();
        let mut came = [0; 25];
        own.read_exact(&mut came).await.unwrap();
        assert_eq!(&came, b"\x81\x12key = [redacted]**\x81\x03s3c");
        own.write_all(&frame(b"is it s3cret-value?")).await.unwrap();
        origin.write_all(b"\x81\x0cs3cret-value").await.unwrap();
        own.read_exact(&mut came[..14]).await.unwrap();
        assert_eq!(&came[..14], b"\x81\x0cs3cret-value");
        drop(origin);
        assert_eq!(own.read(&mut came).await.unwrap(), 0);
    }

    #[test]
    fn an_origin_agrees_to_what_was_asked_alone() {
        let mut asked = HeaderMap::new();
        asked.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        asked.insert(header::SEC_WEBSOCKET_EXTENSIONS, HeaderValue::from_static("permessage-deflate"));
        let handshake = Handshake::begin(&mut asked);
        assert!(!asked.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) && asked[header::UPGRADE] == "websocket");
        let mut answer = HeaderMap::new();
        answer.insert(header::UPGRADE, HeaderValue::from_static("WebSocket"));
        answer.insert(header::SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert!(handshake.is_agreed(&answer));
        answer.insert(header::SEC_WEBSOCKET_EXTENSIONS, HeaderValue::from_static("permessage-deflate"));
        assert!(!handshake.is_agreed(&answer));
        answer.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        answer.insert(header::SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static("x"));
        assert!(!handshake.is_agreed(&answer));
    }
}
