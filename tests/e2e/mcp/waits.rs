//! Calls at `/mcp` that wait for a person: allowed while their client hears of it, answered where it does not, and asked
//! for later; and questions of servers.

use footbridge_tests::{Daemon, Host, Servers};
use serde_json::{Value, json};

use super::stdio_client::StdioClient;

fn asks() -> Daemon {
    Host::with(&Servers::demo()).policy("ask").serves()
}

/// The call of a tool that a person has to allow.
fn note(more: Value) -> Value {
    let mut call = json!({"name": "demo__add_note", "arguments": {"text": "one"}});
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

fn waiting(daemon: &Daemon) -> String {
    daemon.host.pending(1)[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_that_hears_progress_waits_until_its_call_is_allowed() {
    let daemon = asks();
    let mut client = StdioClient::start(&daemon.opens("agent-1", &[]), &[]);
    client.begins();
    let call = note(json!({"_meta": {"progressToken": "p"}}));
    client.says(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    let id = waiting(&daemon);
    let told = client.hears(|message| message["method"] == "notifications/progress")["params"].clone();
    assert_eq!(told["progressToken"], "p");
    let message = told["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("Approval {id}: pending. demo/add_note")), "{message}");
    daemon.host.answers(&["allow", &id]);
    let result = client.hears(|message| message["id"] == 2)["result"].clone();
    assert!(result["isError"] != true && text(&result).contains("note:///1"), "{result}");
    client.ends();
}

#[test]
fn a_client_that_hears_nothing_is_told_to_come_again() {
    let daemon = asks();
    let guest = daemon.opens("agent-1", &["--limit", "approval.answer_after=200ms"]);
    let mut client = StdioClient::start(&guest, &[]);
    client.begins();
    let told = client.asks(2, "tools/call", note(json!({})))["result"].clone();
    let id = waiting(&daemon);
    let refusal = &told["_meta"]["footbridge/refusal"];
    assert_eq!((&told["isError"], &refusal["reason"]), (&json!(true), &json!("approval_required")), "{told}");
    assert!(refusal.to_string().contains(&id), "{told}");
    assert!(text(&told).contains(&id) && text(&told).contains("make exactly the same call again"), "{told}");
    assert!(!text(&told).contains("tool-cli"), "{told}");
    daemon.host.answers(&["allow", &id]);
    let result = client.asks(3, "tools/call", note(json!({})))["result"].clone();
    assert!(text(&result).contains("note:///1"), "{result}");
    // Used once.
    let again = client.asks(4, "tools/call", note(json!({})))["result"].clone();
    assert_eq!(again["_meta"]["footbridge/refusal"]["reason"], "approval_required", "{again}");
    daemon.host.answers(&["deny", &waiting(&daemon)]);
    let denied = client.asks(5, "tools/call", note(json!({})))["result"].clone();
    assert_eq!(denied["_meta"]["footbridge/refusal"]["reason"], "approval_denied", "{denied}");
    client.ends();
}

#[test]
fn what_was_not_waited_for_was_not_called_unless_a_person_had_allowed_it() {
    let daemon = Host::with(&Servers::none().misbehaving("stuck", &["never-answers-call"])).policy("ask").serves();
    let guest = daemon.opens("agent-1", &[]);
    for is_allowed in [false, true] {
        let mut client = StdioClient::start(&guest, &["--timeout", "10s"]);
        client.begins();
        let call = json!({"name": "stuck__echo", "arguments": {"allowed": is_allowed}});
        client.says(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
        let id = waiting(&daemon);
        if is_allowed {
            daemon.host.answers(&["allow", &id]);
        }
        client.0.hears_no_more();
        let error = client.hears(|message| message["id"] == 2)["error"].clone();
        let expected = if is_allowed { "outcome_unknown" } else { "approval_required" };
        assert_eq!(error["data"]["reason"], expected, "{error}");
        assert_eq!(error["data"]["approvalId"] == id.as_str(), !is_allowed, "{error}");
        assert_eq!(error["message"].as_str().unwrap().contains("nothing was called"), !is_allowed, "{error}");
        assert_eq!(client.0.ends().status, 0);
        if !is_allowed {
            daemon.host.answers(&["deny", &id]);
        }
    }
}

#[test]
fn a_task_says_that_it_waits_for_a_person() {
    let daemon = asks();
    let mut client = StdioClient::start(&daemon.opens("agent-1", &[]), &[]);
    client.begins();
    let created = client.asks(2, "tools/call", note(json!({"task": {}})))["result"]["task"].clone();
    let task = json!({"taskId": created["taskId"]});
    let id = waiting(&daemon);
    let mut asked = 3..;
    let mut now = |client: &mut StdioClient| client.asks(asked.next().unwrap(), "tasks/get", task.clone());
    let mut state = now(&mut client)["result"].clone();
    while state["statusMessage"].is_null() {
        state = now(&mut client)["result"].clone();
    }
    assert_eq!(state["status"], "working", "{state}");
    assert!(state["statusMessage"].as_str().unwrap().starts_with(&format!("Approval {id}: pending")), "{state}");
    daemon.host.answers(&["allow", &id]);
    let result = client.asks(1000, "tasks/result", task.clone())["result"].clone();
    assert!(text(&result).contains("note:///1"), "{result}");
    assert_eq!(now(&mut client)["result"]["status"], "completed");
    client.ends();
}

#[test]
fn a_question_of_a_server_goes_to_whoever_is_asked_for_approvals_and_not_to_the_client() {
    let daemon = Host::with(&Servers::none().misbehaving("asker", &["elicits"])).serves();
    let mut client = StdioClient::start(&daemon.opens("agent-1", &[]), &[]);
    client.begins();
    let form = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let question = json!({"message": "Where to?", "requestedSchema": form});
    let call = json!({"name": "asker__echo", "arguments": {"questions": [question]}});
    client.says(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    daemon.host.answers(&["allow", &waiting(&daemon), "--field", "city=Bern"]);
    // The first that it hears is the result.
    let told = client.hears(|_| true);
    assert_eq!(told["id"], 2, "{told}");
    let told = &told["result"]["structuredContent"]["told"];
    assert_eq!(*told, json!([{"action": "accept", "content": {"city": "Bern"}}]));
    client.ends();
}

#[test]
fn a_server_that_asks_by_its_result_does_not_ask_past_the_bridge() {
    // In the revision that it speaks nothing is asked so: to a client of another one it would be the bridge that asks.
    let daemon = Host::open_with(&Servers::none().misbehaving("asker", &["wants-input"])).serves();
    let mut client = StdioClient::start(&daemon.opens("agent-1", &["--policy", "open"]), &[]);
    client.begins();
    let question =
        json!({"method": "elicitation/create", "params": {"message": "Your password?", "requestedSchema": {}}});
    let call = json!({"name": "asker__echo", "arguments": {"rounds": [{"a": question}]}});
    let answer = client.asks(2, "tools/call", call);
    assert!(answer["error"]["message"].as_str().unwrap().contains("does not have in a result"), "{answer}");
    assert!(!answer.to_string().contains("password"), "{answer}");
    client.ends();
}
