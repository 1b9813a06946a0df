//! The manifest of the package that the cases are checked in.
//!
//! It depends on what any crate of the workspace depends on, tests included, with the features that all of them
//! together ask for. So the crates of the registry are the ones that `cargo clippy --workspace --all-targets` has
//! checked already, and this test checks our own alone.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

use crate::case::Case;

/// The manifest, with two libraries for each case: itself, and its twin.
pub(crate) fn of(workspace: &Path, cases: &[Case]) -> String {
    let root = read(&workspace.join("Cargo.toml"));
    let examples = cases.iter().flat_map(|case| [case.name.clone(), twin_of(&case.name)]).map(|name| {
        let (path, kind) = (format!("{name}.rs"), Value::Array(vec!["lib".into()]));
        Value::Table(table([("name", name.into()), ("path", path.into()), ("crate-type", kind)]))
    });
    let edition = root["workspace"]["package"]["edition"].clone();
    let package = [("name", "footbridge-walls".into()), ("edition", edition), ("autoexamples", false.into())];
    // Nobody calls what is in the cases, and warnings may be errors here.
    let lints = Table::from_iter([("rust".to_owned(), Value::Table(table([("unused", "allow".into())])))]);
    let manifest = table([
        ("package", Value::Table(table(package))),
        ("workspace", Value::Table(Table::new())),
        ("profile", root["profile"].clone()),
        ("lints", Value::Table(lints)),
        ("dependencies", Value::Table(dependencies(workspace, &root))),
        ("example", Value::Array(examples.collect())),
    ]);
    manifest.to_string()
}

/// The name of a case's twin.
pub(crate) fn twin_of(case: &str) -> String {
    format!("{case}_twin")
}

/// What the workspace depends on, each with all features that one of its crates asks for.
fn dependencies(workspace: &Path, root: &Table) -> Table {
    let mut all = Table::new();
    for (name, known) in root["workspace"]["dependencies"].as_table().unwrap() {
        let mut known = match known {
            Value::String(version) => table([("version", version.as_str().into())]),
            known => known.as_table().unwrap().clone(),
        };
        if let Some(path) = known.get_mut("path") {
            *path = workspace.join(path.as_str().unwrap()).to_str().unwrap().into();
        }
        all.insert(name.clone(), Value::Table(known));
    }
    for folder in members(workspace, root) {
        let manifest = read(&folder.join("Cargo.toml"));
        for kind in ["dependencies", "dev-dependencies"] {
            for (name, asked) in manifest.get(kind).and_then(Value::as_table).into_iter().flatten() {
                let features = features(asked).chain(features(&all[name])).collect::<BTreeSet<_>>();
                let features = features.into_iter().map(Value::String).collect();
                all[name].as_table_mut().unwrap().insert("features".to_owned(), Value::Array(features));
            }
        }
    }
    all
}

fn features(dependency: &Value) -> impl Iterator<Item = String> + use<> {
    let listed = dependency.get("features").and_then(Value::as_array).cloned().unwrap_or_default();
    listed.into_iter().map(|feature| feature.as_str().unwrap().to_owned())
}

/// The folders of the workspace's crates.
fn members(workspace: &Path, root: &Table) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for member in root["workspace"]["members"].as_array().unwrap() {
        let member = member.as_str().unwrap();
        match member.strip_suffix("/*") {
            Some(parent) => {
                folders.extend(fs::read_dir(workspace.join(parent)).unwrap().map(|entry| entry.unwrap().path()));
            }
            None => folders.push(workspace.join(member)),
        }
    }
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    folders
}

fn read(path: &Path) -> Table {
    fs::read_to_string(path).unwrap().parse().unwrap()
}

fn table<const N: usize>(members: [(&str, Value); N]) -> Table {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
