//! One rule of a policy: which calls it is about, and what it says of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    conditions::Condition,
    effects::Effects,
    globs::{self, Glob},
    uri::Uri,
};

/// What a rule says of a call that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Says {
    /// It may be made.
    Allow,
    /// A person has to be asked.
    Ask,
    /// It may not be made.
    Deny,
    /// There is no such thing.
    Hide,
}

impl Says {
    /// The word for it in configuration.
    fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Hide => "hide",
        }
    }

    /// Whether a call needs more than a match of one reading, one effect, one part: what opens is narrow, and what
    /// closes is wide.
    fn is_narrow(self) -> bool {
        self == Self::Allow
    }
}

/// The method of a tunnel.
pub const CONNECT: &str = "CONNECT";

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// A tool.
    Tool,
    /// A resource, by its URI.
    Resource,
    /// A prompt.
    Prompt,
    /// A completion of a prompt's argument, or of a resource template's.
    Completion,
    /// A request to a service, by its method and path.
    Http,
    /// A tunnel to a host: the method `CONNECT`, and the path `/HOST:PORT`.
    Tunnel,
}

impl CallKind {
    /// Each, with the word for it in configuration.
    const WORDS: [(Self, &str); 6] = [
        (Self::Tool, "tool"),
        (Self::Resource, "resource"),
        (Self::Prompt, "prompt"),
        (Self::Completion, "completion"),
        (Self::Http, "http"),
        (Self::Tunnel, "tunnel"),
    ];
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Every kind.
    pub const ALL: Self = Self(0b11_1111);
    /// What MCP servers have.
    pub const OF_SERVERS: Self = Self(0b1111);

    /// A set of these.
    #[must_use]
    pub fn of(kinds: &[CallKind]) -> Self {
        Self(kinds.iter().fold(0, |set, kind| set | (1 << *kind as u8)))
    }

    /// Those that both have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, kind: CallKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Their words, always in the same order.
    fn words(self) -> Vec<&'static str> {
        CallKind::WORDS.into_iter().filter(|(kind, _)| self.has(*kind)).map(|(_, word)| word).collect()
    }

    fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
}

/// What a call is about, as far as rules ask before they look at its arguments.
#[derive(Debug)]
pub struct Subject<'a> {
    kind: CallKind,
    server: &'a str,
    name: &'a str,
    /// Where the name is a URI: how that reads, once a rule asks.
    uri: Option<OnceLock<Uri>>,
    method: Option<&'a str>,
    effects: Effects,
}

impl<'a> Subject<'a> {
    /// A tool with its effects.
    #[must_use]
    pub fn tool(server: &'a str, name: &'a str, effects: Effects) -> Self {
        Self { kind: CallKind::Tool, server, name, uri: None, method: None, effects }
    }

    /// A resource.
    #[must_use]
    pub fn resource(server: &'a str, uri: &'a str) -> Self {
        let (read, effects) = (Some(OnceLock::new()), Effects::of_reading());
        Self { kind: CallKind::Resource, server, name: uri, uri: read, method: None, effects }
    }

    /// A prompt.
    #[must_use]
    pub fn prompt(server: &'a str, name: &'a str) -> Self {
        Self { kind: CallKind::Prompt, server, name, uri: None, method: None, effects: Effects::of_reading() }
    }

    /// A completion of an argument of a prompt.
    #[must_use]
    pub fn completion(server: &'a str, prompt: &'a str) -> Self {
        Self { kind: CallKind::Completion, ..Self::prompt(server, prompt) }
    }

    /// A completion of a part of a resource template.
    #[must_use]
    pub fn template_completion(server: &'a str, template: &'a str) -> Self {
        Self { kind: CallKind::Completion, ..Self::resource(server, template) }
    }

    /// A request to a service, or a tunnel, its path as it was written.
    #[must_use]
    pub fn http(service: &'a str, method: &'a str, path: &'a str, effects: Effects) -> Self {
        let uri = Some(OnceLock::new());
        let kind = if method == CONNECT { CallKind::Tunnel } else { CallKind::Http };
        Self { kind, server: service, name: path, uri, method: Some(method), effects }
    }

    /// What it can do.
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.effects
    }

    fn uri(&self) -> Option<&Uri> {
        self.uri.as_ref().map(|read| read.get_or_init(|| Uri::read(self.name)))
    }
}

/// Which calls a rule is about. What is none is no restriction.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Of these kinds.
    pub kinds: Kinds,
    /// To a server that one of these matches.
    pub servers: Option<Vec<Glob>>,
    /// With a tool's or prompt's name that one of these matches.
    pub names: Option<Vec<Glob>>,
    /// With a URI, or a path of a service, that one of these matches.
    pub uris: Option<Vec<Glob>>,
    /// With one of these methods of HTTP.
    pub methods: Option<Vec<Glob>>,
    /// For a rule that allows: with no other effects than these. For the others: with one of these.
    pub effects: Option<Effects>,
    /// From a session that has all of these labels, with values that match.
    pub labels: BTreeMap<String, Glob>,
}

impl Default for Scope {
    fn default() -> Self {
        let (servers, names, uris, methods) = (None, None, None, None);
        Self { kinds: Kinds::ALL, servers, names, uris, methods, effects: None, labels: BTreeMap::new() }
    }
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What records call it by: its own name, or its number.
    pub id: Arc<str>,
    /// What it says.
    pub says: Says,
    /// Which calls it is about.
    pub scope: Scope,
    /// What must hold of their arguments.
    pub conditions: Vec<Condition>,
}

impl Rule {
    /// All that it says, for digests.
    pub(super) fn written(&self) -> Value {
        let Self { id, says, scope, conditions } = self;
        let Scope { kinds, servers, names, uris, methods, effects, labels } = scope;
        let [servers, names, uris, methods] =
            [servers, names, uris, methods].map(|globs| globs::all_written(globs.as_deref()));
        let labels: Value = labels.iter().map(|(key, glob)| json!([key, glob.written()])).collect();
        let conditions: Value = conditions.iter().map(Condition::written).collect();
        json!({
            "id": **id, "says": says.as_str(), "kinds": kinds.words(), "servers": servers, "names": names, "uris": uris,
            "methods": methods, "effects": effects.map(Effects::words), "labels": labels, "conditions": conditions,
        })
    }

    /// Whether it is about this, as far as it can be told without arguments and labels.
    #[must_use]
    pub(crate) fn is_about(&self, subject: &Subject<'_>) -> bool {
        let Scope { kinds, servers, names, uris, methods, effects, .. } = &self.scope;
        kinds.has(subject.kind)
            && methods.as_ref().is_none_or(|all| subject.method.is_some_and(|method| globs::any(all, method)))
            && effects.is_none_or(|effects| {
                if self.says.is_narrow() { subject.effects.within(effects) } else { subject.effects.meets(effects) }
            })
            && servers.as_ref().is_none_or(|servers| globs::any(servers, subject.server))
            && names.as_ref().is_none_or(|names| subject.uri.is_none() && globs::any(names, subject.name))
            && uris.as_ref().is_none_or(|uris| match subject.uri() {
                Some(uri) if self.says.is_narrow() => uri.fits(uris),
                Some(uri) => uri.is_caught_by(uris),
                None => false,
            })
    }

    /// Whether it is about some requests like this one, and whether about all of them, whatever their path.
    #[must_use]
    pub(crate) fn is_about_like(&self, subject: &Subject<'_>) -> (bool, bool) {
        let without_path = Self { scope: Scope { uris: None, ..self.scope.clone() }, ..self.clone() };
        let is_about = without_path.is_about(subject);
        (is_about, is_about && self.scope.uris.is_none() && self.conditions.is_empty())
    }

    /// Whether its conditions hold. What cannot be evaluated fails a rule that opens, and holds for one that closes. For
    /// any but a rule that allows, one reading of a path is enough.
    #[must_use]
    pub(crate) fn conditions_hold(&self, arguments: &Value) -> bool {
        let unknown = !self.opens();
        let holds = |condition: &Condition| {
            if self.says.is_narrow() { condition.holds(arguments) } else { condition.holds_for_any_reading(arguments) }
        };
        self.conditions.iter().all(|condition| holds(condition).unwrap_or(unknown))
    }

    /// Whether it lets calls through, at once or after a person's word.
    #[must_use]
    pub fn opens(&self) -> bool {
        matches!(self.says, Says::Allow | Says::Ask)
    }

    /// Whether a session with these labels is meant.
    #[must_use]
    pub(crate) fn is_for(&self, labels: &BTreeMap<String, String>) -> bool {
        self.scope.labels.iter().all(|(key, glob)| labels.get(key).is_some_and(|value| glob.matches(value)))
    }

    /// Whether it is about everything of a server, if it is about the server at all.
    #[must_use]
    pub(crate) fn is_about_whole_servers(&self) -> bool {
        let Scope { kinds, names, uris, methods, effects, .. } = &self.scope;
        let narrowed = names.is_some() || uris.is_some() || methods.is_some() || effects.is_some();
        kinds.covers(Kinds::OF_SERVERS) && !narrowed && self.conditions.is_empty()
    }

    /// Whether it is about whole servers, and about whole services too.
    #[must_use]
    pub(crate) fn is_about_everything(&self) -> bool {
        self.scope.kinds == Kinds::ALL && self.is_about_whole_servers()
    }

    /// Whether it is about resources.
    #[must_use]
    pub(crate) fn is_about_resources(&self) -> bool {
        self.scope.kinds.has(CallKind::Resource) && self.scope.names.is_none()
    }

    /// Whether it is about something of this MCP server.
    #[must_use]
    pub fn is_about_server(&self, server: &str) -> bool {
        self.is_about_some(Kinds::OF_SERVERS, server)
    }

    /// Whether it is about something of one of these kinds of this server, or service.
    #[must_use]
    pub fn is_about_some(&self, kinds: Kinds, server: &str) -> bool {
        !self.scope.kinds.and(kinds).is_empty()
            && self.scope.servers.as_ref().is_none_or(|servers| globs::any(servers, server))
    }

    /// Whether each call that the other one is about is one of its own. False where that is not plain.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let (own, theirs) = (&self.scope, &other.scope);
        self.conditions.is_empty()
            && own.kinds.covers(theirs.kinds)
            && cover(own.servers.as_deref(), theirs.servers.as_deref())
            && cover(own.names.as_deref(), theirs.names.as_deref())
            && cover(own.methods.as_deref(), theirs.methods.as_deref())
            && self.uris_cover(other)
            && self.effects_cover(other)
            && own.labels.iter().all(|(key, glob)| theirs.labels.get(key).is_some_and(|other| glob.covers(other)))
    }

    /// A rule that allows matches fewer URIs than its pattern says, so it covers only rules that allow.
    fn uris_cover(&self, other: &Self) -> bool {
        let same_reading = !self.says.is_narrow() || other.says.is_narrow();
        cover(self.scope.uris.as_deref(), other.scope.uris.as_deref()) && (self.scope.uris.is_none() || same_reading)
    }

    /// Every call has effects. A rule that allows takes those with no others, the rest those with one of them.
    fn effects_cover(&self, other: &Self) -> bool {
        match (self.scope.effects, other.scope.effects) {
            (None, _) => true,
            (Some(own), Some(theirs)) if self.says.is_narrow() => other.says.is_narrow() && theirs.within(own),
            (Some(own), Some(theirs)) => theirs.within(own),
            (Some(_), None) => false,
        }
    }
}

fn cover(wide: Option<&[Glob]>, narrow: Option<&[Glob]>) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => narrow.iter().all(|narrow| wide.iter().any(|wide| wide.covers(narrow))),
    }
}
