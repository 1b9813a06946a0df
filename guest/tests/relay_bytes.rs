//! Many random bytes through the relay at once, and connections cut in their middle: all whole, and nothing held after.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod sandbox;
#[path = "../../tests/skipped.rs"]
mod skipped;

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    process::{Command, Stdio},
    time::Duration,
};

use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, VsockAddr};
use sandbox::{PATIENCE, Relay, until};
use skipped::skipped;

const MANY: usize = 20 << 20;
/// Descriptors of the pipes that the relay keeps for later.
const SPARE_PIPES: usize = 8;
/// This machine itself, and any port (vsock(7)).
const LOCAL: u32 = 1;
const ANY_PORT: u32 = u32::MAX;

fn random(bytes: usize) -> Vec<u8> {
    let mut random = vec![0; bytes];
    File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    random
}

/// A harness at a socket named as Firecracker has it.
fn firecracker_s() -> (tempfile::TempDir, UnixListener, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.sock_7179");
    let to = format!("unix:{}", path.display());
    (folder, UnixListener::bind(path).unwrap(), to)
}

/// Says all again until the end, and then ends.
fn echo(mut peer: UnixStream) {
    let mut twin = peer.try_clone().unwrap();
    std::io::copy(&mut peer, &mut twin).unwrap();
}

/// Sends and gets back `parts`, one after the other, and compares each byte.
fn comes_back(mut client: &TcpStream, parts: [&[u8]; 2]) {
    let mut buffer = vec![0; 64 << 10];
    std::thread::scope(|scope| {
        scope.spawn(move || parts.iter().for_each(|part| client.write_all(part).unwrap()));
        for part in parts {
            for expected in part.chunks(buffer.len()) {
                client.read_exact(&mut buffer[..expected.len()]).unwrap();
                assert!(buffer[..expected.len()] == *expected, "what came back is something else");
            }
        }
    });
}

#[test]
fn fifty_at_once_come_back_whole() {
    let (_folder, harness, to) = firecracker_s();
    let relay = Relay::start(&to, &[]);
    let sent = random(MANY);
    std::thread::scope(|scope| {
        for n in 0..50 {
            let client = relay.connect();
            let peer = harness.accept().unwrap().0;
            scope.spawn(move || echo(peer));
            // Each its own bytes, so that none can be another's.
            let (head, tail) = sent.split_at(n * 4099);
            scope.spawn(move || {
                comes_back(&client, [tail, head]);
                client.shutdown(Shutdown::Both).unwrap();
            });
        }
    });
}

#[test]
fn a_hundred_cut_in_the_middle_leave_nothing() {
    let (_folder, harness, to) = firecracker_s();
    let relay = Relay::start(&to, &[]);
    // One that stays, and a hundred that are cut: what the relay needs once is there before it is measured.
    let stays = (relay.connect(), harness.accept().unwrap().0);
    comes_back_once(&stays);
    let descriptors = relay.descriptors() + SPARE_PIPES;
    cut(&relay, &harness, 100);
    until("the first ones' release", || relay.descriptors() <= descriptors);
    // What is held grows with each hundred; what is only not given back to the system does not.
    let growth = (0..3).map(|_| {
        let memory = relay.memory();
        cut(&relay, &harness, 100);
        until("the descriptors' release", || relay.descriptors() <= descriptors);
        relay.memory().saturating_sub(memory)
    });
    let grown = growth.min().unwrap_or_default();
    println!("{grown} KiB more after 100 connections that were cut");
    assert!(grown < 1024, "{grown} KiB are held");
    comes_back_once(&stays);
}

#[test]
fn a_client_that_is_gone_is_let_go_though_the_harness_reads_nothing() {
    let (_folder, harness, to) = firecracker_s();
    let relay = Relay::start(&to, &[]);
    let full = || {
        let (client, peer) = (relay.connect(), harness.accept().unwrap().0);
        client.set_nonblocking(true).unwrap();
        fill(&client);
        (client, peer)
    };
    // Pipes that are kept are there before descriptors are counted.
    let (stays, peer) = full();
    let descriptors = relay.descriptors() + SPARE_PIPES;
    let (closed, reset): (Vec<_>, Vec<_>) = (0..40).map(|_| full()).enumerate().partition(|(n, _)| n % 2 == 0);
    let end = |(_, (client, peer)): (usize, (TcpStream, UnixStream)), reset: bool| {
        if reset {
            let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
            nix::sys::socket::setsockopt(&client, nix::sys::socket::sockopt::Linger, &linger).unwrap();
        }
        peer
    };
    let mut peers: Vec<UnixStream> = closed.into_iter().map(|one| end(one, false)).collect();
    peers.extend(reset.into_iter().map(|one| end(one, true)));
    until("the release of both ends", || relay.descriptors() <= descriptors);
    for mut peer in peers {
        // The harness's end too: what was sent before, and then the end.
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        std::io::copy(&mut peer, &mut std::io::sink()).unwrap();
    }
    // One that only sends nothing more is kept, and gets its answer.
    stays.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let mut peer = peer;
    std::io::copy(&mut peer, &mut std::io::sink()).unwrap();
    peer.write_all(b"answer").unwrap();
    drop(peer);
    stays.set_nonblocking(false).unwrap();
    let mut answer = String::new();
    (&stays).read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
}

fn comes_back_once((client, peer): &(TcpStream, UnixStream)) {
    let (mut client, mut peer) = (client, peer);
    client.write_all(b"?").unwrap();
    peer.read_exact(&mut [0; 1]).unwrap();
    peer.write_all(b"!").unwrap();
    client.read_exact(&mut [0; 1]).unwrap();
}

/// Connections that are full in both directions when one side or the other leaves.
fn cut(relay: &Relay, harness: &UnixListener, number: usize) {
    let held: Vec<_> = (0..number).map(|_| (relay.connect(), harness.accept().unwrap().0)).collect();
    for (client, peer) in &held {
        peer.set_nonblocking(true).unwrap();
        client.set_nonblocking(true).unwrap();
        fill(client);
        fill(peer);
    }
    for (n, (client, peer)) in held.into_iter().enumerate() {
        if n % 2 == 0 { drop((client, peer)) } else { drop((peer, client)) }
    }
}

/// Writes until no more fits.
fn fill(mut sink: impl Write) {
    let error = loop {
        if let Err(e) = sink.write_all(&[7; 64 << 10]) {
            break e;
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn where_descriptors_are_few_uploads_that_nobody_takes_leave_the_others_theirs() {
    let (_folder, harness, to) = firecracker_s();
    let mut command = Command::new("sh");
    let limit = "ulimit -n 65; exec \"$0\" --ready-fd 3 \"$@\" 3>&1";
    command.args(["-c", limit, env!("CARGO_BIN_EXE_footbridge-relay"), "--listen", "tcp:127.0.0.1:0"]);
    command.args(["--to", &to, "--patience", "0"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let relay = Relay::spawn(&mut command);
    let full = || {
        let (client, peer) = (relay.connect(), harness.accept().unwrap().0);
        client.set_nonblocking(true).unwrap();
        fill(&client);
        (client, peer)
    };
    let stuck: Vec<_> = (0..12).map(|_| full()).collect();
    let others: Vec<TcpStream> = (0..20).map(|_| relay.connect()).collect();
    let harness = std::thread::spawn(move || {
        for _ in 0..20 {
            harness.accept().unwrap().0.write_all(b"here").unwrap();
        }
    });
    for mut other in others {
        let mut answer = String::new();
        other.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "here");
    }
    harness.join().unwrap();
    drop(stuck);
}

/// A vsock socket bound on this machine's own address, if it has one.
fn vsock_listener() -> nix::Result<(OwnedFd, u32)> {
    let fd = socket::socket(AddressFamily::Vsock, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    socket::bind(fd.as_raw_fd(), &VsockAddr::new(LOCAL, ANY_PORT))?;
    socket::listen(&fd, Backlog::new(64)?)?;
    let address: VsockAddr = socket::getsockname(fd.as_raw_fd())?;
    Ok((fd, address.port()))
}

/// The harness's end of the next connection; reading, writing and shutting down are those of any stream.
fn accept_vsock(listener: &OwnedFd) -> UnixStream {
    let fd = socket::accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC).unwrap();
    let peer = UnixStream::from(footbridge_guest::sys::take_descriptor(fd).unwrap());
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    peer
}

#[test]
fn vsock_carries_the_same_bytes_and_the_same_endings() {
    let (listener, port) = match vsock_listener() {
        Ok(bound) => bound,
        Err(e) => return skipped("the relay over AF_VSOCK", format!("no loopback transport for vsock here: {e}")),
    };
    let relay = Relay::start(&format!("vsock:local:{port}"), &[]);
    let (sent, client) = (random(MANY), relay.connect());
    let peer = accept_vsock(&listener);
    std::thread::scope(|scope| {
        scope.spawn(move || echo(peer));
        comes_back(&client, [&sent, &[]]);
        client.shutdown(Shutdown::Both).unwrap();
    });
    // A half-close is not passed on, and does not cost the answer.
    let mut client = relay.connect();
    let mut peer = accept_vsock(&listener);
    client.write_all(b"?").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    peer.read_exact(&mut [0; 1]).unwrap();
    peer.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(peer.read(&mut [0; 1]).is_err(), "no end was passed on");
    peer.write_all(b"answer").unwrap();
    drop(peer);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
    // Nobody listens any more: a reset, and a clear answer.
    drop(listener);
    let relay = Relay::start(&format!("vsock:local:{port}"), &["--patience", "100ms"]);
    let mut refused = String::new();
    relay.connect().read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 502 "), "{refused}");
}
