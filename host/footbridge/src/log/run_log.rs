//! What is logged while the command of a run has the terminal: in a file of the state folder, `STATE/logs/runs`, and one
//! line at the end that says how much it was and where. What is too long to be told at the end is there, too.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use chrono::Utc;
use footbridge_audit::private_folder::make_private;
use footbridge_proto::text::Escaped;
use tracing::Level;

use crate::report::counted;

/// Most bytes of one run; what is logged beyond that is lost, and counted.
const MOST_BYTES: usize = 4 << 20;

/// Most bytes that are kept in memory where they cannot be written.
const MOST_KEPT: usize = 64 * 1024;

/// Files of earlier runs that are kept.
const KEPT_FILES: usize = 20;

/// How much of the last line is shown at the end, bytes.
const SHOWN_BYTES: usize = 400;

/// The log of one run.
#[derive(Debug)]
pub(super) struct RunLog {
    path: PathBuf,
    file: Option<File>,
    /// What could not be written.
    kept: String,
    written: usize,
    lost: u64,
    lines: u64,
    warnings: u64,
    last_warning: String,
}

impl RunLog {
    /// In this file. Nothing is made before there is a line.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            kept: String::new(),
            written: 0,
            lost: 0,
            lines: 0,
            warnings: 0,
            last_warning: String::new(),
        }
    }

    /// Adds a list to a file, as much of it as there is room for beside what it holds. Whether that is all of it.
    pub(super) fn list(path: &Path, lines: impl Iterator<Item = String>) -> io::Result<bool> {
        let mut file = made(path)?;
        let room = (MOST_BYTES as u64).saturating_sub(file.metadata()?.len());
        let (mut text, mut is_whole) = (String::new(), true);
        for line in lines {
            is_whole = (text.len() + line.len()) as u64 <= room;
            if !is_whole {
                text.push_str("(and more, which is lost)\n");
                break;
            }
            text.extend([line.as_str(), "\n"]);
        }
        file.write_all(text.as_bytes())?;
        Ok(is_whole)
    }

    /// Takes a line.
    pub(super) fn take(&mut self, line: &str, level: Level) {
        self.lines += 1;
        if level <= Level::WARN {
            self.warnings += 1;
            line.clone_into(&mut self.last_warning);
        }
        if self.written + line.len() > MOST_BYTES {
            self.lost += 1;
        } else if self.write(line).is_ok() {
            self.written += line.len();
        } else if self.kept.len() + line.len() <= MOST_KEPT {
            self.kept.push_str(line);
        } else {
            self.lost += 1;
        }
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(made(&self.path)?),
        };
        file.write_all(line.as_bytes())
    }

    /// What is said of it at the end; nothing if nothing was logged.
    pub(super) fn end(self) -> Option<String> {
        let mut text = self.kept;
        if self.lost > 0 {
            let were = if self.lost == 1 { "was" } else { "were" };
            text.push_str(&format!("({} of the log {were} lost)\n", counted(self.lost, "line")));
        }
        if self.warnings > 0 && self.file.is_some() {
            let last = of_its_level(&self.last_warning);
            let last = &last[..last.floor_char_boundary(SHOWN_BYTES)];
            let (count, path) = (counted(self.warnings, "warning"), self.path.display().to_string());
            text.push_str(&format!(
                "footbridge: {count} while the command ran, in {}; the last: {}\n",
                Escaped(&path),
                Escaped(last)
            ));
        } else if self.file.is_some() {
            text.push_str(&format!(
                "footbridge: the log of this run is in {}\n",
                Escaped(&self.path.display().to_string())
            ));
        }
        Some(text).filter(|text| !text.is_empty())
    }

    /// What is in the file.
    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }
}

/// The file of this process.
pub(super) fn of_this_process(state: &Path) -> PathBuf {
    let name = format!("{}-{}.log", Utc::now().format("%Y%m%dT%H%M%SZ"), std::process::id());
    state.join("logs/runs").join(name)
}

/// A line without what is before its level: people know when it ended.
fn of_its_level(line: &str) -> &str {
    let line = line.trim_end();
    [" WARN ", "ERROR "].iter().find_map(|level| line.split_once(level)).map_or(line, |(_, rest)| rest)
}

/// Makes the file where it is not there yet, and removes the oldest of earlier runs.
fn made(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_private(folder).map_err(io::Error::other)?;
    let all = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let mut older: Vec<PathBuf> = all.filter(|path| !is_of_a_run(path)).collect();
    // By their names, which begin with their time.
    older.sort();
    let over = (older.len() + 1).saturating_sub(KEPT_FILES);
    for path in &older[..over] {
        // Another run may have been quicker.
        let _ = fs::remove_file(path);
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Whether the process that a file is named after still runs.
fn is_of_a_run(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let pid = name.rsplit_once('-').and_then(|(_, pid)| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_how_much_there_is_and_where() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(RunLog::new(of_this_process(state.path())).end(), None);
        assert!(!state.path().join("logs").exists(), "nothing is made for nothing");
        let mut log = RunLog::new(of_this_process(state.path()));
        log.take("2026-01-01T00:00:00Z  WARN a: one\n", Level::WARN);
        log.take("2026-01-01T00:00:00Z ERROR a: two \u{1b}[2J\n", Level::ERROR);
        log.take("2026-01-01T00:00:00Z  INFO a: three\n", Level::INFO);
        assert_eq!(log.text().lines().count(), 3);
        let path = log.path.display().to_string();
        let said = log.end().unwrap();
        let expected =
            format!("footbridge: 2 warnings while the command ran, in {path}; the last: a: two \\u{{1b}}[2J\n");
        assert_eq!(said, expected);
    }

    #[test]
    fn what_cannot_be_written_is_said_at_the_end_and_bounded() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("logs"), "in the way").unwrap();
        let mut log = RunLog::new(of_this_process(state.path()));
        log.take("first\n", Level::WARN);
        log.take(&"x".repeat(MOST_KEPT), Level::WARN);
        assert_eq!(log.end().unwrap(), "first\n(1 line of the log were lost)\n".replace("were", "was"));
    }

    #[test]
    fn only_the_newest_files_are_kept_and_none_grows_for_ever() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("logs/runs");
        make_private(&folder).unwrap();
        (10..40).for_each(|n| fs::write(folder.join(format!("20200101T0000{n}Z-4294967295.log")), "x").unwrap());
        // One that still runs, as this does.
        let running = folder.join(format!("20190101T000000Z-{}.log", std::process::id()));
        fs::write(&running, "x").unwrap();
        let mut log = RunLog::new(of_this_process(state.path()));
        (0..5).for_each(|_| log.take(&"x".repeat(1 << 20), Level::INFO));
        let left = fs::read_dir(&folder).unwrap().count();
        assert!(left == KEPT_FILES + 1 && !folder.join("20200101T000010Z-4294967295.log").exists(), "{left}");
        assert!(running.exists());
        assert_eq!((log.text().len(), log.lost), (4 << 20, 1));
    }
}
