//! A file of a working folder as it is looked at before it is trusted: what it says now, read once, and what it said when
//! it was trusted. What a person sees is what is trusted, and what others could change is not.

use std::{
    io,
    path::{Path, PathBuf},
};

use footbridge_core::{digest::Digest, settings_file::Mistake};
use serde_json::Value;

use super::{
    ConfigError, Writable, WrittenServer,
    folders::Folders,
    obeyed::link_in_reach,
    servers,
    sources::{self, working_folder_of},
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
    #[error(
        "what is trusted is kept by its path, and {0:?} is not UTF-8: rename that part of it, or name the file with --config"
    )]
    NotUtf8(PathBuf),
    #[error(
        "{}: {what}, and could have lead elsewhere: name the file that it leads to with --config {}", path.display(),
        real.display()
    )]
    Link { path: PathBuf, what: String, real: PathBuf },
    #[error("{}: {why}", path.display())]
    Unread { path: PathBuf, why: String },
    #[error(transparent)]
    Mistakes(ConfigError),
    #[error(transparent)]
    Kept(#[from] TrustError),
}

impl FileToTrust {
    /// Reads a file and what is known of it, by the path at which it is looked for: what that leads to may have any name.
    pub(crate) fn read(path: &Path, folders: &Folders) -> Result<Self, NotToTrust> {
        let unread = |why: io::Error| NotToTrust::Unread { path: path.to_owned(), why: why.to_string() };
        let given = std::path::absolute(path).map_err(unread)?;
        let Some(working) = working_folder_of(&given) else { return Err(NotToTrust::OtherName(path.to_owned())) };
        let folders = Folders { working: Some(working.to_owned()), ..folders.clone() };
        let mut file = Self::read_real(path, &folders)?;
        // What is trusted is not used where a link leads to it that a guest could have lead elsewhere.
        if let Some(what) = link_in_reach(&given, &Writable::here_or_in(working)) {
            return Err(NotToTrust::Link { path: path.to_owned(), what, real: file.path });
        }
        file.replaced = file.replacing(&given, &folders)?;
        Ok(file)
    }

    /// Reads a file by the path that is kept of one that is trusted. It may have any name, and what it replaces is not
    /// known: by which path it is looked for is not kept.
    pub(crate) fn read_real(path: &Path, folders: &Folders) -> Result<Self, NotToTrust> {
        let read = sources::read(path, None, &Writable::default());
        let (path, text) = read.map_err(|why| NotToTrust::Unread { path: path.to_owned(), why })?;
        if path.to_str().is_none() {
            return Err(NotToTrust::NotUtf8(path));
        }
        let mistakes = |found: Vec<Mistake>| NotToTrust::Mistakes(ConfigError(found));
        let servers = written::servers(&path, &text).map_err(mistakes)?;
        let before = TrustedFiles::of(&folders.state).text(&path)?;
        Ok(Self { path, servers, text, before, replaced: Vec::new() })
    }

    /// Which servers of other files it would replace once it is trusted, or be replaced by, and what of theirs it would
    /// get, where this is looked for and that is the working folder.
    fn replacing(&self, given: &Path, folders: &Folders) -> Result<Vec<Replacement>, TrustError> {
        let (looked, mut taken) = sources::look(folders)?;
        let (mut merged, mut is_added) = (MergedServers::default(), false);
        for place in &looked.tried {
            let is_this = place == given || place.canonicalize().is_ok_and(|real| real == self.path);
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
    use std::{
        ffi::OsStr,
        fs,
        os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _, fs::symlink},
    };

    use serde_json::json;

    use super::*;

    /// A servers file for its owner alone, in a folder that may not be there yet.
    fn write(path: &Path, servers: &Value) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, json!({"mcpServers": servers}).to_string()).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// The folders of somebody whose server has a key, and what is said of that one when a file is to be trusted.
    struct User(tempfile::TempDir, Folders);

    impl User {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let home = place.path().join("home");
            let folders = Folders::find(7, |name| (name == "HOME").then(|| home.as_os_str().to_owned())).unwrap();
            write(&home.join(".mcp.json"), &json!({"demo": {"command": "x", "env": {"API_KEY": "1"}}}));
            Self(place, folders)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn notes(&self, name: &str) -> Vec<String> {
            let file = FileToTrust::read(&self.path(name), &self.1).unwrap();
            file.notes().iter().map(|note| note.what.clone()).collect()
        }
    }

    #[test]
    fn keys_that_go_along_are_said_whichever_folder_is_worked_in_and_no_link_in_it_is_trusted() {
        let user = User::new();
        let theirs = json!({"demo": {"command": "x", "env": {"TOOLSETS": "all"}}});
        let keeps = |name: &str| {
            let notes = user.notes(name);
            assert!(
                matches!(notes.as_slice(), [one] if one.ends_with("keeps of that one env.API_KEY")),
                "{name}: {notes:?}"
            );
        };
        for to in ["tools/servers.json", "elsewhere/mcp.json", "other/.claude/mcp.json"] {
            write(&user.path(to), &theirs);
            for name in ["work/mcp.json", "work/.claude/mcp.json", "work/.mcp.json"] {
                fs::create_dir_all(user.path("work/.claude")).unwrap();
                symlink(user.path(to), user.path(name)).unwrap();
                let said = FileToTrust::read(&user.path(name), &user.1).unwrap_err().to_string();
                let next = format!("--config {}", user.path(to).canonicalize().unwrap().display());
                assert!(said.contains("is a link in ") && said.ends_with(&next), "{said}");
                fs::remove_file(user.path(name)).unwrap();
            }
        }
        symlink(user.path("other"), user.path("folder")).unwrap();
        keeps("folder/.claude/mcp.json");
        // These are looked for where their own folder is worked in.
        for name in ["work/.vscode/mcp.json", "work/.claude/.mcp.json"] {
            write(&user.path(name), &theirs);
            keeps(name);
        }
    }

    #[test]
    fn what_a_folder_s_link_leads_to_is_trusted_by_its_own_path() {
        let user = User::new();
        let real = user.path("real/mcp.json");
        write(&real, &json!({"a": {}}));
        symlink("real", user.path("work")).unwrap();
        FileToTrust::read(&user.path("work/mcp.json"), &user.1).unwrap().trust(&user.1).unwrap();
        let kept = TrustedFiles::of(&user.1.state).all().unwrap();
        assert_eq!(kept, [real.canonicalize().unwrap()]);
        assert!(FileToTrust::read_real(&kept[0], &user.1).unwrap().is_trusted());
        let other = user.path("work/servers.json");
        assert!(matches!(FileToTrust::read(&other, &user.1), Err(NotToTrust::OtherName(_))));
    }

    #[test]
    fn a_path_that_cannot_be_kept_is_refused_by_name() {
        let user = User::new();
        let path = user.0.path().join(OsStr::from_bytes(b"w\xff")).join("mcp.json");
        write(&path, &json!({"a": {}}));
        let said = FileToTrust::read(&path, &user.1).unwrap_err().to_string();
        assert!(said.contains("w\\xFF/mcp.json\" is not UTF-8: rename"), "{said}");
    }

    #[test]
    fn differences_are_of_servers_and_hidden_values_are_told() {
        let place = tempfile::tempdir().unwrap();
        let home = |name: &str| (name == "HOME").then(|| place.path().as_os_str().to_owned());
        let folders = Folders::find(7, home).unwrap();
        let path = place.path().join(".mcp.json");
        let says = |servers: &Value| {
            write(&path, servers);
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
