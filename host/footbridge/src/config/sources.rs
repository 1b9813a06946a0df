//! Where the configuration is looked for when no file is named: of the home folder, of the working folder, and the
//! harness's own, in this order; later ones win.
//!
//! A file of the working folder may have come with a repository. It is taken only as long as it says what it said when
//! the operator trusted it, and is passed over otherwise: to enter a folder runs nothing.

use std::path::{Path, PathBuf};

use footbridge_core::settings_file::Mistake;

use super::{
    bounded::bounded,
    folders::Folders,
    obeyed::obeyed,
    trusted::{TrustError, TrustedFiles},
    writable::Writable,
    written::SMALLEST,
};

/// The largest configuration file.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// Where servers are looked for below the working folder.
const OF_WORKING_FOLDER: [&str; 3] = [".claude/mcp.json", ".mcp.json", "mcp.json"];

/// What there is to do about files that are left out.
pub(crate) fn trust_it(files: &str) -> String {
    format!("look at it with \"footbridge config trust {files}\"")
}

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

impl LeftOut {
    /// What there is to do about it.
    #[must_use]
    pub fn note(&self) -> Mistake {
        let what = if self.changed { "says something else than when it was trusted" } else { "is not trusted" };
        Mistake::of_file(&self.path, format!("it {what}: {}", trust_it(&self.path.display().to_string())))
    }
}

impl Looked {
    /// What was tried, and what to write, for whoever has no configuration yet.
    #[must_use]
    pub fn help(&self) -> String {
        let state = |path: &PathBuf| {
            let left_out = self.left_out.iter().find(|left_out| left_out.path == *path);
            left_out.map_or(String::new(), |_| {
                format!("  (is there and not trusted: {})", trust_it(&path.display().to_string()))
            })
        };
        let tried: Vec<String> =
            self.tried.iter().map(|path| format!("  {}{}\n", path.display(), state(path))).collect();
        // Whoever has one needs no example.
        let example = format!(
            "A smallest one, for any of those that end in .json, or for a file that --config names:\n  {SMALLEST}"
        );
        let rest = if self.left_out.is_empty() { example.as_str() } else { "" };
        format!("looked for:\n{}{rest}", tried.concat()).trim_end().to_owned()
    }
}

/// Whether a file of this name is one that is looked for in a working folder.
pub(crate) fn is_looked_for(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| OF_WORKING_FOLDER.iter().any(|known| Path::new(known).file_name() == Some(name)))
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
pub(crate) fn of_working_folder(folders: &Folders) -> Vec<PathBuf> {
    let all = folders.working.iter().flat_map(|folder| OF_WORKING_FOLDER.map(|name| folder.join(name)));
    all.filter(|path| path.exists() && !is_users(path, folders)).collect()
}

/// Whether this is the file of the home or configuration folder, which the user alone writes to.
fn is_users(path: &Path, folders: &Folders) -> bool {
    let real = path.canonicalize().ok();
    let own = folders.home.iter().map(|home| home.join(".mcp.json")).chain([folders.config.join("servers.json")]);
    real.is_some() && own.into_iter().any(|own| own.canonicalize().ok() == real)
}

/// A file that is taken: one that had to be trusted with what is trusted of it.
pub(super) type Taken = (PathBuf, Option<TrustedText>);

/// What is obeyed of a file that had to be trusted: it is read once, and what was compared is what counts.
pub(super) struct TrustedText {
    real: PathBuf,
    text: String,
}

/// Where a file is, whatever leads there, and what it says.
pub(super) fn read(
    path: &Path,
    trusted: Option<TrustedText>,
    writable: &Writable,
) -> Result<(PathBuf, String), String> {
    let real = obeyed(path, writable)?;
    let text = match trusted {
        Some(trusted) if trusted.real == real => trusted.text,
        Some(_) => return Err("it was replaced by another file while it was read: try again".to_owned()),
        None => bounded(&real, MAX_FILE).map_err(|error| format!("it cannot be read: {error}"))?.0,
    };
    Ok((real, text))
}

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
        seen.push(real.clone());
        match text {
            None => taken.push((path.clone(), None)),
            Some(Ok(text)) => taken.push((path.clone(), Some(TrustedText { real, text }))),
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
