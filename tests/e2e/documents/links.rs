//! Links between pages lead to files and headings that are there.

use std::path::Path;

use footbridge_tests::programs;

use super::blocks;

/// What the parentheses of links hold, outside of fenced blocks.
fn targets(text: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let parts = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(parts.map(|(target, _)| target.to_owned()));
        }
    }
    found
}

/// The names by which the headings of a page are linked to.
fn anchors(text: &str) -> Vec<String> {
    let heads = text.lines().filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    heads
        .map(|line| line.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect::<String>())
        .map(|name| name.replace(' ', "-"))
        .collect()
}

#[test]
fn every_link_leads_to_something() {
    let root = programs::repository();
    let mut links = 0;
    for (page, text) in blocks::pages() {
        let folder = Path::new(&page).parent().unwrap().to_owned();
        for target in targets(&text).into_iter().filter(|target| !target.starts_with("http")) {
            links += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { root.join(&page) } else { root.join(&folder).join(file) };
            let there = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {target}: {error}"));
            assert!(anchor.is_empty() || anchors(&there).iter().any(|name| name == anchor), "{page}: {target}");
        }
    }
    assert!(links > 40, "{links}");
}
