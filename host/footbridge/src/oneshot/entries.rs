//! Which servers there are, and by what the lists of each are kept.
//!
//! An entry's key is of all that is written in it: whoever changes a word of the entry gets another list.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Value, json};

use crate::config::{Looked, Outline, WrittenServer, folders::Folders};
use footbridge_core::digest::{Digest, digest_text};

/// Servers by name, and what keeps others from being read.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// What the lists of each are kept by.
    pub(crate) servers: BTreeMap<String, String>,
    /// Why files were left out: each names its file.
    pub(crate) problems: Vec<String>,
    /// What was looked for; nothing where files were named.
    pub(crate) looked: Looked,
    /// The files that were read, or should have been.
    pub(crate) files: Vec<PathBuf>,
}

impl Entries {
    /// Reads the files that were named, or those that are read where none was.
    pub(crate) fn read(named: &[PathBuf], folders: &Folders) -> Self {
        let Outline { servers, problems, looked, files, .. } = Outline::read(named, folders);
        let on = servers.into_iter().filter_map(|server| {
            let entry = server.to_json();
            let is_off = entry["disabled"] == true || entry["enabled"] == false;
            (!is_off).then(|| (server.name.clone(), key(&server, entry)))
        });
        Self { servers: on.collect(), problems, looked, files }
    }
}

/// A name for the file of an entry's list. Relative paths in it start from its folder.
fn key(server: &WrittenServer, entry: Value) -> String {
    let folder = server.at.file.parent().map(|folder| folder.display().to_string());
    let text = json!({"name": server.name, "folder": folder, "entry": entry}).to_string();
    digest_text(Digest::of(text)).replace(':', "-")
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, fs, path::Path};

    use super::*;

    fn read(files: &[PathBuf]) -> Entries {
        let home = |name: &str| (name == "HOME").then(|| OsString::from("/nonexistent"));
        Entries::read(files, &Folders::find(7, home).unwrap())
    }

    fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn nothing_is_filled_in_and_a_broken_file_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let good = r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${NOT_SET_ANYWHERE}"}}, // as people write it
            "off": {"command": "x", "disabled": true}, "not on": {"url": "https://x", "enabled": false}}}"#;
        let files = [file(folder.path(), "bad.json", "{"), file(folder.path(), "good.json", good)];
        let found = read(&files);
        assert_eq!(found.servers.keys().collect::<Vec<_>>(), ["a"]);
        assert!(matches!(found.problems.as_slice(), [one] if one.contains("bad.json:1")), "{:?}", found.problems);
    }

    #[test]
    fn the_key_is_another_for_another_entry_or_folder() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let key = |folder: &Path, command: &str| {
            let text = format!(r#"{{"mcpServers": {{"a": {{"command": "{command}"}}}}}}"#);
            read(&[file(folder, "s.json", &text)]).servers.remove("a").unwrap()
        };
        let first = key(one.path(), "x");
        assert_eq!(first, key(one.path(), "x"));
        assert_ne!(first, key(one.path(), "y"));
        assert_ne!(first, key(other.path(), "x"));
    }
}
