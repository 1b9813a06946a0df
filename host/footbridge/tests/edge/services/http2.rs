//! An origin that speaks HTTP/2 alone, as far as one request at a time needs it, and may go away unheard.

mod misbehaving;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
};

use rustls::{ServerConnection, StreamOwned};

use super::{
    Services,
    origin::{KEY, Tls, tls},
};
use crate::{bridge::LONG, client::head};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Types of frames, and the flags that are looked at (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const ENDS_STREAM: u8 = 1;
const ENDS_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// Longest frame that a peer takes unasked.
const FRAME: usize = 16 * 1024;
/// `:status: 200`, by its number in the static table of HPACK.
const OK: &[u8] = &[0x88];

fn write(tls: &mut Tls, kind: u8, flags: u8, stream: [u8; 4], payload: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    tls.write_all(&[&length[1..], &[kind, flags], &stream, payload].concat())?;
    tls.flush()
}

/// What came of a request: the bytes of its body, and how many HEADERS frames.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    bytes: usize,
    heads: usize,
}

fn begin(tls: &mut Tls) -> std::io::Result<()> {
    let mut preface = [0; PREFACE.len()];
    tls.read_exact(&mut preface)?;
    assert_eq!(preface, PREFACE);
    write(tls, SETTINGS, 0, [0; 4], &[])
}

/// Answers a request with the bytes of its body.
fn serve(tls: &mut Tls) -> std::io::Result<Heard> {
    begin(tls)?;
    let (mut body, mut heads) = (Vec::new(), 0);
    loop {
        let mut head = [0; 9];
        tls.read_exact(&mut head)?;
        let mut payload = vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
        tls.read_exact(&mut payload)?;
        let (kind, flags, stream) = (head[3], head[4], [head[5], head[6], head[7], head[8]]);
        match kind {
            SETTINGS if flags & ACK == 0 => write(tls, SETTINGS, ACK, [0; 4], &[])?,
            DATA => body.extend_from_slice(&payload),
            HEADERS => heads += 1,
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & ENDS_STREAM != 0 {
            write(tls, HEADERS, ENDS_HEADERS, stream, OK)?;
            write(tls, DATA, 0, stream, b"over two: ")?;
            body.chunks(FRAME).try_for_each(|part| write(tls, DATA, 0, stream, part))?;
            write(tls, DATA, ENDS_STREAM, stream, &[])?;
            return Ok(Heard { bytes: body.len(), heads });
        }
    }
}

/// The origin, its authority, and what it heard: one request a connection. The first ones begin and then hear nothing more.
fn origin(deaf: usize) -> (u16, String, Receiver<Heard>) {
    let (authority, config) = tls(&[b"h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (says, heard) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream.unwrap());
            if kept.len() < deaf {
                begin(&mut tls).unwrap();
                kept.push(tls);
                continue;
            }
            // A connection that breaks off is the test's to notice.
            if let Ok(came) = serve(&mut tls) {
                says.send(came).unwrap();
                let _gone = std::io::copy(&mut tls, &mut std::io::sink());
            }
        }
    });
    (port, authority, heard)
}

/// Services with such an origin as `second`.
fn services(port: u16, authority: &str) -> Services {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, authority).unwrap();
    let service = format!(
        "[services.second]\nurl = \"https://localhost:{port}\"\nheader = \"x-api-key\"\ncredential = \"{KEY}\"\n\
         ca_file = \"{}\"\n",
        ca.display()
    );
    Services::start("open", &service)
}

#[test]
fn a_connection_whose_origin_hears_nothing_holds_no_other_request() {
    let (port, authority, heard) = origin(1);
    let services = services(port, &authority);
    assert_eq!(services.ask("GET /s/second/x", &[], "").status, 504);
    let mut client = services.connect();
    client.send(head("POST /s/second/x HTTP/1.1", &[&services.key(), "Content-Length: 2"]) + "hi");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard { bytes: 2, heads: 1 });
}

#[test]
fn what_stands_behind_the_body_of_a_request_does_not_cross() {
    let (port, authority, heard) = origin(0);
    let services = services(port, &authority);
    let (mut client, token) = (services.connect(), &services.door.token);
    let headers = [&*services.key(), "Transfer-Encoding: chunked", "Trailer: x-leak, authorization"];
    let body = format!("5\r\nhello\r\n0\r\nx-leak: {token}\r\nauthorization: Bearer {token}\r\n\r\n");
    client.send(head("POST /s/second/x HTTP/1.1", &headers) + &body);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard { bytes: 5, heads: 1 });
}

#[test]
fn an_origin_that_offers_http_2_is_spoken_to_in_it() {
    let (port, authority, heard) = origin(0);
    let services = services(port, &authority);
    let (mut client, body) = (services.connect(), "y".repeat(40_000));
    let headers = [&*services.key(), "Content-Length: 40000", "Connection: x-gone", "X-Gone: 1"];
    client.send(head("POST /s/second/x HTTP/1.1", &headers) + &body);
    let begun = client.head().unwrap();
    assert!(begun.starts_with("HTTP/1.1 200 "), "{begun}");
    assert_eq!(std::iter::from_fn(|| client.chunk()).collect::<String>(), format!("over two: {body}"));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard { bytes: 40_000, heads: 1 });
    let (_, outcome) = services.outcome();
    assert_eq!((&outcome["outcome"], &outcome["sent"]), (&"ok".into(), &40_000.into()));
    assert_eq!(outcome["received"], 40_010);
}
