//! What a keeper promises: the program's own status and streams, and nothing left behind however it ends.
//!
//! "Everything is gone" is seen as the end of a pipe whose write end every process under test inherits: it ends when
//! the last of them does, with no need to poll for pids.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test says no more than that it failed, and where")]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::io::{BufRead, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::{fs::PermissionsExt, process::CommandExt};
use std::process::{Command, Stdio};
use std::time::Duration;

use footbridge_processes::keeper::{Kept, KeptCommand, LostKeeper, ProgramEnd, ProgramStream, SpawnError, Step};
use footbridge_processes::sandbox::files::FilePlan;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use skipped::skipped;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::Receiver;

const DEADLINE: Duration = Duration::from_secs(20);
const FOOTBRIDGE: &str = env!("CARGO_BIN_EXE_footbridge");
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn shell(script: &str) -> KeptCommand {
    Kept::command("sh").args(["-c", script]).env([("PATH", PATH)]).helper(FOOTBRIDGE)
}

/// Runs it with stdout as a pipe; gives what it wrote and how it ended.
async fn output_of(command: KeptCommand) -> (String, ProgramEnd) {
    let mut kept =
        command.streams(ProgramStream::Null, ProgramStream::Pipe, ProgramStream::Null).spawn().await.unwrap();
    let mut text = String::new();
    let mut stdout = kept.stdout.take().unwrap();
    soon(stdout.read_to_string(&mut text)).await.unwrap();
    (text, soon(kept.wait()).await.unwrap())
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("in time")
}

/// The end that ends with the last holder of the other.
fn witness() -> (Receiver, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    (Receiver::from_owned_fd(reader.into()).unwrap(), writer.into())
}

async fn line(from: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut line = String::new();
    soon(BufReader::with_capacity(1, from).read_line(&mut line)).await.unwrap();
    line.trim_end().to_owned()
}

async fn everything_is_gone(witness: &mut Receiver) {
    let mut rest = Vec::new();
    soon(witness.read_to_end(&mut rest)).await.unwrap();
}

#[tokio::test]
async fn a_program_gives_its_output_and_its_status() {
    let (text, ended) = output_of(shell("echo one; exit 7")).await;
    assert_eq!((text.as_str(), ended), ("one\n", ProgramEnd::Exited(7)));
}

#[tokio::test]
async fn a_program_ended_by_a_signal_is_told_from_one_with_that_status() {
    let (_, by_signal) = output_of(shell("kill -TERM $$")).await;
    let (_, by_itself) = output_of(shell("exit 143")).await;
    assert_eq!((by_signal, by_itself), (ProgramEnd::Signaled(15), ProgramEnd::Exited(143)));
    assert_eq!(by_signal.code(), by_itself.code());
}

#[tokio::test]
async fn a_signal_that_has_a_number_alone_is_an_end_as_another_and_nothing_is_left() {
    for signal in [34, 64] {
        let (mut witness, held) = witness();
        let command = shell(&format!("sleep 1000 & kill -{signal} $$; sleep 1000"));
        let mut kept = command
            .streams(ProgramStream::Null, ProgramStream::Null, ProgramStream::Given(held))
            .spawn()
            .await
            .unwrap();
        assert_eq!(soon(kept.wait()).await.unwrap(), ProgramEnd::Signaled(signal));
        everything_is_gone(&mut witness).await;
    }
}

#[tokio::test]
async fn stdin_reaches_the_program_and_ends() {
    let mut kept =
        shell("cat").streams(ProgramStream::Pipe, ProgramStream::Pipe, ProgramStream::Null).spawn().await.unwrap();
    let mut stdin = kept.stdin.take().unwrap();
    soon(stdin.write_all(b"over and out")).await.unwrap();
    drop(stdin);
    let mut text = String::new();
    soon(kept.stdout.take().unwrap().read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "over and out");
    assert_eq!(soon(kept.wait()).await, Ok(ProgramEnd::Exited(0)));
}

#[tokio::test]
async fn a_stream_that_the_program_closes_is_closed_for_the_harness() {
    let mut kept = shell("exec >&-; read line")
        .streams(ProgramStream::Pipe, ProgramStream::Pipe, ProgramStream::Null)
        .spawn()
        .await
        .unwrap();
    let mut text = String::new();
    soon(kept.stdout.take().unwrap().read_to_string(&mut text)).await.unwrap();
    drop(kept.stdin.take());
    assert_eq!(soon(kept.wait()).await, Ok(ProgramEnd::Exited(1)));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_with_the_cause() {
    let missing = Kept::command("no-such-program").env([("PATH", PATH)]).helper(FOOTBRIDGE).spawn().await;
    let Err(SpawnError::Refused(refusal)) = missing else { panic!("{missing:?}") };
    assert_eq!(refusal.step, Step::Program("no-such-program".to_owned()));
    assert_eq!((refusal.cause(), refusal.exit_code()), (Errno::ENOENT, 127));
    assert_eq!(
        refusal.to_string(),
        "cannot start \"no-such-program\": No such file or directory (check the name and PATH)"
    );
}

#[tokio::test]
async fn what_to_check_fits_how_a_program_is_named() {
    for (program, says) in [
        ("/nowhere/x", "No such file or directory (check the path, and the interpreter if it is a script)"),
        ("npx -y foo", "No such file or directory (this is all taken for the name: write what follows the program"),
    ] {
        let missing = Kept::command(program).env([("PATH", PATH)]).helper(FOOTBRIDGE).spawn().await;
        let Err(SpawnError::Refused(refusal)) = missing else { panic!("{missing:?}") };
        let said = refusal.to_string();
        assert!(said.starts_with(&format!("cannot start {program:?}: {says}")), "{said}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_executable_is_told_from_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tool");
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let path = format!("{}:{PATH}", folder.path().display());
    let refused = Kept::command("tool").env([("PATH", path)]).helper(FOOTBRIDGE).spawn().await;
    let Err(SpawnError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert_eq!((refusal.cause(), refusal.exit_code()), (Errno::EACCES, 126));
}

#[tokio::test]
async fn a_name_is_looked_for_in_the_programs_own_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tool");
    // By another process: a test that forks at this moment would hold it open for writing here.
    let write = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(&file).arg("echo \"found with $1\"\n").status();
    assert!(written.unwrap().success());
    let path = folder.path().as_os_str();
    let (text, _) = output_of(Kept::command("tool").args(["me"]).env([("PATH", path)]).helper(FOOTBRIDGE)).await;
    assert_eq!(text, "found with me\n");
}

#[tokio::test]
async fn a_working_folder_that_is_not_there_is_named() {
    let refused = shell("true").folder("/no/such/folder").spawn().await;
    let Err(SpawnError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal.step, Step::Folder("/no/such/folder".to_owned()));
}

#[tokio::test]
async fn the_environment_is_what_is_given_and_shows_nowhere_else() {
    let env = [("PATH", PATH), ("SECRET", "do-not-show")];
    let script = "tr '\\0' '\\n' </proc/$$/environ | sort; tr '\\0' ' ' </proc/$PPID/cmdline; \
                  (tr '\\0' '\\n' </proc/$PPID/environ) 2>/dev/null";
    let (text, _) = output_of(shell(script).env(env)).await;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("PWD=") && !line.starts_with("_=")).collect();
    assert_eq!(lines, [&format!("PATH={PATH}"), "SECRET=do-not-show", "footbridge __keeper "]);
}

#[tokio::test]
async fn a_signal_reaches_the_whole_group() {
    let script = "trap 'echo shell; exit 3' TERM; (trap 'echo child; exit' TERM; echo ready; while :; do read x; done) & \
                  wait; wait";
    let mut kept =
        shell(script).streams(ProgramStream::Pipe, ProgramStream::Pipe, ProgramStream::Null).spawn().await.unwrap();
    let mut stdout = kept.stdout.take().unwrap();
    assert_eq!(line(&mut stdout).await, "ready");
    kept.signal(Signal::SIGTERM);
    assert_eq!(soon(kept.wait()).await, Ok(ProgramEnd::Exited(3)));
    let mut text = String::new();
    soon(stdout.read_to_string(&mut text)).await.unwrap();
    assert!(text.contains("shell"), "{text}");
}

#[tokio::test]
async fn a_signal_sent_to_the_keeper_itself_is_passed_on() {
    // One that nobody is started with ignored: a shell cannot trap such.
    let script = "trap 'exit 9' TERM; echo $PPID; while :; do read x; done";
    let mut kept =
        shell(script).streams(ProgramStream::Pipe, ProgramStream::Pipe, ProgramStream::Null).spawn().await.unwrap();
    let keeper = line(kept.stdout.as_mut().unwrap()).await.parse().unwrap();
    kill(Pid::from_raw(keeper), Signal::SIGTERM).unwrap();
    assert_eq!(soon(kept.wait()).await, Ok(ProgramEnd::Exited(9)));
}

/// Leaves three kinds of descendants: in the background, in another session, and orphaned twice over.
const LEAVER: &str = "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000 & echo ready; wait' &); ";

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let (mut witness, held) = witness();
    let command = shell(&format!("{{ {LEAVER} }} | read ready; exit 4"));
    let mut kept =
        command.streams(ProgramStream::Null, ProgramStream::Null, ProgramStream::Given(held)).spawn().await.unwrap();
    assert_eq!(soon(kept.wait()).await, Ok(ProgramEnd::Exited(4)));
    everything_is_gone(&mut witness).await;
}

#[tokio::test]
async fn dropping_it_ends_everything() {
    let (mut witness, held) = witness();
    let command =
        shell(&format!("{LEAVER} wait")).streams(ProgramStream::Null, ProgramStream::Pipe, ProgramStream::Given(held));
    let mut kept = command.spawn().await.unwrap();
    assert_eq!(line(kept.stdout.as_mut().unwrap()).await, "ready");
    drop(kept);
    everything_is_gone(&mut witness).await;
}

#[tokio::test]
async fn killing_it_says_how_it_ended_and_leaves_nothing() {
    let (mut witness, held) = witness();
    let command = shell(&format!("trap '' TERM INT HUP; {LEAVER} wait; wait"));
    let mut kept =
        command.streams(ProgramStream::Null, ProgramStream::Pipe, ProgramStream::Given(held)).spawn().await.unwrap();
    assert_eq!(line(kept.stdout.as_mut().unwrap()).await, "ready");
    assert_eq!(kept.kill(DEADLINE).await, Some(Ok(ProgramEnd::Signaled(9))));
    everything_is_gone(&mut witness).await;
}

#[tokio::test]
async fn a_chain_that_forks_faster_than_it_dies_ends() {
    let (mut witness, held) = witness();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chain");
    std::fs::write(&file, "setsid sh \"$0\" & exit").unwrap();
    let script = "for i in 1 2 3 4; do sh \"$0\" & done; echo ready; wait; wait; read x";
    let command = Kept::command("sh").args(["-c".as_ref(), script.as_ref(), file.as_os_str()]);
    let command = command.env([("PATH", PATH)]).helper(FOOTBRIDGE);
    let mut kept =
        command.streams(ProgramStream::Pipe, ProgramStream::Pipe, ProgramStream::Given(held)).spawn().await.unwrap();
    assert_eq!(line(kept.stdout.as_mut().unwrap()).await, "ready");
    assert_eq!(kept.kill(DEADLINE).await, Some(Ok(ProgramEnd::Signaled(9))));
    everything_is_gone(&mut witness).await;
}

#[tokio::test]
async fn many_start_and_end_side_by_side() {
    let (mut witness, held) = witness();
    let mut running = Vec::new();
    for number in 0..40 {
        let held = held.try_clone().unwrap();
        let command = shell(&format!("sleep 1000 & read x; exit {number}"));
        running.push(tokio::spawn(async move {
            let mut kept = command
                .streams(ProgramStream::Pipe, ProgramStream::Null, ProgramStream::Given(held))
                .spawn()
                .await
                .unwrap();
            drop(kept.stdin.take());
            soon(kept.wait()).await
        }));
    }
    drop(held);
    for (number, task) in running.into_iter().enumerate() {
        assert_eq!(task.await.unwrap().map(ProgramEnd::code), Ok(i32::try_from(number).unwrap()));
    }
    everything_is_gone(&mut witness).await;
}

#[tokio::test]
#[ignore = "a measurement: run it alone, with --release for figures"]
async fn how_long_a_start_and_an_end_take() {
    let started = std::time::Instant::now();
    for _ in 0..200 {
        assert_eq!(
            Kept::command("/bin/true").helper(FOOTBRIDGE).spawn().await.unwrap().wait().await,
            Ok(ProgramEnd::Exited(0))
        );
    }
    eprintln!("start to end of /bin/true: {:?} each", started.elapsed() / 200);
    let kept =
        shell("read x").streams(ProgramStream::Pipe, ProgramStream::Null, ProgramStream::Null).spawn().await.unwrap();
    let parent = std::fs::read_to_string(format!("/proc/{}/status", kept.pid())).unwrap();
    let keeper = parent.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap();
    let memory = std::fs::read_to_string(format!("/proc/{keeper}/smaps_rollup")).unwrap_or_default();
    for line in memory.lines().filter(|line| line.starts_with("Rss") || line.starts_with("Private_Dirty")) {
        eprintln!("keeper {line}");
    }
}

#[tokio::test]
async fn one_program_holds_no_end_of_anothers() {
    let (mut witness, held) = witness();
    let first = shell("read x")
        .streams(ProgramStream::Pipe, ProgramStream::Null, ProgramStream::Given(held))
        .spawn()
        .await
        .unwrap();
    let second =
        shell("read x").streams(ProgramStream::Pipe, ProgramStream::Null, ProgramStream::Null).spawn().await.unwrap();
    drop(first);
    everything_is_gone(&mut witness).await;
    drop(second);
}

#[tokio::test]
async fn a_program_dies_with_a_keeper_that_is_killed() {
    let (mut witness, held) = witness();
    let command = shell("echo $PPID; exec sleep 1000").streams(
        ProgramStream::Null,
        ProgramStream::Pipe,
        ProgramStream::Given(held),
    );
    let mut kept = command.spawn().await.unwrap();
    let keeper = line(kept.stdout.as_mut().unwrap()).await.parse().unwrap();
    kill(Pid::from_raw(keeper), Signal::SIGKILL).unwrap();
    everything_is_gone(&mut witness).await;
    assert_eq!(soon(kept.wait()).await, Err(LostKeeper));
}

/// A harness with a confined program, some of whose children are in sessions of their own.
#[tokio::test]
#[ignore = "a part that other tests start"]
async fn as_harness_of_a_confined_program() {
    let held = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let script =
        "setsid sh -c 'setsid sleep 1000 & exec sleep 1000' & (exec sleep 1000 &) ; echo started; exec sleep 1000";
    let streams =
        |command: KeptCommand| command.streams(ProgramStream::Null, ProgramStream::Pipe, ProgramStream::Given(held));
    let mut kept = streams(shell(script).confined(FilePlan::default())).spawn().await.unwrap();
    assert_eq!(line(kept.stdout.as_mut().unwrap()).await, "started");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", kept.pid())).unwrap();
    let keeper = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(1).unwrap().to_owned();
    println!("keeper {keeper}");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_of_a_confined_program_outlives_harness_and_keeper_that_are_killed_at_once() {
    let test = "nothing_of_a_confined_program_outlives_harness_and_keeper_that_are_killed_at_once";
    let root = nix::unistd::geteuid().is_root();
    for user in if root { vec![None, Some(65534)] } else { vec![None] } {
        let mut try_out = Command::new("unshare");
        let own_users: &[&str] = if user.is_none() && root { &[] } else { &["--user"] };
        try_out.args(own_users).args(["--pid", "--fork", "--mount-proc", "true"]).stderr(Stdio::null());
        let mut harness = Command::new("/proc/self/exe");
        harness.args(["--ignored", "--exact", "as_harness_of_a_confined_program", "--nocapture", "--quiet"]);
        if let Some(user) = user {
            try_out.uid(user).gid(user);
            harness.uid(user).gid(user);
        }
        if !try_out.status().is_ok_and(|status| status.success()) {
            skipped(test, format_args!("no pid namespaces here for user {user:?}"));
            continue;
        }
        let (mut witness, held) = witness();
        let mut child = harness.stdin(Stdio::from(held)).stdout(Stdio::piped()).spawn().unwrap();
        drop(harness);
        let said = std::io::BufReader::new(child.stdout.take().unwrap());
        let keeper = said.lines().map_while(Result::ok).find_map(|line| Some(line.split_once("keeper ")?.1.to_owned()));
        let all = [i32::try_from(child.id()).unwrap(), keeper.unwrap().parse().unwrap()].map(Pid::from_raw);
        // Both at once: neither does anything between the two.
        all.iter().for_each(|pid| kill(*pid, Signal::SIGSTOP).unwrap());
        all.iter().for_each(|pid| kill(*pid, Signal::SIGKILL).unwrap());
        everything_is_gone(&mut witness).await;
        child.wait().unwrap();
    }
}

#[tokio::test]
async fn a_confined_program_sees_its_own_processes_and_is_the_same_user() {
    let script = "id -u; test -d /proc/$$ && readlink /proc/self/exe >/dev/null && echo own; kill -0 $$ && echo there";
    let (text, ended) = output_of(shell(script).confined(FilePlan::default())).await;
    let user = nix::unistd::geteuid();
    assert_eq!((text, ended), (format!("{user}\nown\nthere\n"), ProgramEnd::Exited(0)));
    let (_, ended) = output_of(shell("setsid sleep 1000 & kill -TERM $$").confined(FilePlan::default())).await;
    assert_eq!(ended, ProgramEnd::Signaled(15), "it is no init, which signals would not end");
}

#[tokio::test]
async fn no_descriptor_beyond_the_three_is_open() {
    let (_reader, writer) = std::io::pipe().unwrap();
    let writer = OwnedFd::from(writer);
    nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    let (text, _) =
        output_of(Kept::command("ls").args(["/proc/self/fd"]).env([("PATH", PATH)]).helper(FOOTBRIDGE)).await;
    assert_eq!(text, "0\n1\n2\n3\n", "3 is the listing itself");
}

#[tokio::test]
async fn a_program_has_a_session_of_its_own_without_a_terminal() {
    let (text, _) = output_of(shell("cut -d' ' -f6,7 /proc/$$/stat; echo $$")).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("{} 0", lines[1]));
}

/// A harness that a test starts in a process of its own, so as to kill it or to start it under certain limits.
#[tokio::test]
#[ignore = "a part that other tests start"]
async fn as_harness() {
    footbridge_processes::sys::Inherited::of_this_process();
    footbridge_processes::sys::harden().unwrap();
    let script = std::env::var("SCRIPT").unwrap();
    let words = |script: String| ["sh", "-c", &script].map(Into::into);
    let cleanup = std::env::var("CLEANUP").map(words).into_iter().flatten().collect::<Vec<_>>();
    let mut kept = shell(&script)
        .cleanup(&cleanup, &[("PATH".into(), PATH.into())], Duration::ZERO)
        .streams(ProgramStream::Inherit, ProgramStream::Inherit, ProgramStream::Inherit)
        .spawn()
        .await
        .unwrap();
    kept.wait().await.unwrap();
}

fn harness(script: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--ignored", "--exact", "as_harness", "--nocapture", "--quiet"]).env("SCRIPT", script);
    command
}

#[tokio::test]
async fn everything_ends_when_the_harness_is_killed_with_9() {
    let (mut witness, held) = witness();
    let mut harness = harness(&format!("{{ {LEAVER} wait; }} >&2"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(held)
        .spawn()
        .unwrap();
    while line(&mut witness).await != "ready" {}
    harness.kill().unwrap();
    harness.wait().unwrap();
    everything_is_gone(&mut witness).await;
}

/// The limit of core files that a test asks for: 7 if the machine allows any.
fn core_limit() -> u64 {
    let core = 7.min(getrlimit(Resource::RLIMIT_CORE).unwrap().1 / 1024);
    if core == 0 {
        skipped("the limit of core files that a program gets back", "no core files are allowed here");
    }
    core
}

/// The ordinary signals that a process ignores, by its status.
fn ignored(status: &str) -> u64 {
    let text = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    u64::from_str_radix(text, 16).unwrap() & 0x7fff_ffff
}

#[test]
fn a_program_gets_back_what_a_hardened_harness_was_started_with() {
    let core = core_limit();
    let folder = tempfile::tempdir().unwrap();
    let limits = "echo umask $(umask); echo core $(ulimit -c); echo files $(ulimit -n)";
    let script = format!("{limits}; grep -E 'SigBlk|SigIgn' /proc/self/status");
    // And what ends a container, which an engine's client may begin other programs by.
    let cleanup = format!("{{ {limits}; }} | tee {}", folder.path().join("limits").display());
    let mut inner = Command::new("sh");
    let start = format!("umask 027; ulimit -Sc {core}; ulimit -Sn 321; trap '' USR2; exec \"$@\"");
    inner.args(["-c", &start, "sh"]);
    let harness = harness(&script);
    inner.arg(format!("/proc/{}/exe", std::process::id())).args(harness.get_args()).env("SCRIPT", &script);
    inner.env("CLEANUP", cleanup);
    let output = inner.stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in ["umask 0027", &format!("core {core}\n"), "files 321", "SigBlk:\t0000000000000000"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let of_cleanup = std::fs::read_to_string(folder.path().join("limits")).unwrap();
    assert_eq!(of_cleanup, format!("umask 0027\ncore {core}\nfiles 321\n"));
    // This process may have been started with some of them ignored, as by nohup or from a script's background.
    let bit = |signal: Signal| 1 << (signal as i32 - 1);
    let here = ignored(&std::fs::read_to_string("/proc/self/status").unwrap()) & !bit(Signal::SIGPIPE);
    assert_eq!(ignored(&text), here | bit(Signal::SIGUSR2), "nothing but what the harness was started with");
}

#[test]
fn a_keeper_without_a_harness_ends() {
    let keeper = Command::new(FOOTBRIDGE).arg("__keeper").stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut keeper = keeper.unwrap();
    let mut text = String::new();
    keeper.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), keeper.wait().unwrap().code()), ("", Some(70)));
}
