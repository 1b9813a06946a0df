//! That policies which say the same have one revision, and that a change of any part makes another.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::{
    CallKind, Effect, Effects, Policy, Rule, Says, SessionRules,
    conditions::{Condition, Pointer, Test, regex},
    globs::{Glob, Of},
    policy::{Labelled, PolicySettings},
    rules::{Kinds, Scope},
};
use crate::names::Labels;

/// All that goes into a policy.
struct Parts {
    name: &'static str,
    rules: Vec<Rule>,
    settings: PolicySettings,
    labelled: Vec<Labelled>,
}

fn text(pattern: &str) -> Glob {
    Glob::new(pattern, Of::Text).unwrap()
}

fn condition(at: &str, test: Test) -> Condition {
    Condition::new(Pointer::new(at).unwrap(), test)
}

fn parts() -> Parts {
    let scope = Scope {
        servers: Some(vec![text("demo")]),
        names: Some(vec![text("push*")]),
        effects: Some(Effects::of(&[Effect::Read])),
        labels: [("team".to_owned(), text("search"))].into(),
        ..Scope::default()
    };
    let conditions = vec![condition("/a", Test::Equals(json!({"x": 1, "y": 2})))];
    let rule = Rule { id: "one".into(), says: Says::Allow, scope, conditions };
    let other = Rule { id: "two".into(), says: Says::Deny, scope: Scope::default(), conditions: Vec::new() };
    let labelled = Labelled { servers: Some(vec![text("s")]), tools: None, effects: Effects::of(&[Effect::Write]) };
    Parts { name: "p", rules: vec![rule, other], settings: PolicySettings::default(), labelled: vec![labelled] }
}

impl Parts {
    fn policy(self) -> Arc<Policy> {
        Policy::new(self.name, self.rules, self.settings).with_labels(self.labelled.into())
    }
}

/// Of every kind of test, more than one where there is more to say.
fn tests() -> Vec<Test> {
    let number = |value: Value| value.as_number().cloned();
    vec![
        Test::Equals(json!({"x": 1, "y": 3})),
        Test::Equals(json!("1")),
        Test::Equals(json!(1)),
        Test::OneOf(vec![json!(1)]),
        Test::OneOf(vec![json!(1), json!(2)]),
        Test::Glob(vec![text("a"), text("b")]),
        Test::Glob(vec![text("a,b")]),
        Test::Path(vec![Glob::new("a", Of::Path).unwrap()]),
        Test::Glob(vec![text("a")]),
        Test::Regex(regex("a", true).unwrap()),
        Test::Regex(regex("a", false).unwrap()),
        Test::Range(number(json!(1)), None),
        Test::Range(None, number(json!(1))),
        Test::Length(1, 2),
        Test::Length(1, 3),
        Test::Present(true),
        Test::Present(false),
    ]
}

/// Changes of one part each.
/// Changes one part.
type Change = Box<dyn Fn(&mut Parts)>;

fn changes() -> Vec<Change> {
    let mut all: Vec<Change> = vec![
        Box::new(|parts| parts.name = "q"),
        Box::new(|parts| parts.rules.reverse()),
        Box::new(|parts| drop(parts.rules.pop())),
        Box::new(|parts| parts.rules[0].id = "other".into()),
        Box::new(|parts| parts.rules[0].says = Says::Ask),
        Box::new(|parts| parts.rules[0].says = Says::Hide),
        Box::new(|parts| parts.rules[0].scope.kinds = Kinds::of(&[CallKind::Tool])),
        Box::new(|parts| parts.rules[0].scope.kinds = Kinds::of(&[CallKind::Prompt])),
        Box::new(|parts| parts.rules[0].scope.servers = None),
        Box::new(|parts| parts.rules[0].scope.servers = Some(Vec::new())),
        Box::new(|parts| parts.rules[0].scope.servers = Some(vec![text("demo"), text("more")])),
        Box::new(|parts| parts.rules[0].scope.names = Some(vec![text("pull*")])),
        Box::new(|parts| parts.rules[0].scope.names = Some(vec![Glob::new("push*", Of::Path).unwrap()])),
        Box::new(|parts| parts.rules[0].scope.uris = Some(vec![text("push*")])),
        Box::new(|parts| parts.rules[0].scope.effects = Some(Effects::of(&[]))),
        Box::new(|parts| parts.rules[0].scope.effects = None),
        Box::new(|parts| parts.rules[0].scope.labels.clear()),
        Box::new(|parts| drop(parts.rules[0].scope.labels.insert("team".to_owned(), text("*")))),
        Box::new(|parts| parts.rules[0].conditions.clear()),
        Box::new(|parts| parts.rules[0].conditions[0] = condition("/b", Test::Equals(json!({"x": 1, "y": 2})))),
        Box::new(|parts| parts.settings.reveal_rules = true),
        Box::new(|parts| parts.settings.argument_bytes = Some(1)),
        Box::new(|parts| parts.settings.result_bytes = Some(1)),
        Box::new(|parts| parts.labelled.clear()),
        Box::new(|parts| parts.labelled[0].servers = None),
        Box::new(|parts| parts.labelled[0].tools = Some(vec![text("s")])),
        Box::new(|parts| parts.labelled[0].effects = Effects::of(&[Effect::Write, Effect::Egress])),
    ];
    for number in 0..tests().len() {
        all.push(Box::new(move |parts| parts.rules[0].conditions[0] = condition("/a", tests().remove(number))));
    }
    all
}

#[test]
fn policies_that_say_the_same_have_one_revision() {
    let mut other = parts();
    other.rules[0].conditions[0] = condition("/a", Test::Equals(json!({"y": 2, "x": 1})));
    assert_eq!(parts().policy().revision(), parts().policy().revision());
    assert_eq!(parts().policy().revision(), other.policy().revision());
}

#[test]
fn a_change_of_any_part_makes_another_revision() {
    let changed = changes().into_iter().map(|change| {
        let mut parts = parts();
        change(&mut parts);
        parts.policy().revision()
    });
    let all: BTreeSet<_> = changed.chain([parts().policy().revision()]).collect();
    assert_eq!(all.len(), changes().len() + 1);
}

#[test]
fn the_rules_of_sessions_are_the_same_where_the_same_ones_are_meant_for_them() {
    let of = |team: &str| {
        let labels: Labels = [("team".to_owned(), team.to_owned())].into();
        SessionRules::new(parts().policy(), &labels).digest()
    };
    assert_eq!(of("a"), of("b"));
    assert_ne!(of("a"), of("search"));
    let mut renamed = parts();
    renamed.name = "q";
    assert_ne!(SessionRules::new(renamed.policy(), &Labels::default()).digest(), of("a"));
}
