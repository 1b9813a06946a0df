//! `footbridge run` as a script and as a person see it: statuses, streams, environment, what shows and what does not.

use std::{collections::BTreeSet, fs, net::TcpListener, os::unix::fs::MetadataExt, process::Command};

use footbridge_tests::{Host, NOBODY, Person, Running, Servers, processes, programs, skipped, starting};
use serde_json::json;

const SANDBOXES: [&str; 2] = ["net", "none"];

/// What `--sandbox none` says of itself.
const WARNING: &str = "footbridge: --sandbox none isolates nothing: this command can reach all that its user can\n";

#[test]
fn the_status_is_that_of_the_command() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        for (script, status) in
            [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
        {
            assert_eq!(host.runs_script(script).status, status, "{sandbox}: {script}");
        }
    }
}

#[test]
fn a_command_that_cannot_be_run_is_named_with_the_status_that_shells_give() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        host.runs(&["no-such-program"]).fails(127, &["no-such-program"]);
        let file = host.work().join("not-executable");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        let file = file.to_str().unwrap();
        host.runs(&[file]).fails(126, &[file, "chmod +x"]);
    }
}

#[test]
fn the_three_streams_go_through_as_they_are() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        // Beyond what a pipe holds, so that both ends must be read at once.
        let much: String = (0..300_000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
        let mut running = host.starts_script("cat; echo its end >&2");
        running.hears(&much);
        let ran = running.ends();
        let warned = if sandbox == "none" { WARNING } else { "" };
        assert_eq!((ran.status, ran.stderr), (0, format!("{warned}its end\n")));
        assert_eq!(ran.stdout, much);
        let unread = host.starts_script("exec 0<&-; echo done").ends();
        assert_eq!((unread.status, unread.stdout.as_str()), (0, "done\n"));
    }
}

#[test]
fn a_reader_that_leaves_early_ends_a_pipeline_as_usual() {
    let host = Host::with(&Servers::demo());
    let mut running = host.starts_script("yes | head -n 2; trap '' PIPE; echo after");
    running.stdout.shows("y\ny\nafter\n");
    assert_eq!(running.ends().status, 0);
}

#[test]
fn a_sandboxed_command_gets_the_environment_of_the_list_and_what_is_asked_for() {
    let host = Host::with(&Servers::demo())
        .env("LC_TIME", "C")
        .env("TERM", "dumb")
        .env("AWS_SECRET_ACCESS_KEY", "hidden")
        .env("EDITOR", "vi")
        .env("ASKED", "for")
        .env("TOOL_CLI_TOKEN", "of an outer one")
        .option("--env")
        .option("ASKED")
        .option("--env")
        .option("GIVEN=a=b");
    let printed = host.runs(&["env"]).well();
    let names: BTreeSet<&str> = printed.lines().filter_map(|line| line.split('=').next()).collect();
    let given = ["ASKED", "GIVEN", "HOME", "LANG", "LC_TIME", "PATH", "TERM"];
    let own = ["TOOL_CLI_PORT", "TOOL_CLI_STYLE", "TOOL_CLI_TOKEN"];
    assert_eq!(names, given.into_iter().chain(own).collect());
    assert!(printed.contains("ASKED=for\n") && printed.contains("GIVEN=a=b\n"), "{printed}");
    assert!(printed.contains("TOOL_CLI_TOKEN=fbt_") && !printed.contains("outer"), "{printed}");
}

#[test]
fn an_open_command_gets_all_but_what_the_configuration_refers_to() {
    let entry =
        json!({"command": programs::footbridge(), "args": ["demo-server"], "env": {"KEY": "${SECRET_OF_SERVER}"}});
    let host = Host::open_with(&Servers::none().and("demo", entry))
        .env("SECRET_OF_SERVER", "s3cret-of-server")
        .env("EDITOR", "vi");
    let ran = host.runs(&["env"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, WARNING));
    assert!(ran.stdout.contains("EDITOR=vi\n") && !ran.stdout.contains("s3cret-of-server"), "{ran:?}");
}

#[test]
fn tool_cli_is_first_on_the_path_and_needs_nothing_else() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        let ran = host
            .runs_script("command -v tool-cli; echo ${PATH%%:*}; tool-cli --version; tool-cli demo list_cities '{}'");
        let mut lines = ran.stdout.lines();
        let (path, first) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(path, format!("{first}/tool-cli"));
        assert!(ran.status == 0 && ran.stdout.contains("Zürich"), "{ran:?}");
    }
}

#[test]
fn what_systemd_passes_on_reaches_no_command() {
    let host = Host::with(&Servers::demo()).sandbox("none");
    let passed = [("LISTEN_PID", "1"), ("LISTEN_FDS", "1"), ("LISTEN_FDNAMES", "footbridge"), ("LISTEN_PIDFDID", "7")];
    let host = passed.into_iter().fold(host, |host, (name, value)| host.env(name, value)).env("LISTEN", "kept");
    let ran = host.runs_script("env | grep ^LISTEN");
    assert_eq!(ran.stdout, "LISTEN=kept\n", "{ran:?}");
}

#[test]
fn a_sandbox_has_no_network_but_its_one_port() {
    let host = Host::with(&Servers::demo());
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let script = format!(
        "sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '; TOOL_CLI_PORT={port} tool-cli --exit-codes; echo $?; \
         tool-cli >/dev/null; echo $?"
    );
    let ran = host.runs_script(&script);
    assert_eq!(ran.stdout, "lo\n3\n0\n", "{ran:?}");
    assert!(ran.stderr.contains("refused the connection"), "{ran:?}");
    outside.set_nonblocking(true).unwrap();
    assert_eq!(outside.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn the_harness_s_own_files_are_empty_from_inside() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("key");
    fs::write(&secret, "value-in-a-file\n").unwrap();
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let entry = json!({"command": programs::footbridge(), "args": ["demo-server"],
        "env": {"KEY": {"file": secret}, "OF_WORK": {"file": "work/key"}}});
    let host = Host::with(&Servers::none().and("demo", entry)).settings("[limits.calls]\nburst = 77\n");
    let of_work = host.work().join("key");
    fs::write(&of_work, "value-in-the-folder-of-work\n").unwrap();
    fs::set_permissions(&of_work, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let folder = host.path().display().to_string();
    let script = format!(
        "cd {folder}; tool-cli demo list_cities '{{}}' >/dev/null; cat servers.json footbridge.toml work/key {} | wc -c; \
         find state -mindepth 1 | wc -l; find rt -mindepth 1 -maxdepth 1 | wc -l; \
         find rt -mindepth 1 -printf '%P\\n' | sed s/run-[^/]*/RUN/ | sort; \
         touch state/x rt/x 2>/dev/null; echo more >servers.json; tool-cli demo list_cities '{{}}' | head -n 1",
        secret.display()
    );
    let ran = host.runs_script(&script);
    let shown = "0\n0\n1\nRUN\nRUN/s\nRUN/s/bin\nRUN/s/bin/footbridge-relay\nRUN/s/bin/tool-cli\n\
                 RUN/s/footbridge.sock\n";
    assert!(ran.stdout.starts_with(shown), "{ran:?}");
    assert!(!host.state().join("x").exists() && !host.runtime().join("x").exists());
    assert!(fs::read_to_string(host.servers_file()).unwrap().contains("demo-server"), "written to from inside");
    assert!(host.run_folders().is_empty(), "the run removed its folder");
}

#[test]
fn the_token_is_in_no_argument_of_any_process_and_in_no_server_s_environment() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::none().misbehaving("ok", &["ok"])).sandbox(sandbox);
        let mut running = host.starts_script("echo $TOOL_CLI_TOKEN; tool-cli ok env '{}'; echo end; read end");
        let token = running.stdout.line();
        running.stdout.shows("end\n");
        assert!(token.starts_with("fbt_") && token.len() > 40, "{token}");
        assert_eq!(processes::with_argument(&token), Vec::<String>::new());
        let servers: Vec<_> = processes::with_argument("misbehaving-server ok");
        assert!(!servers.is_empty());
        let ran = running.ends();
        let servers_own = ran.stdout.split_once('\n').unwrap().1;
        assert!(servers_own.contains("PATH=") && !servers_own.contains("TOOL_CLI_"), "{servers_own}");
        assert!(!servers_own.contains(&token), "{servers_own}");
    }
}

#[test]
fn it_works_for_another_user_than_root() {
    if !nix::unistd::geteuid().is_root() {
        return skipped(
            "it_works_for_another_user_than_root",
            "these tests do not run as root, so all of them show it",
        );
    }
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        // A program that this user can reach.
        let own =
            json!({"mcpServers": {"demo": {"command": host.path().join("bin/footbridge"), "args": ["demo-server"]}}});
        fs::write(host.servers_file(), own.to_string()).unwrap();
        let host = host.as_user(NOBODY);
        let script = "id -u; id -G; cat ../servers.json | wc -c; tool-cli demo get_weather '{\"city\":\"Bern\"}' --out w; \
                      ls /proc/self/fd | wc -l; exit 4";
        let ran = host.runs_script(script);
        assert_eq!(ran.status, 4, "{ran:?}");
        let hidden = if sandbox == "net" { "0".to_owned() } else { own.to_string().len().to_string() };
        assert_eq!(ran.stdout, format!("{NOBODY}\n{NOBODY}\n{hidden}\nWritten to: w\n4\n"), "{ran:?}");
        assert_eq!(host.work().join("w").metadata().unwrap().uid(), NOBODY);
        let record = host.record_files();
        assert_eq!(record.len(), 1);
        let meta = record[0].metadata().unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o7777), (NOBODY, 0o600));
        assert_eq!(host.runtime().metadata().unwrap().mode() & 0o7777, 0o700);
    }
}

#[test]
fn a_person_s_command_has_a_terminal_of_its_own() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox).env("TERM", "xterm");
        let mut person = Person::new();
        let script = "test -t 0 && test -t 1 && test -t 2 && echo all three; stty size; ps -o tty= -p $$; read line; \
                      echo \"heard $line\"; tool-cli demo list_cities '{}' | head -n 3; exit 6";
        let mut running = person.starts(&host.run_of(&["bash", "-c", script]));
        person.sees("all three\r\n33 77\r\n");
        person.types("hello\r");
        person.sees("heard hello\r\n");
        person.sees("\"cities\"");
        assert_eq!(running.status().code(), Some(6), "{sandbox}");
    }
}

#[test]
fn ctrl_c_at_a_terminal_ends_the_command_and_the_status_says_so() {
    let host = Host::with(&Servers::demo());
    let mut person = Person::new();
    let mut running =
        person.starts(&host.run_of(&["bash", "-c", "trap 'echo stopped; exit 9' INT; echo ready; read end"]));
    person.sees("ready");
    person.types("\u{3}");
    person.sees("stopped");
    assert_eq!(running.status().code(), Some(9));
}

#[test]
fn a_loop_beyond_the_rate_is_slowed_and_loses_nothing() {
    let host = Host::with(&Servers::demo()).settings("[limits.calls]\nburst = 2\nper_second = 1\n");
    let ran = host.runs_script("for n in 1 2 3 4 5 6; do tool-cli demo now '{}' >/dev/null || exit 1; done; echo all");
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "all\n"), "{}", ran.stderr);
    assert_eq!(host.record().iter().filter(|line| line["type"] == "intent").count(), 6);
    let limited: u64 = host.record().iter().filter_map(|line| line["count"].as_u64()).sum();
    assert!(limited > 0, "the calls came faster than the rate");
    let impatient = host.runs_script(
        "for n in 1 2 3 4 5 6 7 8 9; do tool-cli --exit-codes --timeout 1ms demo now '{}' >/dev/null; done",
    );
    assert!([7, 8].contains(&impatient.status), "{}", impatient.status);
}

#[test]
fn more_calls_at_once_than_have_a_place_are_all_made_in_the_end() {
    let limits = "[limits.calls]\nin_flight_per_session = 1\nbusy_after = \"10ms\"\n";
    let host = Host::with(&Servers::demo()).settings(limits);
    let ran = host.runs_script(
        "seq 24 | xargs -P8 -I{} tool-cli --timeout 300s demo count_slowly '{\"n\":1,\"stepMs\":50}' >/dev/null; echo $?",
    );
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "0\n"), "{}", ran.stderr);
    assert_eq!(host.record().iter().filter(|line| line["type"] == "intent").count(), 24, "none was made twice");
}

#[test]
fn what_does_not_fit_about_arguments_is_said_line_by_line() {
    let host = Host::with(&Servers::demo());
    let ran = host.runs_script("tool-cli demo get_weather '{\"town\":\"Bern\"}'");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(
        lines[0].starts_with("Error: Arguments do not match the input schema for \"demo/get_weather\": /: "),
        "{lines:?}"
    );
    assert!(lines[1..].iter().any(|line| line.starts_with("  /: ") && line.contains("\"city\"")), "{lines:?}");
}

#[test]
fn a_relay_that_is_refused_vsock_says_why_and_what_to_do() {
    let host = Host::with(&Servers::demo()).sandbox("net");
    let script = "mkfifo ready; footbridge-relay --listen tcp:127.0.0.1:0 --to vsock:host:7179 --ready-fd 3 3>ready & \
                  TOOL_CLI_PORT=$(sed 's/.*://' ready) tool-cli --exit-codes; echo $?; kill $!; wait";
    let ran = host.runs_script(script);
    assert_eq!(ran.stdout, "3\n", "{ran:?}");
    assert!(ran.stderr.contains("a system call filter refuses AF_VSOCK"), "{ran:?}");
    assert!(ran.stderr.contains("use unix:PATH"), "{ran:?}");
}

#[test]
fn a_parent_that_waits_for_no_child_hands_nothing_of_that_on() {
    // Of coreutils, as everywhere here, and not of all others.
    let ignores = Command::new("env").args(["--ignore-signal=CHLD", "true"]).output();
    if !ignores.is_ok_and(|ran| ran.status.success()) {
        return skipped("a_parent_that_waits_for_no_child_hands_nothing_of_that_on", "env ignores no signals here");
    }
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        let run = host.run_of(&["sh", "-c", "tool-cli demo now '{}' >/dev/null && exit 7"]);
        let mut parent = Command::new("env");
        parent.arg("--ignore-signal=CHLD");
        let ran = Running::start(&mut starting(&run, parent)).ends();
        assert_eq!(ran.status, 7, "{sandbox}: {ran:?}");
        assert!(!ran.stderr.contains("gives this user no namespaces"), "{sandbox}: {ran:?}");
    }
}
