//! Which sandboxes work on this machine.

use std::{os::unix::process::CommandExt as _, process::Command};

use nix::unistd::geteuid;

use crate::{NOBODY, skipped};

/// The sandboxes.
const SANDBOXES: [&str; 2] = ["net", "bwrap"];

/// The sandboxes that work here for the tests' own user; those that do not are said to be skipped.
#[must_use]
pub fn own(test: &str) -> Vec<&'static str> {
    SANDBOXES.into_iter().filter(|sandbox| works(test, sandbox, None)).collect()
}

/// The same for an ordinary user, who is another where the tests run as root.
#[must_use]
pub fn ordinary(test: &str) -> Vec<&'static str> {
    let user = geteuid().is_root().then_some(NOBODY);
    SANDBOXES.into_iter().filter(|sandbox| works(test, sandbox, user)).collect()
}

/// Whether a sandbox works here, for another user if one is given; if not, says that the test is skipped in it, and why.
#[must_use]
pub fn works(test: &str, sandbox: &str, user: Option<u32>) -> bool {
    let words = match sandbox {
        "bwrap" => "bwrap --ro-bind / / --proc /proc --dev /dev --unshare-all true",
        _ => "unshare -Urn true",
    };
    let mut probe = Command::new("sh");
    probe.args(["-c", words]).current_dir("/");
    if let Some(user) = user {
        probe.uid(user).gid(user);
    }
    let reason = match probe.output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    skipped(&format!("{test} in {sandbox}"), &reason);
    false
}
