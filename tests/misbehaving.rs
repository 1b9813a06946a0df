//! The misbehaving MCP server, for the tests of several packages.

use std::{path::PathBuf, process::Command};

/// Its program, built if it is missing.
pub(crate) fn program() -> String {
    let target: PathBuf = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().into();
    let path = target.join("misbehaving-server");
    if !path.exists() {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let build = ["build", "-q", "-p", "footbridge-tests", "--bin", "misbehaving-server"];
        assert!(Command::new(cargo).args(build).status().unwrap().success());
    }
    path.into_os_string().into_string().unwrap()
}
