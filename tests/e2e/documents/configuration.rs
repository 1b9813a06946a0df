//! Configurations on the pages: `footbridge config check` takes each of them, and systemd its units.

use std::{fs, process::Command};

use footbridge_tests::{Servers, programs, skipped};

use super::{blocks, host};

/// Blocks of JSON that are no servers file begin with this.
const RECORD: &str = "{\"seq\":";

#[test]
fn every_configuration_of_the_pages_is_taken() {
    let mut taken = 0;
    for block in blocks::all() {
        let file = match block.language.as_str() {
            "toml" => "page.toml",
            "json" if !block.text.starts_with(RECORD) => "page.json",
            _ => continue,
        };
        let host =
            host::host(&Servers::demo()).env("SEARCH_TOKEN", "search-0123456789").env("APPROVALS_KEY", "approvals-1");
        let host = host.env("ANTHROPIC_KEY", "anthropic-0123456789").env("TRACKER_TOKEN", "tracker-0123456789");
        let host = host.env("OPENAI_KEY", "openai-0123456789");
        fs::write(host.work().join(file), &block.text).unwrap();
        let ran = host::types(&host, &format!("footbridge config check --config {file}"));
        assert_eq!(ran.status, 0, "{}: {ran:?}", block.place());
        taken += 1;
    }
    assert!(taken >= 8, "{taken}");
}

#[test]
fn systemd_takes_the_units_of_the_pages() {
    if !super::has("systemd-analyze") {
        return skipped("systemd_takes_the_units_of_the_pages", "systemd-analyze is missing");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = programs::footbridge().display().to_string();
    let mut names = Vec::new();
    for block in blocks::all().into_iter().filter(|block| block.language == "ini") {
        let name = if block.text.contains("[Socket]") { "footbridge-agent.socket" } else { "footbridge.service" };
        assert!(!names.contains(&name), "{}: another {name}", block.place());
        fs::write(folder.path().join(name), block.text.replace("/usr/local/bin/footbridge", &program)).unwrap();
        names.push(name);
    }
    assert_eq!(names, ["footbridge.service", "footbridge-agent.socket"]);
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .args(names.iter().map(|name| format!("./{name}")))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    // Units of the machine itself may have something to say as well.
    assert!(verified.status.success() && !said.contains("footbridge"), "{said}");
}
