//! A daemon of Docker that is a test's own: its images, containers, socket and processes are below one folder, and it
//! touches no network.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::PATIENCE;

/// A daemon, and the programs that came with it.
#[derive(Debug)]
pub(crate) struct DockerDaemon {
    child: Child,
    programs: PathBuf,
    socket: PathBuf,
}

impl DockerDaemon {
    /// Starts one whose files are in this folder, with the programs of another one.
    ///
    /// # Errors
    /// What it says when it does not start.
    pub(crate) fn start(unpacked: &Path, store: &Path) -> Result<Self, String> {
        let (programs, socket, log) = (unpacked.join("bin"), store.join("docker.sock"), store.join("log"));
        let open = || File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
        let (out, err) = open().map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new(programs.join("dockerd"));
        for (flag, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            command.arg(flag).arg(store.join(name));
        }
        command.arg("--host").arg(format!("unix://{}", socket.display()));
        command.args(["--storage-driver=vfs", "--bridge=none", "--iptables=false", "--ip6tables=false"]);
        command.env("PATH", first_on_path(&programs)).env("LD_LIBRARY_PATH", unpacked.join("lib"));
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = child.map_err(|error| format!("dockerd: {error}"))?;
        let mut daemon = Self { child, programs, socket };
        let deadline = Instant::now() + PATIENCE;
        while !daemon.client().arg("version").output().is_ok_and(|answer| answer.status.success()) {
            if Instant::now() > deadline || !matches!(daemon.child.try_wait(), Ok(None)) {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("dockerd does not start: {}", said.lines().last().unwrap_or("it says nothing")));
            }
        }
        Ok(daemon)
    }

    /// What leads its client to it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        vec!["--host".to_owned(), format!("unix://{}", self.socket.display())]
    }

    /// Its client.
    pub(crate) fn program(&self) -> PathBuf {
        self.programs.join("docker")
    }

    /// The variable by which that is found.
    pub(crate) fn path(&self) -> String {
        first_on_path(&self.programs)
    }

    fn client(&self) -> Command {
        let mut command = Command::new(self.program());
        command.args(self.arguments());
        command
    }
}

impl Drop for DockerDaemon {
    fn drop(&mut self) {
        // It ends what runs in it, and what it started.
        let _gone = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        let _status = self.child.wait();
    }
}

/// The search path, with this folder before all others.
fn first_on_path(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}
