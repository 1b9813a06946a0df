//! Answers that are right, odd, broken or missing.

use serde_json::json;
use tokio::sync::mpsc;

use footbridge_calls::{events::CallEvent, request::Target};

use super::{admitted::unlike, *};

#[tokio::test]
async fn the_recorded_servers_answer_as_recorded() {
    let servers = Stage::with(stdio("x", &["vectors", "weather"])).ready().await;
    let names: Vec<_> = catalogue(&servers).await.entries().tools().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["alerts", "check_weather"]);
    let answer = raw(call(&servers, "check_weather", json!({"city": "Zürich"})).await);
    assert_eq!(
        answer,
        r#"{"content":[{"type":"text","text":"It is 21 in Zürich"}],"structuredContent":{"city":"Zürich","tempC":21}}"#
    );
    servers.shutdown().await;
    let servers = Stage::with(stdio("x", &["vectors", "github"])).ready().await;
    let failed = call(&servers, "boom", json!({})).await;
    assert!(matches!(failed, Outcome::ServerError { code: -32603, message } if message == "upstream exploded"));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_tool_that_is_not_what_was_decided_about_is_not_called() {
    let servers = Stage::of("ok").ready().await;
    let target = Target::Tool("echo".to_owned());
    let outgoing = admitted(&servers, "x", target, &json!({}), unlike("echo")).await;
    let outcome = servers.send(outgoing, &CancellationToken::new(), Events::default()).await;
    assert!(matches!(outcome, Outcome::NotSent(NotSent::Changed)), "{outcome:?}");
    servers.shutdown().await;
}

#[tokio::test]
async fn unknown_members_and_big_integers_cross_byte_for_byte() {
    let servers = Stage::of("big-integers").ready().await;
    assert_eq!(
        raw(echo(&servers).await),
        r#"{"content":[{"type":"new","x":1e400}],"structuredContent":{"n":123456789012345678901234567890},"unheard":{"of":0.10}}"#
    );
    servers.shutdown().await;
}

#[tokio::test]
async fn a_resource_is_read_and_one_without_a_uri_is_left_out() {
    let servers = Stage::of("ok").ready().await;
    let catalogue = catalogue(&servers).await;
    assert_eq!(catalogue.entries().resources().map(|(uri, _)| uri).collect::<Vec<_>>(), ["test:one"]);
    assert_eq!(report(&servers).left_out, 1);
    let target = Target::Resource("test:one".to_owned());
    let outgoing = admitted(&servers, "x", target, &json!({}), catalogue).await;
    let read = servers.send(outgoing, &CancellationToken::new(), Events::default()).await;
    assert!(raw(read).contains("what was read"));
    servers.shutdown().await;
}

#[tokio::test]
async fn values_of_secrets_are_taken_out_of_results() {
    let mut stage = Stage::with(with_env(stdio("x", &["ok"]), "API_KEY", "very-secret-value"));
    stage.secrets.push(Secret::new("very-secret-value"));
    let servers = stage.ready().await;
    let said = text(call(&servers, "env", json!({})).await);
    assert!(said.contains("API_KEY=[redacted]") && !said.contains("very-secret"), "{said}");
    for guess in ["very-secret-guess", "very-secret-value"] {
        let said = text(call(&servers, "echo", json!({ "text": guess })).await);
        assert!(said.contains(guess), "the answer to the right guess is as the others': {said}");
    }
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_sees_its_own_environment_only() {
    let servers = Stage::with(with_env(stdio("x", &["ok"]), "ONLY", "this")).ready().await;
    let said = text(call(&servers, "env", json!({})).await);
    let mut names: Vec<_> = said.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ONLY", "PATH"]);
    servers.shutdown().await;
}

#[tokio::test]
async fn a_line_beyond_the_limit_is_too_large_even_with_the_id_at_its_end() {
    let servers = Stage::with(stdio("x", &["long-line", "3000000"]))
        .limit(|limits| limits.servers.line_bytes = 1_000_000)
        .ready()
        .await;
    assert!(matches!(echo(&servers).await, Outcome::TooLarge { .. }));
    servers.shutdown().await;
}

#[tokio::test]
async fn large_results_hold_their_part_of_the_budget_until_they_are_dropped() {
    let mut stage = Stage::with(stdio("x", &["long-line", "3000000"])).limit(|limits| {
        limits.calls.busy_after = Duration::from_millis(50);
    });
    stage.budget = 5 << 20;
    let servers = stage.ready().await;
    let first = echo(&servers).await;
    assert!(matches!(&first, Outcome::Result(result) if result.held.is_some()));
    assert!(matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::Busy)));
    drop(first);
    assert!(matches!(echo(&servers).await, Outcome::Result(_)));
    servers.shutdown().await;
}

#[tokio::test]
async fn rubbish_between_answers_disturbs_nobody_and_is_counted() {
    for mode in ["rubbish-lines", "binary-noise"] {
        let servers = Stage::of(mode).ready().await;
        for n in 0..5 {
            assert_eq!(text(call(&servers, "echo", json!({"n": n})).await), format!("{{\"n\":{n}}}"));
        }
        assert!(report(&servers).ignored > 5, "{mode}");
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn an_unusable_answer_is_told_at_once() {
    for mode in ["broken-json", "not-utf-8"] {
        let servers = Stage::of(mode).ready().await;
        let outcome = tokio::time::timeout(LONG, echo(&servers)).await.unwrap();
        assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Unusable)), "{mode}: {outcome:?}");
        servers.shutdown().await;
    }
}

#[tokio::test]
async fn a_wrong_id_answers_nobody() {
    let servers = Stage::of("wrong-id").limit(|limits| limits.calls.idle_time = Duration::from_secs(2)).ready().await;
    assert!(matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::Silent)));
    assert_eq!(report(&servers).ignored, 1);
    servers.shutdown().await;
}

#[tokio::test]
async fn ids_as_text_batches_and_deep_results_are_taken() {
    for (mode, expected) in [("text-id", "as text"), ("batch", "in a batch")] {
        let servers = Stage::of(mode).ready().await;
        assert_eq!(text(echo(&servers).await), expected);
        servers.shutdown().await;
    }
    let servers = Stage::with(stdio("x", &["deep-json", "200000"])).ready().await;
    assert_eq!(raw(echo(&servers).await).len(), 400_000 + "{\"deep\":}".len());
    servers.shutdown().await;
}

#[tokio::test]
async fn the_first_of_several_answers_counts() {
    let servers = Stage::of("duplicate-answers").ready().await;
    for _ in 0..3 {
        assert_eq!(text(echo(&servers).await), "answer 0");
    }
    servers.shutdown().await;
}

#[tokio::test]
async fn progress_resets_the_idle_time_and_reaches_the_watcher_in_order() {
    let servers = Stage::with(stdio("x", &["slow-with-progress", "60"]))
        .limit(|limits| limits.calls.idle_time = Duration::from_secs(2))
        .ready()
        .await;
    let (events, mut watched) = mpsc::channel(64);
    let outcome = servers
        .send(
            outgoing(&servers, "echo", json!({})).await,
            &CancellationToken::new(),
            Events::new(Some(events), &Redactor::default(), None),
        )
        .await;
    assert_eq!(text(outcome), "done at last");
    let mut seen = Vec::new();
    while let Some(CallEvent::Progress { progress, message, .. }) = watched.recv().await.map(|event| *event) {
        assert_eq!(message.as_deref(), Some("working"));
        seen.push(progress);
    }
    assert!(seen.len() > 10 && seen.is_sorted(), "{seen:?}");
    servers.shutdown().await;
}

#[tokio::test]
async fn progress_without_end_ends_at_the_total_time() {
    let servers =
        Stage::of("progress-without-end").limit(|limits| limits.calls.total_time = Duration::from_millis(400));
    let servers = servers.ready().await;
    assert!(matches!(echo(&servers).await, Outcome::Unknown(NoAnswer::Timeout)));
    servers.shutdown().await;
}

#[tokio::test]
async fn nothing_that_a_server_asks_for_is_given() {
    let servers = Stage::of("asks-back").ready().await;
    let told: Value = serde_json::from_str(&raw(echo(&servers).await)).unwrap();
    let told = &told["structuredContent"];
    assert_eq!(told["ping"], json!({}));
    assert_eq!(told["roots/list"]["code"], -32601);
    assert_eq!(told["sampling/createMessage"]["code"], -32601);
    // It was not told that it may ask people.
    assert_eq!(told["elicitation/create"]["code"], -32601);
    servers.shutdown().await;
}
