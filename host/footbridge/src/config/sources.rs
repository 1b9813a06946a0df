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

/// The working folder in which a file of this path is looked for, whatever it leads to; nothing where it is in none.
pub(super) fn working_folder_of(path: &Path) -> Option<&Path> {
    let known = OF_WORKING_FOLDER.iter().map(Path::new).find(|known| path.ends_with(known))?;
    path.ancestors().nth(known.components().count())
}

/// The places where servers and settings are looked for, whether or not anything is there; settings are the last.
pub(super) fn candidates(folders: &Folders) -> Vec<PathBuf> {
    let home = folders.home.iter().map(|home| home.join(".mcp.json"));
    let own = ["servers.json", "footbridge.toml"].map(|name| folders.config.join(name));
    home.chain(in_working_folder(folders)).chain(own).collect()
}

/// Files of the working folder that are there, which may have to be trusted.
#[must_use]
pub(crate) fn of_working_folder(folders: &Folders) -> Vec<PathBuf> {
    let own = of_user(folders);
    let is_there = |path: &PathBuf| path.canonicalize().is_ok_and(|real| !own.contains(&real));
    in_working_folder(folders).filter(is_there).collect()
}

/// Where files of the working folder are looked for.
fn in_working_folder(folders: &Folders) -> impl Iterator<Item = PathBuf> {
    folders.working.iter().flat_map(|folder| OF_WORKING_FOLDER.map(|name| folder.join(name)))
}

/// Where the files of the home and configuration folders are, which the user alone writes to.
fn of_user(folders: &Folders) -> Vec<PathBuf> {
    let own = folders.home.iter().map(|home| home.join(".mcp.json")).chain([folders.config.join("servers.json")]);
    own.filter_map(|own| own.canonicalize().ok()).collect()
}

/// A file that is taken, and what was found of it; nothing of one that was named.
pub(super) type Taken = (PathBuf, Option<FoundFile>);

/// What was found of a file when it was looked for. What leads to another one by the time that it is read is not obeyed: a
/// guest may write to the working folder meanwhile.
pub(super) struct FoundFile {
    real: PathBuf,
    /// Of one that had to be trusted: it is read once, and what was compared is what counts.
    trusted: Option<String>,
}

/// Where a file is, whatever leads there, and what it says.
pub(super) fn read(path: &Path, found: Option<FoundFile>, writable: &Writable) -> Result<(PathBuf, String), String> {
    let real = obeyed(path, writable)?;
    let text = match found {
        Some(found) if found.real != real => {
            return Err("it was replaced by another file while it was read: try again".to_owned());
        }
        Some(FoundFile { trusted: Some(text), .. }) => text,
        Some(_) | None => bounded(&real, MAX_FILE).map_err(|error| format!("it cannot be read: {error}"))?.0,
    };
    Ok((real, text))
}

/// Looks at all places: what is there is taken, or left out.
pub(super) fn look(folders: &Folders) -> Result<(Looked, Vec<Taken>), TrustError> {
    // Whether a file has to be trusted hangs on where it is, and on where it leads to when it is found here: it may come and
    // go while this looks.
    let (may_be_others, own): (Vec<_>, _) = (in_working_folder(folders).collect(), of_user(folders));
    let mut looked = Looked { tried: candidates(folders), ..Looked::default() };
    let (mut seen, mut taken) = (Vec::new(), Vec::new());
    for path in &looked.tried {
        // One file may be at several of the places, as in the home folder.
        let Ok(real) = path.canonicalize() else { continue };
        if seen.contains(&real) {
            continue;
        }
        seen.push(real.clone());
        let is_to_be_trusted = may_be_others.contains(path) && !own.contains(&real);
        let text = if is_to_be_trusted { trusted_text(&real, folders)?.map(Some) } else { Ok(None) };
        match text {
            Ok(trusted) => taken.push((path.clone(), Some(FoundFile { real, trusted }))),
            Err(changed) => looked.left_out.push(LeftOut { path: path.clone(), changed }),
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

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_file_is_looked_for_in_one_folder() {
        for (path, folder) in [
            ("/w/mcp.json", Some("/w")),
            ("/w/.mcp.json", Some("/w")),
            ("/w/.claude/mcp.json", Some("/w")),
            ("/w/.claude/.mcp.json", Some("/w/.claude")),
            ("/w/.vscode/mcp.json", Some("/w/.vscode")),
            ("/w/../v/mcp.json", Some("/w/../v")),
            ("/w/my-mcp.json", None),
            ("/w/servers.json", None),
        ] {
            assert_eq!(working_folder_of(Path::new(path)), folder.map(Path::new), "{path}");
        }
    }

    #[test]
    fn a_file_of_the_working_folder_is_the_users_only_as_long_as_it_leads_to_theirs() {
        let place = tempfile::tempdir().unwrap();
        let [config, working] = ["config", "working"].map(|name| place.path().join(name));
        for folder in [&config, &working] {
            fs::create_dir(folder).unwrap();
        }
        let own = config.join("servers.json");
        fs::write(&own, "own").unwrap();
        let folders = Folders {
            config,
            state: place.path().join("state"),
            home: None,
            working: Some(working.clone()),
            ..Folders::find(0, |_| None).unwrap()
        };
        let path = working.join("mcp.json");
        symlink(&own, &path).unwrap();
        let (looked, mut taken) = look(&folders).unwrap();
        assert_eq!((&looked.taken, looked.left_out.len()), (&vec![path.clone()], 0));
        // A guest puts a file of its own there before it is read.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a guest's").unwrap();
        let (_, found) = taken.remove(0);
        let why = read(&path, found, &Writable::default()).unwrap_err();
        assert!(why.contains("replaced by another file"), "{why}");
        let (looked, taken) = look(&folders).unwrap();
        assert_eq!(looked.left_out, [LeftOut { path, changed: false }]);
        assert_eq!(taken.into_iter().map(|(path, _)| path).collect::<Vec<_>>(), [own]);
    }
}
