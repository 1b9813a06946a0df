//! What is said about refusals, and what the kernel holds; the rest of vsock is tried from outside, in
//! `tests/listener`.

use std::{
    fs::File,
    io::{ErrorKind, Write},
};

use nix::sys::socket::{accept, connect, getsockname};

use super::*;
use crate::skipped::skipped;

#[test]
fn what_the_kernel_refuses_comes_with_a_next_step() {
    let endpoint: Endpoint = "vsock:any:7179".parse().unwrap();
    for (step, errno, says) in [
        (Step::Socket, Errno::EAFNOSUPPORT, "modprobe vhost_vsock"),
        (Step::Socket, Errno::EPERM, "containers"),
        (Step::Socket, Errno::EACCES, "containers"),
        (Step::Bind, Errno::EACCES, "choose a higher one"),
        (Step::Bind, Errno::EADDRNOTAVAIL, "write vsock:any:PORT"),
        (Step::Bind, Errno::EADDRINUSE, "is in use"),
        (Step::Listen, Errno::ENODEV, "no transport"),
        (Step::Listen, Errno::EINVAL, "cannot listen on vsock:any:7179"),
    ] {
        let text = refused(&endpoint, step, errno).to_string();
        assert!(text.contains(says) && text.contains("vsock:any:7179"), "{step:?} {errno}: {text}");
    }
}

#[test]
fn only_a_machine_can_be_named() {
    let endpoint: Endpoint = "vsock:any:7179".parse().unwrap();
    for (cid, fits) in [(None, false), (Some(0), false), (Some(1), true), (Some(2), true), (Some(3), true)] {
        assert_eq!(check_peer(&endpoint, cid).is_ok(), fits, "{cid:?}");
    }
    let text = check_peer(&endpoint, Some(u32::MAX)).unwrap_err().to_string();
    assert!(text.contains("4294967295") && text.contains("above 2"), "{text}");
    assert!(check_peer(&endpoint, None).unwrap_err().to_string().contains("--peer-cid CID"));
}

#[test]
fn the_kernel_holds_the_window_and_no_more() {
    // To this machine itself and no other; where it cannot be bound nothing may connect to it.
    let local: VsockEndpoint = format!("local:{}", 200_000 + std::process::id()).parse().unwrap();
    let listener = match bound_socket(&local) {
        Ok(listener) => listener,
        Err((step, errno)) => {
            let why = format!("this machine has no loopback for vsock (module vsock_loopback): {step:?}: {errno}");
            return skipped("the_kernel_holds_the_window_and_no_more", why);
        }
    };
    let address: VsockAddr = getsockname(listener.as_raw_fd()).unwrap();
    let client = socket(AddressFamily::Vsock, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    // A sender is held by its own window too.
    sys::set_vsock_window(&client, 4 * WINDOW).unwrap();
    connect(client.as_raw_fd(), &address).unwrap();
    let _unread = accept(listener.as_raw_fd()).unwrap();
    let mut client = File::from(client);
    nix::fcntl::fcntl(&client, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
    let mut held = 0;
    let full = loop {
        match client.write(&[0; 16 * 1024]) {
            Ok(written) => held += written as u64,
            Err(error) => break error,
        }
    };
    assert_eq!((full.kind(), held), (ErrorKind::WouldBlock, WINDOW));
}
