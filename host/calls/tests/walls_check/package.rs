//! The package that the cases are checked in: as any crate outside, it has only what the host's crates make public.
//!
//! Failure paths: where cargo does not come as far as the cases, none of the twins is built, and that is reported with
//! what it says.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{case::Case, checked::Checked, manifest};

/// What cargo sets for the tests that it runs. Left in the environment, some of it would have build scripts run again.
const OF_THIS_TEST: [&str; 6] =
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_TARGET_TMPDIR", "CARGO_PRIMARY_PACKAGE"];

/// A package in the target folder.
pub(crate) struct Package {
    folder: PathBuf,
    target: PathBuf,
}

impl Package {
    /// Writes it. What is there and the same stays untouched, so that twins are checked only when something changed.
    pub(crate) fn write(cases: &[Case]) -> Self {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let package = Self { folder: temporary.join("walls"), target: temporary.parent().unwrap().to_owned() };
        let mut files = BTreeMap::from([
            ("Cargo.toml".to_owned(), manifest::of(workspace, cases)),
            ("Cargo.lock".to_owned(), fs::read_to_string(workspace.join("Cargo.lock")).unwrap()),
        ]);
        for case in cases {
            files.insert(format!("{}.rs", case.name), case.text.clone());
            files.insert(format!("{}.rs", manifest::twin_of(&case.name)), case.twin.clone());
        }
        fs::create_dir_all(&package.folder).unwrap();
        for (name, text) in files {
            let path = package.folder.join(name);
            if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
                fs::write(&path, text).unwrap();
            }
        }
        package
    }

    /// Has it checked. Its dependencies go into the target folder of the workspace: those of the registry are the same
    /// there, and cargo keeps ours apart, since they are seen from another workspace.
    pub(crate) fn check(&self) -> Checked {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["check", "--offline", "--keep-going", "--message-format=json", "--examples"]);
        command.arg("--target-dir").arg(&self.target).current_dir(&self.folder);
        for (name, _) in env::vars_os() {
            if OF_THIS_TEST.iter().any(|start| name.to_str().is_some_and(|name| name.starts_with(start))) {
                command.env_remove(name);
            }
        }
        Checked::read(&command.output().unwrap())
    }
}
