//! What a shell reads at its start to complete the words of a command: it asks the command itself, by a word that no
//! tool has.

use crate::output;

/// The word that scripts call a command with. Behind it are the words that were typed, the last of which may go on.
pub const COMPLETE: &str = "__complete";

/// A shell that completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// fish.
    Fish,
}

impl Shell {
    /// All that are known.
    pub const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    /// Its name, as it is typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// What it reads for this command; `read_by` is how it gets that, but for the shell's name.
    #[must_use]
    pub fn script(self, command: &str, read_by: &str) -> String {
        let template = match self {
            Self::Bash => include_str!("completion/script.bash"),
            Self::Zsh => include_str!("completion/script.zsh"),
            Self::Fish => include_str!("completion/script.fish"),
        };
        let function = command.replace('-', "_");
        let read_by = format!("{read_by} {}", self.name());
        template.replace("READ_BY", &read_by).replace("FUNCTION", &function).replace("COMMAND", command)
    }
}

/// Prints those of these words that the typed one may become, a line each. Only plain words: what a server wrote lands on a
/// person's command line.
pub fn print(candidates: &[String], typed: &str) {
    let is_plain = |word: &str| {
        // Nothing in it means anything to a shell.
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:@=+%".contains(c))
    };
    let fit = candidates.iter().filter(|word| word.starts_with(typed) && is_plain(word));
    let text: String = fit.map(|word| format!("{word}\n")).collect();
    let _nobody_to_tell = output::print(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_is_of_its_command_and_of_no_other() {
        for shell in Shell::ALL {
            let script = shell.script("some-thing", "some-thing --completions");
            let read_by = format!("some-thing --completions {}", shell.name());
            assert!(script.lines().next().is_some_and(|line| line.contains(&read_by)), "{script}");
            assert!(script.contains("_some_thing") && script.contains("some-thing __complete"), "{script}");
            assert!(!["COMMAND", "FUNCTION", "READ_BY"].iter().any(|place| script.contains(place)), "{script}");
        }
    }
}
