//! What a page has run by a test of its own: its blocks whose fence says `sh recipe=NAME`, or `sh recipe-before=NAME`.

use std::fs;

use crate::programs;

/// The marked blocks of a page of this repository, in their order, with what marks them: `NAME` or `before=NAME`.
#[must_use]
pub fn of_page(page: &str) -> Vec<(String, String)> {
    of_text(&fs::read_to_string(programs::repository().join(page)).unwrap())
}

fn of_text(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(mark) = line.strip_prefix("```sh recipe") {
            let block = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
            found.push((mark.trim_start_matches(['=', '-']).to_owned(), block));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_blocks_are_recipes() {
        let text = "```sh\nno\n```\n```sh recipe=a\none\ntwo\n```\nx\n```sh recipe-before=b\nthree\n```\n";
        let expected = [("a", "one\ntwo\n"), ("before=b", "three\n")];
        assert_eq!(of_text(text), expected.map(|(mark, block)| (mark.to_owned(), block.to_owned())));
    }
}
