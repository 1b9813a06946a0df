//! Tunnels and plain requests through the bridge as a proxy.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use serde_json::Value;

use super::{Services, origin::FLOOD, refusals::reload};
use crate::{
    bridge::{LONG, eventually},
    client::{Answer, Client, head},
};

/// Basic credentials of a proxy.
pub(super) fn proxy(services: &Services) -> String {
    proxy_of(&services.door.token)
}

/// The same of this token.
pub(super) fn proxy_of(token: &str) -> String {
    use base64::Engine as _;
    let pair = format!("session:{token}");
    format!("Proxy-Authorization: Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

pub(super) fn asks(services: &Services, line: &str, headers: &[&str]) -> Answer {
    let mut client = services.connect();
    client.send(head(&format!("{line} HTTP/1.1"), headers));
    client.answer()
}

/// A tunnel to the origin that was answered.
pub(super) fn opens(services: &Services) -> Client {
    opens_to(services, services.origin.port)
}

/// The same to a port.
fn opens_to(services: &Services, port: u16) -> Client {
    let mut client = services.connect();
    let line = format!("CONNECT localhost:{port} HTTP/1.1");
    client.send(head(&line, &[&proxy(services)]));
    let answer = client.head().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    client
}

/// TLS for this name through a tunnel.
pub(super) fn tls(services: &Services, tunnel: &Client, name: &str) -> StreamOwned<ClientConnection, TcpStream> {
    StreamOwned::new(greets(services, name), tunnel.stream().try_clone().unwrap())
}

/// What begins TLS for this name.
fn greets(services: &Services, name: &str) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(services.origin.authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    ClientConnection::new(config, name.to_owned().try_into().unwrap()).unwrap()
}

/// The outcome of the only tunnel.
fn ended(services: &Services) -> Value {
    eventually(|| services.records.lines().into_iter().find(|line| line["type"] == "outcome"))
}

#[test]
fn a_tunnel_carries_tls_from_end_to_end_and_is_recorded() {
    let services = Services::open();
    let tunnel = opens(&services);
    let mut tls = tls(&services, &tunnel, "localhost");
    tls.write_all(b"GET /api/echo HTTP/1.1\r\nhost: localhost\r\nx-api-key: its-own\r\n\r\n").unwrap();
    let mut begun = [0; 15];
    tls.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200 OK");
    let received = services.origin.received();
    assert!(received[0].head.contains("x-api-key: its-own"), "nothing of it is ours: {}", received[0].head);
    tls.conn.send_close_notify();
    tls.flush().unwrap();
    drop(tls);
    tunnel.finish();
    let (intent, outcome) = services.outcome();
    let name = format!("localhost:{}", services.origin.port);
    assert_eq!(
        (&intent["kind"], &intent["server"], &intent["name"]),
        (&"tunnel".into(), &"tunnels".into(), &name.into())
    );
    assert_eq!(intent["effects"], serde_json::json!(["write", "egress"]));
    assert_eq!(outcome["outcome"], "ok", "{outcome}");
    assert!(outcome["sent"].as_u64() > Some(300) && outcome["received"].as_u64() > Some(500), "{outcome}");
    assert!(outcome["first_byte_ms"].is_u64(), "{outcome}");
}

#[test]
fn only_tls_for_the_allowed_name_goes_through() {
    for said in [None, Some(&b"GET / HTTP/1.1\r\n\r\n"[..]), Some(b"SSH-2.0-OpenSSH\r\n")] {
        let services = Services::open();
        let mut tunnel = opens(&services);
        match said {
            Some(said) => tunnel.send(said),
            None => {
                let mut tls = tls(&services, &tunnel, "origin.test");
                assert!(tls.write_all(b"x").and_then(|()| tls.flush()).is_err() || tls.read(&mut [0; 1]).is_err());
            }
        }
        tunnel.must_end();
        let outcome = ended(&services);
        let why = if said.is_some() { "no TLS" } else { "origin.test" };
        assert!(outcome["outcome"] == "refused" && outcome["detail"].as_str().unwrap().contains(why), "{outcome}");
        assert!(outcome["sent"] == 0, "nothing of it went on: {outcome}");
        assert!(services.origin.received().is_empty());
    }
}

#[test]
fn a_tunnel_is_asked_for_without_a_body() {
    let services = Services::open();
    let line = format!("CONNECT localhost:{}", services.origin.port);
    let answer = asks(&services, &line, &[&proxy(&services), "Content-Length: 5"]);
    assert!(answer.status == 400 && answer.body.contains("CONNECT has none"), "{answer:?}");
}

#[test]
fn what_is_not_allowed_or_shows_no_token_is_refused_before_anything_is_dialled() {
    let services = Services::open();
    let port = services.origin.port;
    let allowed = format!("CONNECT localhost:{port}");
    let wrong = "Proxy-Authorization: Bearer fbt_wrong".to_owned();
    let bearer = format!("Authorization: Bearer {}", services.door.token);
    for headers in [&[][..], &[wrong.as_str()], &[bearer.as_str()]] {
        let answer = asks(&services, &allowed, headers);
        assert_eq!(answer.status, 407, "{answer:?}");
        assert!(answer.head.to_ascii_lowercase().contains("proxy-authenticate: basic"), "{}", answer.head);
    }
    let own = proxy(&services);
    for (line, status) in [
        ("CONNECT other.test:443".to_owned(), 403),
        (format!("CONNECT 127.0.0.1:{port}"), 403),
        ("CONNECT localhost:1".to_owned(), 403),
        (format!("GET http://localhost:{port}/"), 403),
        ("GET https://localhost/".to_owned(), 400),
        (format!("GET http://me@localhost:{}/x", services.plain), 400),
        (format!("POST http://localhost:{}/x", services.plain), 403),
        (format!("GET http://localhost:{}/a/../b", services.plain), 400),
        (format!("CONNECT [::1].localhost:{port}"), 400),
        (format!("TRACK http://localhost:{}/x", services.plain), 405),
        (format!("CONNECT {}.localhost:{port}", services.door.token.to_lowercase()), 400),
    ] {
        let answer = asks(&services, &line, &[&own]);
        assert_eq!(answer.status, status, "{line}: {answer:?}");
        assert!(!answer.body.contains("fbt_"));
    }
    // Names of headers are names, whoever is asked.
    for line in [&allowed, &format!("GET http://localhost:{}/x", services.plain)] {
        let answer = asks(&services, line, &[&own, "X_Forwarded_For: 1.2.3.4"]);
        assert_eq!(answer.status, 400, "{line}: {answer:?}");
    }
    // Hosts are no paths.
    let as_path = services.ask(&format!("GET /s/tunnels/localhost:{}/x", services.plain), &[], "");
    assert_eq!(as_path.status, 400, "{as_path:?}");
    let intents = services.records.lines().into_iter().filter(|line| line["type"] == "intent").count();
    assert_eq!((intents, services.origin.received().len()), (0, 0));
}

#[test]
fn a_plain_request_goes_to_its_host_without_the_token() {
    let services = Services::open();
    let line = format!("GET http://localhost:{}/debian/x?y=1", services.plain);
    let answer = asks(&services, &line, &[&proxy(&services), "Origin: http://page.test", "Authorization: Bearer own"]);
    assert_eq!((answer.status, answer.body.contains("GET /debian/x?y=1 HTTP/1.1")), (200, true), "{answer:?}");
    let lower = answer.body.to_ascii_lowercase();
    assert!(lower.contains(&format!("host: localhost:{}", services.plain)), "{lower}");
    assert!(!lower.contains("proxy-authorization") && !lower.contains("bearer"), "{lower}");
    let (intent, outcome) = services.outcome();
    let name = format!("GET /localhost:{}/debian/x?y=1", services.plain);
    assert_eq!((&intent["name"], &outcome["outcome"]), (&name.into(), &"ok".into()));
}

#[test]
fn silence_and_the_end_of_the_harness_end_a_tunnel() {
    let services = Services::open();
    let mut tunnel = opens(&services);
    let mut first = tls(&services, &tunnel, "localhost");
    first.write_all(b"GET /api/echo HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    first.read_exact(&mut [0; 15]).unwrap();
    tunnel.must_end();
    let outcome = ended(&services);
    assert!(outcome["detail"].as_str().unwrap().contains("nothing passed"), "{outcome}");
    let mut other = opens(&services);
    let mut second = tls(&services, &other, "localhost");
    second.write_all(b"GET /api/echo HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    second.read_exact(&mut [0; 15]).unwrap();
    drop(services);
    other.must_end();
}

#[test]
fn a_tunnel_that_the_configuration_or_the_policy_does_not_have_any_more_ends() {
    let some = |decision: &str| format!("[[policies.some.rules]]\ndecision = \"{decision}\"\n");
    for (policy, is_there) in [("open", false), ("some", true)] {
        let services = Services::start(policy, &some("allow"));
        let mut tunnel = opens(&services);
        let mut tls = tls(&services, &tunnel, "localhost");
        tls.write_all(b"GET /api/echo HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        tls.read_exact(&mut [0; 15]).unwrap();
        let tunnels = format!("[tunnels]\nallow = [\"localhost:{}\"]\nallow_private = true\n", services.origin.port);
        let _gone = reload(&services, &(some("deny") + if is_there { &tunnels } else { "" }));
        tunnel.must_end();
        let outcome = ended(&services);
        assert!(outcome["detail"].as_str().unwrap().contains("does not let it pass any more"), "{policy}: {outcome}");
    }
}

/// A server without TLS that says what it heard.
pub(super) fn plain_origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut heard) = (stream.unwrap(), Vec::new());
            let mut byte = [0];
            while !heard.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
                heard.push(byte[0]);
            }
            let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", heard.len());
            // Who left hears nothing.
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(&heard));
        }
    });
    port
}

#[test]
fn tunnels_and_requests_have_places_of_their_own() {
    let services = Services::start("open", "in_flight = 1\ntunnels = 2\n[limits.calls]\nbusy_after = \"50ms\"\n");
    let open = [opens(&services), opens(&services)];
    let line = format!("CONNECT localhost:{}", services.origin.port);
    let third = asks(&services, &line, &[&proxy(&services)]);
    assert_eq!(third.status, 429, "{third:?}");
    assert_eq!(services.get("/plain").status, 200);
    drop(open);
}

/// Both ends of a tunnel through which the greeting has gone.
struct Ends {
    services: Services,
    guest: TcpStream,
    origin: TcpStream,
    /// How long the greeting was.
    greeted: usize,
}

impl Ends {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let tunnels = format!("[tunnels]\nallow = [\"localhost:{port}\"]\nallow_private = true\n");
        let services = Services::start("open", &format!("[limits.services]\nsilence_time = \"1h\"\n{tunnels}"));
        let (mut client, mut hello) = (opens_to(&services, port), Vec::new());
        greets(&services, "localhost").write_tls(&mut hello).unwrap();
        client.send(&hello);
        let (mut origin, _) = listener.accept().unwrap();
        origin.set_read_timeout(Some(LONG)).unwrap();
        origin.set_write_timeout(Some(LONG)).unwrap();
        let mut came = vec![0; hello.len()];
        origin.read_exact(&mut came).unwrap();
        assert_eq!(came, hello);
        let guest = client.stream().try_clone().unwrap();
        Self { services, guest, origin, greeted: hello.len() }
    }

    /// The outcome is well, with these bytes behind the greeting.
    fn ended(&self, sent: usize, received: usize) {
        let outcome = ended(&self.services);
        assert_eq!(outcome["outcome"], "ok", "{outcome}");
        let expected = ((self.greeted + sent).into(), received.into());
        assert_eq!((&outcome["sent"], &outcome["received"]), (&expected.0, &expected.1), "{outcome}");
    }
}

/// Bytes of which none can be taken for another's neighbour.
fn bytes(many: usize) -> Vec<u8> {
    (0..many / 4).flat_map(|nth| u32::try_from(nth).unwrap().to_be_bytes()).collect()
}

/// One end says its last and hears the other, which speaks from then on.
fn finishes(mut first: &TcpStream, mut other: &TcpStream, answer: &[u8]) {
    first.write_all(b"that is all").unwrap();
    first.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    other.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"that is all");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            other.write_all(answer).unwrap();
            other.shutdown(Shutdown::Write).unwrap();
        });
        let mut came = Vec::new();
        first.read_to_end(&mut came).unwrap();
        assert!(came == answer, "{} bytes", came.len());
    });
}

#[test]
fn an_end_of_a_tunnel_that_has_said_all_still_hears_the_other() {
    let answer = bytes(1 << 20);
    let ends = Ends::open();
    finishes(&ends.guest, &ends.origin, &answer);
    ends.ended(11, answer.len());
    let ends = Ends::open();
    finishes(&ends.origin, &ends.guest, &answer);
    ends.ended(answer.len(), 11);
}

/// Says as much of this as is taken while nobody reads.
fn says_until_held(mut writer: &TcpStream, all: &[u8]) -> usize {
    writer.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut said = 0;
    // An error is that time; anything else is seen by whoever goes on.
    while let Some(count) = (said < all.len()).then(|| writer.write(&all[said..]).ok()).flatten() {
        said += count;
    }
    writer.set_write_timeout(Some(LONG)).unwrap();
    said
}

/// One end writes more than any buffer holds while the other does not read, and then does.
fn is_held(mut writer: &TcpStream, mut reader: &TcpStream, all: &[u8]) {
    let said = says_until_held(writer, all);
    assert!(said < all.len(), "nothing held it up");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&all[said..]).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut came = Vec::new();
        reader.read_to_end(&mut came).unwrap();
        assert!(came == all, "{} bytes", came.len());
    });
    reader.shutdown(Shutdown::Write).unwrap();
}

#[test]
fn an_end_of_a_tunnel_that_does_not_read_holds_the_other_up_and_loses_nothing() {
    let all = bytes(FLOOD);
    let ends = Ends::open();
    is_held(&ends.guest, &ends.origin, &all);
    ends.ended(all.len(), 0);
    let ends = Ends::open();
    is_held(&ends.origin, &ends.guest, &all);
    ends.ended(0, all.len());
}
