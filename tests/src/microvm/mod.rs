//! A real virtual machine: QEMU in software emulation, a Debian kernel, and the vhost-user daemon that carries the
//! guest's vsock to Unix sockets, as `scripts/microvm` installs them.
//!
//! A [`Vm`] lives from its boot until it is dropped, switched off, or ends by itself after a quarter of an hour. Its
//! [`Cable`] stays: what the host has bound there goes on when the next machine boots.

mod image;
mod line;

use std::{
    fs,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

pub use image::Image;

use self::line::Line;
use crate::{
    processes, programs,
    real::skipped,
    running::{Ran, Running},
};

/// Longest that a machine takes to boot, or a script in it to end. Alone a boot takes 3 to 5 s.
pub const VM_PATIENCE: Duration = Duration::from_secs(150);

/// The kernels that the tests know, by their series. 6.12 sends a large write in several descriptors, 6.1 in one.
pub const SERIES: [&str; 2] = ["6.1", "6.12"];

/// Memory of a machine.
const MEMORY: &str = "768M";

/// What the kernel is told. Emulated on a busy machine, its timer may seem not to work, and it would not boot.
const KERNEL_OPTIONS: &str = "console=ttyS0 quiet panic=-1 no_timer_check";

/// What `scripts/microvm` installed.
#[derive(Debug, Clone)]
pub struct Kernel {
    folder: PathBuf,
    series: &'static str,
}

impl Kernel {
    /// The kernel of this series. Where it, or anything else that a machine needs, is not there, the test says that it
    /// was skipped.
    #[must_use]
    pub fn of(test: &str, series: &'static str) -> Option<Self> {
        let folder = std::env::var_os("FOOTBRIDGE_MICROVM").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| programs::repository().join("target/microvm"));
        let test = format!("{test} (Linux {series})");
        if folder.as_os_str().is_empty() {
            skipped(&test, "virtual machines are left out with --fast");
            return None;
        }
        let kernel = Self { folder: std::path::absolute(folder).unwrap(), series };
        let parts = [kernel.vmlinuz(), kernel.busybox(), kernel.daemon()];
        if parts.iter().any(|part| !part.exists()) {
            skipped(&test, "the parts of a virtual machine are not installed; run scripts/microvm");
            return None;
        }
        if let Some(program) = ["qemu-system-x86_64", "cpio"].into_iter().find(|program| !programs::on_path(program)) {
            skipped(&test, &format!("{program} is missing; run scripts/microvm"));
            return None;
        }
        Some(kernel)
    }

    /// Its series, such as `6.12`.
    #[must_use]
    pub fn series(&self) -> &'static str {
        self.series
    }

    /// The folder of its `vmlinuz` and `modules`.
    #[must_use]
    pub fn own_folder(&self) -> PathBuf {
        self.folder.join(format!("linux-{}", self.series))
    }

    fn vmlinuz(&self) -> PathBuf {
        self.own_folder().join("vmlinuz")
    }

    fn modules(&self) -> PathBuf {
        self.own_folder().join("modules")
    }

    /// A static busybox.
    #[must_use]
    pub fn busybox(&self) -> PathBuf {
        self.programs().join("busybox")
    }

    /// The folder of the programs that were installed for machines.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    fn daemon(&self) -> PathBuf {
        self.programs().join("vhost-device-vsock")
    }
}

/// Where the vsock of one machine after the other comes out: a short folder, and a CID that no other test has.
#[derive(Debug)]
pub struct Cable {
    folder: TempDir,
    cid: u32,
}

impl Cable {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        static USED: AtomicU32 = AtomicU32::new(0);
        let cid = 1000 + (std::process::id() << 6) + USED.fetch_add(1, Ordering::Relaxed);
        Self { folder: tempfile::Builder::new().prefix("fb-vm-").tempdir_in("/tmp").unwrap(), cid }
    }

    /// The socket that the daemon makes, for connections from the host to the guest.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.path().join("vm.sock")
    }

    /// The socket that a listener on the host makes, for a guest's connections to this port.
    #[must_use]
    pub fn socket_of_port(&self, port: u32) -> PathBuf {
        self.path().join(format!("vm.sock_{port}"))
    }

    /// The folder of both.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Default for Cable {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let left = if thread::panicking() { Vec::new() } else { processes::left_of(self.path()) };
        processes::end_all(self.path());
        assert!(left.is_empty(), "left behind: {left:#?}");
    }
}

/// A machine that has booted. Dropping it ends it.
#[derive(Debug)]
pub struct Vm {
    qemu: Running,
    _daemon: Running,
    line: Line,
}

impl Vm {
    /// Boots a machine and waits until it takes scripts.
    #[track_caller]
    #[must_use]
    pub fn boots(cable: &Cable, image: &Image) -> Self {
        let daemon = start_daemon(cable, &image.kernel);
        let at = cable.path().join("line.sock");
        // Of a machine that was here before.
        let _none_at_first = fs::remove_file(&at);
        let listener = UnixListener::bind(&at).unwrap();
        let qemu = Running::start(&mut qemu(cable, image, &at));
        let mut vm = Self { qemu, _daemon: daemon, line: Line::accept(&listener) };
        if let Err(error) = vm.line.ready(Instant::now() + VM_PATIENCE) {
            vm.qemu.killed();
            panic!("Linux {} did not boot: {error}\n{}\n{}", image.kernel.series, vm.console(), vm.qemu.stderr.rest());
        }
        vm
    }

    /// Runs a script of the shell in it, to its end.
    #[track_caller]
    #[must_use]
    pub fn runs(&mut self, script: &str) -> Ran {
        self.line.run(script, Instant::now() + VM_PATIENCE).unwrap_or_else(|error| {
            self.qemu.killed();
            panic!("{error} in the machine, after\n{script}\n{}", self.console())
        })
    }

    /// Ends it as a loss of power would.
    pub fn loses_power(mut self) {
        self.qemu.killed();
    }

    /// What the kernel wrote, of a machine that has ended.
    fn console(&mut self) -> String {
        self.qemu.stdout.rest()
    }
}

/// Starts the daemon and waits until it listens, since QEMU tries to connect only once.
fn start_daemon(cable: &Cable, kernel: &Kernel) -> Running {
    let control = cable.path().join("vhost.sock");
    for stale in [&control, &cable.socket()] {
        // Of a daemon that was here before.
        let _none_at_first = fs::remove_file(stale);
    }
    let mut command = Command::new(kernel.daemon());
    command.arg("--guest-cid").arg(cable.cid.to_string()).current_dir(cable.path());
    command.arg("--socket").arg(&control).arg("--uds-path").arg(cable.socket());
    let daemon = Running::start(&mut command);
    let deadline = Instant::now() + VM_PATIENCE;
    while !listens(&control) {
        assert!(Instant::now() < deadline, "vhost-device-vsock does not listen: {daemon:?}");
        thread::sleep(Duration::from_millis(5));
    }
    daemon
}

/// Whether somebody listens on a Unix socket, without connecting to it: the daemon serves one connection.
fn listens(path: &Path) -> bool {
    const LISTENS: &str = "00010000";
    // Names without a file may hold any bytes.
    let table = fs::read("/proc/net/unix").unwrap();
    let table = String::from_utf8_lossy(&table);
    table.lines().any(|line| {
        let mut words = line.split_whitespace().skip(3);
        words.next() == Some(LISTENS) && line.ends_with(path.to_str().unwrap())
    })
}

fn qemu(cable: &Cable, image: &Image, line: &Path) -> Command {
    let mut command = Command::new("qemu-system-x86_64");
    command.current_dir(cable.path()).args(["-nodefaults", "-nographic", "-no-reboot", "-cpu", "max", "-m", MEMORY]);
    command.args(["-M", "q35,accel=tcg,memory-backend=mem0"]);
    command.args(["-object", &format!("memory-backend-memfd,id=mem0,size={MEMORY},share=on")]);
    command.arg("-kernel").arg(image.kernel.vmlinuz()).arg("-initrd").arg(image.path());
    command.args(["-append", KERNEL_OPTIONS, "-serial", "stdio"]);
    command.args(["-chardev", &format!("socket,id=line,path={}", line.display()), "-serial", "chardev:line"]);
    command.args(["-chardev", &format!("socket,id=vsock,path={}/vhost.sock", cable.path().display())]);
    command.args(["-device", "vhost-user-vsock-pci,chardev=vsock"]);
    command
}
