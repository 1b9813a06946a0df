//! A file of a working folder as it is looked at before it is trusted: what it says now, read once, and what it said when
//! it was trusted. What a person sees is what is trusted, and what others could change is not.

use std::path::{Path, PathBuf};

use footbridge_core::{digest::Digest, settings_file::Mistake};
use serde_json::Value;

use super::{
    ConfigError, Writable, WrittenServer,
    folders::Folders,
    references, servers,
    sources::{self, is_looked_for},
    trusted::{TrustError, TrustedFiles},
    written::{self, MergedServers, Replacement},
};

/// A file, read.
#[derive(Debug)]
pub(crate) struct FileToTrust {
    /// Where it is, without links.
    pub(crate) path: PathBuf,
    servers: Vec<WrittenServer>,
    text: String,
    before: Option<String>,
    replaced: Vec<Replacement>,
}

/// What is different in one server, as it may be shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerDifference {
    pub(crate) name: String,
    /// None where there was none.
    pub(crate) old: Option<Value>,
    /// None where there is none any more.
    pub(crate) new: Option<Value>,
    /// Whether a value changed that is not shown.
    pub(crate) hidden: bool,
}

/// Why a file cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotToTrust {
    #[error("{} is not looked for in any folder, so nothing comes of trusting it: name it with --config", .0.display())]
    OtherName(PathBuf),
    #[error("{}: {why}", path.display())]
    Unread { path: PathBuf, why: String },
    #[error(transparent)]
    Mistakes(ConfigError),
    #[error(transparent)]
    Kept(#[from] TrustError),
}

impl FileToTrust {
    /// Reads a file and what is known of it.
    pub(crate) fn read(path: &Path, folders: &Folders) -> Result<Self, NotToTrust> {
        if !is_looked_for(path) {
            return Err(NotToTrust::OtherName(path.to_owned()));
        }
        let read = sources::read(path, None, &Writable::default());
        let (path, text) = read.map_err(|why| NotToTrust::Unread { path: path.to_owned(), why })?;
        let mistakes = |found: Vec<Mistake>| NotToTrust::Mistakes(ConfigError(found));
        let servers = written::servers(&path, &text).map_err(mistakes)?;
        let before = TrustedFiles::of(&folders.state).text(&path)?;
        let mut file = Self { path, servers, text, before, replaced: Vec::new() };
        file.replaced = file.replacing(folders)?;
        Ok(file)
    }

    /// Which servers of other files it would replace once it is trusted, or be replaced by, and what of theirs it would
    /// get.
    fn replacing(&self, folders: &Folders) -> Result<Vec<Replacement>, TrustError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let folders = Folders { working: Some(references::project(folder).to_owned()), ..folders.clone() };
        let (looked, mut taken) = sources::look(&folders)?;
        let (mut merged, mut is_added) = (MergedServers::default(), false);
        for place in &looked.tried {
            let is_this = place.canonicalize().is_ok_and(|real| real == self.path);
            let other = taken.iter().position(|(path, _)| path == place).map(|index| taken.swap_remove(index));
            let servers = match other {
                _ if is_this && is_added => continue,
                _ if is_this => self.servers.clone(),
                Some((path, found)) if path.extension().is_none_or(|extension| extension != "toml") => {
                    // What cannot be read is told when it is used.
                    let read = sources::read(&path, found, &Writable::default()).ok();
                    read.and_then(|(real, text)| written::servers(&real, &text).ok()).unwrap_or_default()
                }
                _ => continue,
            };
            is_added |= is_this;
            servers.into_iter().for_each(|server| merged.add(server));
        }
        Ok(merged.replaced.into_iter().filter(|one| one.is_about(&self.path)).collect())
    }

    /// Whether it says what it said when it was trusted.
    pub(crate) fn is_trusted(&self) -> bool {
        self.before.as_ref() == Some(&self.text)
    }

    /// Whether it was trusted, and says something else.
    pub(crate) fn has_changed(&self) -> bool {
        self.before.as_ref().is_some_and(|before| *before != self.text)
    }

    /// Of all that it says.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.text)
    }

    /// Trusts it as it was read.
    pub(crate) fn trust(&self, folders: &Folders) -> Result<(), TrustError> {
        TrustedFiles::of(&folders.state).trust(&self.path, &self.text)
    }

    /// What is misspelt or missing in it, as far as that shows without running anything, and what becomes of servers of
    /// the same name in other files, and of their values that may be secrets.
    pub(crate) fn notes(&self) -> Vec<Mistake> {
        let misspelt = self.servers.iter().flat_map(servers::misspelt);
        misspelt.chain(self.replaced.iter().map(Replacement::note)).collect()
    }

    /// The servers that are not what they were when it was trusted: all, if it never was.
    pub(crate) fn differences(&self) -> Vec<ServerDifference> {
        // Only what parses is trusted.
        let old = self.before.as_ref().and_then(|text| written::servers(&self.path, text).ok()).unwrap_or_default();
        let added = self.servers.iter().filter(|new| !old.iter().any(|old| old.name == new.name));
        let names = old.iter().chain(added).map(|server| &server.name);
        let all = names.filter_map(|name| {
            let is_it = |server: &&WrittenServer| server.name == *name;
            let (old, new) = (old.iter().find(is_it), self.servers.iter().find(is_it));
            if old.map(WrittenServer::to_json) == new.map(WrittenServer::to_json) {
                return None;
            }
            let shown = |server: Option<&WrittenServer>| server.map(|server| server.entry.shown(""));
            let (old, new) = (shown(old), shown(new));
            Some(ServerDifference { name: name.clone(), hidden: old == new, old, new })
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_of_servers_and_hidden_values_are_told() {
        let place = tempfile::tempdir().unwrap();
        let home = |name: &str| (name == "HOME").then(|| place.path().as_os_str().to_owned());
        let folders = Folders::find(7, home).unwrap();
        let path = place.path().join(".mcp.json");
        let says = |servers: &Value| {
            fs::write(&path, json!({"mcpServers": servers}).to_string()).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            FileToTrust::read(&path, &folders).unwrap()
        };
        let first = says(&json!({"a": {"command": "x", "env": {"A_KEY": "one"}}, "b": {"command": "y"}, "c": {}}));
        assert!(!first.is_trusted() && !first.has_changed());
        assert_eq!(first.differences().len(), 3);
        first.trust(&folders).unwrap();
        let changed =
            says(&json!({"a": {"command": "x", "env": {"A_KEY": "two"}}, "b": {"command": "z"}, "d": {}, "c": {}}));
        assert!(changed.has_changed());
        let one = |name: &str, old: Option<Value>, new: Option<Value>, hidden| ServerDifference {
            name: name.to_owned(),
            old,
            new,
            hidden,
        };
        let shown = json!({"command": "x", "env": {"A_KEY": "[redacted]"}});
        assert_eq!(
            changed.differences(),
            [
                one("a", Some(shown.clone()), Some(shown), true),
                one("b", Some(json!({"command": "y"})), Some(json!({"command": "z"})), false),
                one("d", None, Some(json!({})), false),
            ]
        );
        // What was looked at is what is trusted, whatever the file says by now.
        says(&json!({"e": {}}));
        changed.trust(&folders).unwrap();
        assert!(!FileToTrust::read(&path, &folders).unwrap().is_trusted());
    }
}
