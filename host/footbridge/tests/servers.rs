//! MCP servers under their keepers, through the public interface: what a server started ends with it.

#![expect(clippy::unwrap_used, reason = "a test says no more than that it failed, and where")]

#[path = "../../../tests/misbehaving.rs"]
mod misbehaving;

use std::time::{Duration, Instant};

use footbridge_core::{budget::Budget, limits::Limits, redact::Redactor, secret::Secret};
use footbridge_mcp::{ProtocolChoice, ServerReport, ServerSpec, ServerState, Servers, ServersContext, TransportSpec};
use footbridge_processes::launch::{Launcher, OwnFolders, ProgramSpec};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// Longer than anything takes here, on a busy machine.
const LONG: Duration = Duration::from_secs(30);

async fn kept(command: &str, mode: &str) -> Servers {
    let path = std::env::var("PATH").unwrap_or_default();
    let spec = ProgramSpec {
        command: command.to_owned(),
        args: vec![Secret::new(mode)],
        env: vec![("PATH".to_owned(), Secret::new(path))],
        cwd: None,
        confine: true,
    };
    let spec = ServerSpec {
        name: "x".parse().unwrap(),
        transport: TransportSpec::Stdio(spec),
        protocol: ProtocolChoice::Initialize,
        disabled_tools: Default::default(),
        hint: None,
    };
    let launcher =
        Launcher::Kept { helper: Some(env!("CARGO_BIN_EXE_footbridge").into()), folders: OwnFolders::default() };
    let limits = Limits::default();
    let budget = Budget::new(limits.edge.held_bytes);
    Servers::start(
        vec![spec],
        ServersContext { limits, redactor: Redactor::default(), budget, launcher, elicitation: false, log: None },
    )
}

fn report(servers: &Servers) -> ServerReport {
    servers.report().remove(0)
}

/// The process that the server started in a session of its own.
async fn detached(servers: &Servers) -> i32 {
    let catalogue = servers.ready("x", LONG).await.unwrap().unwrap();
    let name = catalogue.entries().tools().next().unwrap().name().to_owned();
    let server = report(servers).pid.unwrap();
    outside(server, name.strip_prefix("pid").unwrap())
}

/// The number here of the process that has this one in the pid namespace of a server.
fn outside(server: u32, inside: &str) -> i32 {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = namespace(&server.to_string());
    let is_it = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.and_then(|all| all.split_whitespace().last()) == Some(inside) && namespace(pid) == own
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok()).find(is_it).unwrap().parse().unwrap()
}

fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[tokio::test]
async fn what_a_server_detached_ends_with_its_shutdown() {
    let servers = kept(&misbehaving::program(), "forks-and-detaches").await;
    let pid = detached(&servers).await;
    assert!(runs(pid));
    servers.shutdown().await;
    assert!(!runs(pid));
}

#[tokio::test]
async fn what_a_server_detached_ends_when_the_server_is_killed_and_it_starts_again() {
    let servers = kept(&misbehaving::program(), "forks-and-detaches").await;
    let first = detached(&servers).await;
    let server = i32::try_from(report(&servers).pid.unwrap()).unwrap();
    kill(Pid::from_raw(server), Signal::SIGKILL).unwrap();
    let deadline = Instant::now() + LONG;
    while matches!(servers.state("x"), Some(ServerState::Ready(_))) && Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    let second = detached(&servers).await;
    assert!(first != second && !runs(first) && runs(second));
    assert_eq!(report(&servers).restarts, 1);
    assert!(report(&servers).last_error.unwrap().contains("signal: 9"));
    servers.shutdown().await;
    assert!(!runs(second));
}

#[tokio::test]
async fn a_server_that_ignores_every_request_to_end_is_ended() {
    let servers = kept(&misbehaving::program(), "ignores-eof-and-term").await;
    servers.ready("x", LONG).await.unwrap().unwrap();
    let pid = i32::try_from(report(&servers).pid.unwrap()).unwrap();
    let began = Instant::now();
    servers.shutdown().await;
    assert!(!runs(pid) && began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_missing_program_is_told_to_the_guest_without_its_path() {
    let servers = kept("/nowhere/at/all", "ok").await;
    let why = servers.ready("x", LONG).await.unwrap().unwrap_err().to_string();
    assert_eq!(why, "Server \"x\" is not available: its program or its working folder was not found; ask the operator");
    assert!(report(&servers).last_error.unwrap().contains("/nowhere/at/all"));
    servers.shutdown().await;
}
