//! Where results go: standard output, standard error, or a file.
//!
//! What a server wrote reaches a terminal only escaped; a pipe gets it as it came. A file is tried before the call
//! and replaced as a whole after it: until then, and whenever the call fails, what was there stays.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use footbridge_proto::text::EscapedLines;
use nix::{
    sys::signal::{SigSet, Signal},
    unistd::{AccessFlags, access},
};

use crate::failure::Failure;

/// Whether a person looks at standard output.
pub(crate) fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::BufWriter::with_capacity(16 << 10, io::stdout().lock());
    let done = if on_terminal() { write!(stdout, "{}", EscapedLines(text)) } else { stdout.write_all(text.as_bytes()) };
    done.and_then(|()| stdout.flush()).and_then(|()| io::stdout().flush()).map_err(Failure::Stdout)
}

/// Prints to standard error. Where that fails there is nobody left to tell.
pub(crate) fn print_error(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ =
        if stderr.is_terminal() { write!(stderr, "{}", EscapedLines(text)) } else { stderr.write_all(text.as_bytes()) };
}

/// A file that could be written when it was tried.
#[derive(Debug)]
pub(crate) struct OutFile {
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

const BEFORE: &str = "Nothing was called: choose another file";
const AFTER: &str = "The call was made and its result is lost";

impl OutFile {
    /// Finds out whether and how the file can be written, and leaves it as it is.
    pub(crate) fn prepare(path: &Path) -> Result<Self, Failure> {
        let way = find_way(path).map_err(|source| Failure::Out { path: path.to_owned(), source, then: BEFORE })?;
        Ok(Self { path: path.to_owned(), way })
    }

    /// As it was typed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of it. An interrupt waits until that is done, so that no half file stays behind.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        let interrupt = SigSet::from(Signal::SIGINT);
        let _ = interrupt.thread_block();
        let done = match &self.way {
            Way::Replace { target, mode } => replace(target, *mode, bytes),
            Way::InPlace => File::create(&self.path).and_then(|mut file| file.write_all(bytes)),
        };
        let _ = interrupt.thread_unblock();
        done.map_err(|source| Failure::Out { path: self.path, source, then: AFTER })
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
    match beside(&target) {
        Ok((temporary, _)) => {
            fs::remove_file(temporary)?;
            Ok(Way::Replace { target, mode })
        }
        Err(_) if mode.is_some() => Ok(Way::InPlace),
        Err(e) => Err(e),
    }
}

/// A new file in the folder of `target`.
fn beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut attempt = 0;
    loop {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let path = target.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
            Err(e) => return Err(e),
        }
    }
}

fn replace(target: &Path, mode: Option<u32>, bytes: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = beside(target)?;
    let done = file
        .write_all(bytes)
        .and_then(|()| mode.map_or(Ok(()), |mode| file.set_permissions(fs::Permissions::from_mode(mode))))
        .and_then(|()| fs::rename(&temporary, target));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}
