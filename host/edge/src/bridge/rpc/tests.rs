//! Envelopes and parameters that are none, and ids.

use super::*;

/// Longest name or URI, bytes.
const MAX_NAME: usize = 8 * 1024;

fn failure(body: &str) -> (i64, String, Option<String>) {
    let Parsed { id, request } = parse(body.as_bytes(), 128);
    let error = request.unwrap_err();
    (error.code, error.message, id.map(|raw| raw.get().to_owned()))
}

#[test]
fn an_envelope_that_is_none_is_refused_with_its_id() {
    let invalid = |id: Option<&str>| (-32600, "Invalid Request".to_owned(), id.map(str::to_owned));
    assert_eq!(failure("null"), invalid(None));
    assert_eq!(failure("[]"), invalid(None));
    assert_eq!(failure(r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#), invalid(None));
    assert_eq!(failure(r#"["2.0","listServers",1,{}]"#), invalid(None));
    assert_eq!(failure(r#"{"jsonrpc":"2.0","id":7}"#), invalid(Some("7")));
    assert_eq!(failure(r#"{"jsonrpc":2.0,"method":"x","id":"a\u0062"}"#), invalid(Some(r#""a\u0062""#)));
    assert_eq!(failure(r#"{"jsonrpc":"2.0","method":"listServers","id":null}"#), invalid(None));
    assert_eq!(failure(r#"{"jsonrpc":"2.0","method":"listServers","id":{}}"#), invalid(None));
    assert_eq!(failure(r#"{"jsonrpc":"2.0","method":"callTool","params":{"server":"s","tool":"t"}}"#), invalid(None));
    // Whatever else is wrong with it.
    for rest in
        [r#""callTool""#, r#""callTool","params":[]"#, r#""readResource","params":null"#, r#""complete","params":{}"#]
    {
        assert_eq!(failure(&format!(r#"{{"jsonrpc":"2.0","method":{rest}}}"#)), invalid(None), "{rest}");
    }
    assert_eq!(failure(r#"{"jsonrpc":"2.0","method":"x","method":"y","id":1}"#).0, -32700);
}

#[test]
fn what_is_json_and_refused_says_why_with_its_id() {
    let body = |members: &str| format!(r#"{{"jsonrpc":"2.0","method":"callTool",{members}}}"#);
    let refused = |members: &str, why: &str, id: Option<&str>| {
        let (code, message, found) = failure(&body(members));
        assert_eq!((code, found.as_deref()), (-32700, id), "{members}");
        assert!(message.starts_with("Parse error") && message.contains(why), "{members}: {message}");
    };
    refused(r#""id":7,"params":{"arguments":{"a":"\ud800"}}"#, "a lone surrogate at byte", Some("7"));
    refused(r#""params":{"arguments":{"\udc00":1}},"id":"x""#, "a lone surrogate at byte", Some(r#""x""#));
    refused(r#""id":7,"params":{"a":1,"a":2}"#, "a member name appears twice", Some("7"));
    refused(&format!(r#""params":{}{},"id":7"#, "[".repeat(50_000), "]".repeat(50_000)), "nested deeper", Some("7"));
    // Which of two, and what is no id.
    refused(r#""id":7,"id":8"#, "a member name appears twice", None);
    refused(r#""id":7,"\u0069d":8"#, "a member name appears twice", None);
    refused(r#""id":{},"params":"\ud800""#, "a lone surrogate", None);
    refused(&format!(r#""id":"{}","params":"\ud800""#, "x".repeat(2_000)), "a lone surrogate", None);
    for no_json in [r#"{"id":7,"x":"\ud800"#, r#"{"id":7,"x":"\ud800"} x"#, r#"{"id":7,"a":1,"a":1,}"#, r#"["\ud800"]"#]
    {
        assert_eq!(failure(no_json).2, None, "{no_json}");
    }
}

#[test]
fn arguments_that_are_null_are_none_and_keep_their_id() {
    let body = r#"{"jsonrpc":"2.0","method":"callTool","params":{"server":"s","tool":"t","arguments":null},"id":7}"#;
    let parsed = parse(body.as_bytes(), 128);
    assert_eq!(parsed.id.unwrap().get(), "7");
    assert!(matches!(parsed.request, Ok(Request::Call(CallRequest { arguments: None, .. }))));
}

#[test]
fn ids_are_echoed_as_written() {
    let id = "123456789012345678901234567890";
    let parsed = parse(format!(r#"{{"jsonrpc":"2.0","method":"listServers","id":{id}}}"#).as_bytes(), 128);
    assert_eq!(parsed.id.unwrap().get(), id);
    assert!(matches!(parsed.request, Ok(Request::List(Listing::Servers))));
    let long = format!(r#"{{"jsonrpc":"2.0","method":"listServers","id":"{}"}}"#, "x".repeat(1023));
    assert_eq!(failure(&long), (-32600, "Invalid Request".to_owned(), None));
}

#[test]
fn params_are_named_and_what_is_missing_is_named() {
    let with = |method: &str, params: &str| {
        failure(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1}}"#)).1
    };
    assert_eq!(with("listServers", "[]"), "Invalid params: named object required");
    assert_eq!(with("listTools", "null"), "Missing or invalid parameter: \"server\" (string required)");
    assert_eq!(
        with("callTool", r#"{"server":"s","tool":""}"#),
        "Missing or invalid parameter: \"tool\" (string required)"
    );
    assert_eq!(
        with("readResource", r#"{"server":"s","uri":5}"#),
        "Missing or invalid parameter: \"uri\" (string required)"
    );
    let long = "x".repeat(MAX_NAME + 1);
    assert_eq!(
        with("readResource", &format!(r#"{{"server":"s","uri":"{long}"}}"#)),
        "Parameter \"uri\" has over 8192 bytes"
    );
    for params in [r#"{"query":"x","limit":0}"#, r#"{"query":"x","limit":"5"}"#, r#"{"query":"x","limit":1.5}"#] {
        assert!(with("searchTools", params).contains("\"limit\" (number"), "{params}");
    }
    assert!(with("searchTools", r#"{"query":"x","server":7}"#).contains("\"server\" (string"));
    assert!(with("searchTools", "{}").contains("\"query\" (string"));
    assert_eq!(with("revokeSession", "{}"), "Method not found: revokeSession");
}
