//! An origin with TLS by an authority of its own, that misbehaves as its paths say.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
};

use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivateKeyDer};

/// The key that nobody but the origin may see.
pub(crate) const KEY: &str = "the-real-key-of-the-origin";

/// A connection with TLS.
pub(crate) type Tls = StreamOwned<ServerConnection, TcpStream>;

/// What came: a head and a body.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// An origin. Its threads end with their connections.
pub(crate) struct TlsOrigin {
    pub(crate) port: u16,
    /// The certificate of its authority, PEM.
    pub(crate) authority: String,
    /// How many there were.
    pub(crate) connections: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<Received>>>,
    /// Each lets one waiting answer go on.
    pub(crate) go_on: Sender<()>,
    /// Says when a client left while it waited for an answer.
    pub(crate) left: Mutex<Receiver<()>>,
}

/// What the connections of an origin share.
struct Shared {
    received: Arc<Mutex<Vec<Received>>>,
    go_on: Mutex<Receiver<()>>,
    left: Sender<()>,
}

impl TlsOrigin {
    pub(crate) fn start() -> Self {
        let (authority, config) = tls(&[]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let (go_on, goes) = channel();
        let (leaves, left) = channel();
        let shared = Arc::new(Shared { received: Arc::clone(&received), go_on: Mutex::new(goes), left: leaves });
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                // What waits to be sent is lost where a connection ends with something unread.
                stream.set_nodelay(true).unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let (config, shared) = (Arc::clone(&config), Arc::clone(&shared));
                std::thread::spawn(move || {
                    let connection = ServerConnection::new(config).unwrap();
                    let mut tls = StreamOwned::new(connection, stream);
                    while let Some(received) = receive(&mut tls) {
                        if !answer(&mut tls, received, &shared) {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, authority, connections, received, go_on, left: Mutex::new(left) }
    }

    /// What came so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

/// An authority, and what a server for localhost with a certificate of it speaks.
pub(crate) fn tls(protocols: &[&[u8]]) -> (String, Arc<ServerConfig>) {
    let authority_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "origin.test".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], private).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    (authority.pem(), Arc::new(config))
}

/// More than all buffers on the way hold, bytes.
pub(crate) const FLOOD: usize = 32 << 20;
/// How much comes of an answer that halts.
pub(crate) const HALTS: usize = 2 << 20;

/// Reads a request; none at the end of the connection.
fn receive(tls: &mut Tls) -> Option<Received> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if tls.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    // These answer before they have read what comes.
    let is_early = ["/early ", "/gone ", "sink "].iter().any(|path| head.contains(path));
    let body = if is_early { Vec::new() } else { body_of(tls, &head)? };
    Some(Received { head, body })
}

/// Reads the body behind a head.
fn body_of(tls: &mut Tls, head: &str) -> Option<Vec<u8>> {
    let lower = head.to_ascii_lowercase();
    let (mut body, mut byte) = (Vec::new(), [0]);
    if let Some((_, rest)) = lower.split_once("content-length: ") {
        let length: usize = rest.lines().next().unwrap().trim().parse().unwrap();
        body.resize(length, 0);
        tls.read_exact(&mut body).ok()?;
    } else if lower.contains("transfer-encoding: chunked") {
        while !body.ends_with(b"0\r\n\r\n") {
            if tls.read(&mut byte).ok()? == 0 {
                return None;
            }
            body.push(byte[0]);
        }
    }
    Some(body)
}

/// Answers as the path says; false where the connection ends.
fn answer(tls: &mut Tls, received: Received, shared: &Shared) -> bool {
    let target = received.head.split(' ').nth(1).unwrap().to_owned();
    let (echo, sent) = (received.head.clone(), String::from_utf8_lossy(&received.body).into_owned());
    shared.received.lock().unwrap().push(received);
    let path = target.split('?').next().unwrap();
    let mut say = |text: &str| tls.write_all(text.as_bytes()).and_then(|()| tls.flush()).is_ok();
    match path {
        path if path.starts_with("/api/repeat") => {
            let note = echo.lines().find_map(|line| line.strip_prefix("x-note: ")).unwrap_or_default();
            let text = format!("{target}\n{note}\n{sent}");
            let length = text.len();
            say(&format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-said: {note}\r\ncontent-length: {length}\r\n\r\n{text}"
            ))
        }
        // The key is that of RFC 6455's example.
        "/api/websocket" => {
            let accept = if target.ends_with("?wrong") { "other" } else { "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" };
            let _begun = say(&format!(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
                 sec-websocket-accept: {accept}\r\nsec-websocket-protocol: chat\r\n\r\n"
            ));
            while repeats_message(tls).is_ok() {}
            false
        }
        // Only who asks for what stands behind a body gets it.
        "/api/trailers" if echo.contains("te: trailers\r\n") => say(&format!(
            "HTTP/1.1 200 OK\r\ntrailer: x-check, x-key, alt-svc\r\ntransfer-encoding: chunked\r\n\r\n\
             2\r\nok\r\n0\r\nx-check: 7\r\nx-key: {KEY}\r\nalt-svc: clear\r\n\r\n"
        )),
        "/api/echo" => {
            let text = format!("you sent:\n{echo}");
            say(&format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-echo: key {KEY}\r\nset-cookie: a=b\r\n\
                 alt-svc: h3=\":1\"\r\ncontent-length: {}\r\n\r\n{text}",
                text.len()
            ))
        }
        "/api/inside" => say("HTTP/1.1 302 Found\r\nlocation: /api/echo?x=1\r\ncontent-length: 0\r\n\r\n"),
        "/api/private" => {
            say("HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n")
        }
        "/api/events" => {
            say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
            for event in ["data: one\n\n", "data: two\n\n"] {
                say(&format!("{:x}\r\n{event}\r\n", event.len()));
                shared.go_on.lock().unwrap().recv().unwrap();
            }
            say("0\r\nx-after: yes\r\n\r\n")
        }
        "/api/flood" => {
            let text = "z".repeat(FLOOD);
            say(&format!("HTTP/1.1 200 OK\r\ncontent-length: {FLOOD}\r\n\r\n{text}"))
        }
        "/api/half" => {
            say(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n",
            );
            wait_until_left(tls, shared)
        }
        // The key begins with what comes, and nothing follows.
        "/api/like" => {
            say("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n5\r\nthe-r\r\n");
            wait_until_left(tls, shared)
        }
        "/api/v1/messages" if target.ends_with("?never") => wait_until_left(tls, shared),
        "/api/never" => wait_until_left(tls, shared),
        "/api/both" => {
            say("HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        }
        "/api/reset" => {
            say("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome");
            false
        }
        "/api/cut" => {
            let length =
                if target.ends_with("?chunked") { "transfer-encoding: chunked" } else { "content-length: 1000" };
            say(&format!("HTTP/1.1 200 OK\r\n{length}\r\n\r\n4\r\nsome\r\n"));
            shared.go_on.lock().unwrap().recv().unwrap();
            resets(tls);
            false
        }
        // What stands behind each looks like the answer to another request.
        "/api/longer" => {
            let own = match target.split_once('?').unwrap_or_default().1 {
                "chunked" => "200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
                "none" => "204 No Content\r\n\r\n",
                _ => "200 OK\r\ncontent-length: 2\r\n\r\nok",
            };
            say(&format!("HTTP/1.1 {own}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"))
        }
        // And nothing follows.
        "/api/halts" => {
            say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            let block = "z".repeat(HALTS / 32);
            for _ in 0..32 {
                say(&format!("{:x}\r\n{block}\r\n", block.len()));
            }
            wait_until_left(tls, shared)
        }
        // As it answers HEAD.
        "/api/head" => say("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n"),
        "/api/interim" => {
            while say("HTTP/1.1 102 Processing\r\n\r\n") {}
            false
        }
        "/api/endless" => {
            say("HTTP/1.1 200 OK\r\n");
            while say(&format!("x-{}: y\r\n", "a".repeat(500))) {}
            false
        }
        "/api/old" => {
            say("<html>as in 0.9</html>\r\n\r\n");
            false
        }
        "/api/split" => {
            say("HTTP/1.1 200 OK\r\nx-a: b\rSet-Cookie: c=d\r\ncontent-length: 0\r\n\r\n");
            false
        }
        "/api/early" => {
            say("HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\nconnection: close\r\n\r\nmuch");
            // What still comes is read, so that the answer is no reset.
            let _rest = std::io::copy(tls, &mut std::io::sink());
            false
        }
        "/api/long-head" | "/api/long-heads" => {
            let long = format!("x-long: {}\r\n", "y".repeat(1000));
            if path.ends_with('s') {
                // Together, so that all of it is there at once.
                let interim = format!("HTTP/1.1 103 Early Hints\r\n{long}\r\n").repeat(6);
                say(&format!("{interim}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
            } else {
                say(&format!("HTTP/1.1 200 OK\r\n{}content-length: 2\r\n\r\nok", long.repeat(6)))
            }
        }
        "/api/crowd" => say(&format!("HTTP/1.1 200 OK\r\n{}content-length: 2\r\n\r\nok", "x: y\r\n".repeat(100))),
        "/api/coded" => say("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nzz\r\n0\r\n\r\n"),
        "/api/gone" => {
            say("HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nmuch");
            false
        }
        "/api/sink" => {
            say("HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno");
            sinks(tls, echo, shared)
        }
        // Its answer goes on until its request has ended.
        "/api/stream-and-sink" => {
            say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n");
            sinks(tls, echo, shared) && tls.write_all(b"0\r\n\r\n").and_then(|()| tls.flush()).is_ok()
        }
        "/api/identity" => say(&format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: Identity\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{KEY}",
            KEY.len()
        )),
        "/api/named" => say(&format!(
            "HTTP/1.1 200 OK\r\nx-{KEY}: 1\r\nfootbridge-record: forged\r\ncontent-encoding: utf-8\r\ncontent-type: text/plain\r\n\
             content-length: {}\r\n\r\n{KEY}",
            KEY.len()
        )),
        "/api/zip" => say(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\n\u{1}zz",
        ),
        "/api/hop" => say(
            "HTTP/1.1 200 OK\r\nconnection: x-secret-hop\r\nx-secret-hop: 1\r\nkeep-alive: 5\r\ncontent-length: 2\r\n\r\nok",
        ),
        "/api/v1/messages" if target.ends_with("?sink") => {
            say("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}");
            sinks(tls, echo, shared)
        }
        "/api/v1/messages" if target.ends_with("?unsaid") => {
            say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
             9\r\ndata: a\n\n\r\n9\r\ndata: b\n\n\r\n0\r\n\r\n")
        }
        "/api/v1/messages" if target.ends_with("?waits") => {
            say(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n",
            );
            wait_until_left(tls, shared)
        }
        // What a model writes is no end of its stream.
        "/api/v1/messages" if target.ends_with("?pretends") => {
            let event = "data: {\"text\":\"data: [DONE]\"}\n\n";
            say(&format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n",
                event.len()
            ));
            wait_until_left(tls, shared)
        }
        // What a media type is called is not told by its case.
        "/api/v1/messages" if target.ends_with("?case") => say(
            "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\ncontent-length: 9\r\n\r\ndata: a\n\n",
        ),
        "/api/v1/messages" if target.ends_with("?large") || target.ends_with("?page") => {
            let (status, media) =
                if target.ends_with("?page") { ("500 Broken", "text/html") } else { ("200 OK", "application/json") };
            let text = format!("{{\n\"text\": \"{}\"\r\n}}\n", "z".repeat(200_000));
            let length = text.len();
            say(&format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n{text}"))
        }
        "/api/v1/messages" if target.ends_with("?later") => {
            say("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n{\"usage\": null}")
        }
        "/api/v1/messages" if target.ends_with("?zip") => say(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: application/json\r\ncontent-length: 3\r\n\r\n\u{1}zz",
        ),
        "/api/v1/messages" if target.ends_with("?proto") => {
            say("HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 12\r\n\r\n\u{1}zzzzzzzzzzz")
        }
        "/api/v1/messages" if target.ends_with("?long") => {
            say("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
            say("31\r\n{\"usage\":{\"input_tokens\":11,\"output_tokens\":50}, \r\n");
            while say(&format!("400\r\n{}\r\n", " ".repeat(1024))) {}
            false
        }
        "/api/v1/messages" if target.ends_with("?stream") => {
            say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
            let start =
                r#"{"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":11,"output_tokens":1}}}"#;
            let end = r#"{"type":"message_delta","usage":{"output_tokens":5}}"#;
            for event in [("message_start", start), ("ping", "{}"), ("message_delta", end), ("message_stop", "{}")] {
                let event = format!("event: {}\ndata: {}\n\n", event.0, event.1);
                say(&format!("{:x}\r\n{event}\r\n", event.len()));
            }
            say("0\r\n\r\n")
        }
        "/api/v1/messages" => {
            let text = r#"{"model":"m-1","content":[],"usage":{"input_tokens":11,"output_tokens":5}}"#;
            say(&format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
                text.len()
            ))
        }
        _ => say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    }
}

/// Says the next short message again; the key where it is asked for.
fn repeats_message(tls: &mut Tls) -> std::io::Result<()> {
    let mut head = [0; 6];
    tls.read_exact(&mut head)?;
    let mut text = vec![0; usize::from(head[1] & 0x7f)];
    tls.read_exact(&mut text)?;
    text.iter_mut().zip(head[2..].iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    let answer = if text == b"key?" { KEY.as_bytes() } else { &text };
    tls.write_all(&[&[0x81, u8::try_from(answer.len()).unwrap()], answer].concat())?;
    tls.flush()
}

/// Takes a body behind its answer.
fn sinks(tls: &mut Tls, head: String, shared: &Shared) -> bool {
    let body = body_of(tls, &head);
    let is_whole = body.is_some();
    shared.received.lock().unwrap().push(Received { head, body: body.unwrap_or_default() });
    is_whole
}

/// Has the connection reset, where it would end in order.
fn resets(tls: &Tls) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let _inside = runtime.enter();
    tls.sock.set_nonblocking(true).unwrap();
    let stream = tokio::net::TcpStream::from_std(tls.sock.try_clone().unwrap()).unwrap();
    stream.set_zero_linger().unwrap();
}

fn wait_until_left(tls: &mut Tls, shared: &Shared) -> bool {
    let mut byte = [0];
    while tls.read(&mut byte).is_ok_and(|read| read > 0) {}
    // Whether anybody listens is the test's to know.
    let _ = shared.left.send(());
    false
}
