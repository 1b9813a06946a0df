//! Listeners: who comes in by them, and what they leave alone.
//!
//! As root nearly every file may be used, so what is about owners also runs as an ordinary user, and what is about how
//! a process starts runs in one of its own: the test starts this same program again, for one ignored test, a "part".
//!
//! `vsock` needs nothing but this program: it can be copied into a virtual machine and run there, as in
//! `listener vsock:: --test-threads 1`.

#![expect(clippy::unwrap_used, reason = "a test says no more than that it failed, and where")]

mod files;
mod in_the_way;
mod inherited;
mod multiplexer;
mod places;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
mod strangers;
mod tcp;
mod visitors;
mod vsock;
