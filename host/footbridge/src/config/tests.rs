//! All files together: every mistake at once, and what is odd beside them.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::*;

/// All that is said of files with these texts: mistakes, and notes.
fn said(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    let home = |name: &str| (name == "HOME").then(|| place.path().as_os_str().to_owned());
    let folders = Folders::find(7, home).unwrap();
    let write = |(name, text): &(&str, &str)| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let files: Vec<PathBuf> = files.iter().map(write).collect();
    let (config, mistakes) = look_over(&files, &folders, &Variables::of_this_process());
    let plain = |all: &[Mistake]| all.iter().map(ToString::to_string).collect();
    (plain(&mistakes), plain(&config.notes))
}

#[track_caller]
fn holds(found: &[String], all: &[&str]) {
    assert_eq!(found.len(), all.len(), "{found:#?}");
    for part in all {
        assert!(found.iter().any(|one| one.contains(part)), "{part}: {found:#?}");
    }
}

#[test]
fn mistakes_of_settings_services_and_policies_are_said_at_once() {
    let text = "[limits.calls]\nspeed = 1\n[services.x]\nurl = \"ftp://x\"\n[services.y]\nurll = \"https://y\"\n\
                [approval]\ntimes = 1\n[[policies.p.rules]]\ndecision = \"alow\"\n";
    let (mistakes, _) = said(&[("f.toml", text)]);
    let all = ["limits.calls.speed", "services.x.url", "services.y.urll", "approval.times", "policies.p.rules"];
    holds(&mistakes, &all);
}

#[test]
fn notes_are_said_beside_mistakes() {
    let text = r#"{"mcpServers": {"a": {"comand": "x"}, "b": {"command": "no-such-program-here", "strange": 1}}}"#;
    let (mistakes, notes) = said(&[("s.json", text)]);
    holds(&mistakes, &["did you mean \"command\"?"]);
    assert!(notes.iter().any(|note| note.contains("no-such-program-here")), "{notes:#?}");
    assert!(notes.iter().any(|note| note.contains("key \"strange\" is not known here")), "{notes:#?}");
}
