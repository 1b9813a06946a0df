//! Which servers are written down, and nothing more: no reference is filled in, no secret is read and nothing is run.
//!
//! For commands that only need names, at once. A file that cannot be read is one problem, and the others count.

use std::path::{Path, PathBuf};

use super::{
    Looked, Writable, folders::Folders, sources, sources::FoundFile, written, written::MergedServers,
    written::WrittenServer,
};

/// The servers of all files, merged, as they are written.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// By name, those that are turned off too.
    pub(crate) servers: Vec<WrittenServer>,
    /// Why a file was left out, each with its name.
    pub(crate) problems: Vec<String>,
    /// What was looked for; nothing where files were named.
    pub(crate) looked: Looked,
    /// The servers files that were read, or should have been.
    pub(crate) files: Vec<PathBuf>,
    /// The settings files, which were not read.
    pub(crate) settings: Vec<PathBuf>,
}

impl Outline {
    /// Reads the files that were named; without any, those of the places where one is looked for.
    pub(crate) fn read(given: &[PathBuf], folders: &Folders) -> Self {
        let mut outline = Self::default();
        let files = if given.is_empty() {
            match sources::look(folders) {
                Ok((looked, files)) => {
                    outline.looked = looked;
                    files
                }
                Err(error) => {
                    outline.problems.push(error.to_string());
                    return outline;
                }
            }
        } else {
            given.iter().map(|path| (path.clone(), None)).collect()
        };
        let mut merged = MergedServers::default();
        for (path, found) in files {
            if path.extension().is_some_and(|extension| extension == "toml") {
                outline.settings.push(path);
                continue;
            }
            match read(&path, found) {
                Ok(servers) => servers.into_iter().for_each(|server| merged.add(server)),
                Err(problems) => outline.problems.extend(problems),
            }
            outline.files.push(path);
        }
        outline.servers = merged.into_servers();
        outline
    }
}

fn read(path: &Path, found: Option<FoundFile>) -> Result<Vec<WrittenServer>, Vec<String>> {
    let wrong = |why: String| vec![format!("{}: {why}", path.display())];
    let (real, text) = sources::read(path, found, &Writable::default()).map_err(wrong)?;
    written::servers(&real, &text).map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}
