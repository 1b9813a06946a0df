//! By hand: `cargo test --release -p footbridge --lib figures -- --ignored --nocapture`.

use std::time::Instant;

use serde_json::json;

use super::*;

fn memory(what: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find(|line| line.starts_with(what)).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures"]
async fn calls_and_memory() {
    println!("before {}", memory("VmRSS"));
    let servers = Stage::of("ok").ready().await;
    let began = Instant::now();
    for _ in 0..2_000 {
        raw(echo(&servers).await);
    }
    println!("one after the other: {:?} a call", began.elapsed() / 2_000);
    let began = Instant::now();
    for _ in 0..100 {
        futures::future::join_all((0..32).map(|_| echo(&servers))).await;
    }
    println!("32 at a time: {:?} a call", began.elapsed() / 3_200);
    servers.shutdown().await;
    println!("after {} {}", memory("VmRSS"), memory("VmHWM"));
    let servers = Stage::with(stdio("x", &["long-line", "15000000"])).ready().await;
    let began = Instant::now();
    let result = echo(&servers).await;
    println!("a result of 15 MB in {:?}, holding it {} {}", began.elapsed(), memory("VmRSS"), memory("VmHWM"));
    drop(result);
    servers.shutdown().await;
    let servers = Stage::with(stdio("x", &["tiny-entries", "4000000"])).ready().await;
    println!("a listing of 4 million entries: {} {}", memory("VmRSS"), memory("VmHWM"));
    servers.shutdown().await;
    let servers = Stage::of("slow-with-progress").limit(|limits| limits.calls.result_bytes = 1).ready().await;
    let began = Instant::now();
    call(&servers, "echo", json!({})).await;
    println!("ten steps of 50 ms took {:?}", began.elapsed());
    servers.shutdown().await;
}

/// Processor time of this process so far, in ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures"]
async fn what_floods_cost() {
    for mode in ["endless-line", "asks-without-end", "floods-progress", "stderr-flood"] {
        let servers = Stage::with(stdio("x", &[mode, "100000000"]))
            .limit(|limits| limits.calls.idle_time = Duration::from_secs(5))
            .limit(|limits| limits.calls.total_time = Duration::from_secs(5))
            .ready()
            .await;
        let (before, began) = (ticks(), Instant::now());
        let outcome = if mode == "stderr-flood" {
            tokio::time::sleep(Duration::from_secs(5)).await;
            None
        } else {
            Some(echo(&servers).await)
        };
        let share = (ticks() - before) * 1000 / u64::try_from(began.elapsed().as_millis()).unwrap();
        println!("{mode}: {outcome:?} {share} % of a processor, {} {}", memory("VmRSS"), memory("VmHWM"));
        servers.shutdown().await;
    }
}
