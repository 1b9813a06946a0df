//! What a container of root can do to the machine that no engine keeps from it, said at the start of such a run.
//!
//! Its root is the machine's: without any capability it owns the files of /proc that are no process's, whose modes are one
//! for all. Engines mask some and keep others read-only, the rest they show, and mount nothing over it.

use std::ffi::OsString;

use crate::{report, run::Sandbox};

/// Says so where the engine is root's, and no argument of the operator's makes its root another user.
pub(super) fn say_what_it_can(sandbox: Sandbox, engine_args: &[OsString]) {
    if sandbox.engine().is_some() && nix::unistd::geteuid().is_root() && !is_another_user(engine_args) {
        report::note(
            "footbridge: where this container's command is root, it can give files of /proc other modes for the whole machine, \
             and they stay (chmod 0600 /proc/loadavg): --engine-arg=--user=UID, with another than 0, keeps it from that",
        );
    }
}

fn is_another_user(engine_args: &[OsString]) -> bool {
    let is_roots = |user: &str| ["", "0", "root"].contains(&user.split(':').next().unwrap_or_default());
    engine_args.iter().filter_map(|arg| arg.to_str()).any(|arg| match arg.split_once('=') {
        Some(("--user", user)) => !is_roots(user),
        Some(("--userns", space)) => space != "host",
        Some(("--uidmap", map)) => !map.starts_with("0:0:"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_root_another_user_leaves_it_unsaid() {
        let is_another = |arg: &str| is_another_user(&["--rm".into(), arg.into()]);
        for arg in ["--user=1000", "--user=1000:0", "--userns=auto", "--uidmap=0:100000:65536"] {
            assert!(is_another(arg), "{arg}");
        }
        for arg in [
            "--user=0",
            "--user=root:1",
            "--user=0:1000",
            "--user=",
            "--userns=host",
            "--uidmap=0:0:1",
            "--cap-drop=all",
        ] {
            assert!(!is_another(arg), "{arg}");
        }
    }
}
