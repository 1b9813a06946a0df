//! What changes between requests or goes on for too long: the certificate of an origin, and requests that reach the end
//! of their whole time.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
};

use rustls::{ServerConnection, StreamOwned};

use super::{
    Services, begun,
    origin::{KEY, tls},
};
use crate::bridge::eventually;

/// An origin that shows one certificate after the other, a connection each: of the authority, of another one, and of the
/// first once more.
fn changing() -> (u16, String) {
    let (authority, good) = tls(&[]);
    let (_, other) = tls(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for config in [&good, &other, &good] {
            let (stream, _) = listener.accept().unwrap();
            let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let mut head = Vec::new();
            let mut byte = [0];
            // Whoever does not trust it says nothing more.
            while !head.ends_with(b"\r\n\r\n") && tls.read(&mut byte).is_ok_and(|read| read == 1) {
                head.extend(byte);
            }
            let _sent = tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            let _closed = tls.flush();
        }
    });
    (port, authority)
}

#[test]
fn a_certificate_that_changes_ends_what_the_service_can_be_told() {
    let (port, authority) = changing();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, authority).unwrap();
    let services = Services::start(
        "open",
        &format!(
            "[services.second]\nurl = \"https://localhost:{port}\"\nheader = \"x-api-key\"\ncredential = \"{KEY}\"\n\
             ca_file = \"{}\"\n",
            ca.display()
        ),
    );
    assert_eq!(services.ask("GET /s/second/a", &[], "").body, "ok");
    let refused = services.ask("GET /s/second/b", &[], "");
    assert!(
        refused.status == 502 && refused.body.contains("its certificate is of an authority that is not trusted"),
        "{refused:?}"
    );
    let outcomes = || services.records.lines().into_iter().filter(|line| line["type"] == "outcome").collect::<Vec<_>>();
    let outcomes = eventually(|| Some(outcomes()).filter(|all| all.len() == 2));
    assert_eq!(outcomes[1]["outcome"], "not_sent", "{outcomes:?}");
    assert_eq!(services.ask("GET /s/second/c", &[], "").body, "ok");
}

#[test]
fn a_request_ends_with_its_whole_time_however_much_passes() {
    // Nobody would wait for the end of silence.
    let services = Services::start("open", "[limits.services]\nsilence_time = \"1h\"\ntotal_time = \"2s\"\n");
    let answer = services.get("/never");
    assert!(answer.status == 504 && answer.body.contains("services.total_time"), "{answer:?}");
    let (mut client, _) = begun(&services, "/events");
    assert_eq!(client.chunk().unwrap(), "data: one\n\n");
    assert!(client.try_chunk().is_none(), "it breaks off");
    let outcomes = || services.records.lines().into_iter().filter(|line| line["type"] == "outcome").collect::<Vec<_>>();
    let outcomes = eventually(|| Some(outcomes()).filter(|all| all.len() == 2));
    assert!(outcomes.iter().all(|outcome| outcome["outcome"] == "unknown"), "{outcomes:?}");
    assert_eq!(outcomes[1]["detail"], "the request took too long", "{outcomes:?}");
}
