//! References in a text of the configuration: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, and those that other clients
//! fill in themselves. A `$` without a brace is no reference.

use std::path::Path;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference<'t> {
    /// As it stands.
    Plain(&'t str),
    /// The value of a variable, or else the default.
    Variable { name: &'t str, default: Option<&'t str> },
    /// The home folder.
    Home,
    /// The folder of the project that the file belongs to.
    Project,
    /// What VS Code asks its user for, by its id.
    Input(&'t str),
}

/// A text with a reference that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotAReference {
    #[error("\"${{\" without \"}}\" and a variable's name in between")]
    Open,
    #[error("\"${{{0}}}\" is no reference: write ${{NAME}}, ${{NAME:-default}} or ${{env:NAME}}")]
    Unknown(String),
    #[error("\"${{{0}}}\": a default is taken as it stands, and cannot hold a reference")]
    Nested(String),
}

/// Folders that clients keep a project's file in.
const OF_CLIENTS: [&str; 4] = [".claude", ".cursor", ".gemini", ".vscode"];

/// The parts of a text, in order.
pub(super) fn parts(text: &str) -> Result<Vec<Reference<'_>>, NotAReference> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (plain, reference) = rest.split_at(start);
        let (inner, after) = reference[2..].split_once('}').ok_or(NotAReference::Open)?;
        found.push(Reference::Plain(plain));
        found.push(one(inner)?);
        rest = after;
    }
    found.push(Reference::Plain(rest));
    Ok(found)
}

fn one(inner: &str) -> Result<Reference<'_>, NotAReference> {
    match inner {
        "userHome" => return Ok(Reference::Home),
        "workspaceFolder" => return Ok(Reference::Project),
        "pathSeparator" | "/" => return Ok(Reference::Plain("/")),
        _ => {}
    }
    if let Some(id) = inner.strip_prefix("input:") {
        return Ok(Reference::Input(id));
    }
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if default.is_some_and(|default| default.contains("${")) {
        return Err(NotAReference::Nested(inner.to_owned()));
    }
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name { Ok(Reference::Variable { name, default }) } else { Err(NotAReference::Unknown(inner.to_owned())) }
}

/// The project of a file in this folder: a client's own folder is in it.
pub(super) fn project(folder: &Path) -> &Path {
    let is_clients = folder.file_name().is_some_and(|name| OF_CLIENTS.iter().any(|client| name == *client));
    folder.parent().filter(|_| is_clients).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_all_clients_are_told_apart() {
        let variable = |name, default| Reference::Variable { name, default };
        for (text, found) in [
            ("${A}", variable("A", None)),
            ("${env:A}", variable("A", None)),
            ("${A:-b:-c}", variable("A", Some("b:-c"))),
            ("${env:A:-}", variable("A", Some(""))),
            ("${userHome}", Reference::Home),
            ("${workspaceFolder}", Reference::Project),
            ("${/}", Reference::Plain("/")),
            ("${input:key}", Reference::Input("key")),
        ] {
            assert_eq!(parts(text), Ok(vec![Reference::Plain(""), found, Reference::Plain("")]), "{text}");
        }
        assert_eq!(parts("a $B {C} %"), Ok(vec![Reference::Plain("a $B {C} %")]));
        for (text, says) in [
            ("${A", "without \"}\""),
            ("${}", "no reference"),
            ("${a b}", "\"${a b}\" is no reference"),
            ("${config:x}", "no reference"),
            ("${A:-${B}}", "cannot hold a reference"),
        ] {
            let said = parts(text).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
        assert_eq!(project(Path::new("/p/.vscode")), Path::new("/p"));
        assert_eq!(project(Path::new("/p")), Path::new("/p"));
    }
}
