//! What is shown to whoever is asked.

use std::{sync::Arc, time::SystemTime};

use footbridge_proto::{approval::ApprovalStatus, wire};
use serde_json::{json, value::RawValue};

use super::{
    ApprovalId, Key,
    book::{Entry, Kept, Remembered},
    form::Form,
};
use crate::{
    approval::{ApprovalInfo, ApprovalShown},
    auth::Principal,
    decide::Verdict,
    request::OutgoingRequest,
};
use footbridge_core::{budget::Held, digest::digest_text, human::timestamp, names::Labels};

/// What is shown of long arguments, bytes: their head, and their tail.
const HEAD: usize = 2048;
const TAIL: usize = 512;

/// What is shown of a tool's description, bytes: enough to know what it does, and not enough to fill a screen.
const DESCRIPTION: usize = 400;

/// One question, with the raw arguments. It lives in memory only.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(super) session: String,
    pub(super) labels: Labels,
    pub(super) peer: String,
    pub(super) effects: Vec<&'static str>,
    /// What is said of the tool, shortened, and whether the operator says what effects it has.
    pub(super) tool: Option<(Option<String>, bool)>,
    pub(super) policy: String,
    pub(super) arguments: Arc<str>,
    /// How long the body of a request to a service is.
    pub(super) body_bytes: Option<usize>,
    pub(super) asked: SystemTime,
    /// What a server asks; none where it is a call that has to be allowed.
    pub(super) form: Option<Form>,
    /// The arguments' part of the budget.
    held: Option<Held>,
}

impl Asking {
    pub(super) fn new(verdict: &Verdict, held: Held) -> Self {
        let (call, policy) = (verdict.call(), verdict.policy().name().to_owned());
        let tool = call.said_of_tool().map(|(description, by_operator)| (shortened(description), by_operator));
        let arguments = arguments(call.request()).to_owned();
        let body_bytes = match call.request() {
            OutgoingRequest::Service(request) => request.body_bytes(),
            _ => None,
        };
        Self { tool, body_bytes, ..Self::of(call.principal(), call.effects().words(), policy, arguments) }.holding(held)
    }

    pub(super) fn of(principal: &Principal, effects: Vec<&'static str>, policy: String, arguments: String) -> Self {
        Self {
            session: principal.session().name().to_string(),
            labels: principal.session().spec().labels.clone(),
            peer: principal.peer().to_owned(),
            effects,
            tool: None,
            policy,
            arguments: arguments.into(),
            body_bytes: None,
            asked: SystemTime::now(),
            form: None,
            held: None,
        }
    }

    pub(super) fn with_form(mut self, form: Form) -> Self {
        self.form = Some(form);
        self
    }

    /// What is kept of a call that is allowed again. It is nobody's who waits, so it takes nothing of their budget.
    pub(super) fn kept(&self) -> Kept<Self> {
        let about = Self {
            session: self.session.clone(),
            labels: self.labels.clone(),
            peer: self.peer.clone(),
            effects: self.effects.clone(),
            tool: self.tool.clone(),
            policy: self.policy.clone(),
            arguments: Arc::clone(&self.arguments),
            body_bytes: self.body_bytes,
            asked: self.asked,
            form: None,
            held: None,
        };
        Kept { bytes: self.arguments.len(), about: Arc::new(about) }
    }

    /// Keeps a part of the budget as long as it lives.
    pub(super) fn holding(mut self, held: Held) -> Self {
        self.held = Some(held);
        self
    }
}

/// The text that is digested, shown and sent.
fn arguments(request: &OutgoingRequest) -> &str {
    request.arguments().map_or(request.subject(), RawValue::get)
}

/// What a question about this holds in memory, bytes: what is shown and, of a request to a service, what that is a copy of.
/// The arguments of other calls count where they were read.
pub(super) fn held_bytes(request: &OutgoingRequest) -> usize {
    let copies = if matches!(request, OutgoingRequest::Service(_)) { 2 } else { 1 };
    copies * arguments(request).len()
}

/// The beginning of a description; none where nothing is said.
fn shortened(description: &str) -> Option<String> {
    let said = (description != wire::NO_DESCRIPTION).then(|| description.trim())?;
    let end = said.floor_char_boundary(DESCRIPTION);
    let more = if end < said.len() { " ..." } else { "" };
    Some(format!("{}{more}", &said[..end]))
}

/// When an instant will be by the clock on the wall.
pub(super) fn wall(until: tokio::time::Instant) -> SystemTime {
    SystemTime::now() + until.saturating_duration_since(tokio::time::Instant::now())
}

/// One approval as commands read it.
pub(super) fn info(id: ApprovalId, entry: &Entry<Asking>) -> ApprovalInfo {
    ApprovalInfo {
        state: if entry.granted.is_some() { ApprovalStatus::Granted } else { ApprovalStatus::Pending },
        expires: Some(timestamp(wall(entry.until))),
        seconds_left: entry.until.saturating_duration_since(tokio::time::Instant::now()).as_secs(),
        approver: entry.granted.as_ref().map(|yes| yes.by.to_string()),
        is_abandoned: entry.waiters.is_empty(),
        waiting: entry.waiters.len(),
        ..call(id, &entry.key, &entry.about)
    }
}

/// One that is remembered, as commands read it.
pub(super) fn remembered(one: &Remembered<Asking>) -> ApprovalInfo {
    ApprovalInfo { approver: Some(one.by.to_string()), is_remembered: true, ..call(one.id, &one.key, &one.kept.about) }
}

/// What was asked, of one that was granted.
fn call(id: ApprovalId, key: &Key, about: &Asking) -> ApprovalInfo {
    let (head, tail) = ends(&about.arguments);
    ApprovalInfo {
        id: id.to_string(),
        state: ApprovalStatus::Granted,
        session: about.session.clone(),
        labels: about.labels.clone(),
        peer: about.peer.clone(),
        kind: key.kind.to_owned(),
        server: key.server.clone(),
        name: key.name.clone(),
        description: about.tool.as_ref().and_then(|(description, _)| description.clone()),
        effects: about.effects.iter().map(|word| (*word).to_owned()).collect(),
        effects_by: about.tool.as_ref().map(|(_, by_us)| if *by_us { "operator" } else { "server" }.to_owned()),
        policy: about.policy.clone(),
        definition: key.definition.map(digest_text),
        digest: digest_text(key.arguments),
        bytes: about.arguments.len(),
        body_bytes: about.body_bytes,
        head: head.to_owned(),
        tail: tail.to_owned(),
        question: about.form.as_ref().map(Form::info),
        asked: timestamp(about.asked),
        expires: None,
        seconds_left: 0,
        approver: None,
        is_remembered: false,
        is_answered_elsewhere: false,
        is_abandoned: false,
        waiting: 0,
    }
}

/// One approval with its whole arguments.
pub(super) fn shown(id: ApprovalId, entry: &Entry<Asking>) -> ApprovalShown {
    ApprovalShown { info: info(id, entry), arguments: entry.about.arguments.to_string() }
}

/// One that is remembered, with its whole arguments.
pub(super) fn remembered_shown(one: &Remembered<Asking>) -> ApprovalShown {
    ApprovalShown { info: remembered(one), arguments: one.kept.about.arguments.to_string() }
}

/// One approval for approvers.
pub(super) fn for_approvers(id: ApprovalId, entry: &Entry<Asking>) -> Option<String> {
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
    fn a_description_is_shortened_and_says_so() {
        assert_eq!(shortened(wire::NO_DESCRIPTION), None);
        assert_eq!(shortened(" Adds. ").as_deref(), Some("Adds."));
        let long = shortened(&"é".repeat(1000)).unwrap();
        assert!(long.len() < DESCRIPTION + 8 && long.ends_with("é ..."));
    }

    #[test]
    fn a_long_text_shows_its_ends_and_no_half_character() {
        assert_eq!(ends("short"), ("short", ""));
        let long = format!("a{}z", "é".repeat(4000));
        let (head, tail) = ends(&long);
        assert!(head.starts_with("aé") && tail.ends_with("éz"));
        assert!((HEAD - 3..=HEAD).contains(&head.len()) && (TAIL - 3..=TAIL).contains(&tail.len()));
    }
}
