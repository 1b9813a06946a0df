//! What an earlier guest, another mount or another user left lets nobody in: links and pipes in the folder of work, a
//! second mount of the same files, folders of strangers; and who is root outside changes nothing of the machine.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
};

use footbridge_tests::{Host, NOBODY, Ran, Running, Servers, sandboxes, skipped, starting};
use nix::unistd::geteuid;
use serde_json::json;

/// Of an ordinary user with a home folder, in which there is a secret.
fn ordinary(sandbox: &'static str) -> Host {
    let host = Host::with(&Servers::none()).sandbox(sandbox);
    let host = if geteuid().is_root() {
        host.as_user(NOBODY)
    } else {
        let home = host.path().join("home");
        fs::create_dir(&home).unwrap();
        host.env("HOME", home)
    };
    for folder in [".ssh", "other"] {
        fs::create_dir(home(&host).join(folder)).unwrap();
    }
    fs::write(home(&host).join(".ssh/id"), "s3cret").unwrap();
    belongs_to_the_owner(&host);
    host
}

fn home(host: &Host) -> PathBuf {
    host.path().join("home")
}

fn belongs_to_the_owner(host: &Host) {
    if geteuid().is_root() {
        let owner = format!("{NOBODY}:{NOBODY}");
        let given = Command::new("chown").args(["-hR", &owner]).arg(host.path()).status().unwrap();
        assert!(given.success());
    }
}

/// Opens what is in /proc, but for processes, to write, and writes nothing; and gives it the mode that it has.
const OPENS: &str = "import os, stat\n\
    for name in os.listdir('/proc'):\n    \
        top = '/proc/' + name\n    \
        if name.isdigit() or os.path.islink(top): continue\n    \
        files = [top] if os.path.isfile(top) else [f + '/' + n for f, _, names in os.walk(top) for n in names]\n    \
        for path in files:\n        \
            mode = os.lstat(path).st_mode\n        \
            if not stat.S_ISREG(mode): continue\n        \
            try: os.chmod(path, stat.S_IMODE(mode)); print('changed', path)\n        \
            except OSError: pass\n        \
            try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)); print('opened', path)\n        \
            except OSError: pass\n\
    print('looked')";

fn changes_nothing_of_the_machine(host: &Host) {
    let ran = host.runs(&["python3", "-I", "-c", OPENS]);
    assert_eq!(ran.stdout, "looked\n", "{ran:?}");
}

#[test]
fn nothing_in_proc_that_is_of_the_machine_can_be_opened_to_write() {
    for sandbox in sandboxes::ordinary("nothing_in_proc_that_is_of_the_machine_can_be_opened_to_write") {
        changes_nothing_of_the_machine(&ordinary(sandbox));
    }
}

#[test]
fn who_is_root_outside_can_change_nothing_of_the_machine_either() {
    let name = "who_is_root_outside_can_change_nothing_of_the_machine_either";
    if !geteuid().is_root() {
        return skipped(name, "needs root");
    }
    for sandbox in sandboxes::ordinary(name) {
        let host = Host::with(&Servers::none()).sandbox(sandbox);
        changes_nothing_of_the_machine(&host);
        let shadows = "/etc/shadow /etc/gshadow";
        assert_eq!(host.runs_script(&format!("cat {shadows} 2>/dev/null | wc -c")).stdout, "0\n", "{sandbox}");
    }
}

/// Runs its words, and mounts something that anybody may write at the folder once they have said that they run.
const MOUNTS_LATER: &str = "folder=$1; shift; \"$@\" >said <>ready_to_go & for n in $(seq 400); do grep -q runs said && break; sleep 0.1; \
    done; mount -t tmpfs -o mode=1777 later $folder && echo x >ready_to_go; wait $!; cat said; ls $folder";

#[test]
fn what_is_mounted_outside_later_does_not_show_with_and_without_a_layer() {
    let name = "what_is_mounted_outside_later_does_not_show_with_and_without_a_layer";
    let shared = ["unshare", "-m", "--propagation", "shared"];
    if !Command::new(shared[0]).args(&shared[1..]).arg("true").output().is_ok_and(|output| output.status.success()) {
        return skipped(name, "only root makes mounts");
    }
    let Some(folder) = ["/srv", "/opt", "/var/lib", "/"].iter().find_map(|at| tempfile::tempdir_in(at).ok()) else {
        return skipped(name, "this user can make no folder outside of /tmp and the home folder");
    };
    for (sandbox, is_layered) in
        sandboxes::ordinary(name).into_iter().flat_map(|sandbox| [(sandbox, true), (sandbox, false)])
    {
        let host = Host::with(&Servers::none()).sandbox(sandbox);
        let host = if is_layered { host } else { host.env("HOME", "/missing") };
        let script =
            format!("echo runs; read go; echo x >{0}/x; grep -c {0} /proc/self/mountinfo", folder.path().display());
        let run = host.run_of(&["bash", "-c", &script]);
        let pipe = host.path().join("ready_to_go");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut command = Command::new(shared[0]);
        command.args(&shared[1..]).args(["bash", "-c", MOUNTS_LATER, "later"]).arg(folder.path());
        let ran = Running::start(starting(&run, command).current_dir(host.path())).ends();
        assert_eq!(ran.stdout, "runs\n0\n", "{sandbox}, with a layer: {is_layered}: {ran:?}");
    }
}

#[test]
fn a_pipe_in_place_of_git_s_settings_does_not_hold_the_next_run() {
    for sandbox in sandboxes::ordinary("a_pipe_in_place_of_git_s_settings_does_not_hold_the_next_run") {
        let host = ordinary(sandbox);
        assert_eq!(host.runs_script("mkdir .git && mkfifo .git/config").status, 0);
        assert_eq!(host.runs_script("echo started").stdout, "started\n");
    }
}

#[test]
fn links_that_lead_nowhere_refuse_no_run_and_stay_as_they_are() {
    for sandbox in sandboxes::ordinary("links_that_lead_nowhere_refuse_no_run_and_stay_as_they_are") {
        let host = ordinary(sandbox);
        let long = "x".repeat(300);
        let leaves = format!(
            "git init -q one; rm -rf one/.git/hooks; ln -s hooks one/.git/hooks; ln -s .git .git; ln -s .mcp.json .mcp.json; \
             ln -s {long} .envrc; mkdir .claude; ln -s mcp.json .claude/mcp.json; ln -s away .vscode; ln -s .vscode away; \
             printf '[include]\\npath = a\\0b\\npath = {long}\\n' >>one/.git/config"
        );
        assert_eq!(host.runs_script(&leaves).status, 0);
        // The one that git would go through is set aside; the operator may have made such a one as well.
        symlink("hooks", host.path().join("work/one/.git/hooks")).unwrap();
        let script = "for f in .git .mcp.json .envrc .vscode away one/.git/hooks; do rm -f $f 2>/dev/null; \
                        mv $f new 2>/dev/null; readlink $f | cut -c1-9; done";
        let said = ".git\n.mcp.json\nxxxxxxxxx\naway\n.vscode\nhooks\n";
        let again = host.runs_script(script);
        assert_eq!(again.stdout, said, "{sandbox}: {again:?}");
        // Where the operator removes them it is as if they had never been.
        ["work/.git", "work/.vscode"].iter().for_each(|link| fs::remove_file(host.path().join(link)).unwrap());
        assert_eq!(host.runs_script("ls .git 2>/dev/null; echo ran").stdout, "ran\n");
    }
}

#[test]
fn a_folder_that_a_guest_closed_opens_nothing_in_it_for_the_next_one() {
    for sandbox in sandboxes::ordinary("a_folder_that_a_guest_closed_opens_nothing_in_it_for_the_next_one") {
        let host = ordinary(sandbox);
        let work = host.work();
        // Further down than repositories are looked for.
        let deep = "1/2/3/4/5/6";
        for folder in ["a/one/.git/objects", "a/one/.git/hooks", ".hg", ".config/mise", deep] {
            fs::create_dir_all(work.join(folder)).unwrap();
        }
        let _listener = UnixListener::bind(work.join(deep).join("s")).unwrap();
        for file in ["a/one/.git/HEAD", "a/one/.git/config", ".hg/hgrc"] {
            fs::write(work.join(file), "good\n").unwrap();
        }
        belongs_to_the_owner(&host);
        let closes = format!("chmod 444 a; chmod 000 .hg .config {deep}; echo closed");
        assert_eq!(host.runs_script(&closes).stdout, "closed\n");
        let opens = format!(
            "chmod 755 a .hg .config {deep} 2>/dev/null; ls {deep}; for f in a/one/.git/config a/one/.git/hooks/x .hg/hgrc .config/mise/x; do \
                       (echo evil >$f) 2>/dev/null && echo wrote $f; done; mv a b 2>/dev/null && echo moved; \
                     mv .hg b 2>/dev/null && echo moved; echo x >free && cat free"
        );
        let ran = host.runs_script(&opens);
        assert_eq!(ran.stdout, "x\n", "{sandbox}: {ran:?}");
        // Very many refuse no run, and it says that it did not look at all.
        assert_eq!(host.runs_script("mkdir -p many/{1..1200}; chmod 000 many/*").status, 0);
        let ran = host.runs_script("echo ran");
        assert_eq!(ran.stdout, "ran\n", "{sandbox}: {ran:?}");
        assert!(ran.stderr.contains("not looked through whole for sockets"), "{sandbox}: {ran:?}");
        for folder in ["a", ".hg", ".config", deep] {
            fs::set_permissions(work.join(folder), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

/// Ends a run with these options in a folder that the shell came to by this path.
fn runs_at(host: &Host, at: &Path, shell_says_so: bool, options: &[&str]) -> Ran {
    let template = host.run_of(&["sh", "-c", "cat ~/.ssh/id 2>/dev/null; echo ran"]);
    let mut words: Vec<_> = template.get_args().map(ToOwned::to_owned).collect();
    words.splice(1..1, options.iter().map(Into::into));
    let mut command = Command::new(template.get_program());
    command.args(words).env_clear().current_dir(at);
    command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if shell_says_so {
        command.env("PWD", at);
    }
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    Running::start(&mut command).ends()
}

#[test]
fn a_link_that_a_guest_left_is_named_and_opens_nothing_for_the_next_run() {
    for sandbox in sandboxes::ordinary("a_link_that_a_guest_left_is_named_and_opens_nothing_for_the_next_run") {
        let host = ordinary(sandbox);
        let (work, home) = (host.work(), home(&host));
        fs::create_dir(work.join("src")).unwrap();
        symlink("/usr/bin", work.join("before")).unwrap();
        belongs_to_the_owner(&host);
        let left =
            host.runs_script("ln -s ~/.ssh build; ln -s ~/other other; ln -s src inside; ln -s /usr/bin/env env");
        let said = "links that lead out of what it may write";
        assert!(left.stderr.contains(said) && left.stderr.contains("work/build, "), "{left:?}");
        let others = ["inside", "env", "before"];
        assert!(!others.iter().any(|name| left.stderr.contains(&format!("work/{name}"))), "{left:?}");
        let secret = home.join(".ssh");
        for option in ["--write=../build", "--show=../build"] {
            let says = [&option[..6], "work/build", secret.to_str().unwrap(), "which is hidden", "may have left"];
            runs_at(&host, &work.join("src"), true, &[option]).fails(2, &says);
        }
        let says = ["--write ../other", "which is elsewhere", home.to_str().unwrap()];
        runs_at(&host, &work.join("src"), true, &["--write=../other"]).fails(2, &says);
        runs_at(&host, &work.join("build"), true, &[]).fails(2, &["the working folder", "which is hidden"]);
        runs_at(&host, &work.join("build"), false, &[]).fails(2, &["the working folder", ".ssh, which is hidden"]);
        assert_eq!(runs_at(&host, &work.join("inside"), true, &[]).stdout, "ran\n");
        let named = format!("--show={}", secret.display());
        assert_eq!(runs_at(&host, &work.join("src"), true, &[&named]).stdout, "s3cretran\n");
    }
}

/// An MCP server whose only tool says what is in the folder that its last argument names.
const LISTS: &str = r"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    method = message.get('method')
    if method == 'initialize':
        result = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
    elif method == 'tools/list':
        result = {'tools': [{'name': 'list', 'inputSchema': {'type': 'object'}}]}
    elif method == 'tools/call':
        result = {'content': [{'type': 'text', 'text': 'found ' + str(os.listdir(sys.argv[-1]))}]}
    else:
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
";

/// The same command in a mount namespace in which a folder shows a second time. For root.
fn mounted_again(template: &Command, folder: &Path, again: &Path) -> Command {
    let script =
        "mount --bind \"$1\" \"$2\" && shift 2 && exec setpriv --reuid \"$0\" --regid \"$0\" --clear-groups \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, &NOBODY.to_string()]).args([folder, again]);
    starting(template, command)
}

#[test]
fn a_second_mount_of_the_same_files_shows_nothing_that_is_hidden() {
    let name = "a_second_mount_of_the_same_files_shows_nothing_that_is_hidden";
    let can_mount = Command::new("unshare").args(["-m", "mount", "--bind", "/usr", "/usr"]).output();
    if !geteuid().is_root() || !can_mount.is_ok_and(|output| output.status.success()) {
        return skipped(name, "needs root, and mounts");
    }
    for sandbox in sandboxes::ordinary(name) {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let again = place.path().join("again");
        fs::create_dir(&again).unwrap();
        let host = ordinary(sandbox).option("--show").option(&again);
        let lists = json!({"command": "python3", "args": ["-c", LISTS, again.join("state")]});
        fs::write(host.servers_file(), Servers::none().and("lists", lists).text(host.path())).unwrap();
        let script = format!(
            "cd {}; cat home/.ssh/* servers.json 2>/dev/null; ls -A home/.ssh state rt; cat home/seen; \
             tool-cli lists list '{{}}'; echo",
            again.display()
        );
        fs::write(home(&host).join("seen"), "seen\n").unwrap();
        belongs_to_the_owner(&host);
        let mut command = mounted_again(&host.run_of(&["sh", "-c", &script]), host.path(), &again);
        let ran = Running::start(&mut command).ends();
        assert_eq!(ran.stdout.trim(), "home/.ssh:\n\nrt:\n\nstate:\nseen\nfound []", "{sandbox}: {ran:?}");

        fs::write(host.work().join("server.py"), "").unwrap();
        let inside = json!({"command": "python3", "args": [again.join("work/server.py")]});
        fs::write(host.servers_file(), Servers::none().and("mine", inside).text(host.path())).unwrap();
        let mut command = mounted_again(&host.run_of(&["true"]), host.path(), &again);
        Running::start(&mut command).ends().fails(2, &["server \"mine\"", "again/work/server.py", "trustFolder"]);
    }
}

#[test]
fn state_and_sockets_are_not_kept_below_a_folder_that_others_can_change() {
    for (name, found) in [("FOOTBRIDGE_STATE", "st"), ("FOOTBRIDGE_RUNTIME", "rt")] {
        let host = Host::with(&Servers::none());
        let open = host.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        symlink(host.path(), open.join("link")).unwrap();
        let host = [open.join(found), open.join("link/new")].into_iter().fold(host, |host, below| {
            let host = host.env(name, &below);
            host.runs(&["true"]).fails(2, &[below.to_str().unwrap(), "written to by others", name]);
            assert!(!below.exists());
            host
        });
        host.leaves_nothing_behind();
    }
}
