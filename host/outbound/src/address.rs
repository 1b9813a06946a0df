//! Which address an MCP server over HTTP, or a webhook, may have.
//!
//! Plain HTTP goes to loopback only. A name may not lead to a private address unless the operator allowed it, see
//! [`CheckedResolver`](crate::CheckedResolver); an address written out in the URL is what the operator meant.

use footbridge_core::{hosts::is_loopback, secret::Secret};
use http::{HeaderName, HeaderValue};
use url::Url;

/// A URL to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSpec {
    /// `https:`, or `http:` to a loopback address.
    pub url: Url,
    /// Headers of every request.
    pub headers: Vec<(HeaderName, Secret)>,
    /// Whether a name may resolve to a private address. An address written in the URL is allowed as written.
    pub allow_private: bool,
}

/// Why a URL is refused before anything is sent.
#[derive(Debug, thiserror::Error)]
pub enum BadAddress {
    /// Unencrypted to another machine.
    #[error("plain http: is allowed to a loopback address only; use https:")]
    PlainHttp,
    /// Something else than HTTP.
    #[error("the URL's scheme is {0:?}; use https:, or http: to a loopback address")]
    Scheme(String),
    /// Credentials would show in logs.
    #[error("the URL holds a user name or a password; put them into a header")]
    Credentials,
    /// A header cannot be sent.
    #[error("the header {0:?} has a value that no header may have, such as one with a line break")]
    Header(String),
    /// A header is the client's own.
    #[error("the header {0:?} is set here and cannot be another's: leave it out")]
    OwnHeader(String),
    /// It is a URL, but none that HTTP can ask for.
    #[error("the URL cannot be asked for over HTTP: {0}")]
    Uri(#[source] http::uri::InvalidUri),
    /// Nothing to check certificates with.
    #[error("TLS cannot be spoken: {0}")]
    Tls(#[from] rustls::Error),
}

impl HttpSpec {
    /// Whether a URL may be the one to call.
    ///
    /// # Errors
    /// [`BadAddress`], which does not hold the URL.
    pub fn check_url(url: &Url) -> Result<(), BadAddress> {
        check(url).map(drop)
    }

    /// A header's value as it is sent, unless it cannot be, or the client sets a header of this name itself.
    ///
    /// # Errors
    /// [`BadAddress`], which does not hold the value.
    pub fn header_value(name: &HeaderName, value: &Secret, ours: &[&str]) -> Result<HeaderValue, BadAddress> {
        if ours.contains(&name.as_str()) {
            return Err(BadAddress::OwnHeader(name.to_string()));
        }
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| BadAddress::Header(name.to_string()))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Checks a URL, and says whether it leads to this machine.
pub(crate) fn check(url: &Url) -> Result<bool, BadAddress> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadAddress::Credentials);
    }
    let local = url.host_str().is_some_and(is_loopback);
    match url.scheme() {
        "https" => Ok(local),
        "http" if local => Ok(true),
        "http" => Err(BadAddress::PlainHttp),
        other => Err(BadAddress::Scheme(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_goes_to_loopback_only() {
        for (url, local) in [
            ("http://127.0.0.1:3000/mcp", Some(true)),
            ("http://[::1]:3000/mcp", Some(true)),
            ("http://localhost/mcp", Some(true)),
            ("http://a.localhost/mcp", Some(true)),
            ("https://example.com/mcp", Some(false)),
            ("http://example.com/mcp", None),
            ("http://10.0.0.1/mcp", None),
            ("http://localhost.example.com/mcp", None),
            ("ftp://127.0.0.1/", None),
            ("https://user:secret@example.com/", None),
        ] {
            assert_eq!(check(&Url::parse(url).unwrap()).ok(), local, "{url}");
        }
    }
}
