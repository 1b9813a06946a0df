//! What a command leaves in a folder of git by which git outside would write, delete or read any file of its user, or run
//! what the command wrote.

use std::{
    fs,
    path::{Path, PathBuf},
};

use footbridge_tests::{Host, skipped};

use crate::confined::{PYTHON, git, home, hosts, owned};

/// Puts an entry of this path and text into the index, which git does not let itself be told.
const FORGES: &str = "import hashlib, struct, subprocess, sys\n\
    path, text = sys.argv[1].encode(), sys.argv[2].encode()\n\
    made = subprocess.run(['git', 'hash-object', '-w', '--stdin'], input=text, stdout=subprocess.PIPE)\n\
    index = open('.git/index', 'rb').read()\n\
    count, = struct.unpack('>I', index[8:12])\n\
    at, entries = 12, []\n\
    for _ in range(count):\n    \
        length = struct.unpack('>H', index[at + 60:at + 62])[0] & 0xfff\n    \
        size = (62 + length + 8) & ~7\n    \
        entries.append((index[at + 62:at + 62 + length], index[at:at + size])); at += size\n\
    entry = struct.pack('>10I', 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0) + bytes.fromhex(made.stdout.decode().strip())\n\
    entry += struct.pack('>H', len(path)) + path\n\
    entries.append((path, entry + bytes(((62 + len(path) + 8) & ~7) - len(entry)))); entries.sort()\n\
    index = b'DIRC' + struct.pack('>II', 2, len(entries)) + b''.join(entry for _, entry in entries)\n\
    open('.git/index', 'wb').write(index + hashlib.sha1(index).digest())";

/// With a repository of one commit in its folder of work, and a secret and a file of settings at home.
fn repositories(name: &str) -> Vec<Host> {
    if !Path::new(PYTHON).exists() {
        skipped(name, &format!("{PYTHON} is missing"));
        return Vec::new();
    }
    let hosts = hosts(name);
    for host in &hosts {
        git(host, &["init", "-q", "."]);
        owned(&host.work().join("f"), Some("one\n"));
        owned(&host.work().join("forges.py"), Some(FORGES));
        git(host, &["add", "-A"]);
        git(host, &["commit", "-qm", "one"]);
        owned(&home(host).join(".ssh"), None);
        owned(&home(host).join(".ssh/id"), Some("s3cret\n"));
        owned(&home(host).join(".bashrc"), Some("mine\n"));
    }
    hosts
}

/// What is in a folder of git that was set aside.
fn set_aside(git: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(git).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_str().unwrap().contains(".set-aside-")).collect()
}

#[test]
fn git_outside_writes_and_reads_nothing_by_a_forged_index() {
    for host in repositories("git_outside_writes_and_reads_nothing_by_a_forged_index") {
        let (bashrc, secret) = (home(&host).join(".bashrc"), home(&host).join(".ssh/id"));
        let settings = fs::read_to_string(host.work().join(".git/config")).unwrap();
        for path in [".git/config", bashrc.to_str().unwrap(), "../home/.bashrc", secret.to_str().unwrap()] {
            let ran = host.runs(&[PYTHON, "-I", "forges.py", path, "evil"]);
            let says = [".git/index: it names ", path, "which git itself never puts there", "git reset"];
            assert!(ran.status == 0 && says.iter().all(|text| ran.stderr.contains(text)), "{path}: {ran:?}");
            git(&host, &["reset", "-q"]);
            git(&host, &["add", "-A"]);
            git(&host, &["restore", "."]);
            git(&host, &["reset", "-q", "--hard"]);
        }
        assert_eq!(fs::read_to_string(&bashrc).unwrap(), "mine\n");
        assert_eq!(fs::read_to_string(host.work().join(".git/config")).unwrap(), settings);
        assert_eq!(fs::read_to_string(host.work().join("f")).unwrap(), "one\n");
        assert_eq!(set_aside(&host.work().join(".git")).len(), 4);
        let script = "git cat-file --batch-all-objects --batch | grep -a s3cret; echo looked";
        assert_eq!(host.runs_script(script).stdout, "looked\n");
    }
}

#[test]
fn git_outside_reads_nothing_by_a_forged_list_of_conflicts() {
    for host in repositories("git_outside_reads_nothing_by_a_forged_list_of_conflicts") {
        let name = "0123456789abcdef0123456789abcdef01234567";
        let forges = format!(
            "mkdir -p .git/rr-cache/{name}; echo x >.git/rr-cache/{name}/preimage; ln -s ~ link; echo more >>f; \
             printf '{name}\\tlink/.ssh/id\\0' >.git/MERGE_RR"
        );
        let ran = host.runs_script(&forges);
        let says =
            ["MERGE_RR: it names link/.ssh/id, which is or is behind a link", "/.git/rr-cache; remove", "rerere"];
        assert!(says.iter().all(|text| ran.stderr.contains(text)), "{ran:?}");
        git(&host, &["commit", "-qam", "two"]);
        assert!(!host.work().join(format!(".git/rr-cache/{name}/postimage")).exists());
        // What git itself does there is nothing to tell of.
        let again = host.runs_script("git config user.name n 2>/dev/null; git status -s >/dev/null; echo ran");
        assert!(again.stdout == "ran\n" && !again.stderr.contains("rr-cache"), "{again:?}");
    }
}

#[test]
fn honest_indexes_stay_as_they_are() {
    for host in repositories("honest_indexes_stay_as_they_are") {
        git(&host, &["update-index", "--index-version", "4"]);
        git(&host, &["init", "-q", "split"]);
        git(&host, &["init", "-q", "--object-format=sha256", "long"]);
        for name in ["split", "long"] {
            owned(&host.work().join(name).join("a-file"), Some(""));
            git(&host, &["-C", name, "add", "-A"]);
        }
        git(&host, &["-C", "split", "update-index", "--split-index"]);
        let ran = host
            .runs_script("for i in $(seq 300); do echo >f$i; done; git add f?*; git -C split status -s; ls | wc -l");
        assert!(ran.status == 0 && !ran.stderr.contains("index"), "{ran:?}");
        assert!(["", "split/", "long/"].iter().all(|at| set_aside(&host.work().join(at).join(".git")).is_empty()));
    }
}

#[test]
fn after_a_run_that_was_killed_the_next_one_looks_at_what_it_left() {
    for host in repositories("after_a_run_that_was_killed_the_next_one_looks_at_what_it_left") {
        let script = format!("{PYTHON} -I forges.py ../x evil; mkdir .vscode; ln -s ~ out; echo left; sleep 600");
        let mut running = host.starts_script(&script);
        running.stdout.shows("left\n");
        running.killed();
        host.leaves_nothing_behind();
        let next = host.runs_script("echo ran");
        let says = ["an earlier run ended before", ".git/index: it names ../x", "/.vscode; look", "/out; look"];
        assert!(next.stdout == "ran\n" && says.iter().all(|text| next.stderr.contains(text)), "{next:?}");
        // One that is there without a run that was killed is seen before a command starts, too.
        git(&host, &["reset", "-q"]);
        let aside = set_aside(&host.work().join(".git")).remove(0);
        fs::rename(aside, host.work().join(".git/index")).unwrap();
        let next = host.runs_script("test -e .git/index || echo gone");
        assert!(next.stdout == "gone\n" && next.stderr.contains(".git/index: it names ../x"), "{next:?}");
    }
}

#[test]
fn scripts_that_git_runs_by_itself_cannot_be_written() {
    for host in repositories("scripts_that_git_runs_by_itself_cannot_be_written") {
        for (setting, value) in [
            ("gc.recentObjectsHook", "tools/gc"),
            ("hook.lint.command", "tools/lint --all"),
            ("remote.o.url", "ext::tools/fetch %S"),
            ("remote.o.pushurl", "ext::tools/push"),
        ] {
            git(&host, &["config", setting, value]);
        }
        owned(&host.work().join("tools"), None);
        let names = ["gc", "lint", "fetch", "push", "other"];
        names.iter().for_each(|name| owned(&host.work().join("tools").join(name), Some("")));
        let script = "for f in tools/*; do (echo evil >>$f) 2>/dev/null && echo $f; done; true";
        assert_eq!(host.runs_script(script).stdout, "tools/other\n");
    }
}

#[test]
fn in_a_linked_work_tree_it_is_said_how_git_can_commit() {
    for host in repositories("in_a_linked_work_tree_it_is_said_how_git_can_commit") {
        let main = host.work().join(".git");
        git(&host, &["config", "user.name", "n"]);
        git(&host, &["config", "user.email", "e@x"]);
        git(&host, &["worktree", "add", "-q", "../linked"]);
        let linked = host.path().join("linked");
        let host = host.working_in(linked);
        let commits = "echo more >>f; git commit -qam more && echo committed";
        let ran = host.runs_script(commits);
        let says = format!("--write {}", main.display());
        assert!(ran.stdout.is_empty() && ran.stderr.contains(&says), "{ran:?}");
        let host = host.option("--write").option(&main);
        let evil = "(echo x >>../work/.git/config) 2>/dev/null || echo no; (echo x >../work/.git/hooks/x) 2>/dev/null || echo no";
        let ran = host.runs_script(&format!("{commits}; {evil}"));
        assert!(ran.stdout == "committed\nno\nno\n" && !ran.stderr.contains("--write"), "{ran:?}");
    }
}

/// Where a link may be that git outside would delete, write or read by, and what git does that.
const LINKS: &str = "mkdir -p .git/logs/refs/heads .git/info; rm -f .git/logs/HEAD; \
    ln -s ~/precious .git/worktrees; ln -s ~/.bashrc .git/logs/HEAD; ln -s ~/.bashrc .git/logs/refs/heads/evil; \
    ln -s config .git/COMMIT_EDITMSG 2>/dev/null || ln -sf config .git/COMMIT_EDITMSG; \
    rm -rf .git/rr-cache; ln -s ~/precious .git/rr-cache; ln -s ~/precious .git/objects/ab; \
    git init -q deep/er; ln -s ~/precious deep/er/.git/worktrees; \
    mkdir -p .git/modules/sub/logs .git/modules/sub/objects; touch .git/modules/sub/HEAD; \
    ln -s ~/.bashrc .git/modules/sub/logs/HEAD; echo left";

/// With something of the owner at home that links could lead to, and a link of theirs in the folder of git.
fn with_links(name: &str) -> Vec<Host> {
    let hosts = repositories(name);
    for host in &hosts {
        owned(&home(host).join("precious/tree"), None);
        owned(&home(host).join("precious/tree/file"), Some("mine\n"));
        git(host, &["config", "gc.worktreePruneExpire", "now"]);
        git(host, &["config", "gc.auto", "0"]);
    }
    hosts
}

/// What git does outside leaves all at home as it was.
fn git_outside_touches_nothing(host: &Host) {
    let settings = fs::read_to_string(host.work().join(".git/config")).unwrap();
    owned(&host.work().join("f"), Some("two\n"));
    git(host, &["commit", "-qam", "[core] fsmonitor = evil"]);
    git(host, &["checkout", "-qb", "evil"]);
    git(host, &["commit", "-q", "--allow-empty", "-m", "three"]);
    git(host, &["gc", "-q", "--prune=now"]);
    git(host, &["worktree", "prune"]);
    git(host, &["-C", "deep/er", "worktree", "prune", "--expire", "now"]);
    assert_eq!(fs::read_to_string(host.work().join(".git/config")).unwrap(), settings);
    assert_eq!(fs::read_to_string(home(host).join(".bashrc")).unwrap(), "mine\n");
    let precious: Vec<_> = fs::read_dir(home(host).join("precious")).unwrap().map(|entry| entry.unwrap()).collect();
    assert!(precious.len() == 1 && precious[0].path().join("file").exists(), "{precious:?}");
}

#[test]
fn git_outside_deletes_and_writes_nothing_by_links_that_a_command_left() {
    for host in with_links("git_outside_deletes_and_writes_nothing_by_links_that_a_command_left") {
        let ran = host.runs_script(LINKS);
        let says = [
            "precious that a command left as ",
            "/.git/worktrees: ",
            "/.git/logs/HEAD: ",
            "/.git/COMMIT_EDITMSG: ",
            "/.git/rr-cache: ",
            "/deep/er/.git/worktrees: ",
            "/.git/modules/sub/logs/HEAD: ",
            "it is set aside as ",
            "/.git/worktrees.set-aside-",
        ];
        assert!(ran.stdout == "left\n" && says.iter().all(|text| ran.stderr.contains(text)), "{ran:?}");
        assert_eq!(set_aside(&host.work().join(".git")).len(), 7);
        git_outside_touches_nothing(&host);
        // They are no news to the next run.
        let again = host.runs_script("echo ran");
        assert!(again.stdout == "ran\n" && !again.stderr.contains("set-aside"), "{again:?}");
    }
}

#[test]
fn after_a_run_that_was_killed_the_links_that_it_left_are_set_aside_before_the_next_one() {
    for host in with_links("after_a_run_that_was_killed_the_links_that_it_left_are_set_aside_before_the_next_one") {
        let mut running = host.starts_script(&format!("{LINKS}; sleep 600"));
        running.stdout.shows("left\n");
        running.killed();
        host.leaves_nothing_behind();
        let next = host.runs_script("test -L .git/worktrees || echo gone");
        let says = ["an earlier run ended before", "/.git/worktrees: ", "/.git/worktrees.set-aside-"];
        assert!(next.stdout == "gone\n" && says.iter().all(|text| next.stderr.contains(text)), "{next:?}");
        git_outside_touches_nothing(&host);
    }
}

#[test]
fn links_in_folders_of_git_that_were_there_before_and_those_of_git_stay() {
    for host in with_links("links_in_folders_of_git_that_were_there_before_and_those_of_git_stay") {
        let link = |to: &str, at: &str| {
            let at = host.work().join(at);
            std::os::unix::fs::symlink(to, &at).unwrap();
            if nix::unistd::geteuid().is_root() {
                std::os::unix::fs::lchown(&at, Some(footbridge_tests::NOBODY), Some(footbridge_tests::NOBODY)).unwrap();
            }
        };
        fs::remove_dir_all(host.work().join(".git/hooks")).unwrap();
        link("../hooks", ".git/hooks");
        fs::rename(host.work().join(".git/objects"), host.path().join("objects")).unwrap();
        link(host.path().join("objects").to_str().unwrap(), ".git/objects");
        link("/nowhere", ".git/mine");
        owned(&host.work().join("innocent"), None);
        link("/nowhere", "innocent/main");
        let script = "chown -h $(id -u) .git/mine; mv innocent .git/refs/tags/; rm .git/HEAD; \
                      ln -s refs/heads/main .git/HEAD; git status -s >/dev/null; echo ran";
        let ran = host.runs_script(script);
        assert!(ran.stdout == "ran\n" && ran.stderr.contains("/.git/refs/tags/innocent/main: "), "{ran:?}");
        for stays in [".git/hooks", ".git/objects", ".git/mine", ".git/HEAD"] {
            assert!(host.work().join(stays).is_symlink() && !ran.stderr.contains(&format!("{stays}: ")), "{ran:?}");
        }
        assert_eq!(set_aside(&host.work().join(".git")).len(), 1);
    }
}

#[test]
fn what_has_git_show_something_else_than_a_clone_has_is_named_once() {
    for host in repositories("what_has_git_show_something_else_than_a_clone_has_is_named_once") {
        let told = "by which git shows other commits and files here than a clone has";
        assert!(!host.runs(&["true"]).stderr.contains(told));
        let replaces = "echo evil >f; git -c user.name=a -c user.email=a@b commit -qam bad; git replace HEAD HEAD~1; \
             git rev-parse HEAD >.git/info/grafts; echo done";
        let ran = host.runs_script(replaces);
        let line = ran.stderr.lines().find(|line| line.contains(told)).unwrap_or_default();
        assert!(line.contains("/.git/refs/replace/") && line.contains("/.git/info/grafts, "), "{ran:?}");
        assert!(!host.runs(&["true"]).stderr.contains(told), "what was there before is no news");
        let packed = host.runs_script("git pack-refs --all; git rev-parse HEAD >.git/shallow");
        let line = packed.stderr.lines().find(|line| line.contains(told)).unwrap_or_default();
        assert!(line.contains("/.git/shallow; ") && !line.contains("refs/replace"), "{packed:?}");
    }
}
