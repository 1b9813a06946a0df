//! What `tool-cli` does beyond the recorded runs: failures, files, exit codes, machine output, terminals.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;
#[path = "../../tests/skipped.rs"]
mod skipped;
mod terminal;

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpListener,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use bridge::{Bridge, TOKEN, bare, http, id_of, ok, run, told, tool_cli};
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use skipped::skipped;
use terminal::terminal;

const CALL: [&str; 3] = ["s", "t", "{}"];

fn image() -> Value {
    json!({"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]})
}

#[test]
fn detailed_exit_codes_come_on_request_only() {
    for (code, reason, expected) in [
        (-32602, "unknown_tool", 2),
        (-32001, "denied_by_policy", 5),
        (-32001, "approval_required", 6),
        (-32002, "rate_limited", 7),
        (-32000, "timeout", 8),
        (-32004, "outcome_unknown", 9),
        (-32603, "provider_error", 1),
        (-31999, "a word of a later version", 1),
    ] {
        let bridge = Bridge::error(json!({"code": code, "message": "no", "data": {"reason": reason}}));
        assert_eq!(run(&mut tool_cli(&bridge, &CALL)).0, Some(1), "{reason}");
        assert_eq!(run(tool_cli(&bridge, &CALL).arg("--exit-codes")).0, Some(expected), "{reason}");
        assert_eq!(run(tool_cli(&bridge, &CALL).env("TOOL_CLI_EXIT_CODES", "1")).0, Some(expected), "{reason}");
    }
    let reported = Bridge::result(json!({"content": [], "isError": true}));
    assert_eq!(run(tool_cli(&reported, &CALL).arg("--exit-codes")).0, Some(1));
    for (args, expected) in [(["--nope"].as_slice(), 2), (&["s", "t", "[]"], 2), (&["s"], 3)] {
        assert_eq!(run(bare(args).arg("--exit-codes").env("TOOL_CLI_PORT", "1")).0, Some(expected), "{args:?}");
    }
    let bridge = Bridge::of_generation(0);
    assert_eq!(run(tool_cli(&bridge, &[]).arg("--exit-codes").env_remove("TOOL_CLI_TOKEN")).0, Some(4));
}

#[test]
fn a_status_other_than_200_is_named_with_what_the_body_says() {
    for (status, body, part) in [
        (403, r#"{"error":"Host not allowed"}"#, "HTTP 403: Host not allowed. "),
        (404, r#"{"error":"nope\u001b[2J"}"#, "HTTP 404: nope"),
        (
            413,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Request too large"},"id":null}"#,
            "Request too large. ",
        ),
        (
            502,
            r#"{"jsonrpc":"2.0","error":{"code":-32003,"message":"unreachable"},"id":null}"#,
            "The relay cannot reach",
        ),
        (500, "", "an empty body"),
    ] {
        let bridge = Bridge::raw(move |_| http(status, body));
        let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &[]));
        assert!(stderr.starts_with("Error: the bridge answered HTTP ") && stderr.contains(part), "{stderr}");
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
    }
}

#[test]
fn what_is_no_bridge_is_said_to_be_none() {
    let page = format!("<!DOCTYPE HTML>\u{1b}[2J{}", "<p>".repeat(1000));
    let bridge = Bridge::raw(move |_| http(501, &page));
    let (code, _, stderr) = run(tool_cli(&bridge, &[]).arg("--exit-codes"));
    assert!(
        stderr.contains("no Footbridge bridge: it answered HTTP 501 with \"<!DOCTYPE HTML>\\u{1b}[2J<p>"),
        "{stderr}"
    );
    assert_eq!((code, stderr.len() < 300), (Some(3), true), "{stderr}");
    for answer in
        ["SSH-2.0-OpenSSH_9\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "HTTP/1.1 200 OK\r\n\r\n[]"]
    {
        let bridge = Bridge::raw(move |_| answer.into());
        let (code, _, stderr) = run(tool_cli(&bridge, &[]).arg("--exit-codes"));
        assert!(stderr.contains("not a bridge"), "{stderr}");
        assert_eq!(code, Some(3), "{stderr}");
    }
    for result in [json!({}), json!({"servers": [{"name": 7, "toolCount": 1}]}), json!([1])] {
        let (code, _, stderr) = run(&mut tool_cli(&Bridge::result(result), &[]));
        assert!(stderr.contains("answer to listServers has an unexpected shape"), "{stderr}");
        assert_eq!(code, Some(1));
    }
}

#[test]
fn an_answer_for_another_request_is_not_used() {
    let bridge = Bridge::raw(|_| ok(&json!({"jsonrpc": "2.0", "result": {"servers": []}, "id": 2})));
    let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &[]));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("the id 2 and the request had 1"), "{stderr}");
}

#[test]
fn an_answer_to_a_call_that_cannot_be_used_leaves_the_outcome_unknown() {
    let of = |result: Value| ok(&json!({"jsonrpc": "2.0", "result": result, "id": 1}));
    for (answer, part) in [
        (of(json!({"content": "done"})), "an unexpected shape"),
        (of(json!(null)), "not a bridge"),
        (ok(&json!({"jsonrpc": "2.0", "result": {"content": []}, "id": 2})), "the id 2 and the request had 1"),
        (http(200, "<html>"), "not a bridge"),
        (http(500, r#"{"error":"it failed"}"#), "HTTP 500: it failed"),
    ] {
        let bridge = Bridge::raw(move |_| answer.clone());
        let (code, stdout, stderr) = run(tool_cli(&bridge, &CALL).arg("--exit-codes"));
        assert_eq!((code, stdout.as_str()), (Some(9), ""), "{stderr}");
        assert!(stderr.contains(part) && stderr.contains("The call may have happened"), "{stderr}");
        let (code, _, stderr) = run(tool_cli(&bridge, &[]).arg("--exit-codes"));
        assert_eq!((code, stderr.contains("may have happened")), (Some(3), false), "{stderr}");
    }
    for answer in [
        http(
            502,
            r#"{"jsonrpc":"2.0","error":{"code":-32003,"message":"unreachable","data":{"reason":"server_unavailable"}},"id":null}"#,
        ),
        http(501, "<html>"),
    ] {
        let bridge = Bridge::raw(move |_| answer.clone());
        let (code, _, stderr) = run(tool_cli(&bridge, &CALL).arg("--exit-codes"));
        assert_eq!((code, stderr.contains("may have happened")), (Some(3), false), "{stderr}");
    }
}

#[test]
fn what_a_server_says_on_further_lines_looks_like_no_message_of_the_command() {
    let bridge = Bridge::error(json!({"code": -32603, "message": "it failed\nHint: run this\r\nError: that\n\n"}));
    for args in [CALL.as_slice(), &["s"], &["resource", "list", "s"]] {
        let (code, _, stderr) = run(&mut tool_cli(&bridge, args));
        assert_eq!((code, stderr.as_str()), (Some(1), "Error: it failed\n  Hint: run this\\r\n  Error: that\n"));
    }
}

#[test]
fn null_in_a_result_is_as_nothing() {
    let bridge = Bridge::result(json!({"content": null, "isError": null, "structuredContent": null}));
    let (code, _, stderr) = run(tool_cli(&bridge, &CALL).arg("--exit-codes"));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stderr}");
}

#[test]
fn a_cut_answer_to_a_call_leaves_the_outcome_unknown() {
    let bridge = Bridge::raw(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec());
    let (code, _, stderr) = run(tool_cli(&bridge, &CALL).arg("--exit-codes"));
    assert_eq!(code, Some(9), "{stderr}");
    assert_eq!(run(tool_cli(&bridge, &[]).arg("--exit-codes")).0, Some(3));
}

#[test]
fn no_error_shows_the_token() {
    let echo = Bridge::raw(|got| http(500, &got.headers["authorization"]));
    let (_, stdout, stderr) = run(&mut tool_cli(&echo, &[]));
    assert!(stderr.contains("Bearer [token]") && !format!("{stdout}{stderr}").contains(TOKEN), "{stderr}");
    let (_, _, stderr) = run(tool_cli(&echo, &[]).arg("--json").env("TOOL_CLI_TOKEN", "odd\"token"));
    assert!(stderr.contains("Bearer [token]") && !stderr.contains("odd"), "{stderr}");
    let (_, _, stderr) = run(tool_cli(&echo, &["s", "t", TOKEN]).env("TOOL_CLI_SOCKET", "ambiguous"));
    assert!(!stderr.contains(TOKEN), "{stderr}");
    // One that is no secret is in other words, too.
    let (_, _, stderr) = run(tool_cli(&echo, &[]).env("TOOL_CLI_TOKEN", "e"));
    assert!(
        stderr.starts_with("Error: what listens there is no Footbridge bridge") && stderr.contains("Bearer e"),
        "{stderr}"
    );
}

#[test]
fn error_text_is_never_cut() {
    let long = "x".repeat(200_000);
    let bridge = Bridge::error(json!({"code": -32603, "message": long}));
    assert_eq!(run(&mut tool_cli(&bridge, &CALL)).2, format!("Error: {long}\n"));
}

#[test]
fn time_is_up_when_it_was_said_to_be() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let start = Instant::now();
    let (code, _, stderr) = run(bare(&CALL).args(["--timeout", "50ms", "--exit-codes"]).env("TOOL_CLI_PORT", &port));
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(code, Some(8));
    assert!(stderr.contains("no answer within 50 ms") && stderr.contains("--timeout"), "{stderr}");
    let (_, _, stderr) = run(bare(&CALL).env("TOOL_CLI_TIMEOUT_MS", "50").env("TOOL_CLI_PORT", &port));
    assert!(stderr.contains("no answer within 50 ms"), "{stderr}");
}

#[test]
fn an_interrupt_ends_with_130_and_closes_the_connection() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    // What is ignored stays ignored, and these tests may run where it is: in the background of a script.
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_tool-cli")]).args(CALL).env_clear();
    let child = command.env("TOOL_CLI_PORT", port).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = [0; 4096];
    assert!(stream.read(&mut request).unwrap() > 0);
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(stream.read(&mut request).unwrap(), 0, "the bridge sees that the client left");
    assert_eq!(told(&child.wait_with_output().unwrap()).0, Some(130));
}

#[test]
fn a_request_beyond_what_any_bridge_takes_is_not_sent() {
    for (bytes, is_sent) in [((16 << 20) - 76, false), (3 << 20, true)] {
        let bridge = Bridge::result(json!({"content": []}));
        let mut child = tool_cli(&bridge, &["s", "t", "-", "--exit-codes"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let arguments = json!({"x": "y".repeat(bytes)}).to_string();
        child.stdin.take().unwrap().write_all(arguments.as_bytes()).unwrap();
        let (code, _, stderr) = told(&child.wait_with_output().unwrap());
        assert_eq!(code, Some(if is_sent { 0 } else { 7 }), "{stderr}");
        assert_eq!(stderr.contains("make the arguments smaller"), !is_sent, "{stderr}");
        assert_eq!(bridge.got.lock().unwrap().len(), usize::from(is_sent));
    }
}

#[test]
fn streams_that_another_program_keeps_from_blocking_are_waited_for() {
    let text = "y".repeat(1 << 19);
    let bridge = Bridge::raw(move |got| {
        let arguments: Value = serde_json::from_str(&got.body).unwrap();
        let shown = arguments["params"]["arguments"]["x"].as_str().unwrap().repeat(4);
        ok(&json!({"jsonrpc": "2.0", "result": {"content": [{"type": "text", "text": shown}]}, "id": id_of(got)}))
    });
    let ((input, mut writer), (mut reader, output)) = (io::pipe().unwrap(), io::pipe().unwrap());
    fcntl(&input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut child =
        tool_cli(&bridge, &["s", "t", "-"]).stdin(input).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    let _ = writer.write_all(json!({ "x": text }).to_string().as_bytes());
    drop(writer);
    let mut printed = String::new();
    reader.read_to_string(&mut printed).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), printed.len()), (Some(0), 4 * text.len() + 1), "{stderr}");
}

#[test]
fn arguments_come_from_standard_input_too() {
    let bridge = Bridge::of_generation(0);
    let mut child = tool_cli(&bridge, &["weather", "check_weather", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b" {\"city\":\"Basel\"}\n").unwrap();
    let (code, stdout, _) = told(&child.wait_with_output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(0), "{\n  \"city\": \"Basel\",\n  \"tempC\": 21\n}\n"));
}

#[test]
fn arguments_that_are_no_object_are_told_by_their_place() {
    for (arguments, kind) in [("[1]", "a list"), ("7", "a number"), ("", "empty"), ("\"x\"", "a text")] {
        let (code, _, stderr) = run(&mut bare(&["s", "t", arguments]));
        let said = format!("Error: invalid JSON arguments: an object is needed, in {{ and }}, and this is {kind}\n");
        assert_eq!((code, stderr), (Some(1), said));
    }
    let long = format!("{{\"text\": \"{}\",\n \"n\" 1}}", "x".repeat(100_000));
    let (code, _, stderr) = run(bare(&["s", "t", &long]).arg("--exit-codes"));
    assert_eq!((code, stderr.as_str()), (Some(2), "Error: invalid JSON arguments: line 2, column 6: expected `:`\n"));
}

#[test]
fn a_word_in_place_of_arguments_is_told_what_the_words_before_it_are_not() {
    let bridge = Bridge::raw(|got| {
        let error =
            json!({"code": -32601, "message": "Server \"read\" not found", "data": {"reason": "unknown_server"}});
        http(200, &json!({"jsonrpc": "2.0", "id": id_of(got), "error": error}).to_string())
    });
    let (_, _, stderr) = run(tool_cli(&bridge, &["read", "t", "file:///x"]).env("TOOL_CLI_STYLE", "agent"));
    assert!(stderr.starts_with("Error: Server \"read\" not found"), "{stderr}");
    assert!(stderr.contains("tool-cli resource read SERVER URI") && !stderr.contains("JSON"), "{stderr}");
    let bridge = Bridge::of_generation(0);
    let (_, _, stderr) = run(&mut tool_cli(&bridge, &["weather", "check_weather", "Bern"]));
    assert!(stderr.starts_with("Error: invalid JSON arguments: an object is needed"), "{stderr}");
}

#[test]
fn json_is_the_raw_result_on_one_line() {
    let bridge = Bridge::raw(|got| {
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\n \"content\" : [],\n \"n\": 1.50, \"isError\": true}}}}",
            id_of(got)
        );
        http(200, &body)
    });
    let (code, stdout, stderr) = run(tool_cli(&bridge, &CALL).arg("--json"));
    assert_eq!(
        (code, stdout.as_str(), stderr.as_str()),
        (Some(1), "", "{\"content\":[],\"n\":1.50,\"isError\":true}\n"),
        "a failed call is no data for a pipe"
    );
    let bridge = Bridge::error(json!({"code": -32001, "message": "no", "data": {"reason": "denied_by_policy"}}));
    let (_, stdout, stderr) = run(tool_cli(&bridge, &CALL).arg("--json"));
    let error: Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(stdout, "");
    assert_eq!(
        error,
        json!({"type": "RpcProtocolError", "message": "no", "httpStatus": 200, "rpcCode": -32001,
            "rpcData": {"reason": "denied_by_policy"}, "exitCode": 5})
    );
}

#[test]
fn what_does_not_fit_is_told_once_each() {
    let found = json!([{"instancePath": "/a", "keyword": "type", "message": "1 is no text"},
        {"instancePath": "", "message": "\u{1b}[2J"}, "of an older bridge"]);
    let error = |message: &str| json!({"code": -32602, "message": message, "data": {"validationErrors": found}});
    for message in ["no", "no: /a: 1 is no text (and 2 more)"] {
        let stderr = run(&mut tool_cli(&Bridge::error(error(message)), &CALL)).2;
        let first = if message == "no" { "  /a: 1 is no text\n" } else { "" };
        assert_eq!(stderr, format!("Error: {message}\n{first}  /: \\u{{1b}}[2J\n  of an older bridge\n"));
    }
}

#[test]
fn a_single_image_is_written_as_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("image.png").display().to_string();
    let (code, stdout, _) = run(tool_cli(&Bridge::result(image()), &CALL).args(["--out", &file]));
    assert_eq!((code, stdout), (Some(0), format!("Written to: {file}\n")));
    assert_eq!(fs::read(&file).unwrap(), b"\x89PNG\r\n\x1a\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left in the folder");
}

#[test]
fn a_file_that_may_not_be_as_large_is_an_error_and_no_end_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("image.png");
    let bridge = Bridge::result(image());
    let inner = tool_cli(&bridge, &CALL);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "ulimit -f 0; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .arg("--out")
        .arg(&file);
    limited.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (code, stdout, stderr) = run(&mut limited);
    assert!(code == Some(1) && stdout.is_empty() && stderr.contains("too large"), "{code:?} {stdout} {stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A text, as many images as there are ends, and one more text.
fn mixed(ends: &[(&str, &str)]) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let images = ends.iter().map(|(mime_type, data)| json!({"type": "image", "data": data, "mimeType": mime_type}));
    let content: Vec<Value> = [text("before")].into_iter().chain(images).chain([text("after")]).collect();
    json!({ "content": content })
}

#[test]
fn of_a_result_with_one_image_a_file_gets_its_bytes_and_the_rest_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.png").display().to_string();
    let bridge = Bridge::result(mixed(&[("image/png", "iVBORw0KGgo=")]));
    let (code, stdout, _) = run(tool_cli(&bridge, &CALL).args(["--out", &file]));
    assert_eq!((code, stdout), (Some(0), format!("before\nafter\nWritten to: {file}\n")));
    assert_eq!(fs::read(&file).unwrap(), b"\x89PNG\r\n\x1a\n");
    let (_, stdout, _) = run(tool_cli(&bridge, &CALL).args(["--json", "--out", &file]));
    let text = |text: &str| json!({"type": "text", "text": text});
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told, json!({"written": file, "bytes": 8, "content": [text("before"), text("after")]}));
    let mut both = mixed(&[("image/png", "iVBORw0KGgo=")]);
    both["structuredContent"] = json!({"width": 1});
    let (_, stdout, _) = run(tool_cli(&Bridge::result(both), &CALL).args(["--out", &file]));
    assert_eq!(stdout, format!("{{\n  \"width\": 1\n}}\nWritten to: {file}\n"));
    assert_eq!(fs::read(&file).unwrap(), b"\x89PNG\r\n\x1a\n");
    let resource = json!({"contents": [{"uri": "u:1", "text": "words"}, {"uri": "u:2", "blob": "eA=="}]});
    let bridge = Bridge::result(resource);
    let mut read = tool_cli(&bridge, &["resource", "read", "s", "u:1", "--out", &file]);
    assert_eq!(run(&mut read).1, format!("# u:1 (text)\nwords\nWritten to: {file}\n"));
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

#[test]
fn several_images_get_a_file_each_in_a_folder_and_one_file_has_the_text_with_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let (file, dir) = (folder.path().join("page.png"), folder.path().join("pages"));
    let bridge = Bridge::result(mixed(&[("image/png", "eA=="), ("image/../../x", "eQ==")]));
    let (code, stdout, stderr) = run(tool_cli(&bridge, &CALL).arg("--out").arg(&file));
    assert_eq!((code, stdout), (Some(0), format!("Written to: {}\n", file.display())));
    assert!(stderr.contains("2 images, sounds or blobs") && stderr.contains("--out-dir DIR"), "{stderr}");
    let text = fs::read_to_string(&file).unwrap();
    let (_, printed, _) = run(&mut tool_cli(&bridge, &CALL));
    assert!(text.starts_with("before\n{\n") && text.contains("eA==") && text.contains("eQ=="), "{text}");
    assert_eq!(text.trim_end(), printed.trim_end(), "what a pipe gets");
    // Where that has not all of it, the file has the whole result.
    let mut both = mixed(&[("image/png", "eA=="), ("image/png", "eQ==")]);
    both["structuredContent"] = json!({"width": 1});
    let images = mixed(&[("image/png", "eA=="), ("image/png", "eQ==")]);
    for (result, more) in [(both, &[][..]), (images, &["--output", "text"])] {
        let (code, _, stderr) =
            run(tool_cli(&Bridge::result(result.clone()), &CALL).arg("--out").arg(&file).args(more));
        let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!((code, kept), (Some(0), result), "{stderr}");
        assert!(stderr.contains("as one line of JSON"), "{stderr}");
    }
    for _again in 0..2 {
        let (code, stdout, stderr) = run(tool_cli(&bridge, &["--out-dir"]).arg(&dir).args(CALL));
        let (first, second) = (dir.join("image-1.png"), dir.join("image-2.bin"));
        let expected = format!("before\nafter\nWritten to: {}\nWritten to: {}\n", first.display(), second.display());
        assert_eq!((code, stdout), (Some(0), expected), "{stderr}");
        assert_eq!((fs::read(first).unwrap(), fs::read(second).unwrap()), (b"x".to_vec(), b"y".to_vec()));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
    }
    let (_, stdout, _) = run(tool_cli(&bridge, &CALL).arg("--json").arg("--out-dir").arg(&dir));
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["written"][1]["path"], dir.join("image-2.bin").display().to_string());
    assert_eq!((&told["written"][0]["bytes"], &told["content"][1]["text"]), (&json!(1), &json!("after")));
}

#[test]
fn a_folder_that_cannot_be_written_is_noticed_before_the_call_and_none_is_made_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let bridge = Bridge::error(json!({"code": -32603, "message": "no"}));
    for dir in [folder.path().join("no/such"), file] {
        let (code, _, stderr) = run(tool_cli(&bridge, &["--out-dir"]).arg(&dir).args(CALL));
        assert_eq!(code, Some(1));
        assert!(stderr.starts_with("Error: cannot write ") && stderr.contains("Nothing was called"), "{stderr}");
    }
    assert!(bridge.got.lock().unwrap().is_empty());
    let dir = folder.path().join("new");
    assert_eq!(run(tool_cli(&bridge, &["--out-dir"]).arg(&dir).args(CALL)).0, Some(1));
    assert!(bridge.got.lock().unwrap().len() == 1 && !dir.exists());
    let text = Bridge::result(json!({"content": [{"type": "text", "text": "no image"}]}));
    assert_eq!(run(tool_cli(&text, &CALL).arg("--out-dir").arg(&dir)).1, "no image\n");
}

#[test]
fn a_file_that_cannot_be_written_is_noticed_before_the_call() {
    let bridge = Bridge::result(image());
    let folder = tempfile::tempdir().unwrap();
    for file in [folder.path().join("no/such/folder"), folder.path().to_owned()] {
        let (code, _, stderr) = run(tool_cli(&bridge, &CALL).arg("--out").arg(&file));
        assert_eq!(code, Some(1));
        assert!(stderr.starts_with("Error: cannot write ") && stderr.contains("Nothing was called"), "{stderr}");
    }
    assert!(bridge.got.lock().unwrap().is_empty());
}

#[test]
fn a_failed_call_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept");
    fs::write(&file, "before").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let failing = Bridge::error(json!({"code": -32603, "message": "no"}));
    assert_eq!(run(tool_cli(&failing, &CALL).arg("--out").arg(&file)).0, Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let working = Bridge::result(json!({"content": [{"type": "text", "text": "after"}]}));
    assert_eq!(run(tool_cli(&working, &CALL).arg("--out").arg(&link)).0, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), "after");
    assert!(link.is_symlink(), "a link is followed, not replaced");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_device_is_written_where_it_is() {
    let bridge = Bridge::result(json!({"content": [{"type": "text", "text": "x"}]}));
    let (code, stdout, _) = run(tool_cli(&bridge, &CALL).args(["--out", "/dev/null"]));
    assert_eq!((code, stdout.as_str()), (Some(0), "Written to: /dev/null\n"));
}

#[test]
fn resources_are_listed_and_read() {
    let list =
        json!({"server": "s", "resources": [{"uri": "u:1", "name": "one", "mimeType": "text/plain"}, {"uri": "u:2"}]});
    let (code, stdout, _) = run(&mut tool_cli(&Bridge::result(list), &["resource", "list", "s"]));
    assert_eq!((code, stdout.as_str()), (Some(0), "s — 2 resource(s):\n  u:1 (one) [text/plain]\n  u:2\n"));
    let templates = json!({"server": "s", "templates": [{"uriTemplate": "u:{x}", "description": "d"}]});
    let (_, stdout, _) = run(&mut tool_cli(&Bridge::result(templates), &["resource", "templates", "s"]));
    assert_eq!(stdout, "s — 1 resource template(s):\n  u:{x} — d\n");
    let bridge = Bridge::result(json!({"contents": [{"uri": "u:1", "text": "hello"}]}));
    assert_eq!(run(&mut tool_cli(&bridge, &["resource", "read", "s", "u:1"])).1, "hello\n");
    assert_eq!(bridge.first().method(), "readResource");
}

/// Lists a resource for `a` and `b`, and fails for `bad`.
fn servers(names: &'static [&'static str]) -> Bridge {
    Bridge::raw(move |got| {
        let body: Value = serde_json::from_str(&got.body).unwrap();
        let server = body["params"]["server"].as_str().unwrap_or_default();
        let entries: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "toolCount": 0, "examples": []})).collect();
        let mut answer = match body["method"].as_str().unwrap() {
            "listServers" => json!({"result": {"servers": entries}}),
            _ if server == "bad" => json!({"error": {"code": -32603, "message": "it broke\u{1b}"}}),
            "listResources" if server == "b" => {
                json!({"result": {"resources": [{"uri": "u:b", "size": 1.50}], "partial": ["one was too long"]}})
            }
            "listResources" => json!({"result": {"resources": [{"uri": format!("u:{server}")}]}}),
            "listResourceTemplates" => json!({"result": {"templates": [{"uriTemplate": "u:{x}"}]}}),
            _ => json!({"result": {"contents": [{"uri": "u:1", "text": format!("of {server}")}]}}),
        };
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = body["id"].clone();
        ok(&answer)
    })
}

#[test]
fn without_a_server_all_of_them_are_listed() {
    let (code, stdout, stderr) = run(&mut tool_cli(&servers(&["a", "bad", "b"]), &["resource", "list"]));
    assert_eq!((code, stdout.as_str()), (Some(0), "a — 1 resource(s):\n  u:a\n\nb — 1 resource(s):\n  u:b\n"));
    let warning = "Warning: partial resource discovery (1/3 server(s) failed).\n";
    assert_eq!(stderr, format!("bad — it broke\u{1b}\nWarning: b — one was too long\n{warning}"));
    let (code, stdout, _) = run(&mut tool_cli(&servers(&["a"]), &["resource", "templates"]));
    assert_eq!((code, stdout.as_str()), (Some(0), "a — 1 resource template(s):\n  u:{x}\n"));
    let (code, stdout, _) = run(&mut tool_cli(&servers(&[]), &["resource", "list"]));
    assert_eq!((code, stdout.as_str()), (Some(0), "No MCP servers connected.\n"));
    let (code, stdout, stderr) = run(&mut tool_cli(&servers(&["bad"]), &["resource", "list"]));
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(1), "", "bad — it broke\u{1b}\n"));
    // More than are asked at once.
    const MANY: [&str; 20] = ["a"; 20];
    assert_eq!(run(&mut tool_cli(&servers(&MANY), &["resource", "list"])).1.matches("u:a").count(), 20);
}

#[test]
fn listings_of_resources_have_the_public_commands_report() {
    let report = |bridge: &Bridge, args: &[&str]| {
        let (code, stdout, stderr) = run(tool_cli(bridge, &["resource"]).args(args).arg("--json"));
        assert!(stderr.is_empty() && stdout.lines().count() == 1, "{stderr}{stdout}");
        (code, serde_json::from_str::<Value>(&stdout).unwrap())
    };
    let (code, told) = report(&servers(&["a", "bad", "b"]), &["list"]);
    let error = json!({"type": "RpcProtocolError", "message": "it broke\u{1b}", "httpStatus": 200, "rpcCode": -32603, "exitCode": 1});
    assert_eq!(
        (code, told),
        (
            Some(0),
            json!({"kind": "resources", "status": "partial", "results": [
                {"server": "a", "ok": true, "resources": [{"uri": "u:a"}]},
                {"server": "bad", "ok": false, "error": error},
                {"server": "b", "ok": true, "resources": [{"uri": "u:b", "size": 1.5}], "partial": ["one was too long"]},
            ]})
        )
    );
    let (code, told) = report(&servers(&["a"]), &["templates", "--server", "a"]);
    let entry = json!({"server": "a", "ok": true, "templates": [{"uriTemplate": "u:{x}"}]});
    assert_eq!((code, told), (Some(0), json!({"kind": "templates", "status": "complete", "results": [entry]})));
    let (code, told) = report(&servers(&["bad"]), &["list", "bad"]);
    assert_eq!((code, &told["status"], &told["results"][0]["ok"]), (Some(1), &json!("failed"), &json!(false)));
    let (code, told) = report(&servers(&[]), &["list"]);
    assert_eq!((code, told), (Some(0), json!({"kind": "resources", "status": "complete", "results": []})));
}

#[test]
fn a_resource_is_read_without_a_server_where_there_is_one() {
    let bridge = servers(&["a"]);
    assert_eq!(run(&mut tool_cli(&bridge, &["resource", "read", "u:1"])).1, "of a\n");
    assert_eq!(run(&mut tool_cli(&bridge, &["resource", "read", "--server", "x", "u:1"])).1, "of x\n");
    for (names, part) in [(&["a", "b"][..], "Connected: a, b"), (&[], "no MCP server is connected")] {
        let (code, _, stderr) = run(tool_cli(&servers(names), &["resource", "read", "u:1"]).arg("--exit-codes"));
        assert!(code == Some(2) && stderr.contains(part), "{stderr}");
    }
}

#[test]
fn a_server_named_resource_can_be_reached() {
    let bridge = Bridge::result(json!({"server": "resource", "tools": []}));
    assert_eq!(run(&mut tool_cli(&bridge, &["--", "resource"])).1, "resource — no tools\n");
    assert_eq!(bridge.first().method(), "listTools");
}

#[test]
fn a_unix_socket_works_and_is_ambiguous_beside_a_port() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).unwrap();
        stream.write_all(&ok(&json!({"jsonrpc": "2.0", "result": {"servers": []}, "id": 1}))).unwrap();
        String::from_utf8(request[..length].to_vec()).unwrap()
    });
    let (code, stdout, stderr) = run(bare(&[]).env("TOOL_CLI_SOCKET", &path));
    assert_eq!((code, stdout.as_str()), (Some(0), "No MCP servers connected.\n"), "{stderr}");
    assert!(server.join().unwrap().contains("\r\nHost: localhost\r\n"));
    let (code, _, stderr) = run(bare(&["--exit-codes"]).env("TOOL_CLI_SOCKET", &path).env("TOOL_CLI_PORT", "80"));
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("Error: ambiguous endpoint"), "{stderr}");
    // The listener is gone and its file still there.
    let (code, _, stderr) = run(bare(&["--exit-codes"]).env("TOOL_CLI_SOCKET", &path));
    assert_eq!(code, Some(3));
    assert!(stderr.starts_with("Error: tool-cli server not running"), "{stderr}");
    let (_, _, stderr) = run(bare(&[]).env("TOOL_CLI_SOCKET", folder.path().join("none")));
    assert!(stderr.contains("does not exist"), "{stderr}");
}

#[test]
fn the_token_can_come_from_a_file() {
    let bridge = Bridge::of_generation(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let mut command = tool_cli(&bridge, &["empty"]);
    assert_eq!(run(command.env_remove("TOOL_CLI_TOKEN").env("TOOL_CLI_TOKEN_FILE", &file)).0, Some(0));
    let (_, _, stderr) = run(bare(&[]).env("TOOL_CLI_TOKEN_FILE", folder.path().join("none")));
    assert!(stderr.starts_with("Error: cannot read the token from "), "{stderr}");
}

#[test]
fn a_reader_that_left_is_no_error_and_a_full_disk_is_one() {
    let bridge = Bridge::of_generation(0);
    let (reader, writer) = nix::unistd::pipe().unwrap();
    drop(reader);
    let output = tool_cli(&bridge, &[]).stdout(writer).output().unwrap();
    assert_eq!(told(&output), (Some(0), String::new(), String::new()));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (code, _, stderr) = told(&tool_cli(&bridge, &[]).stdout(full).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("Error: cannot write to standard output: "), "{stderr}");
    assert!(!stderr.contains("The call was made"), "{stderr}");
}

#[test]
fn a_result_that_a_full_disk_takes_is_said_to_be_lost_and_the_call_to_be_made() {
    let bridge = Bridge::result(json!({"content": [{"type": "text", "text": "long"}]}));
    let image = Bridge::result(image());
    for (bridge, words) in [
        (&bridge, [].as_slice()),
        (&bridge, &["--json"]),
        (&bridge, &["--max-bytes", "2"]),
        (&image, &["--output", "raw"]),
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut call = tool_cli(bridge, &[&CALL, words].concat());
        let (code, _, stderr) = told(&call.stdout(full).env("TMPDIR", "/nonexistent").output().unwrap());
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains("cannot write to standard output: No space left"), "{stderr}");
        assert!(stderr.contains(". The call was made and its result is lost"), "{stderr}");
    }
}

#[test]
fn a_terminal_gets_one_line_for_an_image_and_nothing_that_steers_it() {
    let bridge = Bridge::result(json!({"content": [
        {"type": "text", "text": "a\u{1b}[2Jb\nc"},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ]}));
    let (mut master, slave) = terminal();
    let mut child = tool_cli(&bridge, &CALL).stdout(slave).stderr(Stdio::null()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    let mut seen = Vec::new();
    // What was written may come in pieces; after the last one the terminal is gone, which is an error.
    let _ = master.read_to_end(&mut seen);
    assert_eq!(String::from_utf8_lossy(&seen), "a\\u{1b}[2Jb\r\nc\r\n[image image/png, 8 bytes: use --out FILE]\r\n");
}

#[test]
fn an_answer_in_chunks_is_read_whole() {
    let text = "é".repeat(300_000);
    let expected = format!("{text}\n");
    let bridge = Bridge::raw(move |got| {
        let body = json!({"jsonrpc": "2.0", "id": id_of(got), "result": {"content": [{"type": "text", "text": text}]}});
        let mut out = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in body.to_string().as_bytes().chunks(70_001) {
            out.extend(format!("{:x}\r\n", chunk.len()).bytes().chain(chunk.iter().copied()).chain(*b"\r\n"));
        }
        out.extend(b"0\r\n\r\n");
        out
    });
    assert_eq!(run(&mut tool_cli(&bridge, &CALL)).1, expected);
}

/// Says so many times that nothing was sent and when to come back, and then answers.
fn busy_at_first(times: usize, reason: &'static str) -> Bridge {
    let asked = AtomicUsize::new(0);
    Bridge::raw(move |got| {
        let answer = if asked.fetch_add(1, Ordering::SeqCst) < times {
            json!({"error": {"code": -32002, "message": "no", "data": {"reason": reason, "retryAfterMs": 1}}})
        } else {
            json!({"result": {"content": [{"type": "text", "text": "done"}]}})
        };
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id_of(got);
        ok(&answer)
    })
}

#[test]
fn a_bridge_that_is_busy_is_asked_again_when_it_said() {
    for reason in ["busy", "rate_limited"] {
        let bridge = busy_at_first(3, reason);
        let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &CALL));
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "done\n", ""), "{reason}");
        assert_eq!(bridge.got.lock().unwrap().len(), 4);
    }
    let asked = AtomicUsize::new(0);
    let full = Bridge::raw(move |got| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => http(503, r#"{"error":"Too many connections"}"#),
        _ => ok(&json!({"jsonrpc": "2.0", "result": {"servers": []}, "id": id_of(got)})),
    });
    assert_eq!(run(&mut tool_cli(&full, &[])).0, Some(0), "no place for one more connection");
}

#[test]
fn a_bridge_that_stays_busy_is_left_when_time_is_up() {
    let bridge = busy_at_first(usize::MAX, "busy");
    let start = Instant::now();
    let (code, _, stderr) = run(tool_cli(&bridge, &CALL).args(["--exit-codes", "--timeout", "2s"]));
    assert_eq!((code, stderr.as_str()), (Some(7), "Error: no\n"));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let asked = bridge.got.lock().unwrap().len();
    assert!((3..60).contains(&asked), "pauses grow, and it was asked {asked} times");
}

#[test]
fn what_may_have_happened_is_never_asked_again() {
    for (code, reason) in [
        (-32004, "outcome_unknown"),
        (-32002, "too_large"),
        (-32002, "budget_spent"),
        (-32603, "provider_error"),
        (-32002, "a word of a later version"),
    ] {
        let data = json!({"reason": reason, "retryAfterMs": 1});
        let bridge = Bridge::error(json!({"code": code, "message": "no", "data": data}));
        assert_eq!(run(&mut tool_cli(&bridge, &CALL)).0, Some(1), "{reason}");
        assert_eq!(bridge.got.lock().unwrap().len(), 1, "{reason}");
    }
}

#[test]
fn an_interrupt_ends_the_wait_for_a_busy_bridge() {
    let (asked, seen) = std::sync::mpsc::channel();
    let bridge = Bridge::raw(move |got| {
        asked.send(()).unwrap();
        let data = json!({"reason": "busy", "retryAfterMs": 20_000});
        ok(&json!({"jsonrpc": "2.0", "error": {"code": -32002, "message": "no", "data": data}, "id": id_of(got)}))
    });
    let child = tool_cli(&bridge, &CALL).arg("--timeout=60s").stderr(Stdio::piped()).spawn().unwrap();
    seen.recv().unwrap();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(told(&child.wait_with_output().unwrap()).0, Some(130));
}

#[test]
fn a_deep_result_takes_no_memory_for_its_indentation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out").display().to_string();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    // As deep as a result may be, and wide: 100 times as large once it is indented.
    let wide = format!("{}{}1{}", "[".repeat(125), "1,".repeat(200_000), "]".repeat(125));
    for (json, raw) in [(deep, true), (wide, false)] {
        let text = format!(r#"{{"content":[],"structuredContent":{{"a":{json}}}}}"#);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{text}}}"#);
        let bridge = Bridge::raw(move |_| http(200, &answer));
        for to in ["/dev/null", file.as_str()] {
            let limited = "ulimit -v 131072; exec \"$0\" s t {} >\"$1\"";
            let mut command = std::process::Command::new("/bin/sh");
            command.args(["-c", limited, env!("CARGO_BIN_EXE_tool-cli"), to]).env_clear().stdin(Stdio::null());
            command.env("TOOL_CLI_PORT", bridge.port.to_string()).env("TOOL_CLI_TOKEN", TOKEN);
            let (code, _, stderr) = run(&mut command);
            assert_eq!(code, Some(0), "{to} {stderr}");
        }
        let printed = fs::read_to_string(&file).unwrap();
        assert_eq!(printed.lines().count() == 1, raw, "{} bytes", printed.len());
        assert_eq!(printed.replace([' ', '\n'], ""), format!(r#"{{"a":{json}}}"#));
    }
}

/// A listener of another user, which tells of what it got.
fn of_user(uid: u32, accepts: usize) -> (u16, std::thread::JoinHandle<Vec<u8>>) {
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // Of this thread alone: a socket is of the user that made it.
        nix::unistd::setfsuid(nix::unistd::Uid::from_raw(uid));
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        send.send(listener.local_addr().unwrap().port()).unwrap();
        let mut got = Vec::new();
        for _ in 0..accepts {
            let mut stream = listener.accept().unwrap().0;
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            got.extend_from_slice(&head[..read]);
            let _ = stream.write_all(&ok(&json!({"jsonrpc": "2.0", "result": {"servers": []}, "id": 1})));
        }
        got
    });
    (receive.recv().unwrap(), thread)
}

#[test]
fn a_listener_of_another_user_never_gets_the_token() {
    const OTHER: u32 = 12_345;
    if !nix::unistd::geteuid().is_root() {
        return skipped("listeners of other users", "only root can make one".to_owned());
    }
    let listing = |port: u16| {
        let mut command = bare(&["--exit-codes"]);
        command.env("TOOL_CLI_PORT", port.to_string()).env("TOOL_CLI_TOKEN", TOKEN);
        command
    };
    let (port, got) = of_user(OTHER, 1);
    let (code, stdout, stderr) = run(&mut listing(port));
    assert_eq!((code, stdout.as_str()), (Some(3), ""), "{stderr}");
    assert!(stderr.contains("belongs to user 12345") && stderr.contains("nothing was sent"), "{stderr}");
    assert_eq!(got.join().unwrap(), b"", "nothing got there");
    let (port, got) = of_user(OTHER, 1);
    let mut batch = listing(port).arg("batch").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    batch.stdin.take().unwrap().write_all(b"{\"server\":\"s\",\"tool\":\"t\"}\n").unwrap();
    let line: Value = serde_json::from_slice(&batch.wait_with_output().unwrap().stdout).unwrap();
    let says = line["error"]["message"].as_str().unwrap();
    assert!(says.contains("belongs to user 12345") && says.contains("nothing was sent"), "{line}");
    assert_eq!(got.join().unwrap(), b"", "nothing got there");
    // Named by the operator, without a token, and of root: as ever.
    let (port, got) = of_user(OTHER, 2);
    assert_eq!(run(listing(port).env("TOOL_CLI_LISTENER_UID", "12345")).0, Some(0));
    assert_eq!(run(listing(port).env_remove("TOOL_CLI_TOKEN")).0, Some(0));
    assert!(String::from_utf8(got.join().unwrap()).unwrap().contains(TOKEN));
}

#[test]
fn a_port_that_is_none_is_told_of_and_no_program_reads_more_than_it_did() {
    // Only what is said is looked at: something may listen on the port that is used.
    let told = |more: &[&str], port: &str| {
        let mut command = bare(&["s", "--timeout", "200ms"]);
        run(command.args(more).env("TOOL_CLI_PORT", port).env("TOOL_CLI_HOST", "127.0.0.9")).2
    };
    let note = "Note: TOOL_CLI_PORT is \"7179x\", which is no port from 1 to 65535: 7179 is used\n";
    assert!(told(&[], "7179x").starts_with(note));
    for (more, port) in [([].as_slice(), ""), (&[], "1"), (&["--json"], "7179x")] {
        assert!(!told(more, port).contains("Note:"), "{more:?} {port}");
    }
}
