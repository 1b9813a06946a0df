//! A guest that uses tools: before the harness is there, once it is, and after the machine lost its power.

use std::{thread, time::Duration};

use footbridge_tests::{
    Daemon, Host, Real, Servers, Tape,
    microvm::{Cable, Image, Kernel, Vm},
};
use serde_json::{Value, json};

use crate::{FOUR_STEPS, FOUR_STEPS_SAY, agent, relay};

/// How long the harness is held back while a guest waits for it. The daemon takes 2 s to tell a guest that nothing
/// listens, so the relay has to try more than once.
const HELD_BACK: Duration = Duration::from_secs(3);

/// The demo server, one that never answers a call, one that answers with 8 MB, and a real one if there is one.
fn servers(tape: &Tape, everything: Option<&Real>) -> Servers {
    let servers = Servers::demo().recording("slow", &["never-answers-call"], tape);
    let servers = servers.misbehaving("long", &["long-result", "8000000"]);
    match everything {
        Some(everything) => servers.and("everything", json!({"command": everything.program()})),
        None => servers,
    }
}

/// Without a harness, calls fail and say why.
fn nobody_is_there(vm: &mut Vm) {
    let script = "
        TOOL_CLI_TOKEN=none TOOL_CLI_PORT=7300 tool-cli --exit-codes; echo $?
        kill $!
        cat relay-7300.log";
    let ran = vm.runs(&(relay(7300, "vsock:host:7300", "--patience 1s") + script));
    assert!(ran.stdout.starts_with("3\n"), "{ran:?}");
    let said = "cannot reach the harness at vsock:host:7300";
    assert!(ran.stdout.contains(said) && ran.stdout.contains("the host did not answer"), "{ran:?}");
    assert!(ran.stderr.contains("harness"), "{ran:?}");
}

#[track_caller]
fn four_steps(vm: &mut Vm, token: &str) {
    assert_eq!(vm.runs(&agent(token, FOUR_STEPS)).well(), FOUR_STEPS_SAY);
}

fn everything(vm: &mut Vm, token: &str) {
    let script = "
        tool-cli everything get-sum '{\"a\":2,\"b\":40}'
        tool-cli everything trigger-long-running-operation '{\"duration\":1,\"steps\":5}'
        tool-cli everything get-tiny-image '{}' --json | wc -c";
    let said = vm.runs(&agent(token, script)).well();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "The sum of 2 and 40 is 42.");
    assert_eq!(lines[1], "Long running operation completed. Duration: 1 seconds, Steps: 5.");
    assert!(lines[2].parse::<u32>().unwrap() > 4000, "{said}");
}

/// A client of MCP that starts a program, as an agent in the guest does.
fn mcp(vm: &mut Vm, token: &str) {
    let script = r#"
        mkfifo asked
        tool-cli mcp <asked >told &
        exec 4>asked
        hears() { until grep -q "\"id\":$1" told; do sleep 0.1; done; }
        echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}' >&4
        hears 1
        echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&4
        echo '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' >&4
        hears 2
        grep -o '"name":"demo__get_weather"' told
        echo '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"demo__get_weather","arguments":{"city":"Oslo"}}}' >&4
        hears 3
        grep '"id":3' told | grep -o '"city":"Oslo"' | head -n 1
        exec 4>&-
        wait $!"#;
    let said = vm.runs(&agent(token, script)).well();
    assert_eq!(said, "\"name\":\"demo__get_weather\"\n\"city\":\"Oslo\"\n");
}

/// A call that is made before the harness is there waits for it, and then goes well.
fn harness_comes_late(vm: &mut Vm, daemon: &mut Daemon, token: &str) {
    assert_eq!(vm.runs(&relay(7179, "vsock:host:7179", "--patience 60s")).well(), "");
    let call = "date +%s\ntool-cli demo get_weather '{\"city\": \"Oslo\"}' | grep -o Oslo\ndate +%s";
    let call = agent(token, &format!("({call}) >late 2>&1 &\necho $! >caller"));
    assert_eq!(vm.runs(&call).well(), "");
    thread::sleep(HELD_BACK);
    daemon.starts();
    let said = vm.runs("while [ -d /proc/$(cat caller) ]; do sleep 0.1; done; cat late").well();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 3 && lines[1] == "Oslo", "{said}");
    let second = |at: usize| lines[at].parse::<u64>().unwrap();
    assert!(second(2) - second(0) >= HELD_BACK.as_secs() - 1, "it had to wait: {said}");
    assert_eq!(vm.runs("cat relay-7179.log").well(), "", "a harness that is a little late is not worth a word");
}

/// Starts a call that gets no answer, and waits until the server has it.
fn waits_for_an_answer(vm: &mut Vm, token: &str, tape: &mut Tape) -> String {
    let call = "tool-cli slow echo '{}' >/dev/null 2>&1 &\necho $! >waiting";
    assert_eq!(vm.runs(&agent(token, call)).well(), "");
    tape.hears("tools/call")
}

fn tools(series: &'static str) {
    let test = "tools_over_vsock";
    let Some(kernel) = Kernel::of(test, series) else { return };
    let real = Real::server(&format!("{test} (Linux {series})"), "mcp-server-everything");
    let (cable, mut tape) = (Cable::new(), Tape::new());
    let mut daemon = Host::with(&servers(&tape, real.as_ref())).serves();
    let session = daemon.creates("vm", &["--listen", &format!("vsock-mux:{}:7179", cable.socket().display())]);
    assert_eq!(session["endpoints"][0], "vsock:host:7179", "what the guest needs: {session}");
    let token = session["token"].as_str().unwrap();
    assert_eq!(daemon.ends().status, 0);

    let image = Image::of(&kernel).packed();
    let mut vm = Vm::boots(&cable, &image);
    nobody_is_there(&mut vm);
    harness_comes_late(&mut vm, &mut daemon, token);
    four_steps(&mut vm, token);
    mcp(&mut vm, token);
    if real.is_some() {
        everything(&mut vm, token);
    }
    let length = vm.runs(&agent(token, "tool-cli long echo '{}' | wc -c")).well();
    assert!(length.trim().parse::<u32>().unwrap() >= 8_000_000, "{length}");
    daemon.killed();
    daemon.starts();
    let add = "tool-cli demo add_note '{\"text\": \"of the first machine\"}' >/dev/null";
    assert_eq!(vm.runs(&agent(token, add)).well(), "", "the harness crashed and came back, and the guest goes on");

    let call = waits_for_an_answer(&mut vm, token, &mut tape);
    assert_eq!(vm.runs("kill -KILL $(cat waiting)").well(), "");
    assert_eq!(tape.hears("notifications/cancelled"), call, "a client that left cancelled its call");
    let call = waits_for_an_answer(&mut vm, token, &mut tape);
    vm.loses_power();
    assert_eq!(tape.hears("notifications/cancelled"), call, "and so does the end of its machine");

    let mut vm = Vm::boots(&cable, &image);
    assert_eq!(vm.runs(&relay(7179, "vsock:host:7179", "")).well(), "");
    four_steps(&mut vm, token);
    let said = vm.runs(&agent(token, "tool-cli demo list_notes '{}'")).well();
    assert!(said.contains("of the first machine"), "the session and its servers went on: {said}");
    all_is_recorded(&daemon.host.record(), 7 + if real.is_some() { 3 } else { 0 });
}

/// Each call has an intent of the session and an outcome: so many went well, and two were cancelled.
fn all_is_recorded(records: &[Value], good: usize) {
    let count = |member: &str, value: &str| records.iter().filter(|record| record[member] == value).count();
    assert_eq!((count("outcome", "ok"), count("detail", "cancelled")), (good, 2), "{records:#?}");
    assert_eq!(count("type", "intent"), good + 2, "{records:#?}");
    let mut intents = records.iter().filter(|record| record["type"] == "intent");
    let is_vmm = |peer: &Value| peer.as_str().is_some_and(|peer| peer.starts_with("vmm:uid="));
    assert!(intents.all(|intent| intent["session"] == "vm" && is_vmm(&intent["peer"])), "{records:#?}");
}

#[test]
fn tools_over_vsock_from_linux_6_1() {
    tools("6.1");
}

#[test]
fn tools_over_vsock_from_linux_6_12() {
    tools("6.12");
}
