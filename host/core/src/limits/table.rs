//! Each limit by its name: where it is, what it counts, and within which bounds it may be set.
//!
//! A name is the place in the settings file without the word `limits` in front. `docs/limits.md` is this table for
//! readers, with the defaults and the reasons.

use std::{collections::BTreeSet, ops::RangeInclusive, time::Duration};

use footbridge_proto::json::{MAX_ARGUMENT_DEPTH, MAX_BODY_DEPTH};
use toml::{Table, Value};

use super::{Limits, MAX_RESULT_BYTES};
use crate::human::{parse_duration, parse_size};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
const TIB: u64 = 1024 * GIB;
const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A limit.
#[derive(Debug)]
pub struct Limit {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The least and the most that it may be: a count, bytes, or milliseconds.
    pub bounds: RangeInclusive<u64>,
    /// Whether a session may have another than the harness.
    pub of_session: bool,
    field: fn(&mut Limits) -> Field<'_>,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Size,
    /// Milliseconds.
    Time,
}

enum Field<'a> {
    Number(&'a mut usize),
    Rate(&'a mut u32),
    Time(&'a mut Duration),
}

impl Unit {
    /// Reads a value as people write it: `5`, `16 KiB`, `30s`.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<u64> {
        match self {
            Self::Count => text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?,
            Self::Size => parse_size(text).and_then(|size| u64::try_from(size).ok()),
            Self::Time => parse_duration(text).and_then(|time| u64::try_from(time.as_millis()).ok()),
        }
    }

    /// A value as people write it, in the largest unit that it is a multiple of.
    #[must_use]
    pub fn show(self, value: u64) -> String {
        let units: &[(u64, &str)] = match self {
            Self::Count => &[],
            Self::Size => &[(MIB, " MiB"), (KIB, " KiB")],
            Self::Time => &[(DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (1, "ms")],
        };
        let fits = units.iter().find(|(unit, _)| value >= *unit && value.is_multiple_of(*unit));
        fits.map_or_else(|| value.to_string(), |(unit, name)| format!("{}{name}", value / unit))
    }

    /// An example of how it is written.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Count => "5",
            Self::Size => "256 KiB",
            Self::Time => "30s",
        }
    }
}

impl Limit {
    /// The limit of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        LIMITS.iter().find(|limit| limit.name == name)
    }

    /// Its value.
    #[must_use]
    pub fn get(&self, limits: &Limits) -> u64 {
        match (self.field)(&mut limits.clone()) {
            Field::Number(number) => u64::try_from(*number).unwrap_or(u64::MAX),
            Field::Rate(rate) => u64::from(*rate),
            Field::Time(time) => u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Sets it; what lies beyond its bounds becomes the bound.
    pub(super) fn set(&self, limits: &mut Limits, value: u64) {
        let value = value.clamp(*self.bounds.start(), *self.bounds.end());
        match (self.field)(limits) {
            Field::Number(number) => *number = usize::try_from(value).unwrap_or(usize::MAX),
            Field::Rate(rate) => *rate = u32::try_from(value).unwrap_or(u32::MAX),
            Field::Time(time) => *time = Duration::from_millis(value),
        }
    }

    /// Its bounds, as people write them.
    #[must_use]
    pub fn within(&self) -> String {
        format!("{} to {}", self.unit.show(*self.bounds.start()), self.unit.show(*self.bounds.end()))
    }
}

/// What in the limits of a settings file lies beyond its bounds: the name, and what to write. A value that is none is
/// passed over: reading it says what is wrong.
pub fn beyond_bounds(limits: &Table) -> Vec<(&'static str, String)> {
    let beyond = |limit: &&Limit| {
        let (section, key) = limit.name.split_once('.').unwrap_or_default();
        let value = match limits.get(section).and_then(|section| section.get(key)) {
            Some(Value::Integer(number)) if limit.unit != Unit::Time => u64::try_from(*number).ok(),
            Some(Value::String(text)) if limit.unit != Unit::Count => limit.unit.parse(text).filter(|value| *value > 0),
            _ => None,
        };
        value.is_some_and(|value| !limit.bounds.contains(&value))
    };
    LIMITS.iter().filter(beyond).map(|limit| (limit.name, format!("it may be {}", limit.within()))).collect()
}

/// The limits that a settings file sets.
#[must_use]
pub fn named_in(limits: &Table) -> BTreeSet<&'static str> {
    let is_there = |limit: &&Limit| {
        let (section, key) = limit.name.split_once('.').unwrap_or_default();
        limits.get(section).is_some_and(|section| section.get(key).is_some())
    };
    LIMITS.iter().filter(is_there).map(|limit| limit.name).collect()
}

macro_rules! limits {
    ($($section:ident.$key:ident: $unit:ident $field:ident $bounds:expr, $session:ident;)*) => {
        &[$(Limit {
            name: concat!(stringify!($section), ".", stringify!($key)),
            unit: Unit::$unit,
            bounds: $bounds,
            of_session: limits!(@$session),
            field: |limits| Field::$field(&mut limits.$section.$key),
        }),*]
    };
    (@session) => { true };
    (@all) => { false };
}

/// All of them.
pub const LIMITS: &[Limit] = limits! {
    edge.head_bytes: Size Number KIB..=64 * KIB, all;
    edge.headers: Count Number 8..=1000, all;
    edge.body_bytes: Size Number KIB..=16 * MIB, session;
    edge.body_depth: Count Number 8..=MAX_BODY_DEPTH as u64, session;
    edge.head_time: Time Time 1..=HOUR, all;
    edge.body_time: Time Time 1..=HOUR, all;
    edge.body_rate: Size Number 64 * KIB..=GIB, session;
    edge.idle_time: Time Time 1..=DAY, all;
    edge.write_time: Time Time 1..=HOUR, all;
    edge.answer_time: Time Time 1..=DAY, all;
    edge.heartbeat_time: Time Time 1..=HOUR, all;
    edge.connections_per_session: Count Number 1..=10_000, session;
    edge.connections: Count Number 1..=100_000, all;
    edge.connections_reserved: Count Number 0..=1000, all;
    edge.held_bytes: Size Number MIB..=16 * GIB, all;
    edge.parsed_bytes: Size Number 64 * KIB..=GIB, all;
    edge.wrong_token_delay: Time Time 1..=10 * SECOND, all;
    calls.in_flight_per_session: Count Number 1..=10_000, session;
    calls.in_flight_per_session_and_server: Count Number 1..=10_000, session;
    calls.in_flight_per_server: Count Number 1..=10_000, all;
    calls.busy_after: Time Time 1..=MINUTE, session;
    calls.per_second: Count Rate 1..=1_000_000, session;
    calls.burst: Count Rate 1..=1_000_000, session;
    calls.listings_per_second: Count Rate 1..=1_000_000, session;
    calls.listing_burst: Count Rate 1..=1_000_000, session;
    calls.argument_depth: Count Number 1..=MAX_ARGUMENT_DEPTH as u64, session;
    calls.idle_time: Time Time 1..=DAY, session;
    calls.total_time: Time Time 1..=DAY, session;
    calls.result_bytes: Size Number KIB..=MAX_RESULT_BYTES as u64, session;
    calls.server_wait: Time Time 1..=HOUR, all;
    calls.list_wait: Time Time 1..=HOUR, all;
    calls.drain_time: Time Time 1..=HOUR, all;
    services.request_bytes: Size Number KIB..=GIB, session;
    services.asked_bytes: Size Number KIB..=16 * MIB, session;
    services.connect_time: Time Time 1..=HOUR, all;
    services.silence_time: Time Time 1..=DAY, session;
    services.total_time: Time Time 1..=7 * DAY, session;
    services.in_flight: Count Number 1..=10_000, session;
    services.tunnels: Count Number 1..=10_000, session;
    services.per_second: Count Rate 1..=1_000_000, session;
    services.burst: Count Rate 1..=1_000_000, session;
    services.answer_head_bytes: Size Number 4 * KIB..=MIB, all;
    budget.requests: Count Number 0..=1_000_000_000, session;
    budget.tokens: Count Number 0..=1_000_000_000_000, session;
    budget.service_bytes: Size Number 0..=TIB, session;
    budget.tunnel_bytes: Size Number 0..=TIB, session;
    servers.start_time: Time Time 1..=HOUR, all;
    servers.list_time: Time Time 1..=HOUR, all;
    servers.list_age: Time Time 1..=DAY, all;
    servers.connect_time: Time Time 1..=HOUR, all;
    servers.line_bytes: Size Number 64 * KIB..=GIB, all;
    servers.stderr_bytes: Size Number KIB..=64 * MIB, all;
    servers.entries: Count Number 1..=100_000, all;
    servers.pages: Count Number 1..=10_000, all;
    servers.catalogue_bytes: Size Number 64 * KIB..=GIB, all;
    servers.description_bytes: Size Number 64..=MIB, all;
    servers.schema_bytes: Size Number KIB..=16 * MIB, all;
    servers.restarts: Count Number 1..=1000, all;
    servers.restart_window: Time Time 1..=DAY, all;
    servers.breaker_time: Time Time 1..=DAY, all;
    servers.first_pause: Time Time 1..=MINUTE, all;
    servers.leave_time: Time Time 1..=5 * MINUTE, all;
    servers.close_time: Time Time 1..=5 * MINUTE, all;
    audit.intent_time: Time Time 1..=MINUTE, all;
    audit.queue: Count Number 1..=1_000_000, all;
    audit.outcome_reserve: Size Number KIB..=MIB, all;
    approval.pending_per_session: Count Number 1..=1000, session;
    approval.pending_time: Time Time 1..=7 * DAY, session;
    approval.grant_time: Time Time 1..=DAY, session;
    approval.denial_time: Time Time 1..=DAY, session;
    approval.answer_after: Time Time 1..=HOUR, session;
    approval.command_time: Time Time 1..=HOUR, all;
};
