//! Tests of the whole stage against servers that misbehave, over real pipes and real sockets.

mod admitted;
mod answers;
mod figures;
mod http;
mod http_server;
mod lifecycle;
#[path = "../../../../tests/misbehaving.rs"]
mod misbehaving;
mod older_server;
mod programs;
mod prompts;
mod real;
mod replaced;
mod tasks;
mod trouble;

use footbridge_outbound::HttpSpec;
use footbridge_processes::launch::ProgramSpec;
use std::{collections::BTreeSet, sync::OnceLock, time::Duration};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::*;
use admitted::{about, admitted, outgoing, outgoing_to};
use footbridge_core::secret::Secret;

/// Longer than anything takes here, on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// The misbehaving server's program, built once if it is missing.
fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(misbehaving::program)
}

/// A stage of one server, named `x`, and what is set differently for it.
struct Stage {
    specs: Vec<ServerSpec>,
    limits: Limits,
    secrets: Vec<Secret>,
    budget: usize,
}

impl Stage {
    /// The misbehaving server in a mode, as `x`.
    fn of(mode: &str) -> Self {
        Self::with(stdio("x", &[mode]))
    }

    fn with(spec: ServerSpec) -> Self {
        Self { specs: vec![spec], limits: Limits::default(), secrets: Vec::new(), budget: 32 << 20 }
    }

    fn and(mut self, spec: ServerSpec) -> Self {
        self.specs.push(spec);
        self
    }

    fn limit(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    fn start(self) -> Servers {
        let context = ServersContext {
            limits: self.limits,
            redactor: Redactor::new(&self.secrets),
            budget: Budget::new(self.budget),
            launcher: Launcher::default(),
            elicitation: false,
            log: None,
        };
        Servers::start(self.specs, context)
    }

    /// Started, and `x` is ready.
    async fn ready(self) -> Servers {
        let servers = self.start();
        catalogue(&servers).await;
        servers
    }
}

fn stdio(name: &str, args: &[&str]) -> ServerSpec {
    let path = std::env::var("PATH").unwrap_or_default();
    ServerSpec {
        name: name.parse().unwrap(),
        transport: TransportSpec::Stdio(ProgramSpec {
            command: program().to_owned(),
            args: args.iter().map(|arg| Secret::new(*arg)).collect(),
            env: vec![("PATH".to_owned(), Secret::new(path))],
            cwd: None,
            confine: false,
        }),
        protocol: ProtocolChoice::Initialize,
        disabled_tools: BTreeSet::new(),
        hint: None,
    }
}

fn with_env(mut spec: ServerSpec, name: &str, value: &str) -> ServerSpec {
    if let TransportSpec::Stdio(stdio) = &mut spec.transport {
        stdio.env.push((name.to_owned(), Secret::new(value)));
    }
    spec
}

async fn catalogue(servers: &Servers) -> Arc<Offered> {
    servers.ready("x", LONG).await.unwrap().unwrap()
}

/// How often the state of `x` has changed.
fn turn(servers: &Servers) -> u64 {
    servers.handle("x").unwrap().shared.published.borrow().turn
}

/// Waits until `x` is ready again after this turn, without using it.
async fn ready_again(servers: &Servers, turn: u64) {
    let mut published = servers.handle("x").unwrap().shared.published.subscribe();
    let again = published.wait_for(|now| now.turn > turn && matches!(now.state, ServerState::Ready(_)));
    tokio::time::timeout(LONG, again).await.unwrap().unwrap();
}

async fn unavailable(servers: &Servers) -> String {
    servers.ready("x", LONG).await.unwrap().unwrap_err().to_string()
}

async fn call(servers: &Servers, tool: &str, arguments: Value) -> Outcome {
    servers.send(outgoing(servers, tool, arguments).await, &CancellationToken::new(), Events::default()).await
}

async fn echo(servers: &Servers) -> Outcome {
    call(servers, "echo", Value::Object(Map::new())).await
}

fn raw(outcome: Outcome) -> String {
    match outcome {
        Outcome::Result(result) => result.text.get().to_owned(),
        other => panic!("no result: {other:?}"),
    }
}

fn text(outcome: Outcome) -> String {
    let result: Value = serde_json::from_str(&raw(outcome)).unwrap();
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}

fn report(servers: &Servers) -> ServerReport {
    servers.report().remove(0)
}

/// Whether a process runs; one that ended and waits to be reaped does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
