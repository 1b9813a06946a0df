//! Guests in real virtual machines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use footbridge_tests::microvm::{Cable, Image, Kernel, SERIES, Vm};

fn boots(series: &'static str) {
    let Some(kernel) = Kernel::of("boots", series) else { return };
    let cable = Cable::new();
    let image = Image::of(&kernel).packed();
    let start = std::time::Instant::now();
    let mut vm = Vm::boots(&cable, &image);
    eprintln!("{series}: {:?}", start.elapsed());
    let ran = vm.runs("uname -r; lsmod; free; ip addr; cat /proc/cpuinfo | grep model; echo hi >&2; exit 7");
    eprintln!("{ran:#?}");
}

#[test]
fn boot() {
    for s in SERIES {
        boots(s)
    }
}
