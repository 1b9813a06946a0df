//! The environment of CMD: who gets what, decided from values alone.
//!
//! In a sandbox the list is of what is allowed; without one, of what is taken away: the variables that the
//! configuration refers to, since they hold the credentials. Either way the caller adds the port and the token, and
//! variables of an outer Footbridge never come through.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The variables that every command gets, besides `LC_*`.
const ALLOWED: [&str; 7] = ["HOME", "PATH", "TERM", "LANG", "TZ", "USER", "SHELL"];

/// PATH for a command whose caller had none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Which list applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxKind {
    /// Everything but what the configuration refers to.
    Open,
    /// Only what is allowed or asked for.
    Closed,
}

/// One `--env NAME[=VALUE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The variable's name.
    pub name: String,
    /// Its value; without one the caller's is taken, if there is one.
    pub value: Option<OsString>,
}

/// What the environment is made from.
#[derive(Debug, Clone, Copy)]
pub struct Environments<'a> {
    /// The caller's variables.
    pub callers: &'a [(OsString, OsString)],
    /// What `--env` names.
    pub asked: &'a [Asked],
    /// Names that the configuration refers to.
    pub referred: &'a BTreeSet<String>,
    /// The folder with `tool-cli`, which goes first on the PATH.
    pub tools: Option<&'a Path>,
}

/// Why there is no environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A credential was asked for.
    #[error(
        "--env {0} would show the command a variable that the configuration refers to; give the command another variable, or a value with --env {0}=VALUE"
    )]
    Referred(String),
    /// Not a name.
    #[error("--env {0:?} has no name of a variable before its value")]
    Name(String),
    /// What the harness itself sets.
    #[error("--env {0} would take the place of what the harness tells tool-cli; leave it out")]
    Ours(String),
    /// The folder cannot be on a PATH.
    #[error("{0:?} holds a colon and cannot be on the PATH; move the folder with tool-cli")]
    Colon(PathBuf),
}

/// The variables for CMD, sorted by name.
pub fn environment(kind: SandboxKind, from: Environments<'_>) -> Result<Vec<(OsString, OsString)>, EnvironmentError> {
    let passes = |name: &OsStr| match kind {
        SandboxKind::Closed => is_allowed(name),
        SandboxKind::Open => true,
    };
    let is_referred = |name: &OsStr| name.to_str().is_some_and(|name| from.referred.contains(name));
    let mut result: BTreeMap<OsString, OsString> = BTreeMap::new();
    for (name, value) in from.callers {
        if passes(name) && !is_referred(name) && !is_ours(name) {
            result.insert(name.clone(), value.clone());
        }
    }
    for asked in from.asked {
        if asked.name.is_empty() || asked.name.contains(['=', '\0']) {
            return Err(EnvironmentError::Name(asked.name.clone()));
        }
        let name = OsStr::new(&asked.name);
        if is_ours(name) {
            return Err(EnvironmentError::Ours(asked.name.clone()));
        }
        let value = match &asked.value {
            Some(value) => Some(value.clone()),
            None if is_referred(name) => return Err(EnvironmentError::Referred(asked.name.clone())),
            None => from.callers.iter().find(|(callers, _)| callers == name).map(|(_, value)| value.clone()),
        };
        if let Some(value) = value {
            result.insert(name.to_owned(), value);
        }
    }
    if let Some(tools) = from.tools {
        let path = result.remove(OsStr::new("PATH"));
        result.insert("PATH".into(), with_tools(tools, path)?);
    }
    Ok(result.into_iter().collect())
}

fn is_allowed(name: &OsStr) -> bool {
    ALLOWED.iter().any(|allowed| name == *allowed) || name.as_bytes().starts_with(b"LC_")
}

fn is_ours(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"TOOL_CLI_")
}

fn with_tools(tools: &Path, path: Option<OsString>) -> Result<OsString, EnvironmentError> {
    if tools.as_os_str().as_bytes().contains(&b':') {
        return Err(EnvironmentError::Colon(tools.to_owned()));
    }
    let mut all = tools.as_os_str().to_owned();
    all.push(":");
    all.push(path.filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.into()));
    Ok(all)
}
