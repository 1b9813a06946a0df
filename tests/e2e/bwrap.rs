//! `footbridge run --sandbox bwrap`: the promises of `net`, and files that can be read but not written.

use std::{
    fs,
    io::Read as _,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        net::UnixListener,
    },
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use footbridge_tests::{Host, NOBODY, Person, Running, Servers, processes, programs, sandboxes, skipped, starting};
use nix::sys::signal::Signal;
use serde_json::json;

fn host() -> Host {
    Host::with(&Servers::demo()).sandbox("bwrap")
}

#[test]
fn status_streams_and_signals_are_those_of_the_command() {
    if !sandboxes::works("status_streams_and_signals_are_those_of_the_command", "bwrap", None) {
        return;
    }
    let host = host();
    for (script, status) in
        [("exit 0", 0), ("exit 1", 1), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    {
        let ran = host.runs_script(script);
        assert_eq!((ran.status, ran.stderr.as_str()), (status, ""), "{script}");
    }
    host.runs(&["no-such-program"]).fails(127, &["no-such-program"]);
    let file = host.work().join("not-executable");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    host.runs(&[file.to_str().unwrap()]).fails(126, &["chmod +x"]);
    let mut running = host.starts_script("cat; echo its end >&2");
    let much = "abc".repeat(100_000);
    running.hears(&much);
    let ran = running.ends();
    assert!(ran.stdout == much && ran.stderr == "its end\n", "{}", ran.stderr);
    for (signal, name) in [(Signal::SIGTERM, "TERM"), (Signal::SIGINT, "INT"), (Signal::SIGHUP, "HUP")] {
        let script = format!("trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done");
        let mut running = host.starts_script(&script);
        running.stdout.shows("ready\n");
        running.signal(signal);
        let ran = running.ends();
        assert_eq!((ran.status, ran.stdout.as_str()), (7, format!("ready\ngot {name}\n").as_str()));
    }
    let mut running = host.starts(&["sh", "-c", "echo ready; exec sleep 600"]);
    running.stdout.shows("ready\n");
    running.signal(Signal::SIGTERM);
    assert_eq!(running.ends().status, 128 + 15);
}

#[test]
fn a_sandbox_has_no_network_no_capability_and_sees_only_itself() {
    if !sandboxes::works("a_sandbox_has_no_network_no_capability_and_sees_only_itself", "bwrap", None) {
        return;
    }
    let host = host();
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let script = format!(
        "sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '; \
         TOOL_CLI_PORT={port} tool-cli --exit-codes 2>/dev/null; echo $?; tool-cli >/dev/null; echo $?; \
         grep -E 'Cap|NoNewPrivs' /proc/self/status | cut -f2; cat /proc/1/comm; set -- /proc/[0-9]*; echo $#; \
         ls /proc/self/fd | wc -l; (sleep 0 & exec sleep 0.2); \
         for n in {{1..100}}; do ps -eo stat= | grep -q Z || break; sleep 0.1; done; ps -eo stat= | grep -c Z"
    );
    let ran = host.runs_script(&script);
    let none = "0000000000000000\n".repeat(5);
    // bash and the relay; the listing's own descriptor is the fourth.
    assert_eq!(ran.stdout, format!("lo\n3\n0\n{none}1\nfootbridge-rela\n2\n4\n0\n"), "{ran:?}");
    outside.set_nonblocking(true).unwrap();
    assert_eq!(outside.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn system_calls_that_lead_out_are_refused() {
    if !sandboxes::works("system_calls_that_lead_out_are_refused", "bwrap", None) {
        return;
    }
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        return skipped("system_calls_that_lead_out_are_refused", "python3 is missing");
    }
    let script = "import ctypes, errno, socket\n\
                  try: socket.socket(socket.AF_VSOCK)\n\
                  except OSError as e: print(errno.errorcode[e.errno])\n\
                  libc = ctypes.CDLL(None, use_errno=True)\n\
                  libc.syscall(425, 1, 0)\n\
                  print(errno.errorcode[ctypes.get_errno()])";
    assert_eq!(host().runs(&["python3", "-I", "-c", script]).well(), "EPERM\nEPERM\n");
}

#[test]
fn only_the_working_folder_and_tmp_can_be_written_to_and_secrets_are_empty() {
    if !sandboxes::works("only_the_working_folder_and_tmp_can_be_written_to_and_secrets_are_empty", "bwrap", None) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("key");
    fs::write(&secret, "value-in-a-file\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.path().join("other"), "not a secret\n").unwrap();
    let entry = json!({"command": programs::footbridge(), "args": ["demo-server"],
        "env": {"KEY": {"file": secret}, "OF_WORK": {"file": "work/key"}}});
    let host = Host::with(&Servers::none().and("demo", entry)).sandbox("bwrap");
    let of_work = host.work().join("key");
    fs::write(&of_work, "value-in-the-folder-of-work\n").unwrap();
    fs::set_permissions(&of_work, fs::Permissions::from_mode(0o600)).unwrap();
    // All of /tmp is another one inside.
    let host = host.option("--show").option(folder.path());
    let shared = tempfile::tempdir().unwrap();
    fs::write(shared.path().join("in-tmp"), "").unwrap();
    let script = format!(
        "touch here && echo written; touch /tmp/x && echo in tmp; ls {shared} 2>/dev/null | wc -l; \
         cat {folder}/key key | wc -c; cat {folder}/other; \
         for f in {folder}/new {folder}/key {folder}/other /etc/x /usr/x /run/x /var/x /sys/x; do \
           echo x 2>/dev/null >$f && echo wrote $f; done; \
         cat ../servers.json | wc -c; find ../state -mindepth 1 | wc -l; ls ../rt | sed 's/-.*//'; ls ../rt/*/s; \
         touch ../rt/x 2>/dev/null || echo no; rm -f ../rt/*/s/footbridge.sock 2>/dev/null || echo nor that; \
         tr '\\0' '\\n' </proc/1/cmdline | grep -cx -e --ro-bind; tool-cli demo list_cities '{{}}' | cut -c 1-9",
        folder = folder.path().display(),
        shared = shared.path().display(),
    );
    let ran = host.runs_script(&script);
    let expected = "written\nin tmp\n0\n0\nnot a secret\n0\n0\nrun\nbin\nfootbridge.sock\nno\nnor that\n\
                    0\n{\"cities\"\n";
    assert_eq!(ran.stdout, expected, "{ran:?}");
    assert!(host.work().join("here").exists());
    assert!(fs::read_to_string(&secret).unwrap().contains("value"));
    assert!(host.run_folders().is_empty(), "the run removed its folder");
}

#[test]
fn what_is_hidden_may_be_gone_before_bubblewrap_starts() {
    let test = "what_is_hidden_may_be_gone_before_bubblewrap_starts";
    if !sandboxes::works(test, "bwrap", None) {
        return;
    }
    let Some(shared) = ["/srv", "/opt", "/var/lib", "/"].iter().find_map(|at| tempfile::tempdir_in(at).ok()) else {
        return skipped(test, "this user can make no folder outside of /tmp and the home folder");
    };
    let host = host();
    let sockets = [shared.path().join("s"), host.work().join("s")];
    let _listeners: Vec<UnixListener> = sockets.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
    // One that goes on only when the sockets are gone.
    let go = host.path().join("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let bin = host.path().join("first");
    fs::create_dir(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let waits = format!("#!/bin/sh\nPATH='{path}'\necho ready\ncat '{}'\nexec bwrap \"$@\"\n", go.display());
    programs::writes(&bin.join("bwrap"), &waits);
    let host = host.env("PATH", format!("{}:{path}", bin.display()));
    let mut running = host.starts_script("echo ran; ls");
    running.stdout.shows("ready\n");
    sockets.iter().for_each(|path| fs::remove_file(path).unwrap());
    fs::write(&go, "").unwrap();
    let ran = running.ends();
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "ready\nran\n", ""));
    assert!(!sockets[1].exists(), "nothing is left where it was");
}

#[test]
fn few_descriptors_are_enough_and_those_that_others_left_open_are_in_no_way() {
    if !sandboxes::works("few_descriptors_are_enough_and_those_that_others_left_open_are_in_no_way", "bwrap", None) {
        return;
    }
    let host = host();
    let command = host.run_of(&["sh", "-c", "ulimit -n"]);
    let mut limited = Command::new("bash");
    limited.args(["-c", "exec 24</dev/null 25</dev/null; ulimit -n 80; exec \"$0\" \"$@\""]);
    let ran = Running::start(&mut starting(&command, limited)).ends();
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "80\n"), "{ran:?}");
}

#[test]
fn folders_above_what_is_hidden_cannot_be_moved_away() {
    if !sandboxes::works("folders_above_what_is_hidden_cannot_be_moved_away", "bwrap", None) {
        return;
    }
    let host = host();
    let state = host.path().join("a/b/state");
    let place = host.path().to_owned();
    let host = host.env("FOOTBRIDGE_STATE", &state).working_in(place);
    let script = "tool-cli demo now '{}' >/dev/null; find a/b -mindepth 2 | wc -l; touch mine && echo mine; \
                  for f in a a/b a/b/state servers.json; do mv $f x 2>/dev/null && echo moved $f; done; \
                  for f in a/b/state rt servers.json; do \
                    unshare -Urm umount -l $f 2>/dev/null && echo unmounted $f; umount -l $f 2>/dev/null && echo $f; done; \
                  echo done";
    let ran = host.runs_script(script);
    assert_eq!(ran.stdout, "0\nmine\ndone\n", "{ran:?}");
    assert!(state.join("audit").is_dir());
}

#[test]
fn another_user_than_root_can_use_it() {
    if !nix::unistd::geteuid().is_root() {
        return skipped("another_user_than_root_can_use_it", "these tests do not run as root, so all of them show it");
    }
    if !sandboxes::works("another_user_than_root_can_use_it", "bwrap", Some(NOBODY)) {
        return;
    }
    let host = host();
    let own = json!({"mcpServers": {"demo": {"command": host.path().join("bin/footbridge"), "args": ["demo-server"]}}});
    fs::write(host.servers_file(), own.to_string()).unwrap();
    let host = host.as_user(NOBODY);
    let script = "id -u; id -g; cat ../servers.json | wc -c; tool-cli demo get_weather '{\"city\":\"Bern\"}' --out w; \
                  grep CapEff /proc/self/status | cut -f2; touch ../x 2>/dev/null; exit 4";
    let ran = host.runs_script(script);
    assert_eq!(ran.status, 4, "{ran:?}");
    assert_eq!(ran.stdout, format!("{NOBODY}\n{NOBODY}\n0\nWritten to: w\n0000000000000000\n"), "{ran:?}");
    assert_eq!(host.work().join("w").metadata().unwrap().uid(), NOBODY);
    assert!(!host.path().join("x").exists());
}

#[test]
fn the_token_is_in_no_argument_of_any_process() {
    if !sandboxes::works("the_token_is_in_no_argument_of_any_process", "bwrap", None) {
        return;
    }
    let host = host();
    let mut running = host.starts_script("echo $TOOL_CLI_TOKEN; read end");
    let token = running.stdout.line();
    assert!(token.starts_with("fbt_") && token.len() > 40, "{token}");
    assert!(!processes::with_argument("bwrap --unshare-all").is_empty());
    assert_eq!(processes::with_argument(&token), Vec::<String>::new());
    assert_eq!(running.ends().status, 1);
}

#[test]
fn nothing_is_left_whoever_is_killed() {
    if !sandboxes::works("nothing_is_left_whoever_is_killed", "bwrap", None) {
        return;
    }
    let host = host();
    let start = || {
        let script = "trap '' TERM HUP INT; sleep 600 & (setsid sleep 600 &); echo ready; read end; exit 5";
        let mut running: Running = host.starts_script(script);
        running.stdout.shows("ready\n");
        running
    };
    assert_eq!(start().ends().status, 5);
    host.leaves_nothing_behind();
    for part in ["bwrap --unshare-all", "footbridge-relay --ready-fd"] {
        let running = start();
        let all = processes::naming(host.path());
        // bubblewrap's own arguments name the relay too.
        let found = all
            .iter()
            .find(|p| p.arguments.contains(part) && p.arguments.contains("bwrap") == (part.contains("bwrap")));
        found.unwrap().kill();
        assert_eq!(running.ends().status, 137, "{part}");
        host.leaves_nothing_behind();
    }
    start().killed();
    host.leaves_nothing_behind();
}

#[test]
fn a_person_s_command_has_a_terminal_with_job_control() {
    if !sandboxes::works("a_person_s_command_has_a_terminal_with_job_control", "bwrap", None) {
        return;
    }
    let host = host().env("TERM", "xterm");
    let mut person = Person::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && echo all three; stty size; set -m; sleep 0 & wait $!; \
                  echo job $?; echo told >/dev/tty; trap 'echo stopped; exit 9' INT; read line; echo \"heard $line\"; \
                  read end";
    let mut running = person.starts(&host.run_of(&["bash", "-c", script]));
    person.sees("all three\r\n33 77\r\n");
    person.sees("job 0\r\ntold\r\n");
    person.types("hello\r");
    person.sees("heard hello\r\n");
    person.types("\u{3}");
    person.sees("stopped");
    assert_eq!(running.status().code(), Some(9));
}

#[test]
fn what_is_missing_or_refused_is_named_with_the_next_step() {
    let nothing = tempfile::tempdir().unwrap();
    let host = host().env("PATH", nothing.path());
    host.runs(&["true"]).fails(125, &["cannot find bwrap on PATH", "package bubblewrap", "--sandbox net"]);
    let program = nothing.path().join("bwrap");
    programs::writes(&program, "#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n");
    host.runs(&["true"]).fails(125, &["bwrap: no permissions\n", "could not make the sandbox", "userns"]);
    host.working_in("/").runs(&["true"]).fails(2, &["the working folder is /", "--write"]);
}

#[test]
fn what_bubblewrap_wrote_last_is_not_lost_where_it_is_read_slowly() {
    let bin = tempfile::tempdir().unwrap();
    // More than two pipes hold.
    programs::writes(
        &bin.path().join("bwrap"),
        "#!/bin/sh\nprintf '%0150000d\\nbwrap: no permissions\\n' 0 >&2\nexit 1\n",
    );
    let host = host().env("PATH", bin.path());
    let mut run = host.run_of(&["true"]).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Enough for a harness that does not wait to be gone.
    thread::sleep(Duration::from_secs(2));
    let mut said = String::new();
    run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(125));
    let (_zeros, said) = said.split_at(150_000);
    assert!(said.starts_with("\nbwrap: no permissions\n") && said.contains("could not make the sandbox"), "{said}");
}

#[test]
fn a_start_that_hangs_ends_by_the_second_signal_with_all_that_came_of_it() {
    let bin = tempfile::tempdir().unwrap();
    programs::writes(
        &bin.path().join("bwrap"),
        "#!/bin/sh\ntrap '' INT TERM\necho ready\nwhile :; do /bin/sleep 0.05; done\n",
    );
    let host = host().env("PATH", bin.path());
    let mut running = host.starts_script("true");
    running.stdout.shows("ready\n");
    running.signal(Signal::SIGINT);
    running.signal(Signal::SIGTERM);
    let ran = running.ends();
    assert!(ran.stderr.contains("interrupted twice before the command had started"), "{ran:?}");
    // Of two that come at once either may be the second.
    assert!([Signal::SIGINT, Signal::SIGTERM].map(|signal| 128 + signal as i32).contains(&ran.status), "{ran:?}");
    host.leaves_nothing_behind();
}
