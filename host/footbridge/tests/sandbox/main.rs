//! What the `net` sandbox promises, seen from inside by a hostile command, for the caller's own user and another.
//!
//! Three parties, each this same test binary in a process of its own: the test, a harness that it starts (as another
//! user where the test is about that), and the command inside, which tries its ways out and writes down what happened.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says no more than that it failed, and where"
)]

#[path = "../../../../tests/skipped.rs"]
mod skipped;
mod sys;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::{Debug, Display};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use footbridge_processes::keeper::{KeptCommand, ProgramStream, SpawnError, Step};
use footbridge_processes::sandbox::files::View;
use footbridge_processes::sandbox::{Nesting, filter_bytes, net};
use nix::libc;
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use skipped::skipped;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

const DEADLINE: Duration = Duration::from_secs(30);
const FOOTBRIDGE: &str = env!("CARGO_BIN_EXE_footbridge");
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
const NOBODY: u32 = 65534;

/// The files of one harness and its session, below one temporary folder.
struct Place(PathBuf);

impl Place {
    fn runtime(&self) -> PathBuf {
        self.0.join("runtime")
    }
    fn socket_folder(&self) -> PathBuf {
        self.0.join("runtime/sessions/one/s")
    }
    fn socket(&self) -> PathBuf {
        self.socket_folder().join("socket")
    }
    fn config(&self) -> PathBuf {
        self.0.join("footbridge.toml")
    }
    fn secret(&self) -> PathBuf {
        self.0.join("key")
    }
    /// Hidden before it exists.
    fn state(&self) -> PathBuf {
        self.0.join("home/.local/state/footbridge")
    }
    fn findings(&self) -> PathBuf {
        self.0.join("findings")
    }

    fn view(&self) -> View {
        View {
            own_folders: vec![self.runtime(), self.state(), self.runtime().join("sessions")],
            secrets: vec![self.secret(), self.0.join("missing")],
            configurations: vec![self.config()],
            writable: vec![self.0.clone()],
            shown: vec![this_file()],
            session: self.socket_folder(),
            programs: vec![("/bin/sh".into(), self.socket_folder().join("sh"))],
            empty: self.runtime().join("empty"),
            ..View::default()
        }
    }

    fn command(&self, args: &[&str]) -> KeptCommand {
        net::command(self.view().plan().unwrap(), args, Nesting::Refused)
    }

    fn furnish(&self) -> UnixListener {
        std::fs::create_dir_all(self.socket_folder()).unwrap();
        std::fs::write(self.runtime().join("control.sock"), "secret").unwrap();
        std::fs::write(self.config(), "configured").unwrap();
        for (file, text) in [(self.secret(), "secret"), (self.runtime().join("empty"), "")] {
            std::fs::write(file, text).unwrap();
        }
        File::create(self.socket_folder().join("sh")).unwrap();
        UnixListener::bind(self.socket()).unwrap()
    }
}

fn this_file() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn part(name: &str) -> [&str; 5] {
    ["--ignored", "--exact", name, "--nocapture", "--quiet"]
}

/// This user cannot make such a sandbox here; says so and why.
fn cannot_run(test: &str) -> bool {
    let attempt = Command::new("unshare").args(["-Urn", "true"]).output();
    let reason = match attempt {
        Ok(output) if output.status.success() => return false,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    skipped(test, format_args!("no user namespaces here: {reason}"));
    true
}

/// A harness of its own; `NOBODY` only where the test may become that.
fn harness(place: &Place, user: Option<u32>, script: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(part("as_harness")).env("PLACE", &place.0).env("SCRIPT", script).stdin(Stdio::null());
    if let Some(user) = user {
        std::os::unix::fs::chown(&place.0, Some(user), Some(user)).unwrap();
        command.uid(user).gid(user);
    }
    command
}

fn place() -> (tempfile::TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let place = Place(folder.path().canonicalize().unwrap());
    (folder, place)
}

/// The users to try: the one that runs the test and, if that is root, an ordinary one.
fn users(test: &str) -> Vec<Option<u32>> {
    if !geteuid().is_root() {
        skipped(&format!("{test} as another user"), "not root");
        return vec![None];
    }
    vec![None, Some(NOBODY)]
}

#[tokio::test]
#[ignore = "a part that other tests start"]
async fn as_harness() {
    let place = Place(std::env::var_os("PLACE").unwrap().into());
    let _listener = place.furnish();
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = std::env::var("SCRIPT").unwrap();
    footbridge_processes::sys::harden().unwrap();
    let env = [
        ("PATH", OsString::from(PATH)),
        ("PLACE", place.0.clone().into()),
        ("PART", this_file().into()),
        ("OUTSIDE", outside.local_addr().unwrap().to_string().into()),
    ];
    let command = place.command(&["-c", &script]).env(env).helper(FOOTBRIDGE);
    let command = command.folder(place.runtime());
    let kept = command.streams(ProgramStream::Null, ProgramStream::Inherit, ProgramStream::Inherit).spawn().await;
    let mut kept = kept.unwrap_or_else(|error| panic!("{error} {error:?}"));
    println!("pid {}", kept.pid());
    let ended = kept.wait().await.unwrap();
    println!("ended {}", ended.code());
}

/// What a hostile command finds, one finding a line.
#[test]
#[ignore = "a part that other tests start"]
fn inside() {
    let place = Place(std::env::var_os("PLACE").unwrap().into());
    let mut findings = File::create(place.findings()).unwrap();
    let mut note = |name: &str, value: &dyn Display| writeln!(findings, "{name}={value}").unwrap();
    let outcome =
        |result: std::io::Result<()>| result.map_or_else(|e| format!("{:?}", e.kind()), |()| "done".to_owned());
    let list = |path: &Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.join(",")
    };

    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    for line in status.lines().filter(|line| line.starts_with("Cap") || line.starts_with("NoNewPrivs")) {
        let (name, value) = line.split_once(':').unwrap();
        note(name, &value.trim());
    }
    note("user", &geteuid());
    note("processes", &list(Path::new("/proc")).split(',').filter(|name| name.parse::<u32>().is_ok()).count());
    note("pid1", &std::fs::read_to_string("/proc/1/comm").unwrap().trim());

    let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
    let devices: Vec<_> = devices.lines().skip(2).map(|line| line.split(':').next().unwrap().trim()).collect();
    note("devices", &devices.join(","));
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    note("loopback", &outcome(TcpStream::connect(own.local_addr().unwrap()).map(drop)));
    note("outside", &outcome(TcpStream::connect(std::env::var("OUTSIDE").unwrap()).map(drop)));
    note("world", &outcome(TcpStream::connect("192.0.2.1:9").map(drop)));
    note("session", &outcome(UnixStream::connect(place.socket()).map(drop)));

    for (name, result) in refused_calls() {
        note(name, &result);
    }

    note("runtime", &list(&place.runtime()));
    note("sessions", &list(&place.runtime().join("sessions")));
    note("socket_folder", &list(&place.socket_folder()));
    note("state", &list(&place.state()));
    note("config", &std::fs::read_to_string(place.config()).unwrap());
    note("secret", &std::fs::read_to_string(place.secret()).unwrap());
    note("folder", &list(Path::new(".")));
    note("terminals", &list(Path::new("/dev/pts")));
    for (name, path) in [
        ("write_runtime", place.runtime().join("x")),
        ("write_state", place.state().join("x")),
        ("write_config", place.config()),
        ("write_socket_folder", place.socket_folder().join("x")),
        ("write_secret", place.secret()),
        ("write_folder", place.0.join("x")),
        ("write_tmp", "/tmp/x".into()),
        ("write_shared_memory", "/dev/shm/x".into()),
        ("write_root", "/x".into()),
        ("write_devices", "/dev/x".into()),
        ("write_kernel", "/proc/sys/kernel/hostname".into()),
    ] {
        note(name, &outcome(std::fs::write(path, "x")));
    }
    note("remove_config", &outcome(std::fs::remove_file(place.config())));
    note("remove_socket", &outcome(std::fs::remove_file(place.socket())));
    note("rename_above_state", &outcome(std::fs::rename(place.0.join("home/.local"), place.0.join("home/x"))));
    note("rename_above_config", &outcome(std::fs::rename(&place.0, place.0.with_extension("x"))));
    note("unmount", &Debugged(umount2(&place.runtime(), MntFlags::MNT_DETACH)));
    let mut nested = Command::new("unshare");
    nested.args(["-Urm", "sh", "-c", "umount -l \"$0\" || exit 7"]).arg(place.runtime());
    let nested = nested.stderr(Stdio::null()).status();
    note("unmount_nested", &nested.unwrap().code().unwrap());
    note("tmp", &list(Path::new("/tmp")).contains(place.0.file_name().unwrap().to_str().unwrap()));
    note(
        "devices_of_the_host",
        &["vsock", "vhost-vsock", "kvm", "fuse"].iter().any(|n| Path::new("/dev").join(n).exists()),
    );
}

struct Debugged<T>(T);

impl<T: Debug> Display for Debugged<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Calls by their bare numbers, since the libraries know nothing of some.
fn refused_calls() -> Vec<(&'static str, String)> {
    let call = |number: i64, first: i32, second: i32| format!("{:?}", sys::call(number, first, second));
    let mut calls = vec![
        ("vsock", call(libc::SYS_socket, libc::AF_VSOCK, libc::SOCK_STREAM)),
        ("vsock_pair", call(libc::SYS_socketpair, libc::AF_VSOCK, libc::SOCK_STREAM)),
        ("modems", call(libc::SYS_socket, 42, libc::SOCK_DGRAM)),
        ("io_uring", call(libc::SYS_io_uring_setup, 1, 0)),
        ("keyring", call(libc::SYS_keyctl, 0, -3)),
        ("user_namespace", call(libc::SYS_unshare, libc::CLONE_NEWUSER, 0)),
        ("user_namespace_among", call(libc::SYS_unshare, libc::CLONE_NEWUSER | libc::CLONE_NEWNS, 0)),
        ("clone_into_user_namespace", call(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0)),
        ("clone3", call(libc::SYS_clone3, 0, 0)),
        ("setns", call(libc::SYS_setns, 0, 0)),
        ("openat2", call(libc::SYS_openat2, 0, 0)),
        ("set_user_id", call(libc::SYS_fchmod, -1, 0o4755)),
        ("set_group_id", call(libc::SYS_fchmod, -1, 0o2755)),
    ];
    if cfg!(target_arch = "x86_64") {
        let x32 = libc::SYS_socket | 0x4000_0000;
        calls.push(("vsock_x32", call(x32, libc::AF_VSOCK, libc::SOCK_STREAM)));
    }
    calls
}

fn expected(user: u32) -> BTreeMap<String, String> {
    let mut expected = BTreeMap::new();
    let none = "0000000000000000";
    let user = user.to_string();
    let mut add = |names: &[&str], value: &str| {
        expected.extend(names.iter().map(|name| ((*name).to_owned(), value.to_owned())));
    };
    add(&["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"], none);
    add(&["NoNewPrivs"], "1");
    add(&["user"], &user);
    add(&["processes"], "2");
    add(&["pid1"], "sh");
    add(&["devices"], "lo");
    add(&["loopback", "session", "write_folder", "write_tmp", "write_shared_memory"], "done");
    add(&["write_root", "write_devices", "write_kernel", "write_secret"], "ReadOnlyFilesystem");
    add(&["user_namespace", "user_namespace_among", "clone_into_user_namespace", "setns"], "Err(EPERM)");
    add(&["clone3", "openat2"], "Err(ENOSYS)");
    add(&["set_user_id"], "Err(EPERM)");
    add(&["set_group_id"], "Err(EBADF)");
    add(&["devices_of_the_host"], "false");
    add(&["tmp"], "true");
    add(&["outside"], "ConnectionRefused");
    add(&["world"], "NetworkUnreachable");
    add(&["vsock", "vsock_pair", "modems", "io_uring", "keyring"], "Err(EPERM)");
    if cfg!(target_arch = "x86_64") {
        add(&["vsock_x32"], "Err(EPERM)");
    }
    add(&["runtime"], "sessions");
    add(&["sessions"], "one");
    add(&["socket_folder"], "sh,socket");
    add(&["state", "secret"], "");
    add(&["config"], "configured");
    add(&["folder"], "sessions");
    add(&["terminals"], "ptmx");
    add(&["write_runtime", "write_state", "write_config", "write_socket_folder"], "ReadOnlyFilesystem");
    add(&["remove_config", "rename_above_state", "rename_above_config"], "ResourceBusy");
    add(&["remove_socket"], "ReadOnlyFilesystem");
    add(&["unmount"], "Err(EPERM)");
    add(&["unmount_nested"], "1");
    expected
}

#[test]
fn a_hostile_command_finds_nothing_but_its_own_session() {
    let name = "a_hostile_command_finds_nothing_but_its_own_session";
    if cannot_run(name) {
        return;
    }
    for user in users(name) {
        let (_folder, place) = place();
        let script = format!("\"$PART\" {}; :", part("inside").join(" "));
        let output = harness(&place, user, &script).stderr(Stdio::inherit()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("ended 0"), "{text}");
        let findings = std::fs::read_to_string(place.findings()).unwrap();
        let found: BTreeMap<String, String> =
            findings.lines().map(|line| line.split_once('=').unwrap()).map(|(n, v)| (n.into(), v.into())).collect();
        assert_eq!(found, expected(user.unwrap_or(geteuid().as_raw())), "as {user:?}");
        assert!(place.state().is_dir(), "a hidden folder that was missing is made");
        assert_eq!(std::fs::read_to_string(place.config()).unwrap(), "configured");
        assert_eq!(std::fs::read_to_string(place.runtime().join("control.sock")).unwrap(), "secret");
    }
}

#[test]
fn no_descriptor_crosses_but_the_three() {
    if cannot_run("no_descriptor_crosses_but_the_three") {
        return;
    }
    let (_folder, place) = place();
    let (_reader, writer) = std::io::pipe().unwrap();
    nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    let output = harness(&place, None, "exec ls -m /proc/self/fd").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("0, 1, 2, 3\n"), "3 is the listing itself: {text}");
}

async fn everything_is_gone(mut witness: Receiver) {
    let mut rest = Vec::new();
    tokio::time::timeout(DEADLINE, witness.read_to_end(&mut rest)).await.expect("in time").unwrap();
}

/// A harness with a sandbox full of processes, each of which holds the witness's other end. It ends with the test.
struct Crowded {
    harness: std::process::Child,
    witness: Option<Receiver>,
    first: Pid,
}

impl Crowded {
    fn start(place: &Place) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        let witness = Some(Receiver::from_owned_fd(reader.into()).unwrap());
        let script = "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &) ; echo ready; wait";
        let mut command = harness(place, None, script);
        let harness = command.stdout(Stdio::piped()).stderr(OwnedFd::from(writer)).spawn().unwrap();
        let mut crowded = Self { harness, witness, first: Pid::from_raw(0) };
        let mut lines = BufReader::new(crowded.harness.stdout.take().unwrap()).lines();
        let mut ready = false;
        while !ready || crowded.first.as_raw() == 0 {
            let line = lines.next().unwrap().unwrap();
            ready |= line == "ready";
            if let Some(pid) = line.strip_prefix("pid ") {
                crowded.first = Pid::from_raw(pid.parse().unwrap());
            }
        }
        crowded
    }

    async fn ends(mut self) {
        self.harness.wait().unwrap();
        everything_is_gone(self.witness.take().unwrap()).await;
    }
}

impl Drop for Crowded {
    fn drop(&mut self) {
        let _may_have_ended = self.harness.kill();
        let _may_have_ended = self.harness.wait();
    }
}

fn parent_of(pid: Pid) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    Pid::from_raw(status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap())
}

#[tokio::test]
async fn everything_inside_ends_when_the_harness_is_killed_with_9() {
    if cannot_run("everything_inside_ends_when_the_harness_is_killed_with_9") {
        return;
    }
    let (_folder, place) = place();
    let mut crowded = Crowded::start(&place);
    crowded.harness.kill().unwrap();
    crowded.ends().await;
}

#[tokio::test]
async fn everything_inside_ends_when_the_keeper_is_killed_with_9() {
    if cannot_run("everything_inside_ends_when_the_keeper_is_killed_with_9") {
        return;
    }
    let (_folder, place) = place();
    let crowded = Crowded::start(&place);
    kill(parent_of(crowded.first), Signal::SIGKILL).unwrap();
    crowded.ends().await;
}

#[tokio::test]
async fn everything_inside_ends_with_its_first_process() {
    if cannot_run("everything_inside_ends_with_its_first_process") {
        return;
    }
    let (_folder, place) = place();
    let crowded = Crowded::start(&place);
    kill(crowded.first, Signal::SIGKILL).unwrap();
    crowded.ends().await;
}

async fn refusal_of(command: KeptCommand) -> footbridge_processes::keeper::StartRefusal {
    match command.helper(FOOTBRIDGE).spawn().await {
        Err(SpawnError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_that_is_not_inside_is_named() {
    if cannot_run("a_program_that_is_not_inside_is_named") {
        return;
    }
    let (_folder, place) = place();
    let _listener = place.furnish();
    let view = View { programs: vec![("/no/such/relay".into(), "/x".into())], ..place.view() };
    assert!(view.plan().unwrap_err().to_string().contains("/no/such/relay"));
    let command = net::command(view_without_program(&place).plan().unwrap(), [""; 0], Nesting::Refused).folder("/");
    let refusal = refusal_of(command).await;
    assert_eq!((refusal.step.clone(), refusal.exit_code()), (Step::Program(String::new()), 127));
}

fn view_without_program(place: &Place) -> View {
    View { programs: Vec::new(), ..place.view() }
}

#[test]
fn a_socket_folder_that_is_missing_is_named() {
    let (_folder, place) = place();
    let error = place.view().plan().unwrap_err().to_string();
    assert!(error.contains(&place.socket_folder().display().to_string()), "{error}");
}

#[tokio::test]
#[ignore = "a measurement: run it alone, with --release for figures"]
async fn how_long_a_sandbox_takes() {
    let (_folder, place) = place();
    let _listener = place.furnish();
    let started = std::time::Instant::now();
    for _ in 0..100 {
        let command = place.command(&["-c", "exit 0"]).folder("/").helper(FOOTBRIDGE);
        assert_eq!(command.spawn().await.unwrap().wait().await.unwrap().code(), 0);
    }
    eprintln!("start to end of /bin/true in a sandbox: {:?} each", started.elapsed() / 100);
}

#[test]
fn where_user_namespaces_are_off_the_refusal_says_which_setting() {
    let name = "where_user_namespaces_are_off_the_refusal_says_which_setting";
    if cannot_run(name) {
        return;
    }
    let (_folder, place) = place();
    let harness = harness(&place, None, "true");
    let mut without = Command::new("unshare");
    without.args(["-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"", "sh"]);
    without.arg(this_file()).args(harness.get_args()).env("PLACE", &place.0).env("SCRIPT", "true");
    let output = without.output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("Namespaces"), "{text}");
    assert!(text.contains("user namespaces are switched off here: sysctl user.max_user_namespaces=10000"), "{text}");
}

#[tokio::test]
async fn a_folder_that_is_to_be_covered_and_is_gone_meanwhile_holds_nothing_up() {
    let name = "a_folder_that_is_to_be_covered_and_is_gone_meanwhile_holds_nothing_up";
    if cannot_run(name) {
        return;
    }
    let Some(covered) = ["/srv", "/opt", "/var/lib", "/"].iter().find_map(|at| tempfile::tempdir_in(at).ok()) else {
        return skipped(name, format_args!("this user can make no folder outside of /tmp"));
    };
    let (_folder, place) = place();
    let _listener = place.furnish();
    let view = View { hidden: vec![covered.path().to_owned()], ..place.view() };
    let plan = view.plan().unwrap();
    covered.close().unwrap();
    let command = net::command(plan, ["-c", "exit 3"], Nesting::Refused).env([("PATH", PATH)]).helper(FOOTBRIDGE);
    let mut kept = command.folder(place.runtime()).spawn().await.unwrap();
    assert_eq!(kept.wait().await.unwrap().code(), 3);
}

#[test]
fn the_filter_has_the_form_that_bwrap_reads() {
    for nesting in [Nesting::Refused, Nesting::Allowed] {
        let bytes = filter_bytes(nesting).unwrap();
        assert!(!bytes.is_empty() && bytes.len().is_multiple_of(8), "{} bytes", bytes.len());
    }
}

#[test]
fn the_relay_is_told_where_to_listen_and_what_to_run() {
    let command = ["cmd".into(), "--flag".into()];
    let args = net::relay_args("tcp:127.0.0.1:7179", Path::new("/run/s/socket"), &command);
    let expected = ["--listen", "tcp:127.0.0.1:7179", "--to", "unix:/run/s/socket", "--", "cmd", "--flag"];
    assert_eq!(args, expected.map(OsString::from));
}
