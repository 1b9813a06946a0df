//! Programs that people have, wrapped as tools of a server and called from inside a sandbox.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use footbridge_tests::{Host, Servers, programs};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder that no sandbox writes, and others can get to.
fn folder() -> TempDir {
    tempfile::Builder::new().prefix("fb-wrapped-").tempdir_in("/tmp").unwrap()
}

fn git(folder: &Path, args: &[&str]) -> String {
    let env = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null"), ("HOME", "/nonexistent")];
    let ran = Command::new("git").args(args).current_dir(folder).envs(env).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// A repository with one commit, and the bare one that it pushes to.
fn repository(folder: &Path) -> (PathBuf, PathBuf) {
    let (work, bare) = (folder.join("work"), folder.join("bare.git"));
    for (at, words) in [
        (folder, &["init", "-q", "--bare", "bare.git"][..]),
        (folder, &["init", "-q", "-b", "main", "work"]),
        (&work, &["remote", "add", "origin", "../bare.git"]),
        (
            &work,
            &["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "--allow-empty", "-m", "First"],
        ),
    ] {
        git(at, words);
    }
    (work, bare)
}

/// `git` over a repository, as an operator would write it.
fn git_entry(work: &Path) -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "cli", "command": "git", "allowedPrograms": ["git"], "cwd": work,
        "env": {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"},
        "tools": [
            {"name": "log", "description": "Commits, newest first", "annotations": {"readOnlyHint": true},
             "args": ["log", "--format=%s", ["-n", "{count}"], "--end-of-options", "{revision}", "--"],
             "inputSchema": {"type": "object", "additionalProperties": false,
                             "properties": {"count": {"type": "integer", "minimum": 1}, "revision": text}}},
            {"name": "push", "description": "Pushes a branch", "args": ["push", "--quiet", "origin", "{branch}"]},
            {"name": "blame", "args": ["blame", "--", "{file}"]},
        ],
    })
}

/// Runs a script inside, which must go well, and gives its lines: a text that ends its last line is followed by an empty
/// one.
fn inside(host: &Host, script: &str) -> Vec<String> {
    let ran = host.runs_script(&format!("set -eu\n{script}"));
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    ran.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn of_type<'a>(record: &'a [Value], kind: &str) -> Vec<&'a Value> {
    record.iter().filter(|line| line["type"] == kind).collect()
}

/// Answers one request with its path, and gives the port.
fn web_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        reader.read_line(&mut line).unwrap();
        while reader.read_line(&mut String::new()).unwrap() > 2 {}
        let path = line.split(' ').nth(1).unwrap();
        write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{path}", path.len()).unwrap();
    });
    port
}

#[test]
fn programs_that_people_have_are_tools() {
    let folder = folder();
    let (work, _) = repository(folder.path());
    let database = folder.path().join("data.db");
    let made =
        Command::new("sqlite3").arg(&database).arg("create table t(a, b); insert into t values (1, 'one')").status();
    assert!(made.unwrap().success());
    let script = folder.path().join("result");
    programs::writes(
        &script,
        "#!/bin/sh\ncat >/dev/null\necho '{\"content\":[{\"type\":\"text\",\"text\":\"made\"}]}'\n",
    );
    let servers = Servers::none().and("git", git_entry(&work)).and(
        "data",
        json!({
            "type": "cli", "allowedPrograms": ["jq", "sqlite3", "curl", script],
            "tools": [
                {"name": "jq", "command": "jq", "args": ["-c", "{filter}"], "stdin": "{input}", "output": "json"},
                {"name": "query", "command": "sqlite3", "output": "json",
                 "args": ["-safe", "-readonly", "-json", database, "{sql}"]},
                {"name": "get", "command": "curl", "args": ["-sS", "--noproxy", "*", "--proto", "=http", "--", "{url}"]},
                {"name": "result", "command": script, "stdin": "{*}", "output": "result"},
            ],
        }),
    );
    let host = Host::with(&servers);
    let url = format!("http://127.0.0.1:{}/a", web_server());
    let lines = inside(
        &host,
        &format!(
            r#"
            tool-cli git log '{{}}'
            tool-cli git log '{{"count": 1, "revision": "main"}}'
            tool-cli data jq '{{"filter": ".a | length", "input": "{{\"a\": [1, 2]}}"}}'
            tool-cli data query '{{"sql": "select * from t"}}' --json
            tool-cli data get '{{"url": "{url}"}}'
            tool-cli data result '{{}}'
            "#
        ),
    );
    assert_eq!([&lines[0], &lines[1], &lines[2]], ["First", "First", "2"]);
    let row: Value = serde_json::from_str(&lines[3]).unwrap();
    assert_eq!(row["content"][0]["text"], r#"[{"a":1,"b":"one"}]"#);
    assert_eq!(lines[4..], ["/a", "made"]);
    host.leaves_nothing_behind();
    let record = host.record();
    let (intents, outcomes) = (of_type(&record, "intent"), of_type(&record, "outcome"));
    assert_eq!((intents.len(), outcomes.len()), (6, 6), "{record:#?}");
    assert_eq!((&intents[0]["server"], &intents[0]["name"]), (&json!("git"), &json!("log")));
    let pins = host.footbridge(&["servers", "pins", "git"].map(std::ffi::OsStr::new)).output().unwrap();
    let pins = String::from_utf8(pins.stdout).unwrap();
    assert!(pins.contains("push") && pins.contains("git, wrapped (sha256:"), "{pins}");
}

#[test]
fn what_an_argument_could_become_is_refused_and_failures_say_why() {
    let folder = folder();
    let (work, _) = repository(folder.path());
    let mut entry = git_entry(&work);
    let endless = json!({"name": "endless", "command": "yes"});
    let hangs = json!({"name": "hangs", "command": "sleep", "args": ["1000"], "timeout": "1s"});
    entry["tools"].as_array_mut().unwrap().extend([endless, hangs]);
    entry["allowedPrograms"] = json!(["git", "yes", "sleep"]);
    let host = Host::with(&Servers::none().and("git", entry)).settings("[limits.calls]\nresult_bytes = \"64 KiB\"\n");
    let script = r#"
        said() { "$@" 2>&1 || echo "status $?"; }
        said tool-cli --exit-codes git push '{"branch": "--receive-pack=touch /tmp/never"}'
        said tool-cli --exit-codes git blame '{"file": "$(touch never)"}'
        said tool-cli --exit-codes git log '{"count": 0}'
        said tool-cli --exit-codes git log '{"revision": "no-such"}'
        said tool-cli --exit-codes git endless '{}'
        said tool-cli --exit-codes git hangs '{}'
    "#;
    let ran = host.runs_script(script);
    for part in [
        "\"branch\" begins with \"-\"",
        "exit status 128",
        "fatal: no such path '$(touch never)'",
        "minimum",
        "fatal: bad revision 'no-such'",
        "65536",
        "did not end within 1s",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert_eq!(ran.stdout.matches("status ").count() - ran.stdout.matches("exit status ").count(), 6, "{}", ran.stdout);
    host.leaves_nothing_behind();
}

#[test]
fn a_push_of_an_agent_is_asked_about() {
    let folder = folder();
    let (work, bare) = repository(folder.path());
    let rules = "[approval]\nwatch = true\n\
                 [[policies.git.rules]]\ndecision = \"ask\"\nserver = \"git\"\ntool = \"push\"\n\
                 [[policies.git.rules]]\ndecision = \"allow\"\nserver = \"git\"\n";
    let host = Host::with(&Servers::none().and("git", git_entry(&work))).settings(rules).policy("git");
    let running =
        host.starts_script("tool-cli git log '{}' && tool-cli git push '{\"branch\": \"main\"}' && echo pushed");
    let pending = host.pending(1);
    assert_eq!((&pending[0]["server"], &pending[0]["name"]), (&json!("git"), &json!("push")));
    assert_eq!(git(&bare, &["branch", "--list"]), "", "it is held");
    host.answers(&["allow", pending[0]["id"].as_str().unwrap()]);
    let ran = running.ends();
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stdout.starts_with("First\n") && ran.stdout.ends_with("pushed\n"), "{ran:?}");
    assert_eq!(git(&bare, &["log", "--format=%s", "main"]), "First\n");
}

#[test]
fn a_program_or_folder_in_reach_of_the_guest_is_refused() {
    let host = Host::with(&Servers::none());
    let (work, _) = repository(&host.work());
    let host = host.config("git.json", &json!({"mcpServers": {"git": git_entry(&work)}}).to_string());
    let ran = host.runs(&["true"]);
    ran.fails(2, &["its folder", "which the sandbox can write", "trustFolder"]);
    let mut entry = git_entry(&work);
    entry["trustFolder"] = json!(true);
    let host = host.config("trusting.json", &json!({"mcpServers": {"git": entry}}).to_string());
    let configs = [host.path().join("trusting.json")];
    let host = host.only_configs(&configs);
    assert_eq!(inside(&host, "tool-cli git log '{}'"), ["First"]);
}
