//! TOML into values with their places, as JSON is read into, and what the settings of several files come to. What they
//! mean is not known here, and no secret is read.

use std::path::{Path, PathBuf};

use footbridge_core::settings_file::{Mistake, not_parsed};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Writable,
    jsonc::Places,
    node::{Member, Node, NodeValue},
    sources,
};

/// Settings that are merged name by name; each other one is of the last file that says it, whole.
const BY_NAME: [&str; 2] = ["policies", "services"];
/// A list that grows: of a later file first.
const LIST: &str = "effects";

/// Reads a text: its tables and values in the order of their names.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Node, Mistake> {
    let places = Places::new(file, text);
    let parsed = DeTable::parse(text).map_err(|error| {
        let at = places.at(error.span().map_or(0, |span| span.start));
        at.mistake(not_parsed(error.message()))
    })?;
    let (start, whole) = (parsed.span().start, parsed.into_inner());
    Ok(Node { at: places.at(start), value: table(&places, &whole) })
}

fn node(places: &Places<'_>, value: &Spanned<DeValue<'_>>) -> Node {
    let meant = match value.get_ref() {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        // Of another base, or with `_` in it, it is shown as it is written.
        DeValue::Integer(number) => NodeValue::Number(number.to_string()),
        DeValue::Float(number) => NodeValue::Number(number.to_string()),
        DeValue::Boolean(value) => NodeValue::Bool(*value),
        DeValue::Datetime(time) => NodeValue::Text(time.to_string()),
        DeValue::Array(items) => NodeValue::List(items.iter().map(|item| node(places, item)).collect()),
        DeValue::Table(members) => table(places, members),
    };
    Node { at: places.at(value.span().start), value: meant }
}

fn table(places: &Places<'_>, members: &DeTable<'_>) -> NodeValue {
    let member = |(name, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| Member {
        name: name.get_ref().to_string(),
        at: places.at(name.span().start),
        node: node(places, value),
    };
    NodeValue::Object(members.iter().map(member).collect())
}

/// What the settings files say together, and why one says nothing.
pub(crate) fn settings(files: &[PathBuf]) -> (Vec<Member>, Vec<String>) {
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for path in files {
        let read = sources::read(path, None, &Writable::default())
            .map_err(|why| format!("{}: {why}", path.display()))
            .and_then(|(real, text)| parse(&real, &text).map_err(|mistake| mistake.to_string()));
        match read {
            Ok(Node { value: NodeValue::Object(members), .. }) => all = over(all, members),
            Ok(_) => {}
            Err(why) => problems.push(why),
        }
    }
    (all, problems)
}

/// What a later file says over an earlier one.
fn over(earlier: Vec<Member>, mut later: Vec<Member>) -> Vec<Member> {
    for old in earlier {
        match later.iter_mut().find(|member| member.name == old.name).map(|member| &mut member.node.value) {
            None => later.push(old),
            Some(NodeValue::Object(members)) if BY_NAME.contains(&old.name.as_str()) => {
                let old = old.node.members().unwrap_or_default().iter();
                let kept: Vec<Member> =
                    old.filter(|old| !members.iter().any(|new| new.name == old.name)).cloned().collect();
                members.extend(kept);
            }
            Some(NodeValue::List(items)) if old.name == LIST => {
                items.extend(old.node.elements().unwrap_or_default().iter().cloned())
            }
            Some(_) => {}
        }
    }
    later
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn values_of_all_kinds_have_their_places() {
        let text = "# mine\n[a.b]\nc = \"x\"\nd = [1, 0x10, 2.5]\ne = 2026-01-02\n[[f]]\ng = true\n";
        let node = parse(Path::new("/c.toml"), text).unwrap();
        assert_eq!(
            node.to_json(),
            json!({"a": {"b": {"c": "x", "d": [1, "0x10", 2.5], "e": "2026-01-02"}}, "f": [{"g": true}]})
        );
        let c = node.member("a").unwrap().node.member("b").unwrap().node.member("c").unwrap();
        assert_eq!((c.at.line, c.at.column, c.node.at.column), (3, 1, 5));
        assert!(parse(Path::new("/c.toml"), "a = \n").unwrap_err().to_string().starts_with("/c.toml:1:"));
    }

    #[test]
    fn of_several_files_the_last_counts_but_for_what_has_names() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let first = "effects = [1]\n[limits.calls]\nburst = 5\n[edge]\nallow_hosts = [\"a\"]\n[policies.a]\nx = 1\n[policies.b]\nx = 1\n";
        let files = [
            file("1.toml", first),
            file("2.toml", "effects = [2]\n[limits.calls]\nburst = 6\n[policies.b]\nx = 2\n"),
            file("3.toml", "="),
        ];
        let (members, problems) = settings(&files);
        let all: serde_json::Map<String, Value> =
            members.iter().map(|member| (member.name.clone(), member.node.to_json())).collect();
        assert_eq!(
            Value::Object(all),
            json!({"edge": {"allow_hosts": ["a"]}, "effects": [2, 1], "limits": {"calls": {"burst": 6}}, "policies": {"b": {"x": 2}, "a": {"x": 1}}})
        );
        assert!(matches!(problems.as_slice(), [one] if one.contains("3.toml:1:1: it does not parse")), "{problems:?}");
    }
}
