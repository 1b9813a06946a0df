//! The logs of MCP servers: what each wrote to its standard error, and what harnesses noted of it, the last of it in two
//! files of the state folder. They outlive the harness, so that a server that did not start can be looked at later.
//!
//! `STATE/logs/servers/NAME.jsonl`, one object a line, and `NAME.old.jsonl`, which was full. All harnesses of the folder
//! append to the same files, each line in one write; who finds one full makes it the old one, under a lock.
//!
//! Failure paths: what cannot be written is lost, and that is logged once; a line that cannot be read is passed over.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use chrono::{SecondsFormat, Utc};
use nix::libc::O_NOFOLLOW;
use serde::{Deserialize, Serialize};

use footbridge_audit::{
    lock_file::{LockFile, NotLocked},
    private_folder::make_private,
};
use footbridge_core::{names::ServerName, redact::shapes};
use footbridge_mcp::{LogSource, ServerLog};

/// A file that is larger is followed by another.
const FILE_BYTES: u64 = 256 * 1024;

/// Longest line that is kept, bytes; the rest of it is not.
const LINE_BYTES: usize = 2_000;

/// The end of a file's name.
const END: &str = ".jsonl";

/// The end of an older file's.
const OLD: &str = ".old.jsonl";

/// A line that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogLine {
    /// When, RFC 3339.
    pub(crate) time: String,
    /// `serve` or `run`.
    pub(crate) harness: String,
    /// Its process.
    pub(crate) pid: u32,
    /// The folder that it was started in: each has servers of its own, and some have the same name.
    #[serde(default)]
    pub(crate) folder: String,
    /// `server` or `harness`: who wrote it.
    pub(crate) source: String,
    /// What was written. Not escaped.
    pub(crate) text: String,
}

/// Writes the logs of one harness's servers.
#[derive(Debug)]
pub(crate) struct ServerLogs {
    folder: PathBuf,
    harness: &'static str,
    started_in: String,
    /// Whether a failure was told.
    failed: AtomicBool,
}

/// Where they are.
fn folder(state: &Path) -> PathBuf {
    state.join("logs/servers")
}

/// A server's name as that of a file: nothing in it leads elsewhere.
fn file_name(server: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let one = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    server.bytes().map(one).collect()
}

fn named(file: &str) -> Option<String> {
    let text = file.strip_suffix(END).filter(|_| !file.ends_with(OLD))?;
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

impl ServerLogs {
    /// Those of a harness, in this state folder.
    pub(crate) fn new(state: &Path, harness: &'static str) -> Self {
        let started_in = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
        Self { folder: folder(state), harness, started_in, failed: AtomicBool::new(false) }
    }

    fn append(&self, server: &ServerName, lines: &[u8]) -> io::Result<()> {
        make_private(&self.folder).map_err(io::Error::other)?;
        let path = self.folder.join(file_name(server.as_str()) + END);
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW).open(&path);
        let mut file = open()?;
        let size = file.metadata()?.len();
        if size >= FILE_BYTES {
            match LockFile::take(&self.folder.join("lock")) {
                Ok(_alone) => {
                    // Another harness may have been here first.
                    if fs::metadata(&path).is_ok_and(|now| now.len() >= FILE_BYTES) {
                        fs::rename(&path, self.folder.join(file_name(server.as_str()) + OLD))?;
                    }
                    file = open()?;
                }
                // One that hangs while it has the lock lets no file grow for ever.
                Err(NotLocked::Held(_)) if size >= 2 * FILE_BYTES => return Ok(()),
                Err(NotLocked::Held(_)) => {}
                Err(NotLocked::Io(error)) => return Err(error),
            }
        }
        file.write_all(lines)
    }
}

impl ServerLog for ServerLogs {
    fn keep(&self, server: &ServerName, source: LogSource, lines: &str) {
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let source = match source {
            LogSource::Server => "server",
            LogSource::Harness => "harness",
        };
        let line = |text: &str| LogLine {
            time: time.clone(),
            harness: self.harness.to_owned(),
            pid: std::process::id(),
            folder: self.started_in.clone(),
            source: source.to_owned(),
            text: shapes::hide(&text[..text.floor_char_boundary(LINE_BYTES)]).into_owned(),
        };
        let written =
            lines.lines().filter(|text| !text.trim().is_empty()).map(|text| serde_json::to_string(&line(text)));
        let text: Result<String, _> = written.map(|line| line.map(|line| line + "\n")).collect();
        let kept = text.map_err(io::Error::from).and_then(|text| self.append(server, text.as_bytes()));
        if let Err(error) = kept
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(folder = %self.folder.display(), %error, "what MCP servers say is not kept");
        }
    }
}

/// Follows the log of one server.
#[derive(Debug)]
pub(crate) struct LogReader {
    path: PathBuf,
    file: File,
    /// A line whose end was not there yet.
    begun: Vec<u8>,
}

/// There is no such log.
#[derive(Debug, thiserror::Error)]
#[error("nothing is kept of a server {server:?}: {}", list_known(.known))]
pub(crate) struct NoLog {
    server: String,
    known: Vec<String>,
}

fn list_known(known: &[String]) -> String {
    match known {
        [] => "no harness has started a server with this state folder yet".to_owned(),
        some => format!("there are logs of {}", some.join(", ")),
    }
}

impl LogReader {
    /// The log of a server, and what is in it so far, oldest first.
    ///
    /// # Errors
    /// [`NoLog`], or when it cannot be read.
    pub(crate) fn open(state: &Path, server: &str) -> anyhow::Result<(Self, Vec<LogLine>)> {
        let folder = folder(state);
        let path = folder.join(file_name(server) + END);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
                let mut known: Vec<String> = entries.filter_map(|entry| named(entry.file_name().to_str()?)).collect();
                known.sort();
                return Err(NoLog { server: server.to_owned(), known }.into());
            }
            opened => opened?,
        };
        let mut lines = match File::open(folder.join(file_name(server) + OLD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            opened => Self { path: path.clone(), file: opened?, begun: Vec::new() }.rest()?,
        };
        let mut reader = Self { path, file, begun: Vec::new() };
        lines.extend(reader.rest()?);
        Ok((reader, lines))
    }

    /// What was written since, also to a file that took this one's place.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn more(&mut self) -> io::Result<Vec<LogLine>> {
        let mut lines = self.rest()?;
        let next = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(lines),
            opened => opened?,
        };
        if next.metadata()?.ino() != self.file.metadata()?.ino() {
            self.file = next;
            lines.extend(self.rest()?);
        }
        Ok(lines)
    }

    fn rest(&mut self) -> io::Result<Vec<LogLine>> {
        // Twice what a file may hold: nothing that somebody put there instead fills the memory.
        (&self.file).take(4 * FILE_BYTES).read_to_end(&mut self.begun)?;
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = self.begun.split_off(whole);
        let lines = std::mem::replace(&mut self.begun, rest);
        Ok(lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[LogLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn names_become_files_of_this_folder_and_back() {
        for name in ["demo", "../../etc/x", "a b%", ".old", "x.old.jsonl", "Zürich"] {
            let file = file_name(name) + END;
            assert!(!file.contains('/') && !file.starts_with('.'), "{file}");
            assert_eq!(named(&file).as_deref(), Some(name));
        }
        assert!(file_name(&"ü".repeat(32)).len() + OLD.len() <= 255);
        assert_eq!((named("x.old.jsonl"), named("lock")), (None, None));
    }

    #[test]
    fn the_end_is_kept_of_whatever_is_written_and_no_token() {
        let state = tempfile::tempdir().unwrap();
        let (logs, name): (_, ServerName) = (ServerLogs::new(state.path(), "run"), "x".parse().unwrap());
        assert!(LogReader::open(state.path(), "x").unwrap_err().to_string().contains("no harness has started"));
        let token = format!("fbt_{}", "a".repeat(43));
        logs.keep(&name, LogSource::Harness, &format!("first {token}\n\n{}", "y".repeat(5_000)));
        let (mut reader, lines) = LogReader::open(state.path(), "x").unwrap();
        assert_eq!(texts(&lines), ["first [redacted]", &"y".repeat(LINE_BYTES)]);
        assert_eq!((lines[0].source.as_str(), lines[0].harness.as_str()), ("harness", "run"));
        logs.keep(&name, LogSource::Server, "second \u{1b}[2J");
        assert_eq!(texts(&reader.more().unwrap()), ["second \u{1b}[2J"]);
        let mut last = 0;
        while fs::read_dir(folder(state.path())).unwrap().count() < 3 || last < 2_000 {
            last += 1;
            logs.keep(&name, LogSource::Server, &format!("{last} {}", "z".repeat(1_000)));
        }
        let followed = reader.more().unwrap();
        assert_eq!(followed.last().unwrap().text.split(' ').next(), Some(last.to_string().as_str()));
        let sizes = fs::read_dir(folder(state.path())).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        assert!(sizes.into_iter().all(|size| size < FILE_BYTES + 10_000));
        let (_, lines) = LogReader::open(state.path(), "x").unwrap();
        let numbers: Vec<usize> = lines.iter().filter_map(|line| line.text.split(' ').next()?.parse().ok()).collect();
        assert_eq!(*numbers.last().unwrap(), last);
        assert!(
            numbers.windows(2).all(|two| two[1] == two[0] + 1),
            "no line between the first and the last is missing"
        );
        assert!(LogReader::open(state.path(), "y").unwrap_err().to_string().ends_with("there are logs of x"));
    }

    #[test]
    fn half_a_line_is_waited_for_and_rubbish_is_passed_over() {
        let state = tempfile::tempdir().unwrap();
        let (logs, name): (_, ServerName) = (ServerLogs::new(state.path(), "serve"), "x".parse().unwrap());
        logs.keep(&name, LogSource::Server, "one");
        let path = folder(state.path()).join("x.jsonl");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"rubbish\n{\"time\":\"t\",\"harness\":\"run\",\"pid\":1,\"source\":\"server\",").unwrap();
        let (mut reader, lines) = LogReader::open(state.path(), "x").unwrap();
        assert_eq!(texts(&lines), ["one"]);
        file.write_all(b"\"text\":\"two\"}\n").unwrap();
        assert_eq!(texts(&reader.more().unwrap()), ["two"]);
    }

    #[test]
    fn a_link_is_not_written_through() {
        let state = tempfile::tempdir().unwrap();
        let (logs, name): (_, ServerName) = (ServerLogs::new(state.path(), "serve"), "x".parse().unwrap());
        make_private(&folder(state.path())).unwrap();
        let target = state.path().join("target");
        fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, folder(state.path()).join("x.jsonl")).unwrap();
        logs.keep(&name, LogSource::Server, "one");
        assert_eq!(fs::read(&target).unwrap(), b"");
    }
}
