//! Where results go: standard output, standard error, or a file.
//!
//! What a server wrote reaches a terminal only escaped; a pipe gets it as it came. A file is tried before the call
//! and replaced as a whole after it: until then, and whenever the call fails, what was there stays.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use footbridge_proto::text::EscapedLines;
use nix::{
    sys::signal::{SigSet, Signal},
    unistd::{AccessFlags, access},
};

use crate::blocking::Blocking;

/// What could not be written.
#[derive(Debug, thiserror::Error)]
pub enum NotWritten {
    /// A file.
    #[error("cannot write {path}: {source}. {then}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What that means for the call.
        then: &'static str,
    },
    /// Standard output.
    #[error("cannot write to standard output: {0}")]
    Stdout(#[source] io::Error),
    /// The result of a call, to standard output.
    #[error("cannot write to standard output: {0}. {AFTER}")]
    Result(#[source] io::Error),
}

impl NotWritten {
    /// Whether nobody reads any more, which is no failure: the call was made, and nobody wants the rest.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(self, Self::Stdout(error) | Self::Result(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The same, of the result of a call.
    #[must_use]
    pub fn of_result(self) -> Self {
        match self {
            Self::Stdout(source) => Self::Result(source),
            other => other,
        }
    }
}

/// Whether a person looks at standard output.
#[must_use]
pub fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Prints to standard output.
///
/// # Errors
/// [`NotWritten::Stdout`].
pub fn print(text: &str) -> Result<(), NotWritten> {
    print_with(|out| out.write_str(text))
}

/// Prints what is written, as it is written.
///
/// # Errors
/// [`NotWritten::Stdout`].
pub(crate) fn print_with(write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> Result<(), NotWritten> {
    let mut stdout = io::BufWriter::with_capacity(16 << 10, Blocking(io::stdout().lock()));
    let done = Sink::write(&mut stdout, on_terminal(), write);
    done.and_then(|()| stdout.flush()).map_err(NotWritten::Stdout)
}

/// Prints these bytes as they are.
///
/// # Errors
/// [`NotWritten::Stdout`].
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), NotWritten> {
    let mut stdout = Blocking(io::stdout().lock());
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(NotWritten::Stdout)
}

/// What was too much to print.
#[derive(Debug)]
pub(crate) struct Spilled {
    /// The file with all of it, or why there is none.
    pub kept: io::Result<PathBuf>,
    /// Its size.
    pub bytes: u64,
    /// Its lines.
    pub lines: u64,
}

/// Prints what is written up to so many bytes. Where there is more, all of it goes into a new file among the temporary
/// ones, for its owner alone; where that cannot be, the first bytes are printed all the same.
///
/// # Errors
/// [`NotWritten::Stdout`].
pub(crate) fn print_within(
    most: usize,
    write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result,
) -> Result<Option<Spilled>, NotWritten> {
    let mut spill = Spill { most, shown: String::new(), kept: None, bytes: 0, breaks: 0, ends: true };
    write(&mut spill).map_err(|error| NotWritten::Stdout(io::Error::other(error)))?;
    let end = if spill.kept.is_none() || spill.shown.ends_with('\n') { "" } else { "\n" };
    print(&format!("{}{end}", spill.shown))?;
    let (bytes, lines) = (spill.bytes, spill.breaks + u64::from(!spill.ends));
    Ok(spill.kept.map(|kept| Spilled { kept: kept.and_then(OwnersFile::finish), bytes, lines }))
}

/// What is shown of a text, and the file for all of it once that is too little.
struct Spill {
    most: usize,
    shown: String,
    kept: Option<io::Result<OwnersFile>>,
    bytes: u64,
    breaks: u64,
    /// Whether the last line has its end.
    ends: bool,
}

impl Spill {
    fn put(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.breaks += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.ends = text.is_empty() && self.ends || text.ends_with('\n');
        match self.kept.take() {
            Some(kept) => self.kept = Some(kept.and_then(|file| file.put(text))),
            None if self.shown.len() + text.len() <= self.most => self.shown.push_str(text),
            None => {
                let file = OwnersFile::create().and_then(|file| file.put(&self.shown)).and_then(|file| file.put(text));
                self.kept = Some(file);
                self.shown.push_str(&text[..text.floor_char_boundary(self.most - self.shown.len())]);
            }
        }
    }
}

impl fmt::Write for Spill {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text);
        Ok(())
    }
}

/// A new file among the temporary ones, for its owner alone. One that could not be written to its end is removed.
struct OwnersFile {
    path: PathBuf,
    file: io::BufWriter<File>,
}

impl OwnersFile {
    fn create() -> io::Result<Self> {
        let (path, file) = new_file_of_owner()?;
        Ok(Self { path, file: io::BufWriter::with_capacity(64 << 10, file) })
    }

    fn put(mut self, text: &str) -> io::Result<Self> {
        let done = self.file.write_all(text.as_bytes());
        self.if_done(done)
    }

    fn finish(mut self) -> io::Result<PathBuf> {
        let done = self.file.flush();
        self.if_done(done).map(|file| file.path)
    }

    fn if_done(self, done: io::Result<()>) -> io::Result<Self> {
        if done.is_err() {
            let _ = fs::remove_file(&self.path);
        }
        done.map(|()| self)
    }
}

/// A new file among the temporary ones.
fn new_file_of_owner() -> io::Result<(PathBuf, File)> {
    let mut attempt = 0;
    loop {
        let path = std::env::temp_dir().join(format!("tool-cli-{}-{attempt}.txt", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
            Err(e) => return Err(e),
        }
    }
}

/// Writes this, and the end of its last line where that is not there.
pub(crate) fn with_line_end(
    out: &mut dyn fmt::Write,
    write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result,
) -> fmt::Result {
    let mut text = LineEnd { out, is_there: false };
    write(&mut text)?;
    let end = if text.is_there { "" } else { "\n" };
    text.out.write_str(end)
}

/// Text on its way, and whether its last line has its end.
struct LineEnd<'o> {
    out: &'o mut dyn fmt::Write,
    is_there: bool,
}

impl fmt::Write for LineEnd<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if !text.is_empty() {
            self.is_there = text.ends_with('\n');
        }
        self.out.write_str(text)
    }
}

/// Prints to standard error. Where that fails there is nobody left to tell.
pub fn print_error(text: &str) {
    print_error_with(|out| out.write_str(text));
}

/// As [`print_error`], what is written, as it is written.
pub(crate) fn print_error_with(write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) {
    let stderr = io::stderr().lock();
    let escape = stderr.is_terminal();
    let mut stderr = io::BufWriter::with_capacity(16 << 10, Blocking(stderr));
    let _ = Sink::write(&mut stderr, escape, write).and_then(|()| stderr.flush());
}

/// Text on its way out, escaped for a terminal, and what went wrong.
struct Sink<'w, W> {
    out: &'w mut W,
    escape: bool,
    failed: Option<io::Error>,
}

impl<'w, W: Write> Sink<'w, W> {
    fn write(out: &'w mut W, escape: bool, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> io::Result<()> {
        let mut sink = Sink { out, escape, failed: None };
        let done = write(&mut sink);
        match sink.failed {
            Some(error) => Err(error),
            None => done.map_err(io::Error::other),
        }
    }
}

impl<W: Write> fmt::Write for Sink<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let done =
            if self.escape { write!(self.out, "{}", EscapedLines(text)) } else { self.out.write_all(text.as_bytes()) };
        done.map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}

/// Counts what goes through it.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What a file gets.
pub enum FileContent<'c> {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Text, as it is written.
    Text(&'c dyn Fn(&mut dyn fmt::Write) -> fmt::Result),
}

impl FileContent<'_> {
    /// Puts it down, and says how many bytes it has.
    fn put(&self, file: &mut File) -> io::Result<u64> {
        let mut out = Counted { out: io::BufWriter::with_capacity(64 << 10, file), bytes: 0 };
        match self {
            Self::Bytes(bytes) => out.write_all(bytes)?,
            Self::Text(write) => Sink::write(&mut out, false, write)?,
        }
        out.flush()?;
        Ok(out.bytes)
    }
}

/// A file that could be written when it was tried.
#[derive(Debug)]
pub struct OutFile {
    path: PathBuf,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// A file beside it takes its place.
    Replace { target: PathBuf, mode: Option<u32> },
    /// A device, a pipe, or a file in a folder that takes no other: written where it is.
    InPlace,
}

/// What a place that cannot be written means before the call.
pub(crate) const BEFORE: &str = "Nothing was called: choose another place";
/// The same after it.
pub(crate) const AFTER: &str = "The call was made and its result is lost";

impl OutFile {
    /// Finds out whether and how the file can be written, and leaves it as it is.
    ///
    /// # Errors
    /// [`NotWritten::File`].
    pub fn prepare(path: &Path) -> Result<Self, NotWritten> {
        let way = find_way(path).map_err(|source| NotWritten::File { path: path.to_owned(), source, then: BEFORE })?;
        Ok(Self { path: path.to_owned(), way })
    }

    /// The same once the call was made: what fails now loses its result.
    pub(crate) fn of_a_result(path: &Path) -> Result<Self, NotWritten> {
        let way = find_way(path).map_err(|source| NotWritten::File { path: path.to_owned(), source, then: AFTER })?;
        Ok(Self { path: path.to_owned(), way })
    }

    /// As it was typed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of it, and says how many bytes that is. An interrupt waits until that is done, so that no half file
    /// stays behind; but where it is written in its place, as into a pipe that somebody has to read first, there is none.
    ///
    /// # Errors
    /// [`NotWritten::File`].
    pub fn write(self, content: &FileContent<'_>) -> Result<u64, NotWritten> {
        let done = match &self.way {
            Way::Replace { target, mode } => {
                let interrupt = SigSet::from(Signal::SIGINT);
                let _ = interrupt.thread_block();
                let done = replace(target, *mode, content);
                let _ = interrupt.thread_unblock();
                done
            }
            Way::InPlace => File::create(&self.path).and_then(|mut file| content.put(&mut file)),
        };
        done.map_err(|source| NotWritten::File { path: self.path, source, then: AFTER })
    }
}

fn find_way(path: &Path) -> io::Result<Way> {
    let (target, mode) = match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) => {
            access(path, AccessFlags::W_OK)?;
            if !found.is_file() {
                return Ok(Way::InPlace);
            }
            (fs::canonicalize(path)?, Some(found.permissions().mode()))
        }
        // A link to nothing: creating its target is what a plain write would do.
        Err(_) if path.is_symlink() => return Ok(Way::InPlace),
        Err(e) if e.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
        Err(e) => return Err(e),
    };
    match beside(&target, mode) {
        Ok((temporary, _)) => {
            fs::remove_file(temporary)?;
            Ok(Way::Replace { target, mode })
        }
        Err(_) if mode.is_some() => Ok(Way::InPlace),
        Err(e) => Err(e),
    }
}

/// A new file in the folder of `target`, which nobody can open whom that one is closed to.
fn beside(target: &Path, mode: Option<u32>) -> io::Result<(PathBuf, File)> {
    let mode = mode.map_or(0o666, |mode| mode & 0o777);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut attempt = 0;
    loop {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let path = target.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
            Err(e) => return Err(e),
        }
    }
}

fn replace(target: &Path, mode: Option<u32>, content: &FileContent<'_>) -> io::Result<u64> {
    let (temporary, mut file) = beside(target, mode)?;
    let done = content.put(&mut file).and_then(|bytes| {
        mode.map_or(Ok(()), |mode| file.set_permissions(fs::Permissions::from_mode(mode)))?;
        fs::rename(&temporary, target)?;
        Ok(bytes)
    });
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_private_is_so_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("result");
        fs::write(&target, "before").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        let modes = || {
            let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().metadata().unwrap());
            files.map(|file| file.permissions().mode() & 0o777).collect::<Vec<_>>()
        };
        let content = |out: &mut dyn fmt::Write| {
            assert_eq!(modes(), [0o600, 0o600], "the file and the one that takes its place");
            out.write_str("after")
        };
        assert_eq!(OutFile::prepare(&target).unwrap().write(&FileContent::Text(&content)).unwrap(), 5);
        assert_eq!((modes(), fs::read_to_string(&target).unwrap().as_str()), (vec![0o600], "after"));
    }
}
