//! Chains are folders, with files that are numbered from 1; records are lines.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    vec,
};

use nix::libc::{ELOOP, O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK};

use crate::shared::PREFIX;

/// Longest line that is read, bytes; the writer's are far shorter.
const MAX_LINE: u64 = 1 << 20;

/// The folder of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainFolder {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// One line as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLine {
    /// Its bytes, without the line break; the start of it if it is too long.
    pub bytes: Vec<u8>,
    /// Whether a line break ends it.
    pub is_whole: bool,
}

/// The lines of a file.
pub struct Lines {
    reader: BufReader<File>,
    /// Where the next line starts.
    at: u64,
    /// Half a line was given, and nothing comes behind it.
    is_over: bool,
}

/// The lines of a chain, through all its files.
pub struct ChainLines<'c> {
    chain: &'c ChainFolder,
    files: Option<vec::IntoIter<(u32, PathBuf)>>,
    lines: Option<Lines>,
}

/// All chains of an audit folder, the oldest first. None where there is no folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn chains(audit: &Path) -> io::Result<Vec<ChainFolder>> {
    let mut found: Vec<_> = folders(audit)?.into_iter().map(|chain| (chain.began(), chain)).collect();
    found.sort_by(|(began, a), (other, b)| (began, &a.name).cmp(&(other, &b.name)));
    Ok(found.into_iter().map(|(_, chain)| chain).collect())
}

/// As [`chains`], in no order: none of them is opened.
///
/// # Errors
/// When the folder cannot be read.
pub fn folders(audit: &Path) -> io::Result<Vec<ChainFolder>> {
    let entries = match fs::read_dir(audit) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        // A link is no chain: nothing of ours makes one. Nor is what was moved away meanwhile.
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(name) = entry.file_name().into_string()
        {
            found.push(ChainFolder { name, path: entry.path() });
        }
    }
    Ok(found)
}

/// A chain by its name, or by the path of its folder, which has files of one.
#[must_use]
pub fn find(audit: &Path, named: &str) -> Option<ChainFolder> {
    // They would name the audit folder itself.
    if matches!(named, "" | ".") {
        return None;
    }
    let is_path = named.contains('/');
    let path = if is_path { PathBuf::from(named) } else { audit.join(named) };
    let name = path.file_name()?.to_str()?.to_owned();
    let found = path.is_dir().then_some(ChainFolder { name, path })?;
    (!is_path || found.files().is_ok_and(|files| !files.is_empty())).then_some(found)
}

impl ChainFolder {
    /// Whether processes write to it in turn, so that none of them ends it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.name.starts_with(PREFIX)
    }

    /// Its files, in their order, with their numbers.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn files(&self) -> io::Result<Vec<(u32, PathBuf)>> {
        let named = |error| at(&self.path, &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(named)? {
            let path = entry.map_err(named)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let number = name.and_then(|name| name.strip_suffix(".jsonl")).filter(|number| number.len() >= 6);
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                found.push((number, path));
            }
        }
        found.sort();
        Ok(found)
    }

    /// All its lines.
    #[must_use]
    pub fn lines(&self) -> ChainLines<'_> {
        ChainLines { chain: self, files: None, lines: None }
    }

    /// When its first record was written; the time in its name where that cannot be read.
    fn began(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Time {
            time: String,
        }
        let first = self.lines().next_line().ok().flatten();
        let time = first.and_then(|line| serde_json::from_slice::<Time>(&line.bytes).ok()).map(|first| first.time);
        time.unwrap_or_else(|| spelled_out(&self.name))
    }
}

impl ChainLines<'_> {
    /// The next line; none at the end, and none of half a line there: it is being written, or what a crash left.
    ///
    /// # Errors
    /// When a file cannot be read; there is no going on behind that.
    pub fn next_line(&mut self) -> io::Result<Option<RawLine>> {
        let files = match &mut self.files {
            Some(files) => files,
            None => self.files.insert(self.chain.files()?.into_iter()),
        };
        loop {
            if let Some(line) = self.lines.as_mut().map(Lines::next_line).transpose()?.flatten() {
                return Ok(Some(line).filter(|line| line.is_whole || files.len() > 0));
            }
            let Some((_, path)) = files.next() else { return Ok(None) };
            self.lines = Some(Lines::open(&path, 0)?);
        }
    }
}

/// Opens a file of the record. Nothing but a file is one: a link would lead elsewhere, and a pipe or a device may never
/// end.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let no_file = || io::Error::other(format!("{} is no file, as the record has: move it away", path.display()));
    let opened = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC).open(path);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(ELOOP) => return Err(no_file()),
        opened => opened.map_err(|error| at(path, &error))?,
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
}

/// An error, with the path that it is about.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The time in a chain's name as records write times.
fn spelled_out(name: &str) -> String {
    match (name.get(..4), name.get(4..6), name.get(6..8), name.get(9..11), name.get(11..13), name.get(13..15)) {
        (Some(y), Some(m), Some(d), Some(h), Some(min), Some(s)) => format!("{y}-{m}-{d}T{h}:{min}:{s}"),
        _ => name.to_owned(),
    }
}

impl Lines {
    /// Opens a file, to read from this byte on.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path, at: u64) -> io::Result<Self> {
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(Self { reader: BufReader::with_capacity(64 * 1024, file), at, is_over: false })
    }

    /// The next line; none at the end. What is still being written comes as a line that is not whole, the last one: its
    /// rest, which may be there by then, would be taken for a line.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<RawLine>> {
        if self.is_over {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let mut read = (&mut self.reader).take(MAX_LINE).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            return Ok(None);
        }
        let mut is_whole = bytes.pop_if(|last| *last == b'\n').is_some();
        if !is_whole && read == MAX_LINE {
            let skipped = self.reader.skip_until(b'\n')? as u64;
            // It is broken in any case; that it is not the end of the file is what counts.
            (read, is_whole) = (read + skipped, true);
        }
        self.is_over = !is_whole;
        self.at += read;
        Ok(Some(RawLine { bytes, is_whole }))
    }

    /// Where the next line starts.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whole_half_and_too_long() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), [b"a\n\n", vec![b'x'; (1 << 20) + 5].as_slice(), b"\nb\nhalf"].concat()).unwrap();
        let mut lines = Lines::open(file.path(), 0).unwrap();
        let mut next = || lines.next_line().unwrap().map(|line| (line.bytes.len(), line.is_whole));
        let found: Vec<_> = std::iter::from_fn(&mut next).collect();
        assert_eq!(found, [(1, true), (0, true), (1 << 20, true), (1, true), (4, false)]);
        assert_eq!(lines.at(), fs::metadata(file.path()).unwrap().len());
        // The rest of that line comes a moment later.
        let mut writes = OpenOptions::new().append(true).open(file.path()).unwrap();
        std::io::Write::write_all(&mut writes, b" a line\n").unwrap();
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn nothing_but_files_is_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("folder")).unwrap();
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("link")).unwrap();
        for name in ["folder", "pipe", "link", "nothing"] {
            let error = Lines::open(&path(name), 0).err().unwrap().to_string();
            assert!(error.starts_with(path(name).to_str().unwrap()), "{error}");
            assert_eq!(error.contains("move it away"), name != "nothing", "{error}");
        }
        // None of them keeps a chain from being listed.
        fs::create_dir_all(path("chain/000001.jsonl")).unwrap();
        assert_eq!(chains(folder.path()).unwrap().len(), 2);
    }

    #[test]
    fn chains_come_by_their_time_and_files_by_their_number() {
        let audit = tempfile::tempdir().unwrap();
        for (name, time) in
            [("20260101T000000Z-b", "2026-01-01T00:00:00.1Z"), ("20260101T000000Z-a", "2026-01-01T00:00:00.2Z")]
        {
            let folder = audit.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("000001.jsonl"), format!("{{\"time\":\"{time}\"}}\n")).unwrap();
            for other in ["000010.jsonl", "000002.jsonl", "notes.txt", "1.jsonl"] {
                fs::write(folder.join(other), "").unwrap();
            }
        }
        fs::write(audit.path().join("key"), "").unwrap();
        let found = chains(audit.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|chain| chain.name.as_str()).collect();
        assert_eq!(names, ["20260101T000000Z-b", "20260101T000000Z-a"]);
        let numbers: Vec<u32> = found[0].files().unwrap().into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 2, 10]);
        assert!(chains(&audit.path().join("none")).unwrap().is_empty());
        let named = |name: &str| find(audit.path(), name).map(|chain| chain.name);
        assert_eq!(named("20260101T000000Z-a").as_deref(), Some("20260101T000000Z-a"));
        let path = audit.path().join("20260101T000000Z-a");
        assert_eq!(named(path.to_str().unwrap()).as_deref(), Some("20260101T000000Z-a"));
        // Folders that are none, wherever they are.
        for none in ["none", "", ".", "..", "./", "/", audit.path().to_str().unwrap()] {
            assert_eq!(named(none), None, "{none}");
        }
    }
}
