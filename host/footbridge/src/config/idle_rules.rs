//! Rules of policies that are about nothing that there is: no mistake, since policies outlive servers and their tools, and
//! often a typing error.

use std::{collections::BTreeMap, fs, path::Path};

use footbridge_core::{
    gate::{
        Rule,
        rules::{CallKind, Kinds},
    },
    settings_file::{File, Mistake, closest},
};

use super::Config;

/// The names of the tools of each server of which they are known.
pub(crate) type KnownNames = BTreeMap<String, Vec<String>>;

/// Rules for servers that are not configured.
pub(super) fn of_no_server(config: &Config) -> Vec<Mistake> {
    if config.servers.is_empty() {
        return Vec::new();
    }
    let about_none = |rule: &Rule| {
        let of_servers = !rule.scope.kinds.and(Kinds::OF_SERVERS).is_empty();
        let is_one = config.servers.iter().any(|spec| rule.is_about_server(spec.name.as_str()));
        let what = || ("server", "is about no server that is configured".to_owned());
        (of_servers && !is_one).then(what).into_iter().collect()
    };
    each(config, about_none)
}

/// Rules for tools that no server has which they are about, as far as all of these are known.
pub(crate) fn of_no_tool(config: &Config, known: &KnownNames) -> Vec<Mistake> {
    each(config, |rule| {
        let about = config.servers.iter().filter(|spec| rule.is_about_server(spec.name.as_str()));
        let tools: Option<Vec<&Vec<String>>> = about.map(|spec| known.get(spec.name.as_str())).collect();
        let Some(tools) = tools.filter(|tools| !tools.is_empty()) else { return Vec::new() };
        let tools = || tools.iter().flat_map(|names| names.iter().map(String::as_str));
        let is_of_tools = rule.scope.kinds == Kinds::of(&[CallKind::Tool]);
        let names = rule.scope.names.iter().flatten().filter(|_| is_of_tools);
        let unmatched = names.filter(|glob| !tools().any(|name| glob.matches(name)));
        let what = |name: &str| {
            let meant = closest(name, tools()).map(|meant| format!("; did you mean \"{meant}\"?"));
            format!("names the tool {name:?}, which no server has that it is about{}", meant.unwrap_or_default())
        };
        unmatched.map(|glob| ("tool", what(glob.as_str()))).collect()
    })
}

/// Goes over the rules of all policies: what is odd about one, and by which of its keys, becomes a note at its place.
fn each(config: &Config, odd: impl Fn(&Rule) -> Vec<(&'static str, String)>) -> Vec<Mistake> {
    let mut notes = Vec::new();
    for policy in config.policies.names().filter_map(|name| config.policies.get(name).ok()) {
        for (index, rule) in policy.rules().iter().enumerate() {
            for (key, what) in odd(rule) {
                let what = format!("rule {:?} of policy \"{}\" {what}", rule.id, policy.name());
                let keys = ["policies", policy.name(), "rules", &index.to_string(), key].map(str::to_owned);
                let path = config.policy_files.get(policy.name()).map_or(Path::new(""), |path| path);
                // Without its text only the line is not known.
                let text = fs::read_to_string(path).unwrap_or_default();
                notes.push(File::new(path, &text).mistake(&keys, what));
            }
        }
    }
    notes
}
