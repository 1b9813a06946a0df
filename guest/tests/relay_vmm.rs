//! The relay through VMMs of all kinds: what they lose, cut or refuse is never what a client sent or was answered.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod sandbox;
mod vmm;

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    process::Stdio,
    time::Instant,
};

use sandbox::{PATIENCE, Relay, pattern, relay_command};
use vmm::{Quirk, Vmm};

const PORT: u32 = 7179;

/// A relay through such a VMM.
fn through(quirk: Quirk, args: &[&str]) -> (Vmm, Relay) {
    let vmm = Vmm::start(quirk);
    let relay = Relay::start(&vmm.to(PORT), args);
    (vmm, relay)
}

fn expect(mut stream: impl Read, text: &str) {
    let mut got = vec![0; text.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), text);
}

fn rest(mut stream: impl Read) -> String {
    let mut got = String::new();
    stream.read_to_string(&mut got).unwrap();
    got
}

/// One question, one answer.
fn talk(mut client: &TcpStream, mut guest: &UnixStream) {
    client.write_all(b"question").unwrap();
    expect(guest, "question");
    guest.write_all(b"answer").unwrap();
    expect(client, "answer");
}

/// What a client hears, and the relay says, where there is no way.
fn no_way(quirk: Quirk, patience: &str) -> String {
    let vmm = Vmm::start(quirk);
    let to = vmm.to(PORT);
    let args = ["--listen", "tcp:127.0.0.1:0", "--to", &to, "--patience", patience];
    let mut relay = Relay::spawn(relay_command(&args).stderr(Stdio::piped()));
    assert!(rest(relay.connect()).starts_with("HTTP/1.1 502 "));
    relay.signal(nix::sys::signal::Signal::SIGTERM);
    rest(relay.child.stderr.take().unwrap())
}

#[test]
fn a_call_crosses_whatever_the_quirk() {
    for quirk in [
        Quirk::None,
        Quirk::DropsSplitConnect,
        Quirk::EatsEarlyBytes,
        Quirk::NoHalfClose,
        Quirk::ResetsOnEnd,
        Quirk::ShortWrites,
    ] {
        let (vmm, relay) = through(quirk, &[]);
        let mut client = relay.connect();
        // Before there is anybody at the other end.
        client.write_all(b"at once").unwrap();
        let guest = vmm.accept();
        expect(&guest, "at once");
        talk(&client, &guest);
        assert_eq!(vmm.eaten(), 0, "{quirk:?}");
        drop(guest);
        if quirk != Quirk::ResetsOnEnd {
            assert_eq!(rest(client), "", "{quirk:?}");
        }
    }
}

#[test]
fn what_comes_with_the_answer_is_the_client_s() {
    let (vmm, relay) = through(Quirk::GuestSpeaksFirst(b"hello\n"), &[]);
    let client = relay.connect();
    expect(&client, "hello\n");
    talk(&client, &vmm.accept());
}

#[test]
fn a_client_s_half_close_does_not_cost_it_the_answer() {
    for quirk in [Quirk::NoHalfClose, Quirk::None] {
        let (vmm, relay) = through(quirk, &[]);
        let mut client = relay.connect();
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut guest = vmm.accept();
        expect(&guest, "question");
        // Long enough for an end that had been passed on to arrive.
        guest.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
        assert!(guest.read(&mut [0; 1]).is_err(), "no end was passed on");
        guest.write_all(b"answer").unwrap();
        drop(guest);
        assert_eq!(rest(client), "answer");
    }
}

#[test]
fn a_guest_that_is_silent_hears_that_the_client_left() {
    let ways = [Quirk::None, Quirk::NoHalfClose].map(|quirk| through(quirk, &[]));
    let left = ways.each_ref().map(|(vmm, relay)| {
        let client = relay.connect();
        let guest = vmm.accept();
        talk(&client, &guest);
        (guest, Instant::now())
    });
    for (guest, at) in &left {
        assert_eq!(rest(guest), "");
        assert!(at.elapsed() < PATIENCE / 2, "{:?}", at.elapsed());
    }
}

#[test]
fn a_reset_ends_one_connection_after_its_answer_and_no_other() {
    let (vmm, relay) = through(Quirk::ResetsOnEnd, &[]);
    let other = (relay.connect(), vmm.accept());
    talk(&other.0, &other.1);
    let mut client = relay.connect();
    let mut guest = vmm.accept();
    client.write_all(b"question").unwrap();
    expect(&guest, "question");
    guest.write_all(b"answer").unwrap();
    expect(&client, "answer");
    drop(guest);
    // What the VMM does not read any more, so that its close is a reset.
    client.write_all(b"more").unwrap();
    let end = client.read(&mut [0; 1]);
    assert!(!matches!(end, Ok(1..)), "{end:?}");
    talk(&other.0, &other.1);
    let next = relay.connect();
    talk(&next, &vmm.accept());
}

#[test]
fn short_and_late_writes_lose_nothing() {
    let (vmm, relay) = through(Quirk::ShortWrites, &[]);
    echoed(&relay, &vmm.accept_later(), 1 << 20);
}

#[test]
fn bytes_cross_both_ways_of_a_vmm_whole() {
    for quirk in [Quirk::None, Quirk::NoHalfClose] {
        let (vmm, relay) = through(quirk, &[]);
        let harness = UnixListener::bind(format!("{}_{PORT}", vmm.path)).unwrap();
        // The guest passes all on to a port of the host.
        let hairpin = move || {
            let (guest, out) = (vmm.accept(), vmm.dial(PORT).unwrap());
            copy_both(&guest, &out);
            harness.accept().unwrap().0
        };
        echoed(&relay, &hairpin, 4 << 20);
    }
}

impl Vmm {
    fn accept_later(&self) -> impl Fn() -> UnixStream + '_ {
        || self.accept()
    }
}

fn copy_both(one: &UnixStream, two: &UnixStream) {
    for (from, to) in [(one, two), (two, one)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}

/// So many bytes come back whole from a far end that says them again.
fn echoed(relay: &Relay, far: &dyn Fn() -> UnixStream, bytes: usize) {
    let mut client = relay.connect();
    let mut peer = far();
    let sent = pattern(bytes);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut twin = peer.try_clone().unwrap();
            let length = u64::try_from(bytes).unwrap();
            assert_eq!(std::io::copy(&mut (&mut peer).take(length), &mut twin).unwrap(), length);
            peer.shutdown(Shutdown::Both).unwrap();
        });
        let mut writer = client.try_clone().unwrap();
        let copy = &sent;
        scope.spawn(move || writer.write_all(copy).unwrap());
        let mut back = vec![0; bytes];
        client.read_exact(&mut back).unwrap();
        assert!(back == sent, "what came back is something else");
    });
}

#[test]
fn a_vmm_that_says_nothing_is_given_up_and_named() {
    let said = no_way(Quirk::Mute, "0");
    assert!(said.contains("did not answer CONNECT 7179 within 2s"), "{said}");
}

#[test]
fn rubbish_is_told_escaped_and_not_asked_again() {
    let start = Instant::now();
    for (answer, part) in [
        (b"NO \x1b[2J\n".as_slice(), "with \"NO \\u{1b}[2J\\n\" and not with OK"),
        (b"OK", "with \"OK\" and not"),
        (&[b'x'; 4096], &format!("with \"{}\" and not", "x".repeat(64))),
    ] {
        let said = no_way(Quirk::Rubbish(answer), "60s");
        assert!(said.contains(part), "{said}");
    }
    assert!(start.elapsed() < PATIENCE, "it was asked again");
}

#[test]
fn a_guest_that_does_not_listen_yet_is_waited_for_and_one_that_never_does_is_named() {
    let (vmm, relay) = through(Quirk::Refuses(5), &[]);
    let client = relay.connect();
    talk(&client, &vmm.accept());
    let said = no_way(Quirk::Refuses(usize::MAX), "100ms");
    assert!(said.contains("hung up on CONNECT 7179: nothing listens on this port in the VM"), "{said}");
}

#[test]
fn a_full_backlog_is_waited_for() {
    let (mut vmm, relay) = through(Quirk::FullBacklog, &[]);
    let mut client = relay.connect();
    client.write_all(b"early").unwrap();
    // Holds the room back until the relay has met the full backlog.
    std::thread::sleep(std::time::Duration::from_millis(50));
    vmm.release();
    let guest = vmm.accept();
    expect(&guest, "early");
    talk(&client, &guest);
}

#[test]
fn the_lifeline_survives_a_reset_and_not_the_end() {
    let vmm = Vmm::start(Quirk::NoHalfClose);
    let to = vmm.to(PORT);
    let args = ["--listen", "tcp:127.0.0.1:0", "--to", &to, "--lifeline-grace", "2s", "--", "sleep", "600"];
    let mut relay = Relay::spawn(relay_command(&args).stderr(Stdio::null()));
    let answered = |vmm: &Vmm| {
        let mut guest = vmm.accept();
        expect(&guest, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        guest.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        guest
    };
    for _ in 0..3 {
        drop(answered(&vmm));
    }
    let last = answered(&vmm);
    assert!(relay.child.try_wait().unwrap().is_none(), "it lives on");
    drop(vmm);
    drop(last);
    assert_eq!(relay.finish().0.code(), Some(125));
}
