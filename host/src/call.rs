//! The life of one call.
//!
//! Each stage takes what only the one before can make. Leaving a stage out does not build.

use footbridge_proto::{rpc::ErrorObject, wire::CheckedCall};
use tokio_util::sync::CancellationToken;

use crate::{
    audit::{Audit, Reply},
    auth::Principal,
    gate,
    provider::Upstream,
    resolve::{CallRequest, Resolver, Unresolved},
    session::OverLimit,
    watcher::Watcher,
};

/// The stages that a call goes through.
#[derive(Clone)]
pub struct Stages {
    /// Finds what a request names.
    pub resolver: Resolver,
    /// Records.
    pub audit: Audit,
    /// Carries out.
    pub upstream: Upstream,
}

impl Stages {
    /// Takes a call from its request to its reply. `cancel` ends it wherever it is, upstream too.
    pub async fn call(
        &self,
        principal: Principal,
        request: CallRequest,
        watcher: &Watcher,
        cancel: &CancellationToken,
    ) -> Reply {
        let servers = self.resolver.servers(&principal.session().reach());
        let server = servers.iter().find(|name| name.as_str() == request.server);
        let left = Unresolved::left(principal.clone(), &request);
        let _place = tokio::select! {
            entered = principal.session().enter(server) => match entered {
                Ok(place) => place,
                Err(over) => return self.audit.over_limit(&principal, over),
            },
            () = cancel.cancelled() => return self.audit.refuse(left).await,
        };
        let call = tokio::select! {
            resolved = self.resolver.resolve(principal.clone(), request) => match resolved {
                Ok(call) => call,
                Err(unresolved) => return self.audit.refuse(*unresolved).await,
            },
            () = cancel.cancelled() => return self.audit.refuse(left).await,
        };
        let verdict = gate::decide(call);
        let admitted = match self.audit.admit(verdict).await {
            Ok(admitted) => admitted,
            Err(reply) => return reply,
        };
        let executed = match watcher.events() {
            Some(events) => self.upstream.execute_watched(admitted, cancel, events).await,
            None => self.upstream.execute(admitted, cancel).await,
        };
        self.audit.close_call(executed).await
    }

    /// What the gate would say of a call. It counts as one against the rate, and nothing is sent or recorded.
    ///
    /// # Errors
    /// What the call itself would be answered by then.
    pub async fn check(&self, principal: Principal, request: CallRequest) -> Result<CheckedCall, ErrorObject> {
        let servers = self.resolver.servers(&principal.session().reach());
        let server = servers.iter().find(|name| name.as_str() == request.server);
        let session = principal.clone();
        let _place = session.session().enter(server).await.map_err(OverLimit::into_error)?;
        let call = self.resolver.resolve(principal, request).await.map_err(|unresolved| unresolved.error)?;
        let verdict = gate::decide(call);
        let shown = verdict.policy().settings().reveal_rules;
        Ok(CheckedCall {
            decision: verdict.decision().as_str().to_owned(),
            policy: shown.then(|| verdict.policy().name().to_owned()),
            rule: verdict.rule().filter(|_| shown).map(str::to_owned),
        })
    }
}
