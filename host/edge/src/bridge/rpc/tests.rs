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
    assert_eq!(failure(r#"{"jsonrpc":"2.0","method":"x","method":"y","id":1}"#).0, -32700);
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
