//! What a domain takes away, and what it leaves: each on a thread of its own, which is all that is confined.

use std::{
    fs, io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
            process::CommandExt as _,
        },
    },
    process::{Child, Command, Stdio},
};

use nix::{
    errno::Errno,
    sys::signal::kill,
    unistd::{Pid, geteuid},
};

use super::*;

/// A program of an ordinary user: since Linux 6.15 root reads the memory of others past every domain.
fn ordinary(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("SECRET", "of-another").current_dir("/");
    if geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    command
}

/// A process outside, with something in its environment.
struct Outside(Child);

impl Outside {
    fn start() -> Self {
        Self(ordinary("/bin/cat", &[]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().cast_signed())
    }

    /// Whether a program that is started now can read its environment.
    fn can_be_read(&self) -> bool {
        let path = format!("/proc/{}/environ", self.pid());
        ordinary("/bin/cat", &[&path]).stderr(Stdio::null()).output().unwrap().stdout.starts_with(b"SECRET=of-another")
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// Does this within a domain; nothing where the kernel has none of the kind.
fn within<T: Send>(confinement: Confinement, what: impl FnOnce() -> T + Send) -> Option<T> {
    if confinement.ruleset().is_err() {
        eprintln!("SKIPPED: {confinement:?}: not on this kernel");
        return None;
    }
    std::thread::scope(|scope| {
        let confined = scope.spawn(|| {
            confinement.enter().unwrap();
            what()
        });
        Some(confined.join().unwrap())
    })
}

#[test]
fn processes_outside_cannot_be_looked_into() {
    let outside = Outside::start();
    assert!(outside.can_be_read(), "without a domain");
    for confinement in [Confinement::Full, Confinement::Partial] {
        assert_ne!(within(confinement, || outside.can_be_read()), Some(true), "{confinement:?}");
    }
}

#[test]
fn signals_stay_inside_where_the_kernel_can_see_to_it() {
    let outside = Outside::start();
    if let Some(sent) = within(Confinement::Full, || kill(outside.pid(), None)) {
        assert_eq!(sent, Err(Errno::EPERM));
    }
    if let Some(sent) = within(Confinement::Partial, || kill(outside.pid(), None)) {
        assert_eq!(sent, Ok(()));
    }
}

/// An abstract name that nobody else has.
fn abstract_name(of: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("footbridge-confine-{of}-{}", std::process::id())).unwrap()
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap())
}

#[test]
fn abstract_sockets_of_others_are_out_of_reach_where_the_kernel_can_see_to_it() {
    let (stream, datagram) = (abstract_name("stream"), abstract_name("datagram"));
    let _listener = UnixListener::bind_addr(&stream).unwrap();
    let _receiver = UnixDatagram::bind_addr(&datagram).unwrap();
    let reach = || {
        let connected = UnixStream::connect_addr(&stream).map(drop);
        let sent = UnixDatagram::unbound().unwrap().send_to_addr(b"x", &datagram).map(drop);
        [connected, sent].map(|reached| reached.map_err(|error| errno(&error)))
    };
    assert_eq!(reach(), [Ok(()), Ok(())], "without a domain");
    if let Some(reached) = within(Confinement::Full, reach) {
        assert_eq!(reached, [Err(Errno::EPERM), Err(Errno::EPERM)]);
    }
    if let Some(reached) = within(Confinement::Partial, reach) {
        assert_eq!(reached, [Ok(()), Ok(())]);
    }
}

#[test]
fn abstract_sockets_of_its_own_and_those_with_a_path_are_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outside.sock");
    let _outside = UnixListener::bind(&path).unwrap();
    for confinement in [Confinement::Full, Confinement::Partial] {
        within(confinement, || {
            let own = abstract_name("own");
            let _listener = UnixListener::bind_addr(&own).unwrap();
            UnixStream::connect_addr(&own).unwrap();
            UnixStream::connect(&path).unwrap();
        });
    }
}

#[test]
fn files_move_and_are_linked_from_one_folder_to_another() {
    for confinement in [Confinement::Full, Confinement::Partial] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("one")).unwrap();
        fs::create_dir(at("two")).unwrap();
        fs::write(at("one/file"), "text").unwrap();
        within(confinement, || {
            fs::rename(at("one/file"), at("two/file")).unwrap();
            fs::hard_link(at("two/file"), at("one/link")).unwrap();
            fs::rename(at("one"), at("two/one")).unwrap();
            fs::read_to_string(at("two/one/link")).unwrap()
        });
    }
}

#[test]
fn nothing_is_mounted_in_a_namespace_of_its_own() {
    let mounts = || {
        let script = ["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"];
        ordinary("unshare", &script)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    };
    if !mounts() {
        return eprintln!("SKIPPED: mounts in a user namespace are not allowed here");
    }
    for confinement in [Confinement::Full, Confinement::Partial] {
        assert_ne!(within(confinement, mounts), Some(true), "{confinement:?}");
    }
}

#[test]
fn what_is_missing_is_said() {
    assert_eq!(Confinement::Full.gap(), None);
    assert!(Confinement::Partial.gap().unwrap().contains("6.12"));
    assert!(Confinement::None.gap().unwrap().contains("Landlock"));
}
