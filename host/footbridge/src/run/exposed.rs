//! What a configuration holds in the clear that shows to the command as it is.
//!
//! A net, not a promise: values of `env` and `headers` whose name says secret, credentials of services, and text that is a
//! token by its looks.

use std::{io, path::Path};

use footbridge_core::redact::shapes;
use footbridge_processes::regular_file::open_regular;
use serde_json::Value;

/// Parts of names that say that the value is a secret.
const SECRET_NAMES: [&str; 8] = ["key", "token", "secret", "passw", "credential", "auth", "cookie", "pat"];

/// Says of each configuration that the command can read what it should not hold in the clear.
pub(super) fn warn_of(shown: &[&Path]) {
    for path in shown {
        let found = text(path).map(|text| exposed(&text)).unwrap_or_default();
        if !found.is_empty() {
            crate::report::note(&format!(
                "footbridge: {} shows to the command as it is, with {} in the clear: write ${{VARIABLE}} for the value, \
                 or keep the file out of the folders that the command may write",
                path.display(),
                found.join(", ")
            ));
        }
    }
}

/// The text of a configuration that was read before: an earlier command may put a pipe in its place at any time.
fn text(path: &Path) -> io::Result<String> {
    io::read_to_string(open_regular(path)?.0)
}

/// What is in the clear: names of values, or lines.
fn exposed(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        look_into(&value, &mut found);
    }
    found.extend(credentials(text));
    if found.is_empty() {
        let has_token = |(_, line): &(usize, &str)| shapes::hide(line) != *line;
        found.extend(text.lines().enumerate().filter(has_token).map(|(number, _)| format!("line {}", number + 1)));
    }
    found
}

/// Credentials of services that are written out, which are secrets whatever they look like.
fn credentials(text: &str) -> Vec<String> {
    let Ok(settings) = text.parse::<toml::Table>() else { return Vec::new() };
    let services = settings.get("services").and_then(toml::Value::as_table).into_iter().flatten();
    let is_written = |service: &toml::Value| {
        let credential = service.get("credential").and_then(toml::Value::as_str);
        credential.is_some_and(|text| !text.trim().is_empty() && !text.contains("${"))
    };
    services.filter(|(_, service)| is_written(service)).map(|(name, _)| format!("services.{name}.credential")).collect()
}

fn look_into(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                match inner {
                    Value::Object(values) if name == "env" || name == "headers" => {
                        let secret = values.iter().filter(|(name, value)| is_secret(name, value));
                        found.extend(secret.map(|(name, _)| name.clone()));
                    }
                    _ => look_into(inner, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|inner| look_into(inner, found)),
        Value::String(text) if shapes::hide(text) != *text => found.push("a token".to_owned()),
        _ => {}
    }
}

/// A value that refers to a variable or a file names its secret.
fn is_secret(name: &str, value: &Value) -> bool {
    let Value::String(text) = value else { return false };
    let name = name.to_ascii_lowercase();
    let says_so = SECRET_NAMES.iter().any(|part| name.contains(part)) && name != "path";
    !text.is_empty() && (shapes::hide(text) != *text || (says_so && !text.contains("${")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_look_like_secrets_are_named_and_references_are_not() {
        let text = r#"{"mcpServers": {"a": {"env": {"API_KEY": "abc", "B_TOKEN": "${B}", "MODE": "x", "PATH": "/bin",
            "OTHER": "ghp_0123456789012345678901234567890123456789"}, "headers": {"Authorization": "Bearer ${T}"},
            "args": ["--x", "sk-0123456789abcdefghijklmnop"]}}}"#;
        let mut found = exposed(text);
        found.sort();
        assert_eq!(found, ["API_KEY", "OTHER", "a token"]);
        assert!(exposed(r#"{"mcpServers": {"a": {"env": {"K_KEY": {"file": "k"}}}}}"#).is_empty());
        let services = "[services.a]\ncredential = \"x\"\n[services.b]\ncredential = \"Bearer ${B}\"\n[services.c]\n\
                        credential = { file = \"c\" }\n";
        assert_eq!(exposed(services), ["services.a.credential"]);
        assert_eq!(exposed("a = 1\nb = \"ghp_0123456789012345678901234567890123456789\"\n"), ["line 2"]);
    }
}
