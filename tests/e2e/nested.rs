//! What a command with `--allow-user-namespaces` can do from namespaces of its own, and what it must be able to do.

use std::{fs, path::Path};

use footbridge_tests::{Host, NOBODY, Servers, sandboxes, skipped};
use nix::unistd::geteuid;
use serde_json::json;

use crate::confined::owned;

const PYTHON: &str = "/usr/bin/python3";

/// Replaces each argument by a copy of a file, from a mount namespace in which the run's mounts are not.
const REPLACES: &str = "import ctypes, os, platform, sys\n\
    libc = ctypes.CDLL(None, use_errno=True)\n\
    pivot_root = {'x86_64': 155, 'aarch64': 41}[platform.machine()]\n\
    def done(result):\n    \
        if result: sys.exit(os.strerror(ctypes.get_errno()))\n\
    ids, work, evil = (os.getuid(), os.getgid()), os.open('.', os.O_RDONLY), open('evil').read()\n\
    done(libc.unshare(0x10000000 | 0x20000))\n\
    open('/proc/self/setgroups', 'w').write('deny')\n\
    for one, file in zip(ids, ('uid_map', 'gid_map')): open('/proc/self/' + file, 'w').write(f'{one} {one} 1')\n\
    done(libc.mount(None, b'/', None, 1 << 14 | 1 << 18, None))\n\
    done(libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None))\n\
    os.mkdir('/tmp/old')\n\
    done(libc.syscall(pivot_root, b'/tmp', b'/tmp/old'))\n\
    os.chdir('/')\n\
    done(libc.umount2(b'/old', 2))\n\
    for name in sys.argv[1:]:\n    \
        os.rename(name, name + '.old', src_dir_fd=work, dst_dir_fd=work)\n    \
        with open(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=work), 'w') as file: file.write(evil)";

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

#[test]
fn what_is_replaced_from_namespaces_of_its_own_is_told_and_the_configuration_first_of_all() {
    let test = "what_is_replaced_from_namespaces_of_its_own_is_told_and_the_configuration_first_of_all";
    if !Path::new(PYTHON).exists() {
        return skipped(test, &format!("{PYTHON} is missing"));
    }
    for sandbox in sandboxes::ordinary(test) {
        let host = Host::with(&Servers::none()).sandbox(sandbox).option("--allow-user-namespaces");
        let host = if geteuid().is_root() { host.as_user(NOBODY) } else { host };
        let at = |name: &str| host.work().join(name);
        let demo = json!({"mcpServers": {"demo": {"command": "footbridge", "args": ["demo-server"],
            "env": {"TOKEN": {"file": at("token")}}}}});
        for (name, text) in [
            (".envrc", "as it was"),
            ("token", "s3cret-of-the-operator"),
            ("servers.json", &demo.to_string()),
            ("evil", "replaced"),
            ("replaces.py", REPLACES),
        ] {
            owned(&at(name), Some(text));
        }
        for name in ["token", "servers.json"] {
            fs::set_permissions(at(name), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        let config = at("servers.json");
        let host = host.only_configs(&[config]);
        let quiet = host.runs_script("echo x >new; rm new");
        assert!(quiet.status == 0 && !quiet.stderr.contains("WARNING"), "{sandbox}: {quiet:?}");
        let ran = host.runs(&[PYTHON, "-I", "replaces.py", ".envrc", "servers.json", "token"]);
        assert_eq!(ran.status, 0, "{sandbox}: {ran:?}");
        let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("WARNING")).collect();
        assert_eq!(told.len(), 2, "{sandbox}: {ran:?}");
        for (line, names) in told.iter().zip([&[".envrc", "servers.json", "token"][..], &["servers.json", "token"]]) {
            for name in names {
                assert!(line.contains(&format!("work/{name}")), "{sandbox}: no {name} in {line}");
            }
        }
        assert!(!told[1].contains(".envrc"), "{sandbox}: {}", told[1]);
    }
}
