//! A new configuration while servers run.

use super::*;

fn pid(servers: &Servers, name: &str) -> u32 {
    servers.report().iter().find(|report| report.name.as_str() == name).unwrap().pid.unwrap()
}

#[tokio::test]
async fn what_did_not_change_goes_on_and_the_rest_is_added_restarted_or_ended() {
    let servers = Stage::of("ok").and(stdio("y", &["ok"])).and(stdio("z", &["ok"])).start();
    for name in ["x", "y", "z"] {
        servers.ready(name, LONG).await.unwrap().unwrap();
    }
    let (x, y, z) = (pid(&servers, "x"), pid(&servers, "y"), pid(&servers, "z"));
    let other = with_env(stdio("y", &["ok"]), "COLOUR", "blue");
    let changed = servers.replace(vec![stdio("x", &["ok"]), other, stdio("w", &["ok"])]);
    let names = |names: &[ServerName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&changed.added), ["w"]);
    assert_eq!(names(&changed.removed), ["z"]);
    assert_eq!(names(&changed.restarted), ["y"]);
    for name in ["w", "x", "y"] {
        servers.ready(name, LONG).await.unwrap().unwrap();
    }
    assert_eq!(names(&servers.names()), ["w", "x", "y"]);
    assert_eq!(pid(&servers, "x"), x);
    assert_ne!(pid(&servers, "y"), y);
    assert!(servers.ready("z", LONG).await.is_none());
    let gone = async {
        while std::path::Path::new(&format!("/proc/{y}")).exists()
            || std::path::Path::new(&format!("/proc/{z}")).exists()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.unwrap();
    servers.shutdown().await;
}

#[tokio::test]
async fn one_that_is_replaced_twice_at_once_runs_once() {
    let servers = Stage::of("ok").ready().await;
    for colour in ["red", "blue", "green"] {
        servers.replace(vec![with_env(stdio("x", &["ok"]), "COLOUR", colour)]);
    }
    servers.ready("x", LONG).await.unwrap().unwrap();
    let outcome = call(&servers, "env", serde_json::json!({})).await;
    let Outcome::Result(result) = outcome else { panic!("{outcome:?}") };
    assert!(result.text.get().contains("green"), "{}", result.text);
    servers.shutdown().await;
}
