//! Which devices the command of `footbridge run` can open in `net` and `bwrap`: those of its own /dev and of what `--show`
//! names there, and none by a node that lies anywhere else, whoever runs it.

use std::{
    fs::{self, File, Permissions},
    io::Read as _,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use footbridge_tests::{Host, NOBODY, Servers, sandboxes, skipped};
use nix::unistd::geteuid;
use tempfile::TempDir;

/// What reads the first byte of each path, and tries to make a node of its own.
const OPENS: &str = r#"
for f in "$@"; do head -c 1 $f >/dev/null 2>&1 && echo opened $f; done
(echo x >$1) 2>/dev/null && echo wrote $1
for f in mine /tmp/mine ~/mine; do mknod $f c 1 5 2>/dev/null && head -c 1 $f >/dev/null 2>&1 && echo made $f; done
(unshare -Ur sh -c 'mknod of-others c 1 5 && head -c 1 of-others') >/dev/null 2>&1 && echo made in a namespace
echo tried $#
"#;

/// A folder that only shows, in a file system in which nodes are devices; none where this user can make none.
fn shared(test: &str) -> Option<TempDir> {
    if !geteuid().is_root() {
        skipped(test, "only root makes nodes of devices");
        return None;
    }
    let found = ["/srv", "/opt", "/var/lib", "/"].iter().filter_map(|at| tempfile::tempdir_in(at).ok());
    let found = found.into_iter().find(|folder| makes(&folder.path().join("probe"), 0o600));
    if found.is_none() {
        skipped(test, "no folder outside of /tmp in which a node of a device can be made and opened");
    }
    found.inspect(|folder| fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap())
}

/// Makes a node like /dev/zero, and says whether it opens here.
fn makes(path: &Path, mode: u32) -> bool {
    let made = Command::new("mknod").arg(format!("--mode={mode:o}")).arg(path).args(["c", "1", "5"]).output();
    made.is_ok_and(|made| made.status.success()) && File::open(path).is_ok_and(|mut file| file.read(&mut [0]).is_ok())
}

/// Nodes where a command finds files: where it only reads, in what it may write, and in its home folder.
fn nodes(shared: &Path, mode: u32) -> Vec<PathBuf> {
    let made = ["plain", "shown", "written", "home", "work"].map(|name| shared.join(name)).into_iter().map(|place| {
        fs::create_dir(&place).unwrap();
        assert!(makes(&place.join("node"), mode));
        [place.join("node"), place]
    });
    let made: Vec<[PathBuf; 2]> = made.collect();
    for path in made.iter().flatten().filter(|_| mode == 0o666) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    made.into_iter().map(|[node, _]| node).collect()
}

#[test]
fn a_node_outside_of_dev_is_no_device_whoever_runs_the_command() {
    let name = "a_node_outside_of_dev_is_no_device_whoever_runs_the_command";
    for (sandbox, is_root) in sandboxes::own(name).into_iter().flat_map(|sandbox| [(sandbox, true), (sandbox, false)]) {
        let Some(shared) = shared(name) else { return };
        let host = Host::with(&Servers::none()).sandbox(sandbox);
        let (host, mode) = if is_root { (host, 0o600) } else { (host.as_user(NOBODY), 0o666) };
        let all = nodes(shared.path(), mode);
        let at = |name: &str| shared.path().join(name);
        let host = host.env("HOME", at("home")).working_in(at("work"));
        let host = host.option("--show").option(at("shown")).option("--write").option(at("written"));
        let words: Vec<&str> = all.iter().map(|path| path.to_str().unwrap()).collect();
        let words = [&["bash", "-c", OPENS, "opens"], &words[..]].concat();
        let expected = format!("tried {}\n", all.len());
        let ran = host.runs(&words);
        assert_eq!(ran.stdout, expected, "{sandbox}, root: {is_root}: {ran:?}");
        let ran = host.option("--allow-user-namespaces").runs(&words);
        assert_eq!(ran.stdout, expected, "{sandbox}, root: {is_root}, with namespaces: {ran:?}");
    }
}

#[test]
fn the_devices_of_dev_work_and_so_do_those_that_are_named() {
    let name = "the_devices_of_dev_work_and_so_do_those_that_are_named";
    // Of those that only root opens, as a rule.
    let named = ["/dev/fuse", "/dev/loop-control", "/dev/kmsg"].into_iter().find(|path| {
        Path::new(path).metadata().is_ok_and(|meta| meta.file_type().is_char_device()) && File::open(path).is_ok()
    });
    for sandbox in sandboxes::own(name) {
        let host = Host::with(&Servers::none()).sandbox(sandbox);
        let script = "for f in zero urandom random full; do head -c 2 /dev/$f | wc -c; done; echo x >/dev/null && echo null; \
                      (echo x >/dev/full) 2>/dev/null || echo full; echo x >/dev/shm/x && cat /dev/shm/x; ls /dev/pts; \
                      python3 -c 'import os; a, b = os.openpty(); os.write(b, b\"pty\\n\"); print(os.read(a, 3).decode())'";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "2\n2\n2\n2\nnull\nfull\nx\nptmx\npty\n", "{sandbox}: {ran:?}");
        let Some(named) = named else {
            skipped(&format!("{name}: --show"), "this user can open no device besides");
            continue;
        };
        let opens = format!("(: <{named}) 2>/dev/null && echo opened");
        assert_eq!(host.runs_script(&opens).stdout, "", "{sandbox}: unasked");
        let host = host.option("--show").option(named);
        assert_eq!(host.runs_script(&opens).stdout, "opened\n", "{sandbox}: {named}");
    }
}

#[test]
fn the_mode_of_a_device_cannot_be_changed_by_its_owner_and_what_is_shown_of_dev_not_be_written() {
    let name = "the_mode_of_a_device_cannot_be_changed_by_its_owner_and_what_is_shown_of_dev_not_be_written";
    if !geteuid().is_root() {
        return skipped(name, "these tests do not run as root, who owns the devices");
    }
    let shown = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::write(shown.path().join("file"), "host\n").unwrap();
    for sandbox in sandboxes::own(name) {
        let host = Host::with(&Servers::none()).sandbox(sandbox).option("--show").option(shown.path());
        // What they have: nothing changes where this works.
        let script = format!(
            "for f in null zero full random urandom tty; do chmod $(stat -c %a /dev/$f) /dev/$f 2>/dev/null && echo changed $f; \
             done; \
             (echo x >{0}/file) 2>/dev/null && echo wrote; cat {0}/file; echo x >/dev/null && head -c 1 /dev/zero | wc -c",
            shown.path().display()
        );
        assert_eq!(host.runs_script(&script).stdout, "host\n1\n", "{sandbox}");
        let mut command = host.run_of(&["sh", "-c", "readlink /proc/self/fd/0 /proc/self/fd/1 >&2; cat"]);
        let [null, full] =
            ["null", "full"].map(|name| File::options().read(true).write(true).open(Path::new("/dev").join(name)));
        let ran = command.stdin(null.unwrap()).stdout(full.unwrap()).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(said.matches("pipe:").count(), 2, "{sandbox}: {said}");
    }
}
