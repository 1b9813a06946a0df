//! The decision, by a table and by properties. Policies are written as the operator writes them.

use proptest::prelude::*;
use serde_json::json;

use super::policy::never_match;
use super::*;
use crate::{names::Labels, policy_file::policies_of};

fn rules_with(text: &str, labels: &[(&str, &str)]) -> SessionRules {
    let policies = policies_of(&format!("[policies.test]\n{text}")).unwrap();
    let labels: Labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    SessionRules::new(policies.get("test").unwrap(), &labels)
}

fn rules(text: &str) -> SessionRules {
    rules_with(text, &[])
}

/// A list of rules, each in its own words.
fn listed(each: &[&str]) -> String {
    each.iter().map(|rule| format!("[[policies.test.rules]]\n{}\n", rule.replace("; ", "\n"))).collect()
}

fn annotated(text: &str) -> Effects {
    Effects::from_annotations(Some(serde_json::from_str(text).unwrap()))
}

fn decided(rules: &SessionRules, subject: &Subject<'_>, arguments: &Value) -> (Decision, Option<String>) {
    let Decided { decision, rule } = rules.decide(subject, &rules.test(subject, arguments));
    (decision, rule.map(|rule| rule.to_string()))
}

const READS: &str = r#"{"readOnlyHint":true,"openWorldHint":false}"#;
const LOOKS_OUT: &str = r#"{"readOnlyHint":true}"#;
const WRITES: &str = r#"{"destructiveHint":false,"openWorldHint":false}"#;
const ANYTHING: &str = "{}";

use Decision::{Allow, Ask, Deny};

#[test]
fn the_built_in_policies_say_what_they_are_called() {
    for (policy, expected) in [
        (Policy::open(), [Allow, Allow, Allow, Allow, Allow]),
        (Policy::readonly(), [Allow, Allow, Deny, Deny, Allow]),
        (Policy::ask(), [Allow, Allow, Ask, Ask, Allow]),
    ] {
        let rules = SessionRules::new(Arc::clone(&policy), &Labels::new());
        let tools = [READS, LOOKS_OUT, WRITES, ANYTHING].map(|hints| rules.tool("s", "t", annotated(hints)));
        let all = tools.into_iter().chain([Subject::resource("s", "file:///../x")]);
        let said: Vec<Decision> = all.map(|subject| decided(&rules, &subject, &json!({})).0).collect();
        assert_eq!(said, expected, "{}", policy.name());
    }
    assert!(Policy::ask().can_ask() && !Policy::open().can_ask() && !Policy::readonly().can_ask());
}

#[test]
fn a_path_of_a_service_is_stopped_whatever_parameters_its_segments_have() {
    let rules = rules(&listed(&["id='no'; decision='deny'; service='all'; path='/v1/messages'", "decision='allow'"]));
    let said = |path| decided(&rules, &Subject::http("all", "POST", path, Effects::of_reading()), &json!({})).0;
    for path in ["/v1/messages", "/v1/messages;y", "/v1;y/messages", "/v1;/messages;y=z", "/v1%3by/messages"] {
        assert_eq!(said(path), Deny, "{path}");
    }
    for path in ["/v1;messages", "/v1/x;y/messages", "/v2;y/messages"] {
        assert_eq!(said(path), Allow, "{path}");
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let tool = |name| Subject::tool("git", name, annotated(ANYTHING));
    let read = |name| Subject::tool("git", name, annotated(READS));
    for (each, subject, arguments, expected) in [
        (&[][..], tool("x"), json!({}), (Ask, None)),
        (&["decision='deny'; tool='push'"], tool("push"), json!({}), (Deny, Some("1"))),
        (&["decision='deny'; tool='push'"], tool("Push"), json!({}), (Ask, None)),
        (&["decision='deny'; server='svn'"], tool("push"), json!({}), (Ask, None)),
        (&["decision='allow'; tool='pu*'; id='p'", "decision='deny'"], tool("push"), json!({}), (Allow, Some("p"))),
        (&["decision='allow'; tool=['a','b']", "decision='deny'"], tool("push"), json!({}), (Deny, Some("2"))),
        (&["decision='allow'; kind='resource'", "decision='deny'"], tool("push"), json!({}), (Deny, Some("2"))),
        (&["decision='allow'; prompt='*'", "decision='deny'"], tool("push"), json!({}), (Deny, Some("2"))),
        (&["decision='allow'; effects=['read','egress']"], read("x"), json!({}), (Allow, Some("1"))),
        (&["decision='allow'; effects=['write','egress']"], read("x"), json!({}), (Ask, None)),
        (&["decision='allow'; effects='write'"], tool("x"), json!({}), (Ask, None)),
        (&["decision='deny'; effects='destructive'"], tool("x"), json!({}), (Deny, Some("1"))),
        (&["decision='deny'; effects='destructive'"], read("x"), json!({}), (Ask, None)),
        (
            &["decision='allow'; arguments=[{at='/branch',equals='main'}]", "decision='deny'"],
            tool("push"),
            json!({"branch": "main"}),
            (Allow, Some("1")),
        ),
        (
            &["decision='allow'; arguments=[{at='/branch',equals='main'},{at='/force',present=false}]"],
            tool("push"),
            json!({"branch": "main", "force": false}),
            (Ask, None),
        ),
    ] {
        let rules = rules(&listed(each));
        let (decision, rule) = decided(&rules, &subject, &arguments);
        assert_eq!((decision, rule.as_deref()), expected, "{each:?} {subject:?}");
    }
}

#[test]
fn what_cannot_be_evaluated_fails_what_opens_and_holds_for_what_closes() {
    let tool = Subject::tool("s", "t", annotated(ANYTHING));
    let tests =
        ["equals='x'", "one_of=['x']", "glob='x*'", "path='/x/**'", "regex='x'", "range={max=5}", "length={max=5}"];
    for test in tests {
        for arguments in [json!({}), json!({"a": null}), json!({"a": true}), json!({"b": "x"})] {
            for (word, expected) in [("allow", Ask), ("deny", Deny)] {
                let one = format!("decision='{word}'; arguments=[{{at='/a',{test}}}]");
                let rules = rules(&listed(&[&one]));
                assert_eq!(decided(&rules, &tool, &arguments).0, expected, "{one} {arguments}");
                // Nor where nobody looked at the arguments at all.
                assert_eq!(rules.decide(&tool, &Tested::default()).decision, expected, "{one}");
            }
            let one = format!("decision='ask'; arguments=[{{at='/a',{test}}}]");
            let rules = rules(&listed(&[&one, "decision='allow'"]));
            assert_eq!(decided(&rules, &tool, &arguments).0, Allow, "{one} {arguments}");
        }
    }
}

#[test]
fn a_forgotten_anchor_does_not_open_the_gate() {
    let tool = Subject::tool("s", "t", annotated(ANYTHING));
    let rules_for = |word: &str| rules(&listed(&[&format!("decision='{word}'; arguments=[{{at='/a',regex='ls'}}]")]));
    let arguments = json!({"a": "ls; rm -rf /"});
    assert_eq!(decided(&rules_for("allow"), &tool, &arguments).0, Ask);
    assert_eq!(decided(&rules_for("deny"), &tool, &arguments).0, Deny);
}

#[test]
fn resources_go_by_what_servers_may_make_of_their_uri() {
    let each = ["decision='deny'; uri='file:///secret/**'", "decision='allow'; uri='file:///**'"];
    let denying = rules(&listed(&each));
    let say = |uri: &str| decided(&denying, &Subject::resource("s", uri), &json!({})).0;
    assert_eq!((say("file:///a"), say("file:///secret/a"), say("note://1")), (Allow, Deny, Ask));
    for uri in ["file:///a/../secret/x", "FILE:///secret/a", "file:///%73ecret/a", "file:///a/%2e%2e/secret/x"] {
        assert_eq!(say(uri), Deny, "{uri}");
    }
    let each = ["decision='ask'; uri='file:///secret/**'", "decision='allow'; uri='file:///**'"];
    let asking = rules(&listed(&each));
    for uri in ["file:///secret/a", "file:///a/../secret/x", "file:///%73ecret/a", "file:///a/%2e%2e/secret/x"] {
        assert_eq!(decided(&asking, &Subject::resource("s", uri), &json!({})).0, Ask, "nobody is passed by: {uri}");
    }
}

#[test]
fn labels_choose_the_rules_of_a_session() {
    let each = listed(&["decision='allow'; labels={team='search*'}", "decision='deny'"]);
    let tool = Subject::tool("s", "t", annotated(ANYTHING));
    for (labels, expected) in
        [(&[][..], Deny), (&[("team", "search-2")], Allow), (&[("team", "Search")], Deny), (&[("tea", "search")], Deny)]
    {
        assert_eq!(decided(&rules_with(&each, labels), &tool, &json!({})).0, expected, "{labels:?}");
    }
}

#[test]
fn the_operators_word_replaces_what_a_server_says_of_its_tool() {
    let text = "[[effects]]\ntool='get_*'\nare='read'\n[[effects]]\nserver='s'\nare=['write','destructive','egress']\n";
    let policies = policies_of(text).unwrap();
    let rules = SessionRules::new(policies.get("readonly").unwrap(), &Labels::new());
    let say = |server: &str, name: &str, hints: &str| {
        let subject = rules.tool(server, name, annotated(hints));
        decided(&rules, &subject, &json!({})).0
    };
    assert_eq!((say("s", "get_x", ANYTHING), say("s", "x", READS), say("o", "x", READS)), (Allow, Deny, Allow));
}

#[test]
fn what_is_hidden_is_decided_before_arguments() {
    let each = ["decision='allow'; tool='a*'; arguments=[{at='/x',equals=1}]", "decision='hide'; tool=['ab','b']"];
    let hiding = rules(&listed(&each));
    let shows = |name: &str| hiding.shows(&Subject::tool("s", name, annotated(ANYTHING)));
    assert!(shows("a") && !shows("ab") && !shows("b") && hiding.shows_server("s"));
    assert_eq!(decided(&hiding, &Subject::tool("s", "b", annotated(ANYTHING)), &json!({})).0, Deny);
    let whole = rules(&listed(&["decision='allow'; server='a'; tool='x'", "decision='hide'; server=['a','b']"]));
    assert!(whole.shows_server("a") && !whole.shows_server("b") && whole.shows_server("c"));
    assert!(whole.shows(&Subject::tool("a", "x", annotated(ANYTHING))));
    assert!(!whole.shows(&Subject::tool("a", "y", annotated(ANYTHING))));
    assert!(whole.hides_resources_of("a") && !whole.hides_resources_of("c"));
    let tools = rules(&listed(&["decision='hide'; tool='*'"]));
    assert!(tools.shows_server("a") && !tools.hides_resources_of("a"));
}

#[test]
fn a_policy_knows_whether_it_can_ask() {
    let can_ask = |each: &[&str]| rules(&listed(each)).policy().can_ask();
    assert!(can_ask(&[]));
    assert!(can_ask(&["decision='allow'; kind=['tool','resource']"]));
    assert!(can_ask(&["decision='ask'; tool='x'", "decision='deny'"]));
    assert!(can_ask(&["decision='allow'; labels={a='*'}"]));
    assert!(!can_ask(&["decision='allow'; tool='x'", "decision='deny'"]));
    assert!(!can_ask(&["decision='hide'"]));
}

const NAMES: [&str; 5] = ["a", "ab", "b", "ba", "abc"];
const PATTERNS: [&str; 6] = ["a", "a*", "*b", "b?", "{a,b}", "ab*"];
const HINTS: [&str; 4] = [READS, LOOKS_OUT, WRITES, ANYTHING];

/// A rule in words, for [`listed`].
fn any_rule() -> impl Strategy<Value = String> {
    let pattern = || prop::option::of(prop::sample::select(&PATTERNS[..]));
    let effects = prop::option::of(prop::sample::subsequence(vec!["read", "write", "destructive", "egress"], 1..4));
    let condition = prop::option::of(prop::sample::select(vec!["equals=1", "range={max=3}", "present=true"]));
    let word = prop::sample::select(vec!["allow", "ask", "deny", "hide"]);
    (word, pattern(), pattern(), effects, condition).prop_map(|(word, server, tool, effects, condition)| {
        let mut rule = format!("decision='{word}'");
        server.iter().for_each(|pattern| rule.push_str(&format!("; server='{pattern}'")));
        tool.iter().for_each(|pattern| rule.push_str(&format!("; tool='{pattern}'")));
        effects.iter().for_each(|effects| rule.push_str(&format!("; effects={effects:?}")));
        let condition = condition.filter(|_| word != "hide");
        condition.iter().for_each(|test| rule.push_str(&format!("; arguments=[{{at='/x',{test}}}]")));
        rule
    })
}

/// Whether a rule in words is about a call, worked out from the words.
fn is_about(rule: &str, (server, tool, hints): (&str, &str, &str), x: Option<i64>) -> bool {
    let part = |key: &str| rule.split("; ").find_map(|part| part.strip_prefix(&format!("{key}=")));
    let names = |key: &str, name: &str| part(key).is_none_or(|pattern| naive(pattern.trim_matches('\''), name));
    let has = annotated(hints).words();
    let effects = part("effects").is_none_or(|list| {
        let list: Vec<String> = serde_json::from_str(list).unwrap();
        let listed = |effect: &&str| list.iter().any(|one| one == effect);
        if rule.contains("'allow'") { has.iter().all(&listed) } else { has.iter().any(listed) }
    });
    let closes = !rule.contains("'allow'") && !rule.contains("'ask'");
    let holds = match (part("arguments"), x) {
        (None, _) => true,
        (Some(test), x) if test.contains("present") => x.is_some(),
        (Some(_), None) => closes,
        (Some(test), Some(x)) if test.contains("equals") => x == 1,
        (Some(_), Some(x)) => x <= 3,
    };
    names("server", server) && names("tool", tool) && effects && holds
}

fn naive(pattern: &str, name: &str) -> bool {
    match pattern {
        "a*" => name.starts_with('a'),
        "*b" => name.ends_with('b'),
        "b?" => name.len() == 2 && name.starts_with('b'),
        "{a,b}" => name == "a" || name == "b",
        "ab*" => name.starts_with("ab"),
        exact => name == exact,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_decision_is_that_of_the_first_rule_in_words(
        each in prop::collection::vec(any_rule(), 0..6),
        server in prop::sample::select(&NAMES[..]),
        tool in prop::sample::select(&NAMES[..]),
        hints in prop::sample::select(&HINTS[..]),
        x in prop::option::of(0i64..6),
    ) {
        let words: Vec<&str> = each.iter().map(String::as_str).collect();
        // A list with a rule that asks for what no call has is refused, so there is nothing to decide.
        let Ok(policies) = policies_of(&format!("[policies.test]\n{}", listed(&words))) else { return Ok(()) };
        let rules = SessionRules::new(policies.get("test").unwrap(), &Labels::new());
        let subject = rules.tool(server, tool, annotated(hints));
        let arguments = x.map_or(json!({}), |x| json!({"x": x}));
        let call = (server, tool, hints);
        let first = words.iter().find(|rule| is_about(rule, call, x));
        let expected = match first {
            Some(rule) if rule.contains("'allow'") => Allow,
            Some(rule) if rule.contains("'deny'") || rule.contains("'hide'") => Deny,
            _ => Ask,
        };
        prop_assert_eq!(decided(&rules, &subject, &arguments).0, expected);
        let seen = words.iter().find(|rule| !rule.contains("arguments") && is_about(rule, call, x));
        prop_assert_eq!(rules.shows(&subject), seen.is_none_or(|rule| !rule.contains("'hide'")));
        prop_assert!(rules.outlook(&subject).contains(&expected));
    }

    /// A rule that is said never to match really decides about nothing that is seen.
    #[test]
    fn a_rule_that_is_said_to_be_idle_never_matches(each in prop::collection::vec(any_rule(), 2..6)) {
        let words: Vec<&str> = each.iter().map(String::as_str).collect();
        let text = format!("[policies.test]\n{}", listed(&words));
        let Ok(policies) = policies_of(&text) else { return Ok(()) };
        let policy = policies.get("test").unwrap();
        let never: Vec<usize> = never_match(policy.rules()).into_iter().map(|(idle, _)| idle).collect();
        for server in NAMES {
            for (tool, hints) in NAMES.iter().flat_map(|tool| HINTS.map(|hints| (*tool, hints))) {
                for x in [None, Some(1), Some(2), Some(5)] {
                    let call = (server, tool, hints);
                    let seen = words.iter().find(|rule| !rule.contains("arguments") && is_about(rule, call, x));
                    if seen.is_some_and(|rule| rule.contains("'hide'")) {
                        continue;
                    }
                    let first = words.iter().position(|rule| is_about(rule, call, x));
                    prop_assert!(first.is_none_or(|first| !never.contains(&first)), "{:?} {:?}", words, never);
                }
            }
        }
    }

    #[test]
    fn no_arguments_make_a_path_rule_allow_what_walks_up(
        parts in prop::collection::vec(prop::sample::select(vec!["srv", "..", ".", "", "a", "etc"]), 1..8),
    ) {
        let rules = rules(&listed(&["decision='allow'; arguments=[{at='/p',path='/srv/**'}]"]));
        let path = format!("/{}", parts.join("/"));
        let subject = Subject::tool("s", "t", annotated(ANYTHING));
        let allowed = decided(&rules, &subject, &json!({ "p": path })).0 == Allow;
        let plain: Vec<&str> = parts.iter().copied().filter(|part| !["", "."].contains(part)).collect();
        prop_assert_eq!(allowed, plain.first() == Some(&"srv") && !plain.contains(&".."), "{}", path);
    }
}

/// Prints what a decision costs; run it with `--ignored --nocapture`, and with optimisation for a figure that counts.
#[test]
#[ignore = "prints a figure"]
fn the_time_of_a_decision_with_100_rules() {
    let each: Vec<String> = (0..100)
        .map(|n| match n % 4 {
            0 => format!("decision='allow'; server='server-{n}'; tool='get_*'; effects='read'"),
            1 => format!("decision='deny'; tool='*_delete_{n}'; effects='destructive'"),
            2 => format!("decision='allow'; server='s*'; tool='t{n}*'; arguments=[{{at='/p',path='/srv/{n}/**'}}]"),
            _ => format!("decision='ask'; server=['a{n}','b{n}']; tool='{{x,y}}_{n}'"),
        })
        .collect();
    let words: Vec<&str> = each.iter().map(String::as_str).collect();
    let rules = rules(&listed(&words));
    let arguments = json!({"p": "/srv/x/y", "q": 1});
    const ROUNDS: u32 = 20_000;
    let start = std::time::Instant::now();
    for _ in 0..ROUNDS {
        let subject = rules.tool("server", "tool", annotated(ANYTHING));
        let tested = rules.test(&subject, &arguments);
        assert_eq!(rules.decide(&subject, &tested).decision, Ask);
    }
    println!("a decision with 100 rules: {:?}", start.elapsed() / ROUNDS);
}
