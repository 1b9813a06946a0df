//! The only place with unsafe code among these tests: system calls by their bare numbers.

use nix::errno::Errno;
use nix::libc::{c_long, syscall};

/// Makes a call whose fourth argument, where it takes one, is where it may write two numbers.
///
/// For the few calls that the sandbox is to refuse: none of them takes another pointer.
pub(crate) fn call(number: i64, first: i32, second: i32) -> nix::Result<c_long> {
    let mut pair = [0_i32; 2];
    #[expect(unsafe_code, reason = "the calls are refused, or get a valid pointer to two ints")]
    let result = unsafe { syscall(number, first, second, 0, pair.as_mut_ptr()) };
    Errno::result(result)
}
