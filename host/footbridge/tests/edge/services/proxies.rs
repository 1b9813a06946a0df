//! A proxy that the operator names, on the way to a service and to the hosts of tunnels.

use std::{
    io::{Read as _, Write as _, copy},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread::spawn,
};

use super::{Services, origin::KEY, tunnels};

/// A proxy, and the first lines of what it was asked.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Lets through who shows `me` and `p@ss`.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), asked: Arc::default() };
        let asked = Arc::clone(&proxy.asked);
        spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut head) = (stream.unwrap(), Vec::new());
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                asked.lock().unwrap().push(head.lines().next().unwrap_or_default().to_owned());
                if !head.contains("Proxy-Authorization: Basic bWU6cEBzcw==\r\n") {
                    stream.write_all(b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n").unwrap();
                    continue;
                }
                let far = TcpStream::connect(head.split(' ').nth(1).unwrap()).unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                pass(stream.try_clone().unwrap(), far.try_clone().unwrap());
                pass(far, stream);
            }
        });
        proxy
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    spawn(move || {
        // Who broke off is the other one's to notice.
        let _ = copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// A service and tunnels behind a proxy, which is shown this.
fn behind(proxy: &Proxy, shown: &str) -> Services {
    let address = format!("http://{shown}127.0.0.1:{}", proxy.port);
    Services::start_with("open", |origin, ca| {
        let port = origin.port;
        format!(
            "[services.second]\nurl = \"https://localhost:{port}/api\"\nheader = \"x-api-key\"\n\
             credential = \"{KEY}\"\nca_file = \"{ca}\"\nproxy = \"{address}\"\n[tunnels]\n\
             allow = [\"localhost:{port}\"]\nallow_private = true\nproxy = \"{address}\"\n"
        )
    })
}

#[test]
fn services_and_tunnels_go_through_the_proxy_that_is_named() {
    let proxy = Proxy::start();
    let services = behind(&proxy, "me:p%40ss@");
    let asked = format!("CONNECT localhost:{} HTTP/1.1", services.origin.port);
    assert_eq!(services.ask("GET /s/second/x", &[], "").body, "ok");
    let received = services.origin.received();
    assert!(received[0].head.to_ascii_lowercase().contains(&format!("x-api-key: {KEY}")), "{}", received[0].head);
    assert_eq!(proxy.asked(), std::slice::from_ref(&asked));
    assert_eq!(services.get("/x").body, "ok");
    assert_eq!(proxy.asked().len(), 1, "another service has none");
    let tunnel = tunnels::opens(&services);
    let mut tls = tunnels::tls(&services, &tunnel, "localhost");
    tls.write_all(b"GET /api/x HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    tls.read_exact(&mut [0; 15]).unwrap();
    assert_eq!(proxy.asked(), [asked.clone(), asked]);
}

#[test]
fn a_proxy_that_refuses_is_named_and_shows_nothing_of_its_password() {
    let proxy = Proxy::start();
    let services = behind(&proxy, "me:wrong-password@");
    let answer = services.ask("GET /s/second/x", &[], "");
    assert!(answer.status == 502 && answer.body.contains("the proxy in front of it"), "{answer:?}");
    let line = format!("CONNECT localhost:{}", services.origin.port);
    let answer = tunnels::asks(&services, &line, &[&tunnels::proxy(&services)]);
    assert!(answer.status == 502 && answer.body.contains("the proxy in front of it"), "{answer:?}");
    assert_eq!((proxy.asked().len(), services.origin.received().len()), (2, 0));
    assert!(!serde_json::to_string(&services.records.lines()).unwrap().contains("wrong-password"));
}
