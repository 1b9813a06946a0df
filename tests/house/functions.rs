//! A function fits on a page: at most so many lines, and a line that is too wide counts as several.

use crate::{House, programs::Sources, report::Violation, tree::Tree};

const REMEDY: &str = "Take the steps that have a name of their own out into functions.";

pub(crate) fn check(tree: &Tree, sources: &Sources, house: &House) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in sources.files() {
        let lines: Vec<_> = tree.text(&file.path).unwrap_or_default().lines().collect();
        for function in &file.functions {
            let count = lines[function.line - 1..function.end].iter().map(|line| height(line, house.columns)).sum();
            if house.lines < count {
                let broken = format!(
                    "the function {} has {count} lines at {} columns, more than {}",
                    function.name, house.columns, house.lines
                );
                found.push(Violation::new(&file.path, function.line, broken, REMEDY));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// How many lines a line is on a page of that width.
fn height(line: &str, columns: usize) -> usize {
    line.chars().count().div_ceil(columns).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, report::places};

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("host/core/src/lib.rs", text)]);
        let sources = Sources::read(&tree, &HOUSE);
        assert_eq!(sources.unread, []);
        places(&check(&tree, &sources, &HOUSE))
    }

    /// A function of so many lines.
    fn function(start: &str, lines: usize) -> String {
        format!("{start} fn f() {{\n{}}}", "    x();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_has_sixty_lines_and_no_more() {
        assert_eq!(found(&function("", 60)), [] as [&str; 0]);
        assert_eq!(found(&function("\n/// Does.\npub async", 61)), ["host/core/src/lib.rs:3"]);
        assert_eq!(found(&function("#[cfg(test)]", 61)), [] as [&str; 0]);
        assert_eq!(found(&function("#[tokio::test] async", 61)), [] as [&str; 0]);
    }

    #[test]
    fn functions_in_other_things_are_counted_too() {
        for (before, after) in [("impl X {", "}"), ("trait X {", "}"), ("m! {", "}"), ("mod m { fn g() {", "} }")] {
            let inner = function("", 61);
            assert!(
                found(&format!("{before}\n{inner}\n{after}")).contains(&"host/core/src/lib.rs:2".to_owned()),
                "{before}"
            );
        }
    }

    #[test]
    fn a_wide_line_counts_as_several() {
        let with = |width: usize| function("", 59).replacen("    x();", &format!("//{}", "ü".repeat(width - 2)), 1);
        assert_eq!(found(&with(200)), [] as [&str; 0]);
        assert_eq!(found(&with(201)), ["host/core/src/lib.rs:1"]);
    }
}
