//! What may have been meant by a word that is none, and which words there are.

use footbridge_proto::text::Escaped;

/// How like each other two words are that may be the same, from 0 to 1.
const LIKE: f64 = 0.8;
/// Words that are named where none is like it.
const MOST_NAMED: usize = 10;

/// The rest of a sentence about a word that is not known: what may have been meant, or what there is, or `otherwise`
/// where there is nothing.
#[must_use]
pub fn instead(typed: &str, known: &[&str], otherwise: &str) -> String {
    match closest(typed, known) {
        Some(name) => format!("; did you mean \"{}\"?", Escaped(name)),
        None if known.is_empty() => format!(": {otherwise}"),
        None => {
            let some: Vec<String> = known.iter().take(MOST_NAMED).map(|name| Escaped(name).to_string()).collect();
            let more = if known.len() > MOST_NAMED { ", ..." } else { "" };
            format!(": there are {}{more}", some.join(", "))
        }
    }
}

/// A text as a sentence: one that ends with a question has its end.
#[must_use]
pub fn sentence(text: &str) -> String {
    let end = if text.ends_with('?') { "" } else { "." };
    format!("{text}{end}")
}

/// The word that is most like this one, if any is.
#[must_use]
pub fn closest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let typed = typed.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&typed, &name.to_lowercase());
    let like = known.iter().map(|name| (likeness(name), *name)).filter(|(how, _)| *how > LIKE);
    like.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_like_one_is_suggested_and_otherwise_all_are_named() {
        assert_eq!(instead("wether", &["weather", "clock"], "-"), "; did you mean \"weather\"?");
        assert_eq!(instead("GET_WEATHER", &["get_weather", "clock"], "-"), "; did you mean \"get_weather\"?");
        assert_eq!(instead("x", &["weather", "clo\u{1b}ck"], "-"), ": there are weather, clo\\u{1b}ck");
        assert_eq!(instead("x", &[], "there is none"), ": there is none");
        assert!(instead("x", &["name"; 11], "-").ends_with(", ..."));
    }
}
