//! The socket between harness and keeper: whole messages, and descriptors with them.
//!
//! One socket does three jobs. It carries the order and the reports; it is the lifeline, since the kernel ends it with
//! either process; and it is close-on-exec from birth, so that no other child ever holds an end and delays that.
//!
//! A message is JSON and small; an order can be as large as an environment, so it travels as a file without a name.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sys;

/// Descriptors that one message may carry: the order, three streams, a terminal, what is held, and what else the program
/// gets.
const DESCRIPTORS: usize = 6 + super::order::MORE;

/// Longest message; the longest sent is a refusal that names a path of 4 KiB, escaped.
const MESSAGE: usize = 64 * 1024;

/// A message and the descriptors that came with it.
pub(super) type Received<T> = (T, Vec<OwnedFd>);

/// Both ends, close-on-exec.
pub(super) fn pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
}

/// Sends one message.
pub(super) fn send(channel: impl AsFd, message: &impl Serialize, with: &[RawFd]) -> nix::Result<()> {
    let bytes = serde_json::to_vec(message).map_err(|_| Errno::EINVAL)?;
    let rights = [ControlMessage::ScmRights(with)];
    let rights: &[ControlMessage<'_>] = if with.is_empty() { &[] } else { &rights };
    let fd = channel.as_fd().as_raw_fd();
    sendmsg::<()>(fd, &[IoSlice::new(&bytes)], rights, MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

/// Receives one message; nothing when the other end is gone.
pub(super) fn receive<T: DeserializeOwned>(channel: impl AsFd) -> nix::Result<Option<Received<T>>> {
    let mut bytes = vec![0; MESSAGE];
    let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS]);
    let mut buffers = [IoSliceMut::new(&mut bytes)];
    let fd = channel.as_fd().as_raw_fd();
    let message = match recvmsg::<()>(fd, &mut buffers, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
        Err(Errno::ECONNRESET) => return Ok(None),
        other => other?,
    };
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = control {
            descriptors.extend(sys::own_received(received));
        }
    }
    let length = message.bytes;
    if length == 0 {
        return Ok(None);
    }
    let message = bytes.get(..length).and_then(|text| serde_json::from_slice(text).ok()).ok_or(Errno::EBADMSG)?;
    Ok(Some((message, descriptors)))
}

/// A file without a name that holds the value.
pub(super) fn file_of(value: &impl Serialize) -> nix::Result<File> {
    let mut file = File::from(memfd_create("footbridge-order", MFdFlags::MFD_CLOEXEC)?);
    let bytes = serde_json::to_vec(value).map_err(|_| Errno::EINVAL)?;
    file.write_all(&bytes).and_then(|()| file.rewind()).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0)))?;
    Ok(file)
}
