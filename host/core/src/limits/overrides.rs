//! The limits of one session that are not those of the harness.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use super::{
    Limits,
    table::{LIMITS, Limit},
};

/// Limits by their names, all known, all for sessions, and all within their bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides(BTreeMap<&'static str, u64>);

/// One limit of one session, as in `calls.per_second=5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Override(&'static str, u64);

/// Whether a limit is a budget, which can be changed while its session is open.
#[must_use]
pub fn is_budget(name: &str) -> bool {
    name.starts_with("budget.")
}

/// A text that sets no limit of a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOverride {
    /// No name and value.
    #[error("write NAME=VALUE, as in calls.per_second=5")]
    NoValue,
    /// A name that is none.
    #[error("there is no limit {0:?}; those of sessions are {names}", names = of_sessions())]
    Unknown(String),
    /// One that all sessions share.
    #[error("{0} is one for all sessions: set it in footbridge.toml; those of sessions are {names}", names = of_sessions())]
    Shared(&'static str),
    /// A value that is none, or beyond the bounds.
    #[error("{name} may be {within}, as in {name}={example}")]
    Value {
        /// The limit.
        name: &'static str,
        /// Its bounds.
        within: String,
        /// A value.
        example: &'static str,
    },
}

/// What a session has that is alone, in place of defaults that keep sessions from each other: nobody else waits for the
/// disk or for a server.
const ALONE: [Override; 3] = [
    Override("calls.per_second", 200),
    Override("calls.burst", 500),
    Override("calls.in_flight_per_session_and_server", 16),
];

fn of_sessions() -> String {
    let names: Vec<&str> = LIMITS.iter().filter(|limit| limit.of_session).map(|limit| limit.name).collect();
    names.join(", ")
}

impl Override {
    /// Makes sense of a name and a value.
    ///
    /// # Errors
    /// [`BadOverride`].
    pub fn new(name: &str, value: &str) -> Result<Self, BadOverride> {
        let limit = Limit::of(name).ok_or_else(|| BadOverride::Unknown(name.to_owned()))?;
        if !limit.of_session {
            return Err(BadOverride::Shared(limit.name));
        }
        let value = limit.unit.parse(value).filter(|value| limit.bounds.contains(value));
        let bad = || BadOverride::Value { name: limit.name, within: limit.within(), example: limit.unit.example() };
        Ok(Self(limit.name, value.ok_or_else(bad)?))
    }
}

impl FromStr for Override {
    type Err = BadOverride;

    fn from_str(text: &str) -> Result<Self, BadOverride> {
        let (name, value) = text.split_once('=').ok_or(BadOverride::NoValue)?;
        Self::new(name, value)
    }
}

impl FromIterator<Override> for Overrides {
    /// The last of several for one limit counts.
    fn from_iter<T: IntoIterator<Item = Override>>(all: T) -> Self {
        Self(all.into_iter().map(|Override(name, value)| (name, value)).collect())
    }
}

/// A limit with two values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}={first} and {name}={second} exclude each other: a limit has one value")]
pub struct LimitTwice {
    name: &'static str,
    first: String,
    second: String,
}

impl Overrides {
    /// Each of these, none of which may say something else than another.
    ///
    /// # Errors
    /// [`LimitTwice`], for the first that does.
    pub fn each_once(all: Vec<Override>) -> Result<Self, LimitTwice> {
        let mut once = BTreeMap::new();
        for Override(name, value) in all {
            if let Some(first) = once.insert(name, value).filter(|first| *first != value) {
                let shown = |value| Limit::of(name).map_or_else(String::new, |limit| limit.unit.show(value));
                return Err(LimitTwice { name, first: shown(first), second: shown(value) });
            }
        }
        Ok(Self(once))
    }

    /// Makes sense of names and values.
    ///
    /// # Errors
    /// [`BadOverride`], for the first that makes none.
    pub fn read<'a>(all: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<Self, BadOverride> {
        all.into_iter().map(|(name, value)| Override::new(name, value)).collect()
    }

    /// The same for a session that is alone with its harness: what neither these nor the settings name is larger.
    #[must_use]
    pub fn alone(self, named: &BTreeSet<&'static str>) -> Self {
        let larger = ALONE.iter().filter(|Override(name, _)| !named.contains(name));
        Self(larger.map(|Override(name, value)| (*name, *value)).chain(self.0).collect())
    }

    /// More of them, in the places of those for the same limits.
    pub fn add(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// One that holds from the start of a session and cannot be changed later: all but budgets. None where there is none.
    #[must_use]
    pub fn lasting(&self) -> Option<&'static str> {
        self.0.keys().copied().find(|name| !is_budget(name))
    }

    /// Names and values, as [`Self::read`] takes them.
    #[must_use]
    pub fn written(&self) -> BTreeMap<String, String> {
        let write = |(name, value): (&&str, &u64)| Some(((*name).to_owned(), Limit::of(name)?.unit.show(*value)));
        self.0.iter().filter_map(write).collect()
    }

    /// The harness's limits, with these in their places.
    #[must_use]
    pub fn over(&self, limits: &Limits) -> Limits {
        let mut limits = limits.clone();
        for (name, value) in &self.0 {
            if let Some(limit) = Limit::of(name) {
                limit.set(&mut limits, *value);
            }
        }
        limits
    }
}
