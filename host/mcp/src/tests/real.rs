//! By hand, against real servers: `REAL_SERVERS=FILE cargo test -p footbridge --lib real -- --ignored --nocapture`.
//!
//! The file is a list of `{"command", "args"}` or `{"url"}`, each with an optional `"protocol"` (initialize, discover
//! or auto) and `"calls"`, a list of `[tool, arguments]`. What each server offers and answers is printed, with times.

use super::*;

fn spec(entry: &Value) -> ServerSpec {
    let words = entry["args"].as_array().cloned().unwrap_or_default();
    let args: Vec<_> = words.iter().filter_map(Value::as_str).collect();
    let mut spec = stdio("x", &args);
    match (&mut spec.transport, entry["url"].as_str()) {
        (transport, Some(url)) => {
            let (url, headers) = (url.parse().unwrap(), Vec::new());
            *transport = TransportSpec::Http(HttpSpec { url, headers, allow_private: false });
        }
        (TransportSpec::Stdio(stdio), None) => entry["command"].as_str().unwrap().clone_into(&mut stdio.command),
        _ => {}
    }
    spec.protocol = match entry["protocol"].as_str() {
        Some("discover") => ProtocolChoice::Discover,
        Some("auto") => ProtocolChoice::Auto,
        _ => ProtocolChoice::Initialize,
    };
    spec
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers"]
async fn real_servers_list_answer_and_end() {
    let file = std::fs::read(std::env::var("REAL_SERVERS").unwrap()).unwrap();
    let entries: Vec<Value> = serde_json::from_slice(&file).unwrap();
    for entry in entries {
        let began = std::time::Instant::now();
        let servers = Stage::with(spec(&entry)).start();
        let found = servers.ready("x", LONG).await.unwrap();
        let shown =
            found.map(|c| (c.entries().tools().len(), c.entries().resources().len(), c.entries().templates().len()));
        let report = report(&servers);
        println!("{entry}\n  {shown:?} (tools, resources, templates) in {:?}", began.elapsed());
        println!(
            "  revision {:?}, left out {:?}, ignored {}",
            report.revision, report.left_out_reasons, report.ignored
        );
        println!("  {:?} {:?}", report.last_error, report.stderr);
        for wanted in entry["calls"].as_array().cloned().unwrap_or_default() {
            let began = std::time::Instant::now();
            let outcome = call(&servers, wanted[0].as_str().unwrap(), wanted[1].clone()).await;
            let text = format!("{outcome:?}");
            println!("  {} in {:?}: {}", wanted[0], began.elapsed(), text.chars().take(300).collect::<String>());
        }
        let began = std::time::Instant::now();
        servers.shutdown().await;
        println!("  ended in {:?}", began.elapsed());
    }
}
