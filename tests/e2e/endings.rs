//! Every way a run can end: by signals, by force, in the middle of calls. Nothing stays behind, nobody else notices.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Host, PATIENCE, Person, Running, Servers, Tape, processes, programs, skipped};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

const SANDBOXES: [&str; 2] = ["net", "none"];

#[test]
fn a_signal_to_the_harness_reaches_the_command() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        for (signal, name) in
            [(Signal::SIGTERM, "TERM"), (Signal::SIGINT, "INT"), (Signal::SIGHUP, "HUP"), (Signal::SIGQUIT, "QUIT")]
        {
            let script = format!("trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done");
            let mut running = host.starts_script(&script);
            running.stdout.shows("ready\n");
            running.signal(signal);
            let ran = running.ends();
            assert_eq!((ran.status, ran.stdout.as_str()), (7, format!("ready\ngot {name}\n").as_str()), "{sandbox}");
        }
    }
}

#[test]
fn a_signal_reaches_all_that_the_command_runs_and_not_its_shell_alone() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        let inner = "trap \"echo inner; exit 3\" INT; echo ready; while :; do sleep 0.05; done";
        let mut running = host.starts_script(&format!("trap : INT; sh -c '{inner}'; echo $?"));
        running.stdout.shows("ready\n");
        running.signal(Signal::SIGINT);
        let ran = running.ends();
        assert_eq!((ran.status, ran.stdout.as_str()), (0, "ready\ninner\n3\n"), "{sandbox}");
    }
}

#[test]
fn a_command_that_takes_no_signals_is_killed_by_the_third() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        let script = "trap '' INT TERM QUIT; trap 'echo heard' HUP; echo ready; while :; do sleep 0.05; done";
        let mut running = host.starts_script(script);
        running.stdout.shows("ready\n");
        // Once it hears a signal, it is known to have started; and this one does not count.
        running.signal(Signal::SIGHUP);
        running.stdout.shows("heard\n");
        for signal in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM] {
            running.signal(signal);
        }
        running.ends().fails(137, &["the command is killed, with all that came of it: its third signal"]);
        host.leaves_nothing_behind();
    }
}

#[test]
fn a_command_that_does_not_end_with_its_terminal_is_killed_soon() {
    let host = Host::with(&Servers::demo());
    let mut person = Person::new();
    let ignoring = "trap '' INT TERM HUP QUIT; echo ready; while :; do sleep 0.05; done";
    let running = person.starts(&host.run_of(&["sh", "-c", ignoring]));
    person.sees("ready");
    drop(person);
    assert_eq!(running.ends().status, 137);
    host.leaves_nothing_behind();
}

/// Its terminal is full then, and has no room again; what waits for that must not hold up the end.
#[test]
fn a_command_that_ends_without_reading_what_was_typed_ends_the_run() {
    let host = Host::with(&Servers::demo());
    let mut person = Person::new();
    let script = "stty raw -echo; echo ready; until test -e typed; do sleep 0.05; done; exit 6";
    let mut running = person.starts(&host.run_of(&["sh", "-c", script]));
    person.sees("ready");
    person.types_all_that_fits('k');
    std::fs::write(host.work().join("typed"), "").unwrap();
    assert_eq!(running.status().code(), Some(6));
}

#[test]
fn a_signal_that_was_ignored_when_a_run_started_as_by_nohup_stays_so() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        let run = host.run_of(&["sh", "-c", "echo ready; read line; echo $line"]);
        let mut nohup = Command::new("sh");
        nohup.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(run.get_program()).args(run.get_args()).env_clear();
        nohup.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut running = Running::start(nohup.current_dir(run.get_current_dir().unwrap()));
        running.stdout.shows("ready\n");
        running.signal(Signal::SIGHUP);
        running.hears("still here\n");
        let ran = running.ends();
        assert_eq!((ran.status, ran.stdout.as_str()), (0, "ready\nstill here\n"), "{sandbox}");
    }
}

#[test]
fn a_command_whose_output_is_lost_on_a_full_disk_has_not_done_well() {
    let host = Host::with(&Servers::demo());
    for (word, status) in [("true", 125), ("false", 1)] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ran = host.run_of(&["sh", "-c", &format!("echo lost; {word}")]).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(said.contains("standard output of the command could not be written"), "{said}");
        assert_eq!(ran.status.code(), Some(status), "{said}");
    }
}

#[test]
fn a_command_that_a_signal_ends_says_which() {
    for sandbox in SANDBOXES {
        let host = Host::with(&Servers::demo()).sandbox(sandbox);
        let mut running = host.starts(&["sh", "-c", "echo ready; exec sleep 600"]);
        running.stdout.shows("ready\n");
        running.signal(Signal::SIGTERM);
        assert_eq!(running.ends().status, 128 + 15, "{sandbox}");
    }
}

/// Processes that try to outlive the command, and the one that the server started, which its tool is named after.
const LEAVERS: &str = "sleep 600 & setsid sleep 600 & (setsid sh -c 'trap \"\" TERM HUP INT; sleep 600 & sleep 600' &); \
                       tool-cli leaver --json | sed 's/.*\"name\":\"pid\\([0-9]*\\).*/\\1/'; echo ready; ";

/// A host whose server leaves a process behind as well, and another that ignores every polite request.
fn host_of_leavers(sandbox: &'static str) -> Host {
    let servers =
        Servers::none().misbehaving("leaver", &["forks-and-detaches"]).misbehaving("deaf", &["ignores-eof-and-term"]);
    Host::with(&servers).sandbox(sandbox)
}

/// Waits until everything runs, and gives the process id of the server's own child.
fn settled(host: &Host, running: &mut Running) -> processes::Process {
    let pid = running.stdout.line().parse().unwrap();
    running.stdout.shows("ready\n");
    let all = processes::naming(host.path());
    let server = all.iter().find(|process| process.arguments.ends_with("misbehaving-server forks-and-detaches"));
    processes::beside(server.unwrap(), pid).unwrap()
}

#[test]
fn when_the_command_ends_nothing_stays_behind() {
    for sandbox in SANDBOXES {
        let host = host_of_leavers(sandbox);
        let mut running = host.starts_script(&format!("{LEAVERS} read end; exit 5"));
        let left = settled(&host, &mut running);
        let before = processes::naming(host.path()).len();
        assert!(before >= 8, "{before}");
        assert_eq!(running.ends().status, 5, "{sandbox}");
        left.ends();
        host.leaves_nothing_behind();
    }
}

#[test]
fn when_the_harness_is_killed_nothing_stays_behind_and_the_next_run_sweeps_up() {
    for sandbox in SANDBOXES {
        let host = host_of_leavers(sandbox);
        let mut running = host.starts_script(&format!("{LEAVERS} exec sleep 600"));
        let left = settled(&host, &mut running);
        running.killed();
        left.ends();
        host.leaves_nothing_behind();
        let folders = || host.run_folders().len();
        assert_eq!(folders(), 1, "{sandbox}: the folder of the run that was killed");
        assert_eq!(
            host.runs_script(&format!(
                "test $(find {} -maxdepth 1 -name 'run-*' | wc -l) = 1",
                host.runtime().display()
            ))
            .status,
            0
        );
        assert_eq!(folders(), 0, "{sandbox}");
    }
}

#[test]
fn when_a_call_is_under_way_and_the_harness_is_killed_the_record_says_what_had_left() {
    let mut tape = Tape::new();
    let host = Host::with(&Servers::none().recording("slow", &["never-answers-call"], &tape));
    let mut running = host.starts_script("tool-cli slow echo '{}' & echo ready; wait");
    let _call = tape.hears("tools/call");
    running.killed();
    host.leaves_nothing_behind();
    let types: Vec<String> = host.record().iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(types, ["started", "session", "intent"]);
    assert_eq!(tape.count("tools/call"), 1, "sent once");
    // The next run reads nothing of it and calls nothing again; and it says that nobody looked at what was left.
    let next = host.runs_script("tool-cli slow >/dev/null");
    assert!(next.status == 0 && next.stderr.contains(UNSEEN) && next.stderr.contains("/work: "), "{next:?}");
    assert_eq!(host.runs_script("tool-cli slow >/dev/null").well(), "", "once");
    assert_eq!(tape.count("tools/call"), 1, "and never again");
}

/// The keeper above a process of a host, stopped until this is dropped.
struct StoppedKeeper(processes::Process);

impl StoppedKeeper {
    fn above(host: &Host, arguments: &str) -> Self {
        let keeper = keeper_above(host, arguments);
        kill(Pid::from_raw(keeper.pid), Signal::SIGSTOP).unwrap();
        Self(keeper)
    }

    /// Lets it go on to its end.
    fn ends(self) {
        kill(Pid::from_raw(self.0.pid), Signal::SIGCONT).unwrap();
        self.0.ends();
    }
}

impl Drop for StoppedKeeper {
    fn drop(&mut self) {
        let _it_has_ended = kill(Pid::from_raw(self.0.pid), Signal::SIGCONT);
    }
}

fn keeper_above(host: &Host, arguments: &str) -> processes::Process {
    let all = processes::naming(host.path());
    let below = all.iter().find(|process| process.arguments.contains(arguments)).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", below.pid)).unwrap();
    let above = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    let keeper = processes::open(above.trim().parse().unwrap()).unwrap();
    assert_eq!(keeper.arguments, "footbridge __keeper");
    keeper
}

/// What the next run says of one that did not look.
const UNSEEN: &str = "an earlier run ended before it could look for what its command left";

/// Starts its words, says which process that is, and takes in what that leaves until its input ends. The kernel has stopped
/// processes go on where they lose their last parent outside of their group.
const TAKES_IN: &str = "import ctypes, subprocess, sys\n\
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n\
    print(subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL).pid, flush=True)\n\
    sys.stdin.read()";

#[test]
fn what_a_killed_run_left_is_looked_at_once_nothing_of_its_command_runs_any_more() {
    let test = "what_a_killed_run_left_is_looked_at_once_nothing_of_its_command_runs_any_more";
    if !programs::on_path("python3") {
        return skipped(test, "python3 is missing");
    }
    let host = Host::with(&Servers::none());
    let run = host.run_of(&["sh", "-c", "echo ready; sleep 600"]);
    let mut above = Command::new("python3");
    above.args(["-I", "-c", TAKES_IN]).arg(run.get_program()).args(run.get_args()).env_clear();
    above.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut above = Running::start(above.current_dir(run.get_current_dir().unwrap()));
    let harness = processes::open(above.stdout.line().parse().unwrap()).unwrap();
    above.stdout.shows("ready\n");
    let keeper = StoppedKeeper::above(&host, "footbridge-relay --listen");
    harness.kill();
    let meanwhile = host.runs_script("echo ran");
    assert!(meanwhile.stdout == "ran\n" && !meanwhile.stderr.contains(UNSEEN), "{meanwhile:?}");
    keeper.ends();
    assert_eq!(above.ends().status, 0);
    host.leaves_nothing_behind();
    let next = host.runs_script("echo ran");
    assert!(next.stdout == "ran\n" && next.stderr.contains(UNSEEN), "{next:?}");
}

#[test]
fn what_a_killed_run_left_is_looked_at_also_where_its_runtime_folder_is_gone() {
    let host = Host::with(&Servers::none());
    let mut running = host.starts_script("mkdir .vscode; echo ready; sleep 600");
    running.stdout.shows("ready\n");
    let keeper = keeper_above(&host, "footbridge-relay --listen");
    running.killed();
    keeper.ends();
    host.leaves_nothing_behind();
    // As a reset of the machine leaves it.
    fs::remove_dir_all(host.runtime()).unwrap();
    let next = host.runs_script("echo ran");
    assert!(
        next.stdout == "ran\n" && [UNSEEN, "/.vscode; look"].iter().all(|text| next.stderr.contains(text)),
        "{next:?}"
    );
}

#[test]
fn where_something_of_the_command_may_be_left_the_next_run_looks() {
    let host = Host::with(&Servers::none());
    let mut running = host.starts_script("echo ready; sleep 600");
    running.stdout.shows("ready\n");
    keeper_above(&host, "footbridge-relay --listen").kill();
    let says = ["its status is not known", "something of the command may be left", "/work, is not looked at now"];
    running.ends().fails(125, &says);
    host.leaves_nothing_behind();
    let next = host.runs_script("echo ran");
    assert!(next.stdout == "ran\n" && next.stderr.contains(UNSEEN), "{next:?}");
}

#[test]
fn a_signal_while_servers_end_is_not_lost() {
    let host = Host::with(&Servers::none().misbehaving("deaf", &["ignores-eof-and-term"]));
    let mut running = host.starts_script("tool-cli deaf >/dev/null; echo ready; read end; exit 5");
    running.stdout.shows("ready\n");
    let keeper = StoppedKeeper::above(&host, "misbehaving-server ignores-eof-and-term");
    running.hears("end\n");
    // What the command left was looked at: servers end now.
    let deadline = Instant::now() + PATIENCE;
    while fs::read_dir(host.state().join("runs")).unwrap().count() > 0 {
        assert!(Instant::now() < deadline, "nothing was looked at");
        thread::sleep(Duration::from_millis(2));
    }
    running.signal(Signal::SIGTERM);
    running.ends().fails(5, &["interrupted while MCP servers end"]);
    keeper.ends();
    host.leaves_nothing_behind();
}

#[test]
fn when_the_relay_is_killed_the_command_ends_too() {
    let host = Host::with(&Servers::demo());
    let mut running = host.starts_script("echo ready; sleep 600 & wait");
    running.stdout.shows("ready\n");
    let all = processes::naming(host.path());
    let relay = all.iter().find(|process| process.arguments.contains("footbridge-relay --listen")).unwrap();
    relay.kill();
    assert_eq!(running.ends().status, 137);
    host.leaves_nothing_behind();
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_call_cancels_it_at_the_server() {
    for sandbox in SANDBOXES {
        let mut tape = Tape::new();
        let host = Host::with(&Servers::none().recording("slow", &["never-answers-call"], &tape)).sandbox(sandbox);
        let script = "set -m; tool-cli slow echo '{}' & echo $!; read a; kill -KILL $!; read b; \
                      tool-cli --exit-codes slow echo '{}' & read c; kill -INT $!; wait $!; echo $?";
        let mut running = host.starts_script(script);
        let call = tape.hears("tools/call");
        running.hears("a\n");
        assert_eq!(tape.hears("notifications/cancelled"), call, "{sandbox}");
        running.hears("b\n");
        let call = tape.hears("tools/call");
        running.hears("c\n");
        assert_eq!(tape.hears("notifications/cancelled"), call, "{sandbox}");
        let ran = running.ends();
        assert!(ran.stdout.ends_with("\n130\n"), "{ran:?}");
        let outcomes: Vec<_> = host
            .record()
            .into_iter()
            .filter(|line| line["type"] == "outcome")
            .map(|line| line["detail"].clone())
            .collect();
        assert_eq!(outcomes, ["cancelled", "cancelled"]);
    }
}

#[test]
fn a_connection_that_is_cut_in_the_middle_of_a_call_cancels_it_at_the_server() {
    let mut tape = Tape::new();
    let bridge = Host::with(&Servers::none().recording("slow", &["never-answers-call"], &tape)).opens();
    let call = bridge.guest.starts_to_ask("callTool", json!({"server": "slow", "tool": "echo"}));
    let id = tape.hears("tools/call");
    drop(call);
    assert_eq!(tape.hears("notifications/cancelled"), id);
}

#[test]
fn the_end_of_a_run_is_told_to_calls_that_are_under_way() {
    let mut tape = Tape::new();
    let mut bridge = Host::with(&Servers::none().recording("slow", &["never-answers-call"], &tape)).opens();
    let call = bridge.guest.starts_to_ask("callTool", json!({"server": "slow", "tool": "echo"}));
    let _id = tape.hears("tools/call");
    let since = Instant::now();
    assert_eq!(bridge.ends().status, 0);
    assert!(since.elapsed() < PATIENCE / 2, "{:?}", since.elapsed());
    let answer = call.answer().json();
    assert_eq!(answer["error"]["data"]["reason"], "outcome_unknown", "{answer}");
    let record = bridge.host.record();
    let outcomes: Vec<_> =
        record.iter().filter(|line| line["type"] == "outcome").map(|line| &line["outcome"]).collect();
    assert_eq!(outcomes, ["unknown"], "{record:?}");
}
