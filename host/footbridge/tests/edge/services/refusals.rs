//! Requests that are refused for what the host lacks, and how that is said and recorded.

use super::Services;

#[test]
fn a_service_without_its_credential_is_refused_by_itself() {
    let services = Services::start(
        "open",
        "[services.second]\npreset = \"anthropic\"\ncredential = \"${FOOTBRIDGE_TESTS_NEVER_SET_THIS}\"\n",
    );
    let answer = services.ask("POST /s/second/v1/messages", &[], "{}");
    let error = answer.json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(answer.status == 502 && message.contains("has no credential"), "{answer:?}");
    assert!(message.contains("footbridge services check second") && !message.contains("NEVER_SET"), "{message}");
    let (intent, outcome) = services.outcome();
    assert_eq!((&error["request_id"], &outcome["outcome"]), (&intent["id"], &"not_sent".into()));
    assert_eq!(services.get("/plain").status, 200);
}
