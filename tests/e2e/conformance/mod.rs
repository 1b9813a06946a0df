//! MCP's conformance suite, for the two revisions that it has. `server` has its server side, against `/mcp`. What it asks
//! of a client is done here, with `tool-cli` in a run, so that requests go all the way. Every scenario of the suite is run
//! or left out for a reason.

mod server;

use std::{collections::BTreeSet, path::PathBuf, process::Command};

use footbridge_tests::{Host, Ran, Real, Running, Servers, programs};
use serde_json::json;

/// Revisions, and how a server of each is configured.
const REVISIONS: [(&str, &str); 2] = [("2025-11-25", "initialize"), ("2026-07-28", "auto")];

/// What is done in each scenario.
const RUN: [(&str, &str); 11] = [
    ("initialize", "tool-cli x"),
    ("tools_call", r#"tool-cli x add_numbers '{"a":2,"b":3}'"#),
    ("elicitation-sep1034-client-defaults", "tool-cli x test_client_elicitation_defaults '{}'"),
    ("sse-retry", "tool-cli x test_reconnection '{}'"),
    ("request-metadata", "tool-cli x"),
    (
        "sep-2322-client-request-state",
        "for tool in test_mrtr_echo_state test_mrtr_no_state test_mrtr_no_result_type; do tool-cli x $tool '{}' & done
        tool-cli x test_mrtr_unrelated '{}'; wait",
    ),
    ("http-standard-headers", "tool-cli x test_headers '{}'; tool-cli x my-hyphenated-tool '{}'"),
    (
        "http-custom-headers",
        r#"tool-cli x test_custom_headers '{"region":"us-west1","priority":42,"verbose":false,"debug":true,"empty_val":"",
        "method_val":"test-method","float_val":3.14159,"non_ascii_val":"Hello, 世界","whitespace_val":" padded ",
        "leading_space_val":" us-west1","trailing_space_val":"us-west1 ","internal_space_val":"us west 1",
        "control_char_val":"line1\nline2","crlf_val":"line1\r\nline2","tab_val":"\tindented","query":"SELECT 1"}'
        # A null, which the suite has here, does not fit the schema and is refused before it leaves.
        tool-cli x test_custom_headers_null '{"region":"us-east1","priority":1,"query":"SELECT 1"}'"#,
    ),
    (
        "http-invalid-tool-headers",
        r#"tool-cli x valid_tool '{"region":"a"}'; ! tool-cli x invalid_empty_header '{"value":"a"}'"#,
    ),
    ("json-schema-ref-no-deref", "tool-cli x"),
    (
        "json-schema-2020-12-preservation",
        r#"tool-cli x json_schema_2020_12_tool --json >tool
        tool-cli x json_schema_echo "$(NODE -p 'JSON.stringify({schema: JSON.parse(fs.readFileSync("tool")).inputSchema})')""#,
    ),
];

/// Beginnings of the names of those that are not run, and why.
const LEFT_OUT: [(&str, &str); 2] = [
    ("auth/", "OAuth is not spoken yet: a server that wants it is named, and a token can be configured as a header"),
    ("sep-2640-client-", "an extension (skills), which is not spoken"),
];

/// The suite, with the node that it needs.
struct Suite {
    node: PathBuf,
    script: PathBuf,
}

impl Suite {
    /// As `scripts/servers` installs it.
    fn of(test: &str) -> Option<Self> {
        let (node, script) = (Real::server(test, "node")?, Real::server(test, "conformance.js")?);
        Some(Self { node: node.program(), script: std::fs::canonicalize(script.program()).unwrap() })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).args(words);
        command
    }

    /// Its scenarios of a side, each with its revisions.
    fn scenarios(&self, side: &str) -> Vec<(String, Vec<String>)> {
        let listed = Running::start(&mut self.command(&["list", side])).ends().well();
        let scenario = |line: &str| {
            let (name, revisions) = line.strip_prefix("  - ")?.strip_suffix(']')?.split_once(" [")?;
            Some((name.to_owned(), revisions.split(',').map(str::to_owned).collect()))
        };
        listed.lines().filter_map(scenario).collect()
    }

    /// Runs one scenario of a revision.
    fn runs(&self, (revision, protocol): (&str, &str), name: &str, steps: &str) -> Ran {
        let server = json!({"url": "${CONFORMANCE_URL}", "protocol": protocol});
        let host = Host::open_with(&Servers::none().and("x", server));
        let answers = host.path().join("answers");
        programs::writes(&answers, "#!/bin/sh\ncat >/dev/null\necho '{\"decision\":\"allow\",\"content\":{}}'\n");
        let host =
            host.settings(&format!("[approval]\nwatch = false\ncommand = [{:?}]\n", answers.display().to_string()));
        let steps = format!("set -ex\n{}\n", steps.replace("NODE", &self.node.display().to_string()));
        programs::writes(&host.path().join("steps"), &steps);
        let run = host.run_of(&["sh", &host.path().join("steps").display().to_string()]);
        let words: Vec<String> =
            [run.get_program()].into_iter().chain(run.get_args()).map(|word| format!("'{}'", word.display())).collect();
        let client = host.path().join("client");
        let script = format!("#!/bin/sh\nCONFORMANCE_URL=$1 exec {}\n", words.join(" "));
        programs::writes(&client, &script);
        let client = client.display().to_string();
        let mut suite = self.command(&["client", "--command", &client, "--scenario", name, "--spec-version", revision]);
        suite.args(["--timeout", "60000"]).current_dir(host.work()).env_clear();
        suite.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Running::start(&mut suite).ends()
    }
}

#[test]
fn every_scenario_is_run_or_left_out_for_a_reason() {
    let Some(suite) = Suite::of("every_scenario_is_run_or_left_out_for_a_reason") else { return };
    let scenarios = suite.scenarios("--client");
    let run: BTreeSet<&str> = RUN.iter().map(|(name, _)| *name).collect();
    for (name, _) in &scenarios {
        let is_left_out = LEFT_OUT.iter().any(|(start, _)| name.starts_with(start));
        assert!(run.contains(name.as_str()) != is_left_out, "{name} is neither run nor left out, or both");
    }
    let is_there = |start: &str| scenarios.iter().any(|(name, _)| name.starts_with(start));
    assert!(run.iter().all(|name| is_there(name)) && LEFT_OUT.iter().all(|(start, _)| is_there(start)));
}

/// Runs all scenarios of a revision, which are so many.
fn conforms(test: &str, revision: (&str, &str), all: usize) {
    let Some(suite) = Suite::of(test) else { return };
    let mut count = 0;
    for (name, revisions) in suite.scenarios("--client") {
        let steps = RUN.iter().find(|(run, _)| *run == name).map(|(_, steps)| *steps);
        let Some(steps) = steps.filter(|_| revisions.iter().any(|of| of == revision.0)) else { continue };
        let ran = suite.runs(revision, &name, steps);
        let passed = ran.stdout.contains("OVERALL: PASSED") || ran.stderr.contains("OVERALL: PASSED");
        let said = format!("{name}: {}\n{}", ran.stdout, ran.stderr);
        // One that checks nothing shows nothing.
        assert!(ran.status == 0 && passed && !said.contains("Passed: 0/"), "{said}");
        count += 1;
    }
    assert_eq!(count, all, "scenarios of {} that were run", revision.0);
}

#[test]
fn the_client_conforms_to_2025_11_25() {
    conforms("the_client_conforms_to_2025_11_25", REVISIONS[0], 5);
}

#[test]
fn the_client_conforms_to_2026_07_28() {
    conforms("the_client_conforms_to_2026_07_28", REVISIONS[1], 8);
}
