//! Requests to services: what was found out about one, without any catalogue.

use std::sync::Arc;

use super::{ResolvedCall, Unresolved};
use crate::{
    auth::Principal,
    cause::Cause,
    request::{OutgoingRequest, Target},
    service_call::{HeldRequest, ServiceCall},
};
use footbridge_core::{
    gate::{Effects, Subject, Tested},
    names::ServerName,
};

impl ResolvedCall {
    /// A request to a service that takes it.
    ///
    /// # Errors
    /// Both again, where a rule hides it.
    pub(crate) fn to_service(
        principal: Principal,
        server: ServerName,
        call: ServiceCall,
        effects: Effects,
    ) -> Result<Self, Box<(Principal, ServiceCall)>> {
        let rules = principal.session().rules();
        let subject = Subject::http(server.as_str(), call.method(), call.path().as_written(), effects);
        if !rules.shows(&subject) {
            return Err(Box::new((principal, call)));
        }
        let arguments = call.digest();
        Ok(Self {
            principal,
            server,
            // Bodies count when they pass.
            argument_bytes: 0,
            arguments,
            request: OutgoingRequest::Service(Box::new(call)),
            rules: Arc::clone(&rules),
            effects,
            tested: Tested::default(),
            tool: None,
            meta: None,
        })
    }

    /// The same, with the body that was read of it.
    pub(crate) fn with_body(mut self, held: &HeldRequest) -> Self {
        if let OutgoingRequest::Service(call) = self.request {
            let call = call.holding(held);
            self.arguments = call.digest();
            self.request = OutgoingRequest::Service(Box::new(call));
        }
        self
    }

    /// What is left of it where it cannot be decided about.
    pub(crate) fn unresolved(self, cause: Cause) -> Unresolved {
        let name = self.request.subject().to_owned();
        let is_tunnel = matches!(&self.request, OutgoingRequest::Service(call) if call.is_tunnel());
        let target = if is_tunnel { Target::Tunnel(name) } else { Target::Service(name) };
        Unresolved { principal: self.principal, server: self.server.to_string(), target, cause }
    }
}
