//! A fake VMM: it carries connections between the host's Unix sockets and a guest that a test plays, with the quirks
//! that real ones have.
//!
//! Towards the guest, whoever connects to `v.sock` says `CONNECT PORT` and gets `OK ...`; [`Vmm::accept`] is the
//! guest's end. From the guest, [`Vmm::dial`] connects to `v.sock_PORT`, as a VMM does.
#![allow(dead_code, reason = "every test binary uses another part")]
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::{
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    os::{fd::AsFd, unix::net::UnixListener, unix::net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{JoinHandle, sleep, spawn},
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, UnixAddr},
};
use tempfile::TempDir;

/// How long it holds an answer back, so that what comes too early is there before it.
const HELD_BACK: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_secs(20);

/// What a VMM does otherwise than one that does everything right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// Nothing: half-close is carried too.
    None,
    /// A request that does not come in one piece is dropped (Firecracker, vhost-device-vsock).
    DropsSplitConnect,
    /// What follows the request before the answer is lost (vhost-device-vsock).
    EatsEarlyBytes,
    /// The end of one direction closes both at once (Firecracker, vhost-device-vsock).
    NoHalfClose,
    /// The end of the guest's direction is a reset (libkrun).
    ResetsOnEnd,
    /// Few bytes at a time, some late, the answer to the request too.
    ShortWrites,
    /// The guest's first bytes come together with the answer.
    GuestSpeaksFirst(&'static [u8]),
    /// It takes the request and says nothing.
    Mute,
    /// It says something else.
    Rubbish(&'static [u8]),
    /// It hangs up on so many requests: nothing listens in the guest (yet).
    Refuses(usize),
    /// It does not accept before [`Vmm::release`], and no connection more fits.
    FullBacklog,
}

/// A VMM that runs until it is dropped.
pub(crate) struct Vmm {
    /// Its socket.
    pub(crate) path: String,
    folder: TempDir,
    quirk: Quirk,
    guest: Receiver<UnixStream>,
    eaten: Arc<AtomicUsize>,
    ending: Arc<AtomicBool>,
    held: Option<(SyncSender<()>, Vec<std::os::fd::OwnedFd>)>,
    accepting: Option<JoinHandle<()>>,
}

/// What each connection needs to know.
#[derive(Clone)]
struct Shared {
    quirk: Quirk,
    guest: SyncSender<UnixStream>,
    eaten: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Vmm {
    pub(crate) fn start(quirk: Quirk) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.sock").display().to_string();
        let (listener, filled) = bind(&path, quirk == Quirk::FullBacklog);
        let (to_test, guest) = sync_channel(1024);
        let eaten = Arc::new(AtomicUsize::new(0));
        let ending = Arc::new(AtomicBool::new(false));
        let shared = Shared { quirk, guest: to_test, eaten: Arc::clone(&eaten), requests: Arc::default() };
        let (release, released) = sync_channel(1);
        let (stop, held) = (Arc::clone(&ending), quirk == Quirk::FullBacklog);
        let accepting = spawn(move || {
            // A dropped sender releases too.
            let _ = held.then(|| released.recv());
            for host in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (host, shared) = (host.unwrap(), shared.clone());
                spawn(move || shared.serve(host));
            }
        });
        let held = held.then_some((release, filled));
        Self { path, folder, quirk, guest, eaten, ending, held, accepting: Some(accepting) }
    }

    /// How to reach a port of its guest.
    pub(crate) fn to(&self, port: u32) -> String {
        format!("vsock-mux:{}:{port}", self.path)
    }

    /// The guest's end of the next connection.
    pub(crate) fn accept(&self) -> UnixStream {
        let guest = self.guest.recv_timeout(PATIENCE).unwrap();
        guest.set_read_timeout(Some(PATIENCE)).unwrap();
        guest
    }

    /// The guest connects to a port of the host.
    pub(crate) fn dial(&self, port: u32) -> std::io::Result<UnixStream> {
        let host = UnixStream::connect(format!("{}_{port}", self.path))?;
        let (guest, near) = UnixStream::pair()?;
        let quirk = self.quirk;
        spawn(move || carry(host, near, quirk));
        guest.set_read_timeout(Some(PATIENCE))?;
        Ok(guest)
    }

    /// How many bytes came before they should.
    pub(crate) fn eaten(&self) -> usize {
        self.eaten.load(Ordering::SeqCst)
    }

    /// Accepts from now on.
    pub(crate) fn release(&mut self) {
        drop(self.held.take());
    }
}

impl Drop for Vmm {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        self.release();
        // It wakes the thread that accepts; one that is gone already needs no waking.
        let _ = UnixStream::connect(&self.path);
        let _ = self.accepting.take().unwrap().join();
    }
}

/// Binds, and fills the backlog if `full`. Gives the connections that fill it.
fn bind(path: &str, full: bool) -> (UnixListener, Vec<std::os::fd::OwnedFd>) {
    if !full {
        return (UnixListener::bind(path).unwrap(), Vec::new());
    }
    let kind = || socket::socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    let listener = kind();
    let address = UnixAddr::new(path).unwrap();
    socket::bind(std::os::fd::AsRawFd::as_raw_fd(&listener), &address).unwrap();
    socket::listen(&listener, Backlog::new(1).unwrap()).unwrap();
    let mut filled = Vec::new();
    loop {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
        match socket::connect(std::os::fd::AsRawFd::as_raw_fd(&fd), &address) {
            Ok(()) => filled.push(fd),
            Err(e) => {
                assert_eq!(e, nix::errno::Errno::EAGAIN, "the backlog is full");
                return (listener.into(), filled);
            }
        }
    }
}

impl Shared {
    fn serve(&self, mut host: UnixStream) {
        if !self.asked_rightly(&mut host) {
            return;
        }
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        match self.quirk {
            Quirk::Refuses(times) if number < times => return,
            Quirk::Rubbish(answer) => return host.write_all(answer).unwrap_or(()),
            Quirk::Mute => {
                // Until the host has enough of it.
                let _ = std::io::copy(&mut host, &mut std::io::sink());
                return;
            }
            Quirk::EatsEarlyBytes => self.eat(&mut host),
            _ => {}
        }
        let answer = [b"OK 1073741824\n", self.quirk.first_words()].concat();
        let piece = if self.quirk == Quirk::ShortWrites { 1 } else { answer.len() };
        for part in answer.chunks(piece) {
            if host.write_all(part).is_err() {
                return;
            }
        }
        let (guest, near) = UnixStream::pair().unwrap();
        // A test that is over takes nobody in.
        if self.guest.send(guest).is_ok() {
            carry(host, near, self.quirk);
        }
    }

    /// Reads the request and no more, or whatever one read gives where that has to be all.
    fn asked_rightly(&self, host: &mut UnixStream) -> bool {
        let mut request = [0; 64];
        let mut length = 0;
        let step = if self.quirk == Quirk::DropsSplitConnect { request.len() } else { 1 };
        while length < request.len() {
            let end = request.len().min(length + step);
            match host.read(&mut request[length..end]) {
                Ok(read @ 1..) => length += read,
                _ => return false,
            }
            if step > 1 || request[length - 1] == b'\n' {
                break;
            }
        }
        let text = std::str::from_utf8(&request[..length]).unwrap_or_default();
        let port = text.strip_prefix("CONNECT ").and_then(|rest| rest.strip_suffix('\n'));
        port.is_some_and(|port| port.parse::<u32>().is_ok())
    }

    fn eat(&self, host: &mut UnixStream) {
        sleep(HELD_BACK);
        host.set_nonblocking(true).unwrap();
        match host.read(&mut [0; 4096]) {
            Ok(eaten) => _ = self.eaten.fetch_add(eaten, Ordering::SeqCst),
            Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
        }
        host.set_nonblocking(false).unwrap();
    }
}

impl Quirk {
    fn first_words(self) -> &'static [u8] {
        match self {
            Self::GuestSpeaksFirst(words) => words,
            _ => b"",
        }
    }
}

/// Copies both ways until both have ended, or as soon as the quirk has it.
fn carry(host: UnixStream, guest: UnixStream, quirk: Quirk) {
    let (host, guest) = (Arc::new(host), Arc::new(guest));
    let reset = Arc::new(AtomicBool::new(false));
    let (source, sink, resetting) = (Arc::clone(&guest), Arc::clone(&host), Arc::clone(&reset));
    let down = spawn(move || {
        copy(&source, &sink, quirk, &AtomicBool::new(false));
        resetting.store(quirk == Quirk::ResetsOnEnd, Ordering::SeqCst);
        end(&source, &sink, quirk);
    });
    copy(&host, &guest, quirk, &reset);
    if !reset.load(Ordering::SeqCst) {
        end(&host, &guest, quirk);
    }
    // With a reset this leaves a byte unread, and both are closed here: what a Unix socket calls a reset.
    drop(guest);
    let _ = down.join();
}

fn end(source: &UnixStream, sink: &UnixStream, quirk: Quirk) {
    // Either may have gone by itself.
    match quirk {
        Quirk::ResetsOnEnd => {}
        Quirk::NoHalfClose => {
            let _ = (source.shutdown(Shutdown::Both), sink.shutdown(Shutdown::Both));
        }
        _ => _ = sink.shutdown(Shutdown::Write),
    }
}

/// Copies until the end, or until there is something to read once `stop` is set.
fn copy(mut source: &UnixStream, mut sink: &UnixStream, quirk: Quirk, stop: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    let mut random = 1_u32;
    loop {
        let mut ready = [PollFd::new(source.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::NONE).unwrap();
        if stop.load(Ordering::SeqCst) {
            return;
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let short = quirk == Quirk::ShortWrites;
        let most = if short { 1 + (random >> 20) as usize } else { buffer.len() };
        let Ok(read @ 1..) = source.read(&mut buffer[..most]) else { return };
        if short && random.is_multiple_of(4) {
            sleep(Duration::from_micros(u64::from(random >> 24)));
        }
        if sink.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}
