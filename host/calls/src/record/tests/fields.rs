//! The fields of records, pinned: the lines themselves, and the table of `docs/record.md`.

use std::collections::BTreeSet;

use footbridge_audit::{Trail, VolatileJournal};
use footbridge_core::{digest::Digest, limits::AuditLimits};
use footbridge_proto::approval::ApprovalStatus;
use serde_json::Value;

use crate::record::lines::{
    Approval, Arguments, Called, DecidedLine, Intent, Line, PinAccepted, Refused, SessionBegins, SessionEnded,
    SessionLimited, SessionListens, SessionRotated,
};

const DOCS: &str = include_str!("../../../../../docs/record.md");
const GOLDEN: &str = include_str!("golden.jsonl");
/// What the writer's own lines are; a test there holds it to them.
const WRITERS: &str = include_str!("../../../../audit/src/tests/golden.jsonl");

/// One of each, with all that it can hold.
fn all() -> Vec<Line<'static>> {
    let digest = Digest::of("x");
    let session = || "run-1".to_owned();
    let called = |peer, kind, name: &str| Called { session: "run-1", peer, kind, server: "demo", name: name.into() };
    let decided = || DecidedLine {
        decision: "deny",
        policy: "open",
        rule: Some("reads"),
        effects: vec!["read", "egress"],
        approval: Some("ap-0123456789abcdef".into()),
        approver: Some("approvals allow (uid 0)"),
    };
    vec![
        Line::Session(SessionBegins {
            session: session(),
            policy: "open".into(),
            listeners: vec!["unix:/run/s.sock".into()],
            labels: [("team".to_owned(), "search".to_owned())].into(),
            limits: [("calls.burst".to_owned(), "5".to_owned())].into(),
            services: vec!["anthropic".into()],
        }),
        Line::SessionListens(SessionListens { session: session(), listener: "tcp:127.0.0.1:7179".into() }),
        Line::SessionRotated(SessionRotated { session: session() }),
        Line::Intent(Intent {
            id: "dZx5-Qb2c-Tw6yM3",
            called: called(Some("unix:uid=0,pid=9"), "tool", "get_weather"),
            arguments: Arguments { digest, bytes: 15, redacted: Some("{\"city\":\"Bern\"}".into()) },
            meta: Some(Arguments { digest, bytes: 24, redacted: None }),
            length: Some(120),
            definition: Some(digest),
            decided: decided(),
        }),
        Line::Refused(Refused {
            id: "AAAA-Qb2c-Tw6yM3",
            called: called(Some("unix:uid=0,pid=9"), "resource", "note:///1"),
            reason: "denied_by_policy",
            detail: Some("not among the requests of the service"),
            arguments: Some(Arguments { digest, bytes: 8, redacted: None }),
            decided: Some(decided()),
        }),
        Line::Approval(Approval {
            id: "ap-0123456789abcdef",
            state: &ApprovalStatus::Granted,
            called: called(None, "tool", "add_note"),
            arguments: Arguments { digest, bytes: 12, redacted: None },
            definition: Some(digest),
            policy: "ask",
            approver: Some("approvals allow (uid 0)"),
            content: Some(Arguments { digest, bytes: 12, redacted: Some("{\"city\":\"Bern\"}".into()) }),
        }),
        Line::PinAccepted(PinAccepted {
            server: "demo".into(),
            name: "get_weather".into(),
            definition: digest,
            approver: "servers pins accept (uid 0)".into(),
        }),
        Line::SessionLimited(SessionLimited {
            session: session(),
            limits: [("budget.tokens".to_owned(), "5000".to_owned())].into(),
            approver: "session limit (uid 0)".into(),
        }),
        Line::SessionEnded(SessionEnded { session: session(), why: "expired" }),
    ]
}

/// Their lines in one chain, with what changes from one time to the next left out.
fn lines() -> Vec<Value> {
    let journal = VolatileJournal::new();
    let trail = Trail::start(journal.clone(), AuditLimits::default()).unwrap();
    all().iter().for_each(|line| trail.keep(line.record()));
    trail.close().unwrap();
    let read = |line: &String| serde_json::from_str::<Value>(line).unwrap();
    let mut lines: Vec<Value> = journal.lines().iter().map(read).collect();
    lines.retain(|line| !["started", "ended"].contains(&line["type"].as_str().unwrap()));
    let mut numbers: Vec<u64> = pinned(GOLDEN).iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    for (line, number) in lines.iter_mut().zip(numbers.drain(..)) {
        line["seq"] = number.into();
        line["time"] = "2026-11-22T02:58:08.924937Z".into();
        line["mono"] = 1_200.into();
        line["prev"] = "sha256:PREV".into();
    }
    lines
}

fn pinned(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Lines of all types: these, and those that the writer makes itself.
fn every() -> Vec<Value> {
    lines().into_iter().chain(pinned(WRITERS)).collect()
}

/// Does not build when there is a type of which [`all`] may lack one.
fn place_in_all(line: &Line<'_>) -> usize {
    match line {
        Line::Session(_) => 0,
        Line::SessionListens(_) => 1,
        Line::SessionRotated(_) => 2,
        Line::Intent(_) => 3,
        Line::Refused(_) => 4,
        Line::Approval(_) => 5,
        Line::PinAccepted(_) => 6,
        Line::SessionLimited(_) => 7,
        Line::SessionEnded(_) => 8,
    }
}

#[test]
fn the_lines_are_what_they_were() {
    assert!(all().iter().map(place_in_all).eq(0..9));
    let now: Vec<String> = lines().iter().map(ToString::to_string).collect();
    let pinned: Vec<&str> = GOLDEN.lines().collect();
    assert_eq!(now, pinned, "golden.jsonl and docs/record.md must say what records are:\n{}", now.join("\n"));
}

fn names(prefix: &str, value: &Value, into: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().unwrap() {
        let name = format!("{prefix}{name}");
        // Labels are named by whoever sets them, and limits have a page of their own.
        match value {
            Value::Object(_) if !["labels", "limits"].contains(&name.as_str()) => {
                names(&format!("{name}."), value, into)
            }
            _ => drop(into.insert(name)),
        }
    }
}

#[test]
fn the_documented_fields_and_types_are_those_of_the_records() {
    let mut fields = BTreeSet::new();
    every().iter().for_each(|line| names("", line, &mut fields));
    assert_eq!(table("## Fields"), fields);
    let types: BTreeSet<String> = every().iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(table("## Types"), types);
    // What `audit tail --type` knows.
    assert_eq!(footbridge_audit::read::TYPES.map(str::to_owned).into_iter().collect::<BTreeSet<_>>(), types);
}

/// The names in the first column of the table under a heading.
fn table(heading: &str) -> BTreeSet<String> {
    let section = DOCS.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    // The heading of the types' table is a name too.
    rows.filter(|row| !row.starts_with("type` | what")).map(|row| row.split('`').next().unwrap().to_owned()).collect()
}
