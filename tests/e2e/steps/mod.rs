//! `footbridge step`: each way and each failure of a step, to its report, its record and what is left of it.

use std::{ffi::OsStr, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use footbridge_tests::{Host, Person, Ran, Real, Running, Servers, Tape, programs};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// A host with a step file, whose programs can be found by its folder.
fn host(step: &str) -> Host {
    let host = Host::with(&Servers::none());
    fs::write(host.path().join("step.toml"), step).unwrap();
    let folder = host.path().to_owned();
    host.env("LC_TEST_FOLDER", folder)
}

fn runs(host: &Host, more: &[&str]) -> Ran {
    let file = host.path().join("step.toml");
    let mut words = vec![OsStr::new("step"), file.as_os_str()];
    words.extend(more.iter().map(OsStr::new));
    let ran = Running::start(&mut host.footbridge(&words)).ends();
    host.leaves_nothing_behind();
    ran
}

/// The report of a step that ends with this status.
fn report(host: &Host, more: &[&str], status: i32) -> Value {
    let ran = runs(host, more);
    assert_eq!(ran.status, status, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let members: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(members, ["schema", "success", "error", "data"], "{report}");
    assert_eq!((&report["schema"], &report["success"]), (&json!("mcp-client/1"), &json!(status == 0)), "{report}");
    assert!(report["data"]["content"].is_array() && report["error"].is_null() == (status == 0), "{report}");
    report
}

fn error(step: &str, status: i32) -> String {
    report(&host(step), &[], status)["error"].as_str().unwrap().to_owned()
}

/// A script in the host's folder.
fn script(host: &Host, name: &str, text: &str) {
    programs::writes(&host.path().join(name), text);
}

const PRINTS: &str =
    "#!/bin/sh\nprintf '{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}' \"$1 $(cat | wc -c) $KEY\"\n";

#[test]
fn a_program_that_prints_a_result_is_reported_and_recorded() {
    let host = host(
        "name = \"fetch\"\ncommand = \"./prints\"\nargs = [\"a b\"]\nparams = { n = 1 }\nenv = { KEY = { file = \"key\" } }\n",
    );
    script(&host, "prints", PRINTS);
    let key = host.path().join("key");
    fs::write(&key, "s3cret-0123456789\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let golden = "{\"schema\":\"mcp-client/1\",\"success\":true,\"error\":null,\"data\":{\"content\":[{\"type\":\"text\",\
                  \"text\":\"a b 7 [redacted]\"}]}}\n";
    assert_eq!(runs(&host, &[]).well(), golden);
    assert_eq!(runs(&host, &[]).well(), golden);
    let record = host.record();
    let of_type = |kind: &str| record.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of_type("intent").len(), of_type("outcome").len()), (2, 2), "{record:#?}");
    let intent = of_type("intent")[0];
    assert_eq!((&intent["server"], &intent["name"]), (&json!("fetch"), &json!("fetch")));
    assert!(intent["peer"].as_str().unwrap().starts_with("operator:"), "{record:#?}");
    assert!(!format!("{record:?}").contains("s3cret"));
    let chains = fs::read_dir(host.state().join("audit")).unwrap().flatten();
    let chains = chains.filter(|entry| entry.path().is_dir()).count();
    assert_eq!(chains, 1, "one chain for all of them");
    let words = ["audit", "verify"].map(OsStr::new);
    assert_eq!(Running::start(&mut host.footbridge(&words)).ends().status, 0);
}

#[test]
fn a_server_is_asked_once() {
    let step = |more: &str| {
        format!("command = {:?}\nargs = [\"demo-server\"]\n{more}", programs::footbridge().to_str().unwrap())
    };
    let weather = report(&host(&step("tool = \"get_weather\"\nparams = { city = \"Bern\" }\n")), &[], 0);
    assert!(weather["data"]["structuredContent"].is_object(), "{weather}");
    for (more, says) in [
        ("tool = \"get_wether\"\n", "not found on server \"step\"; did you mean \"get_weather\"?"),
        ("tool = \"get_weather\"\nparams = { city = 5 }\n", "city"),
    ] {
        let said = error(&step(more), 1);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn servers_of_others_are_asked_too() {
    if let Some(everything) = Real::server("servers_of_others_are_asked_too", "mcp-server-everything") {
        let entry = format!(
            "command = {:?}\nargs = [\"stdio\"]\ntool = \"get-sum\"\nparams = {{ a = 2, b = 40 }}\n",
            everything.program().to_str().unwrap()
        );
        let sum = report(&host(&entry), &[], 0);
        assert_eq!(sum["data"]["content"][0]["text"], "The sum of 2 and 40 is 42.");
    }
}

#[test]
fn each_failure_is_a_report_with_its_reason() {
    let of = |text: &str| {
        let host = host("command = \"./fails\"\ntimeout = \"5s\"\n");
        script(&host, "fails", text);
        report(&host, &[], 1)
    };
    for (text, says) in [
        ("#!/bin/sh\necho why >&2; exit 3\n", "exit status 3"),
        ("#!/bin/sh\necho why >&2; exit 3\n", "ends:\nwhy"),
        ("#!/bin/sh\necho 'no JSON'\n", "no CallToolResult"),
        ("#!/bin/sh\necho '{\"content\": 5}'\n", "no CallToolResult"),
        ("#!/bin/sh\n:\n", "printed nothing"),
        ("#!/bin/sh\nsleep 1000 & echo late >&2; wait\n", "did not end within 5s"),
        ("#!/bin/sh\nkill -9 $$\n", "signal 9"),
        ("#!/bin/sh\nprintf '\\377'\n", "not UTF-8"),
        ("#!/bin/sh\nyes\n", "16777216"),
    ] {
        let report = of(text);
        assert!(report["error"].as_str().unwrap().contains(says), "{text}: {report}");
    }
    let says_no = "#!/bin/sh\necho '{\"content\":[{\"type\":\"text\",\"text\":\"not today\"}],\"isError\":true}'\n";
    let report = of(says_no);
    assert_eq!((&report["error"], &report["data"]["content"][0]["text"]), (&json!("not today"), &json!("not today")));
}

#[test]
fn what_cannot_begin_is_a_report_too() {
    for (step, status, says) in [
        ("command = \"no-such-program\"", 1, "\"no-such-program\" is not found: install it"),
        ("command = ", 2, "step.toml:1:11: it does not parse: expected a value"),
        ("command = \"cat\"\nargz = []", 2, "step.toml:2: argz"),
        ("command = \"cat\"\nenv = { A = { file = \"none\" } }", 2, "cannot read the secret file"),
        ("command = \"false\"\ntool = \"x\"", 1, "exit status: 1"),
        ("command = \"cat\"\ntool = \"x\"\ntimeout = \"2s\"", 1, "because"),
    ] {
        let said = error(step, status);
        assert!(said.contains(says), "{step}: {said}");
    }
    let host = host("command = \"cat\"");
    for (words, says) in [(&["step"][..], "<FILE>"), (&["step", "s.toml", "--bogus"], "'--bogus'")] {
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        let ran = Running::start(&mut host.footbridge(&words)).ends();
        let said: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        assert!(ran.status == 2 && said["error"].as_str().unwrap().contains(says), "{ran:?}");
        assert_eq!((&said["schema"], &said["success"]), (&"mcp-client/1".into(), &false.into()), "{ran:?}");
    }
    fs::set_permissions(host.path().join("step.toml"), fs::Permissions::from_mode(0o666)).unwrap();
    let said = report(&host, &[], 2);
    assert!(said["error"].as_str().unwrap().contains("chmod go-w"), "{said}");
    fs::remove_file(host.path().join("step.toml")).unwrap();
    assert!(
        report(&host, &[], 2)["error"].as_str().unwrap().contains("step.toml: No such file: write it, or name another")
    );
}

#[test]
fn a_policy_decides_about_it() {
    let host = host("command = \"./prints\"\n");
    script(&host, "prints", "#!/bin/sh\necho ran >ran\n");
    let denied = report(&host, &["--policy", "readonly"], 1);
    assert!(denied["error"].as_str().unwrap().contains("policy"), "{denied}");
    assert!(report(&host, &["--policy", "none"], 2)["error"].as_str().unwrap().contains("none"));
    let record = host.record();
    assert!(record.iter().any(|line| line["type"] == "refused") && !record.iter().any(|line| line["type"] == "intent"));
}

#[test]
fn a_person_at_the_terminal_is_asked() {
    for (word, status) in [("allow", 0), ("deny", 1)] {
        let host = host("command = \"./prints\"\nargs = [\"to be seen\"]\n");
        script(&host, "prints", PRINTS);
        let file = host.path().join("step.toml");
        let step = host.footbridge(&[OsStr::new("step"), file.as_os_str(), OsStr::new("--policy"), OsStr::new("ask")]);
        let words: Vec<String> =
            std::iter::once(step.get_program()).chain(step.get_args()).map(|word| format!("{word:?}")).collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{} > report; echo status $?", words.join(" "))]);
        shell.env_clear().current_dir(host.path());
        shell.envs(step.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut person = Person::new();
        let mut running = person.starts(&shell);
        person.sees("step");
        person.reads();
        person.types(&format!("{word}\r"));
        person.sees(&format!("status {status}"));
        let _status = running.status();
        let report: Value = serde_json::from_str(&fs::read_to_string(host.path().join("report")).unwrap()).unwrap();
        assert_eq!(report["success"], json!(status == 0), "{report}");
        assert_eq!(host.recorded("intent").len(), usize::from(status == 0), "{report}");
        host.leaves_nothing_behind();
    }
}

#[test]
fn a_tool_that_is_not_what_it_was_is_not_called() {
    let (listing, tape) = (tempfile::tempdir().unwrap(), Tape::new());
    let file = listing.path().join("listing.json");
    let lists = |description: &str| {
        let tool = json!([{"name": "t", "description": description, "inputSchema": {"type": "object"}}]);
        fs::write(&file, tool.to_string()).unwrap();
    };
    let server = programs::misbehaving_server();
    let step = format!(
        "command = {server:?}\nargs = [\"listing-of-a-file\", {file:?}]\ntool = \"t\"\nenv = {{ MISBEHAVING_RECORD = {:?} }}\n",
        tape.path()
    );
    let host = host(&step);
    lists("reads");
    assert!(report(&host, &[], 0)["error"].is_null());
    lists("writes");
    let said = report(&host, &[], 1)["error"].as_str().unwrap().to_owned();
    assert!(said.contains("changed") || said.contains("not what it was"), "{said}");
    assert_eq!(host.recorded("intent").len(), 1);
}

#[test]
fn a_routine_goes_on_after_a_failure_and_reports_all() {
    let host = host(
        "[[routines.nightly.steps]]\nname = \"one\"\ncommand = \"./prints\"\nargs = [\"first\"]\n\
         [[routines.nightly.steps]]\nname = \"two\"\ncommand = \"false\"\n\
         [[routines.nightly.steps]]\nname = \"three\"\ncommand = \"./prints\"\nargs = [\"third\"]\n",
    );
    script(&host, "prints", PRINTS);
    let all = report(&host, &["--routine", "nightly"], 1);
    assert_eq!(all["error"], "1 of 3 steps failed: two");
    let steps = all["data"]["steps"].as_array().unwrap();
    let texts = [0, 2].map(|at| &steps[at]["data"]["content"][0]["text"]);
    assert_eq!(texts, [&json!("first 0 "), &json!("third 0 ")]);
    assert!(steps[1]["error"].as_str().unwrap().contains("exit status 1"), "{all}");
    let unknown = report(&host, &["--routine", "nightlu"], 2);
    assert!(unknown["error"].as_str().unwrap().contains("did you mean \"nightly\"?"), "{unknown}");
}

#[test]
fn a_signal_ends_the_steps_that_are_left_and_their_report_says_so() {
    let host = host(
        "[[routines.all.steps]]\nname = \"hangs\"\ncommand = \"./hangs\"\n\
         [[routines.all.steps]]\nname = \"next\"\ncommand = \"false\"\n",
    );
    let began = host.path().join("began");
    nix::unistd::mkfifo(&began, nix::sys::stat::Mode::S_IRWXU).unwrap();
    script(&host, "hangs", &format!("#!/bin/sh\necho on >{}\nexec sleep 1000\n", began.display()));
    let file = host.path().join("step.toml");
    let words = [OsStr::new("step"), file.as_os_str(), OsStr::new("--routine"), OsStr::new("all")];
    let running = Running::start(&mut host.footbridge(&words));
    assert_eq!(read(&began), "on\n");
    running.signal(Signal::SIGTERM);
    let ran = running.ends();
    assert_eq!(ran.status, 143, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let said = |at: usize| report["data"]["steps"][at]["error"].as_str().unwrap().to_owned();
    assert!(said(0).contains("ended by SIGTERM") && said(1).contains("was not run"), "{report}");
    host.leaves_nothing_behind();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
