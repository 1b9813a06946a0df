//! The fenced blocks of the README and of all pages below `docs`.

use std::{fs, path::PathBuf};

use footbridge_tests::programs;

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its page, as the repository names it.
    pub(crate) page: String,
    /// The line of its fence.
    pub(crate) line: usize,
    /// The first word after the fence.
    pub(crate) language: String,
    /// The rest of that line.
    pub(crate) mark: String,
    pub(crate) text: String,
}

/// The README and all pages, as the repository names them, with their texts.
pub(crate) fn pages() -> Vec<(String, String)> {
    let root = programs::repository();
    let mut paths: Vec<PathBuf> = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    paths.push(root.join("README.md"));
    paths.sort();
    let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// All blocks of all pages, in order.
pub(crate) fn all() -> Vec<Block> {
    pages().iter().flat_map(|(page, text)| of(page, text)).collect()
}

/// The blocks of a text.
pub(crate) fn of(page: &str, text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let (language, mark) = fence.split_once(' ').unwrap_or((fence, ""));
        let inside = lines.by_ref().take_while(|(_, line)| *line != "```");
        let text = inside.map(|(_, line)| format!("{line}\n")).collect();
        let [page, language, mark] = [page, language, mark].map(str::to_owned);
        found.push(Block { page, line: at + 1, language, mark, text });
    }
    found
}

impl Block {
    /// Where it is, for people.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    /// Whether a line of it looks as if somebody were to type it.
    pub(crate) fn has_commands(&self) -> bool {
        let commands = ["$ ", "footbridge ", "tool-cli ", "footbridge-relay ", "scripts/", "podman ", "docker "];
        self.text.lines().any(|line| commands.iter().any(|command| line.starts_with(command)))
    }
}

#[test]
fn blocks_are_found_whole_with_what_their_fences_say() {
    let text = "x\n```sh host\na | b\nc\n```\n```text\n```\nno\n```toml\nd\n```\n";
    let found: Vec<(usize, String, String, String)> =
        of("p", text).into_iter().map(|block| (block.line, block.language, block.mark, block.text)).collect();
    let expected = [(2, "sh", "host", "a | b\nc\n"), (6, "text", "", ""), (9, "toml", "", "d\n")];
    assert_eq!(found, expected.map(|(line, a, b, c)| (line, a.to_owned(), b.to_owned(), c.to_owned())));
}
