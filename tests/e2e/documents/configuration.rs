//! Configurations on the pages: `footbridge config check` takes each of them.

use std::fs;

use footbridge_tests::Servers;

use crate::{blocks, host};

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
        fs::write(host.work().join(file), &block.text).unwrap();
        let ran = host::types(&host, &format!("footbridge config check --config {file}"));
        assert_eq!(ran.status, 0, "{}: {ran:?}", block.place());
        taken += 1;
    }
    assert!(taken >= 8, "{taken}");
}
