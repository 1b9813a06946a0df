//! What a guest sees of a policy: nothing of what is hidden, and a plain word about what is denied.

use serde_json::{Value, json};

use crate::world::{ANSWER, World, config};

const READS: &str = r#"{"readOnlyHint":true,"openWorldHint":false}"#;
const ANYTHING: &str = "{}";

/// Hides a tool by name, tools by what they do, resources, and a whole server.
const HIDING: &str = r#"
[policies.test]
[[policies.test.rules]]
decision = "hide"
server = "a"
tool = "secret_*"
[[policies.test.rules]]
decision = "hide"
server = "b"
effects = "destructive"
[[policies.test.rules]]
decision = "hide"
uri = "file:///secret/**"
[[policies.test.rules]]
decision = "hide"
server = "vault"
[[policies.test.rules]]
decision = "allow"
"#;

/// An answer or a record's line without what differs from call to call.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for key in ["\"auditId\":\"", "\"id\":\"", "\"time\":\"", "\"peer\":\"", "\"hash\":\"", "\"prev\":\""] {
        while let Some(at) = text.find(key) {
            let end = at + key.len() + text[at + key.len()..].find('"').unwrap() + 1;
            text.replace_range(at..end, "");
        }
    }
    text
}

fn requests() -> Vec<(&'static str, Value)> {
    let mut all = vec![("listServers", json!({})), ("getBridgeInfo", json!({}))];
    all.extend(["one", "secret", "wipe t", "description"].map(|query| ("searchTools", json!({ "query": query }))));
    for server in ["a", "b", "vault", "nope"] {
        all.push(("searchTools", json!({"query": "e", "server": server})));
        all.push(("listTools", json!({"server": server, "full": true})));
        for method in ["listTools", "listResources", "listResourceTemplates"] {
            all.push((method, json!({ "server": server })));
        }
        for tool in ["one", "secret_one", "wipe", "nope", "t"] {
            for method in ["describeTool", "callTool", "checkCall"] {
                all.push((method, json!({"server": server, "tool": tool})));
                all.push((method, json!({"server": server, "tool": tool, "arguments": [1]})));
            }
        }
        let uris = ["file:///open", "file:///secret/x", "file:///secret/none", "file:///none", "file:///a/../secret/x"];
        all.extend(uris.iter().map(|uri| ("readResource", json!({"server": server, "uri": uri}))));
    }
    all
}

/// The same policy, over servers that have what it hides and over servers that do not: nobody can tell which is which.
#[test]
fn what_is_hidden_and_what_does_not_exist_are_the_same_bytes() {
    let full = World::with(
        &[
            ("a", &[("one", READS), ("secret_one", READS)], &["file:///open", "file:///secret/x"]),
            ("b", &[("one", READS), ("wipe", ANYTHING)], &["file:///secret/x"]),
            ("vault", &[("t", READS)], &["file:///open"]),
        ],
        HIDING,
        "test",
    );
    let bare =
        World::with(&[("a", &[("one", READS)], &["file:///open"]), ("b", &[("one", READS)], &[])], HIDING, "test");
    for (method, params) in requests() {
        let (of_full, of_bare) = (full.answer(method, &params), bare.answer(method, &params));
        assert_eq!(plain(&of_full), plain(&of_bare), "{method} {params}");
        let hidden = ["secret_one", "wipe", "vault", "file:///secret/x"].map(|word| format!("\"{word}\""));
        let listing = method.starts_with("list") || method == "searchTools" || method == "getBridgeInfo";
        assert!(!listing || !hidden.iter().any(|word| of_full.contains(word.as_str())), "{method}: {of_full}");
    }
    // Only what is seen was called, and the record is the same but for its times and numbers.
    assert_eq!(full.called(), bare.called());
    let lines = |world: &World| -> Vec<String> {
        let calls = world.records().into_iter().filter(|line| line["type"] == "intent" || line["type"] == "refused");
        calls
            .map(|mut line| {
                for differs in ["seq", "mono"] {
                    line[differs] = Value::Null;
                }
                plain(&line.to_string())
            })
            .collect()
    };
    assert_eq!(lines(&full), lines(&bare));
    assert_eq!(full.call("a", "one", &json!({}))["result"]["content"][0]["text"], "done");
    let read = full.asks("readResource", &json!({"server": "a", "uri": "file:///open"}));
    assert!(read["result"].is_object(), "{read}");
}

#[test]
fn a_call_that_is_denied_is_recorded_before_it_is_answered_and_goes_nowhere() {
    let settings = "[policies.test]\nreveal_rules = true\n[[policies.test.rules]]\nid='no pushing'\ndecision='deny'\n\
                    arguments=[{at='/force',equals=true}]\n[[policies.test.rules]]\ndecision='allow'\neffects='read'\n";
    let world = World::with(&[("git", &[("log", READS), ("push", ANYTHING)], &[])], settings, "test");
    let denied = world.call("git", "push", &json!({"force": true}));
    let error = &denied["error"];
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32001), &json!("denied_by_policy")));
    assert_eq!((&error["data"]["rule"], &error["data"]["policy"]), (&json!("no pushing"), &json!("test")));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("tool \"push\" on server \"git\" is denied by policy"), "{message}");
    let line = world.records().pop().unwrap();
    assert_eq!(line["id"], error["data"]["auditId"]);
    for (key, value) in [
        ("type", json!("refused")),
        ("reason", json!("denied_by_policy")),
        ("decision", json!("deny")),
        ("policy", json!("test")),
        ("rule", json!("no pushing")),
        ("effects", json!(["write", "destructive", "egress"])),
    ] {
        assert_eq!(line[key], value, "{key}: {line}");
    }
    let asked = world.call("git", "push", &json!({"force": false}));
    assert_eq!((&asked["error"]["code"], &asked["error"]["data"]["rule"]), (&json!(-32001), &Value::Null));
    assert!(asked["error"]["message"].as_str().unwrap().contains("nobody can be asked"), "{asked}");
    assert_eq!(world.called(), 0);
    let line = world.records().pop().unwrap();
    assert_eq!((&line["type"], &line["decision"]), (&json!("refused"), &json!("ask")));
    assert!(world.call("git", "log", &json!({"force": false}))["result"].is_object());
    let intent = world.records().into_iter().find(|line| line["type"] == "intent").unwrap();
    assert_eq!((&intent["rule"], &intent["effects"]), (&json!("2"), &json!(["read"])));
}

#[test]
fn a_check_says_what_a_call_would_hear_makes_none_and_is_recorded_where_it_is_refused() {
    let settings = |reveal: bool| {
        format!(
            "[policies.test]\nreveal_rules = {reveal}\n[[policies.test.rules]]\nid='small'\ndecision='allow'\n\
             arguments=[{{at='/n',range={{max=3}}}}]\n[[policies.test.rules]]\ndecision='deny'\ntool='two'\n"
        )
    };
    let has: crate::world::Has<'_> = &[("s", &[("one", READS), ("two", READS)], &[])];
    let check = |world: &World, tool: &str, arguments: Value| {
        world.asks("checkCall", &json!({"server": "s", "tool": tool, "arguments": arguments}))
    };
    let quiet = World::with(has, &settings(false), "test");
    assert_eq!(check(&quiet, "two", json!({"n": 3}))["result"], json!({"decision": "allow"}));
    assert_eq!(check(&quiet, "two", json!({"n": 4}))["result"], json!({"decision": "deny"}));
    assert_eq!(check(&quiet, "one", json!({}))["result"], json!({"decision": "ask"}));
    let wrong = check(&quiet, "one", json!([]));
    assert_eq!(wrong["error"]["data"]["reason"], "invalid_arguments", "{wrong}");
    assert!(wrong["error"]["data"]["auditId"].is_string(), "{wrong}");
    assert_eq!(check(&quiet, "none", json!({}))["error"]["data"]["reason"], "unknown_tool");
    let open = World::with(has, &settings(true), "test");
    let told = json!({"decision": "allow", "policy": "test", "rule": "small"});
    assert_eq!(check(&open, "two", json!({"n": 3}))["result"], told);
    assert_eq!(check(&open, "one", json!({}))["result"], json!({"decision": "ask", "policy": "test"}));
    for (world, unresolved) in [(&quiet, vec!["invalid_arguments", "unknown_tool"]), (&open, vec![])] {
        assert_eq!(world.called(), 0);
        let records = world.records();
        assert!(records.iter().all(|line| line["type"] != "intent"));
        let refused: Vec<&str> = records
            .iter()
            .filter(|line| line["type"] == "refused")
            .filter_map(|line| line["reason"].as_str())
            .collect();
        assert_eq!(refused, unresolved, "what does not resolve is recorded as a call's is");
    }
    let info = quiet.asks("getBridgeInfo", &json!({}));
    assert!(info["result"]["operations"].as_array().unwrap().contains(&json!("checkCall")), "{info}");
}

#[test]
fn tools_are_searched_as_far_as_they_are_seen() {
    let has: crate::world::Has<'_> =
        &[("a", &[("one", READS), ("secret_one", READS)], &[]), ("b", &[("one", READS), ("two", READS)], &[])];
    let world = World::with(has, HIDING, "test");
    let found = |params: Value| -> Vec<String> {
        let answer = world.asks("searchTools", &params);
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        tools.iter().map(|tool| format!("{}/{}", tool["server"], tool["name"]).replace('"', "")).collect()
    };
    assert_eq!(found(json!({"query": "ONE secret"})), ["a/one", "b/one"]);
    assert_eq!(found(json!({"query": "o", "server": "b"})), ["b/one", "b/two"]);
    assert_eq!(found(json!({"query": "o", "limit": 1})), ["a/one"]);
    assert_eq!(found(json!({"query": "o", "limit": 1_000_000})).len(), 3);
    let shown = &world.asks("searchTools", &json!({"query": "two"}))["result"]["tools"];
    let two = json!({"server": "b", "name": "two", "description": "(no description)", "hasStructuredOutput": false});
    assert_eq!(*shown, json!([two]));
    for server in ["vault", "nope"] {
        let unknown = world.asks("searchTools", &json!({"query": "one", "server": server}));
        assert_eq!(unknown["error"]["data"]["reason"], "unknown_server");
    }
    let info = &world.asks("getBridgeInfo", &json!({}))["result"]["capabilities"]["footbridge"];
    assert_eq!(
        (&info["searchTools"], &info["checkCall"], &info["streaming"]),
        (&json!(true), &json!(true), &json!(true))
    );
    assert_eq!(world.called(), 0);
}

#[test]
fn a_full_listing_says_all_of_each_tool_and_what_is_decided_about_it() {
    let settings = format!(
        "[[policies.test.rules]]\ndecision='hide'\ntool='secret_*'\n{}",
        [("ask", "asks"), ("deny", "denied"), ("allow", "*")]
            .map(|(word, tool)| format!("[[policies.test.rules]]\ndecision='{word}'\ntool='{tool}'\n"))
            .concat()
    );
    let tools: &[_] = &[("asks", READS), ("denied", READS), ("one", READS), ("secret_one", READS)];
    let world = World::with(&[("s", tools, &[])], &settings, "test");
    let list = &world.asks("listTools", &json!({"server": "s", "full": true}))["result"];
    assert_eq!(list["decisions"], json!({"asks": "ask", "denied": "deny"}), "{list}");
    let all = list["tools"].as_array().unwrap();
    let described = |name: &str| world.asks("describeTool", &json!({"server": "s", "tool": name}))["result"].clone();
    assert_eq!(*all, ["asks", "denied", "one"].map(described), "what is hidden is not there");
    let found = &world.asks("searchTools", &json!({"query": "asks", "full": true}))["result"]["tools"];
    assert_eq!(found[0]["definition"], described("asks"));
    assert_eq!(found[0]["decision"], "ask");
    let wrong = world.asks("listTools", &json!({"server": "s", "full": 1}));
    assert!(wrong["error"]["message"].as_str().unwrap().contains("\"full\" (true or false required)"), "{wrong}");
    for server in ["vault", "nope"] {
        let unknown = world.asks("listTools", &json!({"server": server, "full": true}));
        assert_eq!(unknown["error"]["data"]["reason"], "unknown_server");
    }
}

#[test]
fn a_budget_of_bytes_is_held() {
    let settings =
        "[policies.test]\nargument_bytes = 20\nresult_bytes = 100\n[[policies.test.rules]]\ndecision='allow'\n";
    let has: crate::world::Has<'_> = &[("s", &[("t", READS)], &[])];
    let world = World::with(has, settings, "test");
    let spent = |answer: &Value| {
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]["reason"]),
            (&json!(-32002), &json!("budget_spent"))
        );
        assert!(answer["error"]["data"]["auditId"].is_string(), "{answer}");
    };
    // `{"x":"aaaaaa"}` is 14 bytes, and each answer 43.
    assert!(world.call("s", "t", &json!({"x": "aaaaaa"}))["result"].is_object());
    spent(&world.call("s", "t", &json!({"x": "aaaaaa"})));
    assert_eq!(world.called(), 1, "what is over the budget does not leave");
    let refused = world.records().pop().unwrap();
    assert_eq!((&refused["reason"], &refused["decision"]), (&json!("budget_spent"), &json!("allow")));
    assert!(world.call("s", "t", &json!({}))["result"].is_object());
    let kept_back = world.call("s", "t", &json!({}));
    spent(&kept_back);
    assert!(kept_back["error"]["message"].as_str().unwrap().contains("The call was made"), "{kept_back}");
    assert_eq!(world.called(), 3);
    let outcome = world.records().pop().unwrap();
    assert_eq!((&outcome["outcome"], &outcome["bytes"]), (&json!("ok"), &json!(ANSWER.len())), "{outcome}");
    assert!(outcome["detail"].as_str().unwrap().contains("budget"));

    let results = World::with(has, &settings.replace("100", &ANSWER.len().to_string()).replace("20", "1000"), "test");
    assert!(results.call("s", "t", &json!({}))["result"].is_object());
    spent(&results.call("s", "t", &json!({})));
    assert_eq!(results.called(), 1, "nothing is left for any result");
}

#[test]
fn a_result_that_a_budget_keeps_back_ends_the_stream_of_a_client_that_takes_events() {
    let settings = format!(
        "[policies.test]\nresult_bytes = {}\n[[policies.test.rules]]\ndecision='allow'\n",
        ANSWER.len() + ANSWER.len() / 2
    );
    let world = World::with(&[("s", &[("t", READS)], &[])], &settings, "test");
    let params = json!({"server": "s", "tool": "t", "arguments": {}});
    assert!(world.call("s", "t", &json!({}))["result"].is_object());
    let (head, text) = world.events("callTool", &params);
    assert!(head.contains("content-type: text/event-stream"), "the call was made: {head}");
    let last = text.strip_suffix("\n\n").and_then(|text| text.rsplit("\n\n").next()).expect("an event that ends");
    let answer: Value = serde_json::from_str(last.strip_prefix("event: result\ndata: ").unwrap()).unwrap();
    assert_eq!(answer["error"]["data"]["reason"], "budget_spent");
    assert_eq!(world.called(), 2, "it was made, and its result kept back");
    // What is over the budget before it leaves was not made: that is one answer.
    let (head, _) = world.events("callTool", &json!({"server": "s", "tool": "nope", "arguments": {}}));
    assert!(head.contains("content-type: application/json"), "{head}");
}

#[test]
fn a_session_gets_the_new_rules_of_its_policy_and_keeps_the_old_ones_where_there_are_none() {
    let has: crate::world::Has<'_> = &[("s", &[("one", READS), ("two", READS)], &[])];
    let settings = |word: &str| format!("[[policies.test.rules]]\ndecision='{word}'\ntool='one'\n");
    let world = World::with(has, &settings("allow"), "test");
    assert!(world.call("s", "one", &json!({}))["result"].is_object());
    let reloaded = world.harness().reload(config(&settings("hide")).unwrap());
    assert!(reloaded.policies.gone.is_empty());
    assert_eq!(world.call("s", "one", &json!({}))["error"]["data"]["discoveredTools"], json!(["two"]));
    let reloaded = world.harness().reload(config("").unwrap());
    assert_eq!(reloaded.policies.gone.len(), 1);
    assert_eq!(world.call("s", "one", &json!({}))["error"]["data"]["reason"], "unknown_tool");
    assert!(config(&settings("maybe")).is_err(), "a file with a mistake is not taken");
}
