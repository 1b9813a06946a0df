//! What a service is, as the operator says: where, with which credential, for which requests.

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use footbridge_core::{
    hosts::{address, is_loopback, is_public},
    names::ServerName,
    secret::Secret,
    service::ServiceRules,
};
use http::{
    HeaderName, HeaderValue, Uri,
    uri::{self, PathAndQuery, Scheme},
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use crate::{proxy::ServiceProxy, shape::ErrorShape};

/// A service.
#[derive(Clone)]
pub struct ServiceSpec {
    /// Its name.
    pub name: ServerName,
    /// Where it is.
    pub origin: ServiceOrigin,
    /// Its credential: the header and what it holds. None where it needs none.
    pub credential: Option<(HeaderName, HeaderValue)>,
    /// What must not show of the credential, in any answer.
    pub secrets: Vec<Secret>,
    /// Why the credential that it needs is not there. Nothing is sent then.
    pub lacks_credential: Option<NoCredential>,
    /// Certificates of one's own authority, in place of those of the system.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Whether its name may lead to a private address.
    pub allow_private: bool,
    /// The proxy that connections to it go through.
    pub proxy: Option<ServiceProxy>,
    /// What may be asked of it.
    pub rules: Arc<ServiceRules>,
    /// The shape of errors that its clients expect.
    pub shape: ErrorShape,
    /// Whether its answers say how much of a model was used.
    pub usage: bool,
    /// Variables that guests get; `{url}`, `{token}` and others stand for what is known when a session begins.
    pub environment: BTreeMap<String, String>,
    /// Settings of git that guests get.
    pub git: BTreeMap<String, String>,
}

/// Nothing of the credential.
impl fmt::Debug for ServiceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceSpec").field("name", &self.name).field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Two that are equal are reached alike and do alike.
impl PartialEq for ServiceSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.origin == other.origin
            && self.credential == other.credential
            && self.lacks_credential == other.lacks_credential
            && self.authorities == other.authorities
            && self.allow_private == other.allow_private
            && self.proxy == other.proxy
            && format!("{:?}", self.rules) == format!("{:?}", other.rules)
            && (self.shape, self.usage) == (other.shape, other.usage)
            && (&self.environment, &self.git) == (&other.environment, &other.git)
    }
}

/// Why a service has no credential, for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCredential {
    /// None is written.
    #[error("it needs a credential, and none is written: write credential = ...")]
    NotWritten,
    /// It could not be had.
    #[error("{0}")]
    NotRead(String),
}

/// A certificate that is trusted.
pub type Authority = CertificateDer<'static>;

/// The certificates of a PEM file.
///
/// # Errors
/// [`BadService::NoCertificate`].
pub fn authorities(pem: &[u8]) -> Result<Vec<Authority>, BadService> {
    let all: Result<Vec<Authority>, _> = CertificateDer::pem_slice_iter(pem).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or(BadService::NoCertificate)
}

/// Where a service is: an address of HTTP, perhaps with a path that all of its paths begin with. That of tunnels has no
/// authority: each of their paths begins with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceOrigin {
    pub(crate) is_tls: bool,
    /// None where each path begins with one.
    pub(crate) authority: Option<uri::Authority>,
    pub(crate) host: String,
    /// Without a slash at its end.
    pub(crate) base: String,
}

/// Why a service cannot be used as it is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadService {
    /// Not an address.
    #[error("not an https: address such as https://tracker.example/api")]
    Address,
    /// Letters that no address has on the wire.
    #[error("it has letters that an address cannot have: write its name as \"xn--...\" (punycode), and others with %")]
    NotAscii,
    /// Unencrypted to another machine.
    #[error("http without TLS is allowed to a loopback address only; use https:")]
    PlainHttp,
    /// A private address written out.
    #[error("its address is private; set allow_private = true if that is meant")]
    Private,
    /// A header that is none.
    #[error("not the name of a header")]
    Header,
    /// A credential that no header may hold.
    #[error("it has a value that no header may have")]
    Credential,
    /// No certificate.
    #[error("it holds no certificate (PEM)")]
    NoCertificate,
    /// Something behind the path.
    #[error("its address has a user, a query or a fragment; leave them out")]
    More,
}

impl ServiceOrigin {
    /// What its address has of a path, without a slash at its end; nothing where it has none.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Reads an address.
    ///
    /// # Errors
    /// [`BadService`].
    pub fn read(url: &str, allow_private: bool) -> Result<Self, BadService> {
        if url.contains('#') {
            return Err(BadService::More);
        }
        if !url.is_ascii() {
            return Err(BadService::NotAscii);
        }
        let uri: Uri = url.parse().map_err(|_| BadService::Address)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(BadService::Address);
        };
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(BadService::Address),
        };
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(BadService::More);
        }
        let host = authority.host().to_ascii_lowercase();
        let is_loopback = is_loopback(&host);
        if !is_tls && !is_loopback {
            return Err(BadService::PlainHttp);
        }
        if !is_loopback && address(&host).is_some_and(|ip| !is_public(ip)) && !allow_private {
            return Err(BadService::Private);
        }
        let base = uri.path().trim_end_matches('/').to_owned();
        let authority = authority.as_str().to_ascii_lowercase().parse().map_err(|_| BadService::Address)?;
        Ok(Self { is_tls, authority: Some(authority), host, base })
    }

    /// Wherever each path begins with, without TLS of ours.
    #[must_use]
    pub fn of_tunnels() -> Self {
        Self { is_tls: false, authority: None, host: String::new(), base: String::new() }
    }

    /// Its address, without the path.
    #[must_use]
    pub fn root(&self) -> String {
        let authority = self.authority.as_ref().map_or("", uri::Authority::as_str);
        format!("{}://{authority}", if self.is_tls { "https" } else { "http" })
    }

    /// The address of a request.
    pub(crate) fn uri(&self, path: &str, query: Option<&str>) -> Result<Uri, http::Error> {
        let mut text = [&self.base, path].concat();
        if let Some(query) = query {
            text.push('?');
            text.push_str(query);
        }
        let scheme = if self.is_tls { Scheme::HTTPS } else { Scheme::HTTP };
        let address = Uri::builder().scheme(scheme);
        let (address, text) = match &self.authority {
            Some(authority) => (address.authority(authority.clone()), text),
            None => {
                let (authority, text) = text[1..].split_at(text[1..].find('/').unwrap_or(text.len() - 1));
                (address.authority(authority), text.to_owned())
            }
        };
        address.path_and_query(PathAndQuery::from_maybe_shared(Bytes::from(text))?).build()
    }
}

impl fmt::Display for ServiceOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.authority.is_none() {
            f.write_str("the hosts of [tunnels]")
        } else {
            write!(f, "{}{}", self.root(), self.base)
        }
    }
}

/// Where a guest reaches the bridge, and with what.
#[derive(Debug, Clone, Copy)]
pub struct GuestAddress<'a> {
    /// The port at its loopback address.
    pub port: u16,
    /// Its token.
    pub token: &'a str,
}

/// Names and their values.
type Settings = Vec<(String, String)>;

impl ServiceSpec {
    /// The same with the credential of `before`, which leads to the same origin, where its own could not be read.
    #[must_use]
    pub(crate) fn with_credential_of(self, before: &Self) -> Self {
        let is_unread = matches!(self.lacks_credential, Some(NoCredential::NotRead(_)));
        if !is_unread || before.lacks_credential.is_some() || self.origin != before.origin {
            return self;
        }
        let (credential, secrets) = (before.credential.clone(), before.secrets.clone());
        Self { credential, secrets, lacks_credential: None, ..self }
    }

    /// The variables that a guest gets for it, and the settings of git.
    #[must_use]
    pub(crate) fn guest_environment(&self, guest: GuestAddress<'_>) -> (Settings, Settings) {
        let authority = format!("127.0.0.1:{}", guest.port);
        let filled = |text: &String| {
            text.replace("{url}", &format!("http://{authority}/s/{}", self.name))
                .replace("{authority}", &authority)
                .replace("{name}", self.name.as_str())
                .replace("{origin}", &self.origin.to_string())
                .replace("{token}", guest.token)
        };
        let all = |from: &BTreeMap<String, String>| {
            from.iter().map(|(name, value)| (filled(name), filled(value))).collect::<Vec<_>>()
        };
        (all(&self.environment), all(&self.git))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_or_loopback_and_no_more_than_a_path() {
        for (url, shown) in [
            ("https://Tracker.example/api/", "https://tracker.example/api"),
            ("https://a.test:8443", "https://a.test:8443"),
            ("http://127.0.0.1:9/x", "http://127.0.0.1:9/x"),
            ("http://localhost:9", "http://localhost:9"),
            ("https://[::1]:9", "https://[::1]:9"),
        ] {
            assert_eq!(ServiceOrigin::read(url, false).unwrap().to_string(), shown);
        }
        for (url, why) in [
            ("http://tracker.example", BadService::PlainHttp),
            ("http://10.0.0.1", BadService::PlainHttp),
            ("https://10.0.0.1", BadService::Private),
            ("https://169.254.169.254/latest", BadService::Private),
            ("https://[fd00::1]", BadService::Private),
            ("https://me:pw@a.test", BadService::More),
            ("https://a.test/?x=1", BadService::More),
            ("https://a.test/#x", BadService::More),
            ("ftp://a.test", BadService::Address),
            ("a.test", BadService::Address),
            ("https://\u{e4}.test", BadService::NotAscii),
            ("", BadService::Address),
        ] {
            assert_eq!(ServiceOrigin::read(url, false), Err(why), "{url}");
        }
        assert!(ServiceOrigin::read("https://10.0.0.1", true).is_ok());
    }

    #[test]
    fn a_request_goes_below_the_base() {
        let origin = ServiceOrigin::read("https://a.test/api", false).unwrap();
        assert_eq!(origin.uri("/v2/x%20y", Some("a=b")).unwrap().to_string(), "https://a.test/api/v2/x%20y?a=b");
        let any = ServiceOrigin::of_tunnels();
        assert_eq!(any.uri("/a.test:80/x/y", Some("a=b")).unwrap().to_string(), "http://a.test:80/x/y?a=b");
    }
}
