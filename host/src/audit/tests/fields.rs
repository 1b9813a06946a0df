//! The fields of records, pinned: the lines themselves, and the table of `docs/record.md`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    audit::{
        chain::Chain,
        head::SignedHead,
        record::{Approval, Arguments, Called, DecidedLine, Intent, Outcome, Record, Refused},
    },
    digest::Digest,
};

const DOCS: &str = include_str!("../../../../docs/record.md");
const GOLDEN: &str = include_str!("golden.jsonl");

pub(super) fn limited() -> Record {
    Record::Limited { session: "run-1".into(), reason: "rate_limited", count: 3 }
}

/// One of each, with all that it can hold.
fn all() -> Vec<Record> {
    let digest = format!("sha256:{}", Digest::of("x"));
    let head = SignedHead {
        chain: "20261122T025808Z-Ab12Cd34".into(),
        seq: 11,
        hash: digest.clone(),
        time: "2026-11-22T02:58:09.000000Z".into(),
        key: "ed25519:KEY".into(),
        signature: "SIGNATURE".into(),
    };
    let session = || "run-1".to_owned();
    let (denied, asked) = (digest.clone(), digest.clone());
    let (content, accepted) = (digest.clone(), digest.clone());
    let called = |peer: Option<&str>, kind, name: &str| Called {
        session: session(),
        peer: peer.map(str::to_owned),
        kind,
        server: "demo".into(),
        name: name.into(),
    };
    let decided = || DecidedLine {
        decision: "deny",
        policy: "open".into(),
        rule: Some("reads".into()),
        effects: vec!["read", "egress"],
        approval: Some("ap-0123456789abcdef".into()),
        approver: Some("approvals allow (uid 0)".into()),
    };
    vec![
        Record::Started { version: "0.1.0", pid: 7, sync: true, head_key: Some("ed25519:KEY".into()) },
        Record::Session {
            session: session(),
            policy: "open".into(),
            listeners: vec!["unix:/run/s.sock".into()],
            labels: [("team".to_owned(), "search".to_owned())].into(),
            limits: [("calls.burst".to_owned(), "5".to_owned())].into(),
        },
        Record::SessionListens { session: session(), listener: "tcp:127.0.0.1:7179".into() },
        Record::SessionRotated { session: session() },
        Record::Intent(Box::new(Intent {
            id: "dZx5-Qb2c-Tw6yM3".into(),
            called: called(Some("unix:uid=0,pid=9"), "tool", "get_weather"),
            arguments: Arguments { digest: digest.clone(), bytes: 15, redacted: Some("{\"city\":\"Bern\"}".into()) },
            definition: Some(digest),
            decided: decided(),
        })),
        Record::Outcome(Outcome {
            id: "dZx5-Qb2c-Tw6yM3".into(),
            outcome: "server_error",
            detail: Some("code -32000".into()),
            duration_ms: 4,
            bytes: 352,
        }),
        Record::Refused(Box::new(Refused {
            id: "AAAA-Qb2c-Tw6yM3".into(),
            called: called(Some("unix:uid=0,pid=9"), "resource", "note:///1"),
            reason: "denied_by_policy",
            arguments: Some(Arguments { digest: denied, bytes: 8, redacted: None }),
            decided: Some(decided()),
        })),
        Record::Approval(Box::new(Approval {
            id: "ap-0123456789abcdef".into(),
            state: "granted",
            called: called(None, "tool", "add_note"),
            arguments: Arguments { digest: asked.clone(), bytes: 12, redacted: None },
            definition: Some(asked),
            policy: "ask".into(),
            approver: Some("approvals allow (uid 0)".into()),
            content: Some(Arguments { digest: content, bytes: 12, redacted: Some("{\"city\":\"Bern\"}".into()) }),
        })),
        Record::PinAccepted {
            server: "demo".into(),
            name: "get_weather".into(),
            definition: accepted,
            approver: "servers pins accept (uid 0)".into(),
        },
        limited(),
        Record::SessionEnded { session: session(), why: "expired" },
        Record::Rotated { file: "000002.jsonl".into() },
        Record::Head { head },
        Record::Ended { open: 0 },
    ]
}

/// Their lines in one chain, with times that do not change.
fn lines() -> Vec<Value> {
    let chain = Chain::new("20261122T025808Z-Ab12Cd34".into());
    let mut draft = chain.draft();
    all().iter().for_each(|record| draft.add(record));
    let (text, _) = draft.finish();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines {
        line["time"] = "2026-11-22T02:58:08.924937Z".into();
        line["mono"] = 1_200.into();
        if line["prev"].is_string() {
            line["prev"] = "sha256:PREV".into();
        }
    }
    lines
}

/// Does not build when there is a type of which [`all`] may lack one.
fn place_in_all(record: &Record) -> usize {
    match record {
        Record::Started { .. } => 0,
        Record::Session { .. } => 1,
        Record::SessionListens { .. } => 2,
        Record::SessionRotated { .. } => 3,
        Record::Intent(_) => 4,
        Record::Outcome(_) => 5,
        Record::Refused(_) => 6,
        Record::Approval(_) => 7,
        Record::PinAccepted { .. } => 8,
        Record::Limited { .. } => 9,
        Record::SessionEnded { .. } => 10,
        Record::Rotated { .. } => 11,
        Record::Head { .. } => 12,
        Record::Ended { .. } => 13,
    }
}

#[test]
fn the_lines_are_what_they_were() {
    assert!(all().iter().map(place_in_all).eq(0..14));
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
    lines().iter().for_each(|line| names("", line, &mut fields));
    assert_eq!(table("## Fields"), fields);
    let types: BTreeSet<String> = lines().iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(table("## Types"), types);
    // What `audit tail --type` knows.
    assert_eq!(crate::audit::read::TYPES.map(str::to_owned).into_iter().collect::<BTreeSet<_>>(), types);
}

/// The names in the first column of the table under a heading.
fn table(heading: &str) -> BTreeSet<String> {
    let section = DOCS.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    // The heading of the types' table is a name too.
    rows.filter(|row| !row.starts_with("type` | what")).map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

#[test]
fn an_export_as_csv_leaves_out_nothing_but_what_stands_for_itself() {
    let mut fields = BTreeSet::new();
    lines().iter().for_each(|line| names("", line, &mut fields));
    let columns = crate::cli::audit_columns();
    let missing: Vec<&String> = fields.iter().filter(|field| !columns.contains(&field.as_str())).collect();
    let own = ["file", "genesis", "head.chain", "head.hash", "head.key", "head.seq", "head.signature", "head.time"];
    let own = own.into_iter().chain(["head_key", "limits", "listener", "listeners", "open", "pid", "sync", "version"]);
    assert_eq!(missing, own.collect::<Vec<_>>());
}
