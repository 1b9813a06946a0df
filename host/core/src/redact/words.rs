//! Names and sentences that speak of a secret, in any of the usual ways of writing them.

/// Words that speak of a secret wherever they stand.
const SECRET_WORDS: [&str; 10] =
    ["password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "apikey", "accesskey", "credential"];
/// The same, of two words one after the other.
const SECRET_PAIRS: [&str; 6] = ["apikey", "accesskey", "privatekey", "signingkey", "password", "passphrase"];
/// Whether a text speaks of a secret.
#[must_use]
pub fn speaks_of_secrets(text: &str) -> bool {
    let words = words(text);
    let pair = |two: &[String]| SECRET_PAIRS.contains(&two.concat().trim_end_matches('s'));
    words.iter().any(|word| SECRET_WORDS.iter().any(|secret| word.contains(secret))) || words.windows(2).any(pair)
}

/// The words of a text, of names in any of the usual ways of writing them.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (small && c.is_uppercase()) {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a variable, header, option or member of this name holds a secret: also what ends in `key`, and headers that let
/// in.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    let last = words(name).pop();
    speaks_of_secrets(name)
        || last.is_some_and(|last| ["key", "auth", "authorization", "cookie", "pat"].contains(&last.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_any_way_of_writing_them() {
        for name in ["Authorization", "X-Api-Key", "--api-key", "GITHUB_PERSONAL_ACCESS_TOKEN", "openaiKey", "Cookie"] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in ["PATH", "KEYBOARD", "--repository", "AUTHOR", "Accept", "key_file"] {
            assert!(!names_a_secret(name), "{name}");
        }
    }
}
