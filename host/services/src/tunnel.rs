//! Tunnels: bytes to a host that the operator allows, encrypted from end to end, without a credential of the host's.
//!
//! What goes through begins with a TLS ClientHello that names the host that was allowed: so a tunnel to one name is none
//! to another behind the same address. It does not keep an allowed host from being a way out.

use std::{collections::BTreeMap, sync::Arc};

use footbridge_calls::{
    cause::Cause,
    provider::{NotSent, Outcome, Outgoing, Unanswered},
    service::{BegunAnswer, Forward, HeldRequest, KnownService, OpenExchange, ShownBody},
};
use footbridge_core::{
    budget::Share,
    digest::Digest,
    limits::{Limits, ServiceLimits},
    redact::Redactor,
};
use futures::future::BoxFuture;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    carried::{Carried, CarryOver},
    connect::{Way, connected},
    no_connection::NoConnection,
    origin_stream::OriginStream,
    service::asked_of,
    services::Services,
};

/// Opens tunnels, where [`Services`] itself carries requests.
#[derive(Clone)]
pub struct Tunnels(pub Services);

/// A tunnel to a host, that nothing went through yet.
#[derive(Debug)]
pub struct Tunnel {
    carried: Carried<OriginStream>,
    exchange: Option<OpenExchange>,
}

impl BegunAnswer for Tunnel {
    fn recorded_by(&mut self, exchange: OpenExchange) {
        self.exchange = Some(exchange);
    }
}

impl Forward for Tunnels {
    type Parcel = ();
    type Answer = Tunnel;

    fn known(&self, service: &str) -> Option<KnownService> {
        self.0.known(service)
    }

    fn hold<'a>(&'a self, _: &'a mut (), _: &'a Share, _: usize) -> BoxFuture<'a, Result<HeldRequest, Cause>> {
        let (headers, shown) = (BTreeMap::new(), ShownBody::of(b""));
        let nothing = HeldRequest { headers, digest: Digest::of(""), bytes: 0, shown };
        Box::pin(std::future::ready(Ok(nothing)))
    }

    async fn send(&self, outgoing: Outgoing, (): (), cancel: &CancellationToken) -> Result<Tunnel, Unanswered> {
        let gone = Outcome::not_offered(outgoing.server());
        let limits: Arc<Limits> = outgoing.limits();
        let way = self.0.way(outgoing.server().as_str(), outgoing.session(), &limits.services);
        let Some((way, revision)) = way else { return Err(gone.into()) };
        let spending = outgoing.spending().cloned();
        let (_, request) = outgoing.into_parts();
        let call = asked_of(revision, request, || gone)?;
        let authority = call.path().as_written().trim_start_matches('/').to_owned();
        // Until there is a tunnel nothing of its guest's has left.
        let opened = cancel.run_until_cancelled(opened(way, &authority, &limits.services)).await;
        let tunnel = opened.ok_or(Outcome::NotSent(NotSent::Cancelled))?;
        tunnel.map(|carried| Tunnel { carried: Carried { spending, ..carried }, exchange: None }).map_err(|why| {
            self.0.has_no_tunnel(&authority, why);
            Outcome::NotSent(why.not_sent(format_args!("\"{authority}\""))).into()
        })
    }
}

async fn opened(way: Way, authority: &str, limits: &ServiceLimits) -> Result<Carried<OriginStream>, NoConnection> {
    let since = Instant::now();
    let stream = connected(way, authority).await?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host).to_owned();
    Ok(Carried {
        stream,
        greets: Some(host),
        status: 200,
        first_byte_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
        limits: limits.clone(),
        until: None,
        spending: None,
        is_of_model: false,
        redactor: Redactor::default(),
    })
}

impl Tunnel {
    /// Carries what comes and goes until both sides are done, or `over` is, and records what became of it.
    pub async fn carry<C>(self, client: C, over: impl Future<Output = CarryOver>)
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(exchange) = self.exchange else { return };
        self.carried.carry(client, exchange, over).await;
    }
}
