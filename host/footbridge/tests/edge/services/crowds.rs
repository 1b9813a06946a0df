//! One session with much under way at once.

use std::sync::atomic::Ordering;

use super::Services;
use crate::{
    bridge::eventually,
    client::{Client, head},
};

/// Streams at once, of four descriptors each here: fewer where this process may not have that many.
fn many() -> usize {
    (footbridge_processes::descriptors::raise(8192) / 20).clamp(8, 300)
}

/// A harness that lets one session have so much under way.
fn letting(many: usize) -> Services {
    let (connections, burst) = (many + 10, 10 * many);
    let edge = format!("[limits.edge]\nconnections_per_session = {connections}");
    let services = format!("in_flight = {many}\nburst = {burst}\nper_second = {burst}\nconnect_time = \"1m\"");
    Services::start("open", &format!("[limits.services]\n{services}\n{edge}"))
}

fn asks(services: &Services, client: &mut Client, path: &str) {
    client.send(head(&format!("GET /s/tracker{path} HTTP/1.1"), &[&services.key()]));
}

#[test]
fn a_session_holds_hundreds_of_streams_and_another_is_served_beside_them() {
    let many = many();
    let services = letting(many);
    let mut streams: Vec<Client> = (0..many)
        .map(|_| {
            let mut client = services.connect();
            asks(&services, &mut client, "/events");
            client
        })
        .collect();
    for stream in &mut streams {
        assert!(stream.head().unwrap().starts_with("HTTP/1.1 200 "));
        assert_eq!(stream.chunk().unwrap(), "data: one\n\n");
    }
    // The next one is told how many there may be.
    let mut late = services.connect();
    asks(&services, &mut late, "/echo");
    let told = late.answer();
    assert!(told.status == 429 && told.body.contains("services.in_flight"), "{told:?}");
    let other = services.another();
    let mut client = Client::connect(other.address);
    client.send(head("GET /s/tracker/echo HTTP/1.1", &[&format!("x-api-key: {}", other.token)]));
    assert_eq!(client.answer().status, 200);
    for _ in 0..2 * many {
        services.origin.go_on.send(()).unwrap();
    }
    for stream in &mut streams {
        assert_eq!(stream.chunk().unwrap(), "data: two\n\n");
        assert_eq!(stream.chunk(), None);
    }
    // Each has an end in the record, and its place is free again.
    let ended = || services.records.lines().iter().filter(|line| line["outcome"] == "ok").count();
    eventually(|| (ended() == many + 1).then_some(()));
    asks(&services, &mut late, "/echo");
    assert_eq!(late.answer().status, 200);
}

#[test]
fn as_many_requests_as_a_session_makes_at_once_find_their_connections_again() {
    let many = many().min(16);
    let services = letting(many);
    let mut clients: Vec<Client> = (0..many).map(|_| services.connect()).collect();
    for _ in 0..5 {
        for client in &mut clients {
            asks(&services, client, "/events");
        }
        for client in &mut clients {
            assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
            assert_eq!(client.chunk().unwrap(), "data: one\n\n");
        }
        // All are under way by now.
        for _ in 0..2 * many {
            services.origin.go_on.send(()).unwrap();
        }
        for client in &mut clients {
            while client.chunk().is_some() {}
        }
    }
    // One that comes back a moment too late has another opened.
    let opened = services.origin.connections.load(Ordering::SeqCst);
    assert!(opened < 5 * many / 2, "{opened} connections for {many} requests at once");
}
