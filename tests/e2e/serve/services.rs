//! Sessions of a daemon that have services: what their guests get, and what whoever makes them is told.

use std::fs;

use footbridge_tests::{Host, Servers};
use serde_json::Value;

const SETTINGS: &str = "[services.work]\npreset = \"openai\"\nurl = \"http://127.0.0.1:1\"\n\
                        [services.play]\npreset = \"openai\"\nurl = \"http://127.0.0.1:2\"\n\
                        [services.deep]\npreset = \"anthropic\"\nurl = \"http://127.0.0.1:3\"\n";

#[test]
fn a_variable_that_two_services_set_is_named_to_who_makes_the_session() {
    let daemon = Host::with(&Servers::none()).settings(SETTINGS).serves();
    let file = daemon.host.path().join("one.env");
    let create = ["create", "one", "--service", "work", "--service", "play", "--service", "deep", "--env-file"];
    let ran = daemon.host.session(&[&create[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(ran.status, 0, "{ran:?}");
    // What both set to the same value, the token, is worth no word.
    let note = "the services \"play\" and \"work\" both set OPENAI_BASE_URL: it leads to the second\n";
    assert_eq!(ran.stderr, note);
    let variables = fs::read_to_string(&file).unwrap();
    assert!(variables.contains("OPENAI_BASE_URL=http://127.0.0.1:7179/s/work/v1\n"), "{variables}");
    let quiet = daemon.host.session(&["create", "two", "--service", "work", "--service", "deep"]);
    assert!(!quiet.stderr.contains("both set"), "{quiet:?}");
    let told: Value = daemon.creates("three", &["--service", "work", "--service", "play"]);
    assert_eq!(told["notes"].as_array().map(Vec::len), Some(1), "{told}");
}

#[test]
fn a_session_says_which_services_it_has_and_a_daemon_which_there_are() {
    let daemon = Host::with(&Servers::none()).settings(SETTINGS).serves();
    let (host, file) = (&daemon.host, daemon.host.path().join("footbridge.toml"));
    let refused = host.session(&["create", "q", "--service", "nope"]);
    refused
        .fails(1, &["the daemon has no service \"nope\": choose one of deep, play, work; \"footbridge services list"]);
    assert!(refused.stderr.contains(&format!("--config {}", file.display())), "{refused:?}");
    let _made = daemon.creates("one", &["--service", "work", "--service", "deep"]);
    let _none = daemon.creates("two", &[]);
    assert!(host.session(&["show", "one"]).well().contains("services:    deep, work\n"));
    let services = |words: &[&str]| {
        let all = host.session(words).well();
        all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["services"].clone()).collect::<Vec<_>>()
    };
    let both = serde_json::json!(["deep", "work"]);
    assert_eq!(services(&["list", "--json"]), [both.clone(), serde_json::json!([])]);
    assert_eq!(services(&["show", "one", "--json"]), [both]);
    // As it is once the files were read again.
    fs::write(&file, "[services.other]\nurl = \"http://127.0.0.1:1\"\n").unwrap();
    let _read = host.configuration(&["reload"]).well();
    host.session(&["create", "q", "--service", "work"]).fails(1, &["choose one of other; "]);
    host.session(&["create", "q", "--label", "k=1", "--label", "k=2"])
        .fails(2, &["--label k=1 and --label k=2 exclude"]);
    host.session(&["create", "q", "--limit", "calls.burst=1", "--limit", "calls.burst=2"])
        .fails(2, &["calls.burst=1 and calls.burst=2 exclude"]);
}
