//! References as other programs write them, into those of ours.

use std::path::Path;

/// Who fills in the references of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `${...}`.
    Usual,
    /// `$NAME` as well.
    Gemini,
    /// `{env:NAME}` and `{file:PATH}`.
    OpenCode,
}

/// What a text becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Translated {
    /// A text with references of ours.
    Text(String),
    /// All of it is what a file holds.
    File(String),
}

/// A text with what has no counterpart here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoCounterpart(pub(super) String);

/// Translates a text. What an editor asks its user for becomes a variable, whose names are added to `asked`.
pub(super) fn translated(
    text: &str,
    dialect: Dialect,
    base: Base<'_>,
    asked: &mut Vec<(String, String)>,
) -> Result<Translated, NoCounterpart> {
    if dialect == Dialect::OpenCode
        && let Some(path) = text.strip_prefix("{file:").and_then(|rest| rest.strip_suffix('}'))
    {
        return Ok(Translated::File(path.to_owned()));
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['$', '{']) {
        let (before, at) = rest.split_at(start);
        out.push_str(before);
        if let Some((inner, after)) = at.strip_prefix("${").and_then(|inner| inner.split_once('}')) {
            out.push_str(&reference(inner, base, asked)?);
            rest = after;
        } else if let (Dialect::OpenCode, Some((inner, after))) =
            (dialect, at.strip_prefix('{').and_then(|inner| inner.split_once('}')))
            && let Some((kind @ ("env" | "file"), name)) = inner.split_once(':')
        {
            if kind == "file" {
                return Err(NoCounterpart(format!("{{{inner}}} within a text")));
            }
            out.push_str(&format!("${{{name}}}"));
            rest = after;
        } else {
            let name = at[1..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            if dialect == Dialect::Gemini && at.starts_with('$') && !name.is_empty() {
                out.push_str(&format!("${{{name}}}"));
                rest = &at[1 + name.len()..];
            } else {
                out.push_str(&at[..1]);
                rest = &at[1..];
            }
        }
    }
    out.push_str(rest);
    Ok(Translated::Text(out))
}

/// What places that are not whole begin with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base<'n> {
    /// This folder.
    pub(super) folder: &'n Path,
    /// Whether it is a project's: a file of the user is read whichever project is open.
    pub(super) is_project: bool,
}

fn reference(inner: &str, base: Base<'_>, asked: &mut Vec<(String, String)>) -> Result<String, NoCounterpart> {
    let folder = |path: &Path| path.display().to_string();
    if let Some(id) = inner.strip_prefix("input:") {
        let name = variable(id);
        asked.push((id.to_owned(), name.clone()));
        return Ok(format!("${{{name}}}"));
    }
    let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match inner {
        // The file moves, the folder that was meant does not.
        "workspaceFolder" | "workspaceRoot" if base.is_project => Ok(folder(base.folder)),
        "workspaceFolderBasename" if base.is_project => {
            Ok(folder(Path::new(base.folder.file_name().unwrap_or_default())))
        }
        // Whichever one is open, says a file that is of no project.
        "workspaceFolder" | "workspaceRoot" | "workspaceFolderBasename" => Err(NoCounterpart(format!("${{{inner}}}"))),
        "userHome" | "pathSeparator" | "/" => Ok(format!("${{{inner}}}")),
        _ if is_name => Ok(format!("${{{inner}}}")),
        _ => Err(NoCounterpart(format!("${{{inner}}}"))),
    }
}

/// A variable's name for what is called so.
pub(super) fn variable(id: &str) -> String {
    let name: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_all_programs_become_ours() {
        let text = |text: &str, dialect| {
            let mut asked = Vec::new();
            let base = Base { folder: Path::new("/p/x"), is_project: true };
            (translated(text, dialect, base, &mut asked), asked)
        };
        let plain = |text: &str| Ok(Translated::Text(text.to_owned()));
        for (dialect, from, to) in [
            (Dialect::Usual, "Bearer ${env:A}, ${B:-c} $D {E}", "Bearer ${env:A}, ${B:-c} $D {E}"),
            (Dialect::Usual, "${workspaceFolder}/a${/}${workspaceFolderBasename}", "/p/x/a${/}x"),
            (Dialect::Gemini, "Bearer $A_1, ${B} $", "Bearer ${A_1}, ${B} $"),
            (Dialect::OpenCode, "Bearer {env:A} {b} $C", "Bearer ${A} {b} $C"),
        ] {
            assert_eq!(text(from, dialect).0, plain(to), "{from}");
        }
        assert_eq!(text("{file:~/.k}", Dialect::OpenCode).0, Ok(Translated::File("~/.k".to_owned())));
        let asked = vec![("git-hub.token".to_owned(), "GIT_HUB_TOKEN".to_owned())];
        assert_eq!(text("x ${input:git-hub.token}", Dialect::Usual), (plain("x ${GIT_HUB_TOKEN}"), asked));
        let of_user = Base { folder: Path::new("/home/a/.config/Code/User"), is_project: false };
        assert!(translated("${workspaceFolder}/a", Dialect::Usual, of_user, &mut Vec::new()).is_err());
        for (dialect, from) in [
            (Dialect::Usual, "${command:pick}"),
            (Dialect::Usual, "${config:a.b}"),
            (Dialect::OpenCode, "Bearer {file:~/.k}"),
        ] {
            assert!(text(from, dialect).0.is_err(), "{from}");
        }
    }
}
