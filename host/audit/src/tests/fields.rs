//! The lines that the writer makes itself, pinned. Those of calls are pinned where they are made.

use serde_json::Value;

use crate::{
    SignedHead,
    chain::Chain,
    record::{OutcomeRecord, Record},
};
use footbridge_core::digest::Digest;

const GOLDEN: &str = include_str!("golden.jsonl");

/// One of each, with all that it can hold, and its number in the golden file.
fn all() -> Vec<(u64, Record)> {
    let head = SignedHead {
        chain: "20261122T025808Z-Ab12Cd34".into(),
        seq: 11,
        hash: format!("sha256:{}", Digest::of("x")),
        time: "2026-11-22T02:58:09.000000Z".into(),
        key: "ed25519:KEY".into(),
        signature: "SIGNATURE".into(),
    };
    let outcome = OutcomeRecord {
        id: "dZx5-Qb2c-Tw6yM3".into(),
        outcome: crate::RecordedOutcome::ServerError,
        detail: Some("code -32000".into()),
        duration_ms: 4,
        bytes: 352,
        exchange: Some(Box::new(crate::ExchangeRecord {
            status: Some(200),
            sent: 120,
            received: 352,
            sent_digest: Some(Digest::of("sent")),
            received_digest: Some(Digest::of("received")),
            first_byte_ms: Some(3),
            redacted: 1,
            usage: Some(crate::UsageRecord {
                model: Some("m-1".into()),
                tokens_in: Some(11),
                tokens_out: Some(5),
                tokens_cached: Some(3),
                tokens_estimated: Some(2),
            }),
        })),
    };
    vec![
        (1, Record::started("0.1.0", 7, true, Some("ed25519:KEY"))),
        (6, Record::outcome(&outcome)),
        (10, Record::limited("run-1", "rate_limited", 3)),
        (12, Record::rotated("000002.jsonl")),
        (13, Record::head(&head)),
        (14, Record::ended(0)),
    ]
}

#[test]
fn the_lines_are_what_they_were() {
    let chain = Chain::new("20261122T025808Z-Ab12Cd34".into());
    let mut draft = chain.draft(Vec::new());
    all().iter().for_each(|(_, record)| draft.add(record));
    let (text, _) = draft.finish();
    let text = String::from_utf8(text).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (line, (number, _)) in lines.iter_mut().zip(all()) {
        line["seq"] = number.into();
        line["time"] = "2026-11-22T02:58:08.924937Z".into();
        line["mono"] = 1_200.into();
        if line["host"].is_string() {
            line["host"] = "build-1".into();
        }
        for (name, masked) in
            [("prev", "sha256:PREV"), ("sent_digest", "sha256:SENT"), ("received_digest", "sha256:RECEIVED")]
        {
            if line[name].is_string() {
                line[name] = masked.into();
            }
        }
    }
    let now: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let pinned: Vec<&str> = GOLDEN.lines().collect();
    assert_eq!(now, pinned, "golden.jsonl and docs/record.md must say what records are:\n{}", now.join("\n"));
}
