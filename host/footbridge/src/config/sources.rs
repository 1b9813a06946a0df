//! Where the configuration is looked for when no file is named: of the home folder, of the working folder, and the
//! harness's own, in this order; later ones win.
//!
//! A file of the working folder may have come with a repository. It is taken only as long as it says what it said when
//! the operator trusted it, and is passed over otherwise: to enter a folder runs nothing.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{
    bounded::bounded,
    folders::Folders,
    trusted::{TrustError, TrustedFiles},
    written::SMALLEST,
};

/// The largest configuration file.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// Where servers are looked for below the working folder.
const OF_WORKING_FOLDER: [&str; 3] = [".claude/mcp.json", ".mcp.json", "mcp.json"];

/// What became of looking for files that nobody named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// All paths that were looked at, in order.
    pub tried: Vec<PathBuf>,
    /// Those that were read.
    pub taken: Vec<PathBuf>,
    /// Those that are there and not trusted.
    pub left_out: Vec<LeftOut>,
}

/// A file of the working folder that is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The file.
    pub path: PathBuf,
    /// Whether it was trusted, and says something else now.
    pub changed: bool,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.changed {
            true => write!(f, "{path} says something else than when it was trusted"),
            false => write!(f, "{path} is not trusted"),
        }
    }
}

impl Looked {
    /// What was tried, and what to write, for whoever has no configuration yet.
    #[must_use]
    pub fn help(&self) -> String {
        let state = |path: &PathBuf| {
            let left_out = self.left_out.iter().find(|left_out| left_out.path == *path);
            left_out.map_or(String::new(), |_| {
                "  (is there and not trusted: look at it and name it with --config)".to_owned()
            })
        };
        let tried: Vec<String> =
            self.tried.iter().map(|path| format!("  {}{}\n", path.display(), state(path))).collect();
        format!(
            "looked for:\n{}A smallest one, as servers.json there or named with --config:\n  {SMALLEST}",
            tried.concat()
        )
    }
}

/// The places where servers and settings are looked for, whether or not anything is there; settings are the last.
pub(super) fn candidates(folders: &Folders) -> Vec<PathBuf> {
    let home = folders.home.iter().map(|home| home.join(".mcp.json"));
    let working = folders.working.iter().flat_map(|folder| OF_WORKING_FOLDER.map(|name| folder.join(name)));
    let own = ["servers.json", "footbridge.toml"].map(|name| folders.config.join(name));
    home.chain(working).chain(own).collect()
}

/// Files of the working folder that are there, which may have to be trusted.
#[must_use]
pub fn of_working_folder(folders: &Folders) -> Vec<PathBuf> {
    let all = folders.working.iter().flat_map(|folder| OF_WORKING_FOLDER.map(|name| folder.join(name)));
    all.filter(|path| path.exists() && !is_users(path, folders)).collect()
}

/// Whether this is the file of the home or configuration folder, which the user alone writes to.
fn is_users(path: &Path, folders: &Folders) -> bool {
    let real = path.canonicalize().ok();
    let own = folders.home.iter().map(|home| home.join(".mcp.json")).chain([folders.config.join("servers.json")]);
    real.is_some() && own.into_iter().any(|own| own.canonicalize().ok() == real)
}

/// A file that is taken: one that had to be trusted with the text that is.
pub(super) type Taken = (PathBuf, Option<String>);

/// Looks at all places: what is there is taken, or left out.
pub(super) fn look(folders: &Folders) -> Result<(Looked, Vec<Taken>), TrustError> {
    let to_trust = of_working_folder(folders);
    let mut looked = Looked { tried: candidates(folders), ..Looked::default() };
    let (mut seen, mut taken) = (Vec::new(), Vec::new());
    for path in &looked.tried {
        // One file may be at several of the places, as in the home folder.
        let Ok(real) = path.canonicalize() else { continue };
        if seen.contains(&real) {
            continue;
        }
        let text = if to_trust.contains(path) { Some(trusted_text(&real, folders)?) } else { None };
        seen.push(real);
        match text {
            None => taken.push((path.clone(), None)),
            Some(Ok(text)) => taken.push((path.clone(), Some(text))),
            Some(Err(changed)) => looked.left_out.push(LeftOut { path: path.clone(), changed }),
        }
    }
    looked.taken = taken.iter().map(|(path, _)| path.clone()).collect();
    Ok((looked, taken))
}

/// What a file says, if that is what the operator trusts; or else whether it was ever trusted. One that never was is not
/// even opened.
fn trusted_text(real: &Path, folders: &Folders) -> Result<Result<String, bool>, TrustError> {
    let Some(trusted) = TrustedFiles::of(&folders.state).text(real)? else { return Ok(Err(false)) };
    let says = bounded(real, MAX_FILE).map(|(text, _)| text);
    Ok(says.ok().filter(|text| *text == trusted).ok_or(true))
}
