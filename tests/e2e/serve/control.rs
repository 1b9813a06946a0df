//! Who reaches the control socket: a process of the same user in the same namespaces, and nobody else.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::Command,
};

use footbridge_tests::{Daemon, Host, NOBODY, Running, Servers, programs, skipped};

const TEST: &str = "the_control_socket_is_closed";

fn list(daemon: &Daemon) -> Command {
    daemon.host.footbridge(&[OsStr::new("session"), OsStr::new("list")])
}

/// The command under `unshare` with these flags; nothing where this machine does not let us.
fn elsewhere(daemon: &Daemon, flags: &[&str]) -> Option<Running> {
    let may = Command::new("unshare").args(flags).arg("true").output();
    if !may.is_ok_and(|output| output.status.success()) {
        skipped(TEST, &format!("unshare {} is not allowed here", flags.join(" ")));
        return None;
    }
    let inner = list(daemon);
    let mut command = Command::new("unshare");
    command.args(flags).arg(inner.get_program()).args(inner.get_args()).env_clear().current_dir(daemon.host.work());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(Running::start(&mut command))
}

#[test]
fn from_other_namespaces_of_the_same_user_nobody_gets_in() {
    let mut daemon = Host::with(&Servers::none()).serves();
    for (flags, which) in [
        (&["--user", "--map-root-user"][..], "user"),
        (&["--net"], "net"),
        (&["--user", "--map-root-user", "--net"], "user"),
        (&["--pid", "--fork"], "pid"),
    ] {
        let Some(running) = elsewhere(&daemon, flags) else { continue };
        running.ends().fails(1, &["hung up", "its own user, in its own user, pid and network namespaces"]);
        // The first, the second and the fourth are logged.
        if flags.len() < 3 {
            daemon.process().stderr.shows(&format!("another {which} namespace"));
        }
    }
    assert!(daemon.list().is_empty(), "whoever belongs here still gets in");
}

#[test]
fn another_user_does_not_get_in_even_where_the_file_would_let_them() {
    if !nix::unistd::geteuid().is_root() {
        return skipped(TEST, "needs root to become another user");
    }
    let mut daemon = Host::with(&Servers::none()).serves();
    let host = &daemon.host;
    let program = host.path().join("footbridge");
    fs::copy(programs::footbridge(), &program).unwrap();
    let open = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(&program, 0o755);
    let as_nobody = || {
        let mut command = Command::new(&program);
        command.args(["session", "list"]).env_clear().env("FOOTBRIDGE_RUNTIME", host.runtime()).env("HOME", "/");
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
        Running::start(&mut command).ends()
    };
    open(host.path(), 0o711);
    as_nobody().fails(1, &["Permission denied"]);
    let socket = host.runtime().join("serve/control.sock");
    open(&host.runtime(), 0o711);
    open(&host.runtime().join("serve"), 0o711);
    open(&socket, 0o666);
    as_nobody().fails(1, &["hung up"]);
    daemon.process().stderr.shows("a process of user 65534");
}

#[test]
fn a_command_in_the_sandbox_of_a_run_does_not_get_in() {
    let daemon = Host::with(&Servers::demo()).serves();
    let socket = daemon.host.runtime().join("serve/control.sock");
    assert!(socket.exists());
    // Hidden; and outside of `net`, where nothing is, `none` promises nothing.
    let ran = daemon.host.runs_script(&format!("test -e {} || echo hidden", socket.display()));
    assert_eq!(ran.well(), "hidden\n");
}
