//! What a command with `--allow-user-namespaces` can do from namespaces of its own, and what it must be able to do.

use footbridge_tests::{Host, NOBODY, Servers, sandboxes};
use nix::unistd::geteuid;

/// A run that may make namespaces, as this user and as an ordinary one.
fn hosts(test: &str) -> Vec<Host> {
    let nested = |sandbox| Host::with(&Servers::none()).sandbox(sandbox).option("--allow-user-namespaces");
    let own = sandboxes::own(test).into_iter().map(nested);
    let ordinary = sandboxes::ordinary(test).into_iter().map(nested).map(|host| host.as_user(NOBODY));
    if geteuid().is_root() { own.chain(ordinary).collect() } else { own.collect() }
}

#[test]
fn cgroups_stay_the_machine_s_and_threads_and_programs_start() {
    for host in hosts("cgroups_stay_the_machine_s_and_threads_and_programs_start") {
        let script = "unshare -U true && echo made; unshare -UC true 2>/dev/null && echo cgroups; \
                      unshare -C true 2>/dev/null && echo cgroups; \
                      python3 -c 'import threading, subprocess\n\
                      threading.Thread(target=print, args=(\"thread\",)).start(); subprocess.run([\"true\"])'; \
                      echo forks | cat";
        let ran = host.runs_script(script);
        assert_eq!((ran.status, ran.stdout.as_str()), (0, "made\nthread\nforks\n"), "{ran:?}");
    }
}
