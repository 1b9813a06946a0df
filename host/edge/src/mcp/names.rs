//! Names of tools and prompts where all servers are one: `server__tool`, unique, of at most 64 characters.
//!
//! A name says what it is of by itself, without a table: what stands before its first `__` is the server. Where that
//! would not be so (the server's name has `__` or ends with `_`), where it would be too long, or where it could be taken
//! for the other kind, a name is cut and ends with `_` and twelve digits of a digest, and is looked for among those that
//! a session sees.

use footbridge_core::{digest::Digest, names::ServerName};

/// Longest name, characters: clients refuse longer ones.
const LONGEST: usize = 64;
/// Digits of a digest.
const DIGITS: usize = 12;

const BETWEEN: &str = "__";

/// The name of something of a server.
pub(super) fn joined(server: &ServerName, name: &str) -> String {
    let server = server.as_str();
    let plain = format!("{server}{BETWEEN}{name}");
    let is_clear = !server.contains(BETWEEN) && !server.ends_with('_');
    if is_clear && plain.chars().count() <= LONGEST && !has_digest(&plain) {
        return plain;
    }
    let digest = Digest::of(format!("{server}\0{name}")).to_string();
    let start: String = plain.chars().take(LONGEST - DIGITS - 1).collect();
    format!("{start}_{}", &digest[..DIGITS])
}

/// Whether a name ends with a digest, so that it does not say what it is of.
pub(super) fn has_digest(name: &str) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    name.rsplit_once('_').is_some_and(|(_, end)| end.len() == DIGITS && end.bytes().all(is_digit))
}

/// What a name without a digest is of; what is no such name is of no server.
pub(super) fn split(name: &str) -> (&str, &str) {
    name.split_once(BETWEEN).unwrap_or((name, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(server: &str, tool: &str) -> String {
        joined(&server.parse().unwrap(), tool)
    }

    #[test]
    fn a_plain_name_says_what_it_is_of() {
        for (server, tool) in [("git", "log"), ("a", "b__c"), ("a", "_t"), ("a_b", "c"), ("s", &"é".repeat(61))] {
            let name = name(server, tool);
            assert!(!has_digest(&name), "{name}");
            assert_eq!(split(&name), (server, tool));
        }
    }

    #[test]
    fn every_other_name_is_short_and_of_one_thing_alone() {
        let mut names = Vec::new();
        for (server, tool) in [
            ("a__b", "c"),
            ("a", "b__c"),
            ("a_", "t"),
            ("a", "_t"),
            ("s", &*"x".repeat(62)),
            ("s", &*"x".repeat(63)),
            ("s", "t_0123456789ab"),
            (&*"é".repeat(32), "tool"),
            (&*"é".repeat(32), "look"),
        ] {
            let name = name(server, tool);
            assert!(name.chars().count() <= LONGEST, "{name}");
            names.push(name);
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}
