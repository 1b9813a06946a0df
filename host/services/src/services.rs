//! All services of one harness, and what carries admitted requests to them.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use footbridge_calls::{
    cause::Cause,
    provider::{Outcome, Outgoing, Unanswered},
    service::{Forward, HeldRequest, KnownService},
};
use footbridge_core::{budget::Share, limits::ServiceLimits, names::ServerName, service::TUNNELS};
use footbridge_outbound::{Lookup, SystemLookup};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::{
    answer::ServiceAnswer,
    client::most_idle,
    connect::{Connector, Dialling, Protocols, Way, connected},
    no_connection::NoConnection,
    request::Parcel,
    service::Service,
    shape::ErrorShape,
    shares::Shares,
    spec::ServiceSpec,
    windows::unanswered,
};

/// All services. Clones share them.
#[derive(Clone)]
pub struct Services(Arc<Inner>);

struct Inner {
    all: RwLock<BTreeMap<String, Arc<Service>>>,
    dialling: Dialling,
    /// Connections that are kept idle of one session and service, at most.
    most_idle: usize,
}

/// What a new configuration changed, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServicesChanged {
    /// Services that are new.
    pub added: Vec<ServerName>,
    /// Services that are gone.
    pub removed: Vec<ServerName>,
    /// Services that are something else than before.
    pub changed: Vec<ServerName>,
}

impl ServicesChanged {
    fn between(before: &BTreeMap<String, Arc<Service>>, now: &BTreeMap<String, Arc<Service>>) -> Self {
        let names = |all: &BTreeMap<String, Arc<Service>>, is_it: &dyn Fn(&str, &Arc<Service>) -> bool| {
            let those = all.iter().filter(|(name, service)| is_it(name, service));
            those.map(|(_, service)| service.spec.name.clone()).collect()
        };
        Self {
            added: names(now, &|name, _| !before.contains_key(name)),
            removed: names(before, &|name, _| !now.contains_key(name)),
            changed: names(now, &|name, service| before.get(name).is_some_and(|old| !Arc::ptr_eq(old, service))),
        }
    }
}

/// Whether something can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCheck {
    /// The service's name, or the host and port of a tunnel.
    pub what: String,
    /// Why not; nothing of a pattern that stands for many hosts.
    pub found: Option<Result<(), NoConnection>>,
}

/// Whether a host of tunnels takes connections.
async fn reachable(services: &Services, authority: &str) -> Result<(), NoConnection> {
    let service = services.get(TUNNELS).ok_or(NoConnection::Name)?;
    connected(Way::to(&service.spec, &services.0.dialling, None), authority).await.map(drop)
}

impl Services {
    /// These services, to which there may be so many connections, and whose names the system resolves.
    #[must_use]
    pub fn new(specs: Vec<ServiceSpec>, limits: &ServiceLimits, connections: usize) -> Self {
        Self::resolving(specs, limits, connections, Arc::new(SystemLookup))
    }

    /// These services, whose names are resolved like this.
    #[must_use]
    pub fn resolving(
        specs: Vec<ServiceSpec>,
        limits: &ServiceLimits,
        connections: usize,
        lookup: Arc<dyn Lookup>,
    ) -> Self {
        let dialling = Dialling {
            lookup,
            shares: Arc::new(Shares::new(connections)),
            time: limits.connect_time,
            silence: limits.silence_time,
            unanswered: unanswered(limits),
        };
        let (all, most_idle) = (RwLock::default(), most_idle(connections));
        let services = Self(Arc::new(Inner { all, dialling, most_idle }));
        services.replace(specs);
        services
    }

    /// Takes these instead. Those that are as they were keep their connections; requests that run go on. One whose
    /// credential cannot be read any more keeps the one that it had.
    pub fn replace(&self, specs: Vec<ServiceSpec>) -> ServicesChanged {
        // Certificates are read for those that are new: requests do not wait for that.
        let before = self.0.all.read().unwrap_or_else(PoisonError::into_inner).clone();
        let kept = |spec: ServiceSpec| {
            let before = before.get(spec.name.as_str());
            let spec = match before {
                Some(before) => spec.with_credential_of(&before.spec),
                None => spec,
            };
            let name = spec.name.to_string();
            match before {
                Some(same) if same.spec == spec => Some((name, Arc::clone(same))),
                _ => match Service::new(spec, &self.0.dialling, self.0.most_idle) {
                    Ok(service) => Some((name, Arc::new(service))),
                    Err(error) => {
                        tracing::error!(service = %name, %error, "this service cannot be used: its certificates cannot be read");
                        None
                    }
                },
            }
        };
        let now: BTreeMap<String, Arc<Service>> = specs.into_iter().filter_map(kept).collect();
        let changed = ServicesChanged::between(&before, &now);
        *self.0.all.write().unwrap_or_else(PoisonError::into_inner) = now;
        changed
    }

    fn get(&self, name: &str) -> Option<Arc<Service>> {
        self.0.all.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// What a service is; none where there is none of this name.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<ServiceSpec> {
        self.get(name).map(|service| service.spec.clone())
    }

    /// Connects to a service, or to each host that tunnels may lead to, and says why that fails. Nothing is asked of it.
    pub async fn check(&self, name: &str) -> Vec<HostCheck> {
        let Some(service) = self.get(name).filter(|_| name == TUNNELS) else {
            return vec![HostCheck { what: name.to_owned(), found: Some(self.check_one(name).await) }];
        };
        let mut all = Vec::new();
        for pattern in service.spec.rules.requests.iter().flatten() {
            let host = pattern.path().trim_start_matches('/').trim_end_matches("/**");
            let found = if host.starts_with("*.") { None } else { Some(reachable(self, host).await) };
            all.push(HostCheck { what: host.to_owned(), found });
        }
        all
    }

    async fn check_one(&self, name: &str) -> Result<(), NoConnection> {
        let Some(service) = self.get(name) else { return Err(NoConnection::Name) };
        let connector = Connector::new(&service.spec, &self.0.dialling, Protocols::All);
        let mut connector = connector.map_err(|_| NoConnection::Certificate)?;
        let address = service.spec.origin.uri("/", None).map_err(|_| NoConnection::Name)?;
        connector.call(address).await.map(drop).map_err(|error| NoConnection::of(&*error))
    }

    /// The way to what a service leads to, and which one of its name that is.
    pub(crate) fn way(&self, name: &str, session: u64, limits: &ServiceLimits) -> Option<(Way, u64)> {
        let service = self.get(name)?;
        Some((Way::to(&service.spec, &self.0.dialling.within(limits), Some(session)), service.revision))
    }

    /// Tells the operator that a tunnel could not be opened.
    pub(crate) fn has_no_tunnel(&self, authority: &str, why: NoConnection) {
        if let Some(service) = self.get(TUNNELS) {
            service.told.no_connection(TUNNELS, &authority, why);
        }
    }

    /// The shape of errors that clients of a service expect.
    #[must_use]
    pub fn shape(&self, name: &str) -> ErrorShape {
        self.get(name).map(|service| service.spec.shape).unwrap_or_default()
    }
}

impl Forward for Services {
    type Parcel = Parcel;
    type Answer = ServiceAnswer;

    fn known(&self, service: &str) -> Option<KnownService> {
        let known = |service: Arc<Service>| {
            let (rules, revision) = (Arc::clone(&service.spec.rules), service.revision);
            KnownService { rules, revision }
        };
        self.get(service).map(known)
    }

    fn hold<'a>(
        &'a self,
        parcel: &'a mut Parcel,
        room: &'a Share,
        limit: usize,
    ) -> BoxFuture<'a, Result<HeldRequest, Cause>> {
        let headers = parcel.headers_that_matter();
        Box::pin(async move { Ok(HeldRequest { headers, ..parcel.body.hold(room, limit).await? }) })
    }

    fn send(
        &self,
        outgoing: Outgoing,
        parcel: Parcel,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<ServiceAnswer, Unanswered>> + Send {
        // Here, since a future has room for all that it is given.
        let gone = || Outcome::not_offered(outgoing.server());
        let service = self.get(outgoing.server().as_str()).ok_or_else(gone);
        let ready = service.and_then(|service| service.make_ready(outgoing, parcel));
        async move { ready?.send(cancel).await }
    }
}
