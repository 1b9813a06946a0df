//! A guest that uses tools: before the harness is there, once it is, and after the machine lost its power.

use std::{thread, time::Duration};

use footbridge_proto::endpoint::Endpoint;
use footbridge_tests::{
    Real, Servers,
    microvm::{Cable, Image, Kernel, Vm},
};
use serde_json::json;

use crate::{bridge::Bridge, relay};

/// How long the harness is held back while a guest waits for it. The daemon takes 2 s to tell a guest that nothing
/// listens, so the relay has to try more than once.
const HELD_BACK: Duration = Duration::from_secs(3);

fn servers(everything: Option<&Real>) -> Servers {
    match everything {
        Some(everything) => Servers::demo().and("everything", json!({"command": everything.program()})),
        None => Servers::demo(),
    }
}

/// Scripts of an agent that knows this token.
fn agent(token: &str, script: &str) -> String {
    format!("export TOOL_CLI_TOKEN={token}\nset -e\n{script}")
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

/// From nothing to a call, as an agent would.
fn four_steps(vm: &mut Vm, token: &str) {
    let script = "
        tool-cli | grep -o demo
        tool-cli demo | grep -o get_weather
        tool-cli demo get_weather | grep -o city | head -n 1
        tool-cli demo get_weather '{\"city\": \"Zürich\"}' | grep -o '\"city\": \"Zürich\"'
        tool-cli --exit-codes demo get_weather '{\"town\": \"Bern\"}' 2>/dev/null || echo $?
        TOOL_CLI_TOKEN=wrong tool-cli --exit-codes 2>/dev/null || echo $?";
    let expected = "demo\nget_weather\ncity\n\"city\": \"Zürich\"\n2\n4\n";
    assert_eq!(vm.runs(&agent(token, script)).well(), expected);
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

fn tools(series: &'static str) {
    let test = "tools_over_vsock";
    let Some(kernel) = Kernel::of(test, series) else { return };
    let real = Real::server(&format!("{test} (Linux {series})"), "mcp-server-everything");
    let cable = Cable::new();
    let image = Image::of(&kernel).packed();
    let mut vm = Vm::boots(&cable, &image);
    nobody_is_there(&mut vm);

    // A token is only known once a session is there, so this one is refused, by a harness that came late.
    let relay = relay(7179, "vsock:host:7179", "");
    vm.starts(&format!(
        "{relay}date +%s\nTOOL_CLI_TOKEN=unknown tool-cli --exit-codes 2>/dev/null\necho $?\ndate +%s\n"
    ));
    thread::sleep(HELD_BACK);
    let listen: Endpoint = format!("vsock-mux:{}:7179", cable.socket().display()).parse().unwrap();
    let bridge = Bridge::start(&servers(real.as_ref()), &listen);
    let said = vm.ends().well();
    let numbers: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers[1], 4, "it is answered by the harness: {said}");
    assert!(numbers[2] - numbers[0] >= HELD_BACK.as_secs() - 1, "it had to wait: {said}");

    four_steps(&mut vm, &bridge.token);
    if real.is_some() {
        everything(&mut vm, &bridge.token);
    }
    assert_eq!(vm.runs("cat relay-7179.log").well(), "", "a harness that is a little late is not worth a word");

    let add = "tool-cli demo add_note '{\"text\": \"of the first machine\"}' >/dev/null";
    assert_eq!(vm.runs(&agent(&bridge.token, add)).well(), "");
    vm.loses_power();
    let mut vm = Vm::boots(&cable, &image);
    assert_eq!(vm.runs(&relay).well(), "");
    four_steps(&mut vm, &bridge.token);
    let said = vm.runs(&agent(&bridge.token, "tool-cli demo list_notes '{}'")).well();
    assert!(said.contains("of the first machine"), "the session and its servers went on: {said}");
    let made = 2 + 2 + if real.is_some() { 3 } else { 0 };
    assert_eq!(bridge.outcomes("ok"), made);
}

#[test]
fn tools_over_vsock_from_linux_6_1() {
    tools("6.1");
}

#[test]
fn tools_over_vsock_from_linux_6_12() {
    tools("6.12");
}
