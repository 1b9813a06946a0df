//! What can be typed in place of words that do not fit a tool, where the reader of command lines cannot know.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use footbridge_cli::flags::ToolFlags;
use footbridge_proto::text::Escaped;

/// The mistake with a tip of ours in place of its own, where there is one.
pub(super) fn with_tip(mut unfit: clap::Error, flags: &ToolFlags, words: &[OsString]) -> clap::Error {
    let wrong = match unfit.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => String::new(),
    };
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let claims = || flags.claims(wrong.strip_prefix("--")?);
    if let Some(tip) = in_json(&wrong, flags).or_else(claims).or_else(|| with_equals(&wrong, flags, &words)) {
        unfit.remove(ContextKind::SuggestedArg);
        unfit.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    unfit
}

/// That an argument has no flag.
fn in_json(wrong: &str, flags: &ToolFlags) -> Option<String> {
    let name = wrong.strip_prefix("--")?;
    let name = flags.in_json.iter().find(|known| known.as_str() == name)?;
    Some(format!("\"{}\" has no flag: give it by --json, --json-file or --json-stdin", Escaped(name)))
}

/// That a word is a flag's value only behind its `=`: of what is yes or no, and one that begins with `-`.
fn with_equals(wrong: &str, flags: &ToolFlags, words: &[&str]) -> Option<String> {
    let of = |pair: &[&str]| {
        let flag = flags.find(pair[0].strip_prefix("--")?)?;
        let value = pair[1];
        let is_meant = if flag.is_switch() {
            ["true", "false"].contains(&value) && value == wrong
        } else {
            value.len() > 1 && value.starts_with('-') && is_no_flag(value, flags)
        };
        is_meant.then(|| format!("to give it to --{0}, write --{0}={1}", flag.name, Escaped(value)))
    };
    words.windows(2).find_map(of)
}

fn is_no_flag(word: &str, flags: &ToolFlags) -> bool {
    let name = word.trim_start_matches('-');
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    let is_option = super::taken().iter().any(|option| option == name);
    word != "--" && flags.meant(name).is_empty() && !is_option && !["-h", "-v"].contains(&word)
}
