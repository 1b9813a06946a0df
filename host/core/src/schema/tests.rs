//! Schemas that fit, that do not, and that would cost too much.

use serde_json::{Map, json};

use super::*;
use crate::{digest::Digest, names::ServerName};

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
    let of = |keyword: &str| errors.iter().find(|e| e.keyword == keyword).unwrap_or_else(|| panic!("{errors:?}"));
    let (typed, missing, more) = (of("type"), of("required"), of("additionalProperties"));
    assert!(typed.to_string().starts_with("/n: ") && typed.message.contains("integer"), "{typed:?}");
    assert_eq!(
        serde_json::to_value(missing).unwrap(),
        json!({"instancePath": "", "schemaPath": "#/required", "keyword": "required",
            "params": {"missingProperty": "s"}, "message": "\"s\" is a required property"})
    );
    assert_eq!((typed.instance_path.as_str(), typed.schema_path.as_str()), ("/n", "#/properties/n/type"));
    assert_eq!(Value::from(typed.params.clone()), json!({"type": "integer"}));
    assert_eq!(Value::from(more.params.clone()), json!({"additionalProperty": "z"}));
    assert_eq!(check(schema, json!({"s":1,"n":1.0})), Check::Fits);
}

#[test]
fn a_long_value_is_cut_and_what_is_wrong_with_it_is_said() {
    let schema = json!({"properties":{"text":{"maxLength":8192}}});
    let Check::Violations(found) = check(schema, json!({"text": "x".repeat(9000)})) else { panic!("fits") };
    assert!(found.len() == 1 && found[0].to_string().starts_with("/text: \"xxx"), "{found:?}");
    let message = &found[0].message;
    assert!(message.ends_with("x... is longer than 8192 characters") && message.len() < 200, "{found:?}");
}

#[test]
fn nothing_of_a_violation_is_longer_than_an_answer_may_be() {
    let long = "é".repeat(100_000);
    let options: Vec<String> = (0..5_000).map(|n| format!("option {n}")).collect();
    let schema = json!({"additionalProperties": {"enum": options}});
    let Check::Violations(found) = check(schema, json!({ long: 1 })) else { panic!("fits") };
    let text = serde_json::to_string(&found).unwrap();
    assert!(text.len() < 2_000 && found[0].params.is_empty(), "{text}");
}

#[test]
fn formats_are_checked_in_every_dialect() {
    for dialect in SCHEMA_DIALECTS {
        for (format, good, bad) in [
            ("date", "2026-11-23", "tomorrow"),
            ("date-time", "2026-11-23T02:46:00Z", "2026-11-23 02:46"),
            ("email", "a@example.org", "a"),
            ("uri", "https://example.org/x", "no uri"),
            ("ipv4", "127.0.0.1", "127.0.0.256"),
            ("regex", "^[a-z]+$", "(unclosed"),
            ("uuid", "0190f5c2-7a3b-7c1d-8e2f-aB0123456789", "0190f5c27a3b7c1d8e2fab0123456789"),
        ] {
            let schema = json!({"$schema": dialect, "properties": {"x": {"type": "string", "format": format}}});
            assert_eq!(check(schema.clone(), json!({ "x": good })), Check::Fits, "{dialect} {format}");
            let Check::Violations(found) = check(schema, json!({ "x": bad })) else { panic!("{dialect} {format}") };
            assert_eq!((found.len(), found[0].keyword.as_str()), (1, "format"));
            assert_eq!(Value::from(found[0].params.clone()), json!({ "format": format }));
        }
    }
    assert_eq!(check(json!({"format": "nobody-knows"}), json!("x")), Check::Fits, "as every client has it");
}

#[test]
fn a_regex_of_a_megabyte_costs_no_more_than_was_counted() {
    let groups = |count: usize| (0..count).map(|n| format!("(?<a{n}>x)")).collect::<String>() + "(";
    let schema = InputSchema::compile(&json!({"format": "regex"})).unwrap();
    assert!(matches!(schema.check(&json!(groups(50))), Check::Violations(_)));
    assert_eq!(schema.check(&json!(groups(60_000))), Check::Fits, "which is not looked at");
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
fn names_that_are_looked_up_and_values_that_are_compared_are_counted() {
    let members: serde_json::Map<String, Value> = (0..5_000).map(|n| (format!("{n:x}"), json!(1))).collect();
    let names: Vec<&String> = members.keys().collect();
    let large: Vec<u8> = vec![7; 20_000];
    for (said, arguments) in [
        (json!({"dependentRequired": {"0": names}}), Value::Object(members.clone())),
        (json!({"dependencies": {"0": names}}), Value::Object(members.clone())),
        (json!({"properties": {"a": {"const": large}}}), json!({"a": large})),
        (json!({"properties": {"a": {"enum": [large]}}}), json!({"a": large})),
        (json!({"properties": {"a": {"const": {"b": large}}}}), json!({"a": {"b": large}})),
    ] {
        let mut doubled = ladder(10, |next| json!({"allOf": [next, next]}));
        doubled["$defs"]["l10"] = said;
        assert_eq!(check(doubled, arguments), Check::TooCostly);
    }
    assert_eq!(check(json!({"properties": {"a": {"const": large}}}), json!({"a": large})), Check::Fits);
}

#[test]
fn an_anchor_that_is_at_many_places_is_not_followed_to_all_of_them_from_as_many() {
    let places = (0..2_400).flat_map(|_| [json!({"$anchor": "a"}), json!({"$ref": "#a"})]);
    let schema = json!({"allOf": places.collect::<Vec<_>>()});
    assert_eq!(refused(schema), BadSchema::TooTangled(20_000));
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
    assert!(matches!(refused(json!({"pattern": "(a)\\1"})), BadSchema::Pattern(_)));
    assert!(matches!(refused(json!({"pattern": "(((a{100}){100}){100})"})), BadSchema::Pattern(_)));
    assert!(matches!(refused(json!({"pattern": "a|".repeat(5_000)})), BadSchema::Pattern(_)));
    let evil = json!({"type":"string","pattern":"^(a+)+$"});
    assert!(matches!(check(evil, json!(format!("{}b", "a".repeat(50_000)))), Check::Violations(_)));
}

#[test]
fn what_is_compared_in_lists_of_unique_items_is_counted() {
    let lists = |count: usize| (0..count).map(|n| json!([n])).collect::<Vec<_>>();
    let unique = json!({"type": "array", "uniqueItems": true});
    let mut twice = lists(60_000);
    twice.push(json!([0]));
    assert_eq!(check(unique.clone(), Value::from(lists(60_000))), Check::Fits);
    assert!(matches!(check(unique.clone(), Value::from(twice)), Check::Violations(_)));
    assert_eq!(check(unique.clone(), Value::from(lists(150_000))), Check::TooCostly);
    assert_eq!(check(json!({"uniqueItems": false}), Value::from(lists(150_000))), Check::Fits);
    // Each item is compared in all the lists that it is in, and as often as it is asked of one.
    let all = json!({"$defs": {"l": {"uniqueItems": true, "items": {"$ref": "#/$defs/l"}}}, "$ref": "#/$defs/l"});
    let nested = (0..40).fold(Value::from(lists(5_000)), |inner, _| json!([inner]));
    assert_eq!(check(all, nested), Check::TooCostly);
    let again = json!({"allOf": vec![json!({"allOf": [unique]}); 5]});
    assert_eq!(check(again.clone(), Value::from(lists(5_000))), Check::Fits);
    assert_eq!(check(again, Value::from(lists(50_000))), Check::TooCostly);
    let texts = (0..40).map(|n| json!(format!("{}{n}", "x".repeat(20_000)))).collect::<Vec<_>>();
    assert_eq!(check(json!({"uniqueItems": true}), json!(texts)), Check::Fits);
}

#[test]
fn a_large_list_of_violations_is_not_made() {
    let zeros = |count| json!({"a": vec![json!(0); count]});
    let schema = json!({"properties":{"a":{"items":{"type":"string"}}}});
    let Check::Violations(few) = check(schema.clone(), zeros(1_000)) else { panic!("fits") };
    let Check::Violations(many) = check(schema, zeros(500_000)) else { panic!("fits") };
    assert_eq!((few.len(), many.len()), (10, 1));
    assert!(few[0].instance_path == "/a/0" && many[0].message.contains("too much of it"), "{few:?} {many:?}");
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

#[test]
fn a_pattern_that_looks_ahead_or_back_is_its_server_s_to_check_and_all_else_is_checked() {
    let email =
        "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$";
    let schema = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "email": {"type": "string", "format": "email", "pattern": email},
        "twice": {"items": {"pattern": "(a)\\1", "maxLength": 4}},
        "pattern": {"const": {"pattern": "(?=x)"}},
    }});
    assert!(matches!(refused(schema.clone()), BadSchema::Pattern(_)), "where nobody else checks it");
    let first = InputSchema::compile_first(&schema).unwrap();
    let fits = |arguments| first.check(&arguments) == Check::Fits;
    assert!(fits(json!({"name": "a"})) && fits(json!({"name": "a", "email": "a@b.ch", "twice": ["aa", "ab"]})));
    assert!(!fits(json!({"name": "A"})) && !fits(json!({"name": "a", "email": 1})));
    assert!(!fits(json!({"name": "a", "twice": ["aaaaa"]})), "what stands beside it holds");
    let own = |value: &str| fits(json!({"name": "a", "pattern": {"pattern": value}}));
    assert!(own("(?=x)") && !own("x"), "what only looks like one is a value");
    for bad in [json!({"pattern": "("}), json!({"pattern": "(?="}), json!({"patternProperties": {"(?=a)b": {}}})] {
        assert!(InputSchema::compile_first(&bad).is_err(), "{bad}");
    }
}

#[test]
fn where_such_a_pattern_turns_what_fits_the_whole_of_that_is_its_server_s_to_check() {
    let look = json!({"pattern": "(?=x)"});
    let named = json!({"x": look});
    let fits = |schema: &Value, value: &str| {
        let schema = json!({"properties": {"s": schema}, "$defs": named});
        InputSchema::compile_first(&schema).unwrap().check(&json!({"s": value})) == Check::Fits
    };
    for schema in [
        json!({"not": look}),
        json!({"not": {"$ref": "#/$defs/x"}}),
        json!({"not": {"anyOf": [{"type": "number"}, look]}}),
        json!({"if": look, "then": false}),
        json!({"if": look, "else": false}),
        json!({"oneOf": [{"pattern": "^(?!foo)"}, {"const": "foo"}]}),
    ] {
        assert!(fits(&schema, "foo"), "{schema}");
    }
    let beside = json!({"not": look, "maxLength": 2, "allOf": [{"not": {"const": "no"}}]});
    assert!(fits(&beside, "ab") && !fits(&beside, "abc") && !fits(&beside, "no"));
    // What nothing else speaks of is not what only that spoke of, nor is what referred to it.
    let look = json!({"properties": {"e": {"pattern": "^(?!x)"}}});
    let object = |part: Value, there: &str| {
        let mut schema = json!({"unevaluatedProperties": false, "properties": {"r": {"$ref": there}}});
        schema.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        InputSchema::compile_first(&schema).unwrap().check(&json!({"e": "foo", "r": "foo"}))
    };
    for (part, there) in [
        (json!({"oneOf": [look, {"maxProperties": 0}]}), "#/oneOf/0/properties/e"),
        (json!({"if": look, "then": look}), "#/then/properties/e"),
    ] {
        assert_eq!(object(part.clone(), there), Check::Fits, "{part}");
    }
    // Names of members say nothing.
    for name in ["default", "const", "enum", "examples", "not", "if"] {
        let schema = json!({"type": "object", "properties": {name: {"type": "string", "pattern": "(?=x)"}}});
        let schema = InputSchema::compile_first(&schema).unwrap();
        assert_eq!(schema.check(&json!({name: "foo"})), Check::Fits, "{name}");
        assert_ne!(schema.check(&json!({name: 1})), Check::Fits, "{name}");
    }
    let most = json!({"properties": {"s": {"contains": {"pattern": "(?=x)"}, "maxContains": 0}}});
    assert_eq!(InputSchema::compile_first(&most).unwrap().check(&json!({"s": ["foo"]})), Check::Fits);
}

#[test]
fn what_turns_stays_where_none_of_what_it_refers_to_looks() {
    let kinds = json!([{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/square"}]);
    let of = |shape: Value, more: Value| {
        let mut defs = json!({
            "circle": {"required": ["r"], "properties": {"r": {"type": "number"}, "in": {"$ref": "#/$defs/a~1b"}}},
            "square": {"type": "object", "required": ["a"]},
            "a/b": {"type": "string"},
        });
        defs.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let schema = json!({"properties": {"mail": {"pattern": "^(?!\\.).+@"}, "shape": shape}, "$defs": defs});
        InputSchema::compile_first(&schema).unwrap()
    };
    let fits = |schema: &InputSchema, shape: Value| schema.check(&json!({"mail": "x", "shape": shape})) == Check::Fits;
    for shape in [
        json!({"type": "object", "oneOf": kinds}),
        json!({"not": {"not": {"type": "object", "anyOf": kinds}}}),
        json!({"if": {"anyOf": kinds}, "else": false, "type": "object"}),
    ] {
        let schema = of(shape.clone(), json!({}));
        assert!(fits(&schema, json!({"r": 1})) && !fits(&schema, json!("rm -rf")), "{shape}");
        assert!(!fits(&schema, json!({"r": "1"})) && !fits(&schema, json!({})), "{shape}");
    }
    // However far away what looks is, by pointers that lead to each other, or by what is no pointer.
    for (far, more) in [
        ("#/$defs/1", json!({"1": {"items": {"$ref": "#/$defs/2"}}, "2": {"$ref": "#/properties/mail"}})),
        (
            "#/$defs/1",
            json!({"1": {"items": {"$ref": "#/$defs/2"}}, "2": {"anyOf": [{"$ref": "#/properties/mail"}, {"properties": {"x": {"$ref": "#/$defs/1"}}}]}}),
        ),
        ("#/$defs/1", json!({"1": {"$ref": "#s"}, "2": {"$anchor": "s", "maxLength": 1, "pattern": "^(?=b)"}})),
        ("#", json!({})),
    ] {
        let schema = of(json!({"not": {"allOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": far}]}}), more.clone());
        assert!(fits(&schema, json!("rm -rf")), "{far} {more}");
    }
}

#[test]
fn what_refers_to_what_went_with_such_a_pattern_closes_no_tool() {
    let look = json!({"pattern": "^(?!-)x", "properties": {"p": {"type": "null"}}});
    let oneof = json!({"oneOf": [look, {"$anchor": "s", "type": "null"}]});
    for (b, more) in [
        (json!({"$ref": "#s"}), json!({})),
        (json!({"$dynamicRef": "#s"}), json!({})),
        (json!({"$ref": "#/properties/a/oneOf/0"}), json!({})),
        (json!({"$ref": "#/properties/a/oneOf/0/properties/p"}), json!({})),
        // What is emptied since it refers to what went takes along what others refer to.
        (json!({"$ref": "#/$defs/c/properties/d"}), json!({"c": {"$ref": "#s", "properties": {"d": {"$ref": "#s"}}}})),
        (
            json!({"$ref": "#/$defs/c/allOf/0/$defs/d"}),
            json!({"c": {"allOf": [{"$defs": {"d": true}}], "$ref": "#/$defs/e/not"}, "e": {"not": {"$ref": "#s"}}}),
        ),
        (json!({"$ref": "#t"}), json!({"c": {"$anchor": "t", "$ref": "#s"}})),
        // A schema that takes more is not left where that takes less.
        (json!({"not": {"$ref": "#/$defs/c"}}), json!({"c": {"$ref": "#/properties/a/oneOf/1"}})),
        (json!({"not": {"properties": {"x": true}, "unevaluatedProperties": false}}), json!({})),
    ] {
        let schema = json!({"properties": {"a": oneof, "b": b, "c": {"type": "string"}}, "$defs": more});
        let compiled = InputSchema::compile_first(&schema).unwrap_or_else(|bad| panic!("{schema}: {bad}"));
        assert_eq!(compiled.check(&json!({"a": 1, "b": "foo"})), Check::Fits, "{schema}");
        assert_ne!(compiled.check(&json!({"c": 1})), Check::Fits, "{schema}");
    }
    // What led nowhere before is a mistake still.
    let nowhere = json!({"properties": {"a": oneof, "b": {"$ref": "#/nowhere"}}});
    assert_eq!(InputSchema::compile_first(&nowhere).unwrap_err(), BadSchema::Reference("#/nowhere".to_owned()));
}

#[test]
fn a_schema_that_is_left_empty_is_still_of_its_dialect() {
    let look = json!({"pattern": "(?=x)"});
    // A list of `items` is none of the newest dialect.
    let schema = json!({"$schema": SCHEMA_DIALECTS[2], "$ref": "#/definitions/a/oneOf/1", "definitions": {
        "a": {"oneOf": [look, {"type": "object"}]}, "b": {"items": [true, false]}}});
    assert_eq!(InputSchema::compile_first(&schema).unwrap().check(&json!({"a": 1})), Check::Fits);
    assert_eq!(looks::without_looks(&schema).get("$schema"), schema.get("$schema"));
}

#[test]
fn references_that_lead_to_each_other_in_a_row_are_followed_once() {
    let count = 20_000;
    let mut defs: Map<String, Value> =
        (0..count).map(|n| (n.to_string(), json!({"not": {"$ref": format!("#/$defs/{}/not", n + 1)}}))).collect();
    defs.insert(count.to_string(), json!({"not": {"pattern": "(?=x)"}}));
    let schema = json!({ "$defs": defs });
    let left = looks::without_looks(&schema);
    assert!(left["$defs"].as_object().unwrap().values().all(|one| *one == json!({})));
}

/// A pattern whose states are all live at any place of a text of `a`.
fn heavy(n: usize) -> String {
    format!("^(a?){{{}}}x{n}$", 300)
}

#[test]
fn patterns_are_counted_and_bounded_together() {
    let patterns = |count: usize, pattern: &dyn Fn(usize) -> String| json!({"properties": {"s": {"allOf": (0..count).map(|n| json!({"pattern": pattern(n)})).collect::<Vec<_>>()}}});
    let classes = |count: usize| json!({"pattern": "\\s".repeat(count)});
    assert!(matches!(refused(classes(4_000)), BadSchema::Pattern(_)) && InputSchema::compile(&classes(10)).is_ok());
    for class in ["\\s", "\\W", "\\cJ"] {
        let of = |count: usize, beside: usize| json!({"pattern": class.repeat(count) + &"a".repeat(beside)});
        for (count, beside) in [(129, 0), (100, 2_000), (17, 7_900)] {
            assert!(matches!(refused(of(count, beside)), BadSchema::Pattern(_)), "{class} {count} {beside}");
        }
        assert!(InputSchema::compile(&of(30, 100)).is_ok(), "{class}");
    }
    assert_eq!(refused(patterns(201, &|n| format!("^a{n}"))), BadSchema::TooManyPatterns(200));
    assert_eq!(refused(patterns(100, &heavy)), BadSchema::LargePatterns);
    assert!(InputSchema::compile(&patterns(500, &|_| "^a+$".to_owned())).is_ok(), "the same one counts once");
    let names = (0..300).map(|n| (format!("^{n}"), json!({}))).collect::<Map<_, _>>();
    assert_eq!(refused(json!({ "patternProperties": names })), BadSchema::TooManyPatterns(200));
}

#[test]
fn a_text_costs_as_much_as_the_patterns_that_read_it() {
    let all = |count: usize| (0..count).map(|n| json!({"pattern": heavy(n)})).collect::<Vec<_>>();
    let text = "a".repeat(16 * 1024);
    assert_eq!(check(json!({"additionalProperties": {"allOf": all(12)}}), json!({ "s": text })), Check::TooCostly);
    assert_eq!(check(json!({"propertyNames": {"allOf": all(12)}}), json!({ text.clone(): 1 })), Check::TooCostly);
    let names = (0..12).map(|n| (heavy(n), json!({}))).collect::<Map<_, _>>();
    assert_eq!(check(json!({ "patternProperties": names }), json!({ text.clone(): 1 })), Check::TooCostly);
    let again = json!({"items": {"pattern": "^(a?){300}$"}});
    assert_eq!(check(again, Value::from(vec![text.as_str(); 60])), Check::TooCostly);
    let honest = json!({"properties": {"s": {"pattern": "^[a-z]+$", "maxLength": 1_000_000}}});
    assert_eq!(check(honest, json!({"s": "a".repeat(900_000)})), Check::Fits);
}

#[test]
fn to_divide_by_a_fraction_costs_what_it_takes_where_the_value_is_large() {
    let of = |multiple: Value| json!({"items": {"allOf": vec![json!({"not": {"multipleOf": multiple}}); 5]}});
    let list = |count: usize| Value::from(vec![1e300; count]);
    assert_eq!(check(of(json!(0.300_000_000_000_000_1)), list(20_000)), Check::TooCostly);
    assert_eq!(check(of(json!(36_028_797_018_963_971_u64)), list(20_000)), Check::TooCostly);
    assert!(!InputSchema::compile(&of(json!(0.3))).unwrap().is_quick(1_800));
    let prices = json!({"items": {"multipleOf": 0.01}});
    assert_eq!(check(prices, Value::from(vec![12.34; 5_000])), Check::Fits);
    for whole in [json!(5), json!(5.0)] {
        assert_eq!(check(json!({"items": {"multipleOf": whole}}), Value::from(vec![25; 100_000])), Check::Fits);
    }
}

#[test]
fn what_takes_long_is_known_before_there_is_a_value() {
    let honest = json!({"type":"object","properties":{"city":{"type":"string","pattern":"^[A-Z]"},"days":{"type":"integer"}},"required":["city"]});
    let honest = InputSchema::compile(&honest).unwrap();
    assert!(honest.is_quick(500) && !honest.is_quick(1_000_000));
    let costly = InputSchema::compile(&json!({"additionalProperties": {"pattern": heavy(1)}})).unwrap();
    assert!(!costly.is_quick(1_000));
    let tags = InputSchema::compile(&json!({"properties": {"tags": {"type": "array", "uniqueItems": true}}})).unwrap();
    assert!(tags.is_quick(1_000) && !tags.is_quick(10_000));
}

#[test]
fn compiled_schemas_are_kept_up_to_a_limit_and_each_server_puts_out_its_own() {
    let (kept, digest) = (KeptSchemas::default(), |n: usize| Digest::of(n.to_string()));
    let (large, small): (ServerName, ServerName) = ("large".parse().unwrap(), "small".parse().unwrap());
    let compile = |n: usize| {
        let patterns = (0..20).map(|i| json!({"pattern": format!("^{n}x{i}")})).collect::<Vec<_>>();
        InputSchema::compile(&json!({ "allOf": patterns }))
    };
    assert!(kept.get_or_compile(&small, digest(0), || compile(0)).is_ok());
    for n in 0..40 {
        assert!(kept.get_or_compile(&large, digest(n), || compile(n)).is_ok());
    }
    let (count, bytes) = kept.total();
    assert!(count < 30 && bytes <= 24 * 1024 * 1024, "{count} {bytes}");
    assert!(kept.get(&small, digest(0)).is_some(), "it has the least");
    assert!(kept.get(&large, digest(0)).is_none() && kept.get(&large, digest(39)).is_some(), "the oldest goes first");
}

#[test]
fn what_could_not_be_had_once_is_tried_again_and_what_is_bad_is_not() {
    let (kept, server): (_, ServerName) = (KeptSchemas::default(), "s".parse().unwrap());
    let now = Digest::of("a");
    assert_eq!(kept.get_or_compile(&server, now, || Err(BadSchema::NotNow)).unwrap_err(), BadSchema::NotNow);
    assert!(kept.get_or_compile(&server, now, || InputSchema::compile(&json!({}))).is_ok());
    let bad = Digest::of("b");
    assert_eq!(kept.get_or_compile(&server, bad, || Err(BadSchema::Endless)).unwrap_err(), BadSchema::Endless);
    assert_eq!(kept.get_or_compile(&server, bad, || panic!("it was kept")).unwrap_err(), BadSchema::Endless);
}
