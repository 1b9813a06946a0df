//! A call made for a provider by the function that only the audit stage may use.

use std::sync::Arc;

use footbridge::{
    limits::Limits,
    provider::{Outgoing, OutgoingRequest, ServerName},
};

fn made(server: ServerName, request: OutgoingRequest, limits: Arc<Limits>) -> Outgoing {
    Outgoing::new(server, request, limits)
}

fn main() {}
