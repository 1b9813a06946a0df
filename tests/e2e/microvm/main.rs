//! Guests in real virtual machines, which reach the harness over vsock: `calls` and `echo` go to the host, and
//! `listening` is AF_VSOCK on both ends, inside a guest.
//!
//! Each boot costs seconds of both cores, so one machine serves several checks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;
mod calls;
mod echo;
mod listening;

/// A line of shell that starts the relay and waits until it listens.
fn relay(port: u16, to: &str, more: &str) -> String {
    format!(
        "mkfifo ready-{port}\nfootbridge-relay --listen tcp:127.0.0.1:{port} --to {to} {more} --ready-fd 9 9>ready-{port} \
         >/dev/null 2>relay-{port}.log &\nread -r address <ready-{port}\n"
    )
}
