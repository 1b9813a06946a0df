//! Every mistake in a policy is found before the first call, with its line.

use std::path::Path;

use crate::{
    gate::{Decision, SessionRules},
    names::Labels,
    policy_file::{policies_of, read},
    settings_file::File,
};

/// What is odd about a text without a mistake.
fn notes(text: &str) -> Vec<String> {
    let file = File::new(Path::new("footbridge.toml"), text);
    let found = read(file, &file.parse().unwrap());
    assert_eq!(found.mistakes, [], "{text}");
    found.notes.iter().map(ToString::to_string).collect()
}

/// A policy of rules, each its members on lines of their own.
fn listed(rules: &[&str]) -> String {
    rules.iter().map(|rule| format!("[[policies.p.rules]]\n{}\n", rule.replace("; ", "\n"))).collect()
}

fn mistakes(text: &str) -> Vec<String> {
    policies_of(text).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_file_is_read() {
    let text = r#"
[policies.careful]
reveal_rules = true
argument_bytes = "1 MiB"
result_bytes = 1000

[[policies.careful.rules]]
id = "own files"
decision = "allow"
kind = "tool"
server = "files"
tool = ["read_*", "list"]
effects = ["read"]
labels = { team = "a*" }
arguments = [{ at = "/path", path = ["/srv/**"] }, { at = "/n", range = { min = 1, max = 2.5 } }]

[policies.other]

[[effects]]
server = "files"
tool = "read_*"
are = ["read"]
"#;
    let policies = policies_of(text).unwrap();
    assert_eq!(policies.names().collect::<Vec<_>>(), ["ask", "careful", "open", "other", "readonly"]);
    let careful = policies.get("careful").unwrap();
    let settings = careful.settings();
    assert_eq!((settings.argument_bytes, settings.result_bytes), (Some(1 << 20), Some(1000)));
    assert!(settings.reveal_rules && careful.rules().len() == 1 && &*careful.rules()[0].id == "own files");
    let unknown = policies.get("carefull").unwrap_err().to_string();
    assert_eq!(unknown, "there is no policy \"carefull\": choose one of ask, careful, open, other, readonly");
}

#[test]
fn a_key_that_is_not_known_hides_no_rule() {
    let found = mistakes("[policies.p]\nrulez = 1\n[[policies.p.rules]]\ndecision = \"alow\"\nserver = 5\n");
    for part in ["policies.p.rulez", "decision", "server"] {
        assert!(found.iter().any(|mistake| mistake.contains(part)), "{part}: {found:#?}");
    }
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn every_mistake_is_named_at_once_with_its_line() {
    let text = r#"[policies.a]
colour = 1
[policies.open]
[policies."x y"]
[policies.b]
argument_bytes = "1 pound"
[[policies.c.rules]]
decision = "perhaps"
[[policies.c.rules]]
tool = "x"
[[policies.c.rules]]
decision = "allow"
tool = "[a"
server = ""
speed = 1
[[policies.c.rules]]
decision = "allow"
arguments = [
  { at = "x", equals = 1 },
  { at = "/x", regex = "(" },
  { at = "/x", range = { min = 2, max = 1 } },
]
[[effects]]
are = ["destructive"]
[edge]
allow_host = 1
"#;
    let found = mistakes(text);
    for start in [
        "footbridge.toml:2: policies.a.colour: \"colour\" is not known here",
        "footbridge.toml:3: policies.open: this policy is built in",
        "footbridge.toml:4: policies.x y: a policy's name",
        "footbridge.toml:6: policies.b.argument_bytes: \"1 pound\" is no size",
        "footbridge.toml:8: policies.c.rules[1].decision: \"perhaps\" is none of the words",
        "footbridge.toml:9: policies.c.rules[2]: \"decision\" is missing",
        "footbridge.toml:15: policies.c.rules[3].speed: \"speed\" is not known here",
        "footbridge.toml:19: policies.c.rules[4].arguments[1].at: ",
        "footbridge.toml:20: policies.c.rules[4].arguments[2].regex: ",
        "footbridge.toml:21: policies.c.rules[4].arguments[3].range: ",
        "footbridge.toml:24: effects[1].are: a tool has",
    ] {
        assert!(found.iter().any(|mistake| mistake.starts_with(start)), "{start}: {found:#?}");
    }
}

#[test]
fn what_can_never_match_is_a_mistake() {
    for (rules, line, part) in [
        (&["decision='allow'; tool=''"][..], 2, "an empty pattern"),
        (&["decision='allow'; tool=[]"], 2, "an empty list"),
        (&["decision='allow'; effects=[]"], 2, "an empty list"),
        (&["decision='allow'; effects=['destructive','egress']"], 2, "every call reads or writes"),
        (&["decision='allow'; kind='resource'; effects='read'"], 2, "every call reads or writes"),
        (&["decision='deny'; prompt='x'; effects='write'"], 2, "every call reads or writes"),
        (&["decision='allow'; tool='[a'"], 2, "is no pattern"),
        (&["decision='allow'; tool='{a'"], 2, "is no pattern"),
        (&["decision='allow'; uri='file:///a/../b'"], 2, "never matches"),
        (&["decision='allow'; uri='/a/'"], 2, "never matches"),
        (&["decision='allow'; uri='/[ab]'"], 2, "[...]"),
        (&["decision='allow'; tool='x'; uri='y:///'"], 1, "can never match"),
        (&["decision='allow'; tool='x'; prompt='y'"], 1, "can never match"),
        (&["decision='allow'; kind='resource'; tool='x'"], 1, "can never match"),
        (&["decision='allow'; kind='resource'; arguments=[{at='',present=true}]"], 1, "can never match"),
        (&["decision='hide'; arguments=[{at='/x',equals=1}]"], 2, "\"hide\" takes no conditions"),
        (&["decision='allow'; arguments=[{at='/x'}]"], 2, "a condition has"),
        (&["decision='allow'; arguments=[{at='/x',equals=1,glob='x'}]"], 2, "a condition has"),
        (&["decision='allow'; arguments=[{at='/x',one_of=[]}]"], 2, "an empty list"),
        (&["decision='allow'; arguments=[{at='/x',length={}}]"], 2, "\"min\""),
        (&["decision='allow'; arguments=[{at='/x',length={min=3,max=2}}]"], 2, "\"min\""),
        (&["decision='allow'; arguments=[{at='/x',range={min='a'}}]"], 2, "are numbers"),
        (&["decision='allow'; arguments=[{at='/x',equals=nan}]"], 2, "no such number"),
        (&["decision='allow'; arguments=[{at='/x',regex='(a{1000}){1000}'}]"], 2, "size limit"),
        (&["decision='allow'; arguments=[{at='/x',regex='(?=a)'}]"], 2, "look-around"),
        (&["decision='allow'; arguments=[{at='/x',regex='a('}]"], 2, "regex: \"a(\" is no regex: unclosed group"),
        (&["decision='allow'; arguments=[{at='/x',path='/a//b'}]"], 2, "never matches"),
        (&["decision='deny'; arguments=[{at='/x',path='secret/'}]"], 2, "never matches"),
        (&["decision='allow'; arguments=[{at='/x',path='~/notes/**'}]"], 2, "never matches"),
        (&["decision='deny'; arguments=[{at='/x',path='/srv/{secret,keys/}'}]"], 2, "never matches"),
        (&["decision='deny'; arguments=[{at='/x',path='{/etc,/root}/**'}]"], 2, "write a list"),
        (&["decision='deny'; arguments=[{at='/x',path='?etc/**'}]"], 2, "write a list"),
        (&["decision='deny'; arguments=[{at='/x',path='/srv/secret**'}]"], 2, "whole folders"),
        (&["decision='deny'; uri='file:///srv/secret**'"], 2, "whole folders"),
        (&["decision='allow'; arguments=[]"], 2, "arguments asks for nothing"),
        (&["decision='allow'; labels={}"], 2, "labels asks for nothing"),
        (&["decision='allow'; id=''"], 2, "a rule's id"),
        (&["decision='allow'; tool='a'; id='x'", "decision='deny'; id='x'"], 4, "is called \"x\" too"),
    ] {
        let text = listed(rules);
        let found = mistakes(&text);
        assert!(found.len() == 1 && found[0].contains(part), "{text} {part}: {found:#?}");
        let at: usize = found[0].split(':').nth(1).unwrap().parse().unwrap();
        assert!(at >= line, "{text}: {found:?}");
    }
}

#[test]
fn a_rule_that_others_leave_nothing_to_is_a_note() {
    for (rules, line, part) in [
        (&["decision='allow'", "decision='deny'; tool='x'"][..], 3, "rule 1 (\"1\") decides"),
        (&["decision='allow'; server='a*'", "decision='deny'; server='ab'; tool='x'"], 4, "can never match"),
        (&["decision='deny'; effects=['write','read']", "decision='allow'; effects='write'"], 4, "can never match"),
        (&["decision='allow'; tool='x'; arguments=[{at='/x',equals=1}]", "decision='hide'; tool='x*'"], 1, "rule 2"),
    ] {
        let found = notes(&listed(rules));
        assert!(found.len() == 1 && found[0].contains(part), "{rules:?} {part}: {found:#?}");
        let at: usize = found[0].split(':').nth(1).unwrap().parse().unwrap();
        assert!(at >= line, "{rules:?}: {found:?}");
    }
}

#[test]
fn a_rule_in_front_closes_everything_in_a_hurry() {
    let frozen = listed(&["id='frozen'; decision='deny'", "decision='allow'; tool='x'", "decision='ask'"]);
    assert_eq!(notes(&frozen).len(), 2, "{:?}", notes(&frozen));
    let rules = SessionRules::new(policies_of(&frozen).unwrap().get("p").unwrap(), &Labels::new());
    let subject = rules.tool("s", "x", crate::gate::Effects::of_reading());
    let decided = rules.decide(&subject, &rules.test(&subject, &serde_json::json!({})));
    assert_eq!((decided.decision, decided.rule.as_deref()), (Decision::Deny, Some("frozen")));
}

#[test]
fn rules_that_overlap_are_no_mistake() {
    for rules in [
        &["decision='allow'; server='a'", "decision='deny'"][..],
        &["decision='allow'; effects='read'", "decision='deny'; effects='read'"],
        &["decision='allow'; uri='file:///a/**'", "decision='deny'; uri='file:///a/**'"],
        &["decision='allow'; labels={a='b'}", "decision='deny'"],
        &["decision='allow'; tool='a'; arguments=[{at='/x',equals=1}]", "decision='deny'; tool='a'"],
        &["decision='allow'; arguments=[{at='/x',equals=1}]", "decision='allow'; tool='a'", "decision='hide'"],
    ] {
        let text = listed(rules);
        assert_eq!(notes(&text), [""; 0], "{text}");
    }
}
