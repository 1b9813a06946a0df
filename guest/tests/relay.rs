//! The relay as a byte pipe: nothing lost, nothing held, and a clear answer where there is no harness.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod sandbox;

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixListener,
    process::{Command, Stdio},
    sync::mpsc::{TryRecvError, channel},
    time::{Duration, Instant},
};

use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    signal::Signal,
};
use sandbox::{Harness, Relay, pattern, relay_command, socket_path, until};

const MANY: usize = 20 << 20;

#[test]
fn twenty_mebibytes_come_back_whole_on_both_kinds_of_stream() {
    for (harness, to) in [Harness::unix(), Harness::tcp()] {
        let relay = Relay::start(&to, &[]);
        let mut client = relay.connect();
        let mut peer = harness.accept();
        let echo = std::thread::spawn(move || {
            let mut twin = peer.twin();
            std::io::copy(&mut peer, &mut twin).unwrap();
            twin.shut_write();
        });
        let sent = pattern(MANY);
        let mut writer = client.try_clone().unwrap();
        let copy = sent.clone();
        let write = std::thread::spawn(move || {
            writer.write_all(&copy).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        client.read_to_end(&mut back).unwrap();
        assert!(back == sent, "{} of {} bytes came back", back.len(), sent.len());
        write.join().unwrap();
        echo.join().unwrap();
    }
}

#[test]
fn an_answer_follows_a_request_that_ended_with_a_half_close() {
    for (harness, to) in [Harness::unix(), Harness::tcp()] {
        let relay = Relay::start(&to, &[]);
        let mut client = relay.connect();
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut peer = harness.accept();
        let mut got = String::new();
        peer.read_to_string(&mut got).unwrap();
        assert_eq!(got, "question");
        peer.write_all(b"answer").unwrap();
        drop(peer);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
    }
}

#[test]
fn a_harness_that_said_all_still_hears_the_rest() {
    let (harness, to) = Harness::unix();
    let relay = Relay::start(&to, &[]);
    let mut client = relay.connect();
    let mut peer = harness.accept();
    peer.shut_write();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    client.write_all(b"more").unwrap();
    drop(client);
    let mut got = String::new();
    peer.read_to_string(&mut got).unwrap();
    assert_eq!(got, "more");
}

#[test]
fn without_a_harness_every_client_gets_the_same_502() {
    let (_folder, _, to) = socket_path();
    let relay = Relay::start(&to, &["--patience", "0"]);
    for request in ["", "POST / HTTP/1.1\r\nContent-Length: 500000\r\n\r\n"] {
        let mut client = relay.connect();
        client.write_all(request.as_bytes()).unwrap();
        client.write_all(&vec![b' '; if request.is_empty() { 0 } else { 500_000 }]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 502 Bad Gateway\r\n") && head.contains("Connection: close"), "{head}");
        assert!(body.contains(r#""code":-32003"#) && body.contains(r#""reason":"server_unavailable""#), "{body}");
    }
    let mut tool_cli = Command::new(env!("CARGO_BIN_EXE_tool-cli"));
    let told = tool_cli.env_clear().arg("--exit-codes").env("TOOL_CLI_PORT", relay.port.to_string()).output().unwrap();
    let stderr = String::from_utf8(told.stderr).unwrap();
    assert!(stderr.starts_with("Error: the bridge answered HTTP 502: The harness cannot be reached"), "{stderr}");
    assert_eq!(told.status.code(), Some(3));
}

#[test]
fn a_client_waits_for_a_harness_that_is_a_little_late() {
    let (_folder, path, to) = socket_path();
    let relay = Relay::start(&to, &[]);
    let mut client = relay.connect();
    client.write_all(b"early").unwrap();
    let listener = UnixListener::bind(path).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let mut got = [0; 5];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"early");
}

#[test]
fn a_harness_that_comes_back_is_found_again() {
    let (harness, to) = Harness::unix();
    let relay = Relay::start(&to, &["--patience", "0"]);
    drop((relay.connect(), harness.accept()));
    drop(harness);
    let mut refused = String::new();
    relay.connect().read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 502 "), "{refused}");
    let path = to.strip_prefix("unix:").unwrap();
    std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
    let again = UnixListener::bind(path).unwrap();
    let client = relay.connect();
    again.accept().unwrap();
    drop(client);
    std::fs::remove_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
}

#[test]
fn connections_cut_in_the_middle_free_their_descriptors() {
    let (harness, to) = Harness::unix();
    let relay = Relay::start(&to, &[]);
    // One that stays: once it is carried, the relay has all that it needs and has closed what announced it.
    let mut first = relay.connect();
    let mut first_peer = harness.accept();
    first.write_all(b"x").unwrap();
    first_peer.read_exact(&mut [0; 1]).unwrap();
    let before = relay.descriptors();
    let clients: Vec<_> = (0..20).map(|_| relay.connect()).collect();
    let mut peers: Vec<_> = clients.iter().map(|_| harness.accept()).collect();
    for (n, mut client) in clients.into_iter().enumerate() {
        client.write_all(b"half a req").unwrap();
        // Some leave politely, some with bytes unread, which is a reset.
        if n % 2 == 0 {
            peers[n].write_all(b"unread").unwrap();
            client.set_nonblocking(false).unwrap();
            assert!(client.peek(&mut [0; 1]).unwrap() > 0);
        }
    }
    // The harness neither reads nor writes nor leaves.
    until("the descriptors' release", || relay.descriptors() == before);
    for peer in &mut peers {
        let mut got = Vec::new();
        peer.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"half a req");
    }
}

#[test]
fn a_harness_that_dies_is_noticed_by_the_client() {
    let (harness, to) = Harness::tcp();
    let relay = Relay::start(&to, &[]);
    let mut client = relay.connect();
    client.write_all(b"x").unwrap();
    drop(harness.accept());
    // The end, or a reset, since the harness left with a byte unread.
    let read = client.read(&mut [0; 1]);
    assert!(!matches!(read, Ok(1..)), "{read:?}");
}

#[test]
fn an_early_answer_reaches_a_client_that_is_still_sending() {
    let (harness, to) = Harness::unix();
    let relay = Relay::start(&to, &[]);
    let mut client = relay.connect();
    let mut peer = harness.accept();
    client.write_all(b"start").unwrap();
    peer.read_exact(&mut [0; 5]).unwrap();
    peer.write_all(b"refused").unwrap();
    drop(peer);
    // More than the socket buffers, so that the relay meets the closed harness while the client sends.
    client.write_all(&vec![b'x'; 900_000]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "refused");
}

#[test]
fn a_slow_reader_holds_the_sender_back_and_loses_nothing() {
    let (harness, to) = Harness::unix();
    let relay = Relay::start(&to, &[]);
    let mut client = relay.connect();
    let mut peer = harness.accept();
    let memory = relay.memory();
    peer.set_timeouts(sandbox::PATIENCE, Duration::from_millis(200));
    let block = pattern(1 << 16);
    let mut sent = 0;
    while let Ok(wrote) = peer.write(&block[sent % block.len()..]) {
        sent += wrote;
        assert!(sent < 256 << 20, "nothing holds the sender back");
    }
    assert!(relay.memory() < memory + 1024, "{} KiB more", relay.memory() - memory);
    drop(peer);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got.len(), sent);
    assert!(got.chunks(block.len()).all(|chunk| chunk == &block[..chunk.len()]));
}

#[test]
fn a_firehose_does_not_keep_others_waiting() {
    let (harness, to) = Harness::unix();
    let relay = Relay::start(&to, &[]);
    let mut reader = relay.connect();
    let mut hose = harness.accept();
    let hosing = std::thread::spawn(move || while hose.write_all(&[0; 1 << 16]).is_ok() {});
    let (enough, others_are_done) = channel();
    let drinking = std::thread::spawn(move || {
        let mut sink = vec![0; 1 << 16];
        while others_are_done.try_recv() == Err(TryRecvError::Empty) {
            assert!(reader.read(&mut sink).unwrap() > 0);
        }
    });
    let mut client = relay.connect();
    let mut peer = harness.accept();
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let start = Instant::now();
        client.write_all(b"?").unwrap();
        peer.read_exact(&mut [0; 1]).unwrap();
        peer.write_all(b"!").unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
        slowest = slowest.max(start.elapsed());
    }
    enough.send(()).unwrap();
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    drinking.join().unwrap();
    hosing.join().unwrap();
}

#[test]
fn a_thousand_idle_connections_cost_little() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let number = 1000.min(usize::try_from(hard).unwrap_or(usize::MAX) / 3);
    let (harness, to) = Harness::unix();
    let relay = Relay::start(&to, &[]);
    let before = relay.memory();
    let mut held = Vec::new();
    for _ in 0..number {
        let mut client = relay.connect();
        let mut peer = harness.accept();
        client.write_all(b"x").unwrap();
        peer.read_exact(&mut [0; 1]).unwrap();
        held.push((client, peer));
    }
    let each = (relay.memory() - before) * 1024 / number;
    println!("{number} idle connections: {each} bytes each");
    assert!(each < 8 << 10, "{each} bytes each");
}

#[test]
fn more_clients_than_places_wait_their_turn() {
    let (harness, to) = Harness::unix();
    let relay = Relay::start(&to, &["--max-connections", "2"]);
    let first = (relay.connect(), harness.accept());
    let second = (relay.connect(), harness.accept());
    let mut third = relay.connect();
    third.write_all(b"third").unwrap();
    drop(first);
    let mut peer = harness.accept();
    let mut got = [0; 5];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"third");
    drop(second);
}

/// A relay that may have 24 descriptors.
fn with_few_descriptors(args: &[&str]) -> Relay {
    let limit = "ulimit -n 24; exec \"$0\" --ready-fd 3 \"$@\" 3>&1";
    let mut command = Command::new("sh");
    command.args(["-c", limit, env!("CARGO_BIN_EXE_footbridge-relay"), "--listen", "tcp:127.0.0.1:0"]).args(args);
    Relay::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()))
}

#[test]
fn more_clients_than_there_are_descriptors_for_wait_and_none_is_refused() {
    let (harness, to) = Harness::unix();
    let relay = with_few_descriptors(&["--to", &to, "--patience", "100ms"]);
    let mut clients: Vec<_> = (0..40).map(|_| relay.connect()).collect();
    for client in &mut clients {
        client.write_all(b"here!").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
    }
    let answers = std::thread::spawn(move || {
        for _ in 0..40 {
            let (mut peer, mut bytes) = (harness.accept(), [0; 5]);
            peer.read_exact(&mut bytes).unwrap();
            peer.write_all(&bytes).unwrap();
        }
    });
    for mut client in clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "here!");
    }
    answers.join().unwrap();
}

#[test]
fn out_of_descriptors_it_waits_and_goes_on() {
    let (harness, to) = Harness::unix();
    let relay = with_few_descriptors(&["--to", &to]);
    let many: Vec<_> = (0..40).map(|_| relay.connect()).collect();
    drop(many);
    let mut client = relay.connect();
    client.write_all(b"after").unwrap();
    // Those who came before it may have left already.
    loop {
        let mut got = String::new();
        let mut peer = harness.accept();
        let mut bytes = [0; 5];
        if peer.read_exact(&mut bytes).is_ok() {
            got.push_str(std::str::from_utf8(&bytes).unwrap());
            assert_eq!(got, "after");
            break;
        }
    }
}

#[test]
fn a_taken_port_is_a_loud_failure() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let listen = format!("tcp:{}", taken.local_addr().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_footbridge-relay"));
    let told = command.args(["--listen", &listen, "--to", "unix:/nowhere"]).output().unwrap();
    let stderr = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.status.code(), Some(1));
    assert!(stderr.contains("address in use: something else listens on 127.0.0.1:"), "{stderr}");
}

#[test]
fn mistakes_on_the_command_line_are_status_2() {
    for (args, part) in [
        (["--listen", "tcp:127.0.0.1:0"].as_slice(), "--to ENDPOINT"),
        (&["--to", "unix:relative"], "--to: the socket's path relative is not absolute"),
        (&["--to", "unix:/x", "--ready-fd", "77"], "descriptor 77"),
        (&["--to", "unix:/x", "tool-cli"], "\"tool-cli\" is no option: the command goes behind --"),
        (&["--to", "unix:/x", "--"], "there is no command behind --"),
        (&["--to", "unix:/x", "--listen", "7180"], "\"7180\" has no scheme: write tcp:127.0.0.1:7180"),
        (&["--to", "vsock-mux:/x"], "vsock-mux:/x names no port"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_footbridge-relay"));
        let told = command.args(args).env_remove("FOOTBRIDGE_TO").output().unwrap();
        let stderr = String::from_utf8(told.stderr).unwrap();
        assert_eq!(told.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(part), "{stderr}");
    }
}

#[test]
fn localhost_is_both_families_and_an_address_is_one() {
    let (harness, to) = Harness::unix();
    let relay = Relay::spawn(&mut relay_command(&["--listen", "tcp:localhost:0", "--to", &to]));
    assert!(relay.address.starts_with("tcp:127.0.0.1:"), "{}", relay.address);
    if TcpListener::bind("[::1]:0").is_ok() {
        let client = TcpStream::connect(("::1", relay.port)).unwrap();
        harness.accept();
        drop(client);
    }
    let single = Relay::start(&to, &[]);
    assert!(TcpStream::connect(("::1", single.port)).is_err());
}

#[test]
fn without_a_command_it_ends_on_sigterm() {
    let (_folder, _, to) = socket_path();
    let mut relay = Relay::start(&to, &[]);
    relay.signal(Signal::SIGTERM);
    assert_eq!(relay.finish().0.code(), Some(0));
}

#[test]
fn what_was_ignored_when_it_started_as_by_nohup_stays_so() {
    let (_folder, _, to) = socket_path();
    let relay = relay_command(&["--listen", "tcp:127.0.0.1:0", "--to", &to]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(relay.get_program()).args(relay.get_args());
    let mut relay = Relay::spawn(shell.stdout(Stdio::piped()));
    let status = std::fs::read_to_string(format!("/proc/{}/status", relay.pid())).unwrap();
    let has = |name: &str, signal: Signal| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap() >> (signal as i32 - 1) & 1 == 1
    };
    assert!(has("SigCgt:", Signal::SIGTERM) && !has("SigCgt:", Signal::SIGHUP), "{status}");
    assert!(has("SigIgn:", Signal::SIGHUP), "{status}");
    relay.signal(Signal::SIGHUP);
    relay.signal(Signal::SIGTERM);
    assert_eq!(relay.finish().0.code(), Some(0));
}
