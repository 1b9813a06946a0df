//! Programs as tools, over real programs.

use footbridge_core::secret::Secret;
use serde_json::json;

use super::*;
use crate::wrapped::{CliSpec, CliTool, Piece, Prints, Word};

/// A tool over `sh -c SCRIPT`, which has its argument `a` in `$1`.
fn sh(name: &str, script: &str) -> CliTool {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let literal = |text: &str| vec![Word::literal(Secret::new(text))];
    CliTool {
        name: name.to_owned(),
        definition: json!({"name": name, "inputSchema": schema}),
        program: ProgramSpec {
            command: "/bin/sh".to_owned(),
            args: Vec::new(),
            env: vec![("PATH".to_owned(), Secret::new(std::env::var("PATH").unwrap_or_default()))],
            cwd: None,
            confine: false,
        },
        args: vec![
            literal("-c"),
            literal(script),
            literal("sh"),
            vec![Word { pieces: vec![Piece::Value("a".to_owned())], may_be_option: false }],
        ],
        input: None,
        time: Some(LONG),
        prints: Prints::Text,
        ends_well: vec![0],
    }
}

fn server(tools: Vec<CliTool>) -> ServerSpec {
    let transport = TransportSpec::Cli(CliSpec { tools, missing: None });
    ServerSpec {
        name: "x".parse().unwrap(),
        transport,
        protocol: ProtocolChoice::Initialize,
        disabled_tools: BTreeSet::new(),
        hint: None,
    }
}

/// What a tool gives for `{"a": ...}`, and whether it is an error.
async fn given(servers: &Servers, tool: &str, arguments: Value) -> (String, bool) {
    let result: Value = serde_json::from_str(&raw(call(servers, tool, arguments).await)).unwrap();
    (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"] == true)
}

/// What a tool fails with.
async fn fails(tool: CliTool, arguments: Value) -> String {
    let name = tool.name.clone();
    let servers = Stage::with(server(vec![tool])).ready().await;
    let (text, is_error) = given(&servers, &name, arguments).await;
    assert!(is_error, "{text}");
    servers.shutdown().await;
    text
}

#[tokio::test]
async fn what_is_printed_is_the_result() {
    let tools = vec![
        sh("text", "printf '%s|' \"$@\""),
        CliTool { prints: Prints::Json, ..sh("json", "printf '{\"said\": \"%s\"}' \"$1\"") },
        CliTool { prints: Prints::Result, ..sh("result", "echo '{\"content\":[],\"_meta\":{\"k\":1}}'") },
        CliTool { input: Some(Word::all()), ..sh("input", "cat; printf %s ,$#") },
        CliTool { ends_well: vec![0, 3], ..sh("three", "echo found nothing; exit 3") },
    ];
    let servers = Stage::with(server(tools)).ready().await;
    let hostile = "$(touch /tmp/x) `id` ; | & > 'a' \"b\" {a} \\ *";
    assert_eq!(given(&servers, "text", json!({ "a": hostile })).await, (format!("{hostile}|"), false));
    assert_eq!(given(&servers, "text", json!({})).await, ("|".to_owned(), false), "its word is left out");
    let structured: Value = serde_json::from_str(&raw(call(&servers, "json", json!({"a": "b"})).await)).unwrap();
    assert_eq!(structured["structuredContent"], json!({"said": "b"}));
    assert_eq!(raw(call(&servers, "result", json!({})).await), r#"{"content":[],"_meta":{"k":1}}"#);
    assert_eq!(given(&servers, "input", json!({"a": "b"})).await.0, "{\"a\":\"b\"},1");
    assert_eq!(given(&servers, "three", json!({})).await, ("found nothing\n".to_owned(), false));
    assert_eq!(servers.report()[0].kind, "cli");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_failure_says_why_and_ends_with_standard_error() {
    let text = fails(sh("a", "for n in 1 2 3; do echo line $n >&2; done; echo ignored; exit 7"), json!({})).await;
    assert!(text.contains("Tool \"a\" failed") && text.contains("exit status 7"), "{text}");
    assert!(text.ends_with("line 1\nline 2\nline 3"), "{text}");
    let text = fails(sh("a", "kill -9 $$"), json!({})).await;
    assert!(text.contains("signal 9") && text.contains("nothing to standard error"), "{text}");
    let text = fails(CliTool { prints: Prints::Result, ..sh("a", "echo oops; echo why >&2") }, json!({})).await;
    assert!(text.contains("no CallToolResult"), "{text}");
    assert!(text.ends_with("why"), "{text}");
    let text = fails(CliTool { prints: Prints::Result, ..sh("a", ":") }, json!({})).await;
    assert!(text.contains("printed nothing"), "{text}");
    let text = fails(sh("a", "printf '\\377\\376'"), json!({})).await;
    assert!(text.contains("2 bytes that are not UTF-8"), "{text}");
    let text = fails(sh("a", "echo never"), json!({"a": "--help"})).await;
    assert!(text.starts_with("Nothing was run") && text.contains("\"a\" begins with \"-\""), "{text}");
}

#[tokio::test]
async fn much_standard_error_ends_with_its_last_lines_escaped() {
    let script = "i=0; while [ $i -lt 3000 ]; do echo \"line $i ............................\" >&2; i=$((i+1)); done; \
                  printf '\\033[31mred' >&2; exit 1";
    let text = fails(sh("a", script), json!({})).await;
    assert!(text.len() < 5_000 && text.contains("line 2999") && text.ends_with("\\u{1b}[31mred"), "{text}");
}

#[tokio::test]
async fn one_that_hangs_is_ended_with_all_that_it_started() {
    let script = "trap 'echo tidied up >&2; exit' TERM; echo $$ >&2; sleep 1000 & wait";
    let text = fails(CliTool { time: Some(Duration::from_secs(3)), ..sh("a", script) }, json!({})).await;
    assert!(text.contains("did not end within 3s"), "{text}");
    let pid: u32 = text.lines().nth(1).unwrap().parse().unwrap();
    assert!(!runs(pid), "{pid} goes on");
    // What it leaves behind holds up nothing.
    let servers = Stage::with(server(vec![sh("a", "sleep 1000 & echo done")])).ready().await;
    assert_eq!(given(&servers, "a", json!({})).await.0, "done\n");
    servers.shutdown().await;
}

#[tokio::test]
async fn output_without_end_is_cut_off_at_the_limit() {
    for (script, limit) in [("yes", 100_000), ("head -c 200000 /dev/zero | tr '\\0' '\\001'", 300_000)] {
        let servers = Stage::with(server(vec![sh("a", script)])).limit(|all| all.calls.result_bytes = limit);
        let servers = servers.ready().await;
        let outcome = call(&servers, "a", json!({})).await;
        assert!(matches!(outcome, Outcome::TooLarge { limit: told, .. } if told == limit), "{outcome:?}");
        servers.shutdown().await;
    }
    let mut stage = Stage::with(server(vec![sh("a", "head -c 3000000 /dev/zero | tr '\\0' x")]));
    stage.budget = 1 << 20;
    let servers = stage.ready().await;
    let outcome = call(&servers, "a", json!({})).await;
    assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Busy)), "{outcome:?}");
    servers.shutdown().await;
}

#[tokio::test]
async fn values_of_secrets_show_nowhere() {
    let value = "s3cret-value-of-a-key";
    let mut stage =
        Stage::with(server(vec![sh("out", "printf '%s' \"$KEY $1\""), sh("err", "echo \"key $KEY\" >&2; exit 1")]));
    if let TransportSpec::Cli(cli) = &mut stage.specs[0].transport {
        cli.tools.iter_mut().for_each(|tool| tool.program.env.push(("KEY".to_owned(), Secret::new(value))));
    }
    stage.secrets = vec![Secret::new(value)];
    let servers = stage.ready().await;
    assert_eq!(given(&servers, "out", json!({"a": "x"})).await.0, "[redacted] x");
    let (text, _) = given(&servers, "err", json!({})).await;
    assert!(text.ends_with("key [redacted]"), "{text}");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_ends_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("began");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let servers = Stage::with(server(vec![sh("a", "echo $$ >\"$1\"; exec sleep 1000")])).ready().await;
    for removed in [false, true] {
        let outgoing = outgoing(&servers, "a", json!({ "a": fifo })).await;
        let cancel = CancellationToken::new();
        let (reading, ending) = (fifo.clone(), (servers.clone(), cancel.clone()));
        let began = tokio::task::spawn_blocking(move || std::fs::read_to_string(reading).unwrap());
        let ended = async {
            let pid: u32 = began.await.unwrap().trim().parse().unwrap();
            if removed {
                drop(ending.0.replace(Vec::new()))
            } else {
                ending.1.cancel()
            }
            pid
        };
        let (outcome, pid) = tokio::join!(servers.send(outgoing, &cancel, Events::default()), ended);
        let expected = if removed { NoAnswer::ServerGone } else { NoAnswer::Cancelled };
        assert!(matches!(outcome, Outcome::Unknown(why) if why == expected), "{outcome:?}");
        assert!(!runs(pid), "{pid} goes on");
    }
    servers.shutdown().await;
}

#[tokio::test]
async fn what_is_not_there_is_said_and_nothing_waits_for_it() {
    let missing = CliSpec { tools: vec![sh("a", ":")], missing: Some("no-such-program".to_owned()) };
    let spec = ServerSpec { transport: TransportSpec::Cli(missing), ..server(Vec::new()) };
    let servers = Stage::with(spec).start();
    let said = unavailable(&servers).await;
    assert!(said.contains("not installed") && !said.contains("no-such-program"), "{said}");
    assert!(report(&servers).last_error.unwrap().contains("no-such-program"));
    servers.shutdown().await;
    // One that went away since.
    let mut gone = sh("a", ":");
    gone.program.command = "/no/such/program".to_owned();
    let servers = Stage::with(server(vec![gone])).ready().await;
    let outcome = call(&servers, "a", json!({})).await;
    let Outcome::NotSent(NotSent::Unavailable(said)) = outcome else { panic!("{outcome:?}") };
    assert!(said.contains("was not found") && !said.contains("/no/such"), "{said}");
    servers.shutdown().await;
}

#[test]
fn another_template_is_another_server() {
    let origin = |script: &str| {
        let TransportSpec::Cli(cli) = server(vec![sh("a", script)]).transport else { panic!() };
        TransportSpec::Cli(cli).origin(&Redactor::new(&[Secret::new("s3cret-one"), Secret::new("s3cret-two")])).text()
    };
    assert!(origin("echo 1").starts_with(r#"{"programs":["/bin/sh"],"templates":"sha256:"#), "{}", origin("echo 1"));
    assert_ne!(origin("echo 1"), origin("echo 2"));
    assert_eq!(origin("echo s3cret-one"), origin("echo s3cret-two"), "the value of a secret makes no other");
}
