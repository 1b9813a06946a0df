//! AF_VSOCK on both ends, in one guest, since few machines have the module for that: a daemon whose session listens on
//! a port of vsock, the relay that reaches it, and what both say where there is no vsock yet. The tests of the listener
//! and of the relay that other machines have to skip run here too.

use footbridge_tests::{
    Servers,
    microvm::{Cable, Image, Kernel, Vm},
    programs, skipped,
};

use crate::{FOUR_STEPS, FOUR_STEPS_SAY, agent, relay};

/// Tests of other crates whose names hold `vsock`: crate and name.
const OTHERS: [(&str, &str); 2] = [("host", "listener"), ("guest", "relay_bytes")];

/// Starts a daemon and waits until it is ready.
const SERVE: &str = "
    : >serve.log
    footbridge serve --config /servers.json 2>>serve.log &
    until grep -q ready serve.log; do sleep 0.1; done
";

/// Loads the modules up to this one.
fn load_up_to(last: &str) -> String {
    format!("while read -r m; do insmod /modules/$m.ko 2>&1; test $m = {last} && break; done </modules/later; true")
}

#[track_caller]
fn says(vm: &mut Vm, script: &str, status: i32, parts: &[&str]) {
    let ran = vm.runs(script);
    assert_eq!(ran.status, status, "{script}: {ran:?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in what {script} said: {ran:?}");
    }
}

/// Without a module, and with one but no device, each side says what is missing.
fn what_is_missing_is_named(vm: &mut Vm) {
    let create = "footbridge session create none --listen vsock:any:7179 --peer-cid 1";
    let call = "TOOL_CLI_PORT=7400 TOOL_CLI_TOKEN=none tool-cli --exit-codes 2>&1; cat relay-7400.log; kill $!";
    let call = relay(7400, "vsock:host:7179", "--patience 100ms") + call + "; rm ready-7400";
    says(vm, create, 1, &["vsock:any:7179", "modprobe vhost_vsock"]);
    says(vm, &call, 0, &["cannot reach the harness at vsock:host:7179", "this kernel has no vsock"]);
    assert_eq!(vm.runs(&load_up_to("vsock")).well(), "");
    says(vm, &call, 0, &["cannot reach the harness at vsock:host:7179", "no vsock device"]);
    // The list goes on after `vsock`; those before it are there already, which insmod says.
    let all = load_up_to("none") + "; grep -c '^vsock_loopback ' /proc/modules";
    let said = vm.runs(&all).stdout;
    assert_eq!(said.lines().last(), Some("1"), "{said}");
}

fn session(vm: &mut Vm) {
    let created = vm.runs("footbridge session create own --listen vsock:any:7179 --peer-cid 1 --env").well();
    let token = created.lines().find_map(|line| line.strip_prefix("TOOL_CLI_TOKEN=")).unwrap().to_owned();
    assert!(created.contains("FOOTBRIDGE_TO=vsock:local:7179"), "{created}");
    assert_eq!(vm.runs(&relay(7179, "vsock:local:7179", "")).well(), "");
    assert_eq!(vm.runs(&agent(&token, FOUR_STEPS)).well(), FOUR_STEPS_SAY);
    let many = "for i in 1 2 3 4 5 6 7 8; do tool-cli demo list_cities '{}' >/dev/null & done; wait";
    assert_eq!(vm.runs(&agent(&token, many)).well(), "");
    says(vm, "cat /var/lib/footbridge/audit/*/*.jsonl", 0, &["\"peer\":\"vsock:cid=1,", "\"outcome\":\"ok\""]);

    // The port is shared, but a connection of a context id that no session has is closed.
    assert!(vm.runs("footbridge session create other --listen vsock:any:7200 --peer-cid 42").status == 0);
    let stranger = relay(7200, "vsock:local:7200", "") + "TOOL_CLI_PORT=7200 tool-cli --exit-codes";
    says(vm, &agent(&token, &stranger), 3, &[]);
    says(vm, "cat serve.log", 0, &["machines without a session here were closed cid=1"]);

    let taken = "footbridge session create third --listen vsock:any:7179 --peer-cid 1";
    says(vm, taken, 1, &["--peer-cid 1"]);
    let others = "export FOOTBRIDGE_STATE=/tmp/state FOOTBRIDGE_RUNTIME=/tmp/runtime";
    let by_others = format!("{others}\n{}\n{taken}", SERVE.replace("serve.log", "serve-2.log"));
    says(vm, &by_others, 1, &["vsock:any:7179 is in use"]);
    says(vm, "footbridge session create low --listen vsock:any:7179", 1, &["--peer-cid CID"]);
}

fn own_tests(vm: &mut Vm, programs: &[&str]) {
    for program in programs {
        let ran = vm.runs(&format!("FOOTBRIDGE_SKIPPED=/tmp/skipped {program} vsock --test-threads 2"));
        assert_eq!(ran.status, 0, "{program}: {}\n{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("test result: ok. ") && !ran.stdout.contains(" 0 passed"), "{}", ran.stdout);
    }
    assert_eq!(vm.runs("cat /tmp/skipped 2>/dev/null").stdout, "", "nothing is left out here");
}

/// Adds the tests of other crates that are built, and gives their names.
fn with_tests(mut image: Image, test: &str) -> (Image, Vec<&'static str>) {
    // The relay's tests know it by the path that it was built at.
    if let Some(relay) = programs::of_its_tests("footbridge-relay") {
        image = image.with_program_as(&relay, relay.to_str().unwrap());
    }
    let mut added = Vec::new();
    for (of, name) in OTHERS {
        match programs::tests(of, name) {
            Some(path) => {
                image = image.with_program_as(&path, &format!("bin/{name}"));
                added.push(name);
            }
            None => skipped(test, &format!("the newest tests {of}/{name} are not built; run cargo test --workspace")),
        }
    }
    (image, added)
}

fn listens(series: &'static str) {
    let test = "vsock_inside_a_guest";
    let Some(kernel) = Kernel::of(test, series) else { return };
    let cable = Cable::new();
    let servers = cable.path().join("servers.json");
    let text = Servers::none().and("demo", serde_json::json!({"command": "footbridge", "args": ["demo-server"]}));
    std::fs::write(&servers, text.text(cable.path())).unwrap();
    let image = Image::of(&kernel).with_loopback().without_vsock_at_first();
    let image = image.with_program(&programs::footbridge()).with(&servers, "servers.json");
    let (image, tests) = with_tests(image, &format!("{test} (Linux {series})"));

    let mut vm = Vm::boots(&cable, &image.packed());
    assert_eq!(vm.runs(SERVE).well(), "");
    what_is_missing_is_named(&mut vm);
    session(&mut vm);
    own_tests(&mut vm, &tests);
}

#[test]
fn vsock_inside_a_guest_of_linux_6_1() {
    listens("6.1");
}

#[test]
fn vsock_inside_a_guest_of_linux_6_12() {
    listens("6.12");
}
