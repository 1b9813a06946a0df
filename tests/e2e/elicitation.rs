//! Questions of MCP servers to a person, while they run a call: shown, answered, checked, declined, recorded.

use std::{ffi::OsStr, fs};

use footbridge_tests::{Daemon, Guest, Host, HttpServer, Person, Real, Sent, Servers, Tape, programs};
use serde_json::{Value, json};

fn serves(settings: &str) -> Daemon {
    Host::with(&Servers::none().misbehaving("asker", &["elicits"])).settings(settings).serves()
}

fn form(properties: Value) -> Value {
    json!({"message": "Where to?", "requestedSchema": {"type": "object", "properties": properties, "required": ["city"]}})
}

fn trip() -> Value {
    form(
        json!({"city": {"type": "string", "title": "City", "minLength": 2}, "days": {"type": "integer", "default": 3}}),
    )
}

/// A call that leads to these questions.
fn call(questions: &[Value]) -> Value {
    json!({"server": "asker", "tool": "echo", "arguments": {"questions": questions}})
}

fn asks(guest: &Guest, questions: &[Value]) -> Sent {
    guest.starts_to_ask("callTool", call(questions))
}

fn id(pending: &[Value]) -> String {
    pending[0]["id"].as_str().unwrap().to_owned()
}

/// What the server was told, in order.
fn told(answer: &Value) -> &Value {
    let told = &answer["result"]["structuredContent"]["told"];
    assert!(!told.is_null(), "{answer}");
    told
}

/// The steps that the record has of questions.
fn steps(host: &Host) -> Vec<Value> {
    host.record().into_iter().filter(|line| line["type"] == "approval" && line["kind"] == "elicitation").collect()
}

#[test]
fn a_question_is_answered_field_by_field_and_recorded_without_its_values() {
    let daemon = serves("");
    let guest = daemon.opens("agent-1", &["--label", "team=x"]);
    let sent = asks(&guest, &[trip()]);
    let pending = daemon.host.pending(1);
    let one = &pending[0];
    assert_eq!((&one["kind"], &one["server"], &one["name"]), (&json!("elicitation"), &json!("asker"), &json!("echo")));
    assert_eq!((&one["session"], &one["question"]["message"]), (&json!("agent-1"), &json!("Where to?")));
    let id = id(&pending);
    let shown = daemon.host.approvals(&["show", &id]).well();
    assert!(
        shown.contains("asks:       \"Where to?\"") && shown.contains("city (text; minLength 2; required)"),
        "{shown}"
    );
    for (fields, why) in [
        (&[][..], "\"city\" is missing"),
        (&["--field", "city=B"], "does not fit"),
        (&["--field", "city=Bern", "--field", "days=many"], "no number"),
        (&["--field", "town=Bern"], "there is no field"),
        (&["--content", "[]"], "--content: an object is needed, in { and }, and this is a list"),
        (&["--content", "{\"city\": tomorrow}"], "--content: line 1, column 10: expected a value"),
        (&["--remember"], "not remembered"),
    ] {
        let words: Vec<&str> = ["allow", &id].iter().chain(fields).copied().collect();
        daemon.host.approvals(&words).fails(1, &[why]);
    }
    daemon.host.answers(&["allow", &id, "--field", "city=Bern"]);
    let answer = sent.answer().json();
    assert_eq!(told(&answer), &json!([{"action": "accept", "content": {"city": "Bern", "days": 3}}]));
    let steps = steps(&daemon.host);
    let states: Vec<&str> = steps.iter().map(|step| step["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["pending", "granted", "used"]);
    assert_eq!(steps[2]["content"]["bytes"], r#"{"city":"Bern","days":3}"#.len());
    assert!(steps[1]["approver"].as_str().unwrap().starts_with("approvals allow (uid "));
    assert!(!json!(daemon.host.record()).to_string().contains("Bern"));
}

#[test]
fn content_is_given_as_a_whole_and_recorded_where_arguments_are() {
    let daemon = serves("[audit]\narguments = \"redacted\"\n");
    let guest = daemon.opens("agent-1", &[]);
    let sent = asks(&guest, &[trip()]);
    daemon.host.answers(&["allow", &id(&daemon.host.pending(1)), "--content", r#"{"days":1,"city":"Bern"}"#]);
    assert_eq!(told(&sent.answer().json())[0]["content"], json!({"city": "Bern", "days": 1}));
    assert_eq!(steps(&daemon.host)[2]["content"]["redacted"], r#"{"city":"Bern","days":1}"#);
}

#[test]
fn a_question_is_declined_cancelled_or_left_unanswered() {
    let daemon = serves("[limits.calls]\nidle_time = \"2s\"\ntotal_time = \"2s\"\n");
    let guest = daemon.opens("agent-1", &["--limit", "approval.pending_time=4s"]);
    // Waiting for a person takes twice the time that a call has, which does not count.
    let sent = asks(&guest, &[trip()]);
    assert_eq!(told(&sent.answer().json()), &json!([{"action": "cancel"}]));
    let guest = daemon.opens("agent-2", &[]);
    let sent = asks(&guest, &[trip()]);
    daemon.host.answers(&["deny", &id(&daemon.host.pending(1)), "--cancel"]);
    assert_eq!(told(&sent.answer().json()), &json!([{"action": "cancel"}]));
    let sent = asks(&guest, &[trip(), trip()]);
    daemon.host.answers(&["deny", &id(&daemon.host.pending(1))]);
    // The same again, a moment after a no, is declined without asking.
    assert_eq!(told(&sent.answer().json()), &json!([{"action": "decline"}, {"action": "decline"}]));
    let ends: Vec<Value> = steps(&daemon.host).iter().map(|step| step["state"].clone()).collect();
    assert_eq!(ends, ["pending", "expired", "pending", "withdrawn", "pending", "denied", "denied"]);
}

#[test]
fn what_looks_like_a_secret_or_is_no_form_reaches_nobody() {
    let mut daemon = serves("");
    let guest = daemon.opens("agent-1", &[]);
    let questions = [
        form(json!({"api_key": {"type": "string"}})),
        form(json!({"x": {"type": "string", "format": "password"}})),
        form(json!({"x": {"type": "object"}})),
        json!({"mode": "url", "message": "m", "url": "javascript:alert(1)", "elicitationId": "1"}),
        json!({"message": "m".repeat(100_000)}),
        json!({"message": 7}),
    ];
    let answer = asks(&guest, &questions).answer().json();
    assert!(told(&answer).as_array().unwrap().iter().all(|told| *told == json!({"action": "decline"})), "{answer}");
    let said: Vec<String> =
        steps(&daemon.host).iter().map(|step| step["approver"].as_str().unwrap().to_owned()).collect();
    let expected = ["asks for a secret", "asks for a secret", "not a form", "bad address", "too long", "not a form"];
    assert_eq!(said, expected.map(|why| format!("footbridge ({why})")));
    daemon.process().stderr.shows("looks as if it asked for a secret");
}

#[test]
fn an_address_is_shown_and_consent_is_all_there_is() {
    let daemon = serves("");
    let guest = daemon.opens("agent-1", &[]);
    let url = json!({"mode": "url", "message": "Sign in", "url": "https://auth.test/x?y=1", "elicitationId": "1"});
    let sent = asks(&guest, &[url]);
    let id = id(&daemon.host.pending(1));
    assert!(daemon.host.approvals(&["show", &id]).well().contains("address:    https://auth.test/x?y=1\n"));
    daemon.host.approvals(&["allow", &id, "--field", "a=b"]).fails(1, &["takes no fields"]);
    daemon.host.answers(&["allow", &id]);
    assert_eq!(told(&sent.answer().json()), &json!([{"action": "accept"}]));
}

#[test]
fn a_question_ends_with_its_call_and_when_the_server_takes_it_back() {
    let mut daemon = serves("");
    let guest = daemon.opens("agent-1", &[]);
    let sent = asks(&guest, &[trip()]);
    let _ = daemon.host.pending(1);
    let taken_back =
        guest.asks("callTool", json!({"server": "asker", "tool": "echo", "arguments": {"takeBack": true}}));
    assert_eq!(told(&taken_back), "taken back");
    let _ = daemon.host.pending(0);
    assert_eq!(told(&sent.answer().json()), &json!([{"action": "cancel"}]));
    let sent = asks(&guest, &[trip()]);
    let _ = daemon.host.pending(1);
    drop(sent);
    let _ = daemon.host.pending(0);
    // By then the record is on disk.
    let _ = daemon.ends();
    let ends: Vec<Value> = steps(&daemon.host).iter().map(|step| step["state"].clone()).collect();
    assert_eq!(ends, ["pending", "withdrawn", "pending", "withdrawn"]);
}

#[test]
fn a_question_of_one_of_several_calls_is_declined() {
    let daemon = serves("");
    let (one, other) = (daemon.opens("agent-1", &[]), daemon.opens("agent-2", &[]));
    let first = asks(&one, &[trip()]);
    let pending = daemon.host.pending(1);
    // Whose it is could not be told while two calls run.
    assert_eq!(told(&asks(&other, &[]).answer().json()), &json!({"action": "decline"}));
    assert_eq!(daemon.host.pending(1), pending);
    daemon.host.answers(&["allow", &id(&pending), "--field", "city=Bern"]);
    assert_eq!(told(&first.answer().json())[0]["action"], "accept");
}

#[test]
fn a_question_that_may_be_of_a_call_that_was_left_is_declined() {
    let mut tape = Tape::new();
    let daemon = Host::with(&Servers::none().recording("asker", &["elicits"], &tape)).serves();
    let (one, other) = (daemon.opens("agent-1", &[]), daemon.opens("agent-2", &[]));
    assert_eq!(told(&asks(&other, &[]).answer().json()), &json!([]));
    let _other = tape.hears("tools/call");
    let params = json!({"server": "asker", "tool": "echo", "arguments": {"unanswered": true}});
    let left = one.starts_to_ask("callTool", params);
    let id = tape.hears("tools/call");
    drop(left);
    assert_eq!(tape.hears("notifications/cancelled"), id);
    // It need not heed that, and what is asked now may be about what it does.
    for guest in [&other, &one] {
        assert_eq!(told(&asks(guest, &[trip()]).answer().json()), &json!([{"action": "decline"}]));
    }
    assert!(steps(&daemon.host).is_empty());
}

#[test]
fn one_call_asks_so_many_questions_and_no_more() {
    let daemon = serves("");
    let guest = daemon.opens("agent-1", &[]);
    let questions: Vec<Value> = (0..12)
        .map(|n| json!({"message": n.to_string(), "requestedSchema": {"type": "object", "properties": {}}}))
        .collect();
    let sent = asks(&guest, &questions);
    for n in 0..10 {
        let pending = daemon.host.pending(1);
        assert_eq!(pending[0]["question"]["message"], n.to_string());
        daemon.host.answers(&["allow", &id(&pending)]);
        if n < 9 {
            // The next one is another.
            while daemon.host.pending(1) == pending {}
        }
    }
    let answer = sent.answer().json();
    let actions: Vec<&str> =
        told(&answer).as_array().unwrap().iter().map(|told| told["action"].as_str().unwrap()).collect();
    assert_eq!((actions[..10].to_vec(), actions[10..].to_vec()), (vec!["accept"; 10], vec!["decline"; 2]));
}

#[test]
fn a_flood_of_questions_costs_one_line_a_second() {
    let mut daemon = serves("");
    let guest = daemon.opens("agent-1", &[]);
    let answer = asks(&guest, &vec![json!({"message": 7}); 300]).answer().json();
    assert_eq!(told(&answer), &json!(vec![json!({"action": "decline"}); 300]));
    daemon.process().stderr.shows("their call had asked 10 already");
    daemon.ends();
    assert_eq!(steps(&daemon.host).len(), 10);
    let limited: Vec<Value> = daemon.host.record().into_iter().filter(|line| line["type"] == "limited").collect();
    assert!(limited.iter().all(|line| line["reason"] == "too_many_questions"), "{limited:?}");
    assert_eq!(limited.iter().map(|line| line["count"].as_u64().unwrap()).sum::<u64>(), 290);
    assert!(limited.len() < 30, "{limited:?}");
}

#[test]
fn where_nobody_can_be_asked_questions_are_unknown_requests() {
    let daemon = serves("[approval]\nwatch = false\n");
    let guest = daemon.opens("agent-1", &[]);
    assert_eq!(told(&asks(&guest, &[trip()]).answer().json())[0]["code"], -32601);
    assert_eq!(steps(&daemon.host), Vec::<Value>::new());
}

#[test]
fn the_operators_command_answers_a_question_with_content() {
    let host = Host::with(&Servers::none().misbehaving("asker", &["elicits"]));
    let program = host.path().join("answers");
    let script = format!(
        "#!/bin/sh\ncat > {}/heard\necho '{{\"decision\":\"allow\",\"content\":{{\"city\":\"Bern\"}}}}'\n",
        host.path().display()
    );
    programs::writes(&program, &script);
    let settings = format!("[approval]\nwatch = false\ncommand = [{:?}]\n", program.display().to_string());
    let daemon = host.settings(&settings).serves();
    let guest = daemon.opens("agent-1", &[]);
    let sent = asks(&guest, &[trip()]);
    assert_eq!(told(&sent.answer().json())[0], json!({"action": "accept", "content": {"city": "Bern", "days": 3}}));
    let heard: Value = serde_json::from_slice(&fs::read(daemon.host.path().join("heard")).unwrap()).unwrap();
    assert_eq!((&heard["kind"], &heard["question"]["fields"][0]["name"]), (&json!("elicitation"), &json!("city")));
    assert!(heard["arguments"].as_str().unwrap().contains("requestedSchema"), "{heard}");
}

#[test]
fn on_a_terminal_a_question_is_shown_escaped_and_declined_by_a_word() {
    let daemon = serves("");
    let guest = daemon.opens("agent-1", &[]);
    let mut person = Person::new();
    let mut watch = person.starts(&daemon.host.footbridge(&["approvals", "watch"].map(OsStr::new)));
    person.sees("nothing waits");
    let mut question = trip();
    question["message"] = json!("\u{1b}[2J\u{202e}spoof\nsession: other");
    let sent = asks(&guest, &[question]);
    person.sees("\\u{202e}spoof");
    person.sees("--field NAME=VALUE");
    person.reads();
    person.types("allow\n");
    person.sees("\"city\" is missing");
    person.reads();
    person.types("deny\n");
    assert_eq!(told(&sent.answer().json()), &json!([{"action": "decline"}]));
    // Keys that come before it turned to nothing are forgotten.
    person.sees(": deny");
    person.types("\u{3}");
    assert!(watch.status().success());
}

#[test]
fn a_question_of_a_task_is_one_of_its_call() {
    let daemon = Host::with(&Servers::none().misbehaving("asker", &["tasks"])).serves();
    let guest = daemon.opens("agent-1", &[]);
    let arguments = json!({"steps": 1, "question": trip()});
    let sent = guest.starts_to_ask("callTool", json!({"server": "asker", "tool": "work", "arguments": arguments}));
    let pending = daemon.host.pending(1);
    assert_eq!((&pending[0]["kind"], &pending[0]["name"]), (&json!("elicitation"), &json!("work")));
    daemon.host.answers(&["allow", &id(&pending), "--field", "city=Bern"]);
    let answer = sent.answer().json();
    assert_eq!(told(&answer)["content"], json!({"city": "Bern", "days": 3}), "{answer}");
    let ends: Vec<Value> = steps(&daemon.host).iter().map(|step| step["state"].clone()).collect();
    assert_eq!(ends, ["pending", "granted", "used"]);
}

/// A server that wants input in place of a result, as revision 2026-07-28 has it.
fn wants(protocol: &str, settings: &str) -> Daemon {
    let entry = json!({"command": programs::misbehaving_server(), "args": ["wants-input"], "protocol": protocol});
    Host::with(&Servers::none().and("asker", entry)).settings(settings).serves()
}

/// A call that is answered by wanting these, one after the other.
fn wanting(guest: &Guest, rounds: &Value) -> Sent {
    guest.starts_to_ask(
        "callTool",
        json!({"server": "asker", "tool": "echo", "arguments": {"rounds": rounds, "n": 1.0}}),
    )
}

/// One question, as it is wanted.
fn question(params: &Value) -> Value {
    json!({"trip": {"method": "elicitation/create", "params": params}})
}

#[test]
fn what_an_answer_wants_is_asked_like_any_question_and_the_call_goes_on_with_it() {
    for protocol in ["discover", "auto"] {
        let daemon = wants(protocol, "");
        let guest = daemon.opens("agent-1", &[]);
        // First nothing but to come again, then a person.
        let sent = wanting(&guest, &json!([null, question(&trip())]));
        let pending = daemon.host.pending(1);
        assert_eq!((&pending[0]["kind"], &pending[0]["name"]), (&json!("elicitation"), &json!("echo")));
        daemon.host.answers(&["allow", &id(&pending), "--field", "city=Bern"]);
        let answer = sent.answer().json();
        let told = &answer["result"]["structuredContent"];
        let accepted = json!({"trip": {"action": "accept", "content": {"city": "Bern", "days": 3}}});
        assert_eq!((&told["rounds"], &told["answers"]), (&json!(2), &accepted), "{answer}");
        // Each time with the same arguments.
        assert_eq!(told["arguments"]["n"], json!(1.0));
        let sent = wanting(&guest, &json!([question(&form(json!({"city": {"type": "integer"}})))]));
        daemon.host.answers(&["deny", &id(&daemon.host.pending(1))]);
        let told = &sent.answer().json()["result"]["structuredContent"];
        assert_eq!(told["answers"]["trip"], json!({"action": "decline"}));
        let ends: Vec<Value> = steps(&daemon.host).iter().map(|step| step["state"].clone()).collect();
        assert_eq!(ends, ["pending", "granted", "used", "pending", "denied"]);
        // One call each in the record, however often the server was asked.
        assert_eq!(daemon.host.record().iter().filter(|line| line["type"] == "intent").count(), 2);
    }
}

#[test]
fn what_no_person_is_asked_for_and_what_never_ends_is_refused() {
    let daemon = wants("discover", "");
    let guest = daemon.opens("agent-1", &[]);
    let roots = json!({"r": {"method": "roots/list", "params": {}}});
    for (rounds, why) in [
        (json!([roots]), "not something that a person is asked for"),
        (json!(vec![Value::Null; 20]), "and again, 8 times"),
        (json!([7]), "which cannot be read"),
    ] {
        let answer = wanting(&guest, &rounds).answer().json();
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{why}: {answer}");
    }
    // A question that nobody is shown is declined, as everywhere.
    let secret = form(json!({"api_key": {"type": "string"}}));
    let answer = wanting(&guest, &json!([question(&secret)])).answer().json();
    assert_eq!(answer["result"]["structuredContent"]["answers"]["trip"], json!({"action": "decline"}));
    let daemon = wants("discover", "[approval]\nwatch = false\n");
    let answer = wanting(&daemon.opens("agent-1", &[]), &json!([question(&trip())])).answer().json();
    assert!(answer["error"]["message"].as_str().unwrap().contains("nobody can be asked"), "{answer}");
}

#[test]
fn a_question_of_an_answer_ends_with_its_call() {
    let mut daemon = wants("discover", "");
    let guest = daemon.opens("agent-1", &[]);
    let sent = wanting(&guest, &json!([question(&trip())]));
    let _ = daemon.host.pending(1);
    drop(sent);
    let _ = daemon.host.pending(0);
    let _ = daemon.ends();
    assert_eq!(steps(&daemon.host).last().unwrap()["state"], "withdrawn");
}

#[test]
fn a_server_of_the_older_kind_may_ask_where_the_revision_is_found_out() {
    let entry = json!({"command": programs::misbehaving_server(), "args": ["elicits"], "protocol": "auto"});
    let daemon = Host::with(&Servers::none().and("asker", entry)).settings("").serves();
    let guest = daemon.opens("agent-1", &[]);
    let sent = asks(&guest, &[trip()]);
    daemon.host.answers(&["allow", &id(&daemon.host.pending(1)), "--field", "city=Bern"]);
    assert_eq!(told(&sent.answer().json())[0]["action"], "accept");
}

/// A server of node takes its time where nothing of it is in memory yet.
const COLD: &str = "[limits.calls]\nserver_wait = \"29s\"\n";

/// The server `everything` asks for fields of every kind.
fn everything_asks(daemon: &Daemon) {
    let guest = daemon.opens("agent-1", &[]);
    let params = json!({"server": "everything", "tool": "trigger-elicitation-request", "arguments": {}});
    let sent = guest.starts_to_ask("callTool", params.clone());
    let pending = daemon.host.pending(1);
    assert_eq!(pending[0]["question"]["fields"].as_array().unwrap().len(), 13, "{pending:?}");
    let id = id(&pending);
    daemon.host.approvals(&["allow", &id, "--field", "name=Jo", "--field", "integer=101"]).fails(1, &["does not fit"]);
    let fields = ["name=Jo", "check=true", "email=a@b.test", "integer=7", "titledMultipleSelectEnum=fish-1"];
    let fields = fields.iter().chain(&["titledMultipleSelectEnum=fish-3", "birthdate=2001-02-03"]);
    let words: Vec<&str> = ["allow", &id].into_iter().chain(fields.flat_map(|field| ["--field", field])).collect();
    daemon.host.answers(&words);
    let answer = sent.answer().json();
    let text = answer["result"]["content"].to_string();
    for said in ["User provided", "- Name: Jo", "- Favorite Integer: 7", "fish-3", "Monica", "- Favorite Number: 3.14"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    let sent = guest.starts_to_ask("callTool", params);
    daemon.host.answers(&["deny", &self::id(&daemon.host.pending(1))]);
    assert!(sent.answer().json()["result"]["content"].to_string().contains("User declined"));
}

#[test]
fn everything_asks_over_stdio() {
    let Some(everything) = Real::server("everything_asks_over_stdio", "mcp-server-everything") else { return };
    let servers = Servers::none().and("everything", json!({"command": everything.program()}));
    let daemon = Host::with(&servers).settings(COLD).serves();
    everything_asks(&daemon);
    // What an operator looks at has the tools that it offers to those alone whom it can ask.
    let listed = daemon.host.one_shot(&["tools", "everything"]).well();
    assert!(listed.contains("trigger-elicitation-request"), "{listed}");
    drop(daemon);
    // Where nobody can be asked it is not told otherwise, and does not have the tool.
    let silent = Host::with(&servers).settings(&format!("[approval]\nwatch = false\n{COLD}")).serves();
    let listed = silent.opens("agent-1", &[]).asks("listTools", json!({"server": "everything"})).to_string();
    assert!(listed.contains("get-sum") && !listed.contains("trigger-elicitation"), "{listed}");
}

#[test]
fn everything_asks_over_http() {
    let Some(everything) = Real::server("everything_asks_over_http", "mcp-server-everything") else { return };
    let server = HttpServer::start(&everything);
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let servers = Servers::none().and("everything", json!({"type": "http", "url": url}));
    everything_asks(&Host::with(&servers).settings(COLD).serves());
}

#[test]
fn each_of_two_calls_with_one_question_gets_what_was_answered_to_its_own() {
    let daemon = wants("discover", "");
    let guest = daemon.opens("agent-1", &[]);
    let calls = [(); 2].map(|()| wanting(&guest, &json!([question(&trip())])));
    // The same question, and each is asked by itself.
    for (asked, city) in daemon.host.pending(2).iter().zip(["Bern", "Lyon"]) {
        let field = format!("city={city}");
        daemon.host.answers(&["allow", asked["id"].as_str().unwrap(), "--field", &field]);
    }
    let mut cities = calls.map(|sent| {
        let answer = sent.answer().json();
        let city = &answer["result"]["structuredContent"]["answers"]["trip"]["content"]["city"];
        city.as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    });
    cities.sort();
    assert_eq!(cities, ["Bern", "Lyon"]);
    let of_pending: Vec<Value> = steps(&daemon.host)
        .into_iter()
        .filter(|step| step["state"] == "pending")
        .map(|step| step["content"].clone())
        .collect();
    assert_eq!(of_pending, [Value::Null, Value::Null]);
}
