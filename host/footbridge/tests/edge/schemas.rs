//! Schemas of a hostile server, and arguments of a hostile guest: what would cost much is refused, and the rest goes on.

use std::{collections::BTreeMap, sync::Arc};

use footbridge_core::{catalogue::Offered, limits::ServerLimits};
use serde_json::{Value, json, value::RawValue};

use crate::world::{ANSWER, World};

/// A server with these tools, each with an input schema.
fn world(tools: &[(&str, Value)]) -> World {
    let mut offered = Offered::default();
    for (name, schema) in tools {
        let tool = json!({"name": name, "inputSchema": schema}).to_string();
        offered.add_tool(&RawValue::from_string(tool).unwrap(), &ServerLimits::default()).unwrap();
    }
    World::over(BTreeMap::from([("s".parse().unwrap(), Arc::new(offered))]), "", "open")
}

fn patterns(count: usize, pattern: impl Fn(usize) -> String) -> Value {
    json!({"additionalProperties": {"allOf": (0..count).map(|n| json!({"pattern": pattern(n)})).collect::<Vec<_>>()}})
}

#[test]
fn patterns_and_the_text_that_they_read_are_part_of_what_a_check_costs() {
    let tools = [
        ("many", patterns(300, |n| format!("^{n}a"))),
        ("large", patterns(12, |n| format!("^(a?){{300}}x{{{n}}}$"))),
        ("honest", patterns(3, |n| format!("^[a-z]{{{n},}}$"))),
    ];
    let world = world(&tools);
    let reason = |tool: &str, text: &str| {
        let answer = world.call("s", tool, &json!({ "text": text }));
        (answer["error"]["data"]["reason"].clone(), answer["error"]["message"].to_string())
    };
    let (invalid, why) = reason("many", "a");
    assert!(invalid == "invalid_schema" && why.contains("more than 200 patterns"), "{why}");
    let long = "a".repeat(16 * 1024);
    let (costly, why) = reason("large", &long);
    assert!(costly == "invalid_arguments" && why.contains("cost"), "{why}");
    assert_eq!(world.called(), 0);
    let result: Value = serde_json::from_str(ANSWER).unwrap();
    assert_eq!(world.call("s", "honest", &json!({ "text": long }))["result"], result);
    // It is kept by then.
    assert_eq!(world.call("s", "honest", &json!({ "text": long }))["result"], result);
    assert_eq!(reason("honest", "A").0, "invalid_arguments");
    assert_eq!(world.called(), 2);
}
