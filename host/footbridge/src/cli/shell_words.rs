//! Words of command lines that are printed for a person to use: as a shell takes them for what they are.

/// A text as one word.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(is_plain_letter);
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A variable set in front of a command.
pub(super) fn assigned(name: &str, value: &str) -> String {
    if is_plain_value(value) { format!("{name}={value}") } else { format!("{name}={}", shell_word(value)) }
}

/// Whether a shell takes a value behind `NAME=` as it is written: names of files are not looked for there.
pub(super) fn is_plain_value(value: &str) -> bool {
    value.chars().all(|letter| is_plain_letter(letter) || matches!(letter, '[' | ']'))
}

fn is_plain_letter(letter: char) -> bool {
    letter.is_alphanumeric() || "_-./:@%+,=".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_act_on_is_in_quotes() {
        for (text, word) in [
            ("/run/a-b_c.sock", "/run/a-b_c.sock"),
            ("", "''"),
            ("~/a", "'~/a'"),
            ("a b", "'a b'"),
            ("$(id)", "'$(id)'"),
            ("it's", r"'it'\''s'"),
            ("[a]", "'[a]'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
        assert_eq!((assigned("A", "tcp:[::1]:7"), assigned("A", "a;b")), ("A=tcp:[::1]:7".into(), "A='a;b'".into()));
    }
}
