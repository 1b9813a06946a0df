//! A proxy that the operator names, on the way to an origin or to the hosts of tunnels.
//!
//! It is asked for a tunnel (CONNECT), so TLS goes through it from end to end. Its own name may lead to a private address,
//! since the operator wrote it; the names of origins are the proxy's to resolve, and what they lead to is the proxy's to
//! allow.

use std::fmt;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

/// What is written is no proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an http: address such as http://proxy.example:3128, with a user and a password at most")]
pub struct BadProxy;

/// Where a proxy is, and what it is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceProxy {
    pub(crate) address: Uri,
    pub(crate) credential: Option<HeaderValue>,
}

/// Nothing of the credential.
impl fmt::Debug for ServiceProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceProxy").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ServiceProxy {
    /// Reads an address, perhaps with a user and a password.
    ///
    /// # Errors
    /// [`BadProxy`], which holds nothing of it.
    pub fn read(text: &str) -> Result<Self, BadProxy> {
        let written: Uri = text.parse().map_err(|_| BadProxy)?;
        let is_whole = written.scheme_str() == Some("http") && written.host().is_some_and(|host| !host.is_empty());
        if !is_whole || !matches!(written.path(), "" | "/") || written.query().is_some() || text.contains('#') {
            return Err(BadProxy);
        }
        let any = Uri::from_static("https://origin.test");
        let found = Matcher::builder().all(text).build().intercept(&any).ok_or(BadProxy)?;
        let authority = written.authority().map(|all| all.as_str()).unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let address = format!("http://{host}").parse().map_err(|_| BadProxy)?;
        let mut credential = found.basic_auth().cloned();
        if let Some(credential) = &mut credential {
            credential.set_sensitive(true);
        }
        Ok(Self { address, credential })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_an_address_with_a_user_at_most() {
        for (text, address, credential) in [
            ("http://proxy.test:3128", "http://proxy.test:3128/", None),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/", None),
            ("http://me:p%40ss@proxy.test:3128", "http://proxy.test:3128/", Some("Basic bWU6cEBzcw==")),
        ] {
            let proxy = ServiceProxy::read(text).unwrap();
            let shown = proxy.credential.as_ref().map(|value| value.to_str().unwrap());
            assert_eq!((&*proxy.address.to_string(), shown), (address, credential), "{text}");
            assert!(!format!("{proxy:?}").contains("bWU6"), "{proxy:?}");
        }
        for text in
            ["", "proxy.test:3128", "https://proxy.test", "socks5://proxy.test", "http://proxy.test/x", "http://a#b"]
        {
            assert_eq!(ServiceProxy::read(text), Err(BadProxy), "{text}");
        }
    }
}
