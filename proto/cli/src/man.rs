//! A page for `man`, of help that is laid out already.

use std::fmt::Write as _;

/// A page that is being written: its sections are shown as they are, line by line.
#[derive(Debug)]
pub struct ManPage {
    text: String,
    has_section: bool,
}

impl ManPage {
    /// Of a program, with what it is in one line.
    #[must_use]
    pub fn of(program: &str, version: &str, line: &str) -> Self {
        let (title, program) = (roff(&program.to_uppercase()), roff(program));
        let text = format!(".TH {title} 1 \"\" \"{program} {version}\" \"User Commands\"\n.SH NAME\n{}\n", roff(line));
        Self { text, has_section: false }
    }

    /// Begins a section.
    pub fn section(&mut self, title: &str) {
        let end = if self.has_section { ".fi\n" } else { "" };
        // Nothing fails in memory.
        let _ = writeln!(self.text, "{end}.SH {}\n.nf", roff(title));
        self.has_section = true;
    }

    /// Adds a line to it.
    pub fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}", roff(line));
    }

    /// The whole page.
    #[must_use]
    pub fn finish(self) -> String {
        self.text + if self.has_section { ".fi\n" } else { "" }
    }
}

/// A line as text alone.
fn roff(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}
