//! Names and sentences that speak of a secret, in any of the usual ways of writing them.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use footbridge_proto::text::needs_escape;

/// Words that speak of a secret wherever they stand.
const SECRET_WORDS: [&str; 10] =
    ["password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "apikey", "accesskey", "credential"];
/// The same, of words by themselves.
const SECRET_ALONE: [&str; 7] = ["otp", "totp", "cvv", "cvc", "mnemonic", "passkey", "seedphrase"];
/// The same, of two words one after the other.
const SECRET_PAIRS: [&str; 23] = [
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "password",
    "passphrase",
    "passkey",
    "sshkey",
    "sshid",
    "recoverycode",
    "recoveryphrase",
    "backupcode",
    "securitycode",
    "verificationcode",
    "timecode",
    "seedphrase",
    "creditcard",
    "cardnumber",
    "yourpin",
    "enterpin",
    "pincode",
    "pinnumber",
    "clientassertion",
];
/// Letters of other scripts that look like those of Latin.
const ALIKE: [(char, char); 30] = [
    ('а', 'a'),
    ('в', 'b'),
    ('е', 'e'),
    ('ё', 'e'),
    ('к', 'k'),
    ('м', 'm'),
    ('н', 'h'),
    ('о', 'o'),
    ('р', 'p'),
    ('с', 'c'),
    ('т', 't'),
    ('у', 'y'),
    ('х', 'x'),
    ('ѕ', 's'),
    ('і', 'i'),
    ('ј', 'j'),
    ('һ', 'h'),
    ('ԁ', 'd'),
    ('ԝ', 'w'),
    ('ո', 'n'),
    ('α', 'a'),
    ('ε', 'e'),
    ('ι', 'i'),
    ('κ', 'k'),
    ('ν', 'v'),
    ('ο', 'o'),
    ('ρ', 'p'),
    ('τ', 't'),
    ('ı', 'i'),
    ('ѡ', 'w'),
];

/// The longest text that is looked through before its words are made, bytes: names of headers are far shorter.
const SHORT: usize = 128;

/// All letters of [`SECRET_WORDS`] and the others, one of which is in every text that speaks of a secret.
static LETTERS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let all = SECRET_WORDS.iter().chain(&SECRET_ALONE).chain(&SECRET_PAIRS).chain(&["pin"]);
    AhoCorasick::new(all).ok()
});

/// Whether the letters of a short text rule out that it speaks of a secret. Every header of every request is asked about.
fn is_out_of_question(text: &str) -> bool {
    let mut letters = [0; SHORT];
    if text.len() > SHORT || !text.is_ascii() {
        return false;
    }
    let mut length = 0;
    for byte in text.bytes().filter(u8::is_ascii_alphanumeric) {
        letters[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    LETTERS.as_ref().is_some_and(|known| !known.is_match(&letters[..length]))
}

/// Whether a text speaks of a secret.
#[must_use]
pub fn speaks_of_secrets(text: &str) -> bool {
    !is_out_of_question(text) && words_speak_of_secrets(text)
}

fn words_speak_of_secrets(text: &str) -> bool {
    let words = words(text);
    let pair = |two: &[String]| SECRET_PAIRS.contains(&two.concat().trim_end_matches('s'));
    let alone = |word: &String| SECRET_ALONE.contains(&word.as_str());
    words.iter().any(|word| SECRET_WORDS.iter().any(|secret| word.contains(secret)) || alone(word))
        || words.windows(2).any(pair)
        || words == ["pin"]
}

/// A letter as it looks: in full width, or of another script. Nothing for what is not seen, or stands on another.
fn as_it_looks(c: char) -> Option<char> {
    if needs_escape(c) || matches!(c, '\u{300}'..='\u{36f}') {
        return None;
    }
    let wide = |c: char| char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c);
    Some(if matches!(c, '\u{ff01}'..='\u{ff5e}') { wide(c) } else { c })
}

/// The words of a text, of names in any of the usual ways of writing them.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in text.chars().filter_map(as_it_looks) {
        if !c.is_alphanumeric() || (small && c.is_uppercase()) {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), c.is_alphanumeric()) {
            let latin = |c: char| ALIKE.iter().find(|(other, _)| *other == c).map_or(c, |(_, latin)| *latin);
            word.extend(c.to_lowercase().map(latin));
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

    proptest::proptest! {
        #[test]
        fn letters_rule_out_nothing_that_words_say(
            parts in proptest::collection::vec("(my|Api|key|s|PASS|word|pin|Your|otp|[ -_.A-Za-z0-9]|\\PC)", 1..8),
        ) {
            let text = parts.concat();
            proptest::prop_assert_eq!(speaks_of_secrets(&text), words_speak_of_secrets(&text));
        }
    }

    #[test]
    fn names_of_secrets_are_known_in_any_way_of_writing_them() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "--api-key",
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "openaiKey",
            "Cookie",
            "client_assertion",
        ] {
            assert!(names_a_secret(name), "{name}");
        }
        for text in [
            "pass\u{200b}word",
            "p\u{430}ssw\u{43e}rd",
            "\u{420}ASSWORD",
            "\u{ff50}\u{ff41}\u{ff53}\u{ff53}\u{ff57}\u{ff4f}\u{ff52}\u{ff44}",
            "Your PIN",
            "pin",
            "one-time code",
            "seed phrase",
            "the content of ~/.ssh/id_ed25519",
            "credit card",
        ] {
            assert!(speaks_of_secrets(text), "{text}");
        }
        for text in [
            "pinned",
            "your favorite number, no pin please",
            "spin",
            "time of the code review",
            "Which city?",
            "Сколько?",
            "a card to draw",
        ] {
            assert!(!speaks_of_secrets(text), "{text}");
        }
        for name in ["PATH", "KEYBOARD", "--repository", "AUTHOR", "Accept", "key_file"] {
            assert!(!names_a_secret(name), "{name}");
        }
    }
}
