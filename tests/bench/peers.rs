//! The relay and what else carries a TCP port to a Unix socket, each started in front of one harness.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::Failure;

/// Where distributions put it; it is in no PATH.
const PROXYD: [&str; 2] = ["/usr/lib/systemd/systemd-socket-proxyd", "/lib/systemd/systemd-socket-proxyd"];
/// Longest that one may take to listen.
const START_LIMIT: Duration = Duration::from_secs(10);

/// A program that carries connections, ended when this is dropped.
pub(crate) struct Carrier {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
    child: Child,
}

impl Carrier {
    /// The relay.
    pub(crate) fn relay(program: &Path, to: &Path) -> Result<Self, Failure> {
        let mut command = Command::new("sh");
        // Its readiness comes on the standard output.
        command.args(["-c", "exec \"$0\" --ready-fd 3 \"$@\" 3>&1"]).arg(program);
        command.args(["--listen", "tcp:127.0.0.1:0", "--max-connections", "50000", "--to"]);
        command.arg(format!("unix:{}", to.display())).env_remove("FOOTBRIDGE_TO").env_remove("FOOTBRIDGE_LISTEN");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().ok_or("no port")?.parse()?;
        Ok(Self { name: "relay", port, child })
    }

    /// `socat`, a process for each connection. None where it is not installed.
    pub(crate) fn socat(to: &Path) -> Result<Option<Self>, Failure> {
        if Command::new("socat").arg("-V").stdout(Stdio::null()).status().is_err() {
            return Ok(None);
        }
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new("socat");
        command.args(["-b", "262144", &format!("TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,backlog=1024")]);
        command.arg(format!("UNIX-CONNECT:{}", to.display()));
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Self { name: "socat -b 262144", port, child }.up().map(Some)
    }

    /// `systemd-socket-proxyd`, with the listening socket as systemd passes it. None where it is not installed.
    pub(crate) fn proxyd(to: &Path) -> Result<Option<Self>, Failure> {
        let Some(program) = PROXYD.iter().map(PathBuf::from).find(|path| path.is_file()) else { return Ok(None) };
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let mut command = Command::new("sh");
        command.args(["-c", "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\" 3<&0 </dev/null"]).arg(program);
        command.arg("--connections-max=50000").arg(to).stdin(OwnedFd::from(listener)).stderr(Stdio::null());
        let child = command.spawn()?;
        Self { name: "systemd-socket-proxyd", port, child }.up().map(Some)
    }

    /// Waits until somebody accepts.
    fn up(self) -> Result<Self, Failure> {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if start.elapsed() > START_LIMIT {
                return Err(format!("{} does not listen", self.name).into());
            }
            std::thread::yield_now();
        }
        Ok(self)
    }

    pub(crate) fn connect(&self) -> Result<TcpStream, Failure> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Lets it run on these processors only; processes that it starts later too.
    pub(crate) fn place(&self, on: &CpuSet) -> Result<(), Failure> {
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let id = task?.file_name().to_string_lossy().parse()?;
            sched_setaffinity(Pid::from_raw(id), on)?;
        }
        Ok(())
    }

    /// Processor time so far, user and system, of each of its threads and of the processes it has for connections.
    pub(crate) fn processor(&self) -> Result<HashMap<String, u64>, Failure> {
        let mut all = vec![self.child.id()];
        let mut spent = HashMap::new();
        while let Some(pid) = all.pop() {
            // What is left of an earlier connection may end meanwhile.
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let Ok(times) = fs::read_to_string(task.path().join("schedstat")) else { continue };
                spent.insert(task.path().display().to_string(), times.split(' ').next().ok_or("no time")?.parse()?);
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                all.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
        }
        Ok(spent)
    }

    /// Processor time since `before`, of all that are there now.
    pub(crate) fn processor_since(&self, before: &HashMap<String, u64>) -> Result<Duration, Failure> {
        let now = self.processor()?;
        let spent = now.iter().map(|(task, spent)| spent.saturating_sub(before.get(task).copied().unwrap_or(0)));
        Ok(Duration::from_nanos(spent.sum()))
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // Children of socat end with their connections, which the measurement has closed.
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let _ = self.child.wait();
    }
}
