//! What processes of one user can do to each other: nothing to the harness, and servers nothing to their siblings. And
//! what children get of the harness: what it was started with, not what it made of itself.

use std::{collections::BTreeSet, fs, os::unix::process::CommandExt as _, path::Path, process::Command};

use footbridge_processes::keeper::Confinement;
use footbridge_tests::{Bridge, Host, NOBODY, Running, Servers, skipped, starting};
use nix::{
    sys::{
        resource::{Resource, getrlimit},
        signal::Signal,
    },
    unistd::geteuid,
};
use serde_json::{Value, json};

/// An MCP server with three tools: `look` says what it can do to a process, `reach` what it finds in a folder and can
/// make there, `state` what it is itself.
const SPY: &str = r#"
look() {
  for what in environ mem maps; do (: < /proc/$1/$what) 2>/dev/null && printf '%s ' $what; done
  kill -0 $1 2>/dev/null && printf 'signal'
}
state() {
  echo "pid=$$ keeper=$PPID"
  echo "umask=$(umask) core=$(ulimit -c) files=$(ulimit -n)"
  echo descriptors=$(ls /proc/self/fd)
  grep -E 'NoNewPrivs|SigBlk|SigIgn' /proc/self/status | tr '\t' ' '
  echo variables=$(env | cut -d= -f1 | sort)
}
# Without another process, of which there may be none.
reach() {
  found=
  for at in "$1"/* "$1"/*/*; do test -e "$at" && found="$found${at##*/} "; done
  for at in "$1" "$1"/*; do true 2>/dev/null > "$at/made" && found="${found}writes ${at##*/} "; done
}
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
    *'"method":"tools/list"'*)
      result='{"tools":[{"name":"look","inputSchema":{"type":"object"}},{"name":"state","inputSchema":{"type":"object"}},{"name":"reach","inputSchema":{"type":"object"}}]}';;
    *'"name":"state"'*) result='{"content":[{"type":"text","text":"'$(state | tr '\n' ';')'"}]}';;
    *'"name":"look"'*)
      pid=${line#*'"pid":'}; result='{"content":[{"type":"text","text":"'$(look ${pid%%[!0-9]*})'"}]}';;
    *'"name":"reach"'*)
      path=${line#*'"folder":"'}; reach "${path%%\"*}"; result='{"content":[{"type":"text","text":"'$found'"}]}';;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

const TEST: &str = "what_processes_of_one_user_can_do_to_each_other";

/// A host with these spies, of an ordinary user: root could do anything.
fn host(spies: &[(&str, Value)]) -> Host {
    host_of(NOBODY, spies)
}

/// The same of this user, where there are users to choose from.
fn host_of(user: u32, spies: &[(&str, Value)]) -> Host {
    let mut servers = Servers::none();
    for (name, more) in spies {
        let mut entry = json!({"command": "sh", "args": ["spy.sh", name], "cwd": ".", "env": {"SIBLING": "of-mine"}});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        servers = servers.and(name, entry);
    }
    let host = Host::with(&servers);
    fs::write(host.path().join("spy.sh"), SPY).unwrap();
    if geteuid().is_root() { host.as_user(user) } else { host }
}

/// What a spy can do to a process.
fn look(bridge: &Bridge, spy: &str, pid: i32) -> String {
    bridge.guest.runs(&[spy, "look", &json!({"pid": pid}).to_string()]).well().trim().to_owned()
}

/// The processes of a spy, by their numbers here: its own, and its keeper.
fn processes(bridge: &Bridge, spy: &str) -> (i32, i32) {
    let _it_runs = itself(bridge, spy);
    let all = footbridge_tests::processes::naming(bridge.host.path());
    let own = all.iter().find(|process| process.arguments.ends_with(&format!("sh spy.sh {spy}"))).unwrap().pid;
    let status = fs::read_to_string(format!("/proc/{own}/status")).unwrap();
    let keeper = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    (own, keeper)
}

/// What a spy is to itself.
fn itself(bridge: &Bridge, spy: &str) -> i32 {
    number(&bridge.guest.runs(&[spy, "state", "{}"]).well(), "pid=")
}

fn number(state: &str, name: &str) -> i32 {
    let rest = state.split(name).nth(1).unwrap_or_else(|| panic!("no {name} in {state}"));
    rest.split([' ', ';']).next().unwrap().trim().parse().unwrap()
}

#[test]
fn a_server_can_do_nothing_to_its_siblings_the_keepers_and_the_harness() {
    let may_signal = match Confinement::here() {
        Confinement::Full => "",
        Confinement::Partial => "signal",
        Confinement::None => return skipped(TEST, "no Landlock here"),
    };
    let mut bridge = host(&[("one", json!({})), ("two", json!({}))]).opens();
    let ((_, keeper_of_one), (two, keeper_of_two)) = (processes(&bridge, "one"), processes(&bridge, "two"));
    for pid in [two, keeper_of_one, keeper_of_two, bridge.harness().pid()] {
        assert_eq!(look(&bridge, "one", pid), may_signal, "to {pid}");
    }
    assert_eq!(look(&bridge, "one", itself(&bridge, "one")), "environ mem maps signal", "to itself");
    // The keepers reach in all the same.
    bridge.ends();
    bridge.host.leaves_nothing_behind();
}

#[test]
fn a_server_that_is_not_confined_can_do_nothing_but_signal_what_is_the_harness_s() {
    let mut bridge = host(&[("one", json!({"confine": false})), ("two", json!({}))]).opens();
    let (two, keeper) = processes(&bridge, "two");
    // Yama may close the memory of siblings to everybody but a debugger's own children.
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() != "0");
    if yama {
        skipped("what_a_server_that_is_not_confined_can_do_to_its_sibling", "Yama restricts ptrace here");
    } else {
        assert_eq!(look(&bridge, "one", two), "environ mem maps signal", "the sibling is open to it");
    }
    // Neither of these is dumpable.
    for pid in [keeper, bridge.harness().pid()] {
        assert_eq!(look(&bridge, "one", pid), "signal", "to {pid}");
    }
}

/// What a spy finds below a folder, and can write there.
fn reach(bridge: &Bridge, spy: &str, folder: &Path) -> String {
    bridge.guest.runs(&[spy, "reach", &json!({"folder": folder}).to_string()]).well().trim().to_owned()
}

#[test]
fn a_server_neither_sees_nor_changes_what_the_harness_keeps() {
    let test = "a_server_neither_sees_nor_changes_what_the_harness_keeps";
    let mut names = Command::new("unshare");
    if geteuid().is_root() {
        names.uid(NOBODY).gid(NOBODY);
    }
    if !names.args(["--user", "--pid", "--mount", "--fork", "true"]).status().is_ok_and(|status| status.success()) {
        return skipped(test, "no namespaces for an ordinary user here");
    }
    let mut spies = host(&[("one", json!({})), ("open", json!({"confine": false}))]);
    let config = spies.path().join("config/footbridge");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("policy.toml"), "").unwrap();
    if geteuid().is_root() {
        [spies.path().join("config"), config.clone(), config.join("policy.toml")]
            .iter()
            .for_each(|path| std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap());
    }
    let configs = spies.path().join("config");
    spies = spies.env("XDG_CONFIG_HOME", configs);
    let (state, runtime) = (spies.state(), spies.runtime());
    let mut bridge = spies.opens();
    assert_eq!(reach(&bridge, "one", &state), "");
    assert_eq!(reach(&bridge, "one", &runtime), "");
    assert_eq!(reach(&bridge, "one", &config), "policy.toml");
    assert!(config.join("policy.toml").exists() && state.join("state.db").exists() && runtime.exists());
    // The same program, when it is told that it may.
    let seen = reach(&bridge, "open", &state.join("audit"));
    assert!(seen.contains(".jsonl") && seen.contains("writes audit"), "{seen}");
    bridge.ends();
    bridge.host.leaves_nothing_behind();
}

/// A user with no other processes, whose number is that of nobody else.
const ALONE: u32 = 65_531;

#[test]
fn a_server_is_kept_apart_or_not_started_whatever_the_machine_lacks() {
    let test = "a_server_is_kept_apart_or_not_started_whatever_the_machine_lacks";
    if !geteuid().is_root() {
        return skipped(test, "it takes root to have a user with no other processes");
    }
    let mut names = Command::new("unshare");
    names.args(["--user", "--pid", "--mount", "--fork", "true"]).uid(ALONE).gid(ALONE);
    let limits = Command::new("prlimit").arg("--version").output();
    if limits.is_err() || !names.status().is_ok_and(|status| status.success()) {
        return skipped(test, "no prlimit, or no namespaces for an ordinary user here");
    }
    let host = host_of(ALONE, &[("one", json!({}))]);
    let reach = host.one_shot_of(&["call", "one", "reach", &json!({"folder": host.state()}).to_string()]);
    let (mut refused, mut called) = (0, 0);
    // Of each number of processes that this user may have one is short somewhere on the way.
    for processes in 6..36 {
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--nproc={processes}"));
        let ran = Running::start(starting(&reach, limited).uid(ALONE).gid(ALONE)).ends();
        assert!(!ran.stdout.contains("state.db") && !ran.stdout.contains("audit"), "{processes}: {ran:?}");
        assert!(!ran.stderr.contains("MCP servers can write what Footbridge itself keeps"), "{processes}: {ran:?}");
        *(if ran.status == 0 { &mut called } else { &mut refused }) += 1;
    }
    assert!(refused > 0 && called > 0, "{refused} {called}");
}

#[test]
fn the_harness_writes_no_core_and_makes_files_for_its_user_alone() {
    let mut bridge = host(&[]).opens();
    let pid = bridge.harness().pid();
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    assert!(read("status").contains("Umask:\t0077"), "{}", read("status"));
    let core = read("limits").lines().find(|line| line.starts_with("Max core")).unwrap().to_owned();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
}

#[test]
fn servers_and_the_command_get_what_the_harness_was_started_with() {
    let host = host(&[("spy", json!({"env": {"NAMED": "1", "TOOL_CLI_NAMED": "1"}}))]).sandbox("none");
    let passed = ["LC_ALL", "TZ", "TMPDIR", "USER", "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY"];
    let passed = [&passed[..], &["no_proxy", "NODE_EXTRA_CA_CERTS"]].concat();
    let kept_back = ["AWS_SECRET", "LCX", "LD_LIBRARY_PATH", "TOOL_CLI_TOKEN", "TOOL_CLI_HTTPS_PROXY"];
    let host = passed.iter().chain(&kept_back).fold(host, |host, name| host.env(name, "/tmp"));
    let of_the_command = "grep -E 'NoNewPrivs|SigBlk|SigIgn' /proc/self/status | tr '\\t' ' '; \
        echo umask=$(umask) core=$(ulimit -c) files=$(ulimit -n); echo descriptors=$(ls /proc/self/fd)";
    let script = format!("{of_the_command}; echo; tool-cli spy state '{{}}' | tr ';' '\\n'");
    let core = core_limit();
    let ran = started_oddly(&host.run_of(&["sh", "-c", &script]), core).ends();
    assert_eq!(ran.status, 0, "{ran:?}");
    let (command, server) = ran.stdout.split_once("\n\n").unwrap();
    for (who, state) in [("the command", command), ("the server", server)] {
        // 3 is the listing itself.
        for part in [&format!("umask=0027 core={core} files=321"), "descriptors=0 1 2 3", "SigBlk: 0000000000000000"] {
            assert!(state.contains(part), "{who}: no {part} in {state}");
        }
        let ignored = state.lines().find_map(|line| line.strip_prefix("SigIgn: ")).unwrap();
        let ordinary = u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff;
        assert_eq!(ordinary, 1 << (Signal::SIGUSR2 as i32 - 1), "{who}: {state}");
    }
    assert!(command.contains("NoNewPrivs: 0"), "the command is not confined without a sandbox: {command}");
    let confined = i32::from(Confinement::here() != Confinement::None);
    assert!(server.contains(&format!("NoNewPrivs: {confined}")), "{server}");

    let found = server.lines().find_map(|line| line.strip_prefix("variables=")).unwrap();
    // The shell's own are not the harness's doing.
    let found: BTreeSet<&str> =
        found.split(' ').filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name)).collect();
    let expected = passed.iter().copied().chain(["PATH", "HOME", "LANG", "NAMED", "TEST_FOLDER"]);
    assert_eq!(found, expected.collect::<BTreeSet<_>>());
}

/// The limit of core files that a test asks for: 7 if the machine allows any.
fn core_limit() -> u64 {
    let core = 7.min(getrlimit(Resource::RLIMIT_CORE).unwrap().1 / 1024);
    if core == 0 {
        skipped("the limit of core files that servers and the command get", "no core files are allowed here");
    }
    core
}

/// The same command, started under a umask, limits, an ignored signal and an open descriptor of the starter's.
fn started_oddly(inner: &Command, core: u64) -> Running {
    let mut command = Command::new("sh");
    let start = format!("umask 027; ulimit -Sc {core}; ulimit -Sn 321; trap '' USR2; exec 7</dev/null; exec \"$@\"");
    command.args(["-c", &start, "sh"]);
    let mut command = starting(inner, command);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    Running::start(&mut command)
}
