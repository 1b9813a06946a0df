//! A harness with one session and the demo server, in this process, on a port of its own.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use footbridge::{config::Config, harness::Harness};
use footbridge_audit::Journal;
use footbridge_calls::session::SessionSpec;
use footbridge_core::random::new_token;
use footbridge_core::{gate::Policy, limits::Limits, secret::Secret};
use footbridge_edge::listener::{Listen, Listeners};
use footbridge_mcp::{ProtocolChoice, ServerSpec, TransportSpec};
use footbridge_processes::launch::{Launcher, OwnFolders, ProgramSpec};
use footbridge_proto::endpoint::{Endpoint, TcpEndpoint};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::client::{Answer, Client, post};

/// Longer than anything takes here, on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// What the threads that serve guests are called.
pub(crate) const WORKERS: &str = "harness";

/// The record, in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records(Arc<Mutex<String>>);

impl Records {
    /// What was written so far, line by line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.0.lock().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Journal for Records {
    fn reserve(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
        Ok(())
    }
}

/// A session's door.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// The harness. Dropping it ends it, and its server.
pub(crate) struct Bridge {
    runtime: Runtime,
    harness: Option<Harness>,
    records: Records,
    pub(crate) door: Door,
}

impl Bridge {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    /// With limits of its own.
    pub(crate) fn with(change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::default();
        limits.calls.list_wait = LONG;
        limits.calls.server_wait = LONG;
        // Tests ask faster than guests may.
        limits.calls.listings_per_second = 100_000;
        limits.calls.listing_burst = 100_000;
        change(&mut limits);
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name(WORKERS).enable_all().build().unwrap();
        let inside = runtime.enter();
        let records = Records::default();
        let config = Config { servers: vec![demo()], limits, ..Config::default() };
        let launcher =
            Launcher::Kept { helper: Some(env!("CARGO_BIN_EXE_footbridge").into()), folders: OwnFolders::default() };
        let harness = Harness::start(config, records.clone(), launcher, None, None).unwrap();
        let door = open(&harness, "test");
        drop(inside);
        Self { runtime, harness: Some(harness), records, door }
    }

    /// Does something with the harness, where its tasks run.
    pub(crate) fn harness<T>(&self, act: impl AsyncFnOnce(&Harness) -> T) -> T {
        self.runtime.block_on(act(self.harness.as_ref().unwrap()))
    }

    /// The door of one more session.
    pub(crate) fn another_session(&self) -> Door {
        let _inside = self.runtime.enter();
        open(self.harness.as_ref().unwrap(), "other")
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.door.address)
    }

    /// The header that opens.
    pub(crate) fn authorization(&self) -> String {
        self.door.authorization()
    }

    /// A whole request, as a good client sends it.
    pub(crate) fn request(&self, body: &str) -> String {
        post(&[&self.authorization(), "Content-Type: application/json"], body)
    }

    /// Sends a body as a good client and gives the answer.
    pub(crate) fn ask(&self, body: &str) -> Answer {
        let mut client = self.connect();
        client.send(self.request(body));
        client.answer()
    }

    /// Calls a method as a good client.
    pub(crate) fn rpc(&self, method: &str, params: &Value) -> Value {
        self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()).json()
    }

    /// A good client is served as ever.
    pub(crate) fn must_serve(&self) {
        let answer = self.rpc("listServers", &json!({}));
        assert_eq!(answer["result"]["servers"][0]["name"], "demo", "{answer}");
    }

    /// The record so far, line by line.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.records.lines()
    }

    /// Nothing was called so far, and no call was refused.
    pub(crate) fn must_have_called_nothing(&self) {
        let records = self.records();
        let quiet = |line: &Value| line["type"] == "started" || line["type"] == "session";
        assert!(records.iter().all(quiet), "{records:?}");
    }

    /// Waits until a line of the record is as it should be.
    pub(crate) fn until_recorded(&self, what: impl Fn(&Value) -> bool) -> Value {
        eventually(|| self.records().into_iter().find(&what))
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if let Some(harness) = self.harness.take() {
            // A record that a test breaks is its own to look at.
            let _recorded = self.runtime.block_on(harness.stop());
        }
    }
}

impl Door {
    pub(crate) fn authorization(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }
}

/// Asks again until there is something.
pub(crate) fn eventually<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(start.elapsed() < LONG, "it did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn open(harness: &Harness, session: &str) -> Door {
    open_under(harness, session, Policy::open())
}

/// Opens a session with a policy.
pub(crate) fn open_under(harness: &Harness, session: &str, policy: Arc<Policy>) -> Door {
    let listener = Listeners::default().bind(&Listen::at(Endpoint::Tcp(TcpEndpoint::loopback(0)))).unwrap();
    let Endpoint::Tcp(tcp) = listener.endpoint().unwrap() else { panic!("not TCP") };
    let token = new_token().unwrap();
    harness.open(SessionSpec::new(session.parse().unwrap(), &token, policy), vec![listener]).unwrap();
    Door { address: tcp.primary(), token: token.expose().to_owned() }
}

fn demo() -> ServerSpec {
    let program = ProgramSpec {
        command: env!("CARGO_BIN_EXE_footbridge").to_owned(),
        args: vec![Secret::new("demo-server")],
        env: Vec::new(),
        cwd: None,
        confine: false,
    };
    let transport = TransportSpec::Stdio(program);
    ServerSpec {
        name: "demo".parse().unwrap(),
        transport,
        protocol: ProtocolChoice::default(),
        disabled_tools: Default::default(),
        hint: None,
    }
}
