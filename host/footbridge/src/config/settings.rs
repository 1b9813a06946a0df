//! The harness's own file, `footbridge.toml`: typed, and every key that is not known is a mistake.
//!
//! Reading goes on after a mistake: the key it names is left out and the rest is read again, so that one look shows
//! all of them.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::{Table, Value};

use super::approval::Approval;
use crate::store::StoreKind;
use footbridge_audit::AuditSettings;
use footbridge_core::limits::{
    Limits,
    table::{beyond_bounds, named_in},
};
use footbridge_core::settings_file::{File, Mistake};

/// What `footbridge.toml` may say.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) limits: Limits,
    /// Those of them that the file names.
    #[serde(skip)]
    pub(super) named_limits: BTreeSet<&'static str>,
    pub(super) edge: Edge,
    pub(super) store: StoreKind,
    pub(super) audit: AuditSettings,
    pub(super) approval: Approval,
    /// Read by itself: see [`crate::config`]. Here it is only known that it may be there.
    #[serde(rename = "services")]
    _services: Table,
    /// The same.
    #[serde(rename = "tunnels")]
    _tunnels: Option<Table>,
    /// The same.
    #[serde(rename = "policies")]
    _policies: Table,
    /// The same.
    #[serde(rename = "effects")]
    _effects: Vec<Value>,
}

/// Settings of the listeners.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Edge {
    /// Names that a `Host` header may give besides loopback.
    pub(super) allow_hosts: Vec<String>,
}

/// Reads a settings file, but for its services and policies: what of it can be made sense of, and what is wrong.
pub(super) fn read(file: File<'_>, table: Table) -> (Option<Settings>, Vec<Mistake>) {
    let limits = table.get("limits").and_then(Value::as_table).map(beyond_bounds).unwrap_or_default();
    let beyond = limits.iter().map(|(name, what)| {
        let keys: Vec<String> = std::iter::once("limits").chain(name.split('.')).map(str::to_owned).collect();
        file.mistake(&keys, what)
    });
    let beyond: Vec<Mistake> = beyond.collect();
    let named_limits = table.get("limits").and_then(Value::as_table).map(named_in).unwrap_or_default();
    let (settings, mistakes) = file.read_in_part::<Settings>(&[], table);
    (settings.map(|settings| Settings { named_limits, ..settings }), mistakes.into_iter().chain(beyond).collect())
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;

    fn read(path: &Path, text: &str) -> Result<Settings, Vec<Mistake>> {
        let file = File::new(path, text);
        let (settings, mistakes) = super::read(file, file.parse().map_err(|mistake| vec![mistake])?);
        settings.filter(|_| mistakes.is_empty()).ok_or(mistakes)
    }

    #[test]
    fn limits_are_read_over_their_defaults() {
        let text =
            "[limits.calls]\nidle_time = \"5s\"\nresult_bytes = \"1 MiB\"\n[edge]\nallow_hosts = [\"bridge.test\"]\n";
        let settings = read(Path::new("f"), text).unwrap();
        assert_eq!(settings.limits.calls.idle_time, Duration::from_secs(5));
        assert_eq!(settings.limits.calls.result_bytes, 1 << 20);
        assert_eq!(settings.limits.calls.burst, 100);
        assert_eq!(settings.edge.allow_hosts, ["bridge.test"]);
    }

    #[test]
    fn a_store_that_there_is_none_of_is_refused_with_those_that_there_are() {
        assert_eq!(read(Path::new("f"), "store = \"sqlite\"\n").unwrap().store, StoreKind::Sqlite);
        let found = read(Path::new("f.toml"), "store = \"postgres\"\n").unwrap_err();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["f.toml:1: store: \"postgres\" is none of the words for this: \"sqlite\" is"]);
    }

    #[test]
    fn limits_beyond_their_bounds_are_named_with_them_and_with_other_mistakes() {
        let text = "[limits.calls]\nper_second = 0\ntotal_time = \"2d\"\nspeed = 1\n[limits.edge]\nheld_bytes = 5\nheaders = 8\n";
        let found: Vec<String> = read(Path::new("f.toml"), text).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 4, "{found:#?}");
        for start in [
            "f.toml:2: limits.calls.per_second: it may be 1 to 1000000",
            "f.toml:3: limits.calls.total_time: it may be 1ms to 1d",
            "f.toml:4: limits.calls.speed",
            "f.toml:6: limits.edge.held_bytes: it may be 1 MiB to 16384 MiB",
        ] {
            assert!(found.iter().any(|m| m.starts_with(start)), "{start}: {found:#?}");
        }
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        let text = "colour = 1\n[limits.calls]\nidle_time = 5\nburst = \"x\"\nspeed = 1\n[limits.edge]\nhead_bytes = \"1 GB\"\n";
        let found: Vec<String> = read(Path::new("f.toml"), text).unwrap_err().iter().map(ToString::to_string).collect();
        for start in [
            "f.toml:1: colour",
            "f.toml:3: limits.calls.idle_time",
            "f.toml:4: limits.calls.burst",
            "f.toml:5: limits.calls.speed",
            "f.toml:7: limits.edge.head_bytes",
        ] {
            assert!(found.iter().any(|m| m.starts_with(start)), "{start}: {found:#?}");
        }
        assert_eq!(found.len(), 5);
        let broken = read(Path::new("f"), "a = \n").unwrap_err();
        assert!(broken[0].to_string().starts_with("f:1:"), "{}", broken[0]);
    }
}
