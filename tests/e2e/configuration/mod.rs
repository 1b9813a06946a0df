//! The configuration as people have it: found without being named, in files as other programs write them, looked at and
//! taken over by `footbridge config`.

mod found;
mod import;
mod show;
mod trust;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use footbridge_tests::{Host, Ran, Running, Servers, programs};
use serde_json::{Value, json};

/// Somebody with a home folder and a working folder of their own, in neither of which there is anything.
pub(crate) fn newcomer() -> Host {
    let host = Host::with(&Servers::none()).only_configs(&[]);
    let home = host.path().join("home");
    fs::create_dir(&home).unwrap();
    let host = host.env("HOME", &home).env("XDG_CONFIG_HOME", home.join("config"));
    let path = format!("{}:{}", programs::folder().display(), std::env::var("PATH").unwrap());
    host.env("PATH", path)
}

/// The home folder of a newcomer.
pub(crate) fn home(host: &Host) -> PathBuf {
    host.path().join("home")
}

/// `footbridge` with these words, to its end.
pub(crate) fn types(host: &Host, words: &[&str]) -> Ran {
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    Running::start(&mut host.footbridge(&words)).ends()
}

/// Writes a file, and the folders above it.
pub(crate) fn write(path: &Path, text: impl AsRef<str>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text.as_ref()).unwrap();
}

/// A servers file with these entries.
pub(crate) fn servers(entries: &Value) -> String {
    json!({"mcpServers": entries}).to_string()
}

/// The entry of the server that comes along.
pub(crate) fn demo() -> Value {
    json!({"command": "footbridge", "args": ["demo-server"]})
}
