//! Servers put into a servers file, with everything else of it as it was, comments too. A server that is there stays,
//! unless another is wanted.
//!
//! The file is written aside and renamed into place, for its owner alone, and only if nobody changed it meanwhile.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use footbridge_audit::private_folder::{make_private, replace_private};
use footbridge_core::settings_file::Mistake;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

use super::{
    ConfigError, Writable, WrittenServer, is_json,
    jsonc::LIBERTIES,
    sources,
    written::{self, SERVERS},
};

/// What editors on other systems begin a file with; the parser takes it for a character.
const MARK: &str = "\u{feff}";

/// A file as it is to become.
#[derive(Debug)]
pub(crate) struct NewServers {
    /// Where it is to be, without links where it is there already.
    pub(crate) path: PathBuf,
    before: Option<String>,
    text: String,
    /// Servers that were not there.
    pub(crate) added: Vec<String>,
    /// Servers that take the place of others.
    pub(crate) replaced: Vec<String>,
    /// Servers that stay as they are.
    pub(crate) kept: Vec<String>,
}

/// Why servers cannot be put into a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotWritten {
    #[error(
        "{}: its name must end in .json or .jsonc: servers are written as JSON, and a file of another name is not read as \
         that", .0.display()
    )]
    OtherName(PathBuf),
    #[error("{}: {why}", path.display())]
    Unread { path: PathBuf, why: String },
    #[error(transparent)]
    Mistakes(#[from] ConfigError),
    #[error("{} changed meanwhile, and nothing was written: try again", .0.display())]
    Changed(PathBuf),
    #[error("{} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl NewServers {
    /// The file with these servers.
    pub(crate) fn of(path: &Path, servers: &Map<String, Value>, overwrite: bool) -> Result<Self, NotWritten> {
        if !is_json(path) {
            return Err(NotWritten::OtherName(path.to_owned()));
        }
        let before = said(path)?;
        let (path, text) = match &before {
            Some((real, text)) => (real.clone(), Some(text.clone()).filter(|text| !is_blank(text))),
            None => (path.to_owned(), None),
        };
        let mistaken = |found: Vec<Mistake>| NotWritten::Mistakes(ConfigError(found));
        let there = text.as_ref().map(|text| written::servers(&path, text)).transpose().map_err(mistaken)?;
        let is_same = |name: &str, entry: &Value| {
            there.iter().flatten().any(|server| server.name == *name && server.to_json() == *entry)
        };
        let mark = before.as_ref().filter(|(_, text)| text.starts_with(MARK)).map_or("", |_| MARK);
        let text = text.as_deref().unwrap_or("{}\n");
        let whole = CstRootNode::parse(text.strip_prefix(MARK).unwrap_or(text), &LIBERTIES)
            .map_err(|error| NotWritten::Unread { path: path.clone(), why: error.to_string() })?;
        let whole_object = whole.object_value_or_set();
        // Both may be there, and no name in both.
        let lists: Vec<CstObject> = SERVERS.iter().filter_map(|list| whole_object.object_value(list)).collect();
        let list = lists.first().cloned().unwrap_or_else(|| whole_object.object_value_or_set(SERVERS[0]));
        let before = before.map(|(_, text)| text);
        let mut new =
            Self { path, before, text: String::new(), added: Vec::new(), replaced: Vec::new(), kept: Vec::new() };
        for (name, entry) in servers {
            match lists.iter().find_map(|list| list.get(name)) {
                None => {
                    list.append(name, input(entry));
                    new.added.push(name.clone());
                }
                Some(server) if overwrite && !is_same(name, entry) => {
                    server.set_value(input(entry));
                    new.replaced.push(name.clone());
                }
                Some(_) => new.kept.push(name.clone()),
            }
        }
        new.text = format!("{mark}{whole}");
        Ok(new)
    }

    /// Whether anything would change.
    pub(crate) fn changes(&self) -> bool {
        !self.added.is_empty() || !self.replaced.is_empty()
    }

    /// The servers that it would have, and those that it has.
    pub(crate) fn servers(&self) -> Result<[Vec<WrittenServer>; 2], NotWritten> {
        let mistaken = |found: Vec<Mistake>| NotWritten::Mistakes(ConfigError(found));
        let of = |text: &str| written::servers(&self.path, text).map_err(mistaken);
        let before = self.before.as_deref().filter(|text| !is_blank(text));
        Ok([of(&self.text)?, before.map(of).transpose()?.unwrap_or_default()])
    }

    /// Writes it.
    pub(crate) fn write(&self) -> Result<(), NotWritten> {
        let failed = |source| NotWritten::Write { path: self.path.clone(), source };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.exists() {
            make_private(folder).map_err(|error| failed(io::Error::other(error)))?;
        }
        if said(&self.path)?.map(|(_, text)| text) != self.before {
            return Err(NotWritten::Changed(self.path.clone()));
        }
        replace_private(&self.path, |file| {
            file.write_all(self.text.as_bytes())?;
            file.sync_all()
        })
        .map_err(failed)
    }
}

fn is_blank(text: &str) -> bool {
    text.strip_prefix(MARK).unwrap_or(text).trim().is_empty()
}

/// Where the file is and what it says, if it is there.
fn said(path: &Path) -> Result<Option<(PathBuf, String)>, NotWritten> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let read = sources::read(path, None, &Writable::default());
    read.map(Some).map_err(|why| NotWritten::Unread { path: path.to_owned(), why })
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn everything_else_of_a_file_stays_and_nothing_is_overwritten_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/servers.json");
        let servers = |value: Value| value.as_object().unwrap().clone();
        for other in ["o.toml", "o.txt", "o"] {
            let said = NewServers::of(&folder.path().join(other), &Map::new(), true).unwrap_err().to_string();
            assert!(said.contains("must end in .json or .jsonc"), "{said}");
        }
        let two = servers(json!({"a": {"command": "x", "args": ["1"]}, "b": {"url": "https://b"}}));
        NewServers::of(&path, &two, false).unwrap().write().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let text = fs::read_to_string(&path).unwrap().replacen('{', "{ // mine", 1);
        fs::write(&path, &text).unwrap();
        let changed = servers(json!({"a": {"command": "y"}, "c": {"command": "z"}}));
        let new = NewServers::of(&path, &changed, false).unwrap();
        assert_eq!((new.added.as_slice(), new.kept.as_slice()), (&["c".to_owned()][..], &["a".to_owned()][..]));
        new.write().unwrap();
        assert!(matches!(new.write(), Err(NotWritten::Changed(_))));
        let new = NewServers::of(&path, &changed, true).unwrap();
        assert_eq!((new.replaced.as_slice(), new.kept.as_slice()), (&["a".to_owned()][..], &["c".to_owned()][..]));
        new.write().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("// mine"), "{text}");
        let found: Value = written::servers(&path, &text)
            .unwrap()
            .iter()
            .map(|server| (server.name.clone(), server.to_json()))
            .collect::<Map<_, _>>()
            .into();
        assert_eq!(found, json!({"a": {"command": "y"}, "b": {"url": "https://b"}, "c": {"command": "z"}}));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    /// What a file of this text becomes with a server `a`, and what becomes of that one.
    fn with_server(text: &str, overwrite: bool) -> (String, [Vec<String>; 3]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers.json");
        fs::write(&path, text).unwrap();
        let servers = json!({"a": {"command": "new"}}).as_object().unwrap().clone();
        let new = NewServers::of(&path, &servers, overwrite).unwrap();
        new.servers().unwrap();
        new.write().unwrap();
        (fs::read_to_string(&path).unwrap(), [new.added, new.replaced, new.kept])
    }

    #[test]
    fn a_byte_order_mark_stays_where_it_was() {
        for text in ["{\"mcpServers\": {\"b\": {\"command\": \"x\"}}}\n", "{\"servers\": {}}", "\n", ""] {
            let (bare, [added, ..]) = with_server(text, false);
            assert!(bare.starts_with('{') && added == ["a"], "{text}: {bare}");
            assert_eq!(with_server(&format!("\u{feff}{text}"), false).0, format!("\u{feff}{bare}"), "{text}");
        }
    }

    #[test]
    fn a_name_is_looked_for_in_both_lists() {
        let text = r#"{"mcpServers": {"b": {"command": "x"}}, "servers": {"a": {"command": "old"}}}"#;
        let a = || vec!["a".to_owned()];
        let none = Vec::new;
        assert_eq!(with_server(text, false), (text.to_owned(), [none(), none(), a()]));
        let (became, what) = with_server(text, true);
        assert!(what == [none(), a(), none()] && !became.contains("old"), "{became}");
        let (became, what) = with_server(&text.replace("\"a\"", "\"c\""), false);
        let became: Value = serde_json::from_str(&became).unwrap();
        assert_eq!((&became["mcpServers"]["a"]["command"], what), (&json!("new"), [a(), none(), none()]));
    }

    #[test]
    fn a_file_that_is_wrong_or_that_others_can_write_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers.json");
        let new = || NewServers::of(&path, &Map::new(), false);
        fs::write(&path, "{\"mcpServers\": ").unwrap();
        assert!(matches!(new(), Err(NotWritten::Mistakes(_))));
        fs::write(&path, "").unwrap();
        assert!(!new().unwrap().changes());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(new(), Err(NotWritten::Unread { .. })));
    }
}
