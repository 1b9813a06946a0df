//! What a misbehaving server hears, in order: a named pipe, so that a test can wait for it.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    time::Instant,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::stat::Mode,
    unistd::mkfifo,
};

use crate::PATIENCE;

/// A tape of what a server hears.
#[derive(Debug)]
pub struct Tape {
    folder: tempfile::TempDir,
    pipe: File,
    heard: String,
    read_up_to: usize,
}

impl Tape {
    /// An empty tape.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes a file")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tape");
        mkfifo(&path, Mode::from_bits_truncate(0o600)).unwrap();
        // Open for both, it never ends between two writers.
        let nonblocking = nix::libc::O_NONBLOCK;
        let pipe = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(&path).unwrap();
        Self { folder, pipe, heard: String::new(), read_up_to: 0 }
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder().join("tape")
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits for the next message of this method, and gives the id that it is about.
    #[track_caller]
    pub fn hears(&mut self, method: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Some(length) = self.heard[self.read_up_to..].find('\n') {
                let line = &self.heard[self.read_up_to..self.read_up_to + length];
                self.read_up_to += length + 1;
                if let Some(about) = line.strip_prefix(method).and_then(|rest| rest.strip_prefix(' ')) {
                    return about.to_owned();
                }
            }
            let left = PollTimeout::try_from(deadline.saturating_duration_since(Instant::now())).unwrap();
            let ready = poll(&mut [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)], left).unwrap();
            assert!(ready > 0, "{method} was not heard in time, only {:?}", self.heard);
            self.take_in();
        }
    }

    /// How often this method was heard up to now.
    #[must_use]
    pub fn count(&mut self, method: &str) -> usize {
        self.take_in();
        self.heard.lines().filter(|line| line.split(' ').next() == Some(method)).count()
    }

    fn take_in(&mut self) {
        let mut chunk = [0; 65536];
        while let Ok(count @ 1..) = self.pipe.read(&mut chunk) {
            self.heard.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        }
    }
}
