//! Schemas that fit, that do not, and that would cost too much.

use serde_json::{Map, json};

use super::*;

fn check(schema: Value, arguments: Value) -> Check {
    InputSchema::compile(&schema).unwrap().check(&arguments)
}

fn refused(schema: Value) -> BadSchema {
    InputSchema::compile(&schema).unwrap_err()
}

#[test]
fn violations_name_their_place() {
    let schema = json!({"type":"object","properties":{"n":{"type":"integer"},"s":{}},"required":["s"],"additionalProperties":false});
    let Check::Violations(errors) = check(schema.clone(), json!({"n":"x","z":1})) else { panic!("fits") };
    assert!(errors.iter().any(|e| e.starts_with("/n: ") && e.contains("integer")), "{errors:?}");
    assert!(errors.iter().any(|e| e.contains("\"s\"")), "{errors:?}");
    assert!(errors.iter().any(|e| e.contains("'z'")), "{errors:?}");
    assert_eq!(check(schema, json!({"s":1,"n":1.0})), Check::Fits);
}

#[test]
fn a_long_value_is_cut_and_what_is_wrong_with_it_is_said() {
    let schema = json!({"properties":{"text":{"maxLength":8192}}});
    let Check::Violations(found) = check(schema, json!({"text": "x".repeat(9000)})) else { panic!("fits") };
    assert!(found.len() == 1 && found[0].starts_with("/text: \"xxx"), "{found:?}");
    assert!(found[0].ends_with("x... is longer than 8192 characters") && found[0].len() < 200, "{found:?}");
}

/// Definitions l0 to lN, each made of references to the next by `link`.
fn ladder(levels: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        defs.insert(format!("l{level}"), link(json!({"$ref": format!("#/$defs/l{}", level + 1)})));
    }
    defs.insert(format!("l{levels}"), json!({"type": "string"}));
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

#[test]
fn work_that_doubles_with_every_reference_is_refused() {
    for word in ["allOf", "anyOf", "oneOf"] {
        assert_eq!(check(ladder(30, |next| json!({ word: [next, next] })), json!({})), Check::TooCostly);
    }
}

#[test]
fn work_that_doubles_with_every_level_of_the_value_is_refused() {
    let schema = json!({"$defs":{"t":{"allOf":[{"properties":{"x":{"$ref":"#/$defs/t"}}},{"properties":{"x":{"$ref":"#/$defs/t"}}}]}},"$ref":"#/$defs/t"});
    let nested = |depth| (0..depth).fold(json!({}), |inner, _| json!({ "x": inner }));
    assert_eq!(check(schema.clone(), nested(5)), Check::Fits);
    assert_eq!(check(schema, nested(60)), Check::TooCostly);
}

#[test]
fn an_honest_recursive_schema_costs_little_at_any_depth() {
    let tree = json!({"$defs":{"t":{"type":"object","properties":{"left":{"$ref":"#/$defs/t"},"right":{"$ref":"#/$defs/t"},"all":{"type":"array","items":{"$ref":"#/$defs/t"}}},"additionalProperties":false}},"$ref":"#/$defs/t"});
    let nested = (0..60).fold(json!({}), |inner, _| json!({ "left": inner }));
    assert_eq!(check(tree.clone(), nested), Check::Fits);
    assert_eq!(check(tree, json!({"all": vec![json!({"left": {}}); 10_000]})), Check::Fits);
}

#[test]
fn a_schema_that_doubles_without_cost_still_compiles_at_once() {
    let found =
        check(ladder(60, |next| json!({"properties": {"a": next.clone(), "b": next}})), json!({"a": {"b": {}}}));
    assert_eq!(found, Check::Fits);
}

#[test]
fn chains_and_cycles_are_refused() {
    assert_eq!(refused(ladder(100, |next| json!({"allOf": [next]}))), BadSchema::TooLong(64));
    assert_eq!(refused(json!({"$ref": "#"})), BadSchema::Endless);
    assert_eq!(
        refused(
            json!({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"})
        ),
        BadSchema::Endless
    );
    let below = ladder(4_000, |next| json!({"properties": {"a": next}}));
    assert_eq!(refused(below), BadSchema::TooLarge(5_000));
    let below = ladder(1_600, |next| json!({"properties": {"a": next}}));
    assert!(InputSchema::compile(&below).is_ok());
}

#[test]
fn nothing_is_fetched_and_patterns_are_linear() {
    for target in ["http://127.0.0.1:1/x.json", "file:///etc/passwd", "other.json", "#/nowhere", "#nobody"] {
        assert_eq!(refused(json!({ "$ref": target })), BadSchema::Reference(target.to_owned()));
    }
    assert!(matches!(refused(json!({"pattern": "(a)\\1"})), BadSchema::Invalid(_)));
    assert!(matches!(refused(json!({"pattern": "(((a{100}){100}){100})"})), BadSchema::Invalid(_)));
    let evil = json!({"type":"string","pattern":"^(a+)+$"});
    assert!(matches!(check(evil, json!(format!("{}b", "a".repeat(50_000)))), Check::Violations(_)));
}

#[test]
fn large_lists_of_unique_items_are_checked_in_reasonable_time() {
    let items: Vec<Value> = (0..60_000).map(|n| json!([n])).collect();
    assert_eq!(check(json!({"type":"array","uniqueItems":true}), Value::from(items)), Check::Fits);
}

#[test]
fn a_large_list_of_violations_is_not_made() {
    let zeros = |count| json!({"a": vec![json!(0); count]});
    let schema = json!({"properties":{"a":{"items":{"type":"string"}}}});
    let Check::Violations(few) = check(schema.clone(), zeros(1_000)) else { panic!("fits") };
    let Check::Violations(many) = check(schema, zeros(500_000)) else { panic!("fits") };
    assert_eq!((few.len(), many.len()), (10, 1));
    assert!(few[0].starts_with("/a/0: ") && many[0].contains("too much of it"), "{few:?} {many:?}");
}

#[test]
fn three_dialects_are_known() {
    for uri in SCHEMA_DIALECTS {
        assert!(InputSchema::compile(&json!({"$schema": uri, "type": "object"})).is_ok());
    }
    assert!(matches!(refused(json!({"$schema": "http://json-schema.org/draft-04/schema#"})), BadSchema::Dialect(_)));
    assert!(matches!(refused(json!({"type": "nonsense"})), BadSchema::Invalid(_)));
    assert_eq!(refused(json!({"properties":{"a":{"$id":"x"}}})), BadSchema::InnerId);
}
