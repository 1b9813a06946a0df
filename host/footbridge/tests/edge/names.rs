//! Names, members and numbers that two readers could take for different things.

use serde_json::{Value, json};

use crate::bridge::Bridge;

fn generous() -> Bridge {
    Bridge::with(|limits| {
        limits.calls.per_second = 10_000;
        limits.calls.burst = 10_000;
    })
}

fn error_of(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_default(), error["data"]["reason"].as_str().unwrap_or_default())
}

#[test]
fn servers_and_tools_are_found_by_their_exact_names_only() {
    let bridge = generous();
    for server in [
        "Demo",
        "DEMO",
        "demo ",
        " demo",
        "demo\0",
        "demo/",
        "/demo",
        "./demo",
        "demo/../demo",
        "x/../demo",
        "dеmo",
        "ｄｅｍｏ",
        "demo\u{200b}",
        "\u{feff}demo",
        "de\u{301}mo",
        "demo\n",
        "%64emo",
        "demo?",
        "*",
        "demo\u{202e}",
        "null",
        "__proto__",
    ] {
        let answer = bridge.rpc("callTool", &json!({"server": server, "tool": "now"}));
        assert_eq!(error_of(&answer), (-32602, "unknown_server"), "{server:?}: {answer}");
        for method in ["listTools", "listResources", "listResourceTemplates"] {
            assert_eq!(error_of(&bridge.rpc(method, &json!({ "server": server }))).0, -32602, "{server:?}");
        }
    }
    for tool in [
        "Now",
        "NOW",
        "now ",
        " now",
        "now\0",
        "now/",
        "demo/now",
        "demo__now",
        "../demo/now",
        "nоw",
        "ｎｏｗ",
        "now\u{200b}",
        "no\u{308}w",
        "now\n",
        "*",
        "n*",
        "tools/call",
        "__proto__",
    ] {
        for method in ["callTool", "describeTool"] {
            let answer = bridge.rpc(method, &json!({"server": "demo", "tool": tool}));
            assert_eq!(error_of(&answer), (-32602, "unknown_tool"), "{tool:?}: {answer}");
        }
    }
    let records = bridge.records();
    assert!(!records.iter().any(|line| line["type"] == "intent"), "one of them left");
    assert_eq!(records.iter().filter(|line| line["type"] == "refused").count(), 22 + 18, "each refusal is recorded");
}

#[test]
fn a_resource_is_named_exactly_too() {
    let bridge = generous();
    bridge.rpc("callTool", &json!({"server": "demo", "tool": "add_note", "arguments": {"text": "x"}}));
    let listed = bridge.rpc("listResources", &json!({"server": "demo"}));
    assert!(listed["result"]["resources"].is_array(), "{listed}");
    for uri in ["file:///etc/passwd", "note://../1", "NOTE://1", "http://127.0.0.1/", "\u{0}", "x"] {
        let answer = bridge.rpc("readResource", &json!({"server": "demo", "uri": uri}));
        assert!(
            matches!(error_of(&answer), (-32602, "unknown_resource") | (-32603, "provider_error")),
            "{uri:?}: {answer}"
        );
    }
}

#[test]
fn json_that_readers_take_differently_is_refused() {
    let bridge = generous();
    let call = |arguments: &str| {
        let params = format!(r#"{{"server":"demo","tool":"get_weather","arguments":{arguments}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"callTool","params":{params}}}"#)
    };
    for (body, code) in [
        (call(r#"{"city":"Bern","city":"Oslo"}"#), -32700),
        (call(r#"{"city":"Bern","\u0063ity":"Oslo"}"#), -32700),
        (call(r#"{"city":"\ud800"}"#), -32700),
        (call(r#"{"city":"\udc00\ud800"}"#), -32700),
        (call("{\"city\":\"Bern\u{0}\"}"), -32700),
        (call(r#"{"city":NaN}"#), -32700),
        (call(r#"{"city":"Bern",}"#), -32700),
        (call(r#"{city:"Bern"}"#), -32700),
        (call(r#"{"city":"Bern"} // x"#), -32700),
        (format!("\u{feff}{}", call("{}")), -32700),
        (format!("{}{}", call("{}"), call("{}")), -32700),
        (format!("[{}]", call("{}")), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"listServers","method":"callTool"}"#.into(), -32700),
        (r#"{"jsonrpc":"2.0","id":1,"meth\u006fd":"callTool","method":"listServers"}"#.into(), -32700),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"listServers"}"#.into(), -32700),
        (r#"{"JSONRPC":"2.0","id":1,"method":"listServers"}"#.into(), -32600),
        (r#"{"jsonrpc":2.0,"id":1,"method":"listServers"}"#.into(), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"listServers"}"#.into(), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":["listServers"]}"#.into(), -32600),
        (String::new(), -32700),
        ("null".into(), -32600),
        ("\"listServers\"".into(), -32600),
        ("[".repeat(500_000), -32700),
        ("{\"a\":".repeat(100_000), -32700),
        (call(&format!("{}1{}", "[".repeat(200), "]".repeat(200))), -32700),
        (call(&format!(r#"{{"city":{}1{}}}"#, "[".repeat(64), "]".repeat(64))), -32602),
        (call(r#"{"city":18446744073709551616}"#), -32602),
        (call(r#"{"city":0.1000000000000000055511151231257827}"#), -32602),
        (call(r#"{"city":1e400}"#), -32602),
        (call("[]"), -32602),
        (call("\"{}\""), -32602),
        (call(r#"{"City":"Bern"}"#), -32602),
        (call(r#"{"city":"Bern","approved":true}"#), -32602),
        (call(r#"{"city":["Bern"]}"#), -32602),
        (call(r#"{"city":"Bern","__proto__":{}}"#), -32602),
    ] {
        let answer = bridge.ask(&body);
        assert_eq!(answer.status, 200);
        let answer = answer.json();
        let shown: String = body.chars().take(200).collect();
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    }
    let mut bytes = bridge.request(&call(r#"{"city":"XX"}"#)).into_bytes();
    // The last one: a token in the head may have the same letters.
    let at = bytes.windows(2).rposition(|pair| pair == b"XX").unwrap();
    bytes[at] = 0xff;
    let mut client = bridge.connect();
    client.send(&bytes);
    assert_eq!(client.answer().json()["error"]["code"], -32700, "not UTF-8");
    assert!(!bridge.records().iter().any(|line| line["type"] == "intent"), "one of them left");
    // The same, written in another way, is the same call.
    let answer = bridge.ask(&call(r#"{ "c\u0069ty" : "B\u0065rn" }"#)).json();
    assert_eq!(answer["result"]["structuredContent"]["city"], "Bern", "{answer}");
}

#[test]
fn params_that_nobody_asked_for_change_nothing() {
    let bridge = generous();
    let answer = bridge.rpc(
        "callTool",
        &json!({
            "server": "demo", "tool": "now", "arguments": {},
            "approved": true, "approval": "x", "_meta": {"approved": true, "progressToken": 1}, "session": "other",
            "policy": "none", "auditId": "x", "sudo": true, "uri": "x", "principal": {"session": "other"},
        }),
    );
    assert!(answer["result"]["structuredContent"]["now"].is_string(), "{answer}");
    let intent = bridge.until_recorded(|line| line["type"] == "intent");
    assert_eq!((&intent["session"], &intent["policy"]), (&json!("test"), &json!("open")));
    assert_ne!(intent["id"], "x");
}

#[test]
fn there_are_no_other_methods() {
    let bridge = generous();
    for method in [
        "createSession",
        "revokeSession",
        "session/create",
        "approve",
        "allowApproval",
        "approvals/allow",
        "denyApproval",
        "shutdown",
        "reload",
        "restartServer",
        "servers/restart",
        "config",
        "audit",
        "auditTail",
        "policy",
        "tools/call",
        "tools/list",
        "initialize",
        "ping",
        "callTool ",
        "CallTool",
        "calltool",
        "callTool\0",
        "ca\u{200b}llTool",
        "rpc.discover",
        "system.listMethods",
        "constructor",
        "__proto__",
        "toString",
        "",
    ] {
        let answer = bridge.rpc(method, &json!({"server": "demo", "tool": "now"}));
        let error = &answer["error"];
        assert_eq!((&error["code"], &answer["id"]), (&json!(-32601), &json!(1)), "{method:?}: {answer}");
        assert_eq!(error["message"], format!("Method not found: {method}"));
    }
    bridge.must_have_called_nothing();
}

#[test]
fn ids_come_back_as_they_were_written() {
    let bridge = generous();
    for id in [
        "0",
        "-0",
        "1",
        "1.0",
        "1.50",
        "1e2",
        "1E+2",
        "9007199254740993",
        "123456789012345678901234567890",
        "-1",
        "\"\"",
        "\"1\"",
        r#""\u0061""#,
        r#""a\/b""#,
        "\"é\u{1f600}\"",
        r#""\ud83d\ude00""#,
        r#""\"}""#,
        r#""},\"result\":{""#,
    ] {
        for body in [
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"listServers"}}"#),
            format!(r#"{{"id": {id} ,"jsonrpc":"2.0","method":"none"}}"#),
        ] {
            let answer = bridge.ask(&body).body;
            assert!(answer.ends_with(&format!(",\"id\":{id}}}")), "{id}: {answer}");
        }
    }
    for id in ["null", "true", "[]", "{}", "[1]"] {
        let answer = bridge.ask(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"listServers"}}"#)).json();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null), "{id}");
    }
}

#[test]
fn a_guests_own_long_words_are_not_sent_back_whole() {
    let bridge = generous();
    let long = "é".repeat(400_000);
    for (method, params) in [
        (long.as_str(), json!({})),
        ("callTool", json!({"server": long, "tool": "now"})),
        ("callTool", json!({"server": "demo", "tool": long})),
        ("describeTool", json!({"server": "demo", "tool": long})),
        ("readResource", json!({"server": "demo", "uri": long})),
    ] {
        let answer = bridge.rpc(method, &params);
        assert!(answer["error"].is_object() && answer.to_string().len() < 4096, "{}", answer.to_string().len());
    }
    assert!(bridge.records().iter().all(|line| line.to_string().len() < 4096));
}
