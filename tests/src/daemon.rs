//! `footbridge serve`: a daemon of a [`Host`], and what an operator asks of it.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{
    PATIENCE,
    guest::Guest,
    host::Host,
    running::{Ran, Running, starting},
};

/// A daemon that is ready. Dropping it ends it in order.
#[derive(Debug)]
pub struct Daemon {
    running: Option<Running>,
    /// Whose daemon it is. Dropped last.
    pub host: Host,
}

impl Host {
    /// `footbridge serve` with its configuration.
    #[must_use]
    pub fn serve_of(&self) -> Command {
        let mut words: Vec<&OsStr> = vec![OsStr::new("serve")];
        for config in &self.configs {
            words.extend([OsStr::new("--config"), config.as_os_str()]);
        }
        self.footbridge(&words)
    }

    /// Starts a daemon and waits until it is ready.
    #[track_caller]
    #[must_use]
    pub fn serves(self) -> Daemon {
        let mut daemon = Daemon { running: None, host: self };
        daemon.starts();
        daemon
    }

    /// Starts a daemon whose state is on a small file system of its own, which fills up and is emptied as its standard
    /// input says: `full` and `room`. Needs root.
    #[track_caller]
    #[must_use]
    pub fn serves_on_a_small_disk(&self, before: &str) -> Running {
        std::fs::create_dir(self.state()).unwrap();
        let serve = self.serve_of();
        let script = format!(
            "mount -t tmpfs -o size=512k,mode=700 tmpfs {0}; {before} exec 3<&0; \
             (while read -r line; do case $line in full) cat /dev/zero >{0}/fill;; room) rm {0}/fill;; esac; \
             echo $line done; done) <&3 >&2 & exec \"$@\" 3<&- <&-",
            self.state().display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh"]);
        Running::start(&mut starting(&serve, command))
    }

    /// `footbridge session` with these words, to its end.
    #[track_caller]
    #[must_use]
    pub fn session(&self, words: &[&str]) -> Ran {
        let words: Vec<&OsStr> = std::iter::once("session").chain(words.iter().copied()).map(OsStr::new).collect();
        Running::start(&mut self.footbridge(&words)).ends()
    }

    /// `footbridge config` with these words, to its end.
    #[track_caller]
    #[must_use]
    pub fn configuration(&self, words: &[&str]) -> Ran {
        let words: Vec<&OsStr> = std::iter::once("config").chain(words.iter().copied()).map(OsStr::new).collect();
        Running::start(&mut self.footbridge(&words)).ends()
    }

    /// `footbridge approvals` with these words, to its end.
    #[track_caller]
    #[must_use]
    pub fn approvals(&self, words: &[&str]) -> Ran {
        let words: Vec<&OsStr> = std::iter::once("approvals").chain(words.iter().copied()).map(OsStr::new).collect();
        Running::start(&mut self.footbridge(&words)).ends()
    }

    /// Answers an approval: `allow` or `deny`, and its id.
    #[track_caller]
    pub fn answers(&self, words: &[&str]) {
        let ran = self.approvals(words);
        assert!(ran.status == 0 && ran.stderr.contains(" is "), "{ran:?}");
    }

    /// Waits until so many approvals are pending, and gives them.
    #[track_caller]
    #[must_use]
    pub fn pending(&self, count: usize) -> Vec<Value> {
        self.pending_that(count, |_| true)
    }

    /// Waits until so many pending approvals are like this, and gives them.
    #[track_caller]
    #[must_use]
    pub fn pending_that(&self, count: usize, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // A run may not listen yet.
            let text = self.approvals(&["list", "--json"]).stdout;
            let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let pending: Vec<Value> =
                all.iter().filter(|one| one["state"] == "pending" && fits(one)).cloned().collect();
            if pending.len() == count {
                return pending;
            }
            assert!(Instant::now() < deadline, "not {count} pending in time: {all:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The socket in a session's own folder.
    #[must_use]
    pub fn own_socket(&self, session: &str) -> PathBuf {
        self.runtime().join("sessions").join(session).join("s/footbridge.sock")
    }
}

impl Daemon {
    /// Starts it, when it is not running, and waits until it is ready.
    #[track_caller]
    pub fn starts(&mut self) {
        let mut running = Running::start(&mut self.host.serve_of());
        running.stderr.shows("footbridge: ready");
        self.running = Some(running);
    }

    /// Its process and what it says.
    #[track_caller]
    pub fn process(&mut self) -> &mut Running {
        self.running.as_mut().unwrap()
    }

    /// Ends it by force.
    #[track_caller]
    pub fn killed(&mut self) {
        self.process().killed();
        self.running = None;
        self.host.leaves_nothing_behind();
    }

    /// Ends it in order.
    #[track_caller]
    pub fn ends(&mut self) -> Ran {
        self.process().signal(Signal::SIGTERM);
        self.running.take().unwrap().ends()
    }

    /// Opens a session with its default socket; gives who holds its token.
    #[track_caller]
    #[must_use]
    pub fn opens(&self, name: &str, options: &[&str]) -> Guest {
        let created = self.creates(name, options);
        let endpoint = created["endpoints"][0].as_str().unwrap();
        let token = created["token"].as_str().unwrap();
        match endpoint.strip_prefix("unix:") {
            Some(path) => Guest::at_socket(path, token),
            None => Guest::at_port(endpoint.rsplit(':').next().unwrap().parse().unwrap(), token),
        }
    }

    /// Opens a session, under its host's policy unless the options name one, and gives what was told of it.
    #[track_caller]
    #[must_use]
    pub fn creates(&self, name: &str, options: &[&str]) -> Value {
        let policy = if options.contains(&"--policy") { Vec::new() } else { self.host.policy_words() };
        let words = [&["create", name, "--json"][..], &policy, options].concat();
        serde_json::from_str(&self.host.session(&words).well()).unwrap()
    }

    /// The token of a session, replaced.
    #[track_caller]
    #[must_use]
    pub fn rotates(&self, name: &str) -> String {
        let told: Value = serde_json::from_str(&self.host.session(&["rotate", name, "--json"]).well()).unwrap();
        told["token"].as_str().unwrap().to_owned()
    }

    /// All sessions.
    #[track_caller]
    #[must_use]
    pub fn list(&self) -> Vec<Value> {
        let text = self.host.session(&["list", "--json"]).well();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until the list of sessions is like this.
    #[track_caller]
    pub fn lists(&self, what: &str, fits: impl Fn(&[Value]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let list = self.list();
            if fits(&list) {
                return;
            }
            assert!(Instant::now() < deadline, "not {what} in time: {list:#?}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Waits until a file is gone.
#[track_caller]
pub fn goes(path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while path.symlink_metadata().is_ok() {
        assert!(Instant::now() < deadline, "{} is still there", path.display());
        thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.running.is_some() && !thread::panicking() {
            let ran = self.ends();
            assert_eq!(ran.status, 0, "{ran:?}");
        }
    }
}
