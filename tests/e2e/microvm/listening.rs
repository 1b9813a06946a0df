//! AF_VSOCK on both ends, in one guest: kernels connect to themselves over vsock only with a module that few machines
//! load. The listener's and the relay's own tests run here too, those that other machines have to skip.

use footbridge_tests::{
    microvm::{Cable, Image, Kernel, Vm},
    programs, skipped,
};

/// Tests of other crates, and those of their tests that are about vsock.
const OTHERS: [(&str, &str); 2] = [("listener", "vsock"), ("relay_bytes", "vsock")];

fn own_tests(vm: &mut Vm) {
    for (program, filter) in OTHERS {
        let ran = vm.runs(&format!("FOOTBRIDGE_SKIPPED=/tmp/skipped {program} {filter} --test-threads 2"));
        eprintln!("{}", ran.stdout);
        assert_eq!(ran.status, 0, "{program}: {ran:#?}");
        assert!(ran.stdout.contains("test result: ok. ") && !ran.stdout.contains(" 0 passed"), "{ran:#?}");
    }
    let skipped = vm.runs("cat /tmp/skipped").stdout;
    assert_eq!(skipped, "", "nothing is left out here");
}

fn listens(series: &'static str) {
    let test = "vsock_inside_a_guest";
    let Some(kernel) = Kernel::of(test, series) else { return };
    let mut image = Image::of(&kernel).with_loopback();
    for (program, _) in OTHERS {
        match programs::tests(program) {
            Some(path) => image = image.with_program_as(&path, &format!("bin/{program}")),
            None => skipped(test, &format!("the tests {program} are not built; run cargo test --workspace")),
        }
    }
    let cable = Cable::new();
    let mut vm = Vm::boots(&cable, &image.packed());
    own_tests(&mut vm);
}

#[test]
fn vsock_inside_a_guest_of_linux_6_1() {
    listens("6.1");
}

#[test]
fn vsock_inside_a_guest_of_linux_6_12() {
    listens("6.12");
}
