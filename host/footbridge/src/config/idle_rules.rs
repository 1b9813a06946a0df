//! Rules of policies and effects of tools that are about nothing that there is: no mistake, since policies outlive servers
//! and their tools, and often a typing error.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use footbridge_core::{
    gate::{
        Policy, Rule,
        globs::Glob,
        policy::Labelled,
        rules::{CallKind, Kinds, Says, Scope},
    },
    service::METHODS,
    settings_file::{File, Mistake, closest},
};
use footbridge_services::ServiceSpec;

use super::Config;

/// The names of the tools of each server of which they are known.
pub(crate) type KnownNames = BTreeMap<String, Vec<String>>;

/// What `[[effects]]` says of tools, with where it does.
#[derive(Debug, Clone)]
pub struct PlacedLabel {
    /// The file.
    pub file: PathBuf,
    /// Its number in there, from 0 on.
    pub index: usize,
    /// What it says.
    pub labelled: Labelled,
}

/// What is written of servers, tools or services, and where.
struct About<'a> {
    /// Whether it keeps calls out: whoever it names by a name that is gone gets in.
    keeps_out: bool,
    /// As it is called at the beginning of a note.
    called: String,
    file: &'a Path,
    keys: Vec<String>,
    servers: Option<&'a [Glob]>,
    /// None too where it is about other kinds of calls as well.
    tools: Option<&'a [Glob]>,
    services: Option<&'a [Glob]>,
    methods: Option<&'a [Glob]>,
    paths: Option<&'a [Glob]>,
}

impl<'a> About<'a> {
    fn of_rule(config: &'a Config, policy: &str, index: usize, rule: &'a Rule) -> Self {
        let Scope { kinds, servers, names, uris, methods, .. } = &rule.scope;
        let among = |of: Kinds| !kinds.and(of).is_empty();
        let is_of_servers = among(Kinds::OF_SERVERS);
        let is_of_services = among(Kinds::of(&[CallKind::Http, CallKind::Tunnel])) && !is_of_servers;
        let globs = |globs: &'a Option<Vec<Glob>>, is_meant: bool| globs.as_deref().filter(|_| is_meant);
        Self {
            keeps_out: matches!(rule.says, Says::Deny | Says::Hide),
            called: format!("rule {:?} of policy \"{policy}\"", rule.id),
            file: config.policy_files.get(policy).map_or(Path::new(""), |path| path),
            keys: ["policies", policy, "rules", &index.to_string()].map(str::to_owned).to_vec(),
            servers: globs(servers, is_of_servers),
            tools: globs(names, *kinds == Kinds::of(&[CallKind::Tool])),
            services: globs(servers, is_of_services),
            methods: globs(methods, true),
            paths: globs(uris, is_of_services),
        }
    }

    fn of_label(label: &'a PlacedLabel) -> Self {
        Self {
            keeps_out: false,
            called: "this entry".to_owned(),
            file: &label.file,
            keys: ["effects", &label.index.to_string()].map(str::to_owned).to_vec(),
            servers: label.labelled.servers.as_deref(),
            tools: label.labelled.tools.as_deref(),
            services: None,
            methods: None,
            paths: None,
        }
    }

    fn is_about_server(&self, server: &str) -> bool {
        self.servers.is_none_or(|servers| servers.iter().any(|glob| glob.matches(server)))
    }

    /// A note at one of its keys.
    fn note(&self, key: &str, what: &str) -> Mistake {
        let keys: Vec<String> = self.keys.iter().cloned().chain([key.to_owned()]).collect();
        // Without its text only the line is not known.
        let text = fs::read_to_string(self.file).unwrap_or_default();
        File::new(self.file, &text).mistake(&keys, format!("{} {what}", self.called))
    }

    /// What of these patterns matches nothing that is known: all of them, or some that are close to something, or servers that were
    /// to be kept out.
    fn unmatched(&self, key: &str, globs: Option<&[Glob]>, known: &Known<'_>) -> Vec<Mistake> {
        let (none, some): (Vec<&Glob>, Vec<&Glob>) =
            globs.unwrap_or_default().iter().partition(|glob| !known.names.iter().any(|name| glob.matches(name)));
        let meant = |glob: &&Glob| closest(glob.as_str(), known.names.iter().copied());
        if some.is_empty() && !none.is_empty() {
            let meant = none.iter().find_map(meant).map(did_you_mean).unwrap_or_default();
            return vec![self.note(key, &format!("is about {}{meant}", known.none))];
        }
        let entry = |glob: &&Glob| {
            let what = format!("names the {key} {:?}, which is {}", glob.as_str(), known.none);
            let meant = meant(glob).map(did_you_mean).or((self.keeps_out && key == "server").then(String::new))?;
            Some(self.note(key, &format!("{what}{meant}")))
        };
        none.iter().filter_map(entry).collect()
    }

    /// Paths that begin as whole addresses do: what a rule matches is what comes below the service.
    fn with_prefix(&self, services: &[ServiceSpec]) -> Vec<Mistake> {
        let is_its = |spec: &&ServiceSpec| {
            self.services.is_some_and(|all| all.iter().any(|glob| glob.matches(spec.name.as_str())))
        };
        let its: Vec<&ServiceSpec> = services.iter().filter(is_its).collect();
        let is_below = |path: &str, base: &str| path.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
        let is_whole = |path: &str| services.iter().any(|spec| is_below(path, &format!("/s/{}", spec.name)));
        let has_base = |spec: &&ServiceSpec, path: &str| {
            let base = spec.origin.base();
            !base.is_empty() && is_below(path, base)
        };
        let behind = |path: &str| match its.first() {
            _ if is_whole(path) => Some("/s/NAME".to_owned()),
            Some(first) if its.iter().all(|spec| has_base(spec, path)) => Some(first.origin.base().to_owned()),
            _ => None,
        };
        let paths = self.paths.unwrap_or_default().iter().map(Glob::as_str);
        let what = |behind: String, path: &str| {
            format!("has the path {path:?}, and a path is what comes behind {behind}: that is not written")
        };
        paths.filter_map(|path| Some(self.note("path", &what(behind(path)?, path)))).collect()
    }

    /// Paths that are written with a query.
    fn with_query(&self) -> Vec<Mistake> {
        let has_query = |path: &str| path.split_once('?').is_some_and(|(_, behind)| behind.contains('='));
        let paths = self.paths.unwrap_or_default().iter().map(Glob::as_str).filter(|path| has_query(path));
        let what =
            |path: &str| format!("has the path {path:?}, and a path has no query: \"?\" stands for one character");
        paths.map(|path| self.note("path", &what(path))).collect()
    }
}

/// Names that something may have.
struct Known<'a> {
    names: Vec<&'a str>,
    /// What is none of them.
    none: &'static str,
}

fn did_you_mean(meant: &str) -> String {
    format!("; did you mean \"{meant}\"?")
}

/// What is about servers and services that are not configured, methods that there are none of, or paths with a query.
pub(super) fn of_nothing_configured(config: &Config) -> Vec<Mistake> {
    let servers = Known {
        names: config.servers.iter().map(|spec| spec.name.as_str()).collect(),
        none: "no server that is configured",
    };
    let services = Known {
        names: config.services.iter().map(|spec| spec.name.as_str()).collect(),
        none: "no service that is configured",
    };
    let own = config.services.iter().flat_map(|spec| spec.rules.methods());
    let methods =
        Known { names: METHODS.into_iter().chain(own).collect(), none: "no method of HTTP that is known here" };
    let of_servers = |about: &About<'_>| {
        // Settings without servers are looked at before there are any.
        if servers.names.is_empty() { Vec::new() } else { about.unmatched("server", about.servers, &servers) }
    };
    let notes = |about: About<'_>| {
        let of_services = about.unmatched("service", about.services, &services);
        let of_methods = about.unmatched("method", about.methods, &methods);
        let of_paths = about.with_query().into_iter().chain(about.with_prefix(&config.services));
        let all = of_servers(&about).into_iter().chain(of_services).chain(of_methods).chain(of_paths);
        all.collect::<Vec<_>>()
    };
    all(config).into_iter().flat_map(notes).collect()
}

/// What names tools that no server has which it is about, as far as all of these are known.
pub(crate) fn of_no_tool(config: &Config, known: &KnownNames) -> Vec<Mistake> {
    let notes = |about: About<'_>| {
        let servers = config.servers.iter().filter(|spec| about.is_about_server(spec.name.as_str()));
        let tools: Option<Vec<&Vec<String>>> = servers.map(|spec| known.get(spec.name.as_str())).collect();
        let Some(tools) = tools.filter(|tools| !tools.is_empty()) else { return Vec::new() };
        let tools = || tools.iter().flat_map(|names| names.iter().map(String::as_str));
        let unmatched = about.tools.unwrap_or_default().iter().filter(|glob| !tools().any(|name| glob.matches(name)));
        let what = |name: &str| {
            let meant = closest(name, tools()).map(did_you_mean).unwrap_or_default();
            format!("names the tool {name:?}, which no server that it is about has, as each was listed last{meant}")
        };
        unmatched.map(|glob| about.note("tool", &what(glob.as_str()))).collect::<Vec<_>>()
    };
    all(config).into_iter().flat_map(notes).collect()
}

/// The rules of all policies, and what is said of tools.
fn all(config: &Config) -> Vec<About<'_>> {
    let of_policies = config.policies.iter().flat_map(|policy| of_policy(config, policy));
    of_policies.chain(config.labels.iter().map(About::of_label)).collect()
}

fn of_policy<'a>(config: &'a Config, policy: &'a Policy) -> impl Iterator<Item = About<'a>> {
    let rules = policy.rules().iter().enumerate();
    rules.map(|(index, rule)| About::of_rule(config, policy.name(), index, rule))
}
