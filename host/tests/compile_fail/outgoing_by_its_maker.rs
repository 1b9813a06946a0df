//! A call made for a provider by the function that only the audit stage may use.

use footbridge::provider::{Outgoing, OutgoingRequest, ServerName};

fn made(server: ServerName, request: OutgoingRequest) -> Outgoing {
    Outgoing::new(server, request)
}

fn main() {}
