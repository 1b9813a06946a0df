//! What one run can do to what another one keeps from its command: the two hand each other a folder that is open.

use std::{fs, path::Path};

use footbridge_tests::{Host, NOBODY, Running, Servers, sandboxes, skipped};
use nix::unistd::geteuid;

use crate::confined::owned;

const PYTHON: &str = "/usr/bin/python3";

/// Hands its folder to whoever connects.
const GIVES: &str = "import os, socket\n\
    offered = socket.socket(socket.AF_UNIX)\n\
    offered.bind('below/meet')\n\
    offered.listen()\n\
    print('offers', flush=True)\n\
    taker, _ = offered.accept()\n\
    socket.send_fds(taker, [b'x'], [os.open('.', os.O_RDONLY)])\n\
    taker.recv(1)";

/// Takes a folder, and tries what it can replace, make and write there.
const TAKES: &str = "import os, socket\n\
    giver = socket.socket(socket.AF_UNIX)\n\
    giver.connect('meet')\n\
    folder = socket.recv_fds(giver, 1, 1)[1][0]\n\
    def tried(what, call):\n    \
        try: call(); print(what, 'done')\n    \
        except OSError: print(what, 'refused')\n\
    for name in ('.envrc', '.git/config', 'file'):\n    \
        tried('rename', lambda: os.rename(name, name + '.old', src_dir_fd=folder, dst_dir_fd=folder))\n    \
        tried('remove', lambda: os.unlink(name, dir_fd=folder))\n\
    tried('make', lambda: os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=folder))\n\
    tried('write', lambda: os.open('file', os.O_WRONLY, dir_fd=folder))\n\
    tried('own', lambda: open('own', 'w'))";

#[test]
fn a_folder_that_another_run_hands_over_cannot_be_changed() {
    let test = "a_folder_that_another_run_hands_over_cannot_be_changed";
    if !Path::new(PYTHON).exists() {
        return skipped(test, &format!("{PYTHON} is missing"));
    }
    if footbridge_processes::keeper::Confinement::here() == footbridge_processes::keeper::Confinement::None {
        return skipped(test, "no Landlock here");
    }
    for sandbox in sandboxes::ordinary(test) {
        let host = Host::with(&Servers::none()).sandbox(sandbox);
        let host = if geteuid().is_root() { host.as_user(NOBODY) } else { host };
        let (work, below) = (host.work(), host.work().join("below"));
        for folder in [&below, &work.join(".git"), &work.join(".git/objects"), &work.join(".git/refs")] {
            owned(folder, None);
        }
        let kept = [".envrc", ".git/HEAD", ".git/config", "file", "gives.py", "below/takes.py"];
        let texts = ["as it was", "ref: refs/heads/main\n", "[core]\n", "as it was", GIVES, TAKES];
        kept.iter().zip(texts).for_each(|(name, text)| owned(&work.join(name), Some(text)));
        let take = format!("echo ready; read; {PYTHON} -I takes.py");
        let mut takes = Running::start(host.run_of(&["bash", "-c", &take]).current_dir(&below));
        takes.stdout.shows("ready\n");
        let mut gives = host.starts(&[PYTHON, "-I", "gives.py"]);
        gives.stdout.shows("offers\n");
        takes.hears("\n");
        let took = takes.ends().stdout;
        assert_eq!(gives.ends().status, 0);
        assert_eq!((took.matches("refused").count(), took.matches("done").count()), (8, 1), "{sandbox}: {took}");
        assert!(took.contains("own done"), "{sandbox}: {took}");
        for (name, text) in kept.iter().zip(texts) {
            assert_eq!(fs::read_to_string(work.join(name)).unwrap(), text, "{sandbox}: {name}");
        }
    }
}
