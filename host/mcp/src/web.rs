//! The HTTP client of addresses that the operator configured: MCP servers, and whoever is asked for approvals.
//!
//! TLS is verified, plain HTTP goes to loopback only, no redirect is followed and nothing is sent twice.

use std::{error::Error, time::Duration};

use http::{HeaderMap, HeaderValue};

use super::{
    HttpSpec,
    address::{self, BadAddress},
    tls,
};

/// A client, and the headers that go with each request of it.
#[derive(Debug, Clone)]
pub struct Web {
    /// Sends requests.
    pub client: reqwest::Client,
    /// They hold credentials.
    pub headers: HeaderMap,
}

impl Web {
    /// A client for one address, if it may be used. The headers `ours` are set with each request and cannot be
    /// configured.
    ///
    /// # Errors
    /// [`BadAddress`].
    pub fn new(spec: &HttpSpec, ours: &[&str], connect_time: Duration) -> Result<Self, BadAddress> {
        let local = address::check(&spec.url)?;
        tls::install();
        let mut headers = HeaderMap::new();
        for (name, value) in &spec.headers {
            let refused = || BadAddress::Header(name.to_string());
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| refused())?;
            value.set_sensitive(true);
            if ours.contains(&name.as_str()) {
                return Err(refused());
            }
            headers.append(name.clone(), value);
        }
        let builder = reqwest::Client::builder()
            .connect_timeout(connect_time)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .dns_resolver(address::resolver(spec.url.host_str().unwrap_or_default(), spec.allow_private))
            .user_agent(concat!("footbridge/", env!("CARGO_PKG_VERSION")));
        let builder = if local { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|error| BadAddress::Client(error.without_url()))?;
        Ok(Self { client, headers })
    }
}

/// An error with what caused it; without the address.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
