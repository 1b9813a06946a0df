//! `kill -9` of the harness at random moments, while two clients call: whatever the moment, the chain verifies, nothing
//! ran unrecorded and nothing ran twice.
//!
//! 20 moments; `FOOTBRIDGE_KILLS` asks for another number.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::{
    collections::HashSet,
    fs,
    hash::{BuildHasher as _, RandomState},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use footbridge::{
    audit::read::{Lines, ReadRecord, chains},
    digest::Digest,
};
use footbridge_tests::{Host, Running, Servers};
use serde_json::json;

/// An MCP server with one tool, which notes each call in a file before it answers.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"note","inputSchema":{"type":"object"}}]}';;
    *'"method":"tools/call"'*) echo "$line" >> "$LEFT"; result='{"content":[]}';;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Two clients, which call until they are killed.
const CLIENTS: &str =
    "loop() { n=0; while true; do n=$((n+1)); tool-cli s note \"{\\\"tag\\\":\\\"$1-$n\\\"}\" || sleep 0.01; done; }
    echo ready; loop ROUND-a & loop ROUND-b & wait";

#[test]
fn whenever_the_harness_is_killed_the_record_holds_and_nothing_ran_twice() {
    let kills: u64 = std::env::var("FOOTBRIDGE_KILLS").map_or(20, |count| count.parse().unwrap());
    let host = Host::with(&Servers::none());
    let (left, program) = (host.path().join("left"), host.path().join("server.sh"));
    fs::write(&program, SERVER).unwrap();
    let server = json!({"mcpServers": {"s": {"command": "sh", "args": [program], "env": {"LEFT": left}}}});
    let settings = "[limits.calls]\nper_second = 100000\nburst = 100000\n[audit]\nfile_bytes = \"4 KiB\"\n\
                    head_time = \"20ms\"\nhead_records = 5\n";
    let host = host.config("own.json", &server.to_string()).settings(settings);
    let mut calls = 0;
    for round in 0..kills {
        let mut running = host.starts_script(&CLIENTS.replace("ROUND", &round.to_string()));
        // Every fourth is killed while it starts.
        let micros = RandomState::new().hash_one(round) % 120_000;
        if round % 4 > 0 {
            running.stdout.shows("ready\n");
        }
        thread::sleep(Duration::from_micros(micros));
        running.killed();
        host.leaves_nothing_behind();
        calls += must_account_for(&host.state().join("audit"), &left, round);
    }
    let verified = Running::start(&mut host.footbridge(&["audit", "verify"].map(std::ffi::OsStr::new))).ends();
    assert_eq!(verified.status, 0, "{verified:?}");
    assert!(calls > kills, "{calls} calls in {kills} rounds: they hardly ran");
}

/// Every call that reached the server did so once, and has its intent. Gives how many there were in this round.
fn must_account_for(audit: &Path, left: &PathBuf, round: u64) -> u64 {
    let recorded = digests(audit);
    let mut tags = HashSet::new();
    for line in fs::read_to_string(left).unwrap_or_default().lines() {
        let tag = line.split("\"tag\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(tags.insert(tag.to_owned()), "{tag} ran twice");
        let digest = format!("sha256:{}", Digest::of(format!("{{\"tag\":\"{tag}\"}}")));
        assert!(recorded.contains(&digest), "{tag} ran unrecorded");
    }
    tags.iter().filter(|tag| tag.starts_with(&format!("{round}-"))).count() as u64
}

/// The digests of the arguments of all intents.
fn digests(audit: &Path) -> HashSet<String> {
    let mut found = HashSet::new();
    for chain in chains(audit).unwrap() {
        for (_, path) in chain.files().unwrap() {
            let mut lines = Lines::open(&path, 0).unwrap();
            while let Some(line) = lines.next_line().unwrap().filter(|line| line.is_whole) {
                let record = ReadRecord::parse(&line.bytes).unwrap();
                if record.text("type") == "intent" {
                    found.insert(record.text("arguments.digest"));
                }
            }
        }
    }
    found
}
