//! Ten thousand requests that went wrong on the way, always the same ones: each is answered or its connection ends,
//! and nothing panics.

use std::{
    panic,
    sync::atomic::{AtomicUsize, Ordering},
};

use footbridge_proto::rpc::Response;

use crate::{
    bridge::{Bridge, WORKERS},
    client::{Client, post},
};

const BODIES: [&str; 8] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"getBridgeInfo"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"listServers","params":null}"#,
    r#"{"jsonrpc":"2.0","id":"three","method":"listTools","params":{"server":"demo"}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"describeTool","params":{"server":"demo","tool":"get_weather"}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"callTool","params":{"server":"demo","tool":"get_weather","arguments":{"city":"Bern","units":"metric"}}}"#,
    r#"{"jsonrpc":"2.0","id":6.5e1,"method":"callTool","params":{"server":"demo","tool":"now","arguments":{"format":"\u0069so"},"_meta":{"a":[1,-2.5,{"b":null}]}}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"readResource","params":{"server":"demo","uri":"note://1"}}"#,
    r#"{"jsonrpc":"2.0","id":8,"method":"listResourceTemplates","params":{"server":"demo","x":[[[[]]]],"y":"\ud83d\ude00"}}"#,
];

/// Pieces that parsers stumble over.
const PIECES: [&[u8]; 24] = [
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b",",
    b":",
    b"1e999",
    b"-",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 0\r\n",
    b"99999999999999999999",
    b"HTTP/1.1",
];

/// xorshift64*: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % bound.max(1)
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(12)).min(bytes.len());
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.drain(at..end)),
                2 => drop(bytes.splice(at..at, PIECES[self.below(PIECES.len())].iter().copied())),
                3 => {
                    let copied = bytes[at..end].to_vec();
                    drop(bytes.splice(at..at, copied));
                }
                4 => bytes.truncate(at),
                _ => {
                    let noise: Vec<u8> = (0..self.below(8)).map(|_| self.below(256) as u8).collect();
                    drop(bytes.splice(at..end, noise));
                }
            }
        }
    }
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics in the threads that serve guests.
fn count_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if std::thread::current().name().is_some_and(|name| name.contains(WORKERS) || name == "schema") {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        before(info);
    }));
}

fn bridge() -> Bridge {
    Bridge::with(|limits| {
        limits.calls.per_second = 1_000_000;
        limits.calls.burst = 1_000_000;
        limits.edge.wrong_token_delay = std::time::Duration::ZERO;
    })
}

#[test]
fn ten_thousand_broken_requests_end_in_an_answer_or_an_end() {
    count_panics();
    let bridge = bridge();
    bridge.must_serve();
    let mut random = Random(0x5eed);
    broken_bodies(&bridge, &mut random, 8_000);
    broken_heads(&bridge, &mut random, 2_000);
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "something panicked");
    bridge.must_serve();
    let count = |kind: &str| bridge.records().iter().filter(|line| line["type"] == kind).count();
    crate::bridge::eventually(|| (count("outcome") == count("intent")).then_some(()));
    assert!(count("outcome") > 500, "some of them were calls all the same");
}

/// Whole requests with a body that is broken: each gets a JSON-RPC answer, and the connection goes on.
fn broken_bodies(bridge: &Bridge, random: &mut Random, count: usize) {
    let head = |length: usize| {
        let whole = post(&[&bridge.authorization(), "Content-Type: application/json"], "");
        whole.replace("Content-Length: 0", &format!("Content-Length: {length}"))
    };
    let mut client = bridge.connect();
    for _ in 0..count {
        let mut body = BODIES[random.below(BODIES.len())].as_bytes().to_vec();
        random.mutate(&mut body);
        client.send(head(body.len()));
        client.send(&body);
        let shown = String::from_utf8_lossy(&body).into_owned();
        let answer = client.try_answer().unwrap_or_else(|| panic!("no answer to {shown:?}"));
        assert_eq!(answer.status, 200, "{shown:?}: {answer:?}");
        // Read as its text: an id may be a number that no machine holds.
        let read: Response = serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        assert!(read.jsonrpc == "2.0" && (read.result.is_some() != read.error.is_some()), "{shown:?}: {read:?}");
        assert!(!answer.body.contains("failed in the harness"), "{shown:?}: {read:?}");
    }
}

/// Requests with anything in them broken: answers, if any, are answers, and the connection ends.
fn broken_heads(bridge: &Bridge, random: &mut Random, count: usize) {
    for _ in 0..count {
        let mut bytes = bridge.request(BODIES[random.below(BODIES.len())]).into_bytes();
        random.mutate(&mut bytes);
        let mut client: Client = bridge.connect();
        let _ = client.try_send(&bytes);
        client.finish();
        while let Some(answer) = client.try_answer() {
            assert!((200..600).contains(&answer.status), "{:?}: {answer:?}", String::from_utf8_lossy(&bytes));
        }
    }
}
