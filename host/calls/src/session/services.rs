//! What a session uses of services: how fast, how much at once, and how much in all.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use footbridge_core::{
    gate::{Effects, SessionRules, Subject},
    limits::{BudgetLimits, Limits},
    names::{ServerName, SessionName},
    service::TUNNELS,
};
use governor::{DefaultDirectRateLimiter, RateLimiter};
use tokio::{sync::Semaphore, time::timeout};

use super::{
    Place, Session, SessionSpec,
    over::{OverLimit, quota, within},
    spending::{BudgetOf, BudgetUse, BudgetsSpent, BytesUsed},
};

/// The rate of requests to services, and the places of those in flight.
pub(super) struct ServiceUse {
    rate: DefaultDirectRateLimiter,
    in_flight: Arc<Semaphore>,
    tunnels: Arc<Semaphore>,
    budget: Arc<Budget>,
}

/// What a session may use in all, and what it has.
#[derive(Debug)]
struct Budget {
    /// Whose it is.
    session: SessionName,
    requests: Count,
    tokens: Count,
    service_bytes: Count,
    tunnel_bytes: Count,
}

/// One of these budgets.
#[derive(Debug)]
struct Count {
    used: BytesUsed,
    /// Which an operator may change; 0 is none.
    limit: AtomicU64,
    /// Whether it was said that it is spent, since it was set.
    told: AtomicBool,
}

/// What one request to a service, or one tunnel, spends of the budget of its session. Clones are of the same request.
#[derive(Debug, Clone)]
pub struct Spending {
    budget: Arc<Budget>,
    is_tunnel: bool,
}

impl ServiceUse {
    /// Of a session with these limits, of its own or not.
    pub(super) fn new(spec: &SessionSpec, limits: &Limits) -> Self {
        let Limits { services, budget, .. } = limits;
        let rate = RateLimiter::direct(quota(services.per_second, services.burst));
        let places = |count| Arc::new(Semaphore::new(count));
        let (in_flight, tunnels) = (places(services.in_flight), places(services.tunnels));
        Self { rate, in_flight, tunnels, budget: Arc::new(Budget::new(spec, budget)) }
    }
}

impl Budget {
    fn new(spec: &SessionSpec, limits: &BudgetLimits) -> Self {
        let used = |of| BytesUsed::since(spec.spent.of(of));
        let count = |of| Count { used: used(of), limit: AtomicU64::new(0), told: AtomicBool::new(false) };
        let budget = Self {
            session: spec.name.clone(),
            requests: count(BudgetOf::Requests),
            tokens: count(BudgetOf::Tokens),
            service_bytes: count(BudgetOf::ServiceBytes),
            tunnel_bytes: count(BudgetOf::TunnelBytes),
        };
        budget.set(limits);
        budget
    }

    /// Gives it other limits, for whatever is counted from now on. Whether they are others.
    fn set(&self, limits: &BudgetLimits) -> bool {
        let BudgetLimits { requests, tokens, service_bytes, tunnel_bytes } = limits;
        let all = [
            (&self.requests, requests),
            (&self.tokens, tokens),
            (&self.service_bytes, service_bytes),
            (&self.tunnel_bytes, tunnel_bytes),
        ];
        all.map(|(count, limit)| count.set(u64::try_from(*limit).unwrap_or(u64::MAX))).contains(&true)
    }

    fn of(&self, of: BudgetOf) -> &Count {
        match of {
            BudgetOf::Requests => &self.requests,
            BudgetOf::Tokens => &self.tokens,
            BudgetOf::TunnelBytes => &self.tunnel_bytes,
            BudgetOf::ServiceBytes | BudgetOf::Arguments | BudgetOf::Results => &self.service_bytes,
        }
    }

    /// That one has less left than is asked for. That nothing is left is said in the log, once until it is another one.
    fn over(&self, of: BudgetOf) -> BudgetOf {
        let count = self.of(of);
        let limit = count.limit();
        if count.used.is_all_of(limit) && !count.told.swap(true, Ordering::Relaxed) {
            let (session, budget, spent) = (&self.session, of.word(), count.used.bytes());
            tracing::warn!(
                %session, spent, limit,
                "{budget} is spent: what needs some of it is refused. \"footbridge session limit {session} {budget}=...\" \
                 raises it"
            );
        }
        of
    }
}

impl Count {
    fn set(&self, limit: u64) -> bool {
        let is_another = self.limit.swap(limit, Ordering::Relaxed) != limit;
        if is_another {
            self.told.store(false, Ordering::Relaxed);
        }
        is_another
    }

    /// None where there is none.
    fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
    }
}

impl Spending {
    fn bytes_of(&self) -> BudgetOf {
        if self.is_tunnel { BudgetOf::TunnelBytes } else { BudgetOf::ServiceBytes }
    }

    fn count(&self, of: BudgetOf, more: u64) -> Result<(), BudgetOf> {
        let count = self.budget.of(of);
        if count.used.add(more, count.limit()) { Ok(()) } else { Err(self.budget.over(of)) }
    }

    /// Counts bytes that came from the guest, or are about to go to it.
    ///
    /// # Errors
    /// Where they are more than is left.
    pub fn bytes(&self, more: usize) -> Result<(), BudgetOf> {
        self.count(self.bytes_of(), u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// Whether the session has a budget of tokens.
    #[must_use]
    pub fn limits_tokens(&self) -> bool {
        self.budget.tokens.limit().is_some()
    }

    /// Counts tokens that an answer says were used.
    ///
    /// # Errors
    /// Where they are more than was left.
    pub fn tokens(&self, more: u64) -> Result<(), BudgetOf> {
        self.count(BudgetOf::Tokens, more)
    }

    /// Whether so many bytes could pass now. Nothing is counted.
    ///
    /// # Errors
    /// Where they are more than is left.
    pub fn covers(&self, bytes: u64) -> Result<(), BudgetOf> {
        let of = self.bytes_of();
        let count = self.budget.of(of);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if count.used.leaves(bytes, count.limit()) { Ok(()) } else { Err(self.budget.over(of)) }
    }

    /// Whether a request with a body of this length may be made now. Nothing is counted.
    pub(crate) fn covers_request(&self, length: Option<u64>) -> Result<(), BudgetOf> {
        for of in [BudgetOf::Requests, BudgetOf::Tokens, self.bytes_of()] {
            let count = self.budget.of(of);
            if count.used.is_all_of(count.limit()) {
                return Err(self.budget.over(of));
            }
        }
        self.covers(length.unwrap_or_default())
    }

    /// Counts a request.
    pub(crate) fn request(&self) -> Result<(), BudgetOf> {
        let count = &self.budget.requests;
        count.used.spend(1, count.limit()).map_err(|_| self.budget.over(BudgetOf::Requests))
    }

    /// Takes back what was counted for a request that was not made.
    pub(crate) fn give_back_request(&self) {
        self.budget.requests.used.give_back(1);
    }
}

impl Session {
    /// Gives it other budgets of what it uses of services; what is spent stays so. Whether they are others.
    pub(super) fn set_budgets(&self, limits: &BudgetLimits) -> bool {
        self.services.budget.set(limits)
    }

    /// Takes a place for a request to a service, or one for a tunnel, which are others.
    ///
    /// # Errors
    /// [`OverLimit`], at once for the rate, within [`footbridge_core::limits::CallLimits::busy_after`] for those in
    /// flight.
    pub(crate) async fn enter_service(&self, is_tunnel: bool) -> Result<Place, OverLimit> {
        within(&self.services.rate)?;
        self.enter_service_again(is_tunnel).await
    }

    /// Takes a place for a request that gave its place away while it waited for a person. It was counted before.
    ///
    /// # Errors
    /// [`OverLimit::Busy`].
    pub(crate) async fn enter_service_again(&self, is_tunnel: bool) -> Result<Place, OverLimit> {
        let places = if is_tunnel { &self.services.tunnels } else { &self.services.in_flight };
        let place = timeout(self.limits.calls.busy_after, Arc::clone(places).acquire_owned()).await;
        match place {
            Ok(Ok(session)) => Ok(Place { _session: session, _server: None }),
            _ => Err(OverLimit::Busy),
        }
    }

    /// How a budget is.
    #[must_use]
    pub fn spent(&self, of: BudgetOf) -> BudgetUse {
        let rules = self.rules();
        let settings = rules.policy().settings();
        let limit = match of {
            BudgetOf::Arguments => settings.argument_bytes,
            BudgetOf::Results => settings.result_bytes,
            of => self.services.budget.of(of).limit(),
        };
        BudgetUse { spent: self.used(of).bytes(), limit }
    }

    /// What was spent of each budget.
    #[must_use]
    pub fn all_spent(&self) -> BudgetsSpent {
        BudgetOf::ALL.into_iter().map(|of| (of, self.used(of).bytes())).collect()
    }

    fn used(&self, of: BudgetOf) -> &BytesUsed {
        match of {
            BudgetOf::Arguments => &self.arguments,
            BudgetOf::Results => &self.results,
            of => &self.services.budget.of(of).used,
        }
    }

    /// What a request to this service spends.
    pub(crate) fn spending(&self, service: &ServerName) -> Spending {
        Spending { budget: Arc::clone(&self.services.budget), is_tunnel: service.as_str() == TUNNELS }
    }

    /// The services that it may use: its own, and those that its policy has by now.
    #[must_use]
    pub fn services(&self) -> BTreeSet<ServerName> {
        self.spec.services.iter().chain(self.rules().services()).cloned().collect()
    }

    /// One of them.
    #[must_use]
    pub fn service(&self, name: &str) -> Option<ServerName> {
        let rules = self.rules();
        self.spec.services.iter().chain(rules.services()).find(|known| known.as_str() == name).cloned()
    }

    /// The services that it may know of: none of which all is hidden.
    #[must_use]
    pub(crate) fn visible_services(&self) -> Vec<ServerName> {
        let rules = self.rules();
        self.services().into_iter().filter(|name| shows(&rules, name)).collect()
    }

    /// Whether it may know of a service.
    #[must_use]
    pub fn sees_service(&self, service: &str) -> bool {
        self.service(service).is_some_and(|name| shows(&self.rules(), &name))
    }
}

/// Whether not all of a service is hidden.
fn shows(rules: &SessionRules, service: &ServerName) -> bool {
    rules.shows(&Subject::http(service.as_str(), "GET", "/", Effects::of_reading()))
}

#[cfg(test)]
mod tests {
    use footbridge_core::limits::CallLimits;

    use super::*;
    use crate::session::{LifeControl, tests::made};

    #[test]
    fn each_budget_is_counted_by_itself() {
        let limits = BudgetLimits { requests: 2, tokens: 10, service_bytes: 100, tunnel_bytes: 0 };
        let control = made("one", "fbt_x", CallLimits::default(), &LifeControl::new(None));
        let spec = SessionSpec { spent: BudgetsSpent::default(), ..control.session().spec().clone() };
        let budget = Arc::new(Budget::new(&spec, &limits));
        let spending = Spending { budget: Arc::clone(&budget), is_tunnel: false };
        assert_eq!((spending.request(), spending.covers_request(Some(100))), (Ok(()), Ok(())));
        assert_eq!(spending.covers_request(Some(101)), Err(BudgetOf::ServiceBytes));
        assert_eq!((spending.bytes(60), spending.bytes(41)), (Ok(()), Err(BudgetOf::ServiceBytes)));
        assert_eq!(spending.covers_request(None), Err(BudgetOf::ServiceBytes));
        let tunnel = Spending { budget: Arc::clone(&budget), is_tunnel: true };
        assert_eq!((tunnel.bytes(1 << 40), tunnel.covers_request(None)), (Ok(()), Ok(())));
        assert_eq!((tunnel.tokens(10), tunnel.covers_request(None)), (Ok(()), Err(BudgetOf::Tokens)));
        assert_eq!((tunnel.request(), tunnel.request()), (Ok(()), Err(BudgetOf::Requests)));
        tunnel.give_back_request();
        assert_eq!(spending.request(), Ok(()));
        // With more of all of them, what is spent stays so.
        let more = BudgetLimits { requests: 3, tokens: 11, service_bytes: 102, tunnel_bytes: 1 };
        assert_eq!((budget.set(&limits), budget.set(&more), budget.set(&more)), (false, true, false));
        assert_eq!((spending.covers_request(Some(1)), spending.request()), (Ok(()), Ok(())));
        assert_eq!((spending.request(), spending.tokens(1)), (Err(BudgetOf::Requests), Ok(())));
        assert_eq!(tunnel.bytes(0), Err(BudgetOf::TunnelBytes));
        assert_eq!(tunnel.tokens(1), Err(BudgetOf::Tokens));
    }
}
