//! Bytes through a relay in a guest, over vsock, to a host that sends them back: none is lost, none changes, on kernels
//! that send large writes in one descriptor and on those that use several.

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    thread,
};

use footbridge_tests::microvm::{Cable, Image, Kernel, Vm};

use crate::relay;

const PORT: u32 = 7300;

/// Sends everything back, on any number of connections at a time, for as long as the test runs.
fn echo(listener: UnixListener) {
    let sends_back = |mut stream: UnixStream| {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || sends_back(stream));
        }
    });
}

/// Sends a file through the relay and prints the digest of what came back. The client's standard input stays open
/// until everything is back: an end that reaches the host would end the other direction with it.
const THERE_AND_BACK: &str = r#"
there_and_back() {
  mkfifo "hold-$1"
  { cat "$1"; read -r line <"hold-$1"; } | nc 127.0.0.1 7300 |
    { head -c "$(stat -c %s "$1")" | sha256sum; echo done >"hold-$1"; } >"$1.back"
  sha256sum <"$1" | cmp - "$1.back" && echo "$1 is whole"
}
"#;

fn whole(series: &'static str) {
    let Some(kernel) = Kernel::of("bytes_over_vsock", series) else { return };
    let cable = Cable::new();
    echo(UnixListener::bind(cable.socket_of_port(PORT)).unwrap());
    let mut vm = Vm::boots(&cable, &Image::of(&kernel).packed());
    assert_eq!(vm.runs(&relay(7300, "vsock:host:7300", "")).well(), "");

    let script = "set -e\nhead -c 20971520 /dev/urandom >large\nthere_and_back large\n";
    assert_eq!(vm.runs(&format!("{THERE_AND_BACK}{script}")).well(), "large is whole\n", "Linux {series}");

    let script = "
        for i in 1 2 3 4 5 6 7 8; do head -c 1048577 /dev/urandom >\"small-$i\"; done
        for i in 1 2 3 4 5 6 7 8; do there_and_back \"small-$i\" & done
        wait
        cat relay-7300.log";
    let said = vm.runs(&format!("{THERE_AND_BACK}{script}")).well();
    let expected: Vec<String> = (1..=8).map(|i| format!("small-{i} is whole")).collect();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, expected, "Linux {series}");
}

#[test]
fn bytes_over_vsock_arrive_whole_on_linux_6_1() {
    whole("6.1");
}

#[test]
fn bytes_over_vsock_arrive_whole_on_linux_6_12() {
    whole("6.12");
}
