//! What is noted of a service that is no mistake, and may not be what was meant.

use std::collections::{BTreeMap, BTreeSet};

use footbridge_core::settings_file::closest;
use footbridge_proto::vars::GUEST_PREFIX;
use footbridge_services::Preset;

use super::{super::loading::is_loading, meaning::Meaning};

/// What stands in braces for something that is known once a guest has the service.
const PLACES: [&str; 5] = ["url", "token", "authority", "name", "origin"];

/// Beginnings of variables that say where packages are from.
const PACKAGES: [&str; 3] = ["NPM_CONFIG_", "PIP_", "UV_"];

/// Words in braces that are none of these.
fn unknown_places(text: &str) -> impl Iterator<Item = &str> {
    let inner = text.split('{').skip(1).filter_map(|after| Some(after.split_once('}')?.0));
    let is_word = |inner: &&str| !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
    inner.filter(is_word).filter(|inner| !PLACES.contains(inner))
}

impl Meaning<'_> {
    /// Names in braces that stand for nothing in the variables of guests.
    pub(super) fn note_unknown_places(&mut self, environment: &BTreeMap<String, String>) {
        let unknown: BTreeSet<&str> =
            environment.iter().flat_map(|(name, value)| [name, value]).flat_map(|text| unknown_places(text)).collect();
        for place in unknown {
            let known = PLACES.map(|place| format!("{{{place}}}")).join(", ");
            let meant = closest(place, PLACES).map(|meant| format!("; did you mean {{{meant}}}?")).unwrap_or_default();
            self.note(
                "environment",
                format!("{{{place}}} stands for nothing and stays as it is, unlike {known}{meant}"),
            );
        }
    }

    /// Variables that are not the service's to set, and those by which programs of the guest load something.
    pub(super) fn look_at_names(&mut self, environment: &BTreeMap<String, String>) {
        // Where it leads to the service, that is what it is for.
        let is_address = |name: &str, value: &str| {
            let name = name.to_uppercase();
            PACKAGES.iter().any(|begin| name.starts_with(begin)) && value.contains('{')
        };
        for (name, value) in environment {
            let keys = ["services", &self.name, "environment", name].map(str::to_owned);
            if name.starts_with(GUEST_PREFIX) {
                let what = "it is for what the harness itself tells tool-cli: choose another name";
                self.mistakes.push(self.file.mistake(&keys, what));
            } else if is_loading(name) && !is_address(name, value) {
                let what = "by such a variable programs of the guest load code, settings or packages; is that meant?";
                self.notes.push(self.file.mistake(&keys, what));
            }
        }
    }

    /// An address that ends with what clients put behind it.
    pub(super) fn note_doubled_path(&mut self, name: &str, preset: &Preset, url: &str) {
        let of_environment = preset.environment.values().filter_map(|value| {
            // One with a token in it is written out.
            value.strip_prefix("{url}/").or_else(|| value.split_once("/s/{name}/").map(|(_, path)| path))
        });
        let of_requests = preset.requests.iter().flatten().filter_map(|one| one.path().strip_prefix('/'));
        let is_literal = |part: &str| !part.is_empty() && !part.contains(['*', '?', '{', '\\']);
        // As long beginnings as there may be: a request has a name behind them.
        let beginnings = of_environment.map(|path| format!("{path}/x")).chain(of_requests.map(str::to_owned));
        let longest = beginnings.filter_map(|path| {
            let parts: Vec<&str> = path.split('/').collect();
            let begins = |count: &usize| parts[..*count].iter().all(|part| is_literal(part));
            let ends = |count: usize| format!("/{}", parts[..count].join("/"));
            (1..parts.len()).rev().filter(begins).map(ends).find(|begin| url.ends_with(begin.as_str()))
        });
        if let Some(begin) = longest.max_by_key(String::len) {
            self.note(
                "url",
                format!("preset {name:?} puts {begin} in front of its paths itself; write the address without it"),
            );
        }
    }
}
