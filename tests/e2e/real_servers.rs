//! MCP servers that others wrote, used from inside a sandbox as an agent would: the four steps, resources, images,
//! progress, structured results, over stdio and over HTTP.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Host, HttpServer, PATIENCE, Real, Running, Servers, skipped};
use serde_json::{Value, json};

/// A host with these servers, which take their time where nothing of them is in memory yet.
fn host(servers: &Servers) -> Host {
    Host::with(servers).settings("[limits.calls]\nserver_wait = \"29s\"\n")
}

/// Runs a script inside, with a check after each line that it went well; in the form that scripts get.
fn inside(host: &Host, script: &str) -> Vec<String> {
    let ran = host.runs_script(&format!("set -eu\nunset TOOL_CLI_STYLE\n{script}"));
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// What the server `everything` can do, over whichever transport.
fn everything_works(host: &Host) {
    let lines = inside(
        host,
        r#"
        tool-cli everything | grep -c '^  '
        tool-cli everything get-sum | grep -c 'required'
        tool-cli everything echo '{"message":"grüezi \u00e9"}'
        tool-cli everything get-sum '{"a":2,"b":40}'
        tool-cli everything get-structured-content '{"location":"New York"}' --json
        tool-cli everything get-tiny-image '{}' --json
        tool-cli everything trigger-long-running-operation '{"duration":1,"steps":5}'
        tool-cli resource list everything --json
        tool-cli resource templates everything | grep -c 'demo://resource/dynamic'
        tool-cli resource read everything demo://resource/static/document/features.md | head -n 1
        tool-cli resource read everything demo://resource/dynamic/text/7
        tool-cli resource read everything demo://resource/dynamic/blob/7 --out blob
        head -c 11 blob; echo
        tool-cli --progress everything simulate-research-query '{"topic":"bees"}' 2> progress | head -n 1
        grep -qE '(Gathering|Analyzing|Synthesizing|Generating) ' progress && echo told
        "#,
    );
    assert!(lines[0].parse::<u32>().unwrap() >= 10, "{lines:?}");
    assert_eq!(&lines[1..4], ["2", "Echo: grüezi é", "The sum of 2 and 40 is 42."]);
    let structured = json_of(&lines[4]);
    assert!(structured["structuredContent"]["temperature"].is_number(), "{structured}");
    let image = &json_of(&lines[5])["content"][1];
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
    assert_eq!(lines[6], "Long running operation completed. Duration: 1 seconds, Steps: 5.");
    let resources = json_of(&lines[7]);
    assert!(resources["results"][0]["resources"].as_array().unwrap().len() >= 5, "{resources}");
    assert_eq!(lines[8], "2");
    assert!(lines[9].starts_with("# Everything Server"), "{}", lines[9]);
    assert!(lines[10].starts_with("Resource 7: This is a plaintext resource"), "{}", lines[10]);
    // The last is a task to its server alone.
    assert_eq!(lines[11..], ["Written to: blob", "Resource 7:", "# Research Report: bees", "told"]);
    let refused = host.runs_script(
        "tool-cli --exit-codes everything get-sum '{\"a\":\"two\"}'; echo $?; tool-cli --exit-codes everything nope '{}'; echo $?; \
         tool-cli --exit-codes resource read everything demo://nope; echo $?",
    );
    assert!(refused.stdout.starts_with("2\n2\n"), "{refused:?}");
    assert!(
        refused.stderr.contains("Arguments do not match the input schema for \"everything/get-sum\""),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains("Resource \"demo://nope\" not found") || refused.stderr.contains("demo://nope"),
        "{refused:?}"
    );
}

/// Prompts of the server `everything`, which no command of `tool-cli` has.
fn everything_prompts(host: Host) {
    let bridge = host.opens();
    let listed = bridge.guest.asks("listPrompts", json!({"server": "everything"}));
    let prompts = listed["result"]["prompts"].as_array().unwrap_or_else(|| panic!("{listed}")).clone();
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["args-prompt", "completable-prompt", "resource-prompt", "simple-prompt"]);
    let get = |prompt: &str, arguments: Value| {
        bridge.guest.asks("getPrompt", json!({"server": "everything", "prompt": prompt, "arguments": arguments}))
    };
    let text = |answer: &Value| answer["result"]["messages"][0]["content"]["text"].as_str().map(str::to_owned);
    let weather = get("args-prompt", json!({"city": "Bern", "state": "BE"}));
    assert_eq!(text(&weather).as_deref(), Some("What's weather in Bern, BE?"), "{weather}");
    assert!(text(&get("simple-prompt", Value::Null)).is_some());
    let resource = get("resource-prompt", json!({"resourceType": "Text", "resourceId": "7"}));
    assert!(resource["result"]["messages"][1]["content"]["resource"]["text"].is_string(), "{resource}");
    let wrong = get("resource-prompt", json!({"resourceType": "None", "resourceId": "7"}));
    assert_eq!(wrong["error"]["data"]["reason"], "provider_error", "{wrong}");
    let complete = |about: Value, name: &str, value: &str, context: Value| {
        let argument = json!({"name": name, "value": value});
        let params = json!({"server": "everything", "ref": about, "argument": argument, "context": context});
        let answer = bridge.guest.asks("complete", params);
        answer["result"]["completion"]["values"].clone()
    };
    let team = json!({"type": "ref/prompt", "name": "completable-prompt"});
    assert_eq!(complete(team.clone(), "department", "S", Value::Null), json!(["Sales", "Support"]));
    let sales = json!({"arguments": {"department": "Sales"}});
    assert_eq!(complete(team, "name", "D", sales), json!(["David"]));
    let template = json!({"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"});
    assert_eq!(complete(template, "resourceId", "7", Value::Null), json!(["7"]));
    let found = bridge.guest.asks("searchTools", json!({"query": "sum", "limit": 1}));
    assert_eq!(found["result"]["tools"][0]["name"], "get-sum", "{found}");
}

#[test]
fn everything_over_stdio() {
    let Some(everything) = Real::server("everything_over_stdio", "mcp-server-everything") else { return };
    let servers = Servers::none().and("everything", json!({"command": everything.program()}));
    everything_works(&host(&servers));
    everything_prompts(host(&servers));
}

#[test]
fn everything_over_http() {
    let Some(everything) = Real::server("everything_over_http", "mcp-server-everything") else { return };
    let server = HttpServer::start(&everything);
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let servers = Servers::none().and("everything", json!({"type": "http", "url": url}));
    everything_works(&host(&servers));
    everything_prompts(host(&servers));
}

#[test]
fn a_server_over_http_that_crashes_and_comes_back_is_used_again() {
    let Some(everything) = Real::server("a_server_over_http_that_crashes", "mcp-server-everything") else { return };
    let mut server = HttpServer::start(&everything);
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let servers = Servers::demo().and("everything", json!({"url": url}));
    let bridge = host(&servers).opens();
    let sum = || bridge.guest.runs(&["--exit-codes", "everything", "get-sum", "{\"a\":2,\"b\":40}"]);
    assert_eq!(sum().well(), "The sum of 2 and 40 is 42.\n");
    server.crashes();
    let gone = sum();
    assert!([3, 9].contains(&gone.status) && gone.stderr.contains("everything"), "{gone:?}");
    assert!(!gone.stderr.contains(&url), "{gone:?}");
    assert_eq!(bridge.guest.runs(&["demo", "now", "{}"]).status, 0);
    server.starts_again(&everything);
    // One call may learn that the old session is gone, and others that the new one is not there yet: nothing was sent.
    let deadline = Instant::now() + PATIENCE;
    let mut again = sum();
    while again.status != 0 {
        assert!(Instant::now() < deadline, "{again:?}");
        thread::sleep(Duration::from_millis(100));
        again = sum();
        assert!(again.status == 0 || again.stderr.contains("Nothing was sent"), "{again:?}");
    }
    assert_eq!(again.well(), "The sum of 2 and 40 is 42.\n");
}

#[test]
fn a_slow_tool_of_everything_is_cancelled_when_its_client_leaves() {
    let Some(everything) = Real::server("a_slow_tool_is_cancelled", "mcp-server-everything") else { return };
    let host = host(&Servers::none().and("everything", json!({"command": everything.program()})));
    // Ten seconds a step: progress would be a sign of life.
    let ran = host.runs_script(
        "tool-cli everything >/dev/null; \
         tool-cli --exit-codes everything trigger-long-running-operation '{\"duration\":600,\"steps\":60}' --timeout 3s; echo $?; \
         tool-cli everything echo '{\"message\":\"still here\"}'",
    );
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "8\nEcho: still here\n"), "{ran:?}");
    let outcomes: Vec<Value> =
        host.record().iter().filter(|line| line["type"] == "outcome").map(|line| line["detail"].clone()).collect();
    assert_eq!(outcomes[0], "cancelled");
}

#[test]
fn files_are_read_and_written_where_the_operator_allows_it() {
    let Some(filesystem) = Real::server("files", "mcp-server-filesystem") else { return };
    let shared = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(shared.path()).unwrap();
    let folder = folder.to_str().unwrap();
    let png: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x01\x02";
    fs::write(shared.path().join("pixel.png"), png).unwrap();
    let entry = json!({"command": filesystem.program(), "args": [folder]});
    let host = host(&Servers::none().and("files", entry));
    let lines = inside(
        &host,
        &format!(
            r#"
        tool-cli files | grep -c '^  '
        tool-cli files read_text_file | grep -c 'path (string, required)'
        tool-cli files write_file '{{"path":"{folder}/a.txt","content":"grüezi\nfrom inside\n"}}' >/dev/null
        tool-cli files read_text_file '{{"path":"{folder}/a.txt"}}' --json
        tool-cli files list_directory '{{"path":"{folder}"}}' --json
        tool-cli files read_media_file '{{"path":"{folder}/pixel.png"}}' --json
        "#
        ),
    );
    assert!(lines[0].parse::<u32>().unwrap() >= 10, "{lines:?}");
    assert_eq!(lines[1], "1");
    assert_eq!(json_of(&lines[2])["content"][0]["text"], "grüezi\nfrom inside\n");
    assert_eq!(fs::read_to_string(shared.path().join("a.txt")).unwrap(), "grüezi\nfrom inside\n");
    let listed = json_of(&lines[3])["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(listed.contains("[FILE] a.txt") && listed.contains("[FILE] pixel.png"), "{listed}");
    let image = &json_of(&lines[4])["content"][0];
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
    // The picture goes to the file as one; what else there is, is printed.
    let written = host.runs_script(&format!(
        "tool-cli files read_media_file '{{\"path\":\"{folder}/pixel.png\"}}' --out out; head -c 4 out | tail -c 3"
    ));
    assert!(written.stdout.contains("Written to: out\nPNG"), "{written:?}");
    let outside = host.runs_script("tool-cli --exit-codes files read_text_file '{\"path\":\"/etc/hostname\"}'");
    outside.fails(1, &["outside allowed directories"]);
}

#[test]
fn a_large_file_comes_through_whole() {
    let Some(filesystem) = Real::server("a_large_file", "mcp-server-filesystem") else { return };
    let shared = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(shared.path()).unwrap();
    let text: String = (0..60_000).map(|n| format!("line {n} é\n")).collect();
    fs::write(folder.join("large.txt"), &text).unwrap();
    let entry = json!({"command": filesystem.program(), "args": [folder]});
    let bridge = host(&Servers::none().and("files", entry)).opens();
    let answer = bridge.guest.calls("files", "read_text_file", json!({"path": folder.join("large.txt")}));
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), text.len());
    assert_eq!(answer["result"]["content"][0]["text"], text);
}

#[test]
fn the_time_is_told_in_structured_results() {
    let Some(time) = Real::server("time", "mcp-server-time") else { return };
    let host = host(&Servers::none().and("time", json!({"command": time.program()})));
    let lines = inside(
        &host,
        r#"
        tool-cli time | grep -c '^  '
        tool-cli time convert_time | grep -c '^  target_timezone (string, required)'
        tool-cli time convert_time '{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}' | tr -d '\n '; echo
        tool-cli time get_current_time '{"timezone":"Europe/Zurich"}' | tr -d '\n '; echo
        "#,
    );
    assert_eq!(&lines[..2], ["2", "1"]);
    assert_eq!(json_of(&lines[2])["time_difference"], "+9.0h");
    assert_eq!(json_of(&lines[3])["timezone"], "Europe/Zurich");
    let wrong = host.runs_script("tool-cli --exit-codes time get_current_time '{\"timezone\":\"Nowhere/None\"}'");
    wrong.fails(1, &["Nowhere/None"]);
}

#[test]
fn a_repository_is_changed_through_its_server() {
    let Some(git) = Real::server("git", "mcp-server-git") else { return };
    let shared = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(shared.path()).unwrap();
    let folder = folder.to_str().unwrap();
    let made = Command::new("git").args(["init", "-q", "-b", "main", folder]).status();
    if !made.is_ok_and(|status| status.success()) {
        return skipped("a_repository_is_changed_through_its_server", "git is missing");
    }
    for (name, value) in [("user.name", "A Person"), ("user.email", "person@example.org"), ("commit.gpgsign", "false")]
    {
        assert!(Command::new("git").args(["-C", folder, "config", name, value]).status().unwrap().success());
    }
    fs::write(shared.path().join("a.txt"), "one\n").unwrap();
    let entry = json!({"command": git.program(), "args": ["--repository", folder]});
    let host = host(&Servers::none().and("git", entry));
    let lines = inside(
        &host,
        &format!(
            r#"
        tool-cli git | grep -c '^  '
        tool-cli git git_commit | grep -c 'required'
        tool-cli git git_status '{{"repo_path":"{folder}"}}' | grep -c 'a.txt'
        tool-cli git git_add '{{"repo_path":"{folder}","files":["a.txt"]}}'
        tool-cli git git_commit '{{"repo_path":"{folder}","message":"The first"}}' | cut -d' ' -f1-3
        tool-cli git git_log '{{"repo_path":"{folder}","max_count":1}}' | grep -o 'The first'
        "#
        ),
    );
    assert!(lines[0].parse::<u32>().unwrap() >= 10, "{lines:?}");
    assert_eq!(&lines[1..], ["2", "1", "Files staged successfully", "Changes committed successfully", "The first"]);
    let log = Command::new("git").args(["-C", folder, "log", "--format=%s"]).output().unwrap();
    assert_eq!(String::from_utf8(log.stdout).unwrap(), "The first\n");
    let wrong = host.runs_script("tool-cli --exit-codes git git_log '{\"repo_path\":\"/\"}'");
    assert_eq!(wrong.status, 1, "{wrong:?}");
}

#[test]
fn four_servers_of_others_start_side_by_side_and_leave_together() {
    let test = "four_servers_of_others";
    let names = ["mcp-server-everything", "mcp-server-filesystem", "mcp-server-time", "mcp-server-git"];
    let found: Vec<Real> = names.iter().filter_map(|name| Real::server(test, name)).collect();
    let servers = found.iter().zip(names).fold(Servers::demo(), |all, (server, name)| {
        let args = if name.ends_with("filesystem") { json!(["/tmp"]) } else { json!([]) };
        all.and(name.trim_start_matches("mcp-server-"), json!({"command": server.program(), "args": args}))
    });
    let host = host(&servers);
    let listed = inside(&host, "for s in $(tool-cli | grep '^  ' | cut -d' ' -f3); do tool-cli $s | head -n 1; done");
    assert_eq!(listed.len(), found.len() + 1, "{listed:?}");
    assert!(listed.iter().all(|line| line.contains(" tool(s):") && !line.contains(" 0 tool(s)")), "{listed:?}");
    host.leaves_nothing_behind();
}

#[test]
fn the_environment_that_everything_tells_holds_no_credential_of_the_host() {
    let Some(everything) = Real::server("the_environment", "mcp-server-everything") else { return };
    let entry = json!({"command": everything.program(), "env": {"API_KEY": "${SECRET_OF_SERVER}"}});
    let host = host(&Servers::none().and("everything", entry))
        .env("SECRET_OF_SERVER", "s3cret-of-server")
        .env("OTHER_SECRET", "s3cret-of-host");
    let ran: footbridge_tests::Ran =
        Running::start(&mut host.run_of(&["tool-cli", "everything", "get-env", "{}"])).ends();
    assert!(ran.status == 0 && ran.stdout.contains("API_KEY"), "{ran:?}");
    assert!(!ran.stdout.contains("s3cret") && !ran.stdout.contains("TOOL_CLI_"), "{ran:?}");
}
