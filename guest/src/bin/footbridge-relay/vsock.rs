//! Connecting over AF_VSOCK, from a virtual machine to its host.
//!
//! The socket is held as tokio's Unix stream, which only reads, writes and waits for readiness: those calls are the
//! same for every kind of stream socket, and another reactor type would only add code.

use std::{io, os::fd::AsRawFd};

use footbridge_guest::sys;
use footbridge_proto::endpoint::VsockEndpoint;
use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, SockFlag, SockType, VsockAddr, connect, socket},
};
use tokio::net::UnixStream;

/// How much the host may send before this end has read it. With the default of 256 KiB, kernels from 6.12.92 until
/// 6.12.117 reset a connection after some 455 small packets that nobody has read; a larger window takes more of them.
/// It is a limit, not memory that is set aside.
const WINDOW_BYTES: u64 = 2 << 20;

/// Most bytes of one write. More leave as several descriptors on kernels from 6.17 on, and on some before by backports;
/// VMMs exist that stall, cut or corrupt a stream then.
pub(super) const MAX_WRITE: usize = 28 << 10;

/// Connects once. The kernel gives up after 2 s.
pub(super) async fn open(to: VsockEndpoint) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Vsock, SockType::Stream, flags, None)?;
    // A transport that keeps to its own window still carries bytes.
    let _ = sys::set_vsock_window(&fd, WINDOW_BYTES);
    match connect(fd.as_raw_fd(), &VsockAddr::new(to.cid.to_connect(), to.port)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(e) => return Err(e.into()),
    }
    // Only now: a socket that has not begun to connect counts as writable.
    let stream = UnixStream::from_std(fd.into())?;
    stream.writable().await?;
    match stream.take_error()? {
        Some(e) => Err(e),
        None => Ok(stream),
    }
}
