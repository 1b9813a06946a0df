//! The recipe of `docs/microvm.md`, run from its own text: the blocks whose fence says `sh recipe=NAME`, one after the
//! other in one shell.

use std::{
    env, fs,
    process::{Command, Stdio},
};

use footbridge_tests::{Host, Servers, microvm::Kernel, programs, recipes};

#[test]
fn the_recipe_of_the_documentation_boots_a_machine_that_calls_a_tool() {
    let Some(kernel) = Kernel::of("the_recipe_of_the_documentation", "6.12") else { return };
    let blocks = recipes::of_page("docs/microvm.md");
    let names: Vec<&str> = blocks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["session", "image", "boot", "end"]);
    let script: String = blocks.into_iter().map(|(_, block)| block).collect();

    let host = Host::with(&Servers::demo());
    fs::copy(host.servers_file(), host.work().join("servers.json")).unwrap();
    let mut path = vec![programs::folder(), kernel.programs()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap()));
    // What the recipe leaves running ends with its shell, as it would with a terminal.
    let script = format!("trap 'kill $(jobs -p); wait' EXIT\n{script}");
    let host = host.env("PATH", env::join_paths(path).unwrap());
    // Longer than any other test waits: it boots a machine.
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=10", "150", "bash", "-euo", "pipefail", "-c", &script]);
    shell.current_dir(host.work()).env_clear().stdin(Stdio::null());
    shell.envs(host.footbridge(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("LINUX", kernel.own_folder()).env("BUSYBOX", kernel.busybox()).env("BIN", programs::folder());
    let ran = shell.output().unwrap();
    let said = format!("{}\n{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{}: {said}", ran.status);
    assert!(said.contains("demo") && said.contains("\"city\": \"Bern\""), "{said}");
}
