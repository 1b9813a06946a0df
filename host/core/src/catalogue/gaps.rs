//! Why the listings of a server are not all that it has: what failed, where they were cut, and what was left out of them.
//!
//! The texts are for guests: they name no entry, since a session may not see the one that was left out.

use std::collections::BTreeMap;

use footbridge_proto::text::Escaped;

/// Reasons that are kept of a listing, of each sort.
const MAX_REASONS: usize = 3;
/// Characters of one.
const MAX_TEXT: usize = 300;

/// The listings that a server gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `prompts/list`.
    Prompts,
}

impl ListKind {
    /// What is in it, for a person.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resource templates",
            Self::Prompts => "prompts",
        }
    }
}

/// What is missing from the listings of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gaps(BTreeMap<ListKind, Gap>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Gap {
    /// Of the listing as a whole.
    reasons: Vec<String>,
    left_out: usize,
    /// Why entries were left out.
    entries: Vec<String>,
}

impl Gaps {
    /// A listing failed or was cut.
    pub fn cut(&mut self, kind: ListKind, why: &str) {
        keep(&mut self.0.entry(kind).or_default().reasons, why);
    }

    /// An entry was left out. Why says nothing of which.
    pub fn left_out(&mut self, kind: ListKind, why: &str) {
        self.left_out_many(kind, 1, why);
    }

    /// So many entries were left out, for the same reason.
    pub fn left_out_many(&mut self, kind: ListKind, count: usize, why: &str) {
        let gap = self.0.entry(kind).or_default();
        gap.left_out += count;
        keep(&mut gap.entries, why);
    }

    /// Without what was left out: for those from whom something is hidden, since it may be that.
    #[must_use]
    pub fn without_entries(&self) -> Self {
        let cut = self.0.iter().filter(|(_, gap)| !gap.reasons.is_empty());
        Self(cut.map(|(kind, gap)| (*kind, Gap { reasons: gap.reasons.clone(), ..Gap::default() })).collect())
    }

    /// Why a listing failed or was cut.
    #[must_use]
    pub fn why_cut(&self, kind: ListKind) -> Option<&str> {
        self.0.get(&kind)?.reasons.first().map(String::as_str)
    }

    /// All that is missing from a listing, a line each.
    #[must_use]
    pub fn of(&self, kind: ListKind) -> Vec<String> {
        let Some(gap) = self.0.get(&kind) else { return Vec::new() };
        let mut lines = gap.reasons.clone();
        if gap.left_out > 0 {
            let noun = if gap.left_out == 1 { "entry was" } else { "entries were" };
            lines.push(format!("{} {noun} left out: {}", gap.left_out, gap.entries.join("; ")));
        }
        lines
    }
}

fn keep(reasons: &mut Vec<String>, why: &str) {
    if reasons.len() >= MAX_REASONS {
        return;
    }
    let why: String = Escaped(why).to_string().chars().take(MAX_TEXT).collect();
    if !reasons.contains(&why) {
        reasons.push(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_short_and_by_kind() {
        let mut gaps = Gaps::default();
        for n in 0..1_000 {
            gaps.left_out(ListKind::Tools, &format!("reason {}\u{1b}", n % 2));
            gaps.left_out(ListKind::Prompts, &"x".repeat(10_000));
        }
        gaps.cut(ListKind::Resources, "the server broke");
        assert_eq!(gaps.of(ListKind::Tools), [r"1000 entries were left out: reason 0\u{1b}; reason 1\u{1b}"]);
        assert_eq!(gaps.of(ListKind::Resources), ["the server broke"]);
        assert!(gaps.of(ListKind::Templates).is_empty() && gaps.of(ListKind::Prompts)[0].len() < 400);
        let hiding = gaps.without_entries();
        assert!(hiding.of(ListKind::Tools).is_empty() && hiding.why_cut(ListKind::Tools).is_none());
        assert_eq!(hiding.why_cut(ListKind::Resources), Some("the server broke"));
    }
}
