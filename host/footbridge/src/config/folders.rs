//! Where the harness keeps things: configuration, state, what lives only while it runs, and what can be had again.
//!
//! uid 0 uses `/etc`, `/var/lib`, `/run` and `/var/cache`; others the XDG folders (XDG Base Directory 0.8) with their defaults, and
//! a checked folder under `/tmp` where there is no runtime folder. `FOOTBRIDGE_STATE` and `FOOTBRIDGE_RUNTIME` name
//! others, by whole paths: a relative one is refused, where those of XDG are passed over, as their rule is.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use footbridge_processes::launch::{OwnFolders, StartFolders};

use super::{
    trust::{Untrusted, check_way},
    writable::Writable,
};

/// Variables that name others.
const STATE: &str = "FOOTBRIDGE_STATE";
const RUNTIME: &str = "FOOTBRIDGE_RUNTIME";

/// The folders of one user's harnesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// `footbridge.toml` and `servers.json`.
    pub config: PathBuf,
    /// The record.
    pub state: PathBuf,
    /// Sockets.
    pub runtime: PathBuf,
    /// What can be had again.
    pub cache: PathBuf,
    /// The user's whole runtime folder, where other programs keep their sockets.
    pub users_runtime: Option<PathBuf>,
    /// The home folder, where there is one.
    pub home: Option<PathBuf>,
    /// The folder that this process works in, where there is one still.
    pub working: Option<PathBuf>,
}

/// There is no home folder to put them into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither HOME nor {0} is set to an absolute path: set one of them")]
pub struct NoHome(&'static str);

/// A guest could have a folder of ours be another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}, on the way to {}, is a link in {}, which the sandbox can write: start from another folder, or set {name} to a \
     path without that link", link.display(), path.display(), folder.display()
)]
pub(crate) struct LinkInReach {
    link: PathBuf,
    path: PathBuf,
    folder: PathBuf,
    name: &'static str,
}

/// There are no folders to keep things in.
#[derive(Debug, thiserror::Error)]
pub enum FoldersError {
    /// None is named.
    #[error(transparent)]
    NoHome(#[from] NoHome),
    /// One that is named is another one wherever a command is started.
    #[error("{name} is {value:?}, which is no whole path: {}", whole_path_of(.name, .value, .working.as_deref()))]
    Relative {
        /// What names it.
        name: &'static str,
        /// As it is written.
        value: PathBuf,
        /// The folder that this process works in.
        working: Option<PathBuf>,
    },
    /// What should be one, or hold one, is something else.
    #[error("{} cannot be made: {} is no folder; move it away, or set {name} to another", path.display(), what.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
        /// What names it.
        name: &'static str,
        /// What is no folder.
        what: PathBuf,
    },
    /// Somebody else could put another in the place of one.
    #[error(
        "{} cannot be kept from others: {why}; or set {name} to a folder below one that is yours alone", path.display()
    )]
    Untrusted {
        /// The folder.
        path: PathBuf,
        /// What names another one.
        name: &'static str,
        /// Whose it is.
        why: Untrusted,
    },
}

/// What to write in place of a relative path.
fn whole_path_of(name: &str, value: &Path, working: Option<&Path>) -> String {
    match working {
        Some(working) => {
            let whole: PathBuf = working.join(value).components().collect();
            format!("write {name}={}", whole.display())
        }
        None => "write the path from / on".to_owned(),
    }
}

impl Folders {
    /// The folders of the user of this process, where nobody else can replace what is above them. Whose they are
    /// themselves is looked at where they are made.
    ///
    /// # Errors
    /// [`FoldersError`].
    pub(crate) fn of_this_user() -> Result<Self, FoldersError> {
        let folders = Self::find(nix::unistd::geteuid().as_raw(), |name| std::env::var_os(name))?;
        for (path, name) in [(&folders.state, STATE), (&folders.runtime, RUNTIME)] {
            if let Some(what) = path.ancestors().find(|what| what.exists() && !what.is_dir()) {
                return Err(FoldersError::NoFolder { path: path.clone(), name, what: what.to_owned() });
            }
            check_way(path.parent().unwrap_or(path)).map_err(|why| FoldersError::Untrusted {
                path: path.clone(),
                name,
                why,
            })?;
        }
        Ok(folders)
    }

    /// Refuses folders that a guest could have lead elsewhere for the next start: what is there would be obeyed.
    ///
    /// # Errors
    /// [`LinkInReach`].
    pub(crate) fn check_links(&self, writable: &Writable) -> Result<(), LinkInReach> {
        let all = [(&self.state, STATE), (&self.runtime, RUNTIME)];
        let found = all.into_iter().find_map(|(path, name)| {
            let found = writable.holds_link(path)?;
            Some(LinkInReach { link: found.place, path: path.clone(), folder: found.folder, name })
        });
        found.map_or(Ok(()), Err)
    }

    /// What programs find of these folders. They start, where they name no folder, below the state or else the runtime
    /// folder, the first that guests cannot write next to: some programs look for packages and settings in the folders
    /// above, too.
    #[must_use]
    pub(crate) fn for_programs(&self, writable: &Writable) -> OwnFolders {
        let ours = [&self.state, &self.runtime].into_iter().find(|folder| !writable.reaches(folder));
        OwnFolders {
            start: ours.map(|folder| StartFolders::below(folder.join("programs"))).unwrap_or_default(),
            hidden: vec![self.state.clone(), self.runtime.clone()],
            read_only: vec![self.config.clone()],
        }
    }

    /// The folders of this user, from the environment.
    ///
    /// # Errors
    /// [`FoldersError`].
    pub fn find(uid: u32, var: impl Fn(&str) -> Option<OsString>) -> Result<Self, FoldersError> {
        let working = std::env::current_dir().ok();
        let own = |name: &'static str| match var(name).filter(|value| !value.is_empty()).map(PathBuf::from) {
            Some(value) if value.is_relative() => Err(FoldersError::Relative { name, value, working: working.clone() }),
            named => Ok(named),
        };
        let (own_state, own_runtime) = (own(STATE)?, own(RUNTIME)?);
        let absolute = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below_home = |name: &'static str, rest: &str| {
            let base = absolute(name).or_else(|| absolute("HOME").map(|home| home.join(rest)));
            base.map(|base| base.join("footbridge")).ok_or(NoHome(name))
        };
        let users_runtime = absolute("XDG_RUNTIME_DIR");
        let (config, state, runtime, cache) = if uid == 0 {
            let own = absolute("XDG_CACHE_HOME").map(|base| base.join("footbridge"));
            let cache = own.unwrap_or_else(|| "/var/cache/footbridge".into());
            ("/etc/footbridge".into(), "/var/lib/footbridge".into(), "/run/footbridge".into(), cache)
        } else {
            let runtime = match &users_runtime {
                Some(folder) => folder.join("footbridge"),
                None => PathBuf::from(format!("/tmp/footbridge-{uid}")),
            };
            let (config, state) =
                (below_home("XDG_CONFIG_HOME", ".config")?, below_home("XDG_STATE_HOME", ".local/state")?);
            (config, state, runtime, below_home("XDG_CACHE_HOME", ".cache")?)
        };
        Ok(Self {
            config,
            state: own_state.unwrap_or(state),
            runtime: own_runtime.unwrap_or(runtime),
            cache,
            users_runtime,
            home: absolute("HOME"),
            working,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(uid: u32, vars: &[(&str, &str)]) -> Result<Folders, FoldersError> {
        Folders::find(uid, |name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
    }

    #[test]
    fn root_uses_the_systems_folders() {
        let folders = find(0, &[("XDG_CONFIG_HOME", "/x")]).unwrap();
        assert_eq!(folders.config, Path::new("/etc/footbridge"));
        assert_eq!(folders.runtime, Path::new("/run/footbridge"));
        assert_eq!(find(0, &[("FOOTBRIDGE_STATE", "/s")]).unwrap().state, Path::new("/s"));
    }

    #[test]
    fn others_use_xdg_with_its_defaults_and_ignore_relative_paths() {
        let folders = find(7, &[("HOME", "/h"), ("XDG_STATE_HOME", "rel")]).unwrap();
        assert_eq!(folders.config, Path::new("/h/.config/footbridge"));
        assert_eq!(folders.state, Path::new("/h/.local/state/footbridge"));
        assert_eq!(folders.runtime, Path::new("/tmp/footbridge-7"));
        assert_eq!(folders.cache, Path::new("/h/.cache/footbridge"));
        assert_eq!(find(7, &[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/r")]).unwrap().runtime, Path::new("/r/footbridge"));
        assert!(matches!(find(7, &[]), Err(FoldersError::NoHome(_))));
    }

    #[test]
    fn folders_of_ours_are_named_by_whole_paths() {
        for (uid, name) in [(0, STATE), (7, STATE), (7, RUNTIME)] {
            let error = find(uid, &[("HOME", "/h"), (name, "./st")]).unwrap_err().to_string();
            let whole = std::env::current_dir().unwrap().join("st");
            assert_eq!(error, format!("{name} is \"./st\", which is no whole path: write {name}={}", whole.display()));
            assert_eq!(find(uid, &[("HOME", "/h"), (name, "")]).unwrap(), find(uid, &[("HOME", "/h")]).unwrap());
        }
    }
}
