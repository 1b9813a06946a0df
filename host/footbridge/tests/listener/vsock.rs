//! vsock, as far as this machine has it. What connects does so to this machine itself, by its loopback transport, and
//! is left out where there is none: the kernel would ask the next machine's host instead.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsRawFd, OwnedFd},
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use footbridge_calls::auth::Peer;
use footbridge_edge::listener::{AcceptedStream, BindError, Listen, Listener, Listeners};
use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, Backlog, SockFlag, SockType, VsockAddr, bind, connect, listen, socket},
    unistd::geteuid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{
    inherited::{begin, with_socket},
    places::{LONG, as_ordinary_user, folder, given, must_pass},
    skipped::skipped,
};

const ANY: u32 = u32::MAX;
const LOCAL: u32 = 1;

fn vsock_socket() -> nix::Result<OwnedFd> {
    socket(AddressFamily::Vsock, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
}

/// A socket of another program on a port.
fn bound_by_others(cid: u32, port: u32) -> nix::Result<OwnedFd> {
    let other = vsock_socket()?;
    bind(other.as_raw_fd(), &VsockAddr::new(cid, port))?;
    listen(&other, Backlog::new(1).unwrap())?;
    Ok(other)
}

/// What `bind` says once it does not say `in_use`, or has for long: a child that another test starts has all that was
/// open until it is another program.
fn once_free<T, E>(bind: impl Fn() -> Result<T, E>, in_use: impl Fn(&E) -> bool) -> Result<T, E> {
    let deadline = Instant::now() + LONG;
    loop {
        match bind() {
            Err(error) if in_use(&error) && Instant::now() < deadline => std::thread::yield_now(),
            bound => return bound,
        }
    }
}

/// The same on a port that is free by now.
fn taken_by_others(cid: u32, port: u32) -> nix::Result<OwnedFd> {
    once_free(|| bound_by_others(cid, port), |error| *error == Errno::EADDRINUSE)
}

/// Waits until a port is free.
#[track_caller]
fn is_free(port: u32) {
    let taken = taken_by_others(ANY, port);
    assert!(taken.is_ok(), "port {port}: {taken:?}");
}

/// A place on a port that is free by now.
#[track_caller]
fn binds(listeners: &Listeners, listen: &Listen) -> Listener {
    once_free(|| listeners.bind(listen), |error| matches!(error, BindError::InUse(_))).unwrap()
}

/// A port that nobody has.
fn free_port() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let port = 100_000 + std::process::id() % 10_000_000 * 100 + NEXT.fetch_add(1, Ordering::Relaxed);
        if bound_by_others(ANY, port).is_ok() {
            return port;
        }
    }
}

/// Why a test cannot run, if it cannot.
fn without_vsock() -> Option<String> {
    vsock_socket().err().map(|errno| format!("this machine has no vsock: {errno}"))
}

/// Why nothing can connect, if nothing can. Asks without connecting.
fn without_loopback() -> Option<String> {
    let why = |errno| format!("this machine has no loopback for vsock (module vsock_loopback): {errno}");
    without_vsock().or_else(|| taken_by_others(LOCAL, free_port()).err().map(why))
}

fn at(address: &str, port: u32, peer_cid: impl Into<Option<u32>>) -> Listen {
    let endpoint = format!("vsock:{address}:{port}").parse().unwrap();
    Listen { peer_cid: peer_cid.into(), ..Listen::at(endpoint) }
}

#[tokio::test]
async fn a_port_for_nobody_in_particular_is_refused() {
    let error = Listeners::default().bind(&at("any", 7179, None)).unwrap_err();
    assert!(matches!(error, BindError::NoPeerCid(_)) && error.to_string().contains("--peer-cid CID"), "{error}");
    for cid in [0, ANY] {
        let error = Listeners::default().bind(&at("any", 7179, cid)).unwrap_err();
        assert!(matches!(error, BindError::NoSuchPeer { .. }), "{error}");
    }
}

#[tokio::test]
async fn sessions_share_a_port_and_each_guest_has_one() {
    if let Some(why) = without_vsock() {
        return skipped("sessions_share_a_port_and_each_guest_has_one", why);
    }
    let (listeners, port) = (Listeners::default(), free_port());
    let four = binds(&listeners, &at("any", port, 4));
    let five = listeners.clone().bind(&at("", port, 5)).unwrap();
    assert_eq!(four.endpoint().unwrap().to_string(), format!("vsock:any:{port}"));
    let error = listeners.bind(&at("any", port, 4)).unwrap_err();
    assert!(
        matches!(error, BindError::CidTaken { cid: 4, .. }) && error.to_string().contains("--peer-cid 4"),
        "{error}"
    );
    let error = listeners.bind(&at("local", port, 6)).unwrap_err();
    assert!(matches!(error, BindError::OtherAddress { .. }), "{error}");
    assert!(error.to_string().contains(&format!("vsock:any:{port}; write the same")), "{error}");
    let error = Listeners::default().bind(&at("any", port, 6)).unwrap_err();
    assert!(matches!(error, BindError::InUse(_)), "by another harness: {error}");
    drop(four);
    let four = listeners.bind(&at("any", port, 4)).unwrap();
    drop((four, five));
}

#[tokio::test]
async fn a_port_is_free_when_its_last_session_has_ended() {
    if let Some(why) = without_vsock() {
        return skipped("a_port_is_free_when_its_last_session_has_ended", why);
    }
    let (listeners, port) = (Listeners::default(), free_port());
    let (four, five) = (binds(&listeners, &at("any", port, 4)), listeners.bind(&at("any", port, 5)).unwrap());
    drop(four);
    tokio::task::yield_now().await;
    assert_eq!(bound_by_others(ANY, port).unwrap_err(), Errno::EADDRINUSE);
    drop(five);
    timeout(LONG, listeners.released()).await.unwrap();
    is_free(port);
    // At once, with no time for anything to close, and with some.
    for n in 0..100 {
        drop(binds(&listeners, &at("any", port, 4)));
        if n % 3 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[test]
fn a_runtime_that_ends_leaves_no_port_behind() {
    if let Some(why) = without_vsock() {
        return skipped("a_runtime_that_ends_leaves_no_port_behind", why);
    }
    let (listeners, port) = (Listeners::default(), free_port());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let claim = runtime.block_on(async { binds(&listeners, &at("any", port, 4)) });
    drop(runtime);
    is_free(port);
    drop(claim);
}

#[tokio::test]
async fn what_the_kernel_refuses_is_named() {
    if let Some(why) = without_vsock() {
        return skipped("what_the_kernel_refuses_is_named", why);
    }
    let port = free_port();
    let theirs = taken_by_others(ANY, port).unwrap();
    let error = Listeners::default().bind(&at("any", port, 4)).unwrap_err();
    assert!(matches!(error, BindError::InUse(_)), "{error}");
    drop(theirs);
    let error = Listeners::default().bind(&at("4000000", port, 4)).unwrap_err().to_string();
    assert!(error.contains("not this machine's") && error.contains("vsock:any:PORT"), "{error}");
    let folder = folder();
    must_pass(as_ordinary_user("vsock::low_port", folder.path()));
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn low_port() {
    let error = Listeners::default().bind(&at("any", 1000, 4)).unwrap_err();
    assert!(!geteuid().is_root() && error.to_string().contains("choose a higher one"), "{error}");
}

#[test]
fn a_port_can_be_inherited() {
    if let Some(why) = without_vsock() {
        return skipped("a_port_can_be_inherited", why);
    }
    let (folder, port) = (folder(), free_port());
    std::fs::write(folder.path().join("port"), port.to_string()).unwrap();
    with_socket("vsock::takes_over", folder.path(), 5, taken_by_others(ANY, port).unwrap());
    is_free(port);
}

#[test]
#[ignore = "a part that another test starts"]
fn takes_over() {
    let runtime = begin();
    let _inside = runtime.enter();
    let port: u32 = std::fs::read_to_string(given().join("port")).unwrap().parse().unwrap();
    let listeners = Listeners::default();
    let inherited = |peer_cid| Listen { peer_cid, ..Listen::at("fd:5".parse().unwrap()) };
    let claim = listeners.bind(&inherited(Some(4))).unwrap();
    assert_eq!(claim.endpoint().unwrap().to_string(), format!("vsock:any:{port}"));
    let other = listeners.bind(&at("any", port, 5)).unwrap();
    let third = listeners.bind(&inherited(Some(6))).unwrap();
    assert!(matches!(listeners.bind(&inherited(Some(4))), Err(BindError::CidTaken { .. })));
    assert!(matches!(Listeners::default().bind(&inherited(None)), Err(BindError::NoPeerCid(_))));
    drop((claim, other, third));
    runtime.block_on(async { timeout(LONG, listeners.released()).await }).unwrap();
}

/// Connects to this machine itself.
fn try_connect(port: u32) -> nix::Result<File> {
    let client = vsock_socket()?;
    connect(client.as_raw_fd(), &VsockAddr::new(LOCAL, port))?;
    Ok(client.into())
}

async fn accepted(listener: &Listener) -> AcceptedStream {
    let (stream, peer) = timeout(LONG, listener.accept(|_, _| {})).await.unwrap().unwrap();
    assert!(matches!(peer, Peer::Vsock { cid: LOCAL, .. }), "{peer}");
    stream
}

/// Whether the other end closed; a closed vsock may say so in either way.
fn is_closed(mut client: File) -> bool {
    match client.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_cross_both_ways() {
    if let Some(why) = without_loopback() {
        return skipped("bytes_cross_both_ways", why);
    }
    let port = free_port();
    let listener = binds(&Listeners::default(), &at("any", port, LOCAL));
    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n * 7 + n / 251) as u8).collect();
    let expected = sent.clone();
    let client = tokio::task::spawn_blocking(move || {
        let mut client = try_connect(port).unwrap();
        let mut back = vec![0; expected.len()];
        let mut sender = client.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| sender.write_all(&expected).unwrap());
            client.read_exact(&mut back).unwrap();
        });
        back
    });
    let mut stream = accepted(&listener).await;
    let mut read = vec![0; sent.len()];
    timeout(LONG, stream.read_exact(&mut read)).await.unwrap().unwrap();
    timeout(LONG, stream.write_all(&read)).await.unwrap().unwrap();
    assert!(timeout(LONG, client).await.unwrap().unwrap() == sent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_machine_itself_is_closed_unless_it_is_named() {
    if let Some(why) = without_loopback() {
        return skipped("this_machine_itself_is_closed_unless_it_is_named", why);
    }
    let (listeners, port) = (Listeners::default(), free_port());
    let guests = binds(&listeners, &at("any", port, 42));
    let stranger = tokio::task::spawn_blocking(move || is_closed(try_connect(port).unwrap()));
    assert!(timeout(LONG, stranger).await.unwrap().unwrap());
    let own = listeners.bind(&at("any", port, LOCAL)).unwrap();
    let client = tokio::task::spawn_blocking(move || try_connect(port).unwrap());
    let _stream = accepted(&own).await;
    drop((client.await.unwrap(), guests));
}

#[tokio::test]
async fn hundreds_may_wait_to_be_accepted() {
    if let Some(why) = without_loopback() {
        return skipped("hundreds_may_wait_to_be_accepted", why);
    }
    let port = free_port();
    let listener = binds(&Listeners::default(), &at("any", port, LOCAL));
    // Nothing accepts meanwhile: this thread is the runtime's only one.
    let waiting: Vec<nix::Result<File>> = (0..400).map(|_| try_connect(port)).collect();
    assert!(waiting.iter().all(Result::is_ok), "{:?}", waiting.iter().position(Result::is_err));
    let _stream = accepted(&listener).await;
    drop(waiting);
}
