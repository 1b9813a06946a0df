//! MCP servers that others wrote, as `scripts/servers` installs them.

use std::{
    fs::OpenOptions, io::Write, net::TcpListener, os::unix::process::CommandExt, path::PathBuf, process::Command,
};

use crate::{processes, programs, running::Running};

/// Where real servers are.
#[derive(Debug)]
pub struct Real(PathBuf);

impl Real {
    /// The program of this name. Where it is not installed, the test says that it was skipped.
    #[must_use]
    pub fn server(test: &str, name: &str) -> Option<Self> {
        let folder = std::env::var_os("FOOTBRIDGE_SERVERS").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| programs::repository().join("target/servers"));
        let path = std::path::absolute(folder.join("bin").join(name)).unwrap();
        if path.exists() {
            return Some(Self(path));
        }
        skipped(test, &format!("{name} is not installed; run scripts/servers"));
        None
    }

    /// Its program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.0.clone()
    }
}

/// Says that a test, or a part of it, was skipped, and why.
pub fn skipped(test: &str, reason: &str) {
    let line = format!("SKIPPED: {test}: {reason}\n");
    let _unread = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("FOOTBRIDGE_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(list);
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

/// The server `everything` on a free port, for the time of a test, in a process group of its own.
#[derive(Debug)]
pub struct HttpServer {
    /// Its port.
    pub port: u16,
    folder: tempfile::TempDir,
    running: Option<Running>,
}

impl HttpServer {
    /// Starts it and waits until it listens.
    #[must_use]
    pub fn start(everything: &Real) -> Self {
        let mut server = Self { port: 0, folder: tempfile::tempdir().unwrap(), running: None };
        // Somebody else may take the port before it does.
        let taken = (0..5).any(|_| {
            server.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            server.listens(everything)
        });
        assert!(taken, "it does not start: {server:?}");
        server
    }

    /// Starts it on the same port once more.
    pub fn starts_again(&mut self, everything: &Real) {
        assert!(self.listens(everything), "it does not start again: {self:?}");
    }

    /// Starts it on its port; false when it ends instead of listening.
    fn listens(&mut self, everything: &Real) -> bool {
        let port = self.port.to_string();
        let mut command = Command::new(everything.program());
        command.arg("streamableHttp").env("PORT", &port).current_dir(self.folder.path()).process_group(0);
        let mut running = Running::start(&mut command);
        let listens = running.stderr.shows_or_ends(&format!("listening on port {port}"));
        self.running = Some(running);
        listens
    }

    /// Ends it by force, as a crash would.
    pub fn crashes(&mut self) {
        self.running = None;
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.running = None;
        processes::end_all(self.folder.path());
    }
}
