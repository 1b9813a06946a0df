//! A provider called with no admission.

use footbridge_calls::{provider::{CallContext, Outgoing, ToolProvider}, request::OutgoingRequest};
use footbridge_core::names::ServerName;

async fn by_hand(provider: &dyn ToolProvider, server: ServerName, request: OutgoingRequest, context: CallContext) {
    provider.call(Outgoing { server, request }, context).await;
}

fn main() {}
