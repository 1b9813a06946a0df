//! A provider called with no admission.

use footbridge::provider::{CallContext, Outgoing, OutgoingRequest, ServerName, ToolProvider};

async fn by_hand(provider: &dyn ToolProvider, server: ServerName, request: OutgoingRequest, context: CallContext) {
    provider.call(Outgoing { server, request }, context).await;
}

fn main() {}
