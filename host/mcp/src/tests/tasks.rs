//! Calls that their server runs as tasks alone.

use std::path::Path;

use footbridge_calls::events::CallEvent;
use serde_json::json;
use tokio::sync::mpsc;

use super::*;

/// The server, and the file in which it records what it gets.
fn recorded(folder: &Path) -> (Stage, std::path::PathBuf) {
    let record = folder.join("record");
    let spec = with_env(stdio("x", &["tasks"]), "MISBEHAVING_RECORD", record.to_str().unwrap());
    (Stage::with(spec), record)
}

fn structured(outcome: Outcome) -> Value {
    serde_json::from_str::<Value>(&raw(outcome)).unwrap()["structuredContent"].clone()
}

#[tokio::test]
async fn a_task_is_run_to_its_end_and_its_progress_told() {
    let servers = Stage::of("tasks").ready().await;
    let shown = catalogue(&servers).await.entries().tool("work").unwrap().definition().get().to_owned();
    assert!(shown.contains(r#""execution":{"taskSupport":"optional"}"#), "{shown}");
    let (sender, mut receiver) = mpsc::channel(16);
    let events = Events::new(Some(sender), &Redactor::default(), None);
    let call = outgoing(&servers, "work", json!({"steps": 2})).await;
    let outcome = servers.send(call, &CancellationToken::new(), events).await;
    let total = Limits::default().calls.total_time;
    assert_eq!(structured(outcome), json!({"ttl": total.as_millis(), "looks": 2, "told": null}));
    let mut told = Vec::new();
    while let Ok(CallEvent::Progress { progress, message, .. }) = receiver.try_recv().map(|event| *event) {
        told.push((progress, message.unwrap()));
    }
    // What its server tells by the call's own token goes on, and is further than any step.
    assert_eq!(told, [(1.0, "step 0".to_owned()), (1000.0, "working".to_owned())]);
    assert_eq!(report(&servers).ignored, 0, "progress of a task is of something that runs");
    servers.shutdown().await;
}

#[tokio::test]
async fn how_a_task_ends_without_a_result_is_said() {
    let servers = Stage::of("tasks").ready().await;
    let outcome = call(&servers, "work", json!({"end": "failed"})).await;
    assert!(matches!(&outcome, Outcome::ServerError { code: -32000, message } if message == "it failed, as was said"));
    let outcome = call(&servers, "work", json!({"end": "cancelled"})).await;
    assert!(matches!(&outcome, Outcome::ServerError { message, .. } if message.ends_with("for the call: no time")));
    for end in ["rubbish", "unreadable"] {
        let outcome = call(&servers, "work", json!({"end": end, "steps": 1})).await;
        assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Unusable)), "{end}: {outcome:?}");
    }
    servers.shutdown().await;
}

#[tokio::test]
async fn a_task_ends_with_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let (stage, record) = recorded(folder.path());
    let servers = stage.limit(|limits| limits.calls.total_time = Duration::from_secs(2)).ready().await;
    let outcome = call(&servers, "work", json!({"steps": 1_000_000})).await;
    assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Timeout)), "{outcome:?}");
    servers.shutdown().await;
    let told = std::fs::read_to_string(record).unwrap();
    assert!(told.contains("tasks/get") && told.contains("tasks/cancel"), "{told}");

    let other = tempfile::tempdir().unwrap();
    let (stage, record) = recorded(other.path());
    let servers = stage.ready().await;
    let cancel = CancellationToken::new();
    let call = outgoing(&servers, "work", json!({"steps": 1_000_000})).await;
    let leaves = async {
        while !std::fs::read_to_string(&record).unwrap().contains("tasks/get") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cancel.cancel();
    };
    let sent = servers.send(call, &cancel, Events::default());
    let (outcome, ()) = tokio::time::timeout(LONG, async { tokio::join!(sent, leaves) }).await.unwrap();
    assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Cancelled)), "{outcome:?}");
    servers.shutdown().await;
    assert!(std::fs::read_to_string(record).unwrap().contains("tasks/cancel"));
}
