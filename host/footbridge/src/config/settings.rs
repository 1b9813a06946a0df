//! The harness's own file, `footbridge.toml`: typed, and every key that is not known is a mistake.
//!
//! Reading goes on after a mistake: the key it names is left out and the rest is read again, so that one look shows
//! all of them.

use std::{collections::BTreeSet, net::Ipv6Addr};

use serde::Deserialize;
use toml::{Table, Value};

use super::approval::Approval;
use crate::store::StoreKind;
use footbridge_audit::AuditSettings;
use footbridge_core::hosts::is_uri_host;
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
    let hosts = settings.iter().flat_map(|settings| wrong_hosts(&file, &settings.edge.allow_hosts));
    let mistakes = mistakes.into_iter().chain(beyond).chain(hosts).collect();
    (settings.map(|settings| Settings { named_limits, ..settings }), mistakes)
}

/// Those that no `Host` header gives.
fn wrong_hosts(file: &File<'_>, hosts: &[String]) -> Vec<Mistake> {
    let why = |host: &str| match host {
        "" => Some("it is empty"),
        host if host.contains('*') => Some("it is no pattern: name each host"),
        host if !host.is_ascii() => Some("clients send such a name as ASCII: write it as they do, with xn--"),
        host if host.parse::<Ipv6Addr>().is_ok() => Some("an IPv6 address is in brackets there, as in [fd00::1]"),
        host if is_uri_host(host) => None,
        host if host.rsplit_once(':').is_some_and(|(name, port)| is_uri_host(name) && port.parse::<u16>().is_ok()) => {
            Some("any port is meant: leave it out")
        }
        _ => Some("it is neither a name nor an address"),
    };
    let mistake = |(index, host): (usize, &String)| {
        let keys = ["edge".to_owned(), "allow_hosts".to_owned(), index.to_string()];
        Some(file.mistake(&keys, format!("no request has {host:?} as its host: {}", why(host)?)))
    };
    hosts.iter().enumerate().filter_map(mistake).collect()
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
    fn hosts_that_no_request_has_are_named_with_what_to_write() {
        let text = "[edge]\nallow_hosts = [\n  \"*\",\n  \"x:80\",\n  \"\",\n  \"\u{fc}.example\",\n  \"fd00::1\",\n  \"[fd00::1]\",\n  \"a.b\",\n  \"[fd00::1]:5\",\n  \"https://x\",\n]\n";
        let found: Vec<String> = read(Path::new("f.toml"), text).unwrap_err().iter().map(ToString::to_string).collect();
        for (index, part) in [
            (1, "\"*\" as its host: it is no pattern"),
            (2, "any port is meant: leave it out"),
            (3, "it is empty"),
            (4, "with xn--"),
            (5, "in brackets"),
            (8, "any port is meant"),
            (9, "neither a name"),
        ] {
            let place = format!("edge.allow_hosts[{index}]: no request has");
            assert!(found.iter().any(|m| m.contains(&place) && m.contains(part)), "{place} {part}: {found:#?}");
        }
        assert!(found.len() == 7 && found.iter().all(|m| m.starts_with("f.toml:")), "{found:#?}");
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
