//! What `docs/policy.md` says is so: its examples are read, and decide as they say.

use serde_json::Value;

use super::*;
use crate::{names::Labels, policy_file::policies_of};

const DOC: &str = include_str!("../../../../docs/policy.md");

/// The blocks of a language, each with the lines after it up to the next of the same language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    DOC.split(fence.as_str()).skip(1).collect()
}

fn inside(block: &str) -> &str {
    block.split("```").next().unwrap()
}

#[test]
fn the_examples_of_the_documentation_decide_as_it_says() {
    let mut decided = 0;
    for block in blocks("toml") {
        let text = inside(block);
        let policies = policies_of(text).unwrap();
        let name = policies.names().find(|name| !policy::BUILT_IN.contains(name)).unwrap();
        let rules = SessionRules::new(policies.get(name).unwrap(), &Labels::new());
        let expected = block.split("```decides\n").nth(1).unwrap();
        for line in inside(expected).lines() {
            let (call, decision) = line.rsplit_once(' ').unwrap();
            let [server, tool, arguments] = call.trim().splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let reads = ["read_", "get_", "list_"].iter().any(|start| tool.starts_with(start));
            let hints = if reads { r#"{"readOnlyHint":true}"# } else { "{}" };
            let subject = rules.tool(server, tool, Effects::from_annotations(serde_json::from_str(hints).ok()));
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            let said = if rules.shows_server(server) && rules.shows(&subject) {
                rules.decide(&subject, &rules.test(&subject, &arguments)).decision.as_str()
            } else {
                "hide"
            };
            assert_eq!(said, decision, "{line}");
            decided += 1;
        }
    }
    assert!(decided > 15, "{decided}");
}
