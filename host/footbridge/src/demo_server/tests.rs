//! The server as a client meets it: lines in, lines out.

use std::{
    io::{BufRead, BufReader, Read, Write, pipe},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Clock, run};

struct Stopped;

impl Clock for Stopped {
    fn since_epoch(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }
}

/// What the server answers to these lines, until it ends.
fn told(lines: &[&str]) -> Vec<Value> {
    let mut output = Vec::new();
    run(lines.join("\n").as_bytes(), &mut output, Stopped).unwrap();
    output.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect()
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn tool(id: u64, name: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({"name": name, "arguments": arguments}))
}

/// The answer to the only request.
fn asked(method: &str, params: &Value) -> Value {
    told(&[&request(1, method, params)]).pop().unwrap()
}

/// The result of the only call.
fn called(name: &str, arguments: &Value) -> Value {
    told(&[&tool(1, name, arguments)]).pop().unwrap()["result"].take()
}

#[test]
fn it_agrees_to_revisions_that_it_knows_and_offers_the_newest_otherwise() {
    for (asked_for, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let answer = asked("initialize", &json!({"protocolVersion": asked_for, "capabilities": {}}));
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        assert_eq!(answer["result"]["serverInfo"]["name"], "footbridge-demo");
    }
    assert_eq!(asked("ping", &json!({}))["result"], json!({}));
}

#[test]
fn every_tool_says_what_it_takes_gives_and_may_do() {
    let answer = asked("tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 7);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()), "{tool}");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint} of {tool}");
        }
    }
    let destructive = tools.iter().filter(|tool| tool["annotations"]["destructiveHint"] == true);
    assert_eq!(destructive.map(|tool| &tool["name"]).collect::<Vec<_>>(), ["delete_all_notes"]);
}

#[test]
fn structured_results_fit_their_schemas_and_are_there_as_text_too() {
    let answer = asked("tools/list", &json!({}));
    let calls = [
        ("get_weather", json!({"city": "Zürich"})),
        ("list_cities", json!({})),
        ("now", json!({"format": "date"})),
        ("add_note", json!({"text": "milk"})),
        ("list_notes", json!({})),
        ("delete_all_notes", json!({})),
    ];
    for (name, arguments) in calls {
        let tools = answer["result"]["tools"].as_array().unwrap();
        let definition = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let result = called(name, &arguments);
        assert!(jsonschema::is_valid(&definition["inputSchema"], &arguments), "{name}");
        assert!(jsonschema::is_valid(&definition["outputSchema"], &result["structuredContent"]), "{name}: {result}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
    }
}

#[test]
fn a_city_without_weather_is_a_failed_tool_and_not_a_failed_request() {
    let result = called("get_weather", &json!({"city": "Atlantis"}));
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("Try one of: Accra"));
}

#[test]
fn wrong_arguments_are_named() {
    for (name, arguments, complaint) in [
        ("get_weather", json!({}), "\"city\" is missing"),
        ("get_weather", json!({"city": ""}), "1 to 80 characters"),
        ("get_weather", json!({"city": 7}), "1 to 80 characters"),
        ("get_weather", json!({"city": "Bergen", "units": "kelvin"}), "metric, imperial"),
        ("get_weather", json!({"city": "Bergen", "town": "x"}), "Unknown argument \"town\""),
        ("get_weather", json!([]), "Arguments are an object"),
        ("count_slowly", json!({"n": 0}), "from 1 to 600"),
        ("count_slowly", json!({"n": 1.5}), "from 1 to 600"),
        ("count_slowly", json!({}), "\"n\" is a whole number"),
    ] {
        let result = called(name, &arguments);
        assert_eq!(result["isError"], true, "{arguments}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(complaint), "{result}");
    }
}

#[test]
fn the_time_is_that_of_the_clock() {
    assert_eq!(called("now", &json!({}))["structuredContent"]["now"], "2023-11-14T22:13:20Z");
    assert_eq!(called("now", &json!({"format": "unix"}))["structuredContent"]["now"], "1700000000");
}

#[test]
fn a_note_is_a_resource_until_all_are_deleted() {
    let answers = told(&[
        &tool(1, "add_note", &json!({"text": "milk\nand bread"})),
        &request(2, "resources/list", &json!({})),
        &request(3, "resources/read", &json!({"uri": "note:///1"})),
        &tool(4, "delete_all_notes", &json!({})),
        &request(5, "resources/read", &json!({"uri": "note:///1"})),
        &request(6, "resources/templates/list", &json!({})),
    ]);
    let [changed, added, list, read, changed_again, deleted, gone, templates] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert_eq!(changed["method"], "notifications/resources/list_changed");
    assert_eq!(added["result"]["structuredContent"], json!({"id": 1, "uri": "note:///1"}));
    assert_eq!(list["result"]["resources"][0]["uri"], "note:///1");
    assert_eq!(list["result"]["resources"][0]["description"], "milk…");
    assert_eq!(read["result"]["contents"][0]["text"], "milk\nand bread");
    assert_eq!(changed_again["method"], "notifications/resources/list_changed");
    assert_eq!(deleted["result"]["structuredContent"], json!({"deleted": 1}));
    assert_eq!(gone["error"]["code"], -32002);
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "note:///{id}");
}

#[test]
fn what_is_broken_is_answered_and_the_next_line_is_read() {
    let answers = told(&[
        "{nope",
        "",
        "[]",
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"b"}"#,
        r#"{"jsonrpc":"2.0","id":"c","method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":"d","method":"prompts/list"}"#,
        r#"{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"nope"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"f","method":"ping"}"#,
    ]);
    let seen: Vec<(&Value, &Value)> = answers.iter().map(|a| (&a["id"], &a["error"]["code"])).collect();
    let expected = [
        (json!(null), json!(-32700)),
        (json!(null), json!(-32600)),
        (json!(null), json!(-32600)),
        (json!("a"), json!(-32600)),
        (json!("b"), json!(-32600)),
        (json!("c"), json!(-32602)),
        (json!("d"), json!(-32601)),
        (json!("e"), json!(-32602)),
        (json!("f"), json!(null)),
    ];
    assert_eq!(seen, expected.iter().map(|(id, code)| (id, code)).collect::<Vec<_>>());
}

/// A server on a pair of pipes, talked to line by line. Gives what was left in its output when it ended.
fn with_server(talk: impl FnOnce(&mut dyn Write, &mut dyn FnMut() -> Value)) -> String {
    let (server_in, mut client_out) = pipe().unwrap();
    let (client_in, server_out) = pipe().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| run(BufReader::new(server_in), server_out, Stopped).unwrap());
        let mut client_in = BufReader::new(client_in);
        talk(&mut client_out, &mut || {
            let mut line = String::new();
            client_in.read_line(&mut line).unwrap();
            serde_json::from_str(&line).unwrap()
        });
        drop(client_out);
        let mut rest = String::new();
        client_in.read_to_string(&mut rest).unwrap();
        rest
    })
}

fn count(id: u64, to: u64) -> String {
    let arguments = json!({"n": to, "stepMs": 1});
    request(id, "tools/call", &json!({"name": "count_slowly", "arguments": arguments, "_meta": {"progressToken": "p"}}))
}

#[test]
fn a_count_reports_each_step_and_leaves_the_server_free_for_others() {
    with_server(|send, next| {
        writeln!(send, "{}", count(1, 3)).unwrap();
        for n in 1..=3 {
            let progress = next();
            assert_eq!(progress["method"], "notifications/progress");
            assert_eq!(
                progress["params"],
                json!({"progressToken": "p", "progress": n, "total": 3, "message": format!("{n} of 3")})
            );
        }
        assert_eq!(next()["result"]["content"][0]["text"], "Counted to 3.");
        writeln!(
            send,
            "{}\n{}",
            tool(2, "count_slowly", &json!({"n": 600, "stepMs": 10_000})),
            request(3, "ping", &json!({}))
        )
        .unwrap();
        assert_eq!(next()["id"], 3);
    });
}

#[test]
fn a_cancelled_count_stops_without_an_answer_and_others_go_on() {
    let rest = with_server(|send, next| {
        let endless = json!({"n": 600, "stepMs": 10_000});
        writeln!(send, "{}", tool(1, "count_slowly", &endless)).unwrap();
        writeln!(send, "{}", count(2, 2)).unwrap();
        writeln!(
            send,
            "{}",
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        )
        .unwrap();
        assert_eq!([next()["method"].take(), next()["method"].take()], ["notifications/progress"; 2]);
        assert_eq!(next()["id"], 2);
    });
    assert_eq!(rest, "");
}

#[test]
fn the_end_of_the_input_stops_what_still_counts() {
    assert_eq!(told(&[&tool(1, "count_slowly", &json!({"n": 600, "stepMs": 10_000}))]), Vec::<Value>::new());
}

#[test]
fn only_so_many_count_at_a_time() {
    let lines: Vec<String> =
        (1..=33).map(|id| tool(id, "count_slowly", &json!({"n": 600, "stepMs": 10_000}))).collect();
    let answers = told(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(answers.len(), 1);
    assert_eq!((&answers[0]["id"], &answers[0]["result"]["isError"]), (&json!(33), &json!(true)));
}

#[test]
fn a_reader_that_left_ends_the_server_quietly() {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    run(request(1, "ping", &json!({})).as_bytes(), writer, Stopped).unwrap();
}
