//! A record as it is shown: its fields, and the call that an outcome belongs to.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

/// Calls that are remembered until their outcome comes; more are never in flight.
const REMEMBERED: usize = 16 * 1024;

/// All types of records.
pub const TYPES: [&str; 14] = [
    "started",
    "session",
    "session_listens",
    "session_rotated",
    "session_ended",
    "intent",
    "outcome",
    "refused",
    "approval",
    "pin_accepted",
    "limited",
    "rotated",
    "head",
    "ended",
];

/// One record, read leniently: one of a later version has fields that this one does not know.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadRecord {
    /// Its fields, in the order of the line.
    pub fields: Map<String, Value>,
    /// The line as it stands.
    pub line: String,
}

impl ReadRecord {
    /// Reads a line; none if it is no JSON object.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.to_owned();
        let fields = serde_json::from_str(&line).ok()?;
        Some(Self { fields, line })
    }

    /// A field as text; empty if it is not there. `a.b` is `b` of the object `a`.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        let mut names = name.split('.');
        let first = names.next().and_then(|name| self.fields.get(name));
        match names.fold(first, |value, name| value.and_then(|value| value.get(name))) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// Which call an outcome belongs to: intents whose outcome did not come yet, by their id.
#[derive(Debug, Default)]
pub struct Calls {
    open: HashMap<String, [String; 4]>,
    order: VecDeque<String>,
}

impl Calls {
    /// Session, server, name and kind of a record, also of an outcome whose intent came before.
    pub fn of(&mut self, record: &ReadRecord) -> [String; 4] {
        let own = ["session", "server", "name", "kind"].map(|name| record.text(name));
        match record.text("type").as_str() {
            "intent" => {
                let id = record.text("id");
                self.order.push_back(id.clone());
                self.open.insert(id, own.clone());
                if self.order.len() > REMEMBERED
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.open.remove(&oldest);
                }
                own
            }
            "outcome" => self.open.remove(&record.text("id")).unwrap_or(own),
            _ => own,
        }
    }
}
