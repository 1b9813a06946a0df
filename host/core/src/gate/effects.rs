//! What a call can do, as a set: taken from what a tool's server says of it, or from the operator, who knows better.
//!
//! A server that says nothing gets the worst of it, and a hint that is no boolean counts as not given.

use serde::Deserialize;
use serde_json::value::RawValue;

/// One thing that a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It changes something.
    Write,
    /// What it changes may be lost.
    Destructive,
    /// It reaches what is outside: the network, other people's systems.
    Egress,
}

impl Effect {
    const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Destructive, Self::Egress];

    /// The word for it in configuration and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
            Self::Egress => "egress",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects(u8);

/// The hints of MCP, each as its text.
#[derive(Default, Deserialize)]
struct Hints<'a> {
    #[serde(borrow, default, rename = "readOnlyHint")]
    read_only: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "destructiveHint")]
    destructive: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "openWorldHint")]
    open_world: Option<&'a RawValue>,
}

impl Effects {
    /// A set of these.
    #[must_use]
    pub fn of(effects: &[Effect]) -> Self {
        Self(effects.iter().fold(0, |set, effect| set | effect.bit()))
    }

    /// What a tool can do by its annotations: `read` only if it says that it only reads, else `write`, and
    /// `destructive` unless it says that it is not; `egress` unless it says that its world is closed.
    #[must_use]
    pub fn from_annotations(annotations: Option<&RawValue>) -> Self {
        // A list would be read as an object's members in their order.
        let object = annotations.filter(|raw| raw.get().starts_with('{'));
        let hints: Hints<'_> = object.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let says = |hint: Option<&RawValue>, word: &str| hint.is_some_and(|raw| raw.get() == word);
        let mut effects = match (says(hints.read_only, "true"), says(hints.destructive, "false")) {
            (true, _) => vec![Effect::Read],
            (false, true) => vec![Effect::Write],
            (false, false) => vec![Effect::Write, Effect::Destructive],
        };
        if !says(hints.open_world, "false") {
            effects.push(Effect::Egress);
        }
        Self::of(&effects)
    }

    /// What reading a resource, getting a prompt or completing can do: it sends text of the guest's choosing to a
    /// server, and changes nothing.
    #[must_use]
    pub fn of_reading() -> Self {
        Self::of(&[Effect::Read, Effect::Egress])
    }

    /// Whether it is one of them.
    #[must_use]
    pub fn has(self, effect: Effect) -> bool {
        self.0 & effect.bit() != 0
    }

    /// Whether there is none that the other set lacks.
    #[must_use]
    pub fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether there is one that both have.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Their words, always in the same order.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        Effect::ALL.iter().filter(|effect| self.has(**effect)).map(|effect| effect.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(annotations: &str) -> String {
        let raw: &RawValue = serde_json::from_str(annotations).unwrap();
        Effects::from_annotations(Some(raw)).words().join(" ")
    }

    #[test]
    fn effects_are_what_is_said_and_the_worst_of_what_is_not() {
        assert_eq!(Effects::from_annotations(None).words(), ["write", "destructive", "egress"]);
        for (annotations, effects) in [
            ("{}", "write destructive egress"),
            (r#"{"readOnlyHint":true}"#, "read egress"),
            (r#"{"readOnlyHint":true,"openWorldHint":false}"#, "read"),
            (r#"{"readOnlyHint":true,"destructiveHint":true,"openWorldHint":false}"#, "read"),
            (r#"{"readOnlyHint":false,"destructiveHint":false}"#, "write egress"),
            (r#"{"destructiveHint":false,"openWorldHint":false}"#, "write"),
            (r#"{"openWorldHint":false}"#, "write destructive"),
            (r#"{"readOnlyHint":"true","destructiveHint":0,"openWorldHint":null}"#, "write destructive egress"),
            (r#"{"readonlyhint":true}"#, "write destructive egress"),
            (r#"{"readOnlyHint":true,"readOnlyHint":true}"#, "write destructive egress"),
            ("[true]", "write destructive egress"),
            ("null", "write destructive egress"),
        ] {
            assert_eq!(of(annotations), effects, "{annotations}");
        }
    }

    #[test]
    fn sets_compare() {
        let read = Effects::of(&[Effect::Read]);
        let reading = Effects::of_reading();
        assert!(read.within(reading) && !reading.within(read) && read.meets(reading));
        assert!(!read.meets(Effects::of(&[Effect::Write])) && reading.has(Effect::Egress));
    }
}
