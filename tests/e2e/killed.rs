//! `kill -9` of the harness at random moments, while two clients call: whatever the moment, the chain verifies, nothing
//! ran unrecorded and nothing ran twice; and where calls are asked about, each has used an approval of its own.
//!
//! 20 moments; `FOOTBRIDGE_KILLS` asks for another number. A quarter as many for calls that are asked about.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs,
    hash::{BuildHasher as _, RandomState},
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use footbridge_audit::read::{ChainFolder, KnownHeads, Lines, ReadRecord, chains, verify};
use footbridge_core::digest::Digest;
use footbridge_tests::{Host, Running, Servers, programs, skipped};
use serde_json::{Value, json};

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
    tool-cli s note '{\"tag\":\"ROUND-first\"}'; echo ready; loop ROUND-a & loop ROUND-b & wait";

/// Settings that make for many files and heads.
const SETTINGS: &str = "[limits.calls]\nper_second = 100000\nburst = 100000\n[audit]\nfile_bytes = \"4 KiB\"\n\
                        head_time = \"20ms\"\nhead_records = 5\n";

/// Whoever is asked allows it at once.
const ALLOWS: &str = "[approval]\nwatch = false\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; echo '{\\\"decision\\\":\\\"allow\\\"}'\"]\n";

#[test]
fn whenever_the_harness_is_killed_the_record_holds_and_nothing_ran_twice() {
    survives("open", SETTINGS, kills());
}

#[test]
fn whenever_the_harness_is_killed_each_call_that_was_asked_about_has_used_an_approval_of_its_own() {
    survives("ask", &format!("{SETTINGS}{ALLOWS}"), kills().div_ceil(4));
}

fn kills() -> u64 {
    std::env::var("FOOTBRIDGE_KILLS").map_or(20, |count| count.parse().unwrap())
}

/// Kills the harness so many times, and looks at what it left each time.
fn survives(policy: &'static str, settings: &str, kills: u64) {
    let host = Host::with(&Servers::none()).policy(policy);
    let (left, program) = (host.path().join("left"), host.path().join("server.sh"));
    fs::write(&program, SERVER).unwrap();
    let server = json!({"mcpServers": {"s": {"command": "sh", "args": [program], "env": {"LEFT": left}}}});
    let host = host.config("own.json", &server.to_string()).settings(settings);
    let (mut calls, mut recorded) = (0, Recorded::default());
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
        for chain in chains(&host.state().join("audit")).unwrap() {
            if recorded.chains.insert(chain.name.clone()) {
                let report = verify(&chain, &KnownHeads::default()).unwrap();
                assert!(report.is_good(), "round {round}: {report:?}");
                recorded.read(&chain);
            }
        }
        calls += must_account_for(&recorded, &left, round);
    }
    // All of them once more, and against the heads that were kept.
    let verified = Running::start(&mut host.footbridge(&["audit", "verify"].map(OsStr::new))).ends();
    assert_eq!(verified.status, 0, "{verified:?}");
    // Three of four were not killed before their first.
    assert!(calls >= kills - kills.div_ceil(4), "{calls} calls in {kills} rounds");
    let used = recorded.used.len() as u64;
    assert!(if policy == "ask" { used >= calls } else { used == 0 }, "{used} approvals for {calls} calls");
}

/// Every call that reached the server did so once, and has its intent. Gives how many there were in this round.
fn must_account_for(recorded: &Recorded, left: &Path, round: u64) -> u64 {
    let mut tags = HashSet::new();
    for line in fs::read_to_string(left).unwrap_or_default().lines() {
        let tag = line.split("\"tag\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(tags.insert(tag.to_owned()), "{tag} ran twice");
        let digest = format!("sha256:{}", Digest::of(format!("{{\"tag\":\"{tag}\"}}")));
        assert!(recorded.intents.contains(&digest), "{tag} ran unrecorded");
    }
    tags.iter().filter(|tag| tag.starts_with(&format!("{round}-"))).count() as u64
}

/// What the records of all runs say.
#[derive(Default)]
struct Recorded {
    /// The chains that were read: a killed harness adds nothing to its own.
    chains: HashSet<String>,
    /// The digests of the arguments of all intents.
    intents: HashSet<String>,
    /// The approvals that were used, and the digests of the arguments that they were for.
    used: HashMap<String, String>,
    /// Those of them that an intent names.
    by_intents: HashSet<String>,
}

impl Recorded {
    fn read(&mut self, chain: &ChainFolder) {
        for (_, path) in chain.files().unwrap() {
            let mut lines = Lines::open(&path, 0).unwrap();
            while let Some(line) = lines.next_line().unwrap().filter(|line| line.is_whole) {
                self.add(&ReadRecord::parse(&line.bytes).unwrap());
            }
        }
    }

    /// An approval is used once, before the one call that it is for; a call that was asked about has one.
    fn add(&mut self, record: &ReadRecord) {
        let [id, approval, digest] = ["id", "approval", "arguments.digest"].map(|name| record.text(name));
        match (record.text("type").as_str(), record.text("state").as_str()) {
            ("approval", "used") => assert_eq!(self.used.insert(id.clone(), digest), None, "{id} was used twice"),
            ("intent", _) => {
                if record.text("decision") == "ask" {
                    assert_eq!(self.used.get(&approval), Some(&digest), "{id} has not used its approval {approval:?}");
                    assert!(self.by_intents.insert(approval.clone()), "{approval} is for two calls");
                }
                self.intents.insert(digest);
            }
            _ => {}
        }
    }
}

/// Takes a request, says so, and never answers.
const SILENT: &str = r#"
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
stream, _ = listener.accept()
while not stream.recv(65536).endswith(b"\r\n\r\n"): pass
print("asked", flush=True)
stream.recv(1)
"#;

#[test]
fn a_request_that_was_under_way_when_the_harness_was_killed_is_named_as_unknown() {
    let test = "a_request_that_was_under_way_when_the_harness_was_killed_is_named_as_unknown";
    if let Some(program) = ["python3", "curl"].iter().find(|one| !programs::on_path(one)) {
        return skipped(test, &format!("{program} is missing"));
    }
    let mut origin = Running::start(Command::new("python3").args(["-c", SILENT]));
    let settings = format!(
        "[services.slow]\nurl = \"http://127.0.0.1:{}\"\nenvironment = {{ SLOW = \"{{url}}\", KEY = \"{{token}}\" }}\n",
        origin.stdout.line()
    );
    let host = Host::with(&Servers::none()).settings(&settings).option("--service").option("slow");
    let mut running = host.starts_script("curl -sS -H \"x-api-key: $KEY\" \"$SLOW/effect\"");
    assert_eq!(origin.stdout.line(), "asked");
    running.killed();
    host.leaves_nothing_behind();
    let record = host.record();
    let intent = record.iter().find(|line| line["type"] == "intent").unwrap();
    assert_eq!((&intent["name"], &intent["server"]), (&json!("GET /effect"), &json!("slow")));
    assert!(!record.iter().any(|line| line["type"] == "outcome"), "{record:?}");
    let id = intent["id"].as_str().unwrap();
    let audit = |words: &[&str]| {
        let words: Vec<&OsStr> = std::iter::once("audit").chain(words.iter().copied()).map(OsStr::new).collect();
        Running::start(&mut host.footbridge(&words)).ends().well()
    };
    let said = audit(&["verify"]);
    assert!(
        said.contains(&format!("1 call without an outcome, which may have happened or runs still: {id}")),
        "{said}"
    );
    let found: Value = serde_json::from_str(&audit(&["verify", "--json", "--all"])).unwrap();
    assert_eq!((&found["ok"], &found["chains"][0]["unknown"]), (&true.into(), &1.into()), "{found}");
    assert!(audit(&["show", id]).contains("GET /effect"));
}
