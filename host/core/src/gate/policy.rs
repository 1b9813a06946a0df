//! Named policies: ordered rules, of which the first that matches decides.
//!
//! Three are built in. Where no rule matches a person is asked, so no policy opens by what it leaves out.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    effects::{Effect, Effects},
    globs::{self, Glob},
    rules::{CallKind, Kinds, Rule, Says, Scope},
};
use crate::{digest::Digest, names::ServerName};

/// A named set of rules.
#[derive(Debug, Clone)]
pub struct Policy {
    name: Arc<str>,
    rules: Arc<[Rule]>,
    settings: PolicySettings,
    labelled: Arc<[Labelled]>,
    services: Arc<[ServerName]>,
    revision: Digest,
}

/// What a policy says besides its rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicySettings {
    /// Whether a guest is told which rule decided.
    pub reveal_rules: bool,
    /// Bytes of arguments that a session may send in all.
    pub argument_bytes: Option<u64>,
    /// Bytes of results that a session may get in all.
    pub result_bytes: Option<u64>,
}

/// What the operator says that tools can do, in place of what their server says.
#[derive(Debug, Clone)]
pub struct Labelled {
    /// Servers that are meant.
    pub servers: Option<Vec<Glob>>,
    /// Tools that are meant.
    pub tools: Option<Vec<Glob>>,
    /// What they can do.
    pub effects: Effects,
}

/// The name of a policy that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy \"{}\": choose one of {}", name.escape_debug(), known.join(", "))]
pub struct UnknownPolicy {
    /// The name.
    pub name: String,
    /// Those that exist.
    pub known: Vec<String>,
}

/// Names of the policies that are built in.
pub(crate) const BUILT_IN: [&str; 3] = ["readonly", "ask", "open"];

impl Policy {
    /// A policy of these rules. Rules that can never match are for whoever reads them to name: see
    /// [`never_match`].
    #[must_use]
    pub fn new(name: &str, rules: Vec<Rule>, settings: PolicySettings) -> Arc<Self> {
        Arc::new(Self::of(name.into(), rules.into(), settings, Arc::default()))
    }

    fn of(name: Arc<str>, rules: Arc<[Rule]>, settings: PolicySettings, labelled: Arc<[Labelled]>) -> Self {
        let revision = revision_of(&name, &rules, settings, &labelled);
        Self { name, rules, settings, labelled, services: Arc::default(), revision }
    }

    /// Allows all that resolves.
    #[must_use]
    pub fn open() -> Arc<Self> {
        Self::new("open", vec![built_in("all", Says::Allow, None)], PolicySettings::default())
    }

    /// Allows what only reads, of the open world too, and denies the rest.
    #[must_use]
    pub fn readonly() -> Arc<Self> {
        let rules =
            vec![built_in("reads", Says::Allow, Some(Effects::of_reading())), built_in("rest", Says::Deny, None)];
        Self::new("readonly", rules, PolicySettings::default())
    }

    /// Allows what only reads, of the open world too, and asks for the rest.
    #[must_use]
    pub fn ask() -> Arc<Self> {
        let rules =
            vec![built_in("reads", Says::Allow, Some(Effects::of_reading())), built_in("rest", Says::Ask, None)];
        Self::new("ask", rules, PolicySettings::default())
    }

    /// The same, whose sessions have these services, too.
    #[must_use]
    pub fn with_services(&self, services: Vec<ServerName>) -> Arc<Self> {
        Arc::new(Self { services: services.into(), ..self.clone() })
    }

    /// The services that its sessions have, besides those that they are given by themselves.
    #[must_use]
    pub fn services(&self) -> &[ServerName] {
        &self.services
    }

    /// Its name in configuration and records.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is another one as soon as its rules or settings say anything else: their digest.
    #[must_use]
    pub fn revision(&self) -> Digest {
        self.revision
    }

    /// Its rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What it says besides its rules.
    #[must_use]
    pub fn settings(&self) -> PolicySettings {
        self.settings
    }

    /// Whether it can say of any session's call that a person has to be asked.
    #[must_use]
    pub fn can_ask(&self) -> bool {
        let everything = |rule: &&Rule| {
            let Scope { servers, labels, .. } = &rule.scope;
            rule.is_about_everything() && servers.is_none() && labels.is_empty()
        };
        let end = self.rules.iter().position(|rule| everything(&rule));
        let reached = &self.rules[..end.map_or(self.rules.len(), |end| end + 1)];
        end.is_none() || reached.iter().any(|rule| rule.says == Says::Ask)
    }

    /// What a tool can do: what the operator says, or else what its server says.
    #[must_use]
    pub fn effects(&self, server: &str, tool: &str, annotated: Effects) -> Effects {
        self.label(server, tool).map_or(annotated, |label| label.effects)
    }

    /// Whether it is the operator who says what a tool can do, and not its server.
    #[must_use]
    pub fn labels(&self, server: &str, tool: &str) -> bool {
        self.label(server, tool).is_some()
    }

    fn label(&self, server: &str, tool: &str) -> Option<&Labelled> {
        let meant = |patterns: &Option<Vec<Glob>>, text| patterns.as_ref().is_none_or(|all| globs::any(all, text));
        self.labelled.iter().find(|one| meant(&one.servers, server) && meant(&one.tools, tool))
    }

    /// The same policy where the operator says this of tools.
    #[must_use]
    pub(crate) fn with_labels(&self, labelled: Arc<[Labelled]>) -> Arc<Self> {
        let same = Self::of(Arc::clone(&self.name), Arc::clone(&self.rules), self.settings, labelled);
        Arc::new(Self { services: Arc::clone(&self.services), ..same })
    }
}

/// Says in which form a policy is written for its digest.
const WRITTEN_FORM: &str = "footbridge policy 1";

/// The digest of the rules and settings of a policy, in a text of which every part has its place.
fn revision_of(name: &str, rules: &[Rule], settings: PolicySettings, labelled: &[Labelled]) -> Digest {
    let PolicySettings { reveal_rules, argument_bytes, result_bytes } = settings;
    let rules: Value = rules.iter().map(Rule::written).collect();
    let labelled: Value = labelled.iter().map(Labelled::written).collect();
    let settings = json!([reveal_rules, argument_bytes, result_bytes]);
    Digest::of(json!([WRITTEN_FORM, name, rules, settings, labelled]).to_string())
}

impl Labelled {
    fn written(&self) -> Value {
        let Self { servers, tools, effects } = self;
        let [servers, tools] = [servers, tools].map(|globs| globs::all_written(globs.as_deref()));
        json!([servers, tools, effects.words()])
    }
}

fn built_in(id: &str, says: Says, effects: Option<Effects>) -> Rule {
    Rule { id: id.into(), says, scope: Scope { effects, ..Scope::default() }, conditions: Vec::new() }
}

/// Rules of a list that can never match, each with the one that takes all its calls: one before it, or one anywhere
/// that hides them, since what is hidden is decided before arguments are looked at.
#[must_use]
pub(crate) fn never_match(rules: &[Rule]) -> Vec<(usize, usize)> {
    let taken = |at: usize| {
        let before = (0..at).find(|earlier| rules[*earlier].covers(&rules[at]));
        before.or_else(|| {
            let conditional = !rules[at].conditions.is_empty();
            let hides = |later: &usize| rules[*later].says == Says::Hide && rules[*later].covers(&rules[at]);
            // A rule without conditions in between may keep some of it in sight.
            let shown = |later: &usize| rules[at..*later].iter().all(|rule| !rule.conditions.is_empty());
            (at + 1..rules.len()).find(|later| conditional && hides(later) && shown(later))
        })
    };
    (0..rules.len()).filter_map(|at| Some((at, taken(at)?))).collect()
}

/// What the operator's labels must say: a call reads or writes, and only what writes destroys.
#[must_use]
pub(crate) fn is_whole(effects: Effects) -> bool {
    let has = |effect| effects.has(effect);
    (has(Effect::Read) || has(Effect::Write)) && (has(Effect::Write) || !has(Effect::Destructive))
}

/// Whether a call of one of these kinds can have the effects that a rule asks for.
#[must_use]
pub(crate) fn can_have(kinds: Kinds, says: Says, effects: Effects) -> bool {
    let tools = !kinds.and(Kinds::of(&[CallKind::Tool, CallKind::Http, CallKind::Tunnel])).is_empty();
    let rest = !kinds.and(Kinds::of(&[CallKind::Resource, CallKind::Prompt, CallKind::Completion])).is_empty();
    match says {
        Says::Allow => {
            tools && effects.meets(Effects::of(&[Effect::Read, Effect::Write]))
                || rest && Effects::of_reading().within(effects)
        }
        Says::Ask | Says::Deny | Says::Hide => tools || rest && effects.meets(Effects::of_reading()),
    }
}

/// All policies of one configuration, by name. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Policies {
    all: Arc<BTreeMap<String, Arc<Policy>>>,
}

impl Default for Policies {
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new())
    }
}

impl Policies {
    /// Those that are built in, and these. What the operator says of tools holds for all of them.
    #[must_use]
    pub fn new(configured: Vec<Arc<Policy>>, labelled: Vec<Labelled>) -> Self {
        let labelled: Arc<[Labelled]> = labelled.into();
        let built_in = [Policy::readonly(), Policy::ask(), Policy::open()];
        let all = configured.into_iter().chain(built_in);
        let named = all.map(|policy| (policy.name().to_owned(), policy.with_labels(Arc::clone(&labelled))));
        Self { all: Arc::new(named.collect()) }
    }

    /// The policy of this name.
    ///
    /// # Errors
    /// [`UnknownPolicy`], with the names that there are.
    pub fn get(&self, name: &str) -> Result<Arc<Policy>, UnknownPolicy> {
        let unknown = || UnknownPolicy { name: name.to_owned(), known: self.names().map(str::to_owned).collect() };
        self.all.get(name).cloned().ok_or_else(unknown)
    }

    /// All of them, sorted by their names.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.all.values().map(|policy| &**policy)
    }

    /// Their names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(String::as_str)
    }
}
