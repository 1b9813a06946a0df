//! A configuration as it may be shown: values that are secrets by their name or by their looks are left out, and what names
//! a secret without being one (`${NAME}`, `{"file": ...}`, `{"command": [...]}`) stays.
//!
//! A net, not a promise: a secret under an innocent name that looks like nothing shows.

use footbridge_core::redact::{MARK, shapes::hide, words::names_a_secret};
use serde_json::Value;

use super::{
    node::{Node, NodeValue},
    references::{Reference, parts},
};

/// What may stand beside a reference to a secret.
const SCHEMES: [&str; 6] = ["", "apikey", "basic", "bearer", "key", "token"];

impl Node {
    /// The same as it may be shown; of a value under this name.
    pub(crate) fn shown(&self, name: &str) -> Value {
        match &self.value {
            NodeValue::Text(text) => Value::String(text_shown(name, text)),
            NodeValue::Number(_) if names_a_secret(name) => Value::String(MARK.to_owned()),
            NodeValue::List(elements) => {
                let mut option = "";
                let shown = elements.iter().map(|element| {
                    let shown = element.shown(option);
                    option =
                        element.text().filter(|text| text.starts_with('-') && !text.contains('=')).unwrap_or_default();
                    shown
                });
                Value::Array(shown.collect())
            }
            NodeValue::Object(members) => Value::Object(
                members.iter().map(|member| (member.name.clone(), member.node.shown(&member.name))).collect(),
            ),
            _ => self.to_json(),
        }
    }
}

fn text_shown(name: &str, text: &str) -> String {
    // What a guest gets in place of `{token}` is no secret of the configuration.
    if text == "{token}" {
        return text.to_owned();
    }
    if names_a_secret(name) && !text.is_empty() && !refers(text) {
        return MARK.to_owned();
    }
    // `--api-key=VALUE`, and the query of an address.
    let (start, query) = match text.split_once('?') {
        Some((start, query)) if start.contains("://") => (start, Some(query)),
        _ => (text, None),
    };
    let start = match start.split_once('=') {
        Some((option, value)) if names_a_secret(option) && !value.is_empty() && !refers(value) => {
            format!("{option}={MARK}")
        }
        _ => start.to_owned(),
    };
    let Some(query) = query else { return hide(&start).into_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if names_a_secret(name) && !refers(value) => format!("{name}={MARK}"),
        _ => pair.to_owned(),
    });
    hide(&format!("{start}?{}", pairs.collect::<Vec<_>>().join("&"))).into_owned()
}

/// Whether a text names its value instead of holding it.
fn refers(text: &str) -> bool {
    let Ok(parts) = parts(text) else { return false };
    let beside = parts.iter().filter_map(|part| if let Reference::Plain(text) = part { Some(*text) } else { None });
    let beside: String = beside.collect();
    let named = |part: &Reference<'_>| match part {
        Reference::Variable { default, .. } => default.is_none_or(str::is_empty),
        Reference::Input(_) => true,
        _ => false,
    };
    SCHEMES.contains(&beside.trim().to_ascii_lowercase().as_str())
        && parts.iter().any(named)
        && parts.iter().all(|part| matches!(part, Reference::Plain(_)) || named(part))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::config::jsonc;

    #[test]
    fn secrets_are_left_out_by_name_and_by_looks_and_what_names_them_stays() {
        let written = json!({
            "command": "npx",
            "args": ["-y", "pkg", "--api-key", "hunter2", "--token=hunter2", "--key=${K}", "postgres://u:hunter2@h/db"],
            "env": {"API_KEY": "hunter2", "A_TOKEN": "${T}", "B_TOKEN": "${T:-hunter2}", "SECRET": {"file": "~/.s"},
                "NODE_OPTIONS": "--require ./x.js", "X": format!("ghp_{}", "hunter2".repeat(6)), "EMPTY_KEY": "", "PIN_KEY": 7, "OWN_TOKEN": "{token}"},
            "headers": {"Authorization": "Bearer ${T}", "Cookie": "a=hunter2", "X-Key": "hunter2 hunter2 ${T}"},
            "url": "https://h/mcp?apiKey=hunter2&region=eu"
        });
        let node = jsonc::parse(Path::new("/s.json"), &written.to_string()).unwrap().unwrap();
        let shown = node.shown("");
        assert!(!shown.to_string().contains("hunter2"), "{shown}");
        assert_eq!(
            shown,
            json!({
                "command": "npx",
                "args": ["-y", "pkg", "--api-key", MARK, "--token=[redacted]", "--key=${K}", "postgres://u:[redacted]@h/db"],
                "env": {"API_KEY": MARK, "A_TOKEN": "${T}", "B_TOKEN": MARK, "SECRET": {"file": "~/.s"},
                    "NODE_OPTIONS": "--require ./x.js", "X": MARK, "EMPTY_KEY": "", "PIN_KEY": MARK, "OWN_TOKEN": "{token}"},
                "headers": {"Authorization": "Bearer ${T}", "Cookie": MARK, "X-Key": MARK},
                "url": "https://h/mcp?apiKey=[redacted]&region=eu"
            })
        );
    }
}
