//! The client library against recorded answers of bridges of both generations, and against refusals.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;

use bridge::{Bridge, TOKEN, http};
use footbridge_guest::{Client, ClientError, Token, answers::Block};
use serde_json::{Value, json, value::RawValue};

fn client(bridge: &Bridge) -> Client {
    Client::tcp("127.0.0.1", bridge.port, Token::parse(TOKEN).unwrap()).unwrap()
}

#[test]
fn the_four_steps_work_with_bridges_of_both_generations() {
    for generation in [0, 1] {
        let bridge = Bridge::of_generation(generation);
        let mut client = client(&bridge);
        let servers = client.servers().unwrap();
        let weather = servers.iter().find(|server| server.name == "weather").unwrap();
        let tools = client.tools("weather").unwrap();
        assert_eq!(u64::try_from(tools.len()).unwrap(), weather.tool_count);
        assert!(tools.iter().any(|tool| tool.name == "check_weather" && tool.has_structured_output));
        assert!(client.describe("weather", "check_weather").unwrap().input_schema.is_object());
        let result = client.call("weather", "check_weather", &json!({"city": "Bern"})).unwrap();
        assert_eq!(result.structured::<Value>().unwrap().unwrap()["tempC"], 21);
        let ids: Vec<Value> = bridge.got.lock().unwrap().iter().map(bridge::id_of).collect();
        assert_eq!(ids, [1, 2, 3, 4], "one request a step");
        let unknown = client.call("weather", "no_such_tool", &json!({})).unwrap_err();
        assert!(matches!(unknown, ClientError::Refused(_)), "{unknown}");
        assert_eq!(unknown.reason(), None, "bridges of both generations send none");
    }
}

#[test]
fn arguments_go_out_as_they_are_written() {
    let bridge = Bridge::result(json!({"content": [{"type": "text", "text": "a"}], "isError": true}));
    let raw = RawValue::from_string(r#"{"n": 12345678901234567890123}"#.to_owned()).unwrap();
    let result = client(&bridge).call("s", "t", &*raw).unwrap();
    assert!(result.is_error && matches!(result.blocks().next(), Some(Block::Text(text)) if text == "a"));
    assert!(bridge.first().body.contains(r#""arguments":{"n": 12345678901234567890123}"#));
}

#[test]
fn resources_are_read_as_text_and_bytes() {
    let bridge = Bridge::result(json!({"contents": [{"uri": "a:1", "text": "x"}, {"uri": "a:2", "blob": "eA=="}]}));
    let parts = client(&bridge).read("s", "a:1").unwrap();
    assert_eq!((parts[0].text.as_deref(), parts[1].bytes().unwrap().as_deref()), (Some("x"), Some(&b"x"[..])));
    let bridge = Bridge::result(json!({"server": "s", "resources": [{"uri": "a:1", "name": "one"}]}));
    assert_eq!(client(&bridge).resources("s").unwrap()[0].uri, "a:1");
    let bridge = Bridge::result(json!({"server": "s", "templates": [{"uriTemplate": "a:{n}"}]}));
    assert_eq!(client(&bridge).templates("s").unwrap()[0].uri, "a:{n}");
}

#[test]
fn what_only_footbridge_has_is_read_too() {
    let found = json!({"server": "s", "name": "t", "description": "d", "hasStructuredOutput": true});
    let bridge = Bridge::result(json!({"tools": [found]}));
    let tools = client(&bridge).search("a word", Some("s")).unwrap();
    assert_eq!((tools[0].server.as_str(), tools[0].tool.name.as_str()), ("s", "t"));
    assert!(bridge.first().body.contains(r#""query":"a word""#) && bridge.first().body.contains(r#""server":"s""#));
    let prompt = json!({"name": "p", "arguments": [{"name": "a", "required": true}], "icons": []});
    let bridge = Bridge::result(json!({"server": "s", "prompts": [prompt]}));
    assert!(client(&bridge).prompts("s").unwrap()[0].arguments.as_ref().unwrap()[0].required);
    let message = json!({"role": "user", "content": {"type": "text", "text": "x"}});
    let bridge = Bridge::result(json!({"messages": [message]}));
    let got = client(&bridge).prompt("s", "p", &json!({"a": "b"})).unwrap();
    assert!(matches!(got.messages[0].block(), Block::Text(text) if text == "x"));
    assert!(bridge.first().body.contains(r#""arguments":{"a":"b"}"#));
    let bridge = Bridge::result(json!({"completion": {"values": ["x"], "hasMore": true}}));
    let about = json!({"type": "ref/prompt", "name": "p"});
    let completion = client(&bridge).complete("s", &about, ("a", "x")).unwrap();
    assert_eq!((completion.values.as_slice(), completion.has_more), (&["x".to_owned()][..], true));
    let body: Value = serde_json::from_str(&bridge.first().body).unwrap();
    assert_eq!((&body["method"], &body["params"]["ref"]), (&json!("complete"), &about));
}

#[test]
fn a_refusal_is_typed_whatever_status_it_comes_with() {
    let wrong = Bridge::of_generation(1);
    let mut stranger = Client::tcp("127.0.0.1", wrong.port, Token::parse("fbt_other").unwrap()).unwrap();
    assert!(matches!(stranger.servers().unwrap_err(), ClientError::Unauthorized));
    let body = json!({"jsonrpc": "2.0", "id": null,
        "error": {"code": -32003, "message": "gone", "data": {"reason": "server_unavailable"}}});
    let relay = Bridge::raw(move |_| http(502, &body.to_string()));
    let error = client(&relay).servers().unwrap_err();
    assert_eq!((error.code(), error.may_have_happened()), (Some(-32003), false));
    let broken = Bridge::raw(|_| http(500, "oops"));
    assert!(client(&broken).servers().unwrap_err().may_have_happened());
}

#[test]
fn a_socket_and_a_host_are_checked_before_anything_is_sent() {
    let token = || Token::parse(TOKEN).unwrap();
    assert!(Client::unix("relative", token()).is_err());
    assert!(Client::tcp("a\r\nX: y", 80, token()).is_err() && Client::tcp("", 80, token()).is_err());
    let folder = tempfile::tempdir().unwrap();
    let error = Client::unix(folder.path().join("none"), token()).unwrap().servers().unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }) && !error.may_have_happened(), "{error}");
}
