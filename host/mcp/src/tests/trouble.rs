//! Servers that do not start, end, hang or flood, and what becomes of calls and of neighbours.

use serde_json::json;

use super::*;

#[tokio::test]
async fn a_server_that_does_not_start_says_why_while_its_neighbour_answers() {
    let servers = Stage::of("exits-at-start").and(stdio("y", &["ok"])).start();
    let why = unavailable(&servers).await;
    assert_eq!(why, "Server \"x\" is not available: it ended while starting; try again, or ask the operator");
    assert!(servers.ready("y", LONG).await.unwrap().is_ok());
    let detail = report(&servers).last_error.unwrap();
    assert!(detail.contains("exit status: 3") && detail.contains("fatal: \\u{1b}[31mno licence"), "{detail}");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_refuses_the_handshake_says_why() {
    let servers = Stage::of("refuses-handshake").start();
    let why = unavailable(&servers).await;
    assert!(why.contains("does not speak the protocol"), "{why}");
    let detail = report(&servers).last_error.unwrap();
    assert!(detail.contains("no licence for this") && !detail.contains("ended"), "{detail}");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_missing_program_is_named_to_the_operator_only() {
    let mut spec = stdio("x", &[]);
    if let TransportSpec::Stdio(stdio) = &mut spec.transport {
        stdio.command = "/nowhere/at/all".to_owned();
    }
    let servers = Stage::with(spec).start();
    let why = unavailable(&servers).await;
    assert!(why.contains("was not found; ask the operator") && !why.contains("nowhere"), "{why}");
    assert!(report(&servers).last_error.unwrap().contains("/nowhere/at/all"));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_after_the_start_time() {
    let servers =
        Stage::of("never-initializes").limit(|limits| limits.servers.start_time = Duration::from_millis(300)).start();
    assert!(unavailable(&servers).await.contains("did not answer while starting"));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_ends_after_the_handshake_did_not_start() {
    let servers = Stage::of("exits-after-initialize").start();
    assert!(unavailable(&servers).await.contains("it ended while starting"));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_crash_is_told_at_once_even_where_a_grandchild_holds_the_output() {
    for mode in ["exits-mid-call", "grandchild-holds-stdout"] {
        let servers = Stage::of(mode).ready().await;
        let outcome = tokio::time::timeout(Duration::from_secs(10), echo(&servers)).await.unwrap();
        assert!(matches!(outcome, Outcome::Unknown(NoAnswer::ServerGone)), "{mode}: {outcome:?}");
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn a_crashed_server_starts_again_at_its_next_use_and_no_call_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let spec = with_env(stdio("x", &["exits-mid-call"]), "MISBEHAVING_RECORD", record.to_str().unwrap());
    let servers = Stage::with(spec).ready().await;
    assert!(matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::ServerGone)));
    catalogue_after_end(&servers).await;
    assert_eq!(report(&servers).restarts, 1);
    let calls = std::fs::read_to_string(&record).unwrap();
    assert_eq!(calls.lines().filter(|line| line.starts_with("tools/call")).count(), 1, "{calls}");
    servers.shutdown().await;
}

/// Waits until the end was noticed, then uses the server.
async fn catalogue_after_end(servers: &Servers) -> Arc<Offered> {
    let mut published = servers.handle("x").unwrap().shared.published.subscribe();
    published.wait_for(|now| !matches!(now.state, ServerState::Ready(_))).await.unwrap();
    catalogue(servers).await
}

#[tokio::test]
async fn a_server_that_keeps_ending_is_left_alone_for_a_while() {
    let servers = Stage::of("exits-at-start")
        .limit(|limits| {
            limits.servers.first_pause = Duration::from_millis(1);
            limits.servers.restarts = 2;
        })
        .start();
    let mut last = String::new();
    for _ in 0..5 {
        last = unavailable(&servers).await;
    }
    assert!(last.contains("ended too often") && last.contains("try again in"), "{last}");
    assert_eq!(report(&servers).restarts, 2);
    servers.shutdown().await;
}

#[tokio::test]
async fn silence_is_a_timeout_and_the_server_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let spec = with_env(stdio("x", &["never-answers-call"]), "MISBEHAVING_RECORD", record.to_str().unwrap());
    let servers = Stage::with(spec).limit(|limits| limits.calls.idle_time = Duration::from_millis(200)).ready().await;
    assert!(matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::Silent)));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let never_sent = servers.send(outgoing(&servers, "echo", json!({})).await, &cancel, Events::default()).await;
    assert!(matches!(never_sent, Outcome::NotSent(NotSent::Cancelled)));
    servers.shutdown().await;
    let seen = std::fs::read_to_string(&record).unwrap();
    let call = seen.lines().find_map(|line| line.strip_prefix("tools/call ")).unwrap();
    assert!(seen.contains(&format!("notifications/cancelled {call}\n")), "{seen}");
    assert_eq!(seen.matches("tools/call").count(), 1, "{seen}");
}

#[tokio::test]
async fn a_caller_that_leaves_cancels_upstream() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let spec = with_env(stdio("x", &["progress-without-end"]), "MISBEHAVING_RECORD", record.to_str().unwrap());
    let servers = Stage::with(spec).ready().await;
    let (events, mut watched) = tokio::sync::mpsc::channel(1);
    let cancel = CancellationToken::new();
    let leaves = async {
        watched.recv().await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(
        servers.send(
            outgoing(&servers, "echo", json!({})).await,
            &cancel,
            Events::new(Some(events), &Redactor::default(), None)
        ),
        leaves
    );
    assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Cancelled)));
    servers.shutdown().await;
}

#[tokio::test]
async fn what_still_comes_of_a_call_that_took_too_long_is_no_fault_of_the_server() {
    // Of 40 steps of 50 ms, each with progress, and then an answer.
    let servers = Stage::with(stdio("x", &["slow-with-progress", "40"]))
        .limit(|limits| limits.calls.total_time = Duration::from_secs(1))
        .ready()
        .await;
    assert!(matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::Timeout)));
    let handle = servers.handle("x").unwrap();
    // It answers in order, so that all of the first call is read by the end of another.
    let live = handle.shared.published.borrow().live.clone().unwrap();
    live.peer.list_tools(None).await.unwrap();
    assert_eq!(report(&servers).ignored, 0);
    servers.shutdown().await;
}

#[tokio::test]
async fn a_line_without_end_holds_no_memory_and_its_caller_is_told_that_it_is_too_large() {
    let servers = Stage::of("endless-line").limit(|limits| limits.servers.line_bytes = 1 << 20).ready().await;
    let outcome = echo(&servers).await;
    assert!(matches!(outcome, Outcome::TooLarge { limit: 0x10_0000, .. }), "{outcome:?}");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_mark_of_byte_order_is_no_obstacle_and_other_text_in_place_of_json_is_named() {
    let servers = Stage::of("byte-order-mark").ready().await;
    assert_eq!(servers.report()[0].ignored, 0);
    servers.shutdown().await;
    let mut stage = Stage::of("indented").limit(|limits| limits.servers.start_time = Duration::from_secs(2));
    stage.secrets.push(Secret::new("a-secret-of-the-server"));
    let servers = stage.start();
    unavailable(&servers).await;
    let why = servers.report()[0].last_error.clone().unwrap_or_default();
    assert!(why.contains("within 2s; it prints what is no JSON, first: Ready with [redacted]"), "{why}");
    servers.shutdown().await;
}

#[tokio::test]
async fn floods_of_progress_requests_and_errors_do_not_slow_a_neighbour() {
    for mode in ["floods-progress", "asks-without-end", "stderr-flood"] {
        let servers = Stage::with(stdio("x", &[mode, "1000000000"])).and(stdio("y", &["ok"])).ready().await;
        servers.ready("y", LONG).await.unwrap().unwrap();
        let cancel = CancellationToken::new();
        let neighbour = async {
            for n in 0..20 {
                let asked = outgoing_to("y", &servers, "echo", json!({"n": n})).await;
                let began = std::time::Instant::now();
                raw(servers.send(asked, &CancellationToken::new(), Events::default()).await);
                assert!(began.elapsed() < Duration::from_secs(10), "{mode}");
            }
            cancel.cancel();
        };
        let flooded = servers.send(outgoing(&servers, "echo", json!({})).await, &cancel, Events::default());
        let (_, ()) = tokio::join!(flooded, neighbour);
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_takes_no_input_leaves_calls_unsent_or_unknown_and_never_hangs_them() {
    let servers =
        Stage::of("never-reads").limit(|limits| limits.calls.idle_time = Duration::from_millis(300)).ready().await;
    let big = json!({"x": "a".repeat(200_000)});
    let (first, second) = tokio::join!(call(&servers, "echo", big.clone()), call(&servers, "echo", big));
    for outcome in [&first, &second] {
        assert!(
            matches!(outcome, Outcome::Unknown(NoAnswer::Silent | NoAnswer::ServerGone) | Outcome::NotSent(_)),
            "{outcome:?}"
        );
    }
    servers.shutdown().await;
}

#[tokio::test]
async fn calls_beyond_the_places_of_a_server_are_busy() {
    let servers = Stage::of("never-answers-call")
        .limit(|limits| {
            limits.calls.in_flight_per_server = 1;
            limits.calls.busy_after = Duration::from_millis(50);
        })
        .ready()
        .await;
    let cancel = CancellationToken::new();
    let first = servers.send(outgoing(&servers, "echo", json!({})).await, &cancel, Events::default());
    let second = async {
        let outcome = echo(&servers).await;
        cancel.cancel();
        outcome
    };
    let (_, second) = tokio::join!(first, second);
    assert!(matches!(second, Outcome::NotSent(NotSent::Busy)), "{second:?}");
    servers.shutdown().await;
}
