//! The commands that read the record, on what real runs wrote.

use std::{
    ffi::OsStr,
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Bridge, Host, PATIENCE, Ran, Running, Servers, programs};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// `footbridge audit` with these words, started.
fn starts(host: &Host, words: &[&str]) -> Running {
    let words: Vec<&OsStr> = std::iter::once("audit").chain(words.iter().copied()).map(OsStr::new).collect();
    Running::start(&mut host.footbridge(&words))
}

fn audit(host: &Host, words: &[&str]) -> Ran {
    starts(host, words).ends()
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Somebody who called the demo server once, and was refused once.
fn host() -> Host {
    let host = Host::with(&Servers::demo());
    let ran = host.runs_script("tool-cli demo get_weather '{\"city\":\"Bern\"}' >w; tool-cli demo nope '{}' 2>n; true");
    assert_eq!(ran.status, 0, "{ran:?}");
    host
}

fn id(host: &Host, kind: &str) -> String {
    host.record().iter().find(|line| line["type"] == kind).unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_record_that_nobody_touched_verifies_and_the_first_bad_record_is_named() {
    let host = host();
    let good = audit(&host, &["verify"]);
    assert_eq!((good.status, good.stderr.as_str()), (0, ""), "{good:?}");
    assert!(good.stdout.contains("7 records; signed to the end\n"), "{good:?}");
    let found = json(&audit(&host, &["verify", "--json", "--all"]));
    assert_eq!((&found["ok"], &found["chains"][0]["ended"]), (&true.into(), &true.into()), "{found}");
    let path = host.record_files().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let intent = text.lines().position(|line| line.contains("\"intent\"")).unwrap() + 1;
    fs::write(&path, text.replace("get_weather", "get_nothing")).unwrap();
    let bad = audit(&host, &["verify"]);
    assert_eq!(bad.status, 1, "{bad:?}");
    let named = format!("000001.jsonl line {intent}, record {intent}: changed");
    assert!(bad.stdout.contains(&named), "{named}: {bad:?}");
    let found = json(&audit(&host, &["verify", "--json"]));
    assert_eq!((&found["ok"], &found["chains"][0]["problem"]["seq"]), (&false.into(), &intent.into()), "{found}");
    // The head of the end is in heads.jsonl and in the store, however little of its own record is cut.
    for cut in [text.trim_end(), text.trim_end().rsplit_once('\n').unwrap().0] {
        fs::write(&path, format!("{}\n", cut.rsplit_once('\n').unwrap().0)).unwrap();
        let cut = audit(&host, &["verify"]);
        assert!(cut.status == 1 && cut.stdout.contains(": cut: a signed head says"), "{cut:?}");
    }
    fs::write(&path, text.trim_end()).unwrap();
    assert_eq!(audit(&host, &["verify"]).status, 1, "it was whole when its head was handed out");
    fs::write(&path, format!("{text}{{\"seq\":8,")).unwrap();
    let behind = audit(&host, &["verify"]);
    assert!(behind.status == 1 && behind.stdout.contains("bytes stand behind the end"), "{behind:?}");
}

#[test]
fn a_cut_of_the_audit_folder_shows_against_the_heads_in_the_store() {
    let host = host();
    assert_eq!(audit(&host, &["verify"]).status, 0);
    // All that is in the folder is put back to the first two records, its own heads too.
    let path = host.record_files().remove(0);
    let lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    fs::write(&path, format!("{}\n", lines[..2].join("\n"))).unwrap();
    let heads = host.state().join("audit/heads.jsonl");
    let first = fs::read_to_string(&heads).unwrap().lines().next().unwrap().to_owned();
    fs::write(&heads, format!("{first}\n")).unwrap();
    let cut = audit(&host, &["verify"]);
    assert_eq!(cut.status, 1, "{cut:?}");
    assert!(cut.stdout.contains(": cut: "), "{cut:?}");
    let chain = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    audit(&host, &["forget", &chain]).fails(1, &["still there"]);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let gone = audit(&host, &["verify"]);
    assert!(gone.status == 1 && gone.stdout.contains(&format!("the chain {chain}, and it is gone")), "{gone:?}");
    assert!(gone.stdout.contains("audit forget CHAIN"), "{gone:?}");
    // One that was never there takes nothing from the others.
    audit(&host, &["forget", &chain, "typed"]).fails(1, &["no heads of a chain \"typed\"", "are forgotten"]);
    assert_eq!(fs::read_to_string(&heads).unwrap(), "");
    audit(&host, &["forget", &chain]).fails(1, &["there are no heads"]);
    audit(&host, &["verify"]).fails(1, &["there is no record"]);
}

#[test]
fn a_rollback_of_everything_at_once_shows_against_a_head_kept_elsewhere() {
    let kept = tempfile::NamedTempFile::new().unwrap();
    let command = format!("[audit]\nhead_command = [\"sh\", \"-c\", \"cat >> {}\"]\n", kept.path().display());
    let host = Host::with(&Servers::demo()).settings(&command);
    assert_eq!(host.runs_script("tool-cli demo now '{}' >n").status, 0);
    let copy = tempfile::tempdir().unwrap();
    let copied = |from: PathBuf, to: PathBuf| {
        let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
        assert!(status.success());
    };
    copied(host.state(), copy.path().join("state"));
    assert_eq!(host.runs_script("tool-cli demo now '{}' >n").status, 0);
    fs::remove_dir_all(host.state()).unwrap();
    copied(copy.path().join("state"), host.state());
    assert_eq!(audit(&host, &["verify"]).status, 0, "nothing in the folder itself shows it");
    let shown = audit(&host, &["verify", "--head", kept.path().to_str().unwrap()]);
    assert_eq!(shown.status, 1, "{shown:?}");
    assert!(shown.stdout.contains("it is gone"), "{shown:?}");
    let heads = fs::read_to_string(kept.path()).unwrap();
    assert_eq!(heads.lines().count(), 4, "one of the start and one of the end of each: {heads}");
    assert_eq!(audit(&host, &["verify", "--head", heads.lines().next().unwrap()]).status, 0);
    let forged = heads.lines().next().unwrap().replacen("\"seq\":1", "\"seq\":2", 1);
    audit(&host, &["verify", "--head", &forged]).fails(2, &["signature does not hold"]);
}

#[test]
fn a_key_that_is_named_is_the_only_one_that_counts() {
    let (host, other) = (host(), host());
    let key_of = |host: &Host| host.record()[0]["head_key"].as_str().unwrap().to_owned();
    assert_eq!(audit(&host, &["verify", "--key", &key_of(&host)]).status, 0);
    let forged = audit(&host, &["verify", "--key", &key_of(&other)]);
    assert!(forged.status == 1 && forged.stdout.contains(": forged: "), "{forged:?}");
    let head = fs::read_to_string(other.state().join("audit/heads.jsonl")).unwrap();
    let strange = audit(&host, &["verify", "--head", head.lines().next().unwrap()]);
    assert!(strange.status == 1 && strange.stdout.contains("signed with another key, ed25519:"), "{strange:?}");
}

#[test]
fn tail_shows_what_was_asked_for_and_follows_into_new_runs_and_files() {
    let host = host().settings("[audit]\nfile_bytes = \"2 KiB\"\n");
    let all = audit(&host, &["tail"]).well();
    let starts_of: Vec<&str> = all.lines().map(|line| line[25..].split(' ').next().unwrap()).collect();
    assert_eq!(starts_of, ["started", "session", "intent", "outcome", "refused", "ended", "head"], "{all}");
    assert!(all.contains("demo/get_weather") && all.contains("unknown_tool"), "{all}");
    let outcomes = audit(&host, &["tail", "--server", "demo", "--type", "outcome", "--json"]).well();
    assert_eq!(serde_json::from_str::<Value>(&outcomes).unwrap()["outcome"], "ok", "{outcomes}");
    let none = audit(&host, &["tail", "--session", "none", "--type", "head"]);
    assert_eq!((none.status, none.stdout.as_str()), (1, ""), "{none:?}");
    assert!(
        none.stderr.contains("no record of type head of session \"none\" was found: looked at 1 chain in "),
        "{none:?}"
    );
    audit(&host, &["tail", "--type", "outcom"]).fails(2, &["outcom", "pin_accepted"]);
    assert_eq!(audit(&host, &["tail", "-n", "2"]).well().lines().count(), 2);
    let mut following = starts(&host, &["tail", "--follow", "-n", "1"]);
    following.stdout.shows("head");
    let calls = "for n in 1 2 3 4 5 6 7 8 9; do tool-cli demo now '{}' >n; done; tool-cli demo last '{}'; true";
    assert_eq!(host.runs_script(calls).status, 0);
    following.stdout.shows("rotated");
    following.stdout.shows("demo/last");
    following.signal(Signal::SIGINT);
    let _its_signal = following.status();
    for (bad, why) in [("{\"x\":1}", "--head"), ("/nonexistent/heads.jsonl", "cannot read the heads in")] {
        audit(&host, &["verify", "--head", bad]).fails(2, &[why]);
    }
}

#[test]
fn what_is_followed_ends_with_its_reader() {
    let path = format!("{}:{}", programs::folder().display(), std::env::var("PATH").unwrap());
    let daemon = Host::with(&Servers::demo()).env("PATH", path).policy("ask").serves();
    let guest = daemon.opens("agent", &[]);
    let _logged = guest.calls("demo", "now", json!({}));
    for follow in ["audit tail --follow -n 1", "servers logs demo --follow -n 1", "approvals watch --json"] {
        let _waits =
            guest.starts_to_ask("callTool", json!({"server": "demo", "tool": "add_note", "arguments": {"text": "x"}}));
        let ran = Running::start(&mut daemon.host.shell_of(&format!("footbridge {follow} | head -n 1"))).ends();
        assert!(ran.status == 0 && ran.stdout.lines().count() == 1, "{follow}: {ran:?}");
    }
}

#[test]
fn what_one_shot_calls_record_is_followed_beyond_the_end_of_each() {
    let host = Host::with(&Servers::demo());
    let _first = host.one_shot(&["call", "demo", "now"]).well();
    let mut following = starts(&host, &["tail", "--follow", "-n", "1"]);
    following.stdout.shows("head");
    for (tool, arguments) in [("list_notes", "{}"), ("get_weather", r#"{"city":"Bern"}"#)] {
        let _next = host.one_shot(&["call", "demo", tool, arguments]);
        following.stdout.shows(&format!("demo/{tool}"));
    }
    following.signal(Signal::SIGINT);
    let _its_signal = following.status();
}

#[test]
fn what_one_harness_records_is_shown_though_another_began_later() {
    let mut bridge = Host::with(&Servers::demo()).opens();
    let of_early = |bridge: &Bridge| bridge.host.record().iter().find(|line| line["type"] == "session").cloned();
    let deadline = Instant::now() + PATIENCE;
    let early = loop {
        match of_early(&bridge) {
            Some(line) => break line,
            None => assert!(Instant::now() < deadline, "the session is not recorded"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    let early = early["session"].as_str().unwrap().to_owned();
    assert_eq!(bridge.host.runs_script("tool-cli demo later '{}' 2>n; true").status, 0);
    let mut following = starts(&bridge.host, &["tail", "--follow", "--server", "demo"]);
    following.stdout.shows("demo/later");
    let _now = bridge.guest.calls("demo", "now", serde_json::json!({}));
    following.stdout.shows("demo/now");
    following.signal(Signal::SIGINT);
    let _its_signal = following.status();
    // The last lines of all chains are in the order of their time.
    let last = audit(&bridge.host, &["tail", "-n", "2"]).well();
    assert!(last.lines().count() == 2 && last.lines().all(|line| line.contains("demo/now")), "{last}");
    let all = audit(&bridge.host, &["tail", "-n", "100"]).well();
    assert!(all.lines().map(|line| &line[..23]).is_sorted(), "{all}");
    let asked = audit(&bridge.host, &["tail", "--session", &early]).well();
    assert!(asked.contains("demo/now") && !asked.contains("demo/later"), "{asked}");
    let replayed = audit(&bridge.host, &["replay", "--session", &early]).well();
    assert!(replayed.starts_with("1 call: 0 would change"), "{replayed}");
    let other = audit(&bridge.host, &["replay"]).well();
    assert!(other.contains("1 call: ") && other.contains("1 more refused"), "{other}");
    assert_eq!(bridge.ends().status, 0);
}

#[test]
fn show_tells_all_of_one_call() {
    let host = host();
    let id = id(&host, "intent");
    let shown = audit(&host, &["show", &id]).well();
    for part in ["arguments.digest      sha256:", "decision              allow", "outcome               ok"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let records: Vec<Value> = serde_json::from_str(&audit(&host, &["show", "--json", &id]).well()).unwrap();
    assert_eq!((records.len(), &records[1]["type"]), (2, &"outcome".into()));
    audit(&host, &["show", "nothing"]).fails(1, &["nothing", "footbridge audit tail"]);
}

#[test]
fn an_export_is_the_record_and_its_csv_is_text_and_no_formula() {
    let host = Host::with(&Servers::demo()).option("--label=team=a b");
    let ran =
        host.runs_script("tool-cli demo '=cmd|calc' '{}'; tool-cli demo $'+1,\"a\\e' '{}'; tool-cli demo now '{}'");
    assert_eq!(ran.status, 0, "{ran:?}");
    let own = fs::read_to_string(&host.record_files()[0]).unwrap();
    assert_eq!(audit(&host, &["export", "--format", "raw"]).well(), own);
    let exported = audit(&host, &["export"]).well();
    let mut chain = None;
    for (line, own) in exported.lines().zip(own.lines()) {
        let (mut line, own): (Value, Value) = (serde_json::from_str(line).unwrap(), serde_json::from_str(own).unwrap());
        let kind = own["type"].as_str().unwrap();
        let is_of_a_session = ["session", "intent", "outcome", "refused", "session_ended"].contains(&kind);
        assert_eq!(line["labels"], if is_of_a_session { json!({"team": "a b"}) } else { Value::Null }, "{line}");
        assert_eq!(line["host"], nix::unistd::gethostname().unwrap().to_str().unwrap(), "{line}");
        let name = line["chain"].as_str().unwrap().to_owned();
        assert_eq!(chain.get_or_insert_with(|| own["genesis"].clone()).as_str().unwrap(), name);
        // An outcome has what its intent says of the call.
        for added in ["chain", "host", "labels", "session", "server", "kind", "name"]
            .into_iter()
            .filter(|name| own.get(*name).is_none())
        {
            let _it = line.as_object_mut().unwrap().remove(added);
        }
        assert_eq!(line, own, "and all that the record has");
    }
    assert_eq!(exported.lines().count(), own.lines().count());
    let csv = audit(&host, &["export", "--format", "csv"]).well();
    let rows: Vec<&str> = csv.split("\r\n").collect();
    assert!(rows[0].starts_with("chain,host,seq,time,mono,type,id,"), "{csv}");
    assert_eq!(rows.len(), own.lines().count() + 2, "the names, the records, and nothing behind the last break");
    let labelled = csv.matches(r#""{""team"":""a b""}""#).count();
    assert_eq!(labelled, exported.matches(r#""labels":"#).count(), "{csv}");
    assert!(csv.contains(",'=cmd|calc,") && csv.contains(",\"'+1,\"\"a\\u{1b}\","), "{csv}");
    let none = audit(&host, &["export", "--until", "2001-01-01"]);
    assert_eq!((none.status, none.stdout.as_str()), (0, ""), "{none:?}");
    assert!(none.stderr.contains("no record of that time was found: looked at 1 chain in"), "{none:?}");
    assert_eq!(audit(&host, &["export", "--since", "1h", "--until", "2999-01-01"]).well(), exported);
    audit(&host, &["export", "--since", "yesterday"]).fails(2, &["2026-11-22T10:00:00Z"]);
}

#[test]
fn no_secret_reaches_a_record_or_a_log() {
    let (secret, password) = ("configured-secret-7", "hunter2-plain");
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let host = Host::with(&Servers::demo()).env("OF_A_SERVER", secret);
    // What the MCP library says is of whole messages, and left out unless it is named.
    let host = host.env("FOOTBRIDGE_LOG", "trace,rmcp=trace");
    let more = r#"{"mcpServers":{"off":{"command":"no-such-program","env":{"KEY":"${OF_A_SERVER}"}}}}"#;
    let host = host.config("more.json", more).settings("[audit]\narguments = \"redacted\"\n");
    let script = format!(
        "echo $TOOL_CLI_TOKEN; tool-cli demo add_note '{{\"text\":\"a {secret} b {token} c\"}}' >n; \
         tool-cli demo add_note '{{\"text\":\"plain\",\"db_password\":\"{password}\"}}' >n; \
         tool-cli resource read demo note:///{token}; tool-cli demo {secret} '{{}}'; tool-cli {token} x '{{}}'; true"
    );
    let ran = host.runs_script(&script);
    assert_eq!(ran.status, 0, "{ran:?}");
    let own = ran.stdout.lines().next().unwrap();
    let record: String = host.record_files().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(record.contains(r#"{\"text\":\"a [redacted] b [redacted] c\"}"#), "{record}");
    assert!(record.contains("note:///[redacted]"), "{record}");
    // What tool-cli prints is the guest's own; the harness's log is what has a level.
    let has_level = |line: &&str| ["TRACE", "DEBUG", "INFO", "WARN"].iter().any(|level| line.contains(level));
    let log: String = ran.stderr.lines().filter(has_level).collect();
    assert!(log.len() > 1_000, "{log}");
    for value in [secret, password, token.as_str(), own] {
        assert!(!record.contains(value), "{value}: {record}");
        assert!(!log.contains(value), "{value}: {log}");
    }
}

#[test]
fn what_cannot_be_read_is_named_and_keeps_nothing_else_from_being_read() {
    let host = host();
    let id = id(&host, "intent");
    // As somebody, or something, might leave it there: a folder, a pipe and a link in place of files.
    let bad = host.state().join("audit/bad");
    fs::create_dir_all(bad.join("000001.jsonl")).unwrap();
    fs::create_dir(host.state().join("audit/piped")).unwrap();
    let pipe = host.state().join("audit/piped/000001.jsonl");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let verified = audit(&host, &["verify"]);
    assert_eq!(verified.status, 1, "{verified:?}");
    for part in ["BAD  bad: unreadable: ", "000001.jsonl is no file", "BAD  piped: unreadable: ", "signed to the end"] {
        assert!(verified.stdout.contains(part), "{part}: {verified:?}");
    }
    for (words, status) in [(["tail", "--lines=9"], 1), (["export", "--json"], 1), (["show", &id], 0)] {
        let ran = audit(&host, &words);
        assert_eq!(ran.status, status, "{ran:?}");
        assert!(ran.stdout.contains("get_weather"), "{ran:?}");
        assert!(
            ran.stderr.contains("the chain \"piped\" cannot be read") && ran.stderr.contains("move it away"),
            "{ran:?}"
        );
    }
    audit(&host, &["usage"]).fails(1, &["the chain \"bad\" cannot be read", "no request"]);
    fs::remove_dir_all(&bad).unwrap();
    fs::remove_file(&pipe).unwrap();
    // What only keeps something from being compared is said, and is no problem.
    let heads = host.state().join("audit/heads.jsonl");
    let text = fs::read_to_string(&heads).unwrap();
    fs::write(&heads, format!("{text}{{\"half\n")).unwrap();
    let noted = audit(&host, &["verify"]).well();
    assert!(noted.contains("note heads.jsonl line 3 is no head"), "{noted}");
    fs::remove_file(&heads).unwrap();
    fs::remove_file(host.state().join("state.db")).unwrap();
    let noted = audit(&host, &["verify"]).well();
    assert!(
        noted.contains("note heads.jsonl has no head") && noted.contains("note the store, state.db, has no"),
        "{noted}"
    );
}

#[test]
fn what_names_no_chain_is_refused_and_makes_nothing() {
    let host = Host::with(&Servers::demo());
    audit(&host, &["forget", "x"]).fails(1, &["no heads of a chain \"x\""]);
    assert!(!host.state().join("state.db").exists());
    assert_eq!(host.runs_script("true").status, 0);
    for words in [["verify", ""], ["export", "."], ["tail", "--chain="], ["usage", "--chain=."]] {
        audit(&host, &words).fails(1, &["there is no chain", "give the name of a folder"]);
    }
    audit(&host, &["show", ""]).fails(2, &["<ID>"]);
}

#[test]
fn what_cannot_be_read_or_signed_says_what_to_do() {
    let host = Host::with(&Servers::demo());
    for words in [&["tail"][..], &["verify"], &["export"]] {
        audit(&host, words).fails(1, &["no record", "FOOTBRIDGE_STATE"]);
    }
    assert_eq!(host.runs_script("true").status, 0);
    for words in
        [&["verify", "nope"][..], &["export", "nope"], &["tail", "--chain", "nope"], &["usage", "--chain", "nope"]]
    {
        audit(&host, words).fails(1, &["nope", "give the name of a folder"]);
    }
    for command in ["tail", "usage", "replay"] {
        audit(&host, &[command, "--session", "nope"]).fails(1, &["of session \"nope\" was found"]);
    }
    for words in [&["usage"][..], &["replay"], &["export", "--since", "0s"], &["usage", "--since", "0s"]] {
        let ran = audit(&host, words);
        assert!(ran.status == 0 && ran.stderr.contains(" was found: looked at"), "{words:?}: {ran:?}");
    }
    let key = host.state().join("audit/key");
    fs::remove_file(&key).unwrap();
    host.runs_script("echo never").fails(125, &["key", "is gone", "put it back"]);
    let call = host.one_shot(&["call", "demo", "now"]);
    assert_eq!((call.status, call.stderr.matches("is gone").count()), (125, 1), "{call:?}");
    assert!(!call.stderr.contains("make room"), "{call:?}");
    let without = audit(&host, &["verify"]).well();
    assert!(without.contains("not known here"), "{without}");
}

#[test]
fn a_record_in_a_relative_folder_is_no_other_folders_record() {
    let host = Host::with(&Servers::demo());
    assert_eq!(host.runs_script("true").status, 0);
    let whole = fs::canonicalize(host.path()).unwrap().join("st");
    let host = host.env("FOOTBRIDGE_STATE", "st");
    let mut verify = host.footbridge(&["audit", "verify"].map(OsStr::new));
    verify.current_dir(host.path());
    let write = format!("write FOOTBRIDGE_STATE={}", whole.display());
    Running::start(&mut verify).ends().fails(2, &["FOOTBRIDGE_STATE is \"st\"", &write]);
    let mut call = host.footbridge(&["call", "demo", "echo"].map(OsStr::new));
    Running::start(&mut call).ends().fails(2, &["FOOTBRIDGE_STATE is \"st\""]);
}

#[test]
fn without_syncing_a_record_is_as_whole_and_says_so() {
    let host = Host::with(&Servers::demo()).settings("[audit]\nsync = false\n");
    let ran = host.runs_script("tool-cli demo now '{}' >n");
    assert_eq!(ran.status, 0);
    assert!(ran.stderr.contains("sync = false"), "{ran:?}");
    assert_eq!(host.record()[0]["sync"], false);
    assert_eq!(audit(&host, &["verify"]).status, 0);
}

#[test]
fn a_replay_says_which_decisions_another_policy_would_change() {
    let strict = "[policies.bern]\n[[policies.bern.rules]]\nid = \"home\"\ndecision = \"allow\"\narguments = [{ at = \"/city\", \
                  equals = \"Bern\" }]\n[[policies.bern.rules]]\nid = \"reads\"\ndecision = \"allow\"\ntool = \
                  \"now\"\n[[policies.bern.rules]]\nid = \"rest\"\ndecision = \"deny\"\n";
    let script = "tool-cli demo get_weather '{\"city\":\"Bern\"}' >w; tool-cli demo now '{}' >w; \
                  tool-cli demo add_note '{\"text\":\"x\"}' >w; tool-cli demo nope '{}' 2>n; true";
    let host = Host::with(&Servers::demo());
    assert_eq!(host.runs_script(script).status, 0);
    let config = host.path().join("other.toml");
    fs::write(&config, strict).unwrap();
    let config = config.to_str().unwrap();
    let same = audit(&host, &["replay", "--exit-code"]).well();
    assert_eq!(same, "3 calls: 0 would change, 3 the same, 0 unknown; 1 more refused before any policy was asked\n");
    let readonly = audit(&host, &["replay", "--policy", "readonly", "--exit-code"]);
    assert_eq!((readonly.status, readonly.stderr.as_str()), (1, ""), "{readonly:?}");
    assert!(readonly.stdout.contains("demo/add_note") && readonly.stdout.contains("allow (all) -> deny (rest), id "));
    assert!(readonly.stdout.contains("3 calls: 1 would change (1 allow -> deny), 2 the same, 0 unknown"));
    assert_eq!(audit(&host, &["replay", "--policy", "readonly"]).status, 0);
    // Without the arguments it cannot be told whether the weather was asked for Bern.
    let words = ["replay", "--config", config, "--policy", "bern", "--show", "all", "--json"];
    let found = audit(&host, &words).well();
    let lines: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let changes: Vec<[&Value; 2]> = lines[..3].iter().map(|line| [&line["name"], &line["change"]]).collect();
    assert_eq!(
        changes,
        [["get_weather", "unknown"], ["now", "same"], ["add_note", "unknown"]]
            .map(|pair| pair.map(Value::from))
            .each_ref()
            .map(|[a, b]| [a, b])
    );
    assert_eq!(lines[0]["new"]["possible"], serde_json::json!(["allow", "deny"]));
    assert_eq!(lines[3]["totals"]["unknown"], 2);
    let nothing = audit(&host, &["replay", "--policy", "readonly", "--server", "other", "--exit-code"]);
    assert_eq!((nothing.status, nothing.stdout.lines().count()), (1, 1), "a check that checked nothing: {nothing:?}");
    assert!(nothing.stderr.contains("no call of server \"other\" was found"), "{nothing:?}");
    audit(&host, &["replay", "--policy", "nope"]).fails(2, &["there is no policy \"nope\""]);
    // With them it can.
    let host = host.settings("[audit]\narguments = \"redacted\"\n");
    assert_eq!(host.runs_script(script).status, 0);
    let told = audit(&host, &words).well();
    assert!(told.contains("\"calls\":6,\"changed\":1,\"same\":3,\"unknown\":2"), "both runs: {told}");
    assert!(audit(&host, &["replay", "--policy", "open"]).well().starts_with("6 calls: "));
}
