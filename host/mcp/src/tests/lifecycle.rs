//! Listings, changes of them, closing, and what is left behind.

use std::path::Path;

use footbridge_core::catalogue::ListKind;
use serde_json::json;

use super::*;
use crate::wrapped::CliSpec;

fn names(catalogue: &Arc<Offered>) -> Vec<&str> {
    catalogue.entries().tools().map(|tool| tool.name()).collect()
}

#[tokio::test]
async fn bad_and_repeated_tools_are_left_out_one_by_one() {
    let servers = Stage::of("one-bad-tool").ready().await;
    assert_eq!(names(&catalogue(&servers).await), ["fine", "good"]);
    let report = report(&servers);
    assert_eq!((report.left_out, report.left_out_reasons.len()), (4, 4));
    servers.shutdown().await;
    let servers = Stage::of("duplicate-tools").ready().await;
    assert_eq!(names(&catalogue(&servers).await), ["once", "twice"]);
    servers.shutdown().await;
}

#[tokio::test]
async fn endless_and_looping_pages_end() {
    let servers = Stage::of("endless-pages").limit(|limits| limits.servers.pages = 5).ready().await;
    assert_eq!(names(&catalogue(&servers).await), ["t0", "t1", "t2", "t3", "t4"]);
    assert!(report(&servers).left_out_reasons[0].contains("more than 5 pages"));
    servers.shutdown().await;
    let servers = Stage::of("looping-cursor").ready().await;
    assert_eq!(names(&catalogue(&servers).await), ["first", "second"]);
    assert!(report(&servers).left_out_reasons[0].contains("came back"));
    servers.shutdown().await;
    let servers = Stage::of("number-as-cursor").ready().await;
    assert_eq!(names(&catalogue(&servers).await), ["first"]);
    assert!(report(&servers).left_out_reasons[0].contains("its cursor is no text"));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_page_of_a_million_entries_is_read_one_by_one() {
    let servers = Stage::with(stdio("x", &["tiny-entries", "1000000"])).ready().await;
    let report = report(&servers);
    assert_eq!(report.left_out, 1_000_000);
    assert!(report.left_out_reasons.len() <= 20);
    // Most of them are counted alone.
    let gaps = catalogue(&servers).await.gaps().of(ListKind::Tools);
    assert!(gaps[0].contains("the page has more entries than a server may have"), "{gaps:?}");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_change_of_the_listing_is_taken_over() {
    let servers = Stage::of("list-changed").ready().await;
    assert_eq!(text(call(&servers, "grow", json!({})).await), "grown");
    let mut published = servers.handle("x").unwrap().shared.published.subscribe();
    let grown = published.wait_for(|now| matches!(&now.state, ServerState::Ready(c) if c.entries().tools().len() == 2));
    tokio::time::timeout(LONG, grown).await.unwrap().unwrap();
    servers.shutdown().await;
}

#[tokio::test]
async fn a_listing_that_did_not_change_is_not_published_again() {
    let folder = tempfile::tempdir().unwrap();
    let (record, tools) = (folder.path().join("record"), folder.path().join("tools"));
    let listed = |names: &[&str]| {
        let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
        let tools: Vec<_> = names.iter().map(tool).collect();
        serde_json::to_string(&tools).unwrap()
    };
    std::fs::write(&tools, listed(&["nudge"])).unwrap();
    let spec = stdio("x", &["listing-of-a-file", tools.to_str().unwrap()]);
    let servers = Stage::with(with_env(spec, "MISBEHAVING_RECORD", record.to_str().unwrap())).ready().await;
    let (before, first) = (turn(&servers), catalogue(&servers).await);
    let mut published = servers.handle("x").unwrap().shared.published.subscribe();
    raw(call(&servers, "nudge", json!({})).await);
    let asked = || std::fs::read_to_string(&record).unwrap_or_default().matches("tools/list").count();
    while asked() < 2 {
        tokio::task::yield_now().await;
    }
    std::fs::write(&tools, listed(&["nudge", "other"])).unwrap();
    raw(call(&servers, "nudge", json!({})).await);
    let changed = published.wait_for(|now| now.turn > before);
    let now = tokio::time::timeout(LONG, changed).await.unwrap().unwrap().clone();
    assert!(
        matches!(&now.state, ServerState::Ready(now) if now.entries().tools().len() == 2 && first.entries().tools().len() == 1)
    );
    assert_eq!(now.turn, before + 1, "the listing in between was the same");
    servers.shutdown().await;
}

#[tokio::test]
async fn servers_that_do_not_listen_are_ended_side_by_side_and_by_force() {
    let mut stage = Stage::of("ignores-eof-and-term").limit(|limits| {
        limits.servers.close_time = Duration::from_millis(400);
    });
    for n in 0..3 {
        stage = stage.and(stdio(&format!("y{n}"), &["ignores-eof-and-term"]));
    }
    let servers = stage.start();
    let mut pids = Vec::new();
    for name in servers.names().iter() {
        servers.ready(name.as_str(), LONG).await.unwrap().unwrap();
    }
    pids.extend(servers.report().iter().filter_map(|report| report.pid));
    assert_eq!(pids.len(), 4);
    let began = std::time::Instant::now();
    servers.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(!pids.into_iter().any(runs));
}

#[tokio::test]
async fn a_server_that_stays_without_input_is_asked_to_end_when_its_time_is_over() {
    let stage = Stage::of("ignores-eof").limit(|limits| {
        limits.servers.leave_time = Duration::from_millis(1);
        limits.servers.close_time = Duration::from_secs(300);
    });
    let servers = stage.ready().await;
    let pid = report(&servers).pid.unwrap();
    tokio::time::timeout(LONG, servers.shutdown()).await.unwrap();
    assert!(!runs(pid));
}

#[tokio::test]
async fn a_server_that_listens_ends_by_itself() {
    let servers = Stage::of("ok").ready().await;
    let pid = report(&servers).pid.unwrap();
    servers.shutdown().await;
    assert!(!runs(pid));
}

#[tokio::test]
async fn the_operator_can_restart_a_server() {
    let servers = Stage::of("ok").ready().await;
    let before = report(&servers).pid.unwrap();
    let turn = turn(&servers);
    assert_eq!(servers.restart("nobody"), RestartAsked::Unknown);
    assert_eq!(servers.restart("x"), RestartAsked::Restarted);
    ready_again(&servers, turn).await;
    let after = report(&servers).pid.unwrap();
    assert!(before != after && !runs(before));
    servers.shutdown().await;
}

/// Waits until a program is there that is not this one.
async fn another_program(servers: &Servers, before: Option<u32>) -> u32 {
    let other = async {
        loop {
            match report(servers).pid.filter(|pid| Some(*pid) != before) {
                Some(pid) => return pid,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(LONG, other).await.unwrap()
}

/// Has `x`, whose start hangs once its record shows this, start afresh; it is starting all the while.
async fn starts_afresh(spec: ServerSpec, record: &Path, hangs_at: &str) {
    let spec = with_env(spec, "MISBEHAVING_RECORD", record.to_str().unwrap());
    let servers = Stage::with(spec).limit(|limits| limits.servers.start_time = LONG * 10).start();
    let first = another_program(&servers, None).await;
    while !std::fs::read_to_string(record).unwrap_or_default().contains(hangs_at) {
        tokio::task::yield_now().await;
    }
    assert_eq!(servers.restart("x"), RestartAsked::Restarted);
    another_program(&servers, Some(first)).await;
    assert!(!runs(first), "the next one begins behind it");
    let published = servers.handle("x").unwrap().shared.published.borrow().clone();
    assert!(matches!(published.state, ServerState::Starting), "{hangs_at}");
    assert_eq!(published.turn, 2, "nobody who waits for it was told that it is not there");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_restart_cuts_a_start_short_that_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let (record, pipe) = (folder.path().join("record"), folder.path().join("pipe"));
    starts_afresh(stdio("x", &["never-initializes"]), &record, "initialize").await;
    std::fs::remove_file(&record).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let lists = stdio("x", &["listing-of-a-file", pipe.to_str().unwrap()]);
    starts_afresh(lists, &record, "tools/list").await;
}

#[tokio::test]
async fn a_restart_cuts_the_pause_before_a_start_short_and_closes_the_breaker() {
    let servers = Stage::of("exits-at-start")
        .limit(|limits| {
            limits.servers.first_pause = LONG * 10;
            limits.servers.restarts = 1;
        })
        .start();
    unavailable(&servers).await;
    let asked = servers.ready("x", LONG);
    let restarted = async {
        let mut published = servers.handle("x").unwrap().shared.published.subscribe();
        published.wait_for(|now| matches!(now.state, ServerState::Starting)).await.unwrap();
        assert_eq!(servers.restart("x"), RestartAsked::Restarted);
    };
    let (ended, ()) = tokio::join!(asked, restarted);
    assert!(ended.unwrap().unwrap_err().to_string().contains("it ended while starting"));
    servers.shutdown().await;
}

#[tokio::test]
async fn what_has_no_start_says_so_when_it_is_asked_for() {
    let lacking = TransportSpec::Lacking { kind: "stdio", why: "the variable KEY is not set".to_owned() };
    let cli =
        |missing: Option<&str>| TransportSpec::Cli(CliSpec { tools: Vec::new(), missing: missing.map(str::to_owned) });
    for (transport, why) in [
        (lacking, "a value that its configuration needs is missing: the variable KEY is not set"),
        (cli(None), "each of its calls starts a program of its own"),
        (cli(Some("nowhere")), "\"nowhere\" is not there: install it"),
    ] {
        let servers = Stage::with(ServerSpec { transport, ..stdio("x", &[]) }).start();
        let RestartAsked::NothingToStart(said) = servers.restart("x") else { panic!("{why}") };
        assert!(said.contains(why), "{said}");
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn dropping_everything_without_shutdown_leaves_no_program() {
    let pid = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { report(&Stage::of("ignores-eof-and-term").ready().await).pid.unwrap() })
    });
    let pid = pid.join().unwrap();
    let deadline = std::time::Instant::now() + LONG;
    while runs(pid) && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(!runs(pid));
}

#[tokio::test]
async fn auto_falls_back_to_the_handshake_and_remembers_it() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let mut spec = with_env(stdio("x", &["ok"]), "MISBEHAVING_RECORD", record.to_str().unwrap());
    spec.protocol = ProtocolChoice::Auto;
    let servers = Stage::with(spec).ready().await;
    assert_eq!(report(&servers).revision.as_deref(), Some("2025-11-25"));
    let turn = turn(&servers);
    assert_eq!(servers.restart("x"), RestartAsked::Restarted);
    ready_again(&servers, turn).await;
    let seen = std::fs::read_to_string(&record).unwrap();
    assert_eq!((seen.matches("server/discover").count(), seen.matches("initialize ").count()), (1, 2), "{seen}");
    servers.shutdown().await;
}

#[tokio::test]
async fn auto_tries_the_handshake_where_a_program_ends_after_what_it_said_of_itself() {
    let mut spec = stdio("x", &["empty-discover"]);
    spec.protocol = ProtocolChoice::Auto;
    let servers = Stage::with(spec).ready().await;
    assert_eq!(report(&servers).revision.as_deref(), Some("2025-11-25"));
    servers.shutdown().await;
}

#[tokio::test]
async fn unknown_names_are_nobody() {
    let servers = Stage::of("ok").start();
    assert!(servers.state("nobody").is_none() && servers.ready("nobody", LONG).await.is_none());
    assert!(servers.state("x").is_some());
    servers.shutdown().await;
}

#[tokio::test]
async fn a_revision_that_nobody_knows_is_refused_by_name() {
    let servers = Stage::of("unknown-revision").start();
    assert!(unavailable(&servers).await.contains("a revision of the protocol that is not known here"));
    let report = report(&servers);
    assert!(report.last_error.unwrap().contains("\"1999-01-01\""));
    assert_eq!(report.pid, None, "its program ended");
    servers.shutdown().await;
}
