//! What a service as it is written means.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use footbridge_core::{
    hosts::{address, is_localhost, is_public},
    names::ServerName,
    redact::MIN_BYTES,
    secret::Secret,
    service::{METHODS, RequestPattern, ServiceRules},
    settings_file::{File, Mistake, closest},
};
use footbridge_services::{
    BadService, Credential, ErrorShape, NoCredential, Preset, ServiceOrigin, ServiceProxy, ServiceSpec, TUNNELS,
    authorities, bare,
};
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, de::DeserializeOwned};
use toml::Value;

use super::{
    super::{
        obeyed::obeyed,
        secrets::{Reader, Written},
    },
    WantedServices,
};

/// A service as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Service {
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
pub(super) struct WrittenTunnels {
    allow: Vec<String>,
    plain: Vec<String>,
    allow_private: bool,
    proxy: Option<String>,
}

/// What a client is told of the proxy that the bridge is.
pub(super) const PROXY: &str = "http://session:{token}@{authority}";

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
    let leads_inside = is_localhost(host) || address(host).is_some_and(|ip| !is_public(ip));
    match (fits, leads_inside && !allow_private) {
        (false, _) if text != text.to_ascii_lowercase() => {
            Err(format!("{text:?}: names of hosts are written in small letters"))
        }
        (false, _) => Err(said()),
        (true, true) => Err(format!("{text:?} is private; set allow_private = true if that is meant")),
        (true, false) => Ok(()),
    }
}

/// Makes sense of services, one after the other.
pub(super) struct Meaning<'a> {
    pub(super) file: &'a File<'a>,
    pub(super) reader: Reader<'a>,
    pub(super) wanted: &'a WantedServices,
    /// Of the service that is read.
    pub(super) name: String,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) notes: Vec<Mistake>,
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
    pub(super) fn read<T: DeserializeOwned>(&mut self, keys: &[&str], written: &Value) -> Option<T> {
        let at: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let Value::Table(table) = written else {
            let what = format!("it has the type {}, and must be a table", written.type_str());
            self.mistakes.push(self.file.mistake(&at, what));
            return None;
        };
        self.file.read(&at, table.clone()).map_err(|found| self.mistakes.extend(found)).ok()
    }

    pub(super) fn wrong(&mut self, key: &str, what: impl std::fmt::Display) {
        let keys = ["services", &self.name, key].map(str::to_owned);
        let keys = if key.is_empty() { &keys[..2] } else { &keys[..] };
        self.mistakes.push(self.file.mistake(keys, what.to_string()));
    }

    pub(super) fn note(&mut self, key: &str, what: String) {
        let keys = ["services", &self.name, key].map(str::to_owned);
        self.notes.push(self.file.mistake(&keys, what));
    }

    /// A service, unless something in it is wrong; that is said.
    pub(super) fn of(&mut self, written: Service) -> Option<ServiceSpec> {
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
    pub(super) fn of_tunnels(&mut self, written: WrittenTunnels) -> Option<ServiceSpec> {
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
        if let Some(empty) = self.without_white_space(&secret) {
            return empty;
        }
        // Where the operator names the header, its value is what they wrote.
        let (value, user) = match written.header {
            Some(_) => ("{credential}", None),
            None => {
                let user = written.user.as_deref().or(preset.user.as_deref());
                (preset.value.as_deref().unwrap_or("{credential}"), user)
            }
        };
        if let Some(scheme) = written_twice(value, bare(secret.expose())) {
            self.note("credential", format!("the preset writes {scheme:?} in front of it itself; leave it out here"));
        }
        match Credential::new(header, value, user, &secret) {
            Ok(Credential { header, secrets }) => {
                let is_short = |secret: &Secret| (1..MIN_BYTES).contains(&secret.expose().len());
                // Of one that is not wanted nothing was read.
                if !secret.expose().is_empty() && secrets.iter().any(is_short) {
                    let what = "so it is not taken out of what the service answers";
                    self.note("credential", format!("it has less than {MIN_BYTES} bytes, {what}"));
                }
                FoundCredential { header: Some(header), secrets, lacks: None }
            }
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
        Ok(self.reader.aside(self.reader.base, given).unwrap_or_else(|_| Secret::new("")))
    }

    /// What a credential is without white space at its ends, where that is nothing at all. That there was some is noted.
    fn without_white_space(&mut self, secret: &Secret) -> Option<FoundCredential> {
        let whole = secret.expose();
        match bare(whole) {
            bare if bare.len() == whole.len() => None,
            "" => Some(self.lacks("credential", NoCredential::NotRead("it is white space alone".to_owned()))),
            _ => {
                let what = "it begins or ends with white space, which means nothing in a header, and is left out there (not in {basic})";
                self.note("credential", what.to_owned());
                None
            }
        }
    }

    fn lacks(&mut self, key: &str, why: NoCredential) -> FoundCredential {
        if self.wanted.has(&self.name) {
            let what = match (&why, self.wanted) {
                (NoCredential::NotRead(_), WantedServices::Again) => format!(
                    "{why}; until then the service keeps the credential that it had at this address, and where it had \
                     none, its requests are refused"
                ),
                _ => format!("{why}; requests to this service are refused until then"),
            };
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

/// The word before a credential that it begins with itself.
fn written_twice<'v>(value: &'v str, secret: &str) -> Option<&'v str> {
    let (scheme, _) = value.split_once(" {")?;
    let begins = secret.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    (begins && secret[scheme.len()..].starts_with(' ')).then_some(scheme)
}
