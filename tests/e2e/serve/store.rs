//! A store that cannot be used: the daemon says so and leaves it as it is; what cannot be stored does not exist.

use std::fs;

use footbridge_tests::{Host, Running, Servers, skipped, starting};

use super::LIST;

#[test]
fn a_damaged_or_newer_store_stops_the_start_and_stays_as_it_is() {
    let mut daemon = Host::with(&Servers::none()).serves();
    let guest = daemon.opens("one", &[]);
    assert_eq!(daemon.ends().status, 0);
    let path = daemon.host.state().join("state.db");
    let good = fs::read(&path).unwrap();
    let mut newer = good.clone();
    // The version of the file's contents, at offset 60 of the header.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let mut torn = good.clone();
    torn[4096..8192].fill(0xa5);
    for (bytes, says) in
        [(b"rubbish".repeat(1000), "is damaged"), (torn, "is damaged"), (newer, "written by a newer footbridge")]
    {
        fs::write(&path, &bytes).unwrap();
        let ran = Running::start(&mut daemon.host.serve_of()).ends();
        ran.fails(125, &[path.to_str().unwrap(), says]);
        assert!(fs::read(&path).unwrap() == bytes, "{says}: it was changed");
    }
    fs::write(&path, good).unwrap();
    daemon.starts();
    assert_eq!(guest.posts(LIST).status, 200);
}

#[test]
fn a_store_that_is_gone_beside_a_record_is_told() {
    const GONE: &str = "the sessions and pins that were in it are gone";
    let mut daemon = Host::with(&Servers::none()).serves();
    drop(daemon.opens("one", &[]));
    let first = daemon.ends();
    assert!(first.status == 0 && !first.stderr.contains(GONE), "{first:?}");
    let path = daemon.host.state().join("state.db");
    for is_missing in [true, false] {
        if is_missing {
            fs::remove_file(&path).unwrap()
        } else {
            fs::write(&path, "").unwrap()
        }
        daemon.starts();
        let ran = daemon.ends();
        assert!(ran.status == 0 && ran.stderr.matches(GONE).count() == 1, "{ran:?}");
    }
    daemon.starts();
    let ran = daemon.ends();
    assert!(!ran.stderr.contains(GONE), "{ran:?}");
}

#[test]
fn a_daemon_that_waits_for_its_store_ends_when_it_is_told_to() {
    let mut daemon = Host::with(&Servers::none()).serves();
    assert_eq!(daemon.ends().status, 0);
    let path = daemon.host.state().join("state.db");
    // Another program has it for itself, as SQLite locks it: the bytes behind the first GiB.
    let held = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let lock = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as i16,
        l_whence: nix::libc::SEEK_SET as i16,
        l_start: 0x4000_0000,
        l_len: 512,
        l_pid: 0,
    };
    nix::fcntl::fcntl(&held, nix::fcntl::FcntlArg::F_OFD_SETLK(&lock)).unwrap();
    let began = std::time::Instant::now();
    let waits = Running::start(&mut daemon.host.serve_of());
    // It listens for signals before it looks at its store.
    let files = std::path::PathBuf::from(format!("/proc/{}/fd", waits.pid()));
    while !fs::read_dir(&files).unwrap().flatten().any(|file| fs::read_link(file.path()).is_ok_and(|to| to == path)) {
        assert!(began.elapsed() < footbridge_tests::PATIENCE, "it does not open its store");
        std::thread::yield_now();
    }
    let told = std::time::Instant::now();
    waits.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(waits.ends().status, 0);
    assert!(told.elapsed() < std::time::Duration::from_secs(4), "{:?}", told.elapsed());
    drop(held);
    daemon.starts();
    let ran = daemon.ends();
    assert_eq!(ran.status, 0, "{ran:?}");
}

#[test]
fn a_daemon_does_not_start_on_a_full_disk_and_says_why() {
    let test = "a_daemon_does_not_start_on_a_full_disk_and_says_why";
    if !nix::unistd::geteuid().is_root() {
        return skipped(test, "needs root to mount a small file system");
    }
    let host = Host::with(&Servers::none());
    let ran = host.serves_on_a_small_disk(&format!("cat /dev/zero >{}/fill;", host.state().display())).ends();
    ran.fails(125, &["serve.lock", "No space left on device"]);
}

#[test]
fn no_room_left_on_a_disk_of_small_blocks_kills_the_daemon() {
    let test = "no_room_left_on_a_disk_of_small_blocks_kills_the_daemon";
    if !nix::unistd::geteuid().is_root() {
        return skipped(test, "needs root to mount a small file system");
    }
    let host = Host::with(&Servers::none());
    fs::create_dir_all(host.state()).unwrap();
    let image = host.path().join("image");
    let script = format!(
        "truncate -s 8M {0} && mkfs.ext4 -q -b 1024 -O ^has_journal {0} && mount -o loop {0} {1} || exit 99; chmod 700 {1}; \
         for room in 20 32 44 50 56 59 62 65 68 71 74 80 92; do \
         find {1} -mindepth 1 -delete; cat /dev/zero >{1}/fill 2>/dev/null; sync -f {1}; truncate -s -${{room}}K {1}/fill; \
         sync -f {1}; timeout 1 \"$@\"; echo \"room $room: $?\"; done",
        image.display(),
        host.state().display()
    );
    let serve = host.serve_of();
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    let ran = Running::start(&mut starting(&serve, command)).ends();
    if ran.status == 99 {
        return skipped(test, &format!("no loop device or no ext4 here: {ran:?}"));
    }
    // It does not start, or it is stopped after a while.
    let all: Vec<&str> = ran.stdout.lines().collect();
    assert!(all.len() == 13 && all.iter().all(|one| one.ends_with(": 125") || one.ends_with(": 124")), "{ran:?}");
}

#[test]
fn a_session_that_cannot_be_stored_is_not_created() {
    let test = "a_session_that_cannot_be_stored_is_not_created";
    if !nix::unistd::geteuid().is_root() {
        return skipped(test, "needs root to mount a small file system");
    }
    let host = Host::with(&Servers::none());
    let mut running = host.serves_on_a_small_disk("");
    running.stderr.shows("footbridge: ready");
    assert_eq!(host.session(&["create", "before"]).status, 0);
    assert_eq!(host.session(&["create", "other"]).status, 0);
    running.hears("full\n");
    running.stderr.shows("full done");
    // What fits into pages that the store has already may still be made.
    let labels: Vec<String> = (0..30).map(|n| format!("--label=why{n}={}", "x".repeat(250))).collect();
    let create = |name: &str| {
        let words: Vec<&str> = ["create", name].into_iter().chain(labels.iter().map(String::as_str)).collect();
        host.session(&words)
    };
    let mut tries = (0..20).map(|n| format!("filler-{n}")).map(|name| (create(&name), name));
    let (ran, refused) = tries.find(|(ran, _)| ran.status != 0).expect("the disk is full");
    ran.fails(1, &["nothing was changed", "state.db", "disk is full", "make room"]);
    assert!(!host.own_socket(&refused).parent().unwrap().exists());
    // What is there already is changed all the same, and above all ended.
    assert_eq!(host.session(&["rotate", "before"]).status, 0);
    assert_eq!(host.session(&["revoke", "other"]).status, 0);
    assert!(!host.own_socket("other").exists());
    let list = host.session(&["list"]).stdout;
    assert!(list.contains("before") && !list.contains("other"), "{list}");
    running.hears("room\n");
    running.stderr.shows("room done");
    let ran = host.session(&["create", "one"]);
    assert_eq!(ran.status, 0, "it recovers by itself: {ran:?}");
    running.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(running.ends().status, 0);
}
