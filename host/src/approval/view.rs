//! What is shown to whoever is asked.

use std::{sync::Arc, time::SystemTime};

use serde_json::json;

use super::{ApprovalId, book::Entry};
use crate::{
    budget::Held,
    control::wire::{ApprovalInfo, ApprovalShown},
    gate::Verdict,
    provider::OutgoingRequest,
    resolve::repeated,
    session::Labels,
};

/// What is shown of long arguments, bytes: their head, and their tail.
const HEAD: usize = 2048;
const TAIL: usize = 512;

/// One question, with the raw arguments. It lives in memory only.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(super) session: String,
    pub(super) labels: Labels,
    pub(super) peer: String,
    pub(super) effects: Vec<&'static str>,
    pub(super) policy: String,
    pub(super) arguments: Arc<str>,
    pub(super) asked: SystemTime,
    /// The arguments' part of the budget.
    pub(super) _held: Held,
}

impl Asking {
    pub(super) fn new(verdict: &Verdict, held: Held) -> Self {
        let principal = verdict.call().principal();
        Self {
            session: principal.session().name().to_string(),
            labels: principal.session().spec().labels.clone(),
            peer: principal.peer().to_string(),
            effects: verdict.call().effects().words(),
            policy: verdict.policy().name().to_owned(),
            arguments: arguments(verdict.call().request()).into(),
            asked: SystemTime::now(),
            _held: held,
        }
    }
}

/// The text that is digested, shown and sent.
fn arguments(request: &OutgoingRequest) -> &str {
    match request {
        OutgoingRequest::CallTool { arguments, .. } => arguments.get(),
        OutgoingRequest::ReadResource { uri } => uri,
    }
}

/// RFC 3339 in UTC, to the second.
pub(super) fn time(at: SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(at).to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// When an instant will be by the clock on the wall.
pub(super) fn wall(until: tokio::time::Instant) -> SystemTime {
    SystemTime::now() + until.saturating_duration_since(tokio::time::Instant::now())
}

/// One approval as commands read it.
pub(super) fn info(id: ApprovalId, entry: &Entry<Asking>) -> ApprovalInfo {
    let (key, about) = (&entry.key, &entry.about);
    let (head, tail) = ends(&about.arguments);
    ApprovalInfo {
        id: id.to_string(),
        state: if entry.granted.is_some() { "granted" } else { "pending" }.to_owned(),
        session: about.session.clone(),
        labels: about.labels.clone(),
        peer: about.peer.clone(),
        kind: key.kind.to_owned(),
        server: key.server.clone(),
        name: repeated(&key.name).into_owned(),
        effects: about.effects.iter().map(|word| (*word).to_owned()).collect(),
        policy: about.policy.clone(),
        definition: key.definition.map(|digest| format!("sha256:{digest}")),
        digest: format!("sha256:{}", key.arguments),
        bytes: about.arguments.len(),
        head: head.to_owned(),
        tail: tail.to_owned(),
        asked: time(about.asked),
        expires: time(wall(entry.until)),
    }
}

/// One approval with its whole arguments.
pub(super) fn shown(id: ApprovalId, entry: &Entry<Asking>) -> ApprovalShown {
    ApprovalShown { info: info(id, entry), arguments: entry.about.arguments.to_string() }
}

/// One approval for the operator's programs.
pub(super) fn for_programs(id: ApprovalId, entry: &Entry<Asking>) -> Option<String> {
    let mut value = serde_json::to_value(info(id, entry)).ok()?;
    value["arguments"] = json!(&*entry.about.arguments);
    Some(value.to_string())
}

/// The beginning and the end of a long text; the whole and nothing of a short one.
fn ends(text: &str) -> (&str, &str) {
    if text.len() <= HEAD + TAIL {
        return (text, "");
    }
    (&text[..text.floor_char_boundary(HEAD)], &text[text.ceil_char_boundary(text.len() - TAIL)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_shows_its_ends_and_no_half_character() {
        assert_eq!(ends("short"), ("short", ""));
        let long = format!("a{}z", "é".repeat(4000));
        let (head, tail) = ends(&long);
        assert!(head.starts_with("aé") && tail.ends_with("éz"));
        assert!((HEAD - 3..=HEAD).contains(&head.len()) && (TAIL - 3..=TAIL).contains(&tail.len()));
    }
}
