//! Where the programs under test are: in the folder that `FOOTBRIDGE_BIN_DIR` names, or where cargo puts them.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

/// The program `footbridge`.
#[must_use]
pub fn footbridge() -> PathBuf {
    product("footbridge")
}

/// The program `tool-cli`.
#[must_use]
pub fn tool_cli() -> PathBuf {
    product("tool-cli")
}

/// The program `footbridge-relay`.
#[must_use]
pub fn relay() -> PathBuf {
    product("footbridge-relay")
}

/// The misbehaving server, which cargo builds along with the tests.
#[must_use]
pub fn misbehaving_server() -> PathBuf {
    beside_the_tests().join("misbehaving-server")
}

/// The program of other tests, by their crate and name, if cargo has built it since its source last changed. Of several
/// the newest, since cargo keeps those of before.
#[must_use]
pub fn tests(of: &str, name: &str) -> Option<PathBuf> {
    let built = std::fs::read_dir(beside_the_tests().join("deps")).ok()?.flatten().filter(|entry| {
        let file = entry.file_name();
        let hash = file.to_str().and_then(|file| file.strip_prefix(name)?.strip_prefix('-'));
        hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    });
    let program = built.map(|entry| entry.path()).max_by_key(|path| changed(path))?;
    let sources = [format!("{of}/src"), format!("{of}/tests/{name}"), format!("{of}/tests/{name}.rs")];
    let newest = sources.iter().map(|source| changed(&repository().join(source))).max()?;
    (changed(&program) >= newest).then_some(program)
}

/// When a file, or the newest file below a folder, last changed.
fn changed(path: &Path) -> Option<SystemTime> {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().filter_map(|entry| changed(&entry.path())).max(),
        Err(_) => path.metadata().and_then(|meta| meta.modified()).ok(),
    }
}

/// A program as the tests of its own crate know it, if cargo has built it.
#[must_use]
pub fn of_its_tests(name: &str) -> Option<PathBuf> {
    Some(beside_the_tests().join(name)).filter(|path| path.exists())
}

/// An example of one of the crates, which cargo builds along with all tests.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    let path = beside_the_tests().join("examples").join(name);
    assert!(path.is_file(), "{} is missing: run cargo build --workspace --examples", path.display());
    path
}

/// Writes a script that can be executed.
///
/// By another process: a test that forks at this moment would hold it open for writing here, and nobody could execute
/// it.
pub fn writes(script: &Path, text: &str) {
    let write = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(script).arg(text).status().unwrap();
    assert!(written.success(), "{}", script.display());
}

/// The folder that the three programs are in.
#[must_use]
pub fn folder() -> PathBuf {
    footbridge().parent().map(Path::to_owned).unwrap_or_default()
}

/// Whether the search path has a program of this name.
#[must_use]
pub fn on_path(name: &str) -> bool {
    find(name).is_some()
}

/// The program of this name on the search path.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The libraries that a program needs, its loader among them; none of a static one.
#[must_use]
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    listed.lines().filter_map(path).collect()
}

/// The top of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

fn product(name: &str) -> PathBuf {
    let folder = std::env::var_os("FOOTBRIDGE_BIN_DIR").map_or_else(beside_the_tests, PathBuf::from);
    let path = std::path::absolute(folder.join(name)).unwrap();
    assert!(
        path.is_file(),
        "{} is missing: run scripts/build and set FOOTBRIDGE_BIN_DIR=target/footbridge/bin, \
         or run cargo build -p footbridge -p footbridge-guest",
        path.display()
    );
    path
}

/// Test programs are in `target/PROFILE/deps`, the others one up.
fn beside_the_tests() -> PathBuf {
    let us = std::env::current_exe().unwrap();
    us.ancestors().nth(2).unwrap().to_owned()
}
