//! A record read back, and what must be true of every record, whatever happened while it was written.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use footbridge_audit::read::{ChainFolder, KnownHeads, verify};

use super::world::{Left, arguments};
use footbridge_core::digest::Digest;

/// The lines of a record.
pub(super) struct Ledger {
    text: String,
    lines: Vec<Value>,
}

impl Ledger {
    /// Reads a record; each line must be whole, numbered without gaps, and the chain must hold.
    pub(super) fn read(text: String) -> Self {
        assert!(text.is_empty() || text.ends_with('\n'), "a torn line: {text}");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let numbers = lines.iter().map(|line| line["seq"].as_u64().unwrap());
        assert!(numbers.eq(1..=lines.len() as u64), "{text}");
        must_verify(&text);
        Self { text, lines }
    }

    pub(super) fn of(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == kind).collect()
    }

    /// The steps of approvals to this state.
    pub(super) fn approvals(&self, state: &str) -> Vec<&Value> {
        self.of("approval").into_iter().filter(|line| line["state"] == state).collect()
    }

    /// The words of the outcomes, in their order.
    pub(super) fn outcomes(&self) -> Vec<&str> {
        self.of("outcome").iter().map(|line| line["outcome"].as_str().unwrap()).collect()
    }

    /// Every call that left has its intent before it and left once; every intent has one outcome, after it; what is
    /// recorded as not sent did not leave, and everything else did. Approvals are used as they should be.
    pub(super) fn must_account_for(&self, left: &[Left]) {
        self.approvals_must_be_used_once();
        let text = &self.text;
        let mut tags = HashSet::new();
        let mut sent = HashSet::new();
        for Left { tag, recorded } in left {
            assert!(tags.insert(tag), "{tag} left twice: {text}");
            let digest = format!("sha256:{}", Digest::of(arguments(tag)));
            assert!(text[..*recorded].contains(&digest), "{tag} left before its intent: {text}");
            sent.insert(digest);
        }
        let mut open = HashMap::new();
        for line in &self.lines {
            let id = line["id"].as_str().unwrap_or_default();
            if line["type"] == "intent" {
                assert!(open.insert(id, &line["arguments"]["digest"]).is_none(), "{id} twice: {text}");
            } else if line["type"] == "outcome" {
                let digest = open.remove(id).unwrap_or_else(|| panic!("{id} has no intent: {text}"));
                let was_sent = sent.contains(digest.as_str().unwrap());
                assert_eq!(line["outcome"] != "not_sent", was_sent, "{line} in {text}");
            }
        }
        assert!(open.is_empty(), "intents without an outcome: {open:?} in {text}");
    }

    /// Every intent of a call that was asked about has the use of its approval before it, for the same arguments, and
    /// no approval is used twice.
    fn approvals_must_be_used_once(&self) {
        let text = &self.text;
        let (mut used, mut by_intents) = (HashMap::new(), HashSet::new());
        for line in &self.lines {
            if line["type"] == "approval" && line["state"] == "used" {
                let digest = &line["arguments"]["digest"];
                assert!(used.insert(&line["id"], digest).is_none(), "{line} once more in {text}");
            } else if line["type"] == "intent" && line["decision"] == "ask" {
                let id = &line["approval"];
                assert_eq!(used.get(id), Some(&&line["arguments"]["digest"]), "{line} in {text}");
                assert!(by_intents.insert(id), "{id} for two calls: {text}");
            }
        }
    }
}

/// A record in one text must be a chain that holds.
fn must_verify(text: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("000001.jsonl"), text).unwrap();
    let chain = ChainFolder { name: "c".to_owned(), path: folder.path().to_owned() };
    let report = verify(&chain, &KnownHeads::default()).unwrap();
    assert_eq!((report.problem, report.torn), (None, 0), "{text}");
    assert_eq!(report.records, text.lines().count() as u64);
}
