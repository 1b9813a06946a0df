//! Listeners where something, or somebody, is already: a socket appears closed to others, never follows a link, and
//! never takes the place of anything but a dead socket.
//!
//! As root nearly every file may be used, so what is about owners also runs as an ordinary user: the test starts this
//! same program again under that user.

#![expect(clippy::unwrap_used, reason = "a test says no more than that it failed, and where")]

mod skipped;

use std::{
    fs,
    io::{Read, Write},
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink},
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use footbridge::listener::{BindError, Listener};
use footbridge_proto::endpoint::{Endpoint, EndpointError, SocketPath, TcpEndpoint};
use nix::unistd::geteuid;
use skipped::skipped;

const NOBODY: u32 = 65534;

fn unix(path: &Path) -> Endpoint {
    Endpoint::Unix(SocketPath::new(path).unwrap())
}

fn bind(path: &Path) -> Result<Listener, BindError> {
    Listener::bind(&unix(path), 0o600)
}

/// A folder of this user alone.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
    folder
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

/// The names in a folder, less the locks.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    names
}

#[tokio::test]
async fn a_socket_has_its_mode_and_is_gone_at_the_end() {
    let folder = folder();
    let path = folder.path().join("s");
    for wanted in [0o600, 0o660, 0o666, 0o000] {
        let listener = Listener::bind(&unix(&path), wanted).unwrap();
        assert_eq!(mode(&path), wanted);
        assert_eq!(names(folder.path()), ["s"], "nothing else is left");
        assert_eq!(mode(&folder.path().join("s.lock")), 0o600);
        drop(listener);
        assert!(names(folder.path()).is_empty());
    }
}

#[test]
fn a_socket_is_never_open_to_others_not_even_for_a_moment() {
    // In a process of its own: the umask belongs to all threads.
    let mut part = Command::new("/proc/self/exe");
    let output = part.args(["--ignored", "--exact", "watched", "--nocapture", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Looks at the folder all the time: whatever socket it sees must be closed to others already.
#[tokio::test]
#[ignore = "a part that another test starts"]
async fn watched() {
    let folder = folder();
    let path = folder.path().join("s");
    let (watched, stop) = (folder.path().to_owned(), tokio_util::sync::CancellationToken::new());
    let stopped = stop.clone();
    let watcher = std::thread::spawn(move || {
        let mut seen = 0;
        while !stopped.is_cancelled() || seen == 0 {
            for entry in fs::read_dir(&watched).unwrap().flatten() {
                let Ok(meta) = entry.metadata() else { continue };
                if meta.file_type().is_socket() {
                    assert_eq!(meta.mode() & 0o177, 0, "{:?} has mode {:o}", entry.file_name(), meta.mode());
                    seen += 1;
                }
            }
        }
    });
    nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    for _ in 0..500 {
        drop(bind(&path).unwrap());
    }
    let last = bind(&path).unwrap();
    stop.cancel();
    watcher.join().unwrap();
    drop(last);
}

#[tokio::test]
async fn a_socket_that_somebody_answers_on_is_left_alone() {
    let folder = folder();
    let path = folder.path().join("s");
    let ours = bind(&path).unwrap();
    assert!(matches!(bind(&path), Err(BindError::InUse(_))), "one of ours");
    drop(ours);
    let theirs = UnixListener::bind(&path).unwrap();
    let error = bind(&path).unwrap_err();
    assert!(matches!(error, BindError::InUse(_)), "of another program");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    let mut client = UnixStream::connect(&path).unwrap();
    // The first connection was the question whether somebody is there.
    drop(theirs.accept().unwrap());
    let (mut served, _) = theirs.accept().unwrap();
    served.write_all(b"still here").unwrap();
    drop(served);
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
}

#[tokio::test]
async fn a_dead_socket_is_replaced() {
    let folder = folder();
    let path = folder.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let listener = bind(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    let connected = UnixStream::connect(&path).unwrap();
    assert!(listener.accept().await.is_ok());
    drop(connected);
}

#[tokio::test]
async fn a_busy_socket_with_a_full_queue_is_not_taken_for_a_dead_one() {
    let folder = folder();
    let path = folder.path().join("s");
    let address = nix::sys::socket::UnixAddr::new(&path).unwrap();
    let socket = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Unix,
        nix::sys::socket::SockType::Stream,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    );
    let socket = socket.unwrap();
    nix::sys::socket::bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &address).unwrap();
    nix::sys::socket::listen(&socket, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let _waiting = UnixStream::connect(&path).unwrap();
    let inode = path.symlink_metadata().unwrap().ino();
    let (sender, bound) = std::sync::mpsc::channel();
    let asked = path.clone();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        let _inside = runtime.enter();
        // The test may have ended without an answer.
        let _ = sender.send(matches!(bind(&asked), Err(BindError::InUse(_))));
    });
    let in_use = bound.recv_timeout(std::time::Duration::from_secs(20)).expect("it does not wait for ever");
    assert!(in_use);
    assert_eq!(path.symlink_metadata().unwrap().ino(), inode);
}

#[tokio::test]
async fn a_socket_of_another_kind_is_not_taken_for_a_dead_one() {
    let folder = folder();
    let path = folder.path().join("s");
    let theirs = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    assert!(matches!(bind(&path), Err(BindError::InUse(_))));
    std::os::unix::net::UnixDatagram::unbound().unwrap().send_to(b"x", &path).unwrap();
    assert_eq!(theirs.recv(&mut [0; 8]).unwrap(), 1);
}

#[tokio::test]
async fn whatever_is_no_socket_is_refused_and_left_as_it_is() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "precious").unwrap();
    fs::create_dir(at("dir")).unwrap();
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _dead = UnixListener::bind(at("real")).unwrap();
    symlink(at("file"), at("to-file")).unwrap();
    symlink(at("real"), at("to-socket")).unwrap();
    symlink(at("nowhere"), at("to-nothing")).unwrap();
    symlink(at("to-socket"), at("to-link")).unwrap();
    let before: Vec<(String, u64)> =
        names(folder.path()).into_iter().map(|n| (n.clone(), at(&n).symlink_metadata().unwrap().ino())).collect();
    for (name, what) in [
        ("file", "no socket"),
        ("pipe", "no socket"),
        ("dir", "a folder"),
        ("to-file", "a symbolic link"),
        ("to-socket", "a symbolic link"),
        ("to-nothing", "a symbolic link"),
        ("to-link", "a symbolic link"),
    ] {
        let error = bind(&at(name)).unwrap_err();
        let BindError::NotASocket { path, what: found } = &error else { panic!("{name}: {error}") };
        assert_eq!((path, *found), (&at(name), what));
        assert!(error.to_string().contains("left as it is"), "{error}");
    }
    let after: Vec<(String, u64)> =
        names(folder.path()).into_iter().map(|n| (n.clone(), at(&n).symlink_metadata().unwrap().ino())).collect();
    assert_eq!(before, after);
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "precious");
}

#[tokio::test]
async fn a_lock_that_is_a_pipe_is_not_waited_for() {
    let folder = folder();
    nix::unistd::mkfifo(&folder.path().join("s.lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(bind(&folder.path().join("s")), Err(BindError::Io { .. })));
}

#[tokio::test]
async fn a_lock_that_is_a_link_is_not_followed() {
    let folder = folder();
    let (path, target) = (folder.path().join("s"), folder.path().join("target"));
    symlink(&target, folder.path().join("s.lock")).unwrap();
    assert!(matches!(bind(&path), Err(BindError::Io { .. })));
    assert!(!target.exists() && !path.exists());
}

#[tokio::test]
async fn what_was_put_in_our_place_is_not_removed_at_the_end() {
    let folder = folder();
    let path = folder.path().join("s");
    let listener = bind(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "precious").unwrap();
    drop(listener);
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    fs::remove_file(&path).unwrap();
    let listener = bind(&path).unwrap();
    fs::rename(&path, folder.path().join("moved")).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(listener);
    assert!(path.symlink_metadata().is_ok(), "of another program");
    drop(other);
}

#[tokio::test]
async fn a_folder_that_others_can_write_to_is_refused_but_a_sticky_one_will_do() {
    let folder = folder();
    for (bits, fits) in [(0o700, true), (0o755, true), (0o711, true), (0o770, false), (0o707, false), (0o1777, true)] {
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(bits)).unwrap();
        let bound = bind(&folder.path().join("s"));
        match bound {
            Ok(_) => assert!(fits, "{bits:o}"),
            Err(BindError::UnsafeFolder(named)) => assert!(!fits && named == folder.path(), "{bits:o}"),
            Err(error) => panic!("{bits:o}: {error}"),
        }
    }
    assert!(matches!(bind(&folder.path().join("none/s")), Err(BindError::Io { .. })));
}

#[test]
fn a_path_that_no_socket_address_holds_is_refused_with_its_length() {
    let folder = folder();
    let path = folder.path().join("x".repeat(108));
    let error = SocketPath::new(&path).unwrap_err();
    assert!(matches!(error, EndpointError::PathTooLong { .. }), "{error}");
    assert!(matches!(SocketPath::new("s"), Err(EndpointError::RelativePath(_))));
    assert!(matches!(SocketPath::new("@s"), Err(EndpointError::Abstract)));
}

#[tokio::test]
async fn a_path_of_the_longest_kind_works() {
    let folder = folder();
    let room = 107 - folder.path().as_os_str().len() - 1;
    let path = folder.path().join("x".repeat(room));
    let listener = bind(&path).unwrap();
    assert_eq!(listener.endpoint().unwrap(), unix(&path));
    assert!(UnixStream::connect(&path).is_ok());
}

#[tokio::test]
async fn two_sockets_of_one_process_in_one_folder_do_not_disturb_each_other() {
    let folder = folder();
    let listeners: Vec<Listener> = (0..20).map(|n| bind(&folder.path().join(format!("s{n}"))).unwrap()).collect();
    for n in 0..20 {
        assert!(UnixStream::connect(folder.path().join(format!("s{n}"))).is_ok());
    }
    drop(listeners);
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn a_port_that_is_taken_or_that_others_reach_is_refused() {
    let taken = Listener::bind(&Endpoint::Tcp(TcpEndpoint::loopback(0)), 0).unwrap();
    let endpoint = taken.endpoint().unwrap();
    assert!(matches!(Listener::bind(&endpoint, 0), Err(BindError::InUse(named)) if named == endpoint));
    drop(taken);
    assert!(Listener::bind(&endpoint, 0).is_ok(), "free again at once");
    for wide in ["tcp:0.0.0.0:0", "tcp:[::]:0", "tcp:192.0.2.1:0"] {
        let error = Listener::bind(&wide.parse().unwrap(), 0).unwrap_err();
        assert!(matches!(error, BindError::NotLoopback(_)), "{wide}: {error}");
    }
}

/// This test program as another user, or as this one where that is no root.
fn as_ordinary_user(part: &str, folder: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--ignored", "--exact", part, "--nocapture", "--quiet"]).env("FOLDER", folder);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn given() -> PathBuf {
    std::env::var_os("FOLDER").unwrap().into()
}

#[test]
fn what_belongs_to_another_user_is_refused_and_left_as_it_is() {
    let test = "what_belongs_to_another_user_is_refused_and_left_as_it_is";
    if !geteuid().is_root() {
        return skipped(test, "it takes root to make files of another user");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for (name, owner) in [("strangers", 12345), ("roots", 0), ("own", NOBODY), ("sticky", 0)] {
        fs::create_dir(at(name)).unwrap();
        chown(at(name), Some(owner), Some(owner)).unwrap();
        fs::set_permissions(at(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(at("sticky"), PermissionsExt::from_mode(0o1777)).unwrap();
    // A socket of a stranger in a folder that everybody may write to, alive but closed to us, and a lock of theirs.
    let strangers = UnixListener::bind(at("sticky/closed")).unwrap();
    chown(at("sticky/closed"), Some(12345), Some(12345)).unwrap();
    fs::set_permissions(at("sticky/closed"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(at("sticky/locked.lock"), "").unwrap();
    chown(at("sticky/locked.lock"), Some(12345), Some(12345)).unwrap();
    let inode = at("sticky/closed").symlink_metadata().unwrap().ino();
    let output = as_ordinary_user("among_strangers", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(at("sticky/closed").symlink_metadata().unwrap().ino(), inode);
    drop(strangers);
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn among_strangers() {
    let at = |name: &str| given().join(name);
    assert!(matches!(bind(&at("strangers/s")), Err(BindError::UnsafeFolder(path)) if path == at("strangers")));
    assert!(matches!(bind(&at("roots/s")), Err(BindError::Io { .. })), "it may not write there");
    assert!(bind(&at("own/s")).is_ok());
    assert!(bind(&at("sticky/s")).is_ok());
    assert!(bind(&at("sticky/closed")).is_err(), "it cannot be asked whether somebody answers there");
    assert!(matches!(bind(&at("sticky/locked")), Err(BindError::Io { .. })), "the lock is not ours");
}

#[test]
fn a_socket_of_a_killed_process_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    if geteuid().is_root() {
        chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let start = || -> Child {
        let mut command = as_ordinary_user("until_killed", folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Each line that the test program writes first, and then ours.
        let mut text = Vec::new();
        let stdout = child.stdout.as_mut().unwrap();
        while !text.ends_with(b"ready\n") {
            let mut byte = [0];
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&text));
            text.push(byte[0]);
        }
        child
    };
    let mut first = start();
    let path = folder.path().join("s");
    let inode = path.symlink_metadata().unwrap().ino();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(path.symlink_metadata().unwrap().file_type().is_socket(), "nobody removed it");
    let mut second = start();
    assert!(UnixStream::connect(&path).is_ok() && inode > 0);
    drop(second.stdin.take());
    assert!(second.wait().unwrap().success());
    assert!(!path.exists());
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn until_killed() {
    let listener = bind(&given().join("s")).unwrap();
    std::io::stdout().write_all(b"ready\n").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(listener);
}
