//! One admission for two calls, by a provider that hands them on.

use footbridge_calls::provider::{CallContext, Outgoing, ToolProvider};

async fn twice(provider: &dyn ToolProvider, outgoing: Outgoing, context: CallContext) {
    provider.call(outgoing, context.clone()).await;
    provider.call(outgoing, context).await;
}

fn main() {}
