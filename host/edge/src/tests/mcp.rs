//! MCP on the port, spoken byte for byte: revisions, names, results, refusals, events and what ends a call.

use serde_json::{Value, json};

use super::*;

/// An answer: its head, and the JSON of its body.
fn parts(answer: &str) -> (&str, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

fn request(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

const BOTH: &str = "application/json, text/event-stream";

/// A client of one revision.
struct Speaker<'a> {
    world: &'a World,
    path: &'a str,
    headers: String,
}

impl<'a> Speaker<'a> {
    async fn initialized(world: &'a World, path: &'a str) -> Self {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}});
        let line = format!("POST {path}");
        let answer = world.answer(&line, BOTH, &request("initialize", &params)).await;
        let (head, body) = parts(&answer);
        assert_eq!(body["result"]["protocolVersion"], "2025-06-18", "{answer}");
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
        let headers = format!("\r\nMcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-06-18");
        Self { world, path, headers }
    }

    /// One without a handshake.
    fn stateless(world: &'a World, path: &'a str) -> Self {
        Self { world, path, headers: String::new() }
    }

    fn accept(&self, method: &str, params: &Value) -> String {
        if !self.headers.is_empty() {
            return format!("{BOTH}{}", self.headers);
        }
        let named = params.get("name").or(params.get("uri")).and_then(Value::as_str);
        let name = named.map_or(String::new(), |name| format!("\r\nMcp-Name: {name}"));
        format!("{BOTH}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}{name}")
    }

    fn params(&self, mut params: Value) -> Value {
        if self.headers.is_empty() {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        params
    }

    async fn begin(&self, method: &str, params: Value) -> TcpStream {
        let params = self.params(params);
        let line = format!("POST {}", self.path);
        self.world.send(&line, &self.accept(method, &params), &request(method, &params)).await
    }

    async fn says(&self, method: &str, params: Value) -> String {
        let (mut stream, mut text) = (self.begin(method, params).await, String::new());
        timeout(LONG, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        text
    }

    async fn asks(&self, method: &str, params: Value) -> Value {
        parts(&self.says(method, params).await).1
    }
}

#[tokio::test]
async fn tools_are_listed_and_called_by_one_server_and_by_all() {
    let world = World::start();
    for (path, name) in [("/mcp/maths", "double"), ("/mcp", "maths__double")] {
        for speaker in [Speaker::initialized(&world, path).await, Speaker::stateless(&world, path)] {
            let listed = speaker.asks("tools/list", json!({})).await;
            let tools = listed["result"]["tools"].as_array().unwrap();
            assert_eq!(tools[0], json!({"name": name, "inputSchema": {"type": "object"}}), "nothing is added");
            assert_eq!(tools.len(), 4);
            let called = speaker.asks("tools/call", json!({"name": name, "arguments": {"n": 21}})).await;
            assert_eq!(called["result"]["structuredContent"], json!({"twice": 42}), "{called}");
            assert_eq!(called["id"], 7);
            let is_new = speaker.headers.is_empty();
            assert_eq!(called["result"]["resultType"] == "complete", is_new, "{called}");
            assert_eq!(listed["result"]["ttlMs"] == 0 && listed["result"]["cacheScope"] == "private", is_new);
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_refused_call_is_a_result_that_says_so_and_an_unknown_name_an_error() {
    let world = World::start();
    let speaker = Speaker::initialized(&world, "/mcp").await;
    let refused = speaker.asks("tools/call", json!({"name": "maths__double", "arguments": 5})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("an object is required"), "{refused}");
    let refusal = &refused["result"]["_meta"]["footbridge/refusal"];
    assert_eq!(refusal["reason"], "invalid_arguments");
    assert!(refusal["auditId"].is_string());
    for (name, reason) in [("maths__no", "unknown_tool"), ("no__double", "unknown_server"), ("x", "unknown_server")] {
        let unknown = speaker.asks("tools/call", json!({"name": name})).await;
        assert_eq!(
            (unknown["error"]["code"].as_i64(), &unknown["error"]["data"]["reason"]),
            (Some(-32602), &json!(reason))
        );
    }
    let new = Speaker::stateless(&world, "/mcp");
    for (speaker, code) in [(&speaker, -32002), (&new, -32602)] {
        let error = speaker.asks("resources/read", json!({"uri": "a:b"})).await["error"].clone();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(code), &json!("a:b")), "{error}");
        assert_eq!(error["message"], "Resource \"a:b\" not found on any server");
        assert_eq!(
            (&error["data"]["reason"], error["data"]["auditId"].is_string()),
            (&json!("unknown_resource"), true)
        );
        let about = json!({"type": "ref/resource", "uri": "a:{b}"});
        let params = json!({"ref": about, "argument": {"name": "b", "value": ""}});
        let error = speaker.asks("completion/complete", params).await["error"].clone();
        assert_eq!(error["message"], "Resource template \"a:{b}\" not found on any server", "{error}");
        assert_eq!(error["code"], -32602);
        let error = speaker.asks("tools/call", json!({"name": "x_0123456789ab"})).await["error"].clone();
        assert_eq!(error["message"], "Tool \"x_0123456789ab\" not found on any server", "{error}");
        let error = speaker.asks("prompts/get", json!({"name": "x_0123456789ab"})).await["error"].clone();
        assert_eq!(error["message"], "Prompt \"x_0123456789ab\" not found on any server", "{error}");
    }
    let other = world.answer("POST /mcp/no", BOTH, &request("initialize", &json!({}))).await;
    assert_eq!(parts(&other).1["error"]["data"]["reason"], "unknown_server");
    world.end().await;
}

#[tokio::test]
async fn progress_goes_by_the_token_of_the_request_and_only_by_one() {
    let world = World::start();
    let speaker = Speaker::initialized(&world, "/mcp/maths").await;
    let told = speaker.says("tools/call", json!({"name": "double", "_meta": {"progressToken": "p\"1"}})).await;
    let progress = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":\
                    {\"progressToken\":\"p\\\"1\",\"progress\":1}}\n\n";
    assert!(told.contains(progress), "{told}");
    assert!(told.split_once(progress).is_some_and(|(_, after)| after.contains("{\"twice\":0}")), "{told}");
    let silent = speaker.says("tools/call", json!({"name": "double"})).await;
    assert!(silent.contains("content-type: application/json\r\n"), "{silent}");
    world.end().await;
}

#[tokio::test]
async fn a_second_request_ends_a_call_of_its_own_client_alone() {
    let mut world = World::start();
    let mut cancelled = std::mem::replace(&mut world.cancelled, mpsc::channel(1).1);
    let headers = {
        let (one, other) =
            (Speaker::initialized(&world, "/mcp/maths").await, Speaker::initialized(&world, "/mcp").await);
        let mut stream = one.begin("tools/call", json!({"name": "forever", "_meta": {"progressToken": 1}})).await;
        let mut heard = Vec::new();
        while !heard.windows(21).any(|part| part == b"notifications/progres") {
            assert!(timeout(LONG, stream.read_buf(&mut heard)).await.unwrap().unwrap() > 0);
        }
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}).to_string();
        let told = world.answer("POST /mcp", &format!("{BOTH}{}", other.headers), &cancel).await;
        assert!(told.starts_with("HTTP/1.1 202 "), "{told}");
        assert!(cancelled.try_recv().is_err(), "it was another client's");
        let told = world.answer("POST /mcp/maths", &format!("{BOTH}{}", one.headers), &cancel).await;
        assert!(told.starts_with("HTTP/1.1 202 "), "{told}");
        assert_eq!(timeout(LONG, cancelled.recv()).await.unwrap(), Some(()));
        one.headers
    };
    // Nothing of that id runs any more, and that is no fault.
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}).to_string();
    let told = world.answer("POST /mcp", &format!("{BOTH}{headers}"), &cancel).await;
    assert!(told.starts_with("HTTP/1.1 202 "), "{told}");
    world.end().await;
}

#[tokio::test]
async fn each_revision_gets_what_it_demands() {
    let world = World::start();
    let version = |text: &str| request("initialize", &json!({"protocolVersion": text}));
    for (wanted, spoken) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let answer = world.answer("POST /mcp", BOTH, &version(wanted)).await;
        assert_eq!(parts(&answer).1["result"]["protocolVersion"], spoken);
    }
    let list = request("tools/list", &json!({}));
    for (headers, expected) in [
        ("", 400),
        ("\r\nMcp-Session-Id: nope", 404),
        ("\r\nMCP-Protocol-Version: 2099-01-01", 400),
        ("\r\nMCP-Protocol-Version: 2026-07-28", 400),
        ("\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list", 400),
    ] {
        let answer = world.answer("POST /mcp", &format!("{BOTH}{headers}"), &list).await;
        assert_eq!(status(parts(&answer).0), expected, "{headers}: {answer}");
    }
    let new = Speaker::stateless(&world, "/mcp");
    let discovered = new.asks("server/discover", json!({})).await;
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]), "{discovered}");
    for gone in ["ping", "logging/setLevel", "no/such"] {
        let answer = new.says(gone, json!({"level": "info"})).await;
        assert_eq!(
            (status(parts(&answer).0), parts(&answer).1["error"]["code"].as_i64()),
            (404, Some(-32601)),
            "{gone}"
        );
    }
    let params = new.params(json!({"name": "maths__double"}));
    let accept = format!("{BOTH}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: maths__no");
    let answer = world.answer("POST /mcp", &accept, &request("tools/call", &params)).await;
    assert_eq!((status(parts(&answer).0), parts(&answer).1["error"]["code"].as_i64()), (400, Some(-32020)), "{answer}");
    world.end().await;
}

#[tokio::test]
async fn a_client_is_known_until_it_leaves_or_many_others_came() {
    let world = World::start();
    let speaker = Speaker::initialized(&world, "/mcp").await;
    assert_eq!(speaker.asks("ping", json!({})).await["result"], json!({}));
    assert_eq!(speaker.asks("logging/setLevel", json!({"level": "error"})).await["result"], json!({}));
    assert!(speaker.asks("logging/setLevel", json!({"level": "loud"})).await["error"].is_object());
    let told = world.answer("DELETE /mcp", &format!("{BOTH}{}", speaker.headers), "").await;
    assert!(told.starts_with("HTTP/1.1 204 "), "{told}");
    let gone = speaker.says("ping", json!({})).await;
    assert!(gone.starts_with("HTTP/1.1 404 "), "{gone}");
    let (first, second) = (Speaker::initialized(&world, "/mcp").await, Speaker::initialized(&world, "/mcp").await);
    for _ in 0..62 {
        Speaker::initialized(&world, "/mcp").await;
    }
    assert!(first.says("ping", json!({})).await.starts_with("HTTP/1.1 200 "));
    Speaker::initialized(&world, "/mcp").await;
    assert!(first.says("ping", json!({})).await.starts_with("HTTP/1.1 200 "), "it was used last");
    assert!(second.says("ping", json!({})).await.starts_with("HTTP/1.1 404 "), "it was used longest ago");
    for _ in 0..64 {
        world.answer("POST /mcp/no", BOTH, &request("initialize", &json!({}))).await;
    }
    assert!(first.says("ping", json!({})).await.starts_with("HTTP/1.1 200 "), "who initializes nothing takes no place");
    world.end().await;
}

#[tokio::test]
async fn what_is_no_request_is_answered_as_the_protocol_has_it() {
    let world = World::start();
    let speaker = Speaker::initialized(&world, "/mcp").await;
    let accept = format!("{BOTH}{}", speaker.headers);
    for (line, body, expected) in [
        ("POST /mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 202),
        ("POST /mcp", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 202),
        ("POST /mcp", "{", 400),
        ("POST /mcp", "[]", 400),
        ("PUT /mcp", "{}", 405),
        ("POST /mcp/", "{", 400),
        ("POST /mcp/%zz", "{}", 404),
        ("GET /mcp/%zz", "", 404),
    ] {
        let answer = world.answer(line, &accept, body).await;
        assert_eq!(status(parts(&answer).0), expected, "{line} {body}: {answer}");
    }
    let answer = world.answer("GET /mcp", BOTH, "").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "nobody in particular: {answer}");
    let answer = world.answer("PUT /mcp", &accept, "{}").await;
    let error = &parts(&answer).1["error"];
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32600), &json!("bad_request")), "{answer}");
    assert_eq!(error["message"], "Only POST, GET and DELETE accepted");
    world.end().await;
}

#[tokio::test]
async fn a_stream_of_changes_ends_with_the_harness() {
    let world = World::start();
    let speaker = Speaker::stateless(&world, "/mcp");
    let params = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let mut stream = speaker.begin("subscriptions/listen", params).await;
    let mut heard = Vec::new();
    while !heard.ends_with(b"}\n\n\r\n") {
        assert!(timeout(LONG, stream.read_buf(&mut heard)).await.unwrap().unwrap() > 0);
    }
    let heard = String::from_utf8(heard).unwrap();
    let accepted = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":\
                    {\"io.modelcontextprotocol/subscriptionId\":7},\"notifications\":{\"toolsListChanged\":true,\
                    \"promptsListChanged\":true}}}";
    assert!(heard.contains(accepted), "{heard}");
    world.end().await;
}

#[tokio::test]
async fn a_client_reads_one_stream_of_changes_which_ends_with_it() {
    let world = World::start();
    let speaker = Speaker::initialized(&world, "/mcp").await;
    let other = Speaker::initialized(&world, "/mcp").await;
    let begins = async |speaker: &Speaker<'_>| {
        let mut stream = world.send("GET /mcp", &format!("{BOTH}{}", speaker.headers), "").await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert!(timeout(LONG, stream.read_buf(&mut head)).await.unwrap().unwrap() > 0);
        }
        assert!(head.starts_with(b"HTTP/1.1 200 "));
        stream
    };
    let ends = async |mut stream: TcpStream| {
        timeout(LONG, stream.read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    };
    let (first, others) = (begins(&speaker).await, begins(&other).await);
    let second = begins(&speaker).await;
    ends(first).await;
    let told = world.answer("DELETE /mcp", &format!("{BOTH}{}", speaker.headers), "").await;
    assert!(told.starts_with("HTTP/1.1 204 "), "{told}");
    ends(second).await;
    let told = world.answer("DELETE /mcp", &format!("{BOTH}{}", other.headers), "").await;
    assert!(told.starts_with("HTTP/1.1 204 "), "{told}");
    ends(others).await;
    world.end().await;
}

#[tokio::test]
async fn a_stream_of_changes_that_is_over_a_limit_does_not_end_the_one_that_is_there() {
    let mut limits = Limits::default();
    limits.edge.heartbeat_time = Duration::from_millis(20);
    (limits.calls.listing_burst, limits.calls.listings_per_second) = (4, 1);
    let (sender, cancelled) = mpsc::channel(1);
    let world = World::within(limits, tools(sender), cancelled);
    let speaker = Speaker::initialized(&world, "/mcp").await;
    let mut there = None;
    // Each that is within the limit is the one that is there from then on.
    let mut there = loop {
        let mut stream = world.send("GET /mcp", &format!("{BOTH}{}", speaker.headers), "").await;
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            assert!(timeout(LONG, stream.read_buf(&mut head)).await.unwrap().unwrap() > 0);
        }
        let before = there.replace(stream);
        if !String::from_utf8_lossy(&head).contains("text/event-stream") {
            break before.unwrap();
        }
    };
    // What came before it was refused.
    while there.try_read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
    let (mut beats, mut heard) = (0, [0; 4096]);
    while beats < 5 {
        let read = timeout(LONG, there.read(&mut heard)).await.unwrap().unwrap();
        assert!(read > 0, "it ended after {beats}");
        beats += 1;
    }
    world.end().await;
}

#[tokio::test]
async fn three_tools_find_describe_and_call_all_others() {
    let world = World::start();
    for (path, name) in [("/mcp?mode=search", "maths__double"), ("/mcp/maths?mode=search", "double")] {
        let speaker = Speaker::initialized(&world, path).await;
        let listed = speaker.asks("tools/list", json!({})).await;
        let names: Vec<&str> =
            listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["search_tools", "describe_tool", "call_tool"]);
        let call =
            |tool: &str, arguments: Value| speaker.asks("tools/call", json!({"name": tool, "arguments": arguments}));
        let found = call("search_tools", json!({"query": "double"})).await;
        assert_eq!(found["result"]["structuredContent"]["tools"][0]["name"], name, "{found}");
        let described = call("describe_tool", json!({"name": name})).await;
        let text = described["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap()["inputSchema"], json!({"type": "object"}));
        let called = call("call_tool", json!({"name": name, "arguments": {"n": 4}})).await;
        assert_eq!(called["result"]["structuredContent"], json!({"twice": 8}), "{called}");
        for (tool, arguments) in [
            ("search_tools", json!({})),
            ("describe_tool", json!({"name": "maths__none"})),
            ("call_tool", json!({"name": "none__x"})),
            ("maths__double", json!({})),
            ("search_tools", json!(5)),
        ] {
            let refused = call(tool, arguments).await;
            assert_eq!(refused["error"]["code"], -32602, "{tool}: {refused}");
        }
    }
    world.end().await;
}

/// What a client of the revision that has tasks is answered; it goes on with the same id.
async fn with_tasks(world: &World) -> Speaker<'_> {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}});
    let answer = world.answer("POST /mcp", BOTH, &request("initialize", &params)).await;
    let (head, body) = parts(&answer);
    let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    assert_eq!(body["result"]["capabilities"]["tasks"], tasks, "{answer}");
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let headers = format!("\r\nMcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25");
    Speaker { world, path: "/mcp", headers }
}

fn as_task(name: &str, task: Value) -> Value {
    json!({"name": name, "arguments": {"n": 21}, "task": task})
}

#[tokio::test]
async fn a_call_can_be_a_task_that_its_client_asks_for_later() {
    let world = World::start();
    let speaker = with_tasks(&world).await;
    let created = speaker.asks("tools/call", as_task("maths__double", json!({"ttl": 60_000}))).await;
    let task = &created["result"]["task"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)), "{created}");
    let id = task["taskId"].as_str().unwrap();
    let result = speaker.asks("tasks/result", json!({"taskId": id})).await;
    assert_eq!(result["result"]["structuredContent"], json!({"twice": 42}), "{result}");
    assert_eq!(result["result"]["_meta"], json!({"io.modelcontextprotocol/related-task": {"taskId": id}}));
    let now = speaker.asks("tasks/get", json!({"taskId": id})).await;
    assert_eq!((&now["result"]["status"], &now["result"]["taskId"]), (&json!("completed"), &json!(id)), "{now}");
    let refused = speaker.asks("tools/call", as_task("maths__none", json!({}))).await;
    let id = refused["result"]["task"]["taskId"].as_str().unwrap();
    let result = speaker.asks("tasks/result", json!({"taskId": id})).await;
    assert_eq!(result["error"]["data"]["reason"], "unknown_tool", "{result}");
    let all = speaker.asks("tasks/list", json!({})).await;
    let states: Vec<&Value> = all["result"]["tasks"].as_array().unwrap().iter().map(|task| &task["status"]).collect();
    assert_eq!(states, ["completed", "failed"]);
    for task in [json!(5), json!({"ttl": "long"})] {
        let refused = speaker.asks("tools/call", as_task("maths__double", task)).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // The older revision knows no tasks.
    let older = Speaker::initialized(&world, "/mcp").await;
    assert_eq!(older.asks("tasks/list", json!({})).await["error"]["code"], -32601);
    let plain = older.asks("tools/call", as_task("maths__double", json!({}))).await;
    assert_eq!(plain["result"]["structuredContent"], json!({"twice": 42}), "{plain}");
    world.end().await;
}

#[tokio::test]
async fn a_task_is_its_client_s_alone_and_ends_when_that_says_so_or_leaves_or_its_time_is_over() {
    let mut world = World::start();
    let mut cancelled = std::mem::replace(&mut world.cancelled, mpsc::channel(1).1);
    let (speaker, other) = (with_tasks(&world).await, with_tasks(&world).await);
    let started = async |task: Value| {
        let created = speaker.asks("tools/call", as_task("maths__forever", task)).await;
        let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
        // Its tool runs once it has told how far it is.
        let runs = async {
            while speaker.asks("tasks/get", json!({"taskId": id})).await["result"]["statusMessage"] != "1" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, runs).await.unwrap();
        id
    };
    let id = started(json!({})).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = other.asks(method, json!({"taskId": id})).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    assert_eq!(other.asks("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    let ended = speaker.asks("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(ended["result"]["status"], "cancelled", "{ended}");
    assert_eq!(timeout(LONG, cancelled.recv()).await.unwrap(), Some(()));
    let result = speaker.asks("tasks/result", json!({"taskId": id})).await;
    assert!(result["result"]["content"].is_array(), "{result}");
    let again = speaker.asks("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");

    let short = started(json!({"ttl": 3_000})).await;
    assert_eq!(timeout(LONG, cancelled.recv()).await.unwrap(), Some(()), "its time is over");
    let forgotten = async {
        while speaker.asks("tasks/get", json!({"taskId": short})).await["result"].is_object() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, forgotten).await.unwrap();

    let id = started(json!({})).await;
    let leaves = async {
        // By then the other request waits.
        for _ in 0..3 {
            speaker.asks("tasks/get", json!({"taskId": id})).await;
        }
        world.answer("DELETE /mcp", &format!("{BOTH}{}", speaker.headers), "").await
    };
    let waits = speaker.asks("tasks/result", json!({"taskId": id}));
    let (lost, told) = timeout(LONG, async { tokio::join!(waits, leaves) }).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 204 "), "{told}");
    assert!(lost["result"]["isError"] == true || lost["error"].is_object(), "{lost}");
    assert_eq!(timeout(LONG, cancelled.recv()).await.unwrap(), Some(()), "its client left");
    drop((speaker, other));
    world.end().await;
}

#[tokio::test]
async fn only_so_many_tasks_of_a_session_are_kept() {
    let world = World::start();
    let speaker = with_tasks(&world).await;
    let mut first = None;
    for _ in 0..33 {
        let created = speaker.asks("tools/call", as_task("maths__double", json!({}))).await;
        let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
        assert!(speaker.asks("tasks/result", json!({"taskId": id})).await["result"].is_object());
        first.get_or_insert(id);
    }
    let all = speaker.asks("tasks/list", json!({})).await;
    assert_eq!(all["result"]["tasks"].as_array().unwrap().len(), 32);
    let gone = speaker.asks("tasks/get", json!({"taskId": first})).await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    world.end().await;
}

#[tokio::test]
async fn a_client_hears_of_logs_from_its_level_on() {
    let world = World::start();
    let hears = |told: &str| (told.contains("by the way"), told.contains("mind this"));
    let speaker = Speaker::initialized(&world, "/mcp").await;
    let call = json!({"name": "maths__logs"});
    let told = speaker.says("tools/call", call.clone()).await;
    assert_eq!(hears(&told), (true, true), "{told}");
    let line = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"warning\",\
                \"data\":\"mind this\"}}";
    assert!(told.contains(line), "{told}");
    for (level, expected) in [("debug", (true, true)), ("warning", (false, true)), ("error", (false, false))] {
        assert_eq!(speaker.asks("logging/setLevel", json!({"level": level})).await["result"], json!({}));
        let told = speaker.says("tools/call", call.clone()).await;
        assert_eq!(hears(&told), expected, "{level}: {told}");
    }
    // Without a handshake each request says it, and one that does not hears nothing.
    let new = Speaker::stateless(&world, "/mcp");
    assert_eq!(hears(&new.says("tools/call", call.clone()).await), (false, false));
    let leveled = json!({"name": "maths__logs", "_meta": {"io.modelcontextprotocol/logLevel": "notice"}});
    assert_eq!(hears(&new.says("tools/call", leveled).await), (false, true));
    world.end().await;
}

#[tokio::test]
async fn a_long_listing_comes_in_pages_over_all_servers() {
    let (sender, cancelled) = mpsc::channel(1);
    let silent = |_: Value, _: ToolContext| async { ToolResult::text("") };
    let many =
        (0..1001).fold(InProcess::new("many"), |tools, n| tools.tool(ToolDefinition::new(format!("t{n:04}")), silent));
    let world = World::over(Several::new().and(many.build().unwrap()).and(tools(sender)), cancelled);
    for (path, total) in [("/mcp", 1005), ("/mcp/many", 1001)] {
        let speaker = Speaker::initialized(&world, path).await;
        let first = speaker.asks("tools/list", json!({})).await["result"].clone();
        let cursor = first["nextCursor"].as_str().unwrap();
        let second = speaker.asks("tools/list", json!({"cursor": cursor})).await["result"].clone();
        assert_eq!(second.get("nextCursor"), None, "there are two pages");
        let of = |page: &Value| -> Vec<String> {
            page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        let (first, second) = (of(&first), of(&second));
        assert_eq!((first.len(), second.len()), (1000, total - 1000));
        let mut all = [first, second].concat();
        assert!(all.is_sorted(), "in the order of servers and names");
        all.dedup();
        assert_eq!(all.len(), total);
        let refused = speaker.asks("tools/list", json!({"cursor": "%"})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    world.end().await;
}
