//! The story that `scripts/demo` tells is true, goes on by itself, and leaves nothing behind; how `scripts/test` begins.

use std::{path::Path, process::Command};

use footbridge_tests::{Person, Ran, Running, processes, programs, skipped};

/// The demo over the programs that the tests use, with its own folder in this one.
fn demo(folder: &Path) -> Command {
    let bin = folder.join("footbridge/bin");
    std::fs::create_dir_all(bin.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(programs::folder(), bin).unwrap();
    let mut demo = Command::new(programs::repository().join("scripts/demo"));
    demo.arg("--no-build").env("CARGO_TARGET_DIR", folder).env("TMPDIR", folder);
    demo
}

/// Checks that these come one after the other.
#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    parts.iter().fold(text, |rest, part| {
        rest.split_once(part).unwrap_or_else(|| panic!("{part:?} is not in {rest:?}, all is {text}")).1
    });
}

/// What `scripts/test` begins with, as nohup and cron start it: what is ignored then is not in what it starts.
#[test]
fn the_tests_are_started_with_signals_as_a_terminal_has_them() {
    let can = Command::new("env").args(["--default-signal", "true"]).output();
    if !can.is_ok_and(|ran| ran.status.success()) {
        skipped("signals that scripts/test gives back", "env has no --default-signal here (coreutils 8.31)");
        return;
    }
    let text = std::fs::read_to_string(programs::repository().join("scripts/test")).unwrap();
    let begins = &text[..text.find("\nusage() {").unwrap()];
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("begins");
    programs::writes(&script, &format!("{begins}\nsed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status\n"));
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP INT QUIT TERM; exec \"$0\""]).arg(&script);
    let ignored = Running::start(&mut command).ends().well();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    let of_interest = [1, 2, 3, 15].map(|signal| 1_u64 << (signal - 1)).iter().sum::<u64>();
    assert_eq!(ignored & of_interest, 0, "{ignored:x}");
}

#[test]
fn the_story_is_told_to_its_end() {
    let folder = tempfile::Builder::new().prefix("fb-").tempdir().unwrap();
    let Ran { status, stdout, stderr } = Running::start(&mut demo(folder.path())).ends();
    assert_eq!((status, stderr.as_str()), (0, ""), "{stdout}");
    // The host and the sandbox print side by side.
    assert!(stdout.contains(" is allowed\n") && stdout.contains(" is denied\n"), "{stdout}");
    in_order(
        &stdout,
        &[
            "$ footbridge run --config servers.json --config footbridge.toml --sandbox ",
            "$ tool-cli demo get_weather '{\"city\":\"Zürich\"}'",
            "\"temperature\"",
            "lies under water",
            "do not match the input schema",
            // A call that writes waits, and is allowed.
            "$ tool-cli demo add_note",
            "tool:       add_note\narguments:  {\"text\":\"buy milk\"}\neffects:    write",
            "$ footbridge approvals allow ap-",
            "note:///1",
            // One that destroys is denied, and nothing is.
            "$ tool-cli demo delete_all_notes",
            "effects:    write, destructive",
            "$ footbridge approvals deny ap-",
            "Error: This call was denied by whoever was asked",
            "\"text\":\"buy milk\"",
            // The record, whole and with a letter changed.
            "Each call was recorded",
            "add_note",
            "$ footbridge audit verify\n",
            "ok: 1 chain verified",
            "sed -i",
            "BAD",
            "000001.jsonl line ",
            "changed: ",
            "(exit status 1)",
            "Next, with your own servers",
        ],
    );
    assert!(processes::left_of(folder.path()).is_empty());
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["footbridge"]);
}

#[test]
fn on_a_terminal_it_waits_for_no_key() {
    let folder = tempfile::Builder::new().prefix("fb-").tempdir().unwrap();
    let mut person = Person::new();
    let mut demo = demo(folder.path());
    for name in ["HOME", "PATH"] {
        demo.env(name, std::env::var_os(name).unwrap_or_default());
    }
    // Without its pauses.
    let mut told = person.starts(demo.env("FOOTBRIDGE_DEMO_PAUSE", "0"));
    person.sees("is allowed");
    person.sees("Next, with your own servers");
    assert!(told.status().success());
    assert!(!person.saw("1049"), "no prompt opened: {person:?}");
    assert!(processes::left_of(folder.path()).is_empty());
}
