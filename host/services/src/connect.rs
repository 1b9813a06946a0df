//! Where connections to a service may lead: what its name leads to is looked at where it is resolved, and an address that
//! is written out before it is dialled. Where the operator names a proxy, that alone is dialled.

use std::{
    error::Error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use footbridge_core::{
    hosts::{address, is_public},
    limits::ServiceLimits,
};
use footbridge_outbound::{CheckedResolver, Lookup, tcp, tls};
use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::proxy::Tunnel, rt::TokioIo};
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use tower_service::Service;

use crate::{
    heard_out::HeardOut,
    no_connection::NoConnection,
    origin_stream::{EndsAtOnce, Meter, OriginStream},
    proxy::ServiceProxy,
    shares::{LookupWithin, Shares},
    spec::ServiceSpec,
    windows::unanswered,
};

/// What connections of a harness are made with. Clones share it.
#[derive(Clone)]
pub(crate) struct Dialling {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) shares: Arc<Shares>,
    /// How long one may take.
    pub(crate) time: Duration,
    /// After how long one ends whose other end takes nothing any more.
    pub(crate) silence: Duration,
    /// How much may come over one that is of no answer, bytes.
    pub(crate) unanswered: u64,
}

impl Dialling {
    /// The same, within the limits of a session.
    pub(crate) fn within(&self, limits: &ServiceLimits) -> Self {
        Self { silence: limits.silence_time, unanswered: unanswered(limits), ..self.clone() }
    }
}

/// Connects to one service: resolved, checked, dialled and, but for loopback, encrypted within a time. Clones share it: each
/// request makes some.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Connecting>);

struct Connecting {
    inner: HttpsConnector<Way>,
    way: Way,
    tls: ClientConfig,
    protocols: Protocols,
}

/// What is spoken over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// HTTP/2 where the origin offers it.
    All,
    /// HTTP/1.1 alone.
    Http1,
}

impl Connector {
    /// For a service.
    ///
    /// # Errors
    /// Where the certificates of the machine cannot be read.
    pub(crate) fn new(spec: &ServiceSpec, dialling: &Dialling, protocols: Protocols) -> Result<Self, rustls::Error> {
        let tls = tls(&spec.authorities, spec.origin.is_tls)?;
        Ok(Self::by(Way::to(spec, dialling, None), tls, protocols))
    }

    fn by(way: Way, tls: ClientConfig, protocols: Protocols) -> Self {
        let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        let https = https.enable_http1();
        let inner = match protocols {
            Protocols::All => https.enable_http2().wrap_connector(way.clone()),
            Protocols::Http1 => https.wrap_connector(way.clone()),
        };
        Self(Arc::new(Connecting { inner, way, tls, protocols }))
    }

    /// The same, whose names are looked up for a session, within its limits.
    pub(crate) fn of(&self, session: u64, limits: &ServiceLimits) -> Self {
        Self::by(self.0.way.of(session, limits), self.0.tls.clone(), self.0.protocols)
    }
}

/// The way to one origin, or to the hosts of tunnels.
#[derive(Clone)]
pub(crate) struct Way {
    dialling: Dialling,
    proxy: Option<ServiceProxy>,
    /// Whether names may lead to private addresses.
    allow_private: bool,
    /// Whether addresses that are written out may be private. That of a service was looked at when it was read.
    allow_any: bool,
    session: Option<u64>,
}

impl Way {
    /// To a service, for a session; for an operator where that is none.
    pub(crate) fn to(spec: &ServiceSpec, dialling: &Dialling, session: Option<u64>) -> Self {
        Self {
            dialling: dialling.clone(),
            proxy: spec.proxy.clone(),
            allow_private: spec.allow_private,
            allow_any: spec.allow_private || spec.origin.authority.is_some(),
            session,
        }
    }

    fn of(&self, session: u64, limits: &ServiceLimits) -> Self {
        Self { session: Some(session), dialling: self.dialling.within(limits), ..self.clone() }
    }

    /// Whether it leads to an address that is written out, for which no name is resolved, and is not public.
    fn is_refused(&self, uri: &Uri) -> bool {
        !self.allow_any && uri.host().and_then(address).is_some_and(|ip| !is_public(ip))
    }

    async fn dialled(self, address: Uri) -> Result<TcpStream, Box<dyn Error + Send + Sync>> {
        if self.is_refused(&address) {
            return Err(NoConnection::Private.into());
        }
        let Dialling { lookup, shares, time, .. } = &self.dialling;
        let lookup = Arc::new(LookupWithin { lookup: Arc::clone(lookup), share: shares.of(self.session) });
        // How long the other end may take nothing is counted by the stream itself.
        let mut tcp = tcp(CheckedResolver { lookup, allow_private: self.allow_private || self.proxy.is_some() }, *time);
        let Some(proxy) = &self.proxy else {
            return Ok(tcp.call(address).await?.into_inner());
        };
        let tunnel = Tunnel::new(proxy.address.clone(), tcp);
        let mut tunnel = match &proxy.credential {
            Some(credential) => tunnel.with_auth(credential.clone()),
            None => tunnel,
        };
        let through = tunnel.call(address).await.map_err(|error| {
            tracing::debug!(%error, "a proxy");
            NoConnection::Proxy
        })?;
        Ok(through.into_inner())
    }
}

impl Service<Uri> for Way {
    type Response = TokioIo<OriginStream>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let way = self.clone();
        Box::pin(async move {
            let place = way.dialling.shares.of(way.session).place().ok_or(NoConnection::TooMany)?;
            let (meter, silence) = (Meter::new(way.dialling.unanswered), way.dialling.silence);
            Ok(TokioIo::new(OriginStream::new(way.dialled(address).await?, meter, silence, place)))
        })
    }
}

/// A connection to a host and port, whose address was looked at.
pub(crate) async fn connected(mut way: Way, authority: &str) -> Result<OriginStream, NoConnection> {
    let time = way.dialling.time;
    let address = format!("http://{authority}").parse().map_err(|_| NoConnection::Name)?;
    let connected = timeout(time, way.call(address)).await.map_err(|_| NoConnection::TooSlow)?;
    Ok(connected.map_err(|error| NoConnection::of(&*error))?.into_inner().unmetered())
}

impl Service<Uri> for Connector {
    type Response = EndsAtOnce<HeardOut<MaybeHttpsStream<TokioIo<OriginStream>>>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // As a way is.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let Dialling { time, silence, .. } = self.0.way.dialling;
        let connecting = timeout(time, self.0.inner.clone().call(address));
        Box::pin(async move {
            let connected = connecting.await.unwrap_or_else(|_| Err(NoConnection::TooSlow.into()))?;
            Ok(EndsAtOnce(HeardOut::new(connected, silence)))
        })
    }
}

#[cfg(test)]
mod tests {
    use footbridge_outbound::SystemLookup;

    use super::*;

    #[test]
    fn connections_of_a_session_are_within_its_own_limits() {
        let spec = crate::request::tests::spec();
        let (lookup, shares) = (Arc::new(SystemLookup), Arc::new(Shares::new(1)));
        let time = Duration::from_secs(1);
        let dialling = Dialling { lookup, shares, time, silence: time, unanswered: 1 };
        let limits = ServiceLimits { silence_time: Duration::from_secs(7), in_flight: 64, ..ServiceLimits::default() };
        let connector = Connector::new(&spec, &dialling, Protocols::All).unwrap().of(3, &limits);
        let Dialling { time: connects, silence, unanswered: may_come, .. } = connector.0.way.dialling;
        assert_eq!((connects, silence, may_come), (time, limits.silence_time, unanswered(&limits)));
        assert!(may_come > unanswered(&ServiceLimits::default()));
    }
}
