//! Asking a stateless server (2026-07-28) to say when its listings change. Older servers say so unasked.
//!
//! The notices themselves end in the interceptor. A server that refuses or ends the subscription is left in peace: its
//! listing is fresh again after its next start.

use rmcp::model::SubscriptionFilter;

use super::live::Live;

/// Holds a subscription for as long as it is polled. Never ends.
pub(super) async fn subscribe(live: Live) {
    let wanted = live.peer.peer_info().and_then(|info| {
        let tools = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true);
        let resources = info.capabilities.resources.as_ref().and_then(|r| r.list_changed) == Some(true);
        let prompts = info.capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed) == Some(true);
        (live.is_stateless() && (tools || resources || prompts)).then_some((tools, resources, prompts))
    });
    if let Some((tools, resources, prompts)) = wanted {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = tools.then_some(true);
        filter.resources_list_changed = resources.then_some(true);
        filter.prompts_list_changed = prompts.then_some(true);
        match live.peer.listen(filter).await {
            Ok(mut subscription) => while let Ok(Some(_)) = subscription.next().await {},
            Err(_) => tracing::debug!(server = %live.name, "an MCP server does not take a subscription"),
        }
    }
    std::future::pending::<()>().await;
}
