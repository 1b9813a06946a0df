//! Prompts as a guest gets them under a policy: hidden ones do not exist, denied ones are named, arguments are checked.

use std::{collections::BTreeMap, sync::Arc};

use footbridge_core::{catalogue::Offered, limits::ServerLimits};
use serde_json::{Value, json, value::RawValue};

use crate::world::{ANSWER, World};

const RULES: &str = r#"
[policies.test]
reveal_rules = true
[[policies.test.rules]]
decision = "hide"
prompt = "secret_*"
[[policies.test.rules]]
decision = "hide"
kind = "completion"
prompt = "quiet"
[[policies.test.rules]]
decision = "deny"
kind = "completion"
uri = "file:///denied/**"
[[policies.test.rules]]
id = "no Bern"
decision = "deny"
kind = "prompt"
arguments = [{ at = "/city", equals = "Bern" }]
[[policies.test.rules]]
decision = "ask"
kind = "prompt"
prompt = "asked"
[[policies.test.rules]]
decision = "allow"
"#;

/// A server `s` with these prompts, each of which takes a city, and may take a day; and `none` without any.
fn world(prompts: &[&str]) -> World {
    let mut catalogue = Offered::default();
    for name in prompts {
        let prompt = json!({"name": name, "title": "T", "description": "D", "_meta": {"n": 1},
            "arguments": [{"name": "city", "required": true}, {"name": "day"}]});
        let raw = RawValue::from_string(prompt.to_string()).unwrap();
        catalogue.add_prompt(raw, &ServerLimits::default()).unwrap();
    }
    for template in ["file:///{path}", "file:///denied/{path}"] {
        let raw = RawValue::from_string(json!({"uriTemplate": template, "name": "t"}).to_string()).unwrap();
        catalogue.add_template(raw, &ServerLimits::default()).unwrap();
    }
    let all = [("s", Arc::new(catalogue)), ("none", Arc::default())];
    let all: BTreeMap<_, _> = all.into_iter().map(|(name, offers)| (name.parse().unwrap(), offers)).collect();
    World::over(all, RULES, "test")
}

fn get(world: &World, prompt: &str, arguments: Value) -> Value {
    world.asks("getPrompt", &json!({"server": "s", "prompt": prompt, "arguments": arguments}))
}

fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["reason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// An answer without what differs from call to call.
fn plain(mut answer: Value) -> Value {
    if let Some(data) = answer["error"]["data"].as_object_mut() {
        data.remove("auditId");
    }
    answer
}

#[test]
fn hidden_and_unknown_prompts_are_the_same_bytes() {
    let (full, bare) = (world(&["open", "secret_one"]), world(&["open"]));
    let requests = [
        ("listPrompts", json!({"server": "s"})),
        ("getPrompt", json!({"server": "s", "prompt": "secret_one", "arguments": {"city": "Bern"}})),
        ("getPrompt", json!({"server": "s", "prompt": "secret_one", "arguments": [1]})),
        ("getPrompt", json!({"server": "s", "prompt": "nope"})),
        ("getPrompt", json!({"server": "none", "prompt": "secret_one"})),
        ("getPrompt", json!({"server": "nope", "prompt": "open"})),
        ("complete", json!({"server": "s", "ref": of_prompt("secret_one"), "argument": {"name": "city", "value": ""}})),
        ("complete", json!({"server": "s", "ref": of_prompt("secret_one"), "argument": 7})),
    ];
    for (method, params) in &requests {
        let (of_full, of_bare) = (full.asks(method, params), bare.asks(method, params));
        assert_eq!(plain(of_full), plain(of_bare), "{method} {params}");
    }
    let unknown = full.asks("getPrompt", &requests[1].1);
    assert_eq!((reason(&unknown), &unknown["error"]["code"]), ("unknown_prompt", &json!(-32602)));
    assert_eq!(unknown["error"]["data"]["discoveredPrompts"], json!(["open"]));
    let line = full.records().pop().unwrap();
    let shown = (&line["type"], &line["kind"], &line["name"], &line["id"]);
    let id = &unknown["error"]["data"]["auditId"];
    assert_eq!(shown, (&json!("refused"), &json!("prompt"), &json!("secret_one"), id), "{line}");
    assert_eq!((full.called(), bare.called()), (0, 0));
}

#[test]
fn prompts_are_listed_as_their_server_said_them() {
    let world = world(&["b", "a"]);
    let listed = &world.asks("listPrompts", &json!({"server": "s"}))["result"];
    assert_eq!((&listed["server"], listed["prompts"].as_array().unwrap().len()), (&json!("s"), 2));
    assert_eq!((&listed["prompts"][0]["name"], &listed["prompts"][0]["_meta"]["n"]), (&json!("a"), &json!(1)));
    assert_eq!(listed["prompts"][1]["arguments"][0], json!({"name": "city", "required": true}));
    let none = &world.asks("listPrompts", &json!({"server": "none"}))["result"];
    assert_eq!((&none["server"], &none["prompts"]), (&json!("none"), &json!([])));
    assert_eq!(reason(&world.asks("listPrompts", &json!({"server": "nope"}))), "unknown_server");
    let info = &world.asks("getBridgeInfo", &json!({}))["result"];
    assert_eq!(info["capabilities"]["footbridge"]["prompts"]["get"], true, "{info}");
    assert!(info["operations"].as_array().unwrap().contains(&json!("getPrompt")));
}

#[test]
fn a_prompt_is_a_call_allowed_denied_or_asked_about_and_recorded() {
    let world = world(&["open", "asked"]);
    let got = get(&world, "open", json!({"day": "x", "city": "Oslo"}));
    assert_eq!(got["result"].to_string(), ANSWER);
    let intent = world.records().into_iter().find(|line| line["type"] == "intent").unwrap();
    let shown = (&intent["kind"], &intent["name"], &intent["effects"], &intent["definition"]);
    assert_eq!(shown, (&json!("prompt"), &json!("open"), &json!(["read", "egress"]), &Value::Null), "{intent}");
    assert_eq!(intent["arguments"]["bytes"], r#"{"city":"Oslo","day":"x"}"#.len(), "{intent}");
    let denied = get(&world, "open", json!({"city": "Bern"}));
    assert_eq!((reason(&denied), &denied["error"]["data"]["rule"]), ("denied_by_policy", &json!("no Bern")));
    let message = denied["error"]["message"].as_str().unwrap();
    assert!(message.contains("prompt \"open\" on server \"s\" is denied by policy"), "{message}");
    let asked = get(&world, "asked", json!({"city": "Oslo"}));
    assert!(asked["error"]["message"].as_str().unwrap().contains("nobody can be asked"), "{asked}");
    assert_eq!(world.records().pop().unwrap()["decision"], "ask");
    assert_eq!(world.called(), 1);
}

#[test]
fn arguments_are_strings_that_the_prompt_takes() {
    let world = world(&["open"]);
    for (arguments, part) in [
        (json!({"city": 7}), "strings is required"),
        (json!([]), "strings is required"),
        (json!({}), "it needs \"city\""),
        (Value::Null, "it needs \"city\""),
        (json!({"city": "x", "town": "y"}), "\"town\" is none of them, it takes \"city\", \"day\""),
        (json!({"city": "x", "y".repeat(20_000): "y"}), "is none of them"),
    ] {
        let answer = get(&world, "open", arguments);
        assert_eq!((reason(&answer), &answer["error"]["code"]), ("invalid_arguments", &json!(-32602)));
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(part) && message.contains("\"s/open\"") && message.len() < 1000, "{message}");
        assert!(answer["error"]["data"]["auditId"].is_string(), "{answer}");
    }
    assert!(get(&world, "open", json!({"city": "x".repeat(100_000)}))["result"].is_object());
    let missing = world.asks("getPrompt", &json!({"server": "s"}));
    assert_eq!(missing["error"]["message"], "Missing or invalid parameter: \"prompt\" (string required)");
    assert_eq!(world.called(), 1);
}

fn complete(world: &World, about: Value, argument: Value) -> Value {
    world.asks("complete", &json!({"server": "s", "ref": about, "argument": argument}))
}

fn of_prompt(name: &str) -> Value {
    json!({"type": "ref/prompt", "name": name})
}

fn of_template(uri: &str) -> Value {
    json!({"type": "ref/resource", "uri": uri})
}

#[test]
fn a_completion_is_a_call_of_its_own_kind() {
    let world = world(&["open", "quiet"]);
    let city = || json!({"name": "city", "value": "B"});
    assert_eq!(complete(&world, of_prompt("open"), city())["result"].to_string(), ANSWER);
    assert_eq!(complete(&world, of_template("file:///{path}"), city())["result"].to_string(), ANSWER);
    let intents: Vec<Value> = world.records().into_iter().filter(|line| line["type"] == "intent").collect();
    let shown: Vec<_> = intents.iter().map(|line| (&line["kind"], &line["name"])).collect();
    let kind = &json!("completion");
    assert_eq!(shown, [(kind, &json!("open")), (kind, &json!("file:///{path}"))]);
    let denied = complete(&world, of_template("file:///denied/{path}"), city());
    assert_eq!(reason(&denied), "denied_by_policy");
    assert!(denied["error"]["message"].as_str().unwrap().contains("completion \"file:///denied/{path}\" on server"));
    for (about, expected) in [
        (of_prompt("nope"), "unknown_prompt"),
        (of_prompt("secret_one"), "unknown_prompt"),
        (of_prompt("quiet"), "unknown_prompt"),
        (of_template("file:///nope"), "unknown_resource"),
        (json!({"type": "ref/tool", "name": "open"}), "bad_request"),
        (json!({"type": "ref/prompt", "uri": "open"}), "bad_request"),
        (json!("open"), "bad_request"),
    ] {
        assert_eq!(reason(&complete(&world, about.clone(), city())), expected, "{about}");
    }
    for argument in [json!({"name": "city"}), json!({"name": "city", "value": 7}), json!([]), Value::Null] {
        assert_eq!(reason(&complete(&world, of_prompt("open"), argument)), "invalid_arguments");
    }
    assert!(get(&world, "quiet", json!({"city": "Oslo"}))["result"].is_object(), "only its completions are hidden");
    assert_eq!(world.called(), 3);
}
