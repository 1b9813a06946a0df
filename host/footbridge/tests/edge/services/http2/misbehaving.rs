//! An origin that misbehaves in HTTP/2, once: what its guest is told, that nothing broken looks whole, and that the next
//! request goes well.

use std::{
    io::{Read as _, Result, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    thread::{sleep, spawn},
    time::Duration,
};

use rustls::{ServerConnection, StreamOwned};

use super::{ACK, DATA, ENDS_HEADERS, ENDS_STREAM, HEADERS, OK, SETTINGS, begin, services, write};
use crate::{
    bridge::{Door, LONG, eventually},
    client::{Client, head},
    services::{
        Services,
        origin::{Tls, tls},
    },
};

const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const NO_ERROR: [u8; 4] = [0; 4];
const INTERNAL_ERROR: [u8; 4] = [0, 0, 0, 2];
const CANCEL: [u8; 4] = [0, 0, 0, 8];
const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];

/// What the origin does with its first request; an error ends its connection.
type Mode = fn(&mut Tls, [u8; 4]) -> Result<()>;

fn ends() -> Result<()> {
    Err(std::io::ErrorKind::ConnectionAborted.into())
}

/// Reads to the end of a request's body. Whoever sends one has its request under way: the client's library gives up one
/// that it has only just handed to its connection when that is told to go.
fn reads_body(tls: &mut Tls) -> Result<()> {
    loop {
        let mut head = [0; 9];
        tls.read_exact(&mut head)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        tls.read_exact(&mut vec![0; length])?;
        if head[3] == DATA && head[4] & ENDS_STREAM != 0 {
            return Ok(());
        }
    }
}

/// Ends in order: what was said before is read. An end with something unread would have the kernel reset the connection,
/// which a client may notice by what it writes before it has read all.
fn leaves(tls: &mut Tls) -> Result<()> {
    tls.conn.send_close_notify();
    tls.flush()?;
    tls.sock.shutdown(Shutdown::Write)?;
    std::io::copy(&mut tls.sock, &mut std::io::sink())?;
    ends()
}

/// Services with an origin that does this once, and then answers every request.
fn once(mode: impl Fn(&mut Tls, [u8; 4]) -> Result<()> + Send + Sync + 'static) -> Services {
    let (authority, config) = tls(&[b"h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (first, mode) = (Arc::new(AtomicBool::new(true)), Arc::new(mode));
    spawn(move || {
        for stream in listener.incoming() {
            let (config, first, mode) = (Arc::clone(&config), Arc::clone(&first), Arc::clone(&mode));
            spawn(move || {
                let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream.unwrap());
                // A connection that breaks off is the test's to notice.
                let _broken = serve(&mut tls, &first, &*mode);
            });
        }
    });
    services(port, &authority)
}

fn serve(tls: &mut Tls, first: &AtomicBool, mode: impl Fn(&mut Tls, [u8; 4]) -> Result<()>) -> Result<()> {
    begin(tls)?;
    loop {
        let mut head = [0; 9];
        tls.read_exact(&mut head)?;
        let mut payload = vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
        tls.read_exact(&mut payload)?;
        let (kind, flags, stream) = (head[3], head[4], [head[5], head[6], head[7], head[8]]);
        match kind {
            SETTINGS if flags & ACK == 0 => write(tls, SETTINGS, ACK, [0; 4], &[])?,
            PING if flags & ACK == 0 => write(tls, PING, ACK, [0; 4], &payload)?,
            HEADERS if first.swap(false, Ordering::SeqCst) => mode(tls, stream)?,
            HEADERS => {
                write(tls, HEADERS, ENDS_HEADERS, stream, OK)?;
                write(tls, DATA, ENDS_STREAM, stream, b"fine")?;
            }
            _ => {}
        }
    }
}

/// An answer that has begun.
fn begins(tls: &mut Tls, stream: [u8; 4]) -> Result<()> {
    write(tls, HEADERS, ENDS_HEADERS, stream, OK)?;
    write(tls, DATA, 0, stream, b"some")
}

/// An answer with this length, by its number in the static table of HPACK, that has four bytes.
fn says(tls: &mut Tls, stream: [u8; 4], length: &[u8]) -> Result<()> {
    says_length(tls, stream, length)?;
    write(tls, DATA, ENDS_STREAM, stream, b"some")
}

fn says_length(tls: &mut Tls, stream: [u8; 4], length: &[u8]) -> Result<()> {
    let length = [OK, &[0x0f, 0x0d, u8::try_from(length.len()).unwrap()], length].concat();
    write(tls, HEADERS, ENDS_HEADERS, stream, &length)
}

/// `:status` with a value of three digits.
fn status(digits: &[u8; 3]) -> Vec<u8> {
    [&[0x08, 3], &digits[..]].concat()
}

/// A header that no table has.
fn header() -> Vec<u8> {
    [&[0x00, 1, b'x', 100], &[b'y'; 100][..]].concat()
}

/// Asks for something with a body of so many bytes, and gives all that comes until the connection ends.
fn asks(services: &Services, length: usize) -> String {
    let mut stream = TcpStream::connect(services.door.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let length_said = format!("Content-Length: {length}");
    let headers = [&*services.key(), &length_said, "Connection: close"];
    let request = head("POST /s/second/x HTTP/1.1", &headers) + &"y".repeat(length);
    // It may have had enough before all of it came, and end without a word.
    let _sent = stream.write_all(request.as_bytes());
    let mut came = Vec::new();
    let read = stream.read_to_end(&mut came);
    assert!(read.is_ok() || read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
    String::from_utf8(came).unwrap()
}

/// Whether a client would take an answer for whole.
fn is_whole(answer: &str) -> bool {
    // It may break off before its head was sent.
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return false };
    assert!(head.starts_with("HTTP/1.1 "), "{head}");
    let head = head.to_ascii_lowercase();
    match head.split_once("\r\ncontent-length: ") {
        Some((_, length)) => length.lines().next().unwrap().parse() == Ok(body.len()),
        None => head.contains("\r\ntransfer-encoding: chunked") && body.ends_with("0\r\n\r\n"),
    }
}

fn then_goes_on(services: &Services, outcome: &str) {
    let found = eventually(|| services.records.lines().into_iter().find(|line| line["type"] == "outcome"));
    assert_eq!(found["outcome"], outcome, "{found}");
    assert_eq!(services.ask("GET /s/second/after", &[], "").status, 200);
}

#[test]
fn an_answer_that_an_origin_breaks_off_is_never_whole() {
    let modes: [(&str, Mode); 8] = [
        ("its stream is reset", |tls, stream| {
            begins(tls, stream)?;
            write(tls, RST_STREAM, 0, stream, &INTERNAL_ERROR)
        }),
        ("its stream is reset without an error", |tls, stream| {
            begins(tls, stream)?;
            write(tls, RST_STREAM, 0, stream, &NO_ERROR)
        }),
        ("the same of one that is shorter than said", |tls, stream| {
            says_length(tls, stream, b"10")?;
            write(tls, DATA, 0, stream, b"some")?;
            write(tls, RST_STREAM, 0, stream, &NO_ERROR)
        }),
        ("the connection goes away", |tls, stream| {
            begins(tls, stream)?;
            write(tls, GOAWAY, 0, [0; 4], &[[0; 4], INTERNAL_ERROR].concat())?;
            ends()
        }),
        ("the connection ends", |tls, stream| begins(tls, stream).and_then(|()| ends())),
        ("it stalls", begins),
        ("it is shorter than said", |tls, stream| says(tls, stream, b"10")),
        ("a frame is longer than any may be", |tls, stream| {
            begins(tls, stream)?;
            write(tls, DATA, ENDS_STREAM, stream, &[b'z'; 16 * 1024 + 1])
        }),
    ];
    for (name, mode) in modes {
        let services = once(mode);
        let answer = asks(&services, 0);
        // Where it broke off before anything of it was passed on, that is said in its place.
        assert!(!is_whole(&answer) || answer.starts_with("HTTP/1.1 502 "), "{name}: {answer}");
        then_goes_on(&services, "unknown");
    }
}

#[test]
fn what_is_no_answer_is_told_in_the_shape_of_its_client() {
    let modes: [(&str, &[u16], Mode); 6] = [
        ("its stream is reset", &[502], |tls, stream| write(tls, RST_STREAM, 0, stream, &INTERNAL_ERROR)),
        ("the connection goes away", &[502], |tls, _| {
            write(tls, GOAWAY, 0, [0; 4], &[[0, 0, 0, 1], INTERNAL_ERROR].concat())?;
            ends()
        }),
        ("nothing comes", &[504], |_, _| Ok(())),
        ("it has no status", &[502], |tls, stream| write(tls, HEADERS, ENDS_HEADERS | ENDS_STREAM, stream, &header())),
        ("its head does not end", &[502], |tls, stream| {
            write(tls, HEADERS, 0, stream, OK)?;
            loop {
                write(tls, CONTINUATION, 0, stream, &header().repeat(100))?;
            }
        }),
        // Interim answers are dropped one by one, so that they fill nothing, and end with the connection; where that takes
        // long, with the time for silence.
        ("it is always yet to come", &[502, 504], |tls, stream| {
            loop {
                write(tls, HEADERS, ENDS_HEADERS, stream, &[status(b"103"), header().repeat(100)].concat())?;
            }
        }),
    ];
    for (name, statuses, mode) in modes {
        let services = once(mode);
        let answer = services.ask("GET /s/second/x", &[], "");
        assert!(statuses.contains(&answer.status), "{name}: {answer:?}");
        let error = &answer.json()["error"];
        assert!(
            error["record"].is_string() && error["message"].as_str().unwrap().contains("second"),
            "{name}: {error}"
        );
        then_goes_on(&services, "unknown");
    }
}

#[test]
fn what_an_origin_did_not_process_may_be_made_again() {
    let services = once(|tls, stream| write(tls, RST_STREAM, 0, stream, &REFUSED_STREAM));
    let answer = services.ask("POST /s/second/x", &[], "hello");
    assert!(answer.status == 502 && answer.body.contains("it may be made again"), "{answer:?}");
    assert!(answer.head.contains("x-should-retry: true"), "{}", answer.head);
    let (_, outcome) = services.outcome();
    assert_eq!(outcome["detail"], "refused unprocessed", "{outcome}");
    then_goes_on(&services, "server_error");
}

/// Which streams an origin takes no more is not in the error, and it may have carried out this one.
#[test]
fn of_a_connection_that_goes_away_nobody_is_told_that_nothing_was_done() {
    let modes: [(&str, Mode); 2] = [
        ("before it", |tls, _| {
            write(tls, GOAWAY, 0, [0; 4], &[[0; 4], NO_ERROR].concat())?;
            leaves(tls)
        }),
        ("behind it", |tls, stream| {
            write(tls, GOAWAY, 0, [0; 4], &[stream, NO_ERROR].concat())?;
            leaves(tls)
        }),
    ];
    for (name, mode) in modes {
        let services = once(mode);
        let answer = services.ask("POST /s/second/x", &[], "hello");
        assert!(answer.status == 502 && !answer.body.contains("it may be made again"), "{name}: {answer:?}");
        assert!(!answer.head.contains("x-should-retry: true"), "{name}: {}", answer.head);
        then_goes_on(&services, "unknown");
    }
}

#[test]
fn an_answer_that_is_longer_than_said_brings_no_more_than_was_said() {
    let services = once(|tls, stream| says(tls, stream, b"2"));
    let answer = asks(&services, 0);
    assert!(!answer.contains("some"), "{answer}");
    then_goes_on(&services, "unknown");
}

#[test]
fn what_comes_behind_an_answer_is_recorded_with_it() {
    let services = once(|tls, stream| {
        write(tls, HEADERS, ENDS_HEADERS, stream, &status(b"401"))?;
        write(tls, DATA, ENDS_STREAM, stream, b"no")?;
        reads_body(tls)
    });
    let mut client = services.connect();
    client.send(head("POST /s/second/x HTTP/1.1", &[&services.key(), "Content-Length: 10"]));
    assert!(client.head().unwrap().starts_with("HTTP/1.1 401 "));
    assert_eq!((client.chunk().as_deref(), client.chunk()), (Some("no"), None));
    client.send("hello");
    assert!(services.records.lines().iter().all(|line| line["type"] != "outcome"), "it is not over");
    client.send("hello");
    let (_, outcome) = services.outcome();
    assert_eq!((&outcome["outcome"], &outcome["sent"]), (&"http_error".into(), &10.into()), "{outcome}");
    then_goes_on(&services, "http_error");
}

#[test]
fn a_connection_that_one_session_holds_up_is_no_other_ones() {
    let services = once(|tls, stream| {
        begins(tls, stream)?;
        // Nothing else on this connection is heard.
        std::io::copy(&mut tls.sock, &mut std::io::sink())?;
        ends()
    });
    let asks = |door: &Door| {
        let mut client = Client::connect(door.address);
        client.send(head("GET /s/second/x HTTP/1.1", &[&format!("x-api-key: {}", door.token)]));
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
        (client.chunk(), client)
    };
    let (begun, _held) = asks(&services.door);
    assert_eq!(begun.as_deref(), Some("some"));
    assert_eq!(asks(&services.another()).0.as_deref(), Some("fine"));
}

/// The stream of the next request.
fn next_stream(tls: &mut Tls) -> Result<[u8; 4]> {
    loop {
        let mut head = [0; 9];
        tls.read_exact(&mut head)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        tls.read_exact(&mut vec![0; length])?;
        if head[3] == HEADERS {
            return Ok([head[5], head[6], head[7], head[8]]);
        }
    }
}

/// Hears nothing more, whatever comes.
fn is_deaf(tls: &mut Tls) -> Result<()> {
    std::io::copy(&mut tls.sock, &mut std::io::sink())?;
    ends()
}

#[test]
fn a_connection_that_met_silence_behind_a_head_is_given_no_other_request_and_keeps_those_that_it_has() {
    let services = once(|tls, silent| {
        begins(tls, silent)?;
        let goes_on = next_stream(tls)?;
        begins(tls, goes_on)?;
        // Longer than services.silence_time, and never silent for that long.
        for _ in 0..8 {
            sleep(Duration::from_millis(500));
            write(tls, DATA, 0, goes_on, b"more")?;
        }
        write(tls, DATA, ENDS_STREAM, goes_on, &[])?;
        is_deaf(tls)
    });
    let asks = || {
        let mut client = services.connect();
        client.send(head("GET /s/second/x HTTP/1.1", &[&services.key()]));
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
        assert_eq!(client.chunk().as_deref(), Some("some"));
        client
    };
    let (mut silent, mut goes_on) = (asks(), asks());
    assert_eq!(silent.try_chunk(), None, "it breaks off");
    assert_eq!(services.ask("GET /s/second/after", &[], "").status, 200);
    assert_eq!(std::iter::from_fn(|| goes_on.chunk()).collect::<String>(), "more".repeat(8));
}

#[test]
fn a_connection_that_met_silence_behind_an_answer_is_given_no_other_request() {
    let services = once(|tls, stream| {
        write(tls, HEADERS, ENDS_HEADERS, stream, &status(b"401"))?;
        write(tls, DATA, ENDS_STREAM, stream, b"no")?;
        is_deaf(tls)
    });
    let mut client = services.connect();
    client.send(head("POST /s/second/x HTTP/1.1", &[&services.key(), "Content-Length: 10"]) + "hello");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 401 "));
    let (_, outcome) = services.outcome();
    assert!(outcome["detail"].as_str().unwrap().ends_with("nothing passed for too long"), "{outcome}");
    then_goes_on(&services, "http_error");
}

/// Before the request was read, too: a reset without an error stands behind the end of an answer, not in its place.
#[test]
fn an_early_answer_that_is_reset_before_its_end_is_not_whole() {
    let services = once(|tls, stream| {
        begins(tls, stream)?;
        write(tls, RST_STREAM, 0, stream, &NO_ERROR)
    });
    let answer = asks(&services, 60_000);
    assert!(!is_whole(&answer) || answer.starts_with("HTTP/1.1 502 "), "{answer}");
    then_goes_on(&services, "unknown");
}

#[test]
fn an_answer_whose_end_is_said_by_itself_is_whole() {
    let services = once(|tls, stream| {
        says_length(tls, stream, b"4")?;
        write(tls, DATA, 0, stream, b"some")?;
        write(tls, DATA, ENDS_STREAM, stream, &[])
    });
    let answer = asks(&services, 0);
    assert!(answer.ends_with("some") && is_whole(&answer), "{answer}");
    then_goes_on(&services, "ok");
}

#[test]
fn an_answer_before_the_body_was_read_and_the_last_one_of_a_connection_are_whole() {
    let services = once(|tls, stream| {
        write(tls, HEADERS, ENDS_HEADERS, stream, &status(b"413"))?;
        write(tls, DATA, ENDS_STREAM, stream, b"much")?;
        write(tls, RST_STREAM, 0, stream, &NO_ERROR)
    });
    let answer = asks(&services, 60_000);
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("much") && is_whole(&answer), "{answer}");
    then_goes_on(&services, "http_error");
    let services = once(|tls, stream| {
        reads_body(tls)?;
        write(tls, GOAWAY, 0, [0; 4], &[stream, NO_ERROR].concat())?;
        begins(tls, stream)?;
        write(tls, DATA, ENDS_STREAM, stream, b" more")?;
        leaves(tls)
    });
    let answer = asks(&services, 10);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(" more") && is_whole(&answer), "{answer}");
    then_goes_on(&services, "ok");
}

/// What a stream is reset for.
fn reset(tls: &mut Tls, stream: [u8; 4]) -> Result<Vec<u8>> {
    loop {
        let mut head = [0; 9];
        tls.read_exact(&mut head)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        tls.read_exact(&mut payload)?;
        if head[3] == RST_STREAM && head[5..] == stream {
            return Ok(payload);
        }
    }
}

#[test]
fn a_guest_that_leaves_in_the_middle_of_an_answer_cancels_its_stream_alone() {
    let (says, why) = channel();
    let services = once(move |tls, stream| {
        begins(tls, stream)?;
        // The test hears nothing where the connection ends instead.
        says.send(reset(tls, stream)?).unwrap();
        Ok(())
    });
    let mut client = services.connect();
    client.send(head("GET /s/second/x HTTP/1.1", &[&services.key()]));
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(client.chunk().as_deref(), Some("some"));
    drop(client);
    assert_eq!(why.recv_timeout(LONG).unwrap(), CANCEL);
    assert_eq!(services.outcome().1["detail"], "its client left before the end of the answer");
    then_goes_on(&services, "unknown");
}
