//! The table of limits against the limits themselves, against its page in the documents, and what sessions may set.

use std::collections::BTreeSet;

use super::{
    overrides::{BadOverride, Override, Overrides},
    table::{LIMITS, Unit},
    *,
};

/// The names of all fields, as they are derived.
fn fields() -> BTreeSet<String> {
    let Limits { edge, calls, services, budget, servers, audit, approval } = Limits::default();
    let sections = [
        format!("{edge:?}"),
        format!("{calls:?}"),
        format!("{services:?}"),
        format!("{budget:?}"),
        format!("{servers:?}"),
        format!("{audit:?}"),
        format!("{approval:?}"),
    ];
    let names = ["edge", "calls", "services", "budget", "servers", "audit", "approval"];
    let fields_of = |(section, text): (&str, &String)| {
        let (_, fields) = text.split_once("{ ").unwrap();
        let names = fields.split(", ").map(|field| field.split(':').next().unwrap());
        names.map(|name| format!("{section}.{name}")).collect::<Vec<_>>()
    };
    names.into_iter().zip(&sections).flat_map(fields_of).collect()
}

#[test]
fn every_limit_is_in_the_table_with_a_default_within_its_bounds() {
    let listed: BTreeSet<String> = LIMITS.iter().map(|limit| limit.name.to_owned()).collect();
    assert_eq!(listed, fields());
    for limit in LIMITS {
        let default = limit.get(&Limits::default());
        assert!(limit.bounds.contains(&default), "{}: {default}", limit.name);
        for value in [default, *limit.bounds.start(), *limit.bounds.end()] {
            assert_eq!(limit.unit.parse(&limit.unit.show(value)), Some(value), "{}", limit.name);
            let mut limits = Limits::default();
            limit.set(&mut limits, value);
            assert_eq!(limit.get(&limits), value, "{}", limit.name);
        }
    }
}

#[test]
fn the_page_in_the_documents_is_this_table() {
    let page = include_str!("../../../../docs/limits.md");
    let rows =
        page.lines().filter_map(|line| line.strip_prefix("| `")).map(|line| line.split(" | ").collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter(|row| row.len() == 5).collect();
    let expected = |limit: &table::Limit| {
        let default = limit.unit.show(limit.get(&Limits::default()));
        let session = if limit.of_session { "yes" } else { "" };
        [format!("{}`", limit.name), default, limit.within(), session.to_owned()]
    };
    for (row, limit) in rows.iter().zip(LIMITS) {
        assert_eq!(row[..4], expected(limit));
        assert!(row[4].trim_end_matches(" |").len() > 10, "{}: a reason", limit.name);
    }
    assert_eq!(rows.len(), LIMITS.len());
}

#[test]
fn a_session_has_what_it_sets_and_the_rest_of_the_harness() {
    let texts = ["calls.per_second=5", "calls.result_bytes=64 KiB", "calls.idle_time=1500ms", "calls.per_second=7"];
    let overrides: Overrides = texts.iter().map(|text| text.parse::<Override>().unwrap()).collect();
    let harness = Limits { calls: CallLimits { burst: 3, ..CallLimits::default() }, ..Limits::default() };
    let calls = overrides.over(&harness).calls;
    assert_eq!((calls.per_second, calls.burst, calls.result_bytes), (7, 3, 64 * KIB));
    assert_eq!(calls.idle_time, Duration::from_millis(1500));
    let written = overrides.written();
    assert_eq!(written["calls.idle_time"], "1500ms");
    assert_eq!(Overrides::read(&written), Ok(overrides));
    assert_eq!(Overrides::default().over(&harness), harness);
}

#[test]
fn what_no_session_can_set_is_refused_with_what_it_can() {
    let bad = |text: &str| text.parse::<Override>().unwrap_err().to_string();
    assert_eq!(bad("calls.per_second"), "write NAME=VALUE, as in calls.per_second=5");
    let unknown = bad("calls_per_second=5");
    assert!(unknown.starts_with("there is no limit \"calls_per_second\"; those of sessions are edge.body_bytes, "));
    assert!(unknown.ends_with(", approval.answer_after"), "{unknown}");
    assert!(
        bad("edge.head_bytes=1 KiB").starts_with("edge.head_bytes is one for all sessions: set it in footbridge.toml")
    );
    for text in ["calls.per_second=0", "calls.per_second=1000001", "calls.per_second=fast", "calls.per_second=+5"] {
        assert_eq!(bad(text), "calls.per_second may be 1 to 1000000, as in calls.per_second=5");
    }
    assert_eq!(bad("calls.total_time=2d"), "calls.total_time may be 1ms to 1d, as in calls.total_time=30s");
    assert!(matches!("calls.idle_time=5".parse::<Override>(), Err(BadOverride::Value { .. })));
}

#[test]
fn values_are_shown_in_their_largest_whole_unit() {
    assert_eq!(
        (Unit::Time.show(1500), Unit::Time.show(90_000), Unit::Time.show(86_400_000)),
        ("1500ms".into(), "90s".into(), "1d".into())
    );
    assert_eq!(
        (Unit::Size.show(1023), Unit::Size.show(3 << 20), Unit::Count.show(0)),
        ("1023".into(), "3 MiB".into(), "0".into())
    );
}

#[test]
fn a_limit_of_a_session_has_one_value() {
    let all = |given: &[&str]| Overrides::each_once(given.iter().map(|text| text.parse().unwrap()).collect());
    assert_eq!(all(&["calls.per_second=5", "calls.burst=7", "calls.per_second=5"]).unwrap().written().len(), 2);
    let said = all(&["calls.per_second=5", "calls.per_second=6"]).unwrap_err().to_string();
    assert!(said.starts_with("calls.per_second=5 and calls.per_second=6 exclude each other"), "{said}");
}

#[test]
fn how_long_clients_hear_nothing_is_as_they_know_it() {
    let (edge, approval) = (EdgeLimits::default(), ApprovalLimits::default());
    assert_eq!((edge.heartbeat_time.as_secs(), approval.answer_after.as_secs()), (15, 20));
}
