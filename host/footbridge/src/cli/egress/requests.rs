//! Which requests a session may make of a service: by method and path, those together that are alike.

use footbridge_core::{
    gate::{Decision, Effect, Effects, SessionRules, Subject, rules::CONNECT},
    service::{METHODS, RequestPath, RequestPattern},
};
use footbridge_services::ServiceSpec;

/// A service, which only sessions have that it is given to.
pub(super) struct ServiceReach {
    pub(super) name: String,
    pub(super) origin: String,
    pub(super) requests: Vec<LikeRequests>,
}

/// Requests to one pattern of paths of which the same holds.
pub(super) struct LikeRequests {
    /// As people read it.
    pub(super) written: String,
    /// Their methods; `*` is all that are not named anywhere.
    pub(super) methods: Vec<String>,
    pub(super) path: String,
    pub(super) effects: Effects,
    /// None where all of them are hidden.
    pub(super) outlook: Option<Vec<Decision>>,
    is_websocket: bool,
}

/// Methods that are looked at whatever is written.
const USUAL: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

/// All that are named nowhere.
const OTHERS: &str = "*";

/// What is asked with in the place of all of these: no client does.
const STAND_IN: &str = "X-OTHER";

impl ServiceReach {
    /// What the rules say of a service.
    pub(super) fn of(rules: &SessionRules, service: &ServiceSpec) -> Self {
        let mut looked = Looked { rules, service, methods: methods(rules, service), found: Vec::new() };
        match &service.rules.requests {
            Some(all) => all.iter().for_each(|one| looked.add(one.path(), &looked.methods_of(one), one.method())),
            None => looked.add("/**", &looked.methods.clone(), None),
        }
        for one in service.rules.reads.iter().chain(&service.rules.writes) {
            let methods: Vec<String> =
                looked.methods_of(one).into_iter().filter(|method| looked.is_asked_apart(method, one)).collect();
            looked.add(one.path(), &methods, one.method());
        }
        Self { name: service.name.to_string(), origin: service.origin.to_string(), requests: looked.found }
    }
}

/// Every method of which something of its own may hold, and [`OTHERS`]. A tunnel is asked for where it is named alone.
fn methods(rules: &SessionRules, service: &ServiceSpec) -> Vec<String> {
    let name = service.name.as_str();
    let about =
        rules.policy().rules().iter().map(|rule| &rule.scope).filter(|scope| {
            scope.servers.as_ref().is_none_or(|services| services.iter().any(|glob| glob.matches(name)))
        });
    let globs = about.flat_map(|scope| scope.methods.iter().flatten());
    let of_rules = globs.flat_map(|glob| {
        let itself = Some(glob.as_str()).filter(|text| !is_pattern(text));
        METHODS.into_iter().filter(|method| glob.matches(method)).chain(itself)
    });
    let named = of_rules.chain(service.rules.methods()).filter(|method| *method != CONNECT);
    let mut all: Vec<String> = Vec::new();
    for method in USUAL.into_iter().chain(named).chain([OTHERS]) {
        if !all.iter().any(|one| one == method) {
            all.push(method.to_owned());
        }
    }
    all
}

/// What is known of a service so far.
struct Looked<'a> {
    rules: &'a SessionRules,
    service: &'a ServiceSpec,
    methods: Vec<String>,
    found: Vec<LikeRequests>,
}

impl Looked<'_> {
    /// The methods that a pattern is about.
    fn methods_of(&self, pattern: &RequestPattern) -> Vec<String> {
        match pattern.method() {
            None => self.methods.clone(),
            Some("GET") => ["GET", "HEAD"].map(str::to_owned).to_vec(),
            Some(method) => vec![method.to_owned()],
        }
    }

    /// Whether such requests may be asked of the service, and are not all that one of its `requests` lets through.
    fn is_asked_apart(&self, method: &str, pattern: &RequestPattern) -> bool {
        let of = |one: &&RequestPattern| one.method().is_none() || self.methods_of(one).iter().any(|own| own == method);
        let is_part = |one: &RequestPattern| {
            let covers = RequestPath::read(one.path()).is_ok_and(|path| pattern.matches(&as_asked(method), &path));
            !covers && meet(one.path(), pattern.path())
        };
        self.service.rules.requests.as_ref().is_none_or(|all| all.iter().filter(of).any(is_part))
    }

    /// Adds requests of a pattern, as far as there are none of the same method and path.
    fn add(&mut self, path: &str, methods: &[String], written: Option<&str>) {
        let mut groups: Vec<LikeRequests> = Vec::new();
        let is_known = |found: &[LikeRequests], method: &String| {
            found.iter().any(|one| one.path == path && one.methods.contains(method))
        };
        for method in methods.iter().filter(|method| !is_known(&self.found, method)) {
            let ways: &[bool] = if self.service.rules.websocket && method == "GET" { &[false, true] } else { &[false] };
            for is_websocket in ways {
                let one = self.one(method, path, *is_websocket);
                match groups.iter_mut().find(|group| group.is_like(&one)) {
                    Some(group) => group.methods.extend(one.methods),
                    None => groups.push(one),
                }
            }
        }
        groups.iter_mut().for_each(|group| group.written = group.in_words(written == Some("GET")));
        self.found.extend(groups);
    }

    /// Requests of one method, or the WebSockets that they may become.
    fn one(&self, method: &str, path: &str, is_websocket: bool) -> LikeRequests {
        let asked = as_asked(method);
        // A pattern is looked at as the path that it is written as.
        let effects = match RequestPath::read(path) {
            Ok(path) if is_websocket => self.service.rules.effects_of_websocket(&path),
            Ok(path) => self.service.rules.effects(&asked, &path),
            // What cannot be told is taken for all that it may be.
            Err(_) => Effects::of(&[Effect::Write, Effect::Destructive, Effect::Egress]),
        };
        let subject = Subject::http(self.service.name.as_str(), &asked, path, effects);
        let outlook = if is_pattern(path) {
            Some(self.rules.outlook_of_like(&subject))
        } else {
            self.rules.shows(&subject).then(|| self.rules.outlook(&subject))
        };
        let (methods, path) = (vec![method.to_owned()], path.to_owned());
        LikeRequests { written: String::new(), methods, path, effects, outlook, is_websocket }
    }
}

impl LikeRequests {
    fn is_like(&self, other: &Self) -> bool {
        (self.is_websocket, self.effects, &self.outlook) == (other.is_websocket, other.effects, &other.outlook)
    }

    /// `HEAD` goes without saying beside a `GET` that was written.
    fn in_words(&self, is_of_get: bool) -> String {
        let is_said =
            |method: &&String| !(is_of_get && *method == "HEAD" && self.methods.iter().any(|one| one == "GET"));
        let named: Vec<&str> = self.methods.iter().filter(is_said).map(String::as_str).collect();
        let (path, websocket) = (&self.path, if self.is_websocket { " (websocket)" } else { "" });
        match &named[..] {
            [CONNECT] => format!("tunnel to {}", path.trim_start_matches('/')),
            [OTHERS] => format!("other methods {path}"),
            [named @ .., OTHERS] => format!("{} and others {path}", named.join(", ")),
            named => format!("{} {path}{websocket}", named.join(", ")),
        }
    }
}

/// A method as requests have it.
fn as_asked(method: &str) -> String {
    if method == OTHERS { STAND_IN.to_owned() } else { method.to_owned() }
}

/// Whether a text stands for others than itself.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{', '\\'])
}

/// Whether there may be a path that both patterns match; true where that is not plain.
fn meet(one: &str, other: &str) -> bool {
    fn below(one: &[&str], other: &[&str]) -> bool {
        match (one, other) {
            ([], []) => true,
            (["**", rest @ ..], all) | (all, ["**", rest @ ..]) => {
                (0..=all.len()).any(|skipped| below(rest, &all[skipped..]))
            }
            ([first, rest @ ..], [second, others @ ..]) => {
                (first == second || is_pattern(first) || is_pattern(second)) && below(rest, others)
            }
            _ => false,
        }
    }
    let (Some(ones), Some(others)) = (alternatives(one), alternatives(other)) else { return true };
    let parts = |path: &String| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let is_one = |one: &String, other: &String| {
        let (one, other) = (parts(one), parts(other));
        let [one, other] = [&one, &other].map(|parts| parts.iter().map(String::as_str).collect::<Vec<_>>());
        below(&one, &other)
    };
    ones.iter().any(|one| others.iter().any(|other| is_one(one, other)))
}

/// Most patterns that one with braces is written out as.
const MOST_ALTERNATIVES: usize = 64;

/// A pattern without braces, once for each of what they choose from; none where that is not plain.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = pattern.split_once('{') else { return Some(vec![pattern.to_owned()]) };
    let (choices, after) = rest.split_once('}')?;
    if choices.contains('{') || pattern.contains(['\\', '[']) {
        return None;
    }
    let afters = alternatives(after)?;
    let one = |choice: &str| afters.iter().map(|after| format!("{before}{choice}{after}")).collect::<Vec<_>>();
    let all: Vec<String> = choices.split(',').flat_map(one).collect();
    (all.len() <= MOST_ALTERNATIVES).then_some(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use footbridge_core::{names::Labels, policy_file::policies_of};

    use super::*;
    use crate::config::{Variables, folders::Folders, load};

    /// What a session of policy `p` can ask of the service `own`, each with what may be decided.
    fn found(service: &str, policy: &str) -> Vec<String> {
        use std::{fs, os::unix::fs::PermissionsExt as _};
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f.toml");
        fs::write(&path, format!("[services.own]\nurl = \"https://own.test\"\n{service}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let home = |name: &str| (name == "HOME").then(|| place.path().as_os_str().to_owned());
        let config = load(&[path], &Folders::find(7, home).unwrap(), &Variables::of_this_process()).unwrap();
        let policies = policies_of(&format!("[policies.p]\n{policy}\n")).unwrap();
        let labels: Labels = BTreeMap::new();
        let reach = ServiceReach::of(&SessionRules::new(policies.get("p").unwrap(), &labels), &config.services[0]);
        let outlook = |one: &LikeRequests| {
            let words = |all: &Vec<Decision>| all.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(" ");
            one.outlook.as_ref().map_or("hidden".to_owned(), words)
        };
        let line = |one: &LikeRequests| format!("{}: {}: {}", one.written, one.effects.words().join(" "), outlook(one));
        reach.requests.iter().map(line).collect()
    }

    fn rule(says: &str) -> String {
        format!("[[policies.p.rules]]\n{says}\n")
    }

    #[test]
    fn every_method_is_looked_at_and_those_that_are_alike_are_one_line() {
        let usual = [
            "GET, HEAD, OPTIONS /**: read egress: ask",
            "POST, PUT, PATCH and others /**: write egress: ask",
            "DELETE /**: write destructive egress: ask",
        ];
        assert_eq!(found("", ""), usual);
        assert_eq!(found("requests = [\"* /x\"]", "")[1], "POST, PUT, PATCH and others /x: write egress: ask");
        let put = rule("decision = \"allow\"\nmethod = \"PUT\"\n") + &rule("decision = \"deny\"");
        assert_eq!(
            found("", &put),
            [
                "GET, HEAD, OPTIONS /**: read egress: deny",
                "POST, PATCH and others /**: write egress: deny",
                "PUT /**: write egress: allow",
                "DELETE /**: write destructive egress: deny",
            ]
        );
        let named = rule("decision = \"allow\"\nmethod = [\"MKCOL\", \"PROP*\"]") + &rule("decision = \"deny\"");
        let all = found("", &named);
        assert!(all.contains(&"MKCOL, PROPFIND, PROPPATCH /**: write egress: allow".to_owned()), "{all:#?}");
        let of_another = named.replace("method", "service = \"other\"\nmethod");
        assert!(found("", &of_another).iter().all(|line| !line.contains("MKCOL")));
        let known =
            "decision = \"deny\"\nmethod = [\"GET\", \"HEAD\", \"OPTIONS\", \"POST\", \"PUT\", \"PATCH\", \"DELETE\"]";
        let all = found("", &(rule(known) + &rule("decision = \"allow\"")));
        assert!(all.contains(&"other methods /**: write egress: allow".to_owned()), "{all:#?}");
    }

    #[test]
    fn head_goes_without_saying_beside_a_get_that_was_written() {
        assert_eq!(found("requests = [\"GET /x\"]", ""), ["GET /x: read egress: ask"]);
        let head = rule("decision = \"deny\"\nmethod = \"HEAD\"");
        let apart = ["GET /x: read egress: ask", "HEAD /x: read egress: deny"];
        assert_eq!(found("requests = [\"GET /x\"]", &head), apart);
        let sockets = found("requests = [\"GET /x\"]\nwebsocket = true", "");
        assert_eq!(sockets, ["GET /x: read egress: ask", "GET /x (websocket): write egress: ask"]);
    }

    #[test]
    fn what_is_said_of_single_requests_has_lines_of_its_own_as_far_as_they_can_be_asked() {
        let allows = rule("decision = \"allow\"\neffects = [\"read\", \"egress\"]");
        let all = found("reads = [\"POST /search\"]\nwrites = [\"GET /fire/*\"]", &allows);
        assert_eq!(
            all[3..],
            ["POST /search: read egress: allow".to_owned(), "GET /fire/*: write egress: ask".to_owned()]
        );
        let of = |requests: &str, reads: &str| {
            let all = found(&format!("requests = [{requests}]\nreads = [{reads}]"), "");
            all.iter().map(|line| line.split(':').next().unwrap().to_owned()).collect::<Vec<_>>().join(", ")
        };
        for (requests, reads, lines) in [
            ("\"POST /v1/**\"", "\"POST /v1/ask\"", "POST /v1/**, POST /v1/ask"),
            ("\"POST /v1/**\"", "\"POST /v2/ask\"", "POST /v1/**"),
            ("\"POST /v1/**\"", "\"PUT /v1/ask\"", "POST /v1/**"),
            ("\"POST /v1/**\"", "\"POST /**\"", "POST /v1/**"),
            ("\"POST /*/x\"", "\"POST /v1/*\"", "POST /*/x, POST /v1/*"),
            ("\"POST /v1/ask\"", "\"POST /v1/ask\"", "POST /v1/ask"),
            ("\"POST /v1/ask\"", "\"* /v1/*\"", "POST /v1/ask"),
            ("\"POST /v1/*:{a,b}\", \"POST /v2/*:{a,b}\"", "\"POST /v1/*\", \"POST /v2/*\"", "POST /v1/*, POST /v2/*"),
            ("\"POST /{v1/a,v2}/x\"", "\"POST /v1/*/x\"", "POST /{v1/a,v2}/x, POST /v1/*/x"),
            ("\"POST /v1/**\"", "\"* /v1/ask\"", "POST /v1/**, POST /v1/ask"),
        ] {
            assert_eq!(of(requests, reads), lines, "{requests} {reads}");
        }
    }

    #[test]
    fn a_tunnel_is_asked_for_where_it_is_named_alone() {
        assert!(
            found("", &rule("decision = \"deny\"\nmethod = \"CONNECT\"")).iter().all(|line| !line.contains("tunnel"))
        );
    }
}
