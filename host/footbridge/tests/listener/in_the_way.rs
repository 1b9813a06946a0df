//! Paths where something is already: it is named, and left as it is, unless it is a dead socket.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown, symlink},
        net::{UnixListener, UnixStream},
    },
};

use footbridge_edge::listener::{BindError, Listen, Listeners};

use crate::{
    places::{bind, folder, leave_dead, mode, names, unix},
    skipped::skipped,
};

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
    leave_dead(&path);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let listener = bind(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    let connected = UnixStream::connect(&path).unwrap();
    assert!(listener.accept(|_, _| {}).await.is_ok());
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
async fn a_lock_that_is_a_pipe_or_a_link_is_neither_waited_for_nor_followed_and_named() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    nix::unistd::mkfifo(&at("pipe.lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink(at("elsewhere"), at("link.lock")).unwrap();
    for name in ["pipe", "link"] {
        let error = bind(&at(name)).unwrap_err().to_string();
        let lock = at(&format!("{name}.lock"));
        assert!(error.contains(&format!("cannot open its lock {}: ", lock.display())), "{error}");
    }
    assert!(!at("elsewhere").exists() && !at("link").exists());
    if !nix::unistd::geteuid().is_root() {
        return skipped("a_lock_that_is_a_pipe_or_a_link (that of a stranger)", "needs root to make one");
    }
    fs::write(at("theirs.lock"), "").unwrap();
    chown(at("theirs.lock"), Some(12345), Some(12345)).unwrap();
    let error = bind(&at("theirs")).unwrap_err().to_string();
    assert!(error.contains("user 12345's, who could take it away"), "{error}");
}

/// As a guest does, with a descriptor of its own that can only read.
#[tokio::test]
async fn whoever_sees_the_folder_can_hold_the_lock_beside_a_socket_but_not_one_in_our_own_folder() {
    let folder = folder();
    let shown = folder.path().join("s");
    fs::create_dir(&shown).unwrap();
    let path = shown.join("socket");
    let bound = bind(&path).unwrap();
    let theirs = fs::File::open(shown.join("socket.lock")).unwrap();
    drop(bound);
    let held = nix::fcntl::Flock::lock(theirs, nix::fcntl::FlockArg::LockExclusiveNonblock).unwrap();
    assert!(bind(&path).is_ok(), "that file is gone, and holds nothing up");
    drop(held);
    fs::write(shown.join("socket.lock"), "").unwrap();
    let theirs = fs::File::open(shown.join("socket.lock")).unwrap();
    let held = nix::fcntl::Flock::lock(theirs, nix::fcntl::FlockArg::LockExclusiveNonblock).unwrap();
    let error = bind(&path).unwrap_err();
    assert!(matches!(error, BindError::Locked(_)), "{error}");
    assert!(error.to_string().contains("a guest that sees that file"), "{error}");
    fs::remove_file(shown.join("socket.lock")).unwrap();
    let own = Listeners::default().with_own_folder(folder.path().to_owned());
    let listener = own.bind(&Listen::at(unix(&path))).unwrap();
    let seen: Vec<_> = fs::read_dir(&shown).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(seen, ["socket"]);
    assert!(matches!(own.bind(&Listen::at(unix(&path))), Err(BindError::InUse(_))));
    drop(listener);
    fs::write(folder.path().join("s.socket.lock"), "").unwrap();
    let lock = fs::File::open(folder.path().join("s.socket.lock")).unwrap();
    let held_above = nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusiveNonblock).unwrap();
    assert!(matches!(own.bind(&Listen::at(unix(&path))), Err(BindError::Locked(_))), "it is the lock");
    fs::create_dir(folder.path().join("other")).unwrap();
    let other = own.bind(&Listen::at(unix(&folder.path().join("other/socket"))));
    assert!(other.is_ok(), "one of the same name in another folder has a lock of its own");
    drop((held, held_above));
}
