//! A record as it is shown: its fields, and the call that an outcome belongs to.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

/// Calls that are remembered until their outcome comes; more are not in flight at once.
const REMEMBERED: usize = 16 * 1024;

/// All types of records.
pub const TYPES: [&str; 15] = [
    "started",
    "session",
    "session_listens",
    "session_rotated",
    "session_limited",
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
    open: HashMap<String, OpenCall>,
    /// Their ids, the oldest first.
    order: BTreeMap<u64, String>,
    next: u64,
}

#[derive(Debug)]
struct OpenCall {
    at: u64,
    of: [String; 4],
}

impl Calls {
    /// Session, server, name and kind of a record, also of an outcome whose intent came before.
    pub fn of(&mut self, record: &ReadRecord) -> [String; 4] {
        let own = ["session", "server", "name", "kind"].map(|name| record.text(name));
        match record.text("type").as_str() {
            "intent" => {
                self.begins(record.text("id"), own.clone());
                own
            }
            "outcome" => self.ends(&record.text("id")).unwrap_or(own),
            _ => own,
        }
    }

    fn begins(&mut self, id: String, of: [String; 4]) {
        let at = self.next;
        self.next += 1;
        self.order.insert(at, id.clone());
        if let Some(same) = self.open.insert(id, OpenCall { at, of }) {
            self.order.remove(&same.at);
        }
        // Of harnesses that were killed outcomes never come.
        if self.open.len() > REMEMBERED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.open.remove(&oldest);
        }
    }

    fn ends(&mut self, id: &str) -> Option<[String; 4]> {
        let OpenCall { at, of } = self.open.remove(id)?;
        self.order.remove(&at);
        Some(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: &str) -> ReadRecord {
        ReadRecord::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_call_is_remembered_however_many_others_begin_and_end_meanwhile() {
        let mut calls = Calls::default();
        calls.of(&record(r#"{"type":"intent","id":"long","session":"s","server":"tunnels"}"#));
        for id in 0..REMEMBERED + 10 {
            calls.of(&record(&format!(r#"{{"type":"intent","id":"{id}","session":"other"}}"#)));
            calls.of(&record(&format!(r#"{{"type":"outcome","id":"{id}"}}"#)));
        }
        let [session, server, ..] = calls.of(&record(r#"{"type":"outcome","id":"long"}"#));
        assert_eq!((session.as_str(), server.as_str()), ("s", "tunnels"));
        // What never ends is forgotten, the oldest first.
        for id in 0..=REMEMBERED {
            calls.of(&record(&format!(r#"{{"type":"intent","id":"{id}","session":"killed"}}"#)));
        }
        let session =
            |calls: &mut Calls, id: &str| calls.of(&record(&format!(r#"{{"type":"outcome","id":"{id}"}}"#)))[0].clone();
        assert_eq!((session(&mut calls, "0").as_str(), session(&mut calls, "1").as_str()), ("", "killed"));
        assert_eq!((calls.open.len(), calls.order.len()), (REMEMBERED - 1, REMEMBERED - 1));
    }
}
