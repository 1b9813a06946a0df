//! What of a definition is pinned besides the tool's own members, and what stays to be seen of a tool that changed.

use footbridge_proto::json;
use serde_json::{Value, json, value::RawValue};

use crate::{digest::Digest, gate::Effects};

/// Members of a pinned definition: how the server is reached, what it said of the tool, and the text of what does not
/// keep its value.
pub const SERVER: &str = "server";
/// What the server said of the tool.
pub const TOOL: &str = "tool";
/// The text of what does not keep its value.
pub const VERBATIM: &str = "verbatim";

/// What a server's instructions are pinned by, among its tools: no tool has this name.
pub const INSTRUCTIONS: &str = "(instructions)";

/// What a server says of itself to whoever uses it, cut to a limit, and what of it is pinned.
#[derive(Debug)]
pub struct Instructions {
    text: Box<str>,
    pinned: PinnedText,
}

/// The canonical text of what is pinned, and its digest.
#[derive(Debug)]
pub(super) struct PinnedText {
    pub(super) text: Box<str>,
    pub(super) digest: Digest,
}

impl PinnedText {
    /// Of how the server is reached, and of what it says.
    pub(super) fn of(origin: Option<&Origin>, said: impl Iterator<Item = (&'static str, Value)>) -> Self {
        let server = origin.map(|Origin(origin)| (SERVER, origin.clone()));
        let members = server.into_iter().chain(said).map(|(key, value)| (key.to_owned(), value));
        let mut pinned = Value::Object(members.collect());
        json::sort_members(&mut pinned);
        let text = pinned.to_string();
        Self { digest: Digest::of(&text), text: text.into() }
    }
}

impl Instructions {
    pub(super) fn new(text: String, origin: Option<&Origin>) -> Self {
        let said = [(TOOL, json!({ "instructions": text }))];
        Self { pinned: PinnedText::of(origin, said.into_iter()), text: text.into() }
    }

    /// The server's own words.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is pinned: the words, and how the server is reached.
    #[must_use]
    pub fn pinned(&self) -> &str {
        &self.pinned.text
    }

    /// The digest of what is pinned.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.pinned.digest
    }
}

/// How a server is reached: its command or its URL, without values of secrets. It is part of the definition of all of
/// its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(pub(super) Value);

impl Origin {
    /// Of a value that holds no secret.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Self(value)
    }

    /// As one canonical text, as it is in definitions.
    #[must_use]
    pub fn text(&self) -> String {
        let mut value = self.0.clone();
        json::sort_members(&mut value);
        value.to_string()
    }
}

/// A tool that is not what was pinned, by its pin. Nothing of what its server says of it now is in here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedTool {
    effects: Effects,
    structured: bool,
}

impl ChangedTool {
    /// By the text of its pin. Of one that cannot be read the worst is assumed.
    #[must_use]
    pub fn by_pin(text: &str) -> Self {
        let pin: Value = serde_json::from_str(text).unwrap_or_default();
        let member = |name: &str| pin.pointer(&format!("/{TOOL}/{name}")).map(ToString::to_string);
        let annotations = member("annotations").and_then(|text| RawValue::from_string(text).ok());
        Self {
            effects: Effects::from_annotations(annotations.as_deref()),
            structured: member("outputSchema").is_some_and(|text| text.starts_with('{')),
        }
    }

    /// What it could do.
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.effects
    }

    /// Whether its results were structured JSON.
    #[must_use]
    pub fn is_structured(&self) -> bool {
        self.structured
    }
}
