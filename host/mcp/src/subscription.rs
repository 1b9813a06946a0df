//! Asking a stateless server (2026-07-28) to say when its listings change. Older servers say so unasked.
//!
//! The notices themselves end in the interceptor. A subscription that ends, as each does when its server is replaced, is
//! asked for again after a pause, and what was said in between is made up for by a new listing. A server that answers
//! with an error takes none and is asked no more; nor is one of which no subscription lasts. Then listings are renewed by
//! their age, see `relisting`.

use std::time::Duration;

use rmcp::{
    model::SubscriptionFilter,
    service::{ServiceError, Subscription},
};
use tokio::time::{Instant, sleep};

use super::live::Live;

/// Before a subscription is asked for again; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// One that was there for so long counts as one that lasts.
const LASTS: Duration = Duration::from_secs(60);
/// Subscriptions in a row that did not last.
const TRIES: u32 = 10;

/// Holds a subscription for as long as it is polled. Never ends.
pub(super) async fn subscribe(live: Live) {
    if let Some(wanted) = wanted(&live) {
        let (mut tries, mut pause) = (0, FIRST_PAUSE);
        while tries < TRIES {
            let since = Instant::now();
            match live.peer.listen(wanted.clone()).await {
                Ok(subscription) => held(&live, subscription, tries > 0).await,
                Err(ServiceError::McpError(_)) => break,
                Err(error) => tracing::debug!(server = %live.name, %error, "no subscription at the moment"),
            }
            if since.elapsed() >= LASTS {
                (tries, pause) = (0, FIRST_PAUSE);
            }
            sleep(pause).await;
            (tries, pause) = (tries + 1, (pause * 2).min(LONGEST_PAUSE));
        }
        tracing::debug!(server = %live.name, "an MCP server does not take a subscription");
    }
    std::future::pending::<()>().await;
}

/// What is worth hearing of a server, if it can be subscribed.
fn wanted(live: &Live) -> Option<SubscriptionFilter> {
    let can = live.peer.peer_info().filter(|_| live.is_stateless())?.capabilities.clone();
    let tools = can.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true);
    let resources = can.resources.as_ref().and_then(|resources| resources.list_changed) == Some(true);
    let prompts = can.prompts.as_ref().and_then(|prompts| prompts.list_changed) == Some(true);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = tools.then_some(true);
    filter.resources_list_changed = resources.then_some(true);
    filter.prompts_list_changed = prompts.then_some(true);
    (tools || resources || prompts).then_some(filter)
}

/// Waits for the end of a subscription.
async fn held(live: &Live, mut subscription: Subscription, is_again: bool) {
    let hears_of_tools = subscription.acknowledged().tools_list_changed == Some(true);
    let _heard = hears_of_tools.then(|| live.interceptor.hearing().begins());
    if is_again {
        live.interceptor.has_changed();
    }
    while let Ok(Some(_)) = subscription.next().await {}
}
