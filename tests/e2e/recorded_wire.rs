//! The wire, as the public server of generation 0 was recorded, and the order of its checks.

use footbridge_tests::{Answer, Bridge, Guest, Host, Servers, vectors};
use serde_json::{Value, json};

/// The bridge of the recorded servers, once they have all started.
fn recorded_bridge() -> Bridge {
    ready(Host::with(&Servers::recorded()).opens())
}

/// A bridge whose servers have all answered.
fn ready(bridge: Bridge) -> Bridge {
    let listed = bridge.guest.asks("listServers", json!({}));
    for server in listed["result"]["servers"].as_array().unwrap() {
        let listed = bridge.guest.asks("listTools", json!({"server": server["name"]}));
        assert!(listed["result"].is_object(), "{listed}");
    }
    bridge
}

#[test]
fn every_recorded_request_gets_its_recorded_answer() {
    let bridge = recorded_bridge();
    let cases = vectors::cases("tool-cli-0.3.0-wire.json");
    assert!(cases.len() > 25, "{}", cases.len());
    for case in cases {
        let answer = bridge.guest.sends(&bytes_of(&case["request"], &bridge.guest.token)).answer();
        let mut expected = case["response"].clone();
        if case["name"] == "null body" {
            // Recorded as an accident of that server.
            let error = json!({"code": -32600, "message": "Invalid Request"});
            expected = json!({"status": 200, "contentType": "application/json", "json":
                {"jsonrpc": "2.0", "error": error, "id": null}});
        }
        assert_eq!(json!(answer.status), expected["status"], "{case}\n{answer:?}");
        assert_eq!(answer.header("content-type"), expected["contentType"].as_str(), "{case}");
        assert_eq!(comparable(without_ours(answer.json())), comparable(expected["json"].clone()), "{case}");
    }
}

/// Without what is beside what that server said of its servers.
fn without_ours(mut answer: Value) -> Value {
    for server in answer.pointer_mut("/result/servers").and_then(Value::as_array_mut).into_iter().flatten() {
        let server = server.as_object_mut().unwrap();
        assert!(["serverInfo", "catalogue"].iter().all(|member| server.remove(*member).is_some()));
    }
    if let Some(listed) = answer.pointer_mut("/result").and_then(Value::as_object_mut) {
        listed.remove("catalogue");
    }
    answer
}

/// A recorded request as bytes; its client sent a content type with every body.
fn bytes_of(request: &Value, token: &str) -> Vec<u8> {
    let text = |name: &str| request[name].as_str().unwrap();
    let body = match &request["body"] {
        Value::String(body) => body.clone(),
        Value::Object(much) => {
            much["repeat"].as_str().unwrap().repeat(usize::try_from(much["times"].as_u64().unwrap()).unwrap())
        }
        _ => String::new(),
    };
    let mut head = format!("{} {} HTTP/1.1\r\nHost: 127.0.0.1:7179\r\n", text("method"), text("path"));
    if let Some(auth) = request["auth"].as_str() {
        head += &format!("Authorization: {}\r\n", auth.replace("<token>", token));
    }
    if request["body"].is_null() {
        return format!("{head}\r\n").into_bytes();
    }
    head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body.into_bytes()].concat()
}

/// What must be the same: lists of names in any order, and without what may be added to an error.
fn comparable(mut response: Value) -> Value {
    if let Some(error) = response.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("data");
        let message = error["message"].as_str().unwrap().to_owned();
        if let Some((before, names)) = message.split_once("Connected: ") {
            let mut names: Vec<&str> = names.split(", ").collect();
            names.sort_unstable();
            error.insert("message".to_owned(), json!(format!("{before}Connected: {}", names.join(", "))));
        }
    }
    for list in ["servers", "tools"] {
        let Some(entries) = response.pointer_mut(&format!("/result/{list}")).and_then(Value::as_array_mut) else {
            continue;
        };
        entries.sort_by_key(|entry| entry["name"].as_str().unwrap().to_owned());
        for examples in entries.iter_mut().filter_map(|entry| entry.get_mut("examples")) {
            examples.as_array_mut().unwrap().sort_by_key(ToString::to_string);
        }
    }
    response
}

/// A request that can be wrong in every way that the head can.
struct Head {
    host: &'static str,
    extra: &'static str,
    path: &'static str,
    method: &'static str,
    auth: String,
    framing: &'static str,
    content_type: &'static str,
}

impl Head {
    fn sent_by(&self, guest: &Guest, body: &str) -> Answer {
        let Self { host, extra, path, method, auth, framing, content_type } = self;
        let length = format!("Content-Length: {}\r\n", body.len());
        let (framing, body) = if framing.is_empty() {
            (length.as_str(), body.to_owned())
        } else {
            (*framing, format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{extra}{auth}{framing}Content-Type: {content_type}\r\n\r\n"
        );
        guest.sends(&[head.as_bytes(), body.as_bytes()].concat()).answer()
    }
}

#[test]
fn of_several_mistakes_in_a_request_the_first_of_the_table_is_answered() {
    let bridge = recorded_bridge();
    let guest = &bridge.guest;
    let too_large = "x".repeat(1_048_577);
    let mut head = Head {
        host: "bridge.example",
        extra: "Origin: http://127.0.0.1\r\n",
        path: "/nowhere",
        method: "PUT",
        auth: String::new(),
        framing: "Transfer-Encoding: chunked\r\n",
        content_type: "text/plain",
    };
    let short = |answer: &Answer| answer.json()["error"].as_str().unwrap().to_owned();
    let rpc = |answer: &Answer| (answer.json()["error"]["code"].clone(), answer.json()["id"].clone());

    let answer = head.sent_by(guest, "{nope");
    assert_eq!((answer.status, short(&answer)), (403, "Host not allowed".to_owned()));
    head.host = "127.0.0.1:1";
    let answer = head.sent_by(guest, "{nope");
    assert!(answer.status == 403 && short(&answer).contains("web pages"), "{answer:?}");
    for extra in ["Referer: http://localhost/\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        head.extra = extra;
        assert_eq!(head.sent_by(guest, "{nope").status, 403, "{extra}");
    }
    head.extra = "Sec-Fetch-Site: same-origin\r\n";
    assert_eq!(head.sent_by(guest, "{nope").status, 404);
    head.path = "/rpc?server=x";
    let answer = head.sent_by(guest, "{nope");
    assert_eq!((answer.status, rpc(&answer)), (405, (json!(-32600), Value::Null)));
    assert_eq!(answer.json()["error"]["message"], "Only POST accepted");
    head.method = "POST";
    for auth in ["", "Authorization: Basic eDp5\r\n", "Authorization: Bearer fbt_x\r\n", "Cookie: token=x\r\n"] {
        head.auth = auth.to_owned();
        let answer = head.sent_by(guest, "{nope");
        assert_eq!((answer.status, answer.json()), (401, json!({"error": "Unauthorized"})), "{auth}");
    }
    head.auth = format!("Authorization: Bearer {}\r\n", guest.token);
    let answer = head.sent_by(guest, "{nope");
    assert_eq!((answer.status, answer.header("connection")), (400, Some("close")));
    head.framing = "";
    assert_eq!(head.sent_by(guest, &too_large).status, 415);
    head.content_type = "application/json; charset=utf-8";
    head.extra = "Content-Encoding: gzip\r\n";
    assert_eq!(head.sent_by(guest, &too_large).status, 415);
    head.extra = "";
    let answer = head.sent_by(guest, &too_large);
    assert_eq!((answer.status, rpc(&answer)), (413, (json!(-32600), Value::Null)));
    let answer = head.sent_by(guest, "{nope");
    assert_eq!((answer.status, rpc(&answer)), (200, (json!(-32700), Value::Null)));
}

#[test]
fn of_several_mistakes_in_a_body_the_first_of_the_table_is_answered() {
    let bridge = recorded_bridge();
    let answer = |body: &str| {
        let answer = bridge.guest.posts(body);
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
        answer.json()
    };
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"callTool","params":{{"server":"weather","tool":"check_weather","arguments":{arguments}}}}}"#
        )
    };
    // Which id is not known, or it is: what is JSON and refused all the same.
    let no_json = [
        (String::new(), json!(null)),
        (r#"{"jsonrpc":"1.0","id":5,"id":6}"#.to_owned(), json!(null)),
        (r#"{"jsonrpc":"1.0","id":5,"params":{"a":{"b":1,"\u0062":2}}}"#.to_owned(), json!(5)),
        (r#"{"jsonrpc":"1.0","id":5,"method":"\ud800"}"#.to_owned(), json!(5)),
        (format!(r#"{{"jsonrpc":"1.0","id":5,"params":{}}}"#, deep(128)), json!(5)),
    ];
    for (body, id) in no_json {
        let error = answer(&body);
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(-32700), &id), "{body}: {error}");
    }
    // Body, code, start of the message; each holds the mistakes of the rows below it too.
    let rows = [
        (r#"{"jsonrpc":"1.0","id":5,"method":"nope","params":[]}"#.to_owned(), -32600, "Invalid Request"),
        (r#"{"jsonrpc":"2.0","id":5,"params":[]}"#.to_owned(), -32600, "Invalid Request"),
        (r#"{"jsonrpc":"2.0","id":5,"method":"nope","params":[]}"#.to_owned(), -32602, "Invalid params: named object"),
        (r#"{"jsonrpc":"2.0","id":5,"method":"nope","params":{}}"#.to_owned(), -32601, "Method not found: nope"),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"callTool","params":{"server":"","arguments":7}}"#.to_owned(),
            -32602,
            "Missing or invalid parameter: \"server\" (string required)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"callTool","params":{"server":"nope","tool":7,"arguments":7}}"#
                .to_owned(),
            -32602,
            "Missing or invalid parameter: \"tool\" (string required)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"readResource","params":{"server":"nope"}}"#.to_owned(),
            -32602,
            "Missing or invalid parameter: \"uri\" (string required)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"callTool","params":{"server":"nope","tool":"x","arguments":7}}"#
                .to_owned(),
            -32602,
            "Server \"nope\" not found. Connected: empty, github, weather",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"callTool","params":{"server":"weather","tool":"x","arguments":7}}"#
                .to_owned(),
            -32602,
            "Tool \"x\" not found on server \"weather\"",
        ),
        (
            call("[18446744073709551616]"),
            -32602,
            "Invalid arguments for \"weather/check_weather\": an object is required",
        ),
        (
            call(&format!(r#"{{"units":{}}}"#, deep(64))),
            -32602,
            "Invalid arguments for \"weather/check_weather\": an object is required",
        ),
        (
            call(r#"{"units":18446744073709551616}"#),
            -32602,
            "Invalid arguments for \"weather/check_weather\": the number 18446744073709551616",
        ),
        (call("null"), -32602, "Arguments do not match the input schema for \"weather/check_weather\""),
    ];
    for (body, code, message) in rows {
        let error = answer(&body);
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &json!(5)), "{body}: {error}");
        assert!(error["error"]["message"].as_str().unwrap().starts_with(message), "{body}: {error}");
    }
}

#[test]
fn a_refusal_says_to_a_program_what_a_person_reads_in_it() {
    let bridge = recorded_bridge();
    let data = |params: Value| bridge.guest.asks("callTool", params)["error"]["data"].clone();
    let unknown = data(json!({"server": "weather", "tool": "x"}));
    assert_eq!(
        (&unknown["reason"], &unknown["server"], &unknown["tool"]),
        (&json!("unknown_tool"), &json!("weather"), &json!("x"))
    );
    assert_eq!(unknown["discoveredTools"], json!(["alerts", "check_weather"]));
    let wrong = data(json!({"server": "weather", "tool": "check_weather", "arguments": {"city": 5}}));
    assert_eq!(wrong["reason"], "invalid_arguments");
    assert_eq!((&wrong["server"], &wrong["tool"]), (&json!("weather"), &json!("check_weather")));
    let violation = &wrong["validationErrors"][0];
    assert_eq!((&violation["instancePath"], &violation["keyword"]), (&json!("/city"), &json!("type")), "{wrong}");
    let error = bridge.guest.asks("callTool", json!({"server": "weather", "tool": "check_weather"}));
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.ends_with(": /: \"city\" is a required property"), "{message}");
    for refused in [unknown, wrong, data(json!({"server": "nope", "tool": "x"}))] {
        assert!(refused["auditId"].is_string(), "{refused}");
    }
}

#[test]
fn an_id_comes_back_as_it_was_written_and_a_call_needs_one() {
    let bridge = recorded_bridge();
    for id in ["123456789012345678901234567890", "-0.50", r#""\u00e9""#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"listServers"}}"#);
        let text = String::from_utf8(bridge.guest.posts(&body).body).unwrap();
        assert!(text.ends_with(&format!("\"id\":{id}}}")), "{text}");
    }
    let call = r#""method":"callTool","params":{"server":"weather","tool":"alerts"}"#;
    for id in ["", r#""id":null,"#, r#""id":[1],"#] {
        let answer = bridge.guest.posts(&format!(r#"{{"jsonrpc":"2.0",{id}{call}}}"#)).json();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null), "{id}: {answer}");
    }
    let (ran, _) = (bridge.guest.runs(&["weather", "alerts", "{}"]), ());
    assert_eq!(ran.well(), "");
}

#[test]
fn a_tool_with_a_broken_schema_is_named_before_its_arguments_are_looked_at() {
    let broken = Servers::none().misbehaving("broken", &["broken-schema"]);
    let bridge = ready(Host::with(&broken).opens());
    let error = &bridge.guest.calls("broken", "echo", json!({"anything": 1}))["error"];
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("invalid_schema")));
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("Tool \"echo\" on server \"broken\" has an invalid input schema"), "{message}");
    assert_eq!(bridge.guest.calls("broken", "fine", json!({}))["result"]["content"][0]["text"], "{}");
}

#[test]
fn a_bridge_says_what_it_is_and_only_to_those_who_hold_the_token() {
    let bridge = recorded_bridge();
    let info = &bridge.guest.asks("getBridgeInfo", json!({}))["result"];
    assert_eq!(info["bridgeProtocol"], json!({"name": "tool-cli-bridge", "major": 1, "version": "1.0"}));
    assert_eq!(info["serverImplementation"]["name"], "footbridge");
    for operation in ["getBridgeInfo", "listServers", "listTools", "describeTool", "callTool", "readResource"] {
        assert!(info["operations"].as_array().unwrap().contains(&json!(operation)), "{info}");
    }
    assert_eq!(info["capabilities"]["cancellation"]["providerAbortSignal"], true);
    let asked = r#"{"jsonrpc":"2.0","id":1,"method":"getBridgeInfo"}"#;
    assert_eq!(bridge.guest.showing("fbt_other").posts(asked).status, 401);
    let health = bridge.guest.sends(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").answer();
    assert_eq!((health.status, health.body.len()), (204, 0));
}
