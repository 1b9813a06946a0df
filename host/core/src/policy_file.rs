//! Policies as `footbridge.toml` has them, and from there to what the gate decides by.
//!
//! Every mistake is found here, at the start or at a reload: patterns that do not compile, conditions that say
//! nothing, rules that ask for what no call has. A file with one of them is not used at all. A rule that can never
//! match since others take all its calls is none: whoever has to close everything in a hurry puts one rule in front.

mod condition;
mod words;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use footbridge_proto::text::needs_escape;
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use self::words::Words;
use crate::gate::{
    CallKind, Effect, Effects, Policies, Policy, Rule, Says,
    globs::{BadGlob, Glob, Of},
    policy::{BUILT_IN, Labelled, PolicySettings, can_have, is_whole, never_match},
    rules::{Kinds, Scope},
};
use crate::{
    human,
    names::ServerName,
    settings_file::{File, Mistake},
};

/// What one file says of policies.
#[derive(Debug, Default)]
pub struct WrittenPolicies {
    /// Its policies.
    pub policies: Vec<Arc<Policy>>,
    /// What it says that tools can do.
    pub labelled: Vec<Labelled>,
    /// Every mistake in it.
    pub mistakes: Vec<Mistake>,
    /// Rules that can never match, as others take all their calls.
    pub notes: Vec<Mistake>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenPolicy {
    reveal_rules: bool,
    #[serde(deserialize_with = "size")]
    argument_bytes: Option<u64>,
    #[serde(deserialize_with = "size")]
    result_bytes: Option<u64>,
    services: Vec<String>,
    rules: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    #[serde(default)]
    id: Option<String>,
    decision: Says,
    #[serde(default)]
    kind: Option<Words<CallKind>>,
    #[serde(default)]
    server: Option<Words<String>>,
    #[serde(default)]
    tool: Option<Words<String>>,
    #[serde(default)]
    prompt: Option<Words<String>>,
    #[serde(default)]
    uri: Option<Words<String>>,
    #[serde(default)]
    service: Option<Words<String>>,
    #[serde(default)]
    method: Option<Words<String>>,
    #[serde(default)]
    path: Option<Words<String>>,
    #[serde(default)]
    effects: Option<Words<Effect>>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    arguments: Option<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLabel {
    #[serde(default)]
    server: Option<Words<String>>,
    #[serde(default)]
    tool: Option<Words<String>>,
    are: Words<Effect>,
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    human::size(deserializer).map(|bytes| u64::try_from(bytes).ok())
}

/// The policies that a settings text has, whatever else it says.
///
/// # Errors
/// Every mistake.
pub fn policies_of(text: &str) -> Result<Policies, Vec<Mistake>> {
    let file = File::new(Path::new("footbridge.toml"), text);
    let table = file.parse().map_err(|mistake| vec![mistake])?;
    let found = read(file, &table);
    if found.mistakes.is_empty() { Ok(Policies::new(found.policies, found.labelled)) } else { Err(found.mistakes) }
}

/// Reads the policies and labels of a file. What is not even a table or a list of them is for whoever reads the rest of it to
/// refuse.
pub fn read(file: File<'_>, table: &Table) -> WrittenPolicies {
    let mut found = WrittenPolicies::default();
    let policies = table.get("policies").and_then(Value::as_table).cloned().unwrap_or_default();
    let effects = table.get("effects").and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, written) in policies {
        let reader = Reader { file, at: vec!["policies".to_owned(), name.clone()] };
        match reader.policy(&name, written) {
            Ok((policy, notes)) => {
                found.policies.push(policy);
                found.notes.extend(notes);
            }
            Err(mistakes) => found.mistakes.extend(mistakes),
        }
    }
    for (index, written) in effects.into_iter().enumerate() {
        let reader = Reader { file, at: vec!["effects".to_owned(), index.to_string()] };
        match reader.label(written) {
            Ok(label) => found.labelled.push(label),
            Err(mistakes) => found.mistakes.extend(mistakes),
        }
    }
    found.mistakes.sort_by_key(|mistake| mistake.line);
    found.notes.sort_by_key(|note| note.line);
    found
}

/// Reads what is at one place of a file.
struct Reader<'a> {
    file: File<'a>,
    at: Vec<String>,
}

impl Reader<'_> {
    fn below(&self, keys: &[&str]) -> Self {
        let at = self.at.iter().cloned().chain(keys.iter().map(|key| (*key).to_owned())).collect();
        Self { file: self.file, at }
    }

    fn wrong(&self, what: impl Into<String>) -> Mistake {
        self.file.mistake(&self.at, what)
    }

    fn table(&self, written: Value) -> Result<Table, Vec<Mistake>> {
        match written {
            Value::Table(table) => Ok(table),
            other => Err(vec![self.wrong(format!("it has the type {}, and must be a table", other.type_str()))]),
        }
    }

    /// A policy, and what is odd about its rules.
    fn policy(&self, name: &str, written: Value) -> Result<(Arc<Policy>, Vec<Mistake>), Vec<Mistake>> {
        let table = self.table(written)?;
        // Read by themselves, so that a mistake elsewhere leaves none of theirs unsaid.
        let all_rules = table.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
        let (written, mut mistakes) = match self.file.read::<WrittenPolicy>(&self.at, table) {
            Ok(written) => (written, Vec::new()),
            Err(mistakes) => (WrittenPolicy::default(), mistakes),
        };
        if BUILT_IN.contains(&name) {
            mistakes.push(self.wrong("this policy is built in: choose another name"));
        } else if !is_name(name) {
            mistakes.push(self.wrong("a policy's name is 1 to 64 of a-z, A-Z, 0-9, \"-\" and \"_\""));
        }
        let mut rules = Vec::new();
        for (index, rule) in all_rules.into_iter().enumerate() {
            match self.below(&["rules", &index.to_string()]).rule(index, rule) {
                Ok(rule) => rules.push(rule),
                Err(found) => mistakes.extend(found),
            }
        }
        let services: Vec<ServerName> = written.services.iter().filter_map(|name| name.parse().ok()).collect();
        if services.len() < written.services.len() {
            mistakes.push(self.below(&["services"]).wrong("one of these can be the name of no service"));
        }
        // Compared only where all of them are there: their numbers are those of the file.
        if mistakes.is_empty() {
            mistakes.extend(self.named_twice(&rules));
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let WrittenPolicy { reveal_rules, argument_bytes, result_bytes, .. } = written;
        let notes = self.idle(&rules);
        let policy = Policy::new(name, rules, PolicySettings { reveal_rules, argument_bytes, result_bytes });
        Ok((policy.with_services(services), notes))
    }

    /// Rules with the name of another one.
    fn named_twice(&self, rules: &[Rule]) -> Vec<Mistake> {
        let same = |index: &usize| rules[..*index].iter().any(|rule| rule.id == rules[*index].id);
        let twice = (0..rules.len()).filter(same);
        let wrong = |index: usize| {
            let what = format!("a rule before it is called {:?} too", rules[index].id);
            self.below(&["rules", &index.to_string()]).wrong(what)
        };
        twice.map(wrong).collect()
    }

    /// Rules that can never match beside the others.
    fn idle(&self, rules: &[Rule]) -> Vec<Mistake> {
        let note = |(index, by): (usize, usize)| {
            let taken = format!("rule {} ({:?}) decides about all that it is about", by + 1, rules[by].id);
            self.below(&["rules", &index.to_string()]).wrong(format!("this rule can never match: {taken}"))
        };
        never_match(rules).into_iter().map(note).collect()
    }

    fn rule(&self, index: usize, written: Value) -> Result<Rule, Vec<Mistake>> {
        let written: WrittenRule = self.file.read(&self.at, self.table(written)?)?;
        let mut mistakes = Vec::new();
        let id = written.id.clone().unwrap_or_else(|| (index + 1).to_string());
        if !(1..=64).contains(&id.len()) || id.chars().any(needs_escape) {
            mistakes.push(self.below(&["id"]).wrong("a rule's id has 1 to 64 bytes and no control characters"));
        }
        let mut patterns = |key: &str, words: &Option<Words<String>>, of| {
            let words = words.as_ref()?;
            match self.below(&[key]).globs(&words.0, of) {
                // "*" says nothing: without it a rule is about the same.
                Ok(globs) => Some(globs).filter(|globs| !globs.iter().any(Glob::is_all)),
                Err(found) => {
                    mistakes.extend(found);
                    None
                }
            }
        };
        let servers = patterns("server", &written.server, Of::Text);
        let servers = servers.or(patterns("service", &written.service, Of::Text));
        let methods = patterns("method", &written.method, Of::Text);
        let names = patterns("tool", &written.tool, Of::Text).or(patterns("prompt", &written.prompt, Of::Text));
        let uris = patterns("uri", &written.uri, Of::Uri).or(patterns("path", &written.path, Of::Uri));
        let effects = written.effects.as_ref().map(|effects| Effects::of(&effects.0));
        let kinds = self.kinds(&written).unwrap_or_else(|mistake| {
            mistakes.push(mistake);
            Kinds::ALL
        });
        mistakes.extend(self.empty(&written));
        let labels = self.labels(written.labels.as_ref()).unwrap_or_else(|found| {
            mistakes.extend(found);
            BTreeMap::new()
        });
        let conditions = self.conditions(written.decision, written.arguments.unwrap_or_default());
        match conditions {
            Ok(conditions) if mistakes.is_empty() => {
                let scope = Scope { kinds, servers, names, uris, methods, effects, labels };
                Ok(Rule { id: id.into(), says: written.decision, scope, conditions })
            }
            Ok(_) => Err(mistakes),
            Err(found) => Err(mistakes.into_iter().chain(found).collect()),
        }
    }

    /// Which kinds of calls a rule is about: those that it names, of those that have what it asks for.
    fn kinds(&self, rule: &WrittenRule) -> Result<Kinds, Mistake> {
        let mut kinds = Kinds::ALL;
        let mut narrow = |given: bool, to: &[CallKind]| {
            if given {
                kinds = kinds.and(Kinds::of(to));
            }
        };
        let of_servers = [CallKind::Tool, CallKind::Resource, CallKind::Prompt, CallKind::Completion];
        narrow(rule.server.is_some(), &of_servers);
        let of_services = [CallKind::Http, CallKind::Tunnel];
        narrow(rule.service.is_some() || rule.method.is_some() || rule.path.is_some(), &of_services);
        narrow(rule.tool.is_some(), &[CallKind::Tool]);
        narrow(rule.prompt.is_some(), &[CallKind::Prompt, CallKind::Completion]);
        narrow(rule.uri.is_some(), &[CallKind::Resource, CallKind::Completion]);
        narrow(rule.arguments.is_some(), &[CallKind::Tool, CallKind::Prompt]);
        if let Some(words) = &rule.kind {
            narrow(true, &words.0);
        }
        if kinds.is_empty() || (rule.prompt.is_some() && rule.uri.is_some()) {
            let what = "this rule can never match: no kind of call has all that it asks for; tools have \"tool\" and \
                        \"arguments\", prompts \"prompt\" and \"arguments\", resources \"uri\", completions \"prompt\" \
                        or \"uri\", all four \"server\", and requests to services and tunnels \"service\", \
                        \"method\" and \"path\"";
            return Err(self.wrong(what));
        }
        if rule.effects.as_ref().is_some_and(|effects| !can_have(kinds, rule.decision, Effects::of(&effects.0))) {
            let what = "this rule can never match: every call reads or writes, resources, prompts and completions are \
                        \"read\" and \"egress\", and \"allow\" takes calls that have no other effects than these";
            return Err(self.below(&["effects"]).wrong(what));
        }
        Ok(kinds)
    }

    /// Conditions that ask for nothing: whoever wrote them, or made them of an empty list, meant some.
    fn empty(&self, rule: &WrittenRule) -> Vec<Mistake> {
        let arguments = rule.arguments.as_ref().is_some_and(Vec::is_empty).then_some("arguments");
        let labels = rule.labels.as_ref().is_some_and(BTreeMap::is_empty).then_some("labels");
        let wrong =
            |key| self.below(&[key]).wrong(format!("{key} asks for nothing, so that every call has it: leave it out"));
        arguments.into_iter().chain(labels).map(wrong).collect()
    }

    fn globs(&self, patterns: &[String], of: Of) -> Result<Vec<Glob>, Vec<Mistake>> {
        let one = |pattern: &String| {
            let pattern = if of == Of::Text { pattern.clone() } else { checked_path(pattern, of)? };
            Glob::new(&pattern, of)
        };
        let (good, bad): (Vec<_>, Vec<_>) = patterns.iter().map(one).partition(Result::is_ok);
        let mistakes: Vec<Mistake> =
            bad.into_iter().filter_map(Result::err).map(|e| self.wrong(e.to_string())).collect();
        if mistakes.is_empty() { Ok(good.into_iter().filter_map(Result::ok).collect()) } else { Err(mistakes) }
    }

    fn labels(&self, written: Option<&BTreeMap<String, String>>) -> Result<BTreeMap<String, Glob>, Vec<Mistake>> {
        let (mut labels, mut mistakes) = (BTreeMap::new(), Vec::new());
        for (key, pattern) in written.into_iter().flatten() {
            match Glob::new(pattern, Of::Text) {
                Ok(glob) => drop(labels.insert(key.clone(), glob)),
                Err(bad) => mistakes.push(self.below(&["labels", key]).wrong(bad.to_string())),
            }
        }
        if mistakes.is_empty() { Ok(labels) } else { Err(mistakes) }
    }

    fn label(&self, written: Value) -> Result<Labelled, Vec<Mistake>> {
        let written: WrittenLabel = self.file.read(&self.at, self.table(written)?)?;
        let globs = |key: &str, words: &Option<Words<String>>| match words {
            Some(words) => self.below(&[key]).globs(&words.0, Of::Text).map(Some),
            None => Ok(None),
        };
        let (servers, tools) = (globs("server", &written.server)?, globs("tool", &written.tool)?);
        let effects = Effects::of(&written.are.0);
        if !is_whole(effects) {
            let what = "a tool has \"read\" or \"write\", and \"destructive\" only with \"write\"";
            return Err(vec![self.below(&["are"]).wrong(what)]);
        }
        Ok(Labelled { servers, tools, effects })
    }
}

fn is_name(name: &str) -> bool {
    let known = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(known)
}

/// A pattern of paths or URIs that something can match: what it is held against has no `.`, `..` and last slash, and a
/// URI's scheme and host are in small letters. How a path begins tells whether it can be compared at all.
fn checked_path(pattern: &str, of: Of) -> Result<String, BadGlob> {
    let bad = |why: String| Err(BadGlob::Syntax(pattern.to_owned(), why));
    let never = |why: &str| bad(format!("it never matches, since {why}"));
    if pattern.split('/').any(|part| part == "." || part == "..") {
        return never("paths and URIs with \".\" and \"..\" match no pattern");
    }
    if of == Of::Path && pattern.starts_with('~') {
        return never("nobody here knows whose home folder \"~\" is: write the path from \"/\" on");
    }
    if of == Of::Path && pattern.starts_with(['{', '\\', '?']) {
        return bad("a path's pattern begins with what stands for itself, or * or **: write a list".to_owned());
    }
    // What stands before a colon in a path is no scheme.
    let written = if of == Of::Path { pattern.to_owned() } else { crate::gate::with_lower_authority(pattern) };
    let path = if of == Of::Path { Some(written.as_str()) } else { written.strip_prefix('/') };
    let last = |path: &str| match path.strip_suffix('}').and_then(|path| path.rsplit_once('{')) {
        Some((_, each)) => each.split(',').any(|one| one.ends_with('/')),
        None => path.len() > 1 && path.ends_with('/'),
    };
    if path.is_some_and(|path| path.contains("//") || last(path)) {
        return never("a path is compared without doubled and last slashes");
    }
    Ok(written)
}

#[cfg(test)]
mod tests;
