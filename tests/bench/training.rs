//! Work that `scripts/build --profiled` has the program do, so that the compiler knows what its work goes through: calls by
//! `/mcp` and by `tool-cli`, with the record synced and not, and requests to services over TLS, in HTTP/1.1 and HTTP/2,
//! whole, large and as events. Nothing is measured.
#![allow(clippy::unwrap_used, reason = "what fails here fails a build")]

use std::{convert::Infallible, net::SocketAddr, sync::Arc, thread};

use footbridge_tests::{Address, Authority, Bridge, Guest, Host, HttpClient, KeptConnection, Servers, figures::say};
use futures::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

const CALLERS: usize = 4;
const CALLS: usize = 1500;
const LISTINGS: usize = 50;
const COMMANDS: usize = 30;
const REQUESTS: usize = 2500;
const STREAMS: usize = 30;
const EVENTS: usize = 300;
const LARGE: usize = 48 << 20;
const CHUNK: usize = 64 << 10;
const FAST: &str = "[limits.calls]\nper_second = 100000\nburst = 100000\nlistings_per_second = 100000\n\
                    listing_burst = 100000\nin_flight_per_session = 64\n\
                    in_flight_per_session_and_server = 64\n[limits.services]\nper_second = 100000\nburst = 100000\n";
const ARGUMENTS: &str = r#"{"name":"get_weather","arguments":{"city":"Bern"}}"#;

fn main() {
    let authority = Authority::of(&["localhost"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let ports = [&b"http/1.1"[..], b"h2"].map(|protocol| runtime.block_on(origin(&authority, protocol)).port());
    for sync in [false, true] {
        let bridge = bridge(&authority, ports, sync);
        calls(&bridge.guest);
        for service in ["one", "two"] {
            requests(&bridge.guest, service);
        }
    }
    say("the program did its work");
}

type Body = BoxBody<Bytes, Infallible>;

/// An origin over TLS that speaks this protocol.
async fn origin(authority: &Authority, protocol: &[u8]) -> SocketAddr {
    let certificate = CertificateDer::from_pem_file(authority.path().join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(authority.path().join("key.pem")).unwrap();
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let tls = TokioIo::new(acceptor.accept(stream).await.unwrap());
                // A connection that ends is the harness's to notice.
                let _ended = auto::Builder::new(TokioExecutor::new()).serve_connection(tls, service_fn(answer)).await;
            });
        }
    });
    address
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let asked = request.into_body().collect().await?.to_bytes();
    let whole = |kind, text: String| (kind, Full::new(Bytes::from(text)).boxed());
    let pieces = |kind, all: Vec<Bytes>| {
        (kind, BodyExt::boxed(StreamBody::new(stream::iter(all.into_iter().map(|piece| Ok(Frame::data(piece)))))))
    };
    let (kind, body) = match &*path {
        "/large" => pieces("application/octet-stream", vec![Bytes::from(vec![b'x'; CHUNK]); LARGE / CHUNK]),
        "/events" => {
            let event = |n| Bytes::from(format!("data: {{\"type\":\"delta\",\"index\":{n},\"text\":\" word\"}}\n\n"));
            pieces("text/event-stream", (0..EVENTS).map(event).collect())
        }
        _ => {
            whole("application/json", json!({"path": path, "heard": asked.len(), "text": "x".repeat(200)}).to_string())
        }
    };
    Ok(Response::builder().header("content-type", kind).header("x-request-id", "r-1").body(body).unwrap())
}

fn bridge(authority: &Authority, ports: [u16; 2], sync: bool) -> Bridge {
    let service = |(name, port)| {
        format!(
            "[services.{name}]\nurl = \"https://localhost:{port}\"\nheader = \"x-api-key\"\n\
             credential = \"a-key-of-the-training\"\nca_file = \"{}\"\n",
            authority.certificates().display()
        )
    };
    let services: String = ["one", "two"].into_iter().zip(ports).map(service).collect();
    let host = Host::with(&Servers::demo()).settings(&format!("{FAST}[audit]\nsync = {sync}\n{services}"));
    host.option("--service").option("one").option("--service").option("two").opens()
}

fn port(guest: &Guest) -> u16 {
    let Address::Port(port) = guest.address else { unreachable!("a run without a sandbox has a port") };
    port
}

/// Calls by `/mcp` of several at once, and then by the command.
fn calls(guest: &Guest) {
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let mut client = HttpClient::begin(port(guest), "/mcp/demo", Some(&guest.token)).unwrap();
                for _ in 0..CALLS {
                    let answer = client.asks("tools/call", ARGUMENTS).unwrap();
                    assert!(answer.contains("humidityPercent"), "{answer}");
                }
                for _ in 0..LISTINGS {
                    assert!(client.asks("tools/list", "{}").unwrap().contains("get_weather"));
                }
            });
        }
    });
    for _ in 0..COMMANDS {
        assert_eq!(guest.runs(&["demo", "get_weather", r#"{"city":"Bern"}"#]).status, 0);
        assert_eq!(guest.runs(&["demo"]).status, 0);
    }
}

/// Requests to one service of several at once: small ones, some with a body, streams of events, and a large answer.
fn requests(guest: &Guest, service: &str) {
    let head = |line: &str, length: usize| {
        format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\nuser-agent: training\r\naccept: */*\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            guest.token
        )
    };
    let get = |path: &str| head(&format!("GET /s/{service}{path}"), 0);
    let question = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(400)}]}).to_string();
    let post = head(&format!("POST /s/{service}/v1/messages"), question.len()) + &question;
    let asks = |connection: &mut KeptConnection, request: &str| {
        let (head, body) = connection.asks(request).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        body
    };
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let mut connection = KeptConnection::to(port(guest)).unwrap();
                for _ in 0..REQUESTS / 2 {
                    asks(&mut connection, &get("/small"));
                    asks(&mut connection, &post);
                }
                for _ in 0..STREAMS {
                    asks(&mut connection, &get("/events"));
                }
            });
        }
    });
    assert_eq!(asks(&mut KeptConnection::to(port(guest)).unwrap(), &get("/large")).len(), LARGE);
}
