//! `[services.NAME]` and `[tunnels]` of `footbridge.toml`: what was written of a service, and what it means. Tunnels are
//! the service of that name, whose requests are the hosts that are allowed.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use footbridge_core::{
    gate::Policy,
    names::ServerName,
    public_address::is_public,
    secret::Secret,
    service::{METHODS, RequestPattern, ServiceRules},
    settings_file::{File, Mistake, closest},
};
use footbridge_proto::vars::GUEST_PREFIX;
use footbridge_services::{
    BadService, Credential, ErrorShape, NoCredential, Preset, ServiceOrigin, ServiceProxy, ServiceSpec, TUNNELS,
    authorities,
};
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, de::DeserializeOwned};
use toml::{Table, Value};

use super::{
    Config,
    commands::Commands,
    loading::is_loading,
    obeyed::obeyed,
    secrets::{Gathered, Reader, Written},
};

/// What a file says of services, before it is made sense of.
pub(super) struct WrittenServices {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) table: Table,
}

impl WrittenServices {
    /// The names of its services, that of tunnels among them.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let services = self.table.get("services").and_then(Value::as_table).into_iter().flat_map(Table::keys);
        let tunnels = self.table.contains_key("tunnels").then_some(TUNNELS);
        services.map(String::as_str).chain(tunnels)
    }

    /// Its policies, each with the names of the services that it gives.
    pub(super) fn given(&self) -> Vec<(&str, Vec<&str>)> {
        let policies = self.table.get("policies").and_then(Value::as_table);
        policies.into_iter().flatten().map(|(name, policy)| (name.as_str(), services_of(policy))).collect()
    }
}

fn services_of(policy: &Value) -> Vec<&str> {
    policy.get("services").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A service as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Service {
    preset: Option<String>,
    url: Option<String>,
    header: Option<String>,
    user: Option<String>,
    credential: Option<Written>,
    requests: Option<Vec<String>>,
    reads: Vec<String>,
    writes: Vec<String>,
    environment: Option<BTreeMap<String, String>>,
    ca_file: Option<PathBuf>,
    proxy: Option<String>,
    allow_private: bool,
    websocket: bool,
    shape: Option<ErrorShape>,
}

/// Tunnels as they are written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenTunnels {
    allow: Vec<String>,
    plain: Vec<String>,
    allow_private: bool,
    proxy: Option<String>,
}

/// What the files say of services.
#[derive(Debug, Default)]
pub(super) struct FoundServices {
    pub(super) services: Vec<ServiceSpec>,
    pub(super) gathered: Gathered,
    pub(super) mistakes: Vec<Mistake>,
    /// Of services that are wanted and lack their credential.
    pub(super) notes: Vec<Mistake>,
}

/// Makes sense of all services of a file, whatever else it says; every mistake at once. What is not even a table of them
/// is for whoever reads the rest of it to refuse.
pub(super) fn meant(
    written: WrittenServices,
    variables: &[(String, String)],
    commands: &Commands,
    wanted: &WantedServices,
) -> FoundServices {
    let WrittenServices { path, text, table } = written;
    let file = &File::new(&path, &text);
    let var = |name: &str| variables.iter().find(|(n, _)| n == name).map(|(_, value)| OsString::from(value));
    let base = path.parent().unwrap_or(Path::new("/"));
    let reader = Reader { var: &var, base, commands, gathered: Gathered::default() };
    let name = String::new();
    let mut meaning = Meaning { file, reader, wanted, name, mistakes: Vec::new(), notes: Vec::new() };
    let mut services = Vec::new();
    for (name, written) in table.get("services").and_then(Value::as_table).into_iter().flatten() {
        meaning.name = name.clone();
        let service = meaning.read(&["services", name], written);
        services.extend(service.and_then(|service| meaning.of(service)));
    }
    let tunnels = table.get("tunnels").filter(|written| written.is_table());
    let tunnels = tunnels.and_then(|written| meaning.read(&["tunnels"], written));
    services.extend(tunnels.and_then(|tunnels| meaning.of_tunnels(tunnels)));
    let Meaning { reader, mistakes, notes, .. } = meaning;
    FoundServices { services, gathered: reader.gathered, mistakes, notes }
}

/// The services whose commands of credentials are run. What others lack is not said, and they are not asked.
#[derive(Debug, Clone, Default)]
pub enum WantedServices {
    /// All of them.
    #[default]
    All,
    /// Those of these names.
    Named(Vec<String>),
    /// Those of a session: these, and those of its policy.
    OfSession {
        /// Their names.
        names: Vec<String>,
        /// The policy's.
        policy: String,
    },
}

impl WantedServices {
    /// With the names of the policy's own, of these policies.
    pub(super) fn among(&self, policies: &BTreeMap<String, Arc<Policy>>) -> Self {
        let Self::OfSession { names, policy } = self else { return self.clone() };
        let of_policy = policies.get(policy).into_iter().flat_map(|policy| policy.services());
        Self::Named(names.iter().cloned().chain(of_policy.map(ToString::to_string)).collect())
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) | Self::OfSession { names, .. } => names.iter().any(|one| one == name),
        }
    }
}

/// The services of these names.
///
/// # Errors
/// [`NoService`].
pub fn known(config: &Config, names: &[String]) -> Result<BTreeSet<ServerName>, NoService> {
    let one = |name: &String| {
        let found = config.services.iter().find(|spec| spec.name.as_str() == name);
        let known = || config.services.iter().map(|spec| spec.name.to_string()).collect();
        found.map(|spec| spec.name.clone()).ok_or_else(|| NoService { name: name.clone(), known: known() })
    };
    names.iter().map(one).collect()
}

/// What is said of the services of these names.
///
/// # Errors
/// [`NoService`].
pub fn of_names(config: &Config, names: &BTreeSet<ServerName>) -> Result<Vec<ServiceSpec>, NoService> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let names = known(config, &names)?;
    Ok(config.services.iter().filter(|spec| names.contains(&spec.name)).cloned().collect())
}

/// There is no service of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no service {name:?}: {}", hint(known))]
pub struct NoService {
    /// The name.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
}

fn hint(known: &[String]) -> String {
    match known {
        [] => "write [services.NAME] into footbridge.toml, as docs/services.md shows".to_owned(),
        known => format!("choose one of {}", known.join(", ")),
    }
}

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

/// What a client is told of the proxy that the bridge is.
const PROXY: &str = "http://session:{token}@{authority}";

/// Whether this is a host and a port, with `*.` in front at most.
fn host_pattern(text: &str, allow_private: bool) -> Result<(), String> {
    let said = || {
        format!("{text:?} is no host with its port: write it as in \"files.example:443\" or \"*.files.example:443\"")
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(said)?;
    let host = host.strip_prefix("*.").unwrap_or(host);
    let is_label = |label: &str| {
        let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        !label.is_empty() && label.bytes().all(known)
    };
    let fits = host.split('.').all(is_label) && port.parse::<u16>().is_ok_and(|port| port > 0);
    let leads_inside = host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| !is_public(ip));
    match (fits, leads_inside && !allow_private) {
        (false, _) => Err(said()),
        (true, true) => Err(format!("{text:?} is private; set allow_private = true if that is meant")),
        (true, false) => Ok(()),
    }
}

struct Meaning<'a> {
    file: &'a File<'a>,
    reader: Reader<'a>,
    wanted: &'a WantedServices,
    /// Of the service that is read.
    name: String,
    mistakes: Vec<Mistake>,
    notes: Vec<Mistake>,
}

/// What is known of a service's credential.
#[derive(Default)]
struct FoundCredential {
    header: Option<(HeaderName, HeaderValue)>,
    secrets: Vec<Secret>,
    lacks: Option<NoCredential>,
}

impl Meaning<'_> {
    /// The table at these keys.
    fn read<T: DeserializeOwned>(&mut self, keys: &[&str], written: &Value) -> Option<T> {
        let at: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let Value::Table(table) = written else {
            let what = format!("it is a {}, and must be a table", written.type_str());
            self.mistakes.push(self.file.mistake(&at, what));
            return None;
        };
        self.file.read(&at, table.clone()).map_err(|found| self.mistakes.extend(found)).ok()
    }

    fn wrong(&mut self, key: &str, what: impl std::fmt::Display) {
        let keys = ["services", &self.name, key].map(str::to_owned);
        let keys = if key.is_empty() { &keys[..2] } else { &keys[..] };
        self.mistakes.push(self.file.mistake(keys, what.to_string()));
    }

    fn note(&mut self, key: &str, what: String) {
        let keys = ["services", &self.name, key].map(str::to_owned);
        self.notes.push(self.file.mistake(&keys, what));
    }

    /// Names in braces that stand for nothing in the variables of guests.
    fn note_unknown_places(&mut self, environment: &BTreeMap<String, String>) {
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
    fn look_at_names(&mut self, environment: &BTreeMap<String, String>) {
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
    fn note_doubled_path(&mut self, name: &str, preset: &Preset, url: &str) {
        let of_environment = preset.environment.values().filter_map(|value| value.strip_prefix("{url}/"));
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

    /// A service, unless something in it is wrong; that is said.
    fn of(&mut self, written: Service) -> Option<ServiceSpec> {
        let before = self.mistakes.len();
        let name = self.service_name();
        let preset = written.preset.as_deref().map(Preset::of).transpose();
        let preset = preset.map_err(|error| self.wrong("preset", error)).ok()?.unwrap_or_default();
        let origin = self.origin(written.url.as_deref().or(preset.url.as_deref()), written.allow_private);
        if let (Some(_), Some(name), Some(origin), None) =
            (&written.url, &written.preset, &origin, &written.environment)
        {
            self.note_doubled_path(name, &preset, &origin.to_string());
        }
        let credential = self.credential(&written, &preset);
        let requests = written.requests.as_ref().map(|texts| self.patterns("requests", texts)).or(preset.requests);
        let reads = self.patterns("reads", &written.reads).into_iter().chain(preset.reads).collect();
        let writes = self.patterns("writes", &written.writes);
        written.environment.iter().for_each(|environment| {
            self.note_unknown_places(environment);
            self.look_at_names(environment);
        });
        let authorities = self.authorities(written.ca_file.as_deref());
        let proxy = self.proxy(&["services", &self.name.clone(), "proxy"], written.proxy.as_deref());
        if proxy.is_some() && origin.as_ref().is_some_and(|origin| origin.root().starts_with("http:")) {
            self.wrong(
                "proxy",
                "an origin without TLS is at a loopback address, which no proxy leads to: leave it out",
            );
        }
        if self.mistakes.len() > before {
            return None;
        }
        let FoundCredential { header: credential, secrets, lacks: lacks_credential } = credential;
        self.reader.gathered.secrets.extend(secrets.iter().cloned());
        Some(ServiceSpec {
            name: name?,
            origin: origin?,
            credential,
            secrets,
            lacks_credential,
            authorities,
            allow_private: written.allow_private,
            proxy,
            rules: Arc::new(ServiceRules { requests, reads, writes, websocket: written.websocket }),
            shape: written.shape.unwrap_or(preset.shape),
            usage: preset.usage,
            environment: written.environment.unwrap_or(preset.environment),
            git: preset.git,
        })
    }

    /// The service of all tunnels.
    fn of_tunnels(&mut self, written: WrittenTunnels) -> Option<ServiceSpec> {
        let mut requests = Vec::new();
        for (key, hosts, method, below) in
            [("allow", &written.allow, "CONNECT", ""), ("plain", &written.plain, "GET", "/**")]
        {
            for host in hosts {
                match host_pattern(host, written.allow_private) {
                    Ok(()) => requests.extend(format!("{method} /{host}{below}").parse()),
                    Err(what) => self.mistakes.push(self.file.mistake(&["tunnels", key].map(str::to_owned), what)),
                }
            }
        }
        let through = self.proxy(&["tunnels", "proxy"], written.proxy.as_deref());
        let proxy = |name: &str| [(name.to_owned(), PROXY.to_owned()), (name.to_lowercase(), PROXY.to_owned())];
        let used = [("HTTPS_PROXY", &written.allow), ("HTTP_PROXY", &written.plain)];
        let mut environment: BTreeMap<String, String> =
            used.into_iter().filter(|(_, hosts)| !hosts.is_empty()).flat_map(|(name, _)| proxy(name)).collect();
        for name in ["NO_PROXY", "no_proxy"] {
            environment.insert(name.to_owned(), "127.0.0.1,localhost,::1".to_owned());
        }
        Some(ServiceSpec {
            name: TUNNELS.parse().ok()?,
            origin: ServiceOrigin::of_tunnels(),
            credential: None,
            secrets: Vec::new(),
            lacks_credential: None,
            authorities: Vec::new(),
            allow_private: written.allow_private,
            proxy: through,
            rules: Arc::new(ServiceRules { requests: Some(requests), ..ServiceRules::default() }),
            shape: ErrorShape::default(),
            usage: false,
            environment,
            git: BTreeMap::new(),
        })
    }

    /// The name is a part of a path.
    fn service_name(&mut self) -> Option<ServerName> {
        let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let fits = (1..=64).contains(&self.name.len()) && self.name.bytes().all(known);
        if self.name == TUNNELS {
            self.wrong("", "this name is that of tunnels: write [tunnels], or choose another name");
            return None;
        }
        match self.name.parse().ok().filter(|_| fits) {
            Some(name) => Some(name),
            None => {
                self.wrong(
                    "",
                    "a service's name is 1 to 64 of a-z, 0-9, \"-\" and \"_\", and does not start with \"-\"",
                );
                None
            }
        }
    }

    fn origin(&mut self, url: Option<&str>, allow_private: bool) -> Option<ServiceOrigin> {
        let Some(url) = url else {
            self.wrong("", "a service needs its address: write url = \"https://...\"");
            return None;
        };
        let url = self.reader.text(url).map_err(|error| self.wrong("url", error)).ok()?;
        ServiceOrigin::read(url.expose(), allow_private).map_err(|error| self.wrong("url", error)).ok()
    }

    /// A proxy, whose address may hold a secret.
    fn proxy(&mut self, keys: &[&str], written: Option<&str>) -> Option<ServiceProxy> {
        let text = self.reader.text(written?).map_err(|error| error.to_string());
        let read = text.and_then(|text| ServiceProxy::read(text.expose()).map_err(|error| error.to_string()));
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        read.map_err(|what| self.mistakes.push(self.file.mistake(&keys, what))).ok()
    }

    /// The credential. That it is not there is the matter of this service alone, and no mistake.
    fn credential(&mut self, written: &Service, preset: &Preset) -> FoundCredential {
        let header = written.header.as_deref().or(preset.header.as_deref());
        let (Some(given), Some(header)) = (&written.credential, header) else {
            match (&written.credential, header) {
                (Some(_), None) => {
                    self.wrong("", "a credential needs the header that it goes into: write header = \"...\"");
                }
                (None, Some(_)) if written.header.is_some() => {
                    self.wrong("header", "a header needs what it holds: write credential = ...");
                }
                // Elsewhere may be what speaks the same and needs none.
                (None, _) if preset.needs_credential && (written.url.is_none() || preset.url.is_none()) => {
                    return self.lacks("", NoCredential::NotWritten);
                }
                _ => {}
            }
            return FoundCredential::default();
        };
        let secret = match self.secret(given) {
            Ok(secret) => secret,
            Err(why) => return self.lacks("credential", NoCredential::NotRead(why)),
        };
        // Where the operator names the header, its value is what they wrote.
        let (value, user) = match written.header {
            Some(_) => ("{credential}", None),
            None => {
                let user = written.user.as_deref().or(preset.user.as_deref());
                (preset.value.as_deref().unwrap_or("{credential}"), user)
            }
        };
        match Credential::new(header, value, user, &secret) {
            Ok(Credential { header, secrets }) => FoundCredential { header: Some(header), secrets, lacks: None },
            Err(bad @ BadService::Credential) => self.lacks("credential", NoCredential::NotRead(bad.to_string())),
            Err(error) => {
                self.wrong("header", error);
                FoundCredential::default()
            }
        }
    }

    /// What a credential is. Of a service that is not wanted no command is run, and what it names is kept from guests
    /// all the same.
    fn secret(&mut self, given: &Written) -> Result<Secret, String> {
        if self.wanted.has(&self.name) {
            return self.reader.read(given).map_err(|error| error.to_string());
        }
        let Reader { var, base, .. } = self.reader;
        let commands = self.reader.commands.clone().not_run();
        let mut reader = Reader { var, base, commands: &commands, gathered: Gathered::default() };
        let secret = reader.read(given).unwrap_or_else(|_| Secret::new(""));
        self.reader.gathered.add(reader.gathered);
        Ok(secret)
    }

    fn lacks(&mut self, key: &str, why: NoCredential) -> FoundCredential {
        if self.wanted.has(&self.name) {
            let what = format!("{why}; requests to this service are refused until then");
            let keys = ["services", &self.name, key].map(str::to_owned);
            let keys = if key.is_empty() { &keys[..2] } else { &keys[..] };
            self.notes.push(self.file.mistake(keys, what));
        }
        FoundCredential { lacks: Some(why), ..FoundCredential::default() }
    }

    fn patterns(&mut self, key: &str, texts: &[String]) -> Vec<RequestPattern> {
        let read = |text: &String| text.parse().map_err(|error| self.wrong(key, error)).ok();
        let patterns: Vec<RequestPattern> = texts.iter().filter_map(read).collect();
        for method in patterns.iter().filter_map(RequestPattern::method).filter(|method| !METHODS.contains(method)) {
            let meant = closest(method, METHODS).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            self.note(key, format!("{method} is no method of HTTP that is known here{meant}"));
        }
        patterns
    }

    fn authorities(&mut self, file: Option<&Path>) -> Vec<footbridge_services::Authority> {
        let Some(file) = file else { return Vec::new() };
        let path = self.reader.base.join(file);
        let read = obeyed(&path, self.reader.commands.writable())
            .and_then(|real| fs::read(real).map_err(|error| format!("it cannot be read: {error}")));
        let found = read.and_then(|pem| authorities(&pem).map_err(|error| error.to_string()));
        found.map_err(|what| self.wrong("ca_file", format!("{}: {what}", path.display()))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use footbridge_core::service::RequestPath;

    use super::*;

    fn found(text: &str) -> FoundServices {
        found_of(text, &WantedServices::All)
    }

    fn found_of(text: &str, wanted: &WantedServices) -> FoundServices {
        let path = PathBuf::from("/etc/f.toml");
        let table = File::new(&path, text).parse().unwrap();
        let variables = [("KEY".to_owned(), "s3cret-value".to_owned())];
        meant(WrittenServices { path, text: text.to_owned(), table }, &variables, &Commands::default(), wanted)
    }

    #[test]
    fn methods_and_places_that_nobody_knows_are_noted_with_what_may_be_meant() {
        let found = found(
            "[services.a]\nurl = \"https://a.example\"\nrequests = [\"GETT /**\", \"PROPFIND /**\", \"* /x\"]\n\
             environment = { U = \"{uri}/{origin}\", J = \"{\\\"a\\\": 1}\" }\n",
        );
        let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
        let says = [
            "f.toml:3: services.a.requests: GETT is no method of HTTP that is known here; did you mean GET?",
            "f.toml:4: services.a.environment: {uri} stands for nothing and stays as it is, unlike {url}, {token}, \
             {authority}, {name}, {origin}; did you mean {url}?",
        ];
        assert!(found.mistakes.is_empty() && notes.len() == 2, "{notes:#?}");
        notes.iter().zip(says).for_each(|(note, says)| assert!(note.ends_with(says), "{note}"));
    }

    #[test]
    fn variables_that_have_programs_load_something_are_noted_and_those_of_the_bridge_refused() {
        let of = |environment: &str| {
            let found = found(&format!("[services.a]\nurl = \"https://a.test\"\nenvironment = {{ {environment} }}\n"));
            let plain = |all: &[Mistake]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
            (plain(&found.mistakes), plain(&found.notes))
        };
        for name in ["LD_PRELOAD", "PATH", "PYTHONPATH", "node_options"] {
            let (mistakes, notes) = of(&format!("{name} = \"/x\", KEY = \"{{token}}\""));
            assert!(mistakes.is_empty() && notes.len() == 1, "{name}: {mistakes:?} {notes:?}");
            assert!(
                notes[0].contains(&format!("f.toml:3: services.a.environment.{name}: by such a variable")),
                "{notes:?}"
            );
        }
        assert_eq!(of("PIP_INDEX_URL = \"{url}/simple\""), (vec![], vec![]));
        assert_eq!(of("PIP_INDEX_URL = \"https://other.test\"").1.len(), 1);
        let (mistakes, _) = of("TOOL_CLI_TOKEN = \"x\"");
        assert!(
            mistakes.len() == 1 && mistakes[0].contains("services.a.environment.TOOL_CLI_TOKEN: it is for"),
            "{mistakes:?}"
        );
    }

    #[test]
    fn an_address_that_ends_with_what_a_preset_puts_behind_it_is_noted() {
        let notes = |text: &str| {
            let found = found(&format!("[services.a]\ncredential = \"${{KEY}}\"\n{text}\n"));
            assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
            found.notes.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for (preset, url, doubled) in [
            ("openai", "https://models.test/v1", "/v1"),
            ("openai", "https://models.test/v1/", "/v1"),
            ("openai", "http://localhost:9/proxy/v1", "/v1"),
            ("anthropic", "https://models.test/v1", "/v1"),
            ("gemini", "https://models.test/v1beta", "/v1beta"),
            ("openrouter", "https://models.test/api/v1", "/api/v1"),
            ("azure-openai", "https://x.test/openai", "/openai"),
            ("gitlab", "https://forge.test/api/v4", "/api/v4"),
        ] {
            let notes = notes(&format!("preset = {preset:?}\nurl = {url:?}"));
            let says = format!("puts {doubled} in front of its paths itself; write the address without it");
            assert!(notes.len() == 1 && notes[0].ends_with(&says), "{preset} {url}: {notes:?}");
            assert!(notes[0].contains(&format!("f.toml:4: services.a.url: preset {preset:?}")), "{notes:?}");
        }
        for text in [
            "preset = \"openai\"",
            "preset = \"openai\"\nurl = \"https://models.test\"",
            "preset = \"openai\"\nurl = \"https://models.test/openai\"",
            "preset = \"git\"\nurl = \"https://forge.test/v1\"",
            "preset = \"openai\"\nurl = \"https://models.test/v1\"\nenvironment = { OPENAI_BASE_URL = \"{url}\" }",
            "header = \"x\"\nurl = \"https://models.test/v1\"",
        ] {
            assert_eq!(notes(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_preset_needs_a_credential_alone_and_an_own_service_says_the_rest() {
        let found = found(
            "[services.anthropic]\npreset = \"anthropic\"\ncredential = \"${KEY}\"\n[services.tracker]\nurl = \"https://tracker.example/api\"\n\
             header = \"Authorization\"\ncredential = \"Bearer ${KEY}\"\nrequests = [\"GET /v2/**\"]\nenvironment = { U = \"{url}\" }\n",
        );
        assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
        let [model, tracker] = &found.services[..] else { panic!("{:?}", found.services) };
        let header = |spec: &ServiceSpec| {
            let (name, value) = spec.credential.clone().unwrap();
            format!("{name}: {}", value.to_str().unwrap())
        };
        assert_eq!(
            (header(model), model.origin.to_string()),
            ("x-api-key: s3cret-value".into(), "https://api.anthropic.com".into())
        );
        assert_eq!(header(tracker), "authorization: Bearer s3cret-value");
        let git =
            "[services.git]\npreset = \"git\"\nurl = \"https://git.test\"\nuser = \"bot\"\ncredential = \"${KEY}\"\n";
        // bot:s3cret-value
        assert_eq!(header(&super::tests::found(git).services[0]), "authorization: Basic Ym90OnMzY3JldC12YWx1ZQ==");
        assert_eq!(tracker.environment["U"], "{url}");
        assert!(found.gathered.names.contains("KEY") && !format!("{:?}", found.services).contains("s3cret"));
    }

    #[test]
    fn a_credential_that_is_not_there_is_noted_and_no_mistake() {
        let lacks = |found: &FoundServices| {
            found.services[0].lacks_credential.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        for (text, why) in [
            ("[services.a]\npreset = \"openai\"\ncredential = \"${NONE}\"", "NONE is not set"),
            ("[services.a]\npreset = \"openai\"\ncredential = { command = [\"false\"] }", "false failed"),
            ("[services.a]\npreset = \"openai\"\n", "none is written"),
            ("[services.a]\npreset = \"azure-openai\"\nurl = \"https://a.test\"\n", "none is written"),
        ] {
            let all = found(text);
            assert!(all.mistakes.is_empty() && lacks(&all).contains(why), "{text}: {:?}", all.mistakes);
            let note = all.notes[0].to_string();
            assert!(note.contains("services.a") && note.contains(why) && note.contains("refused until then"), "{note}");
        }
        for text in
            ["preset = \"openai\"\nurl = \"http://localhost:9\"", "preset = \"github\"", "url = \"https://a.test\""]
        {
            assert_eq!(lacks(&found(&format!("[services.a]\n{text}\n"))), "", "{text}");
        }
    }

    #[test]
    fn no_command_of_a_service_that_is_not_wanted_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let ran = folder.path().join("ran");
        let text = format!(
            "[services.a]\npreset = \"openai\"\ncredential = {{ command = [\"touch\", {ran:?}] }}\n\
             [services.b]\npreset = \"openai\"\ncredential = \"${{NONE}}\"\n[services.c]\npreset = \"openai\"\ncredential = \"${{KEY}}\"\n"
        );
        let all = found_of(&text, &WantedServices::Named(vec!["c".to_owned()]));
        assert!(!ran.exists() && all.notes.is_empty() && all.mistakes.is_empty());
        // What they name is kept from guests.
        assert!(["NONE", "KEY"].iter().all(|name| all.gathered.names.contains(*name)));
        assert_eq!(found(&text).notes.len(), 2);
        assert!(ran.exists());
    }

    #[test]
    fn tunnels_are_a_service_whose_requests_are_hosts() {
        let found = found("[tunnels]\nallow = [\"a.test:443\", \"*.b.test:8443\"]\nplain = [\"c.test:80\"]\n");
        assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
        let [tunnels] = &found.services[..] else { panic!("{:?}", found.services) };
        let allows = |method: &str, path: &str| tunnels.rules.allows(method, &RequestPath::read(path).unwrap());
        for (method, path, allowed) in [
            ("CONNECT", "/a.test:443", true),
            ("CONNECT", "/a.test:80", false),
            ("CONNECT", "/x.y.b.test:8443", true),
            ("CONNECT", "/b.test:8443", false),
            ("CONNECT", "/evilb.test:8443", false),
            ("CONNECT", "/c.test:80", false),
            ("GET", "/c.test:80/x/y", true),
            ("GET", "/a.test:443/", false),
            ("POST", "/c.test:80/x", false),
        ] {
            assert_eq!(allows(method, path), allowed, "{method} {path}");
        }
        assert_eq!(tunnels.environment["https_proxy"], PROXY);
        let mistakes =
            |text: &str| super::tests::found(text).mistakes.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(mistakes("[tunnels]\nallow = [\"127.0.0.1:443\"]\n")[0].contains("allow_private"));
        assert!(mistakes("[tunnels]\nplain = [\"localhost:80\"]\nallow_private = true\n").is_empty());
        for bad in
            ["a.test", "A.test:443", "*:443", "a.*:443", "a.test:0", "a.test:https", "https://a.test:443", "[::1]:443"]
        {
            let all = mistakes(&format!("[tunnels]\nallow = [\"{bad}\"]\n"));
            assert!(
                all.len() == 1 && all[0].contains("tunnels.allow") && all[0].contains("files.example"),
                "{bad}: {all:?}"
            );
        }
        assert!(mistakes("[services.tunnels]\nurl = \"https://a.test\"\n")[0].contains("[tunnels]"));
    }

    #[test]
    fn every_mistake_is_named_with_its_place() {
        for (text, what) in [
            ("[services.a]\n", "services.a: a service needs its address"),
            ("[services.A]\nurl = \"https://a.test\"", "services.A: a service's name"),
            ("[services.a]\nurl = \"http://a.test\"", "services.a.url: http without TLS"),
            ("[services.a]\nurl = \"https://10.0.0.1\"", "services.a.url: its address is private"),
            ("[services.a]\npreset = \"none\"", "services.a.preset: there is no preset \"none\""),
            ("[services.a]\npreset = \"git\"", "services.a: a service needs its address"),
            (
                "[services.a]\nurl = \"https://a.test\"\ncredential = \"${KEY}\"",
                "services.a: a credential needs the header",
            ),
            (
                "[services.a]\nurl = \"https://a.test\"\nheader = \"x\"",
                "services.a.header: a header needs what it holds",
            ),
            (
                "[services.a]\nurl = \"https://a.test\"\nrequests = [\"/v1\"]",
                "services.a.requests: \"/v1\" is no pattern",
            ),
            ("[services.a]\nurl = \"https://a.test\"\nproxy = \"p.test:1\"", "services.a.proxy: not an http: address"),
            (
                "[services.a]\nurl = \"http://127.0.0.1:1\"\nproxy = \"http://p.test:1\"",
                "services.a.proxy: an origin without TLS",
            ),
            ("[tunnels]\nproxy = \"https://p.test\"", "tunnels.proxy: not an http: address"),
            ("services.a = 5", "services.a: it is a integer, and must be a table"),
            ("[services.a]\nurll = \"https://a.test\"", "did you mean \"url\"?"),
            ("[services.a]\nurl = \"https://a.test\"\nca_file = \"/none.pem\"", "services.a.ca_file: /none.pem"),
        ] {
            let all: Vec<String> = found(text).mistakes.iter().map(ToString::to_string).collect();
            assert!(all.len() == 1 && all[0].contains(what), "{text}: {all:?}");
        }
    }
}
