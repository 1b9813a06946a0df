//! A call made for a provider by the function that only the audit stage may use.

use std::sync::Arc;

use footbridge_core::limits::Limits;
use footbridge_calls::{provider::Outgoing, request::OutgoingRequest};
use footbridge_core::names::ServerName;

fn made(server: ServerName, request: OutgoingRequest, limits: Arc<Limits>) -> Outgoing {
    Outgoing::new(server, request, limits)
}

fn main() {}
