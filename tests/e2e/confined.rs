//! What the command of `footbridge run` can do to the host from `net` and `bwrap`, as an ordinary user: a test an attack,
//! and what must go on working all the same.

use std::{
    ffi::OsStr,
    fs,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{PermissionsExt as _, symlink},
            net::{SocketAddr, UnixListener},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::Command,
};

use footbridge_tests::{Host, NOBODY, Servers, sandboxes, skipped};
use nix::unistd::geteuid;
use serde_json::json;

/// Tries to connect to each argument; a leading `@` is an abstract name.
const CONNECTS: &str = "import socket, sys\n\
    for name in sys.argv[1:]:\n    \
        try: socket.socket(socket.AF_UNIX).connect(name.replace('@', chr(0), 1)); print('reached', name)\n    \
        except OSError as e: print('no', name, file=sys.stderr)\n\
    print('tried', len(sys.argv) - 1)";

pub(super) const PYTHON: &str = "/usr/bin/python3";

/// A host in each sandbox that works here, whose owner is an ordinary user with a home folder.
pub(super) fn hosts(test: &str) -> Vec<Host> {
    sandboxes::ordinary(test).into_iter().map(|sandbox| ordinary(sandbox, "servers.json", "")).collect()
}

/// With a servers file at this path below its folder, and this text in front of the entry's end.
fn ordinary(sandbox: &'static str, file: &str, more: &str) -> Host {
    let host = Host::with(&Servers::none()).sandbox(sandbox);
    let program = host.path().join("bin/footbridge");
    let entry = json!({"mcpServers": {"demo": {"command": program, "args": ["demo-server"]}}}).to_string();
    let config = host.path().join(file);
    fs::write(&config, entry.replace("}}}", &format!("{more}}}}}}}"))).unwrap();
    let host = host.only_configs(&[config]).env("XDG_CONFIG_HOME", "");
    if geteuid().is_root() {
        return host.as_user(NOBODY);
    }
    let home = host.path().join("home");
    fs::create_dir_all(host.path().join("bin")).unwrap();
    fs::create_dir(&home).unwrap();
    symlink(footbridge_tests::programs::footbridge(), program).unwrap();
    host.env("HOME", home)
}

pub(super) fn home(host: &Host) -> PathBuf {
    host.path().join("home")
}

/// Makes a folder or, where there is text, a file that belongs to the host's owner.
pub(super) fn owned(path: &Path, text: Option<&str>) {
    match text {
        Some(text) => fs::write(path, text).unwrap(),
        None => fs::create_dir_all(path).unwrap(),
    }
    if geteuid().is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// Git of the host's owner, outside.
pub(super) fn git(host: &Host, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=e@x"]).args(words).current_dir(host.work());
    command.env("HOME", home(host)).env("GIT_CONFIG_NOSYSTEM", "1");
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn listen(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    listener
}

fn words(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn no_socket_of_another_program_is_reached() {
    let name = "no_socket_of_another_program_is_reached";
    if !Path::new(PYTHON).exists() {
        return skipped(name, &format!("{PYTHON} is missing"));
    }
    for host in hosts(name) {
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
        owned(&home(&host).join(".X11-unix"), None);
        let mut paths = vec![
            shared.path().join("X0"),
            home(&host).join("s"),
            home(&host).join(".X11-unix/X1"),
            host.work().join("s"),
        ];
        // Folders of the system, where this user may write to them.
        let system = ["/run", "/var/tmp", "/dev/shm"];
        let system: Vec<_> = system.iter().filter_map(|folder| tempfile::tempdir_in(folder).ok()).collect();
        for folder in &system {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
            paths.push(folder.path().join("s"));
        }
        let listeners: Vec<_> = paths.iter().map(|path| listen(path)).collect();
        let abstract_name = format!("footbridge-test-{}", shared.path().file_name().unwrap().display());
        let abstract_one = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap();
        let all = format!("{} @{abstract_name}", words(&paths));
        let outside = Command::new(PYTHON).args(["-c", CONNECTS]).args(all.split(' ')).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&outside.stdout).matches("reached").count(), paths.len() + 1, "{outside:?}");
        owned(&host.work().join("connects.py"), Some(CONNECTS));
        let script = format!("{PYTHON} -I connects.py {all}; echo ready; read more; {PYTHON} -I connects.py $more");
        let mut running = host.starts_script(&script);
        running.stdout.shows(&format!("tried {}\nready\n", paths.len() + 1));
        let later = [shared.path().join("later"), home(&host).join("later")];
        let more: Vec<_> = later.iter().map(|path| listen(path)).collect();
        running.hears(&format!("{}\n", words(&later)));
        let ran = running.ends();
        assert!(ran.stdout.ends_with("tried 2\n") && !ran.stdout.contains("reached"), "{ran:?}");
        drop((listeners, abstract_one, more));
    }
}

/// Listens at the names that it is given below its folder, in whatever way each asks for, until its input ends.
const LISTENS: &str = "import os, socket, sys\n\
    kept = []\n\
    for name in sys.argv[1:]:\n    \
        folder, file = os.path.split(name)\n    \
        os.chdir(folder)\n    \
        one = socket.socket(socket.AF_UNIX)\n    \
        one.bind('first' if file == 'renamed' else file)\n    \
        one.listen()\n    \
        if file == 'renamed': os.rename('first', file)\n    \
        os.chmod(file, 0o777)\n    \
        kept.append(one)\n\
    print('listens', flush=True)\n\
    sys.stdin.read()";

#[test]
fn a_socket_is_not_reached_by_another_name_or_from_another_network_namespace() {
    let name = "a_socket_is_not_reached_by_another_name_or_from_another_network_namespace";
    if !Path::new(PYTHON).exists() {
        return skipped(name, &format!("{PYTHON} is missing"));
    }
    // A folder that only shows, which is neither private nor in the home folder.
    let Some(shared) = ["/srv", "/opt", "/var/lib", "/"].iter().find_map(|at| tempfile::tempdir_in(at).ok()) else {
        return skipped(name, "this user can make no folder outside of /tmp and the home folder");
    };
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for host in hosts(name) {
        let mut paths = Vec::new();
        let mut others = Vec::new();
        for (at, place) in [host.work(), host.work().join("deep/er"), shared.path().to_owned()].into_iter().enumerate()
        {
            owned(&place, None);
            paths.extend(["relative", "renamed"].map(|file| place.join(format!("{at}")).join(file)));
            others.push(place.join(format!("{at}")).join("elsewhere"));
            fs::create_dir_all(place.join(format!("{at}"))).unwrap();
        }
        let starts = |words: &[&str], paths: &[PathBuf]| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).args(["-I", "-c", LISTENS]).args(paths);
            let mut listener = footbridge_tests::Running::start(&mut command);
            listener.stdout.shows("listens\n");
            listener
        };
        let mut listeners = vec![starts(&[PYTHON], &paths)];
        let apart = if geteuid().is_root() { "-n" } else { "-Urn" };
        if Command::new("unshare").args([apart, "true"]).output().is_ok_and(|output| output.status.success()) {
            listeners.push(starts(&["unshare", apart, PYTHON], &others));
            paths.extend(others);
        } else {
            skipped(&format!("{name}: another namespace"), "unshare does not work here");
        }
        // One that nobody listens at any more stays as it is, and can be replaced.
        let left = host.work().join("left");
        drop(UnixListener::bind(&left).unwrap());
        let outside = Command::new(PYTHON).args(["-c", CONNECTS]).args(&paths).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&outside.stdout).matches("reached").count(), paths.len(), "{outside:?}");
        owned(&host.work().join("connects.py"), Some(CONNECTS));
        let script = format!("{PYTHON} -I connects.py {}; rm left && echo removed", words(&paths));
        let ran = host.runs_script(&script);
        assert_eq!(ran.stdout, format!("tried {}\nremoved\n", paths.len()), "{ran:?}");
        for path in &paths {
            fs::remove_file(path).unwrap();
        }
        listeners.iter_mut().for_each(footbridge_tests::Running::hears_no_more);
    }
}

/// Gives a socket more names than are covered, one by one, in a folder of their own; they come first in any order.
fn flood(folder: &Path) -> UnixListener {
    fs::create_dir(folder).unwrap();
    let listener = listen(&folder.join("s"));
    (0..1_050).for_each(|number| fs::hard_link(folder.join("s"), folder.join(format!("!{number:05}"))).unwrap());
    listener
}

#[test]
fn a_neighbour_s_many_sockets_uncover_no_other() {
    let name = "a_neighbour_s_many_sockets_uncover_no_other";
    if !Path::new(PYTHON).exists() {
        return skipped(name, &format!("{PYTHON} is missing"));
    }
    let Some(shared) = ["/srv", "/opt", "/var/lib", "/"].iter().find_map(|at| tempfile::tempdir_in(at).ok()) else {
        return skipped(name, "this user can make no folder outside of /tmp and the home folder");
    };
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let crowd = flood(&shared.path().join("!"));
    let others = [shared.path().join("s"), shared.path().join("!/s")];
    let listener = listen(&others[0]);
    for host in hosts(name) {
        owned(&host.work().join("connects.py"), Some(CONNECTS));
        let ran = host.runs_script(&format!("{PYTHON} -I connects.py {}", words(&others)));
        assert_eq!(ran.stdout, "tried 2\n", "{ran:?}");
        let _own = flood(&host.work().join("crowd"));
        let ran = host.runs_script("echo started");
        assert!(ran.stdout.is_empty() && ran.status != 0, "{ran:?}");
        assert!(ran.stderr.contains(&format!("of them in {}", host.work().join("crowd").display())), "{ran:?}");
    }
    drop((crowd, listener));
}

#[test]
fn the_relay_cannot_be_traced_and_a_run_ends_when_it_is_told_to() {
    let name = "the_relay_cannot_be_traced_and_a_run_ends_when_it_is_told_to";
    if !Path::new(PYTHON).exists() {
        return skipped(name, &format!("{PYTHON} is missing"));
    }
    // PTRACE_ATTACH and PTRACE_SEIZE.
    let traces = "import ctypes\n\
        c = ctypes.CDLL(None, use_errno=True)\n\
        print([c.ptrace(how, 1, 0, 0) for how in (16, 0x4206)], end=' ')\n\
        try: open('/proc/1/mem', 'rb+'); print('opened')\n\
        except PermissionError: print('refused')";
    for host in hosts(name) {
        owned(&host.work().join("traces.py"), Some(traces));
        let script =
            format!("{PYTHON} -I traces.py; tool-cli demo now '{{}}' >/dev/null && echo called; exec sleep 1000");
        let mut running = host.starts_script(&script);
        running.stdout.shows("[-1, -1] refused\ncalled\n");
        running.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(running.ends().status, 128 + 15);
    }
}

#[test]
fn repositories_and_settings_of_editors_further_down_stay_as_they_are() {
    for host in hosts("repositories_and_settings_of_editors_further_down_stay_as_they_are") {
        for name in ["a/one", "plain"] {
            owned(&host.work().join(name), None);
        }
        owned(&host.work().join("a"), None);
        git(&host, &["init", "-q", "a/one"]);
        for name in ["a/one/.vscode", "plain/.idea", "a/one/.kiro"] {
            owned(&host.work().join(name), None);
        }
        let config = fs::read_to_string(host.work().join("a/one/.git/config")).unwrap();
        let script = "for f in a/one/.git/config a/one/.git/hooks/pre-commit a/one/.vscode/tasks.json plain/.idea/x a/one/.kiro/x; do \
                        (echo evil >$f) 2>/dev/null && echo wrote $f; done; \
                      for f in a plain; do mv $f away 2>/dev/null && echo moved $f; done; \
                      (cd a; mv one away 2>/dev/null && echo moved one; cd one; mv .git away 2>/dev/null && echo moved .git); \
                      git config --global user.name n; git config --global user.email e@x; cd a/one; \
                      echo a >a && git add a && git commit -qm one && git log --format=%s; echo x >.envrc";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "one\n", "{ran:?}");
        assert!(ran.stderr.contains("a/one/.envrc"), "{ran:?}");
        assert_eq!(fs::read_to_string(host.work().join("a/one/.git/config")).unwrap(), config);
    }
}

#[test]
fn what_settings_of_git_lead_to_stays_as_it_is_and_so_does_what_cannot_be_listed() {
    for host in hosts("what_settings_of_git_lead_to_stays_as_it_is_and_so_does_what_cannot_be_listed") {
        let at = |name: &str| host.work().join(name);
        git(&host, &["init", "-q", "."]);
        let named = ["-c", "user.name=n", "-c", "user.email=e@x"];
        git(&host, &[&named[..], &["commit", "-q", "--allow-empty", "-m", "one"]].concat());
        git(&host, &["worktree", "add", "-q", "wt"]);
        git(&host, &["config", "core.hooksPath", "tools/hk"]);
        git(&host, &["config", "filter.f.clean", "sh strip/clean %f"]);
        owned(&at("strip"), None);
        owned(&at("strip/clean"), Some("cat"));
        owned(&at("wt/tools"), None);
        owned(&at("wt/tools/hk"), None);
        owned(&at("q"), None);
        git(&host, &["init", "-q", "q/r"]);
        git(&host, &["-C", "q/r", "config", "include.path", "../../../shared"]);
        owned(&at("shared"), Some("[user]\n"));
        owned(&at("p"), None);
        git(&host, &["init", "-q", "p/n"]);
        fs::set_permissions(at("p"), fs::Permissions::from_mode(0o311)).unwrap();
        let script = "for f in wt/tools/hk/pre-commit shared strip/clean p/n/.git/config p/n/.git/hooks/pre-commit p/new; do \
                        (echo evil >$f) 2>/dev/null && echo wrote $f; done; \
                      chmod 755 p 2>/dev/null && echo changed p; mv strip away 2>/dev/null && echo moved strip; echo x >q/r/free && cat q/r/free";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "x\n", "{ran:?}");
        fs::set_permissions(at("p"), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn links_on_the_way_to_what_others_obey_cannot_be_replaced() {
    for host in hosts("links_on_the_way_to_what_others_obey_cannot_be_replaced") {
        let (at, home) = (|name: &str| host.work().join(name), home(&host));
        git(&host, &["init", "-q", "."]);
        for folder in ["real", "real/hooks"] {
            owned(&home.join(folder), None);
        }
        owned(&at("shared"), None);
        owned(&home.join("real/cfg"), Some("[alias]\n\tis = !echo good\n"));
        fs::remove_dir_all(at(".git/hooks")).unwrap();
        for (link, to) in
            [("dot", home.join("real")), (".git/hooks", home.join("real/hooks")), (".vscode", "shared".into())]
        {
            symlink(to, at(link)).unwrap();
        }
        symlink(at("dot/cfg"), home.join("through")).unwrap();
        symlink("real/settings", home.join(".gitconfig")).unwrap();
        owned(&home.join("real/settings"), Some("[include]\n\tpath = ~/through\n"));
        let links = ["dot", ".git/hooks", ".vscode"];
        let before = links.map(|link| fs::read_link(at(link)).unwrap());
        let script = "mkdir evil; printf '[alias]\\n\\tis = !echo evil\\n' >evil/cfg; git is; \
                      for f in dot .git/hooks .vscode; do \
                        mv $f away 2>/dev/null && echo moved $f; rm -rf $f 2>/dev/null; ln -sfn /tmp $f 2>/dev/null && echo linked $f; \
                        mv -T evil $f 2>/dev/null && echo covered $f; ln -sfn evil new; mv -T new $f 2>/dev/null && echo renamed $f; \
                      done; mv .git away 2>/dev/null && echo moved .git; \
                      (echo x >.vscode/x) 2>/dev/null && echo wrote; ls -d .vscode/.; git is; echo x >free && ln -s free other && cat other";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "good\n.vscode/.\ngood\nx\n", "{ran:?}");
        assert_eq!(links.map(|link| fs::read_link(at(link)).unwrap()), before);
        assert_eq!(git(&host, &["is"]), "good\n");
    }
}

#[test]
fn a_rebase_that_a_command_leaves_is_named_and_it_goes_on_with_one_of_before() {
    for host in hosts("a_rebase_that_a_command_leaves_is_named_and_it_goes_on_with_one_of_before") {
        git(&host, &["init", "-q", "."]);
        let commit = ["commit", "-q", "--allow-empty", "-m"];
        git(&host, &[&commit[..], &["one"]].concat());
        git(&host, &[&commit[..], &["two"]].concat());
        let stops = ["-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-q", "--keep-empty", "-i", "HEAD~"];
        git(&host, &stops);
        assert_eq!(host.runs_script("git status >/dev/null").stderr, "");
        let me = "git config --global user.name n; git config --global user.email e@x";
        let ended =
            host.runs_script(&format!("{me}; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1; git status"));
        assert!(!ended.stdout.contains("rebase") && ended.stderr.is_empty(), "{ended:?}");
        git(&host, &stops);
        let todo = ".git/rebase-merge/git-rebase-todo";
        let written = host.runs_script(&format!("echo 'exec evil' >>{todo}"));
        assert!(written.stderr.contains(&format!("work/{todo}; look before")), "{written:?}");
        git(&host, &["rebase", "--abort"]);
        let new = host.runs_script(
            "mkdir .git/rebase-merge .git/sequencer; cd .git; echo 'exec evil' >rebase-merge/git-rebase-todo; \
                      echo x/evil >rebase-merge/strategy; echo '[options]' >sequencer/opts",
        );
        for name in ["git-rebase-todo", "strategy", "sequencer/opts"] {
            assert!(new.stderr.contains(name), "{new:?}");
        }
    }
}

#[test]
fn what_links_in_folders_that_others_obey_lead_to_stays_as_it_is_and_hard_links_are_named() {
    for host in hosts("what_links_in_folders_that_others_obey_lead_to_stays_as_it_is_and_hard_links_are_named") {
        let at = |name: &str| host.work().join(name);
        git(&host, &["init", "-q", "."]);
        for folder in ["scripts", ".vscode", "free"] {
            owned(&at(folder), None);
        }
        owned(&at("scripts/hook"), Some("#!/bin/sh\necho good\n"));
        owned(&at("tasks.json"), Some("{}"));
        fs::set_permissions(at("scripts/hook"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("../../scripts/hook", at(".git/hooks/pre-commit")).unwrap();
        symlink("../tasks.json", at(".vscode/tasks.json")).unwrap();
        let script = "for f in scripts/hook .git/hooks/pre-commit .vscode/tasks.json tasks.json; do \
                        (echo evil >$f) 2>/dev/null && echo wrote $f; rm -f $f 2>/dev/null; mv $f away 2>/dev/null && echo moved $f; done; \
                      mv scripts away 2>/dev/null && echo moved scripts; .git/hooks/pre-commit; echo x >scripts/new && cat scripts/new; \
                      echo 1 >free/a; ln free/a .envrc; git init -q mine; ln mine/.git/config other";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "good\nx\n", "{ran:?}");
        let next = host.runs_script("echo 2 >free/a; cat .envrc");
        let names = ["hard links", "work/.envrc, ", "work/mine/.git/config;"];
        assert!(names.iter().all(|name| next.stderr.contains(name)), "{next:?}");
    }
}

#[test]
fn repositories_that_only_git_knows_as_such_are_named() {
    for host in hosts("repositories_that_only_git_knows_as_such_are_named") {
        let script = "mkdir -p node_modules/x s1 s2; git init -q --bare node_modules/x/h; cd s1; echo ref: refs/heads/m >HEAD; \
                      echo ../node_modules/x/h >commondir; cd ../s2; ln -s refs/heads/m HEAD; cp ../node_modules/x/h/config .; \
                      ln -s ../node_modules/x/h/objects objects; ln -s ../node_modules/x/h/refs refs; git rev-parse --is-bare-repository; \
                      cd ../s1; git rev-parse --git-dir";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "true\n.\n", "{ran:?}");
        let names = ["s1/commondir", "s2/config", "h/config"];
        assert!(names.iter().all(|name| ran.stderr.contains(name)), "{ran:?}");
    }
}

#[test]
fn repositories_to_push_to_are_not_named_by_files_of_the_command() {
    for host in hosts("repositories_to_push_to_are_not_named_by_files_of_the_command") {
        git(&host, &["init", "-q", "."]);
        for name in ["branches", "remotes"] {
            owned(&host.work().join(".git").join(name), None);
        }
        let script = "for f in .git/branches/origin .git/remotes/origin; do (echo evil >$f) 2>/dev/null && echo wrote $f; done; \
                      rmdir .git/remotes 2>/dev/null && echo removed; mv .git/branches x 2>/dev/null && echo moved; git init -q new";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "", "{ran:?}");
        fs::remove_dir(host.work().join(".git/remotes")).unwrap();
        let made = host.runs_script("mkdir .git/remotes");
        assert!(made.stderr.contains("work/.git/remotes"), "{made:?}");
    }
}

#[test]
fn no_file_is_left_by_which_others_become_the_user_of_the_command() {
    for host in hosts("no_file_is_left_by_which_others_become_the_user_of_the_command") {
        let script = "touch a b; chmod 4755 a 2>/dev/null || echo no; chmod u+s b 2>/dev/null || echo no; \
                      install -m 4755 /bin/true c 2>/dev/null || echo no; mkdir d; chmod 2755 d && chmod 755 a && echo yes; \
                      find . -perm /4000; mknod -m 4755 e p 2>/dev/null; find . -perm /4000";
        assert_eq!(host.runs_script(script).stdout, "no\nno\nno\nyes\n");
        if Path::new(PYTHON).exists() {
            let script = "import os\n\
                          for flags, name in ((os.O_CREAT, 'f'), (os.O_TMPFILE, '.'), (os.O_CREAT | os.O_EXCL, 'g')):\n    \
                            try: print(oct(os.fstat(os.open(name, flags | os.O_RDWR, 0o4755)).st_mode))\n    \
                            except PermissionError: print('no')\n\
                          print(oct(os.fstat(os.open('h', os.O_CREAT | os.O_RDWR, 0o755)).st_mode))";
            assert_eq!(host.runs(&[PYTHON, "-I", "-c", script]).stdout, "no\nno\nno\n0o100755\n");
        }
        let host = host.option("--allow-user-namespaces");
        assert_eq!(host.runs_script("touch i; chmod 4755 i && echo yes; rm i").stdout, "yes\n");
    }
}

#[test]
fn nothing_of_the_host_can_be_written_but_the_folder_of_work() {
    for host in hosts("nothing_of_the_host_can_be_written_but_the_folder_of_work") {
        let cgroups = "$(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs 2>/dev/null)";
        owned(&home(&host).join("mine"), Some("mine"));
        symlink("mine", home(&host).join("link")).unwrap();
        let own = format!("/tmp/footbridge-test-{}", std::process::id());
        let script = format!(
            "for f in /usr/x /etc/x /x /run/x /var/lib/x /sys/x /sys/kernel/mm/ksm/run /sys/power/state \
             /proc/sys/kernel/core_pattern /proc/sysrq-trigger {cgroups}; do (echo 1 >$f) 2>/dev/null && echo wrote $f; done; \
             for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/x 2>/dev/null && echo made $d/x; done; \
             for f in {own} /var/tmp/x /dev/shm/x here ~/new ~/mine ~/.bashrc; do echo 1 >$f && echo ok; done; \
             rm ~/link; ln -s /etc ~/link; mv ~ ~/../x 2>/dev/null && echo moved; cat ~/mine ~/new; ls -A ~ | wc -l"
        );
        let ran = host.runs_script(&script);
        assert_eq!(ran.stdout, format!("{}1\n1\n5\n", "ok\n".repeat(7)), "{ran:?}");
        assert_eq!(ran.stderr, "");
        assert_eq!(fs::read_to_string(home(&host).join("mine")).unwrap(), "mine");
        assert_eq!(fs::read_link(home(&host).join("link")).unwrap(), Path::new("mine"));
        let names = fs::read_dir(home(&host)).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.filter(|name| name != OsStr::new(".config")).collect();
        names.sort();
        assert_eq!(names, ["link", "mine"]);
        assert!(host.work().join("here").exists() && !Path::new(&own).exists());
        assert!(host.run_folders().is_empty(), "the run removed its folder");
    }
}

#[test]
fn what_others_run_or_obey_in_the_folder_of_work_stays_as_it_is() {
    for host in hosts("what_others_run_or_obey_in_the_folder_of_work_stays_as_it_is") {
        git(&host, &["init", "-q"]);
        fs::remove_dir_all(host.work().join(".git/hooks")).unwrap();
        owned(&host.work().join(".vscode"), None);
        owned(&host.work().join(".envrc"), Some("export A=1\n"));
        let config = fs::read_to_string(host.work().join(".git/config")).unwrap();
        let script = "for f in .git/hooks/pre-commit .git/config .vscode/tasks.json .envrc; do \
                        (echo evil >$f) 2>/dev/null && echo wrote $f; rm -rf $f 2>/dev/null; ln -sf /x $f 2>/dev/null; done; \
                      for f in .git .git/hooks .vscode .envrc; do mv $f away 2>/dev/null && echo moved $f; done; \
                      mkdir hooks; rmdir .git/hooks 2>/dev/null && ln -s ../hooks .git/hooks; \
                      git config core.fsmonitor evil 2>/dev/null && echo configured; \
                      git config --global user.name n; git config --global user.email e@x; \
                      echo a >a && git add a && git commit -qm one && git log --format=%s; echo evil >.mcp.json";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "one\n", "{ran:?}");
        assert_eq!(fs::read_to_string(host.work().join(".git/config")).unwrap(), config);
        assert_eq!(fs::read_to_string(host.work().join(".envrc")).unwrap(), "export A=1\n");
        assert_eq!(fs::read_dir(host.work().join(".git/hooks")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(host.work().join(".vscode")).unwrap().count(), 0);
        assert_eq!(git(&host, &["log", "--format=%s"]), "one\n");
        let said = "run or obeyed by other programs here";
        assert!(ran.stderr.contains(said) && ran.stderr.contains("work/.mcp.json"), "{ran:?}");
    }
}

#[test]
fn a_tracked_configuration_is_committed_as_it_is_and_warned_about() {
    let name = "a_tracked_configuration_is_committed_as_it_is_and_warned_about";
    for sandbox in sandboxes::ordinary(name) {
        let secret = r#", "env": {"API_KEY": "in-the-clear", "OTHER": "${HOME}"}"#;
        let host = ordinary(sandbox, "work/.mcp.json", secret);
        let text = fs::read_to_string(host.work().join(".mcp.json")).unwrap();
        git(&host, &["init", "-q"]);
        git(&host, &["add", ".mcp.json"]);
        git(&host, &["commit", "-qm", "first"]);
        let script = "git config --global user.name n; git config --global user.email e@x; echo a >a; git add a; \
                      (echo x >.mcp.json) 2>/dev/null; rm -f .mcp.json 2>/dev/null; mv .mcp.json b 2>/dev/null; \
                      cat .mcp.json; git commit -qam second; git status --short; tool-cli demo now '{}' >/dev/null && echo called";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, format!("{text}called\n"), "{ran:?}");
        assert_eq!(git(&host, &["show", "HEAD:.mcp.json"]), text);
        assert_eq!(git(&host, &["show", "--format=%s", "--name-only", "HEAD"]), "second\n\na\n");
        let said = ["work/.mcp.json shows to the command as it is", "API_KEY in the clear"];
        assert!(said.iter().all(|said| ran.stderr.contains(said)) && !ran.stderr.contains("OTHER"), "{ran:?}");
    }
}

#[test]
fn a_configuration_behind_a_link_in_the_folder_of_work_is_refused() {
    for host in hosts("a_configuration_behind_a_link_in_the_folder_of_work_is_refused") {
        symlink("../servers.json", host.work().join("linked.json")).unwrap();
        let linked = host.work().join("linked.json");
        let host = host.only_configs(&[linked]);
        host.runs(&["true"]).fails(2, &["linked.json", "is a link in", "which the sandbox can write"]);
    }
}

#[test]
fn user_namespaces_are_refused_unless_they_are_asked_for() {
    for host in hosts("user_namespaces_are_refused_unless_they_are_asked_for") {
        let script = "unshare -Ur true 2>/dev/null && echo made; unshare -Urm true 2>/dev/null && echo made; \
                      sh -c 'echo forks' | cat; (sleep 0 & wait); echo done";
        assert_eq!(host.runs_script(script).well(), "forks\ndone\n");
        let host = host.option("--allow-user-namespaces");
        assert_eq!(host.runs_script(script).well(), "made\nmade\nforks\ndone\n");
    }
}

#[test]
fn credentials_are_hidden_and_what_is_named_shows() {
    for host in hosts("credentials_are_hidden_and_what_is_named_shows") {
        // An engine without root keeps there what its containers have in their environments.
        owned(&home(&host).join(".local/share"), None);
        for folder in [".ssh", ".aws", ".config/gh", ".local/share/containers"] {
            owned(&home(&host).join(folder), None);
            owned(&home(&host).join(folder).join("secret"), Some("s3cret\n"));
        }
        owned(&home(&host).join(".netrc"), Some("s3cret\n"));
        owned(&home(&host).join("notes"), Some("read\n"));
        let script = "cat ~/.netrc ~/.ssh/* ~/.aws/* ~/.config/gh/* ~/.local/share/containers/* ~/notes 2>/dev/null; (echo x >~/.ssh/new) 2>/dev/null \
                      && echo wrote; cat ~/.ssh/new 2>/dev/null; echo end";
        assert_eq!(host.runs_script(script).well(), "read\nend\n");
        let (cloud, login) = (home(&host).join(".aws"), home(&host).join(".netrc"));
        let shown = host.option("--show").option(cloud).option("--show").option(login);
        assert_eq!(shown.runs_script(script).well(), "s3cret\ns3cret\nread\nend\n");
    }
}

#[test]
fn what_write_names_can_be_written_for_good_and_show_never_can() {
    for host in hosts("what_write_names_can_be_written_for_good_and_show_never_can") {
        for folder in ["data", "seen"] {
            owned(&host.path().join(folder), None);
        }
        owned(&host.path().join("file"), Some(""));
        owned(&home(&host).join("project"), None);
        let name = |host: Host, flag, path: PathBuf| host.option(flag).option(path);
        let (data, seen, file, project) =
            (host.path().join("data"), host.path().join("seen"), host.path().join("file"), home(&host).join("project"));
        let host = name(name(host, "--write", data.clone()), "--show", seen.clone());
        let host = name(name(host, "--write", file.clone()), "--write", project.clone());
        let script = "for f in ../data/x ../file ~/project/x here; do echo 1 >$f && echo ok; done; \
                      (echo 1 >../seen/x) 2>/dev/null || echo no";
        assert_eq!(host.runs_script(script).well(), "ok\nok\nok\nok\nno\n");
        assert!(data.join("x").exists() && project.join("x").exists() && !seen.join("x").exists());
        assert_eq!(fs::read_to_string(file).unwrap(), "1\n");
    }
}

#[test]
fn started_in_a_home_folder_it_asks_what_may_be_written() {
    for host in hosts("started_in_a_home_folder_it_asks_what_may_be_written") {
        let (own_home, work) = (home(&host), host.work());
        let settings = own_home.join(".config");
        fs::create_dir_all(&settings).unwrap();
        let usr = Path::new("/usr/share");
        for folder in [Path::new("/"), &own_home, Path::new("/tmp"), own_home.parent().unwrap(), usr, &settings] {
            let host = host_in(&host, folder);
            host.runs(&["true"]).fails(2, &[&format!("the working folder is {}, ", folder.display()), "--write"]);
        }
        let host = host_in(&host, &own_home).option("--write").option(&work);
        host_in(host.host, &work)
            .option("--write")
            .option(&own_home)
            .runs(&["true"])
            .fails(2, &["home folder is in it"]);
        let script = format!("pwd; echo 1 >x && cat x; echo 1 >{}/x", work.display());
        assert_eq!(host.runs_script(&script).well(), format!("{}\n1\n", own_home.display()));
        assert!(work.join("x").exists() && !own_home.join("x").exists());
    }
}

/// The same host, in another folder.
fn host_in<'a>(host: &'a Host, folder: &Path) -> HostIn<'a> {
    HostIn { host, folder: folder.to_owned(), options: Vec::new() }
}

struct HostIn<'a> {
    host: &'a Host,
    folder: PathBuf,
    options: Vec<std::ffi::OsString>,
}

impl HostIn<'_> {
    fn option(mut self, word: impl AsRef<OsStr>) -> Self {
        self.options.push(word.as_ref().to_owned());
        self
    }

    fn runs(&self, cmd: &[&str]) -> footbridge_tests::Ran {
        let template = self.host.run_of(cmd);
        let mut command = Command::new(template.get_program());
        let mut words: Vec<_> = template.get_args().map(OsStr::to_owned).collect();
        words.splice(1..1, self.options.iter().cloned());
        command.args(words).env_clear().current_dir(&self.folder);
        command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        footbridge_tests::Running::start(&mut command).ends()
    }

    fn runs_script(&self, script: &str) -> footbridge_tests::Ran {
        self.runs(&["bash", "-c", script])
    }
}

#[test]
fn what_cannot_be_named_is_refused_with_the_reason() {
    for host in hosts("what_cannot_be_named_is_refused_with_the_reason") {
        let state = host.state();
        owned(&state, None);
        let named = |flag: &str, path: &Path| host_in(&host, &host.work()).option(flag).option(path).runs(&["true"]);
        named("--write", &host.path().join("missing")).fails(2, &["--write", "missing", "No such file"]);
        named("--show", &host.path().join("missing")).fails(2, &["--show", "missing", "No such file"]);
        named("--write", Path::new("/")).fails(2, &["--write /", "further down"]);
        named("--write", Path::new("/sys/fs/cgroup")).fails(2, &["--write /sys/fs/cgroup", "no sandbox"]);
        named("--write", &state).fails(2, &["where Footbridge keeps its own files"]);
        named("--show", &state).fails(2, &["where Footbridge keeps its own files"]);
        host_in(&host, &state)
            .runs(&["true"])
            .fails(2, &["the working folder", "where Footbridge keeps its own files"]);
    }
    let host = Host::with(&Servers::none()).sandbox("none").option("--write=/tmp");
    host.runs(&["true"]).fails(2, &["--write", "--sandbox net and bwrap"]);
}

#[test]
fn tools_work_with_their_caches_in_the_home_folder() {
    for host in hosts("tools_work_with_their_caches_in_the_home_folder") {
        owned(&home(&host).join(".cache"), None);
        owned(&home(&host).join(".cache/kept"), Some("old\n"));
        let script = "cat ~/.cache/kept; echo new >~/.cache/kept; cat ~/.cache/kept; mkdir -p ~/.npm/_cacache ~/.cargo/registry; \
                      echo x >~/.cargo/registry/x; mv ~/.cargo ~/.cargo2 && mv ~/.cargo2 ~/.cargo; rm -r ~/.cache; \
                      mkdir ~/.cache && echo again; ln ~/.cargo/registry/x ~/.cargo/y; test ~/.cargo/y -ef ~/.cargo/registry/x \
                      && echo linked; mktemp >/dev/null && echo temporary; echo a | tee /dev/null /dev/stderr 2>/dev/null";
        let ran = host.runs_script(script);
        assert_eq!(ran.stdout, "old\nnew\nagain\nlinked\ntemporary\na\n", "{ran:?}");
        assert_eq!(fs::read_to_string(home(&host).join(".cache/kept")).unwrap(), "old\n");
        if Path::new(PYTHON).exists() {
            let script =
                format!("{PYTHON} -c 'import multiprocessing as m; m.Lock(); print(m.Pool(2).map(abs, [-1]))'");
            assert_eq!(host.runs_script(&script).well(), "[1]\n");
        }
    }
}

/// Ends a run of this script with these streams.
fn runs_with(host: &Host, script: &str, streams: [std::process::Stdio; 3]) -> std::process::Output {
    let [stdin, stdout, stderr] = streams;
    host.run_of(&["bash", "-c", script]).stdin(stdin).stdout(stdout).stderr(stderr).output().unwrap()
}

#[test]
fn no_standard_stream_leads_to_files_of_the_host() {
    for host in hosts("no_standard_stream_leads_to_files_of_the_host") {
        let (kept, log) = (home(&host).join("kept"), home(&host).join("log"));
        let null = || std::process::Stdio::null();
        let piped = || std::process::Stdio::piped();
        owned(&kept, Some("one\ntwo\nthree\n"));
        owned(&log, Some("before\n"));
        let ran = runs_with(&host, "ls /proc/self/fd/0/", [fs::File::open("/").unwrap().into(), piped(), piped()]);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && said.contains("standard input is a folder"), "{ran:?}");
        let spoils = "for n in 0 1 2; do f=/proc/self/fd/$n; chmod 777 $f; : >$f; echo x >>$f; truncate -s 0 $f; cat <$f; \
                      done 2>/dev/null; readlink /proc/self/fd/0 | cut -c 1-5 >&2";
        let appended = || fs::File::options().append(true).open(&log).unwrap();
        let modes = || [&kept, &log].map(|path| path.metadata().unwrap().permissions().mode());
        let before = modes();
        let script = format!("{{ {spoils}; }} </dev/stdin; echo after >&2");
        runs_with(&host, &script, [fs::File::open(&kept).unwrap().into(), null(), appended().into()]);
        assert_eq!(fs::read_to_string(&kept).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(modes(), before);
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("before\n") && text.ends_with("pipe:\nafter\n"), "{text}");
        // What a shell expects of files: two streams in one stay in order, and the next reader goes on behind.
        let both = appended();
        let input = fs::File::open(&kept).unwrap();
        let script = "read line; for n in 1 2 3; do echo $line$n; echo $line$n >&2; done";
        let streams = [input.try_clone().unwrap().into(), both.try_clone().unwrap().into(), both.into()];
        assert!(runs_with(&host, script, streams).status.success());
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.ends_with("after\none1\none1\none2\none2\none3\none3\n"), "{text}");
        assert_eq!(std::io::read_to_string(input).unwrap(), "two\nthree\n");
    }
}
