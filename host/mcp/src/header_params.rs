//! Parameters of tools that revision 2026-07-28 wants repeated in HTTP headers (`x-mcp-header`), and which marks of them
//! are none.
//!
//! A tool with a bad mark is left out of listings over HTTP, as that revision demands: its server would refuse calls for
//! want of a header that nobody can send. Other transports and older revisions do not look at marks.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use footbridge_core::catalogue::PROMOTED;

/// The mark.
const MARK: &str = "x-mcp-header";
/// Members of a schema whose values are data, and no schemas.
const DATA: [&str; 4] = ["default", "const", "enum", "examples"];
/// Members whose members are schemas.
const NAMED: [&str; 4] = ["$defs", "definitions", "dependentSchemas", "patternProperties"];

/// What is wrong with a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadMark {
    #[error("x-mcp-header is not at a property of its arguments")]
    Place,
    #[error("x-mcp-header is no name of an HTTP header")]
    Name,
    #[error("x-mcp-header names one header twice")]
    Twice,
    #[error("x-mcp-header is at a property that is no string, integer or boolean")]
    Type,
    #[error("x-mcp-header is in a schema that cannot be read")]
    Unreadable,
}

/// Looks at the marks of a tool, as its server wrote it.
pub(super) fn check(tool: &RawValue) -> Result<(), BadMark> {
    #[derive(Deserialize)]
    struct Tool {
        #[serde(rename = "inputSchema")]
        schema: Map<String, Value>,
    }
    if !tool.get().contains(PROMOTED) {
        return Ok(());
    }
    let tool: Tool = serde_json::from_str(tool.get()).map_err(|_| BadMark::Unreadable)?;
    if tool.schema.contains_key(MARK) {
        return Err(BadMark::Place);
    }
    schema(&tool.schema, true, &mut HashSet::new())
}

/// A schema and those in it. `reached`: from the root by way of properties alone. It is as deep as JSON may be.
fn schema(of: &Map<String, Value>, reached: bool, seen: &mut HashSet<String>) -> Result<(), BadMark> {
    if let Some(name) = of.get(MARK) {
        mark(name, of, reached, seen)?;
    }
    for (key, value) in of {
        match key.as_str() {
            MARK => {}
            key if DATA.contains(&key) => {}
            key if key == "properties" || NAMED.contains(&key) => {
                for part in value.as_object().into_iter().flat_map(Map::values) {
                    any(part, reached && key == "properties", seen)?;
                }
            }
            _ => any(value, false, seen)?,
        }
    }
    Ok(())
}

fn any(value: &Value, reached: bool, seen: &mut HashSet<String>) -> Result<(), BadMark> {
    match value {
        Value::Object(of) => schema(of, reached, seen),
        Value::Array(parts) => parts.iter().try_for_each(|part| any(part, false, seen)),
        _ => Ok(()),
    }
}

fn mark(name: &Value, of: &Map<String, Value>, reached: bool, seen: &mut HashSet<String>) -> Result<(), BadMark> {
    if !reached {
        return Err(BadMark::Place);
    }
    let name = name.as_str().filter(|name| name.parse::<http::HeaderName>().is_ok()).ok_or(BadMark::Name)?;
    if !seen.insert(name.to_ascii_lowercase()) {
        return Err(BadMark::Twice);
    }
    match of.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(()),
        _ => Err(BadMark::Type),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(schema: &Value) -> Result<(), BadMark> {
        let text = json!({"name": "t", "inputSchema": schema}).to_string();
        check(&RawValue::from_string(text).unwrap())
    }

    #[test]
    fn marks_are_names_of_headers_at_plain_properties() {
        let of = |property: Value| checked(&json!({"type": "object", "properties": {"a": property}}));
        let marked = |name: &str, kind: &str| of(json!({"type": kind, "x-mcp-header": name}));
        assert_eq!(marked("Region", "string"), Ok(()));
        assert_eq!(
            of(json!({"type": "object", "properties": {"b": {"type": "boolean", "x-mcp-header": "B"}}})),
            Ok(())
        );
        assert_eq!(of(json!({"type": "string", "default": {"x-mcp-header": 1}})), Ok(()));
        for name in ["", "a b", "a:b", "a\r\nX", "é"] {
            assert_eq!(marked(name, "string"), Err(BadMark::Name), "{name:?}");
        }
        assert_eq!(of(json!({"type": "string", "x-mcp-header": 5})), Err(BadMark::Name));
        for kind in ["number", "object", "array", "null"] {
            assert_eq!(marked("A", kind), Err(BadMark::Type), "{kind}");
        }
        assert_eq!(of(json!({"items": {"type": "string", "x-mcp-header": "A"}})), Err(BadMark::Place));
        assert_eq!(checked(&json!({"x-mcp-header": "A"})), Err(BadMark::Place));
        let two = json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}});
        assert_eq!(checked(&json!({ "properties": two })), Err(BadMark::Twice));
    }
}
