//! Which servers are written down, and nothing more: no reference is filled in, no secret is read and nothing is run.
//!
//! For commands that only need names, at once. A file that cannot be read is one problem, and the others count.

use std::path::{Path, PathBuf};

use super::{
    Looked, Writable, bounded::bounded, folders::Folders, obeyed::obeyed, sources, written, written::MergedServers,
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
        let is_servers = |path: &Path| path.extension().is_none_or(|extension| extension != "toml");
        let mut merged = MergedServers::default();
        for (path, trusted) in files.into_iter().filter(|(path, _)| is_servers(path)) {
            match read(&path, trusted) {
                Ok(servers) => servers.into_iter().for_each(|server| merged.add(server)),
                Err(problems) => outline.problems.extend(problems),
            }
            outline.files.push(path);
        }
        outline.servers = merged.into_servers();
        outline
    }
}

fn read(path: &Path, trusted: Option<String>) -> Result<Vec<WrittenServer>, Vec<String>> {
    let wrong = |why: String| vec![format!("{}: {why}", path.display())];
    let real = obeyed(path, &Writable::default()).map_err(wrong)?;
    let read = || bounded(&real, sources::MAX_FILE).map(|(text, _)| text);
    let text = trusted.map_or_else(read, Ok).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    written::servers(&real, &text).map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}
