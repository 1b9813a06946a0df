//! The file of a socket: its mode, its owner, and its end.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{
        fs::{FileTypeExt, MetadataExt, chown},
        net::{UnixListener, UnixStream},
    },
    process::{Child, Stdio},
};

use footbridge_edge::listener::{Access, BindError, Listener};
use footbridge_proto::endpoint::{EndpointError, SocketPath};
use nix::{
    errno::Errno,
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket},
    },
    unistd::geteuid,
};

use crate::{
    places::{NOBODY, as_ordinary_user, bind, bind_with, folder, given, mode, must_pass, names, part, unix},
    skipped::skipped,
};

#[tokio::test]
async fn a_socket_has_its_mode_and_is_gone_at_the_end() {
    let folder = folder();
    let path = folder.path().join("s");
    for wanted in [0o600, 0o660, 0o666, 0o000] {
        let listener = bind_with(&path, Access { mode: wanted, ..Access::default() }).unwrap();
        assert_eq!(mode(&path), wanted);
        assert_eq!(names(folder.path()), ["s"], "nothing else is left");
        assert_eq!(mode(&folder.path().join("s.lock")), 0o600);
        drop(listener);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its lock goes with it");
    }
}

#[test]
fn a_socket_is_never_open_to_others_not_even_for_a_moment() {
    // In a process of its own: the umask belongs to all threads.
    must_pass(part("files::watched", folder().path()));
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

#[test]
fn a_socket_of_a_killed_process_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    if geteuid().is_root() {
        chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let start = || -> Child {
        let mut command = as_ordinary_user("files::until_killed", folder.path());
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

#[tokio::test]
async fn a_socket_can_be_given_to_another_user() {
    if !geteuid().is_root() {
        return skipped("a_socket_can_be_given_to_another_user", "it takes root to give files away");
    }
    let folder = folder();
    let path = folder.path().join("s");
    let listener = bind_with(&path, Access { mode: 0o660, owner: Some(NOBODY), allowed_uids: None }).unwrap();
    assert_eq!((path.symlink_metadata().unwrap().uid(), mode(&path)), (NOBODY, 0o660));
    assert!(matches!(bind(&path), Err(BindError::InUse(_))));
    drop(listener);
    assert!(names(folder.path()).is_empty(), "it is removed as any other");
}

#[test]
fn a_user_who_may_not_give_files_away_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    if geteuid().is_root() {
        chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    must_pass(as_ordinary_user("files::gives_away", folder.path()));
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn gives_away() {
    let path = given().join("s");
    let owned = |owner| bind_with(&path, Access { owner: Some(owner), ..Access::default() });
    let error = owned(12345).unwrap_err();
    assert!(matches!(error, BindError::Owner { owner: 12345, .. }), "{error}");
    assert!(error.to_string().contains("only root may"), "{error}");
    assert!(names(&given()).is_empty(), "nothing is left of it");
    assert!(owned(geteuid().as_raw()).is_ok(), "it is ours already");
}

#[tokio::test]
async fn a_thousand_may_wait_to_be_accepted() {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).unwrap().1;
    if limit < 2000 {
        return skipped("a_thousand_may_wait_to_be_accepted", format!("only {limit} descriptors may be open"));
    }
    setrlimit(Resource::RLIMIT_NOFILE, limit, limit).unwrap();
    let folder = folder();
    let path = folder.path().join("s");
    let listener = bind(&path).unwrap();
    let address = UnixAddr::new(&path).unwrap();
    let mut waiting = Vec::new();
    let full = loop {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let client = socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
        match connect(std::os::fd::AsRawFd::as_raw_fd(&client), &address) {
            Ok(()) => waiting.push(client),
            Err(errno) => break errno,
        }
    };
    // The kernel lets one more wait than it is told, and not more than its own limit.
    let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap().trim().parse().unwrap();
    assert_eq!((waiting.len(), full), (1024.min(somaxconn) + 1, Errno::EAGAIN));
    for _ in &waiting {
        listener.accept(|_, _| {}).await.unwrap();
    }
}
