//! A folder of many repositories, as honest people have them and as a command may leave them: runs start there all the same.

use std::{fs, process::Command};

use footbridge_tests::{Host, Running, Servers, sandboxes};

/// Starts a run with few descriptors, for good.
fn with_few_descriptors(host: &Host, script: &str) -> Running {
    let command = host.run_of(&["bash", "-c", script]);
    let mut limited = Command::new("bash");
    limited.args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    limited.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Running::start(limited.current_dir(host.work()))
}

#[test]
fn many_repositories_are_kept_with_few_descriptors_and_few_arguments() {
    let test = "many_repositories_are_kept_with_few_descriptors_and_few_arguments";
    for sandbox in sandboxes::own(test) {
        let host = Host::with(&Servers::none()).sandbox(sandbox);
        for number in 0..90 {
            let at = |name: &str| host.work().join(format!("r{number}")).join(name);
            for folder in [".git/objects", ".git/refs", ".git/hooks", ".vscode", ".claude", ".husky", ".idea", ".zed"] {
                fs::create_dir_all(at(folder)).unwrap();
            }
            fs::write(at(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(at(".git/config"), "[core]\n").unwrap();
            let obeyed = [".envrc", ".npmrc", "mise.toml", ".bashrc", ".profile", ".vimrc", ".exrc", ".gdbinit"];
            let more = [".yarnrc", ".mcp.json", "lefthook.yml", ".pryrc", ".irbrc", ".ghci", ".nvimrc", "prek.toml"];
            obeyed.iter().chain(&more).for_each(|name| fs::write(at(name), "").unwrap());
        }
        let script = "for f in r0/.envrc r45/.git/config r89/prek.toml r7/.git/hooks/x; do \
                        (echo x >>$f) 2>/dev/null && echo wrote $f; done; \
                      mv r3/.git r3/x 2>/dev/null && echo moved; mv r4/.envrc r4/x 2>/dev/null && echo moved; \
                      echo x >r5/new && mv r5/new r6/new && ulimit -n";
        let ran = with_few_descriptors(&host, script).ends();
        assert_eq!((ran.status, ran.stdout.as_str()), (0, "128\n"), "{sandbox}: {ran:?}");
    }
}
