//! Listings that change, told to whoever reads a stream of it: a server said so or was restarted, an operator accepted a
//! definition, a policy or the configuration was read again.
//!
//! What a session sees is looked at once a second. That starts no server and copies nothing: what did not change is the
//! same object. A server that is not ready counts as it was, so that a restart which changes nothing is not told.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use footbridge_core::{catalogue::Entries, names::ServerName};
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::{answers::notification, endpoint::Endpoint, request::Wanted};
use footbridge_calls::{auth::Principal, call::Stages};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

impl Wanted {
    /// All of it.
    pub(super) fn all() -> Self {
        Self { tools: true, resources: true, prompts: true, subscription: None }
    }

    /// The event that says what is told from now on, where that was asked for.
    fn acknowledged(&self) -> Option<Bytes> {
        let id = self.subscription.as_deref()?;
        let accepted = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let accepted: Vec<String> =
            accepted.iter().filter(|(_, is_wanted)| *is_wanted).map(|(name, _)| format!("\"{name}\":true")).collect();
        let params = format!("{{{},\"notifications\":{{{}}}}}", meta(id), accepted.join(","));
        Some(notification("notifications/subscriptions/acknowledged", &params))
    }

    fn told(&self, method: &str) -> Bytes {
        let params = self.subscription.as_deref().map_or_else(|| "{}".to_owned(), |id| format!("{{{}}}", meta(id)));
        notification(method, &params)
    }
}

fn meta(id: &RawValue) -> String {
    format!("\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}")
}

/// What was seen last, by server.
type Seen = BTreeMap<ServerName, Arc<Entries>>;

/// Tells of each change of what is seen at this endpoint.
pub(super) fn told(
    stages: Arc<Stages>,
    principal: Principal,
    endpoint: Endpoint,
    wanted: Wanted,
) -> BoxStream<'static, Bytes> {
    let first = stream::iter(wanted.acknowledged());
    let state = (stages, principal, endpoint, wanted, None::<Seen>);
    let changes = stream::unfold(state, |(stages, principal, endpoint, wanted, mut seen)| async move {
        loop {
            let before = seen.take();
            if before.is_some() {
                sleep(EVERY).await;
            }
            let now = look(&stages, &principal, &endpoint, before.as_ref()).await;
            let events = before.map(|before| differences(&before, &now, &wanted)).unwrap_or_default();
            seen = Some(now);
            if !events.is_empty() {
                return Some((stream::iter(events), (stages, principal, endpoint, wanted, seen)));
            }
        }
    });
    first.chain(changes.flatten()).boxed()
}

async fn look(stages: &Stages, principal: &Principal, endpoint: &Endpoint, before: Option<&Seen>) -> Seen {
    let rules = principal.session().rules();
    let mut seen = Seen::new();
    for server in stages.resolver.servers(&rules) {
        if endpoint.server.as_ref().is_some_and(|only| only != server.as_str()) {
            continue;
        }
        let entries = match stages.upstream.catalogues().visible_now(&server, &rules).await {
            Some(visible) => Some(Arc::clone(visible.entries())),
            None => before.and_then(|before| before.get(&server)).cloned(),
        };
        if let Some(entries) = entries {
            seen.insert(server, entries);
        }
    }
    seen
}

fn differences(before: &Seen, now: &Seen, wanted: &Wanted) -> Vec<Bytes> {
    let is_same =
        before.len() == now.len() && before.iter().zip(now).all(|((a, old), (b, new))| a == b && Arc::ptr_eq(old, new));
    if is_same {
        return Vec::new();
    }
    let mut events = Vec::new();
    for (is_wanted, method, differs) in [
        (wanted.tools, "notifications/tools/list_changed", differ(before, now, tools)),
        (wanted.resources, "notifications/resources/list_changed", differ(before, now, resources)),
        (wanted.prompts, "notifications/prompts/list_changed", differ(before, now, prompts)),
    ] {
        if is_wanted && differs {
            events.push(wanted.told(method));
        }
    }
    events
}

fn tools(of: &Entries) -> Vec<&str> {
    texts(of.tools().map(|tool| tool.definition()))
}

fn resources(of: &Entries) -> Vec<&str> {
    texts(of.resources().map(|(_, raw)| raw).chain(of.templates().map(|(_, raw)| raw)))
}

fn prompts(of: &Entries) -> Vec<&str> {
    texts(of.prompts().map(|prompt| prompt.definition()))
}

fn texts<'a>(entries: impl Iterator<Item = &'a RawValue>) -> Vec<&'a str> {
    entries.map(RawValue::get).collect()
}

fn differ(before: &Seen, now: &Seen, texts: fn(&Entries) -> Vec<&str>) -> bool {
    let of = |seen: &Seen, server: &ServerName| seen.get(server).cloned().unwrap_or_default();
    before.keys().chain(now.keys()).any(|server| {
        let (old, new) = (of(before, server), of(now, server));
        !Arc::ptr_eq(&old, &new) && texts(&old) != texts(&new)
    })
}
