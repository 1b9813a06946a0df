//! `footbridge run --sandbox podman` and `docker`, each with images made from static programs: what a container sees, and
//! that nothing of it stays, whoever is killed; and containers that others start ([`development`]).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod development;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
    process::Command,
    time::Instant,
};

use footbridge_tests::{Engine, Host, PATIENCE, Person, Ran, Running, Servers, processes, skipped};
use nix::{libc, sys::signal::Signal};

trait Shell {
    fn shell(&self, script: &str) -> Running;
    fn shells(&self, script: &str) -> Ran;
}

impl Shell for Host {
    fn shell(&self, script: &str) -> Running {
        self.starts(&["sh", "-c", script])
    }

    fn shells(&self, script: &str) -> Ran {
        self.shell(script).ends()
    }
}

/// The way from nothing to a call, in an image that holds nothing at all.
fn the_four_steps_work(engine: &Engine) {
    let host = engine.host(Engine::NOTHING);
    assert!(host.runs(&["tool-cli"]).well().contains("demo"));
    assert!(host.runs(&["tool-cli", "demo"]).well().contains("get_weather"));
    assert!(host.runs(&["tool-cli", "demo", "get_weather"]).well().contains("city"));
    let weather = host.runs(&["tool-cli", "demo", "get_weather", r#"{"city": "Zürich"}"#]).well();
    assert!(weather.contains("temperature"), "{weather}");
    let intents = host.record().iter().filter(|line| line["type"] == "intent").count();
    assert_eq!(intents, 1);
    engine.leaves_nothing_behind();
}

fn the_status_is_that_of_the_command(engine: &Engine) {
    let host = engine.host(Engine::TOOLS);
    for (script, status) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        assert_eq!(host.shells(script).status, status, "{script}");
    }
    host.runs(&["no-such-program"]).fails(127, &["no-such-program"]);
    host.runs(&["/bin"]).fails(126, &["/bin"]);
}

#[test]
fn an_image_with_nothing_in_it_reaches_tools() {
    for engine in Engine::each("an_image_with_nothing_in_it_reaches_tools") {
        the_four_steps_work(&engine);
    }
}

/// Its volume is mounted last, since its path is the longest, and leads by a link to where the session's folder is.
#[test]
fn an_image_does_not_put_its_own_program_in_the_place_of_the_relay() {
    for engine in Engine::each("an_image_does_not_put_its_own_program_in_the_place_of_the_relay") {
        let folder = tempfile::tempdir().unwrap();
        let (root, archive) = (folder.path().join("root"), folder.path().join("image.tar"));
        let programs = root.join("run/footbridge/bin");
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(root.join("a/b/c/d")).unwrap();
        std::os::unix::fs::symlink("/run/footbridge", root.join("a/b/c/d/e")).unwrap();
        // Another program than the relay, which says so of itself.
        fs::copy(footbridge_tests::programs::tool_cli(), programs.join("footbridge-relay")).unwrap();
        let packed = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").status();
        assert!(packed.unwrap().success());
        engine.imports(&archive, "VOLUME /a/b/c/d/e", "footbridge-test-hostile");
        let ran = engine.host("footbridge-test-hostile").runs(&["tool-cli", "demo"]);
        ran.fails(125, &["footbridge-relay: /run/footbridge is not what was looked at before"]);
        engine.leaves_nothing_behind();
    }
}

#[test]
fn a_debian_reaches_tools_with_its_own_programs() {
    let test = "a_debian_reaches_tools_with_its_own_programs";
    for engine in Engine::each(test) {
        let Some(image) = engine.debian(test) else { continue };
        let host = engine.host(image);
        let script = "set -euo pipefail; . /etc/os-release; echo $ID; \
                  tool-cli demo get_weather '{\"city\": \"Bern\"}' | perl -ne 'print \"$1\\n\" if /\"(temperature)\"/'; \
                  for city in Bern Oslo; do tool-cli demo get_weather \"{\\\"city\\\": \\\"$city\\\"}\"; done | grep -c city; \
                  dpkg --version | sed -n '1s, .*,,p'; apt-get install -y hello >/dev/null 2>&1 || echo no network";
        let ran = host.runs(&["bash", "-c", script]);
        assert_eq!(ran.well(), "debian\ntemperature\n2\nDebian\nno network\n");
        engine.leaves_nothing_behind();
    }
}

#[test]
fn statuses_streams_and_signals_pass_through() {
    for engine in Engine::each("statuses_streams_and_signals_pass_through") {
        the_status_is_that_of_the_command(&engine);
        let host = engine.host(Engine::TOOLS);
        let much: String = (0..300_000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
        let mut running = host.shell("cat; echo its end >&2; exit 4");
        running.hears(&much);
        let ran = running.ends();
        assert_eq!((ran.status, ran.stderr.as_str()), (4, "its end\n"));
        assert!(ran.stdout == much, "{} bytes came back", ran.stdout.len());
        for (signal, name) in [(Signal::SIGTERM, "TERM"), (Signal::SIGINT, "INT"), (Signal::SIGHUP, "HUP")] {
            let script = format!("trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done");
            let mut running = host.shell(&script);
            running.stdout.shows("ready\n");
            running.signal(signal);
            let ran = running.ends();
            assert_eq!((ran.status, ran.stdout.as_str()), (7, format!("ready\ngot {name}\n").as_str()), "{ran:?}");
        }
        engine.leaves_nothing_behind();
    }
}

#[test]
fn a_container_has_its_one_port_and_nothing_of_the_host() {
    for engine in Engine::each("a_container_has_its_one_port_and_nothing_of_the_host") {
        let host = engine.host(Engine::TOOLS);
        let script = "sed 1,2d /proc/net/dev | sed 's/:.*//; s/ //g'; nc -w 2 192.0.2.1 9 </dev/null || echo no way out; \
                  grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status | sed 's/.*\t//'; \
                  touch /x 2>/dev/null || echo read-only; touch /run/footbridge/x 2>/dev/null || echo this too; \
                  touch /tmp/x && echo a place to write; ls /run/footbridge; ls /run/footbridge/bin; \
                  head -n 1 /proc/1/cmdline | grep -o footbridge-relay | head -n 1";
        let ran = host.shells(script);
        let none = "0000000000000000\n".repeat(5);
        let expected = format!(
            "lo\nno way out\n{none}1\nread-only\nthis too\na place to write\nbin\nfootbridge.sock\n\
         footbridge-relay\ntool-cli\nfootbridge-relay\n"
        );
        assert_eq!(ran.stdout, expected, "{ran:?}");

        let host = host.env("EDITOR", "vi").env("ASKED", "for").env("HTTPS_PROXY", "http://user:pass@192.0.2.1:9");
        let host = host.option("--env=ASKED").option("--env=GIVEN=a b").option("--env=UNSET");
        let ran = host.runs(&["env"]);
        let told = "--env UNSET: this variable is not set here, so CMD does not get it\n";
        assert_eq!((ran.status, &*ran.stderr), (0, told), "{ran:?}");
        let printed = ran.stdout;
        let names: BTreeSet<&str> = printed.lines().filter_map(|line| line.split('=').next()).collect();
        let mut expected = BTreeSet::from(["ASKED", "GIVEN", "HOME", "HOSTNAME", "PATH"]);
        expected.extend(["TOOL_CLI_PORT", "TOOL_CLI_STYLE", "TOOL_CLI_TOKEN"]);
        // What Podman says of itself.
        expected.extend(["TERM", "container"].iter().filter(|_| engine.name() == "podman"));
        assert_eq!(names, expected, "{printed}");
        assert!(printed.contains("ASKED=for\n") && printed.contains("GIVEN=a b\n"), "{printed}");
        let path = printed.lines().find_map(|line| line.strip_prefix("PATH=")).unwrap();
        assert!(path.starts_with("/run/footbridge/bin:/"), "{path}");
        assert!(!printed.contains(host.path().to_str().unwrap()), "a path of the host: {printed}");
    }
}

/// What no network namespace holds, and what is the host's user's own: an engine's filter leaves both open.
#[test]
fn a_container_has_no_vsock_and_no_keyring() {
    let test = "a_container_has_no_vsock_and_no_keyring";
    for engine in Engine::each(test) {
        let perl = Path::new("/usr/bin/perl");
        if !perl.exists() || Path::new("/lib").canonicalize().unwrap() != Path::new("/usr/lib") {
            return skipped(test, "no perl that all of /usr is enough for");
        }
        let mut host = engine.host(Engine::TOOLS);
        for (from, at) in [("/usr", "/usr"), ("/usr/lib", "/lib"), ("/usr/lib64", "/lib64")] {
            if Path::new(from).exists() {
                host = host.option(format!("--engine-arg=--volume={from}:{at}:ro"));
            }
        }
        let calls = [libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key, libc::SYS_io_uring_setup];
        let script = "print socket(S, 40, 1, 0) ? 'vsock' : $!+0, qq(\\n); \
                  for (@ARGV) { my $r = syscall($_ + 0, 0, 0, 0, 0, 0); print $r < 0 ? $!+0 : $r, qq(\\n) }";
        let numbers = calls.map(|call| call.to_string());
        let words: Vec<&str> =
            ["/usr/bin/perl", "-e", script].into_iter().chain(numbers.iter().map(String::as_str)).collect();
        assert_eq!(host.runs(&words).well(), "1\n".repeat(5));
        let nested = "unshare -U true 2>/dev/null && echo made; echo end";
        assert_eq!(host.runs(&["/usr/bin/sh", "-c", nested]).stdout, "end\n");
        let told = "footbridge-relay --listen tcp:127.0.0.1:0 --to vsock:host:7179 --filter -- true";
        host.shells(told).fails(2, &["refuses AF_VSOCK"]);
    }
}

#[test]
fn users_that_are_strangers_to_the_host_reach_tools() {
    let Some(engine) = Engine::podman("users_that_are_strangers_to_the_host_reach_tools") else { return };
    let script = "id -u; tool-cli demo list_cities '{}' | cut -c 1-9; cat /run/footbridge/footbridge.sock.lock 2>&1 | grep -o 'No such file'";
    let host = engine.host(Engine::TOOLS).option("--engine-arg=--user=4321");
    assert_eq!(host.shells(script).stdout, "4321\n{\"cities\"\nNo such file\n");
    // As without root: user 0 inside is a stranger outside.
    let mapped = ["--engine-arg=--uidmap=0:100000:65536", "--engine-arg=--gidmap=0:100000:65536"];
    let host = mapped.iter().fold(engine.host(Engine::TOOLS), Host::option);
    assert_eq!(host.shells(script).stdout, "0\n{\"cities\"\nNo such file\n");
}

#[test]
fn what_must_not_be_mounted_is_refused_however_it_is_typed() {
    for engine in Engine::each("what_must_not_be_mounted_is_refused_however_it_is_typed") {
        let project = tempfile::tempdir().unwrap();
        let (place, config) = (project.path().display(), project.path().join("servers.json"));
        fs::write(&config, r#"{"mcpServers": {"s": {"command": "true", "env": {"K": {"file": "./key"}}}}}"#).unwrap();
        fs::write(project.path().join("key"), "secret").unwrap();
        fs::set_permissions(project.path().join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        let with = |args: &[String]| {
            let host = engine.host(Engine::TOOLS);
            args.iter().fold(host, |host, arg| host.option(arg)).shells(":")
        };
        let secret = with(&[format!("--config={}", config.display()), format!("--engine-arg=--volume={place}:/m:ro")]);
        secret.fails(2, &["key is a secret of the configuration, and would show in the container"]);
        fs::write(&config, r#"{"mcpServers": {}}"#).unwrap();
        for mount in [
            "--volume=@:/m",
            "-iv=@:/m",
            "--mount=type=bind,\"source=@\",target=/m",
            "--mount=type=bind,src=@,dst=/m,ro=False",
        ] {
            let arg = format!("--engine-arg={}", mount.replace('@', &place.to_string()));
            let ran = with(&[format!("--config={}", config.display()), arg]);
            ran.fails(2, &["servers.json is obeyed here, and in a folder that the container can write", ":ro"]);
        }
        let host = engine.host(Engine::TOOLS);
        let own = host.servers_file().parent().unwrap().to_owned();
        let ran = host.option(format!("--engine-arg=--volume={}:/m:ro", own.display())).shells(":");
        ran.fails(2, &["Footbridge keeps its own files in", "mount another folder"]);
        for arg in ["--name=mine", "--detach", "--volumes-from=other"] {
            with(&[format!("--engine-arg={arg}")]).fails(2, &[arg, "leave it out"]);
        }
        let opened = with(&["--engine-arg=--security-opt=seccomp=unconfined".to_owned()]);
        assert_eq!(opened.status, 0, "{opened:?}");
        assert!(
            opened.stderr.contains("less isolated by --engine-arg: --security-opt=seccomp=unconfined"),
            "{opened:?}"
        );
        let hooks = project.path().join(".git/hooks");
        fs::create_dir_all(&hooks).unwrap();
        let opened = with(&[format!("--engine-arg=--volume={}:/m", hooks.display())]);
        assert_eq!(opened.status, 0, "{opened:?}");
        assert!(opened.stderr.contains(".git/hooks (what is written there runs, or is obeyed, outside)"), "{opened:?}");
    }
}

/// A command of an earlier run put a link in place of a folder of the project.
#[test]
fn a_link_that_a_container_left_decides_nothing_about_the_next_one() {
    let test = "a_link_that_a_container_left_decides_nothing_about_the_next_one";
    for engine in Engine::each(test) {
        let host = engine.host(Engine::TOOLS);
        let home = host.path().join("some home");
        let project = tempfile::tempdir().unwrap();
        fs::set_permissions(project.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = project.path().canonicalize().unwrap();
        for folder in ["bin", ".ssh"] {
            fs::create_dir_all(home.join(folder)).unwrap();
            fs::write(home.join(folder).join("id"), "KEY").unwrap();
        }
        fs::create_dir(place.join("real")).unwrap();
        std::os::unix::fs::symlink("real", place.join("inside")).unwrap();
        let host = host.env("HOME", &home);
        let mounting = |host: Host, name: &str, options: &str| {
            host.option(format!("--engine-arg=--volume={}/{name}:/m{options}", place.display()))
        };
        for (options, to, why) in [("", "bin", "which is elsewhere"), (":ro", ".ssh", "which is hidden")] {
            let left = format!("--engine-arg=--volume={}:/m", place.display());
            let link = format!("rm -f /m/src; ln -s '{}/{to}' /m/src", home.display());
            assert_eq!(engine.host(Engine::TOOLS).option(left).shells(&link).status, 0);
            let ran = mounting(engine.host(Engine::TOOLS).env("HOME", &home), "src", options)
                .shells("cat /m/id; echo x >/m/x");
            ran.fails(2, &["--engine-arg with the source", "/src leads by the link", why]);
            assert!(!ran.stdout.contains("KEY") && !home.join(to).join("x").exists(), "{ran:?}");
        }
        let ran = mounting(host, "inside", "").shells("echo x >/m/x; echo end");
        assert_eq!((ran.stdout.as_str(), place.join("real/x").exists()), ("end\n", true), "{ran:?}");
        let missing = engine.host(Engine::TOOLS).option(format!("--engine-arg=-v{}/none:/m", place.display()));
        missing.shells(":").fails(2, &["/none: No such file", "mount something that is there"]);
        let colon = engine.host(Engine::TOOLS).option(format!("--engine-arg=-v{}/a\\:b:/m", place.display()));
        colon.shells(":").fails(2, &["--engine-arg=--mount=type=bind,source=PATH"]);
    }
}

/// As another container does that can write there, at the worst moment: the engine is a script that does it first.
#[test]
fn what_is_replaced_while_a_container_is_made_is_not_shown_to_its_command() {
    let test = "what_is_replaced_while_a_container_is_made_is_not_shown_to_its_command";
    for engine in Engine::each(test) {
        let project = tempfile::tempdir().unwrap();
        fs::set_permissions(project.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = project.path().canonicalize().unwrap();
        for folder in ["src", "secrets", "bin"] {
            fs::create_dir(place.join(folder)).unwrap();
        }
        fs::write(place.join("secrets/key"), "KEY").unwrap();
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *\" run --rm \"*) cd {} && mv src away && ln -s secrets src;; esac\n\
         PATH=${{PATH#*:}}\nexec {} \"$@\"\n",
            place.display(),
            engine.name()
        );
        footbridge_tests::programs::writes(&place.join("bin").join(engine.name()), &script);
        let path = format!("{}:{}", place.join("bin").display(), engine.search_path());
        let host = engine.host(Engine::TOOLS).env("PATH", path);
        let host = host.option(format!("--engine-arg=--volume={}/src:/m", place.display()));
        let ran = host.shells("cat /m/key; echo ran");
        ran.fails(125, &["/m is not what was looked at before"]);
        assert_eq!(ran.stdout, "", "{ran:?}");
        engine.leaves_nothing_behind();
    }
}

#[test]
fn nothing_is_left_of_an_engine_that_does_not_answer_where_the_harness_is_killed() {
    let host = Host::with(&Servers::none()).sandbox("podman").option("--image=x");
    let bin = host.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\n/bin/sleep 600 {0} &\necho {0} >&2\nwait\n", host.path().display());
    footbridge_tests::programs::writes(
        &bin.join("podman"),
        &script.replace("/bin/sleep 600", "/bin/sh -c 'sleep 600; :'"),
    );
    let host = host.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let mut running = host.starts(&["true"]);
    let deadline = Instant::now() + PATIENCE;
    while !processes::naming(host.path()).iter().any(|process| process.arguments.contains("sleep 600; :")) {
        assert!(Instant::now() < deadline, "the engine is not asked");
    }
    running.killed();
    host.leaves_nothing_behind();
}

/// Podman without root has one: it holds the namespaces of all its user's commands. The engine is a script that does so.
#[test]
fn a_process_that_an_engine_needs_beyond_one_question_stays() {
    let host = Host::with(&Servers::demo()).sandbox("podman").option("--image=x");
    let folder = host.path().join("bin");
    fs::create_dir(&folder).unwrap();
    let script = "#!/bin/sh\ncase $1 in image) setsid sleep 600 >/dev/null 2>&1 & echo $! >PID;; \
                  run) kill -0 $(cat PID) && echo it lives;; esac\n";
    let pid = folder.join("pid");
    footbridge_tests::programs::writes(&folder.join("podman"), &script.replace("PID", &pid.display().to_string()));
    let host = host.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let ran = host.runs(&["true"]);
    let left = processes::open(fs::read_to_string(pid).unwrap().trim().parse().unwrap());
    left.iter().for_each(processes::Process::kill);
    assert_eq!((ran.well().as_str(), left.is_some()), ("it lives\n", true));
}

/// Read-only or not, it can connect to them. The engine is a script that says yes to everything.
#[test]
fn what_listens_in_what_is_mounted_is_said() {
    let host = Host::with(&Servers::demo()).sandbox("podman").option("--image=x");
    let (folder, mounted) = (host.path().join("bin"), host.path().join("mounted"));
    for one in [&folder, &mounted] {
        fs::create_dir(one).unwrap();
    }
    footbridge_tests::programs::writes(&folder.join("podman"), "#!/bin/sh\nexit 0\n");
    let host = host.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let of = |path: &Path| format!("--engine-arg=--volume={}:/m:ro", path.display());
    drop(UnixListener::bind(mounted.join("left")).unwrap());
    let host = host.option(of(&mounted));
    assert_eq!(host.runs(&["true"]).stderr, "");
    let _listener = UnixListener::bind(mounted.join("s")).unwrap();
    let said = format!("programs here listen at {}/s, and the command can connect", mounted.display());
    host.runs(&["true"]).fails(0, &[&said]);
    let itself = Host::with(&Servers::demo()).sandbox("podman").option("--image=x").option(of(&mounted.join("s")));
    itself.env("PATH", folder).runs(&["true"]).fails(0, &[&said]);
}

/// As Docker's client, whose daemon was killed while it ran a container that goes on.
#[test]
fn where_an_engine_does_not_say_that_its_container_is_gone_what_it_left_is_for_the_next_run() {
    let host = Host::with(&Servers::demo()).sandbox("podman").option("--image=x");
    let (folder, mounted) = (host.path().join("bin"), host.path().join("mounted"));
    for one in [&folder, &mounted] {
        fs::create_dir(one).unwrap();
    }
    let answers = |removal: &str| {
        let script =
            format!("#!/bin/sh\nfor word; do case $word in rm) {removal};; run) exit 125;; esac; done\nexit 0\n");
        footbridge_tests::programs::writes(&folder.join("podman"), &script);
    };
    let host = host.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let host = host.option(format!("--engine-arg=--volume={}:/m", mounted.display()));
    answers("echo 'Cannot connect to the daemon' >&2; exit 1");
    fs::create_dir(mounted.join(".vscode")).unwrap();
    let said = format!(
        "something of the command may be left: what the command left that others run or obey, in {}",
        mounted.display()
    );
    host.runs(&["true"]).fails(125, &[&said]);
    for gone in ["echo 'Error: no such container' >&2; exit 1", "exit 0", "echo its-name; exit 0"] {
        answers(gone);
        let ran = host.runs(&["true"]);
        assert!(ran.status == 125 && !ran.stderr.contains("may be left"), "{gone}: {ran:?}");
    }
}

#[test]
fn what_a_container_wrote_that_others_run_or_obey_is_named_at_the_end() {
    for engine in Engine::each("what_a_container_wrote_that_others_run_or_obey_is_named_at_the_end") {
        let project = tempfile::tempdir().unwrap();
        let git = Command::new("git").args(["init", "-q"]).current_dir(project.path()).status();
        assert!(git.unwrap().success());
        fs::set_permissions(project.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for folder in [".vscode", ".husky/_"] {
            fs::create_dir_all(project.path().join(folder)).unwrap();
        }
        for name in [".envrc", ".vscode/tasks.json", ".husky/_/h"] {
            fs::write(project.path().join(name), "as it was\n").unwrap();
        }
        let host = engine.host(Engine::TOOLS);
        let host = host.option(format!("--engine-arg=--volume={}:/mounted", project.path().display()));
        let nothing = host.shells("ls /mounted >/dev/null; echo x >/mounted/harmless");
        assert_eq!((nothing.status, nothing.stderr.as_str()), (0, ""));
        let ran =
        host.shells("cd /mounted; echo x >>.envrc; echo x >>.vscode/tasks.json; echo x >>.husky/_/h; echo x >.git/hooks/pre-commit; mkdir -p deep/er/.git; ln -s / out");
        for name in [".envrc", ".vscode", ".husky", ".git/hooks", "deep/er/.git", "out"] {
            assert!(
                ran.stderr.contains(&format!("{}/{name}", project.path().canonicalize().unwrap().display())),
                "{ran:?}"
            );
        }
        assert_eq!(ran.status, 0, "{ran:?}");
    }
}

#[test]
fn the_token_is_in_no_argument_of_any_process() {
    for engine in Engine::each("the_token_is_in_no_argument_of_any_process") {
        let host = engine.host(Engine::TOOLS);
        let mut running = host.shell("echo $TOOL_CLI_TOKEN; read end");
        let token = running.stdout.line();
        assert!(token.starts_with("fbt_") && token.len() > 40, "{token}");
        assert!(engine.init().arguments.contains("footbridge-relay --path-first"), "the container runs");
        assert_eq!(processes::with_argument(&token), Vec::<String>::new());
        assert_eq!(running.ends().status, 1);
    }
}

/// Processes that try to outlive the command.
const LEAVERS: &str = "trap '' TERM HUP INT; sleep 600 & (sleep 600 &) ; echo ready; read end; exit 5";

#[test]
fn nothing_is_left_when_the_command_ends_nor_when_either_side_is_killed() {
    let name = "nothing_is_left_when_the_command_ends_nor_when_either_side_is_killed";
    for engine in Engine::each(name) {
        let host = engine.host(Engine::TOOLS);
        let start = || {
            let mut running = host.shell(LEAVERS);
            running.stdout.shows("ready\n");
            let init = engine.init();
            assert!(init.arguments.contains("footbridge-relay"), "{init:?}");
            (running, init)
        };
        let (running, init) = start();
        assert_eq!(running.ends().status, 5);
        init.ends();
        engine.leaves_nothing_behind();
        assert!(host.run_folders().is_empty());

        let (running, init) = start();
        let client = format!("{} ", engine.names());
        let all = processes::naming(host.path());
        let client = all
            .iter()
            .find(|p| p.arguments.contains(&format!("{} ", engine.name())) && p.arguments.contains(&client))
            .unwrap();
        client.kill();
        assert_eq!(running.ends().status, 137, "the client's end");
        init.ends();
        engine.leaves_nothing_behind();
        assert!(host.run_folders().is_empty());

        let (mut running, init) = start();
        running.killed();
        init.ends();
        engine.leaves_nothing_behind();
        host.leaves_nothing_behind();
        // What is left is its folder, which the next run sweeps up.
        assert_eq!(host.run_folders().len(), 1);
        assert_eq!(host.shells("exit 0").status, 0);
        assert!(host.run_folders().is_empty());
    }
}

/// Its container is an orphan then, and the keeper's; Podman waits until that is gone.
#[test]
fn nothing_is_left_when_the_monitor_of_a_container_is_killed() {
    let Some(engine) = Engine::podman("nothing_is_left_when_the_monitor_of_a_container_is_killed") else { return };
    let host = engine.host(Engine::TOOLS);
    let mut running = host.shell("echo ready; sleep 600");
    running.stdout.shows("ready\n");
    let monitors = processes::naming(engine.path()).into_iter();
    monitors.filter(|process| process.arguments.contains("/conmon ")).for_each(|process| process.kill());
    // The engine's client gives up after 20 s.
    assert_ne!(running.ends().status, 0);
    engine.leaves_nothing_behind();
}

#[test]
fn nothing_is_left_when_the_harness_is_killed_while_a_container_starts() {
    let name = "nothing_is_left_when_the_harness_is_killed_while_a_container_starts";
    for engine in Engine::each(name) {
        let host = engine.host(Engine::TOOLS);
        // The keeper, the engine's client, and its helper, which starts the container.
        for (folder, stage) in
            [(host.path(), "__keeper"), (host.path(), " run --rm "), (engine.path(), engine.starter())]
        {
            let mut running = host.shell("sleep 600");
            let deadline = Instant::now() + PATIENCE;
            while !processes::naming(folder).iter().any(|process| process.arguments.contains(stage)) {
                assert!(Instant::now() < deadline, "{stage} does not show");
            }
            running.killed();
            let killed = Instant::now();
            host.leaves_nothing_behind();
            engine.leaves_nothing_behind();
            println!("{stage:?}: nothing left after {:?}", killed.elapsed());
        }
    }
}

/// A daemon makes what it was asked for, also for a client that is gone.
#[test]
fn a_container_that_comes_after_its_client_is_gone_is_removed() {
    let Some(engine) = Engine::docker("a_container_that_comes_after_its_client_is_gone_is_removed") else { return };
    // Of many files, so that it takes a moment.
    let host = engine.host(engine.development());
    let layers = || std::fs::read_dir(engine.path().join("data/vfs/dir")).unwrap().count();
    let before = layers();
    for _round in 0..4 {
        let mut running = host.shell("sleep 600");
        let deadline = Instant::now() + PATIENCE;
        // Its layers appear before it does.
        while layers() == before {
            assert!(Instant::now() < deadline, "no container is made");
        }
        let clients = processes::naming(host.path()).into_iter();
        clients.filter(|process| process.arguments.contains(" run --rm ")).for_each(|process| process.kill());
        // Not ended: that would take away what is to be mounted, and then the daemon makes no container.
        running.killed();
        while layers() > before {
            assert!(Instant::now() < deadline, "left behind: {}", engine.names());
        }
    }
    host.leaves_nothing_behind();
    engine.leaves_nothing_behind();
}

#[test]
fn a_relay_that_nobody_ends_ends_with_its_lifeline() {
    for engine in Engine::each("a_relay_that_nobody_ends_ends_with_its_lifeline") {
        let host = engine.host(Engine::TOOLS);
        let mut running = host.shell("trap '' TERM; echo ready; sleep 600 & wait; sleep 600");
        running.stdout.shows("ready\n");
        let init = engine.init();
        // The keeper first, and with it the client: nobody is left to tell the engine.
        let all = processes::naming(host.path());
        let keeper =
            all.iter().find(|process| process.arguments.contains("__keeper") && is_above(process.pid, &engine));
        keeper.unwrap().kill();
        running.killed();
        init.ends();
        engine.leaves_nothing_behind();
    }
}

/// Whether the process has a child that is the engine's client.
fn is_above(pid: i32, engine: &Engine) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut children = children.split_whitespace().filter_map(|child| processes::open(child.parse().ok()?));
    children.any(|child| child.arguments.contains(&engine.names()))
}

#[test]
fn a_person_s_container_has_a_terminal() {
    for engine in Engine::each("a_person_s_container_has_a_terminal") {
        let host = engine.host(Engine::TOOLS).env("TERM", "vt100");
        let mut person = Person::new();
        // The engine tells the container's terminal its size a moment after the start.
        let script = "until stty size | grep '33 77'; do sleep 0.05; done; echo $TERM; trap 'echo stopped; exit 9' INT; read line; echo \"heard $line\"; \
                  tool-cli demo list_cities '{}' | head -n 2; while :; do sleep 0.05; done";
        let mut running = person.starts(&host.run_of(&["sh", "-c", script]));
        person.sees("33 77\r\nvt100\r\n");
        person.types("hello\r");
        person.sees("heard hello\r\n");
        person.sees("\"cities\"");
        person.types("\u{3}");
        person.sees("stopped");
        assert_eq!(running.status().code(), Some(9));
        engine.leaves_nothing_behind();
    }
}

#[test]
fn a_person_is_asked_about_the_calls_of_a_container() {
    for engine in Engine::each("a_person_is_asked_about_the_calls_of_a_container") {
        let host = engine.host(Engine::TOOLS).policy("ask").env("TERM", "vt100");
        let mut person = Person::new();
        let script = "tool-cli demo add_note '{\"text\":\"one\"}'; echo after";
        let mut running = person.starts(&host.run_of(&["sh", "-c", script]));
        person.sees("footbridge run: 1 waiting");
        let id = host.pending(1)[0]["id"].as_str().unwrap().to_owned();
        person.sees(&id);
        host.answers(&["allow", &id]);
        person.sees("note:///1");
        person.sees("after");
        assert!(running.status().success());
        engine.leaves_nothing_behind();
    }
}

#[test]
fn what_is_missing_is_named_with_the_next_step() {
    let demo = || Host::with(&Servers::demo());
    demo().sandbox("podman").runs(&["true"]).fails(2, &["--image"]);
    demo().option("--image=x").runs(&["true"]).fails(2, &["--sandbox podman"]);
    demo().option("--engine-arg=--rm").runs(&["true"]).fails(2, &["--sandbox podman"]);
    let nothing = tempfile::tempdir().unwrap();
    for engine in ["podman", "docker"] {
        let host = demo().sandbox(engine).option("--image=x").env("PATH", nothing.path());
        host.runs(&["true"]).fails(125, &[&format!("cannot find {engine} on PATH"), "--sandbox net"]);
        // One that refuses everything, with an escape sequence for whoever reads it.
        let program = nothing.path().join("bin").join(engine);
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        footbridge_tests::programs::writes(&program, "#!/bin/sh\nprintf 'no \\033[31mdaemon\\n' >&2\nexit 1\n");
        let ran = host.env("PATH", program.parent().unwrap()).runs(&["true"]);
        ran.fails(125, &[&format!("{engine} does not work here"), &format!("{engine} version"), "no "]);
        assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
    }
    let Some(engine) = Engine::podman("what_is_missing_is_named_with_the_next_step") else { return };
    engine.host("no-such-image").runs(&["true"]).fails(125, &["podman pull no-such-image"]);
    let host = engine.host(Engine::TOOLS).option("--engine-arg=--no-such-flag");
    host.runs(&["true"]).fails(125, &["no-such-flag", "podman ended with 125", "--engine-arg"]);
    let entry = serde_json::json!({"command": "false", "env": {"KEY": "${SECRET}"}});
    let host = Host::with(&Servers::none().and("x", entry)).sandbox("podman").option("--image=x").env("SECRET", "s");
    host.option("--env=SECRET").runs(&["true"]).fails(2, &["--env SECRET would show"]);
}
