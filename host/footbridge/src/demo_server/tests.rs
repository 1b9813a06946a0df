//! The server as a client meets it: lines in, lines out.

use std::{io::Cursor, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex},
    task::JoinHandle,
    time::timeout,
};

use super::{Clock, run, transport::MAX_LINE};

/// Room for all that is said in a test.
const ROOM: usize = 1024 * 1024;

struct Stopped;

impl Clock for Stopped {
    fn since_epoch(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }
}

/// What the server says to these lines, until it ends.
async fn told(lines: &[&str]) -> Vec<Value> {
    let (mut output, server_out) = duplex(ROOM);
    run(Cursor::new(lines.join("\n").into_bytes()), server_out, Stopped).await.unwrap();
    let mut said = String::new();
    output.read_to_string(&mut said).await.unwrap();
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn tool(id: u64, name: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({"name": name, "arguments": arguments}))
}

/// The answer to the only request.
async fn asked(method: &str, params: &Value) -> Value {
    told(&[&request(1, method, params)]).await.pop().unwrap()
}

/// The result of the only call.
async fn called(name: &str, arguments: &Value) -> Value {
    told(&[&tool(1, name, arguments)]).await.pop().unwrap()["result"].take()
}

#[tokio::test]
async fn it_agrees_to_revisions_that_it_knows_and_offers_the_newest_otherwise() {
    let client = json!({"name": "test", "version": "1"});
    for (asked_for, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let answer =
            asked("initialize", &json!({"protocolVersion": asked_for, "capabilities": {}, "clientInfo": client})).await;
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        assert_eq!(answer["result"]["serverInfo"]["name"], "footbridge-demo");
    }
    assert_eq!(asked("ping", &json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn every_tool_says_what_it_takes_gives_and_may_do() {
    let answer = asked("tools/list", &json!({})).await;
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

#[tokio::test]
async fn structured_results_fit_their_schemas_and_are_there_as_text_too() {
    let answer = asked("tools/list", &json!({})).await;
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
        let result = called(name, &arguments).await;
        assert!(jsonschema::is_valid(&definition["inputSchema"], &arguments), "{name}");
        assert!(jsonschema::is_valid(&definition["outputSchema"], &result["structuredContent"]), "{name}: {result}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
    }
}

#[tokio::test]
async fn a_city_without_weather_is_a_failed_tool_and_not_a_failed_request() {
    let result = called("get_weather", &json!({"city": "Atlantis"})).await;
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("Try one of: Accra"));
}

#[tokio::test]
async fn wrong_arguments_are_named() {
    for (name, arguments, complaint) in [
        ("get_weather", json!({}), "\"city\" is missing"),
        ("get_weather", json!({"city": ""}), "1 to 80 characters"),
        ("get_weather", json!({"city": 7}), "1 to 80 characters"),
        ("get_weather", json!({"city": "Bergen", "units": "kelvin"}), "metric, imperial"),
        ("get_weather", json!({"city": "Bergen", "town": "x"}), "Unknown argument \"town\""),
        ("count_slowly", json!({"n": 0}), "from 1 to 600"),
        ("count_slowly", json!({"n": 1.5}), "from 1 to 600"),
        ("count_slowly", json!({}), "\"n\" is a whole number"),
    ] {
        let result = called(name, &arguments).await;
        assert_eq!(result["isError"], true, "{arguments}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(complaint), "{result}");
    }
}

#[tokio::test]
async fn the_time_is_that_of_the_clock() {
    assert_eq!(called("now", &json!({})).await["structuredContent"]["now"], "2023-11-14T22:13:20Z");
    assert_eq!(called("now", &json!({"format": "unix"})).await["structuredContent"]["now"], "1700000000");
}

#[tokio::test]
async fn a_note_is_a_resource_until_all_are_deleted() {
    let mut client = Client::new();
    let changed = "notifications/resources/list_changed";
    client.say(&tool(1, "add_note", &json!({"text": "milk\nand bread"}))).await;
    assert_eq!(client.hears().await["method"], changed);
    assert_eq!(client.hears().await["result"]["structuredContent"], json!({"id": 1, "uri": "note:///1"}));
    client.say(&request(2, "resources/list", &json!({}))).await;
    let listed = client.hears().await["result"]["resources"][0].take();
    assert_eq!((&listed["uri"], &listed["description"]), (&json!("note:///1"), &json!("milk…")));
    client.say(&request(3, "resources/read", &json!({"uri": "note:///1"}))).await;
    assert_eq!(client.hears().await["result"]["contents"][0]["text"], "milk\nand bread");
    client.say(&tool(4, "delete_all_notes", &json!({}))).await;
    assert_eq!(client.hears().await["method"], changed);
    assert_eq!(client.hears().await["result"]["structuredContent"], json!({"deleted": 1}));
    client.say(&request(5, "resources/read", &json!({"uri": "note:///1"}))).await;
    assert_eq!(client.hears().await["error"]["code"], -32002);
    client.say(&request(6, "resources/templates/list", &json!({}))).await;
    assert_eq!(client.hears().await["result"]["resourceTemplates"][0]["uriTemplate"], "note:///{id}");
}

#[tokio::test]
async fn what_is_asked_before_the_end_is_answered() {
    let lines: Vec<String> = (1..=200).map(|id| tool(id, "add_note", &json!({"text": "milk"}))).collect();
    let said = told(&lines.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(said.len(), 400);
    for answer in said.iter().filter(|message| message["method"].is_null()) {
        assert_eq!(answer["result"]["structuredContent"]["id"], answer["id"], "in order");
    }
}

#[tokio::test]
async fn what_is_broken_is_passed_over_or_refused_and_the_next_line_is_read() {
    let said = told(&[
        "{nope",
        "",
        "[]",
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"b"}"#,
        r#"{"jsonrpc":"2.0","id":"c","method":"ping","params":[]}"#,
        &(request(1, "ping", &json!({})) + &" ".repeat(MAX_LINE)),
        r#"{"jsonrpc":"2.0","id":"d","method":"prompts/list"}"#,
        r#"{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"nope"}}"#,
        r#"{"jsonrpc":"2.0","id":"f","method":"tools/call","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"h","method":"ping"}"#,
    ])
    .await;
    let mut seen: Vec<String> = said.iter().map(|said| format!("{} {}", said["id"], said["error"]["code"])).collect();
    seen.sort_unstable();
    let mut expected = vec!["null -32600"; 5];
    expected.splice(..0, [r#""d" -32601"#, r#""e" -32602"#, r#""f" -32602"#, r#""h" null"#]);
    assert_eq!(seen, expected);
}

/// A client of a server that goes on.
struct Client {
    output: DuplexStream,
    input: BufReader<DuplexStream>,
    server: JoinHandle<()>,
}

impl Client {
    fn new() -> Self {
        let ((output, server_in), (input, server_out)) = (duplex(ROOM), duplex(ROOM));
        let server = tokio::spawn(async { run(server_in, server_out, Stopped).await.unwrap() });
        Self { output, input: BufReader::new(input), server }
    }

    async fn say(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hears(&mut self) -> Value {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Ends the input, and gives what the server still said.
    async fn ends(mut self) -> String {
        drop(self.output);
        let mut rest = String::new();
        self.input.read_to_string(&mut rest).await.unwrap();
        self.server.await.unwrap();
        rest
    }
}

fn endless(id: u64) -> String {
    tool(id, "count_slowly", &json!({"n": 600, "stepMs": 10_000}))
}

fn count(id: u64, to: u64) -> String {
    let arguments = json!({"n": to, "stepMs": 1});
    request(id, "tools/call", &json!({"name": "count_slowly", "arguments": arguments, "_meta": {"progressToken": "p"}}))
}

#[tokio::test]
async fn a_count_reports_each_step_and_leaves_the_server_free_for_others() {
    let mut client = Client::new();
    client.say(&count(1, 3)).await;
    for n in 1..=3 {
        let progress = client.hears().await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(
            progress["params"],
            json!({"progressToken": "p", "progress": n, "total": 3, "message": format!("{n} of 3")})
        );
    }
    assert_eq!(client.hears().await["result"]["content"][0]["text"], "Counted to 3.");
    client.say(&endless(2)).await;
    client.say(&request(3, "ping", &json!({}))).await;
    assert_eq!(client.hears().await["id"], 3);
}

#[tokio::test]
async fn a_cancelled_count_stops_without_an_answer_and_others_go_on() {
    let mut client = Client::new();
    client.say(&endless(1)).await;
    client.say(&count(2, 2)).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    client.say(&cancelled.to_string()).await;
    for _ in 0..2 {
        assert_eq!(client.hears().await["method"], "notifications/progress");
    }
    assert_eq!(client.hears().await["id"], 2);
    assert_eq!(client.ends().await, "");
}

#[tokio::test]
async fn the_end_of_the_input_stops_what_still_counts() {
    let mut client = Client::new();
    client.say(&endless(1)).await;
    client.say(&request(2, "ping", &json!({}))).await;
    assert_eq!(client.hears().await["id"], 2);
    assert_eq!(timeout(Duration::from_secs(4), client.ends()).await.as_deref(), Ok(""));
}

#[tokio::test]
async fn only_so_many_count_at_a_time_and_a_stopped_one_makes_room() {
    let mut client = Client::new();
    for id in 1..=33 {
        client.say(&endless(id)).await;
    }
    let refused = client.hears().await;
    assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!(33), &json!(true)));
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#).await;
    client.say(&count(34, 1)).await;
    assert_eq!(client.hears().await["method"], "notifications/progress");
    assert_eq!(client.ends().await.lines().count(), 1);
}

#[tokio::test]
async fn a_reader_that_left_ends_the_server_quietly_though_the_input_goes_on() {
    let mut client = Client::new();
    client.say(&endless(1)).await;
    drop(client.input);
    client.output.write_all((request(2, "ping", &json!({})) + "\n").as_bytes()).await.unwrap();
    timeout(Duration::from_secs(4), client.server).await.unwrap().unwrap();
}
