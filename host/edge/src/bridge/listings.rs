//! Answers from the harness's own catalogue: nothing is sent to a server for them.

use std::{collections::BTreeMap, time::Duration};

use footbridge_proto::{
    rpc::raw,
    wire::{
        EXAMPLES, FullToolList, PromptList, ResourceList, ServerEntry, ServerList, ServerStatus, TemplateList,
        ToolList, bridge_info,
    },
};
use futures::future::try_join_all;
use serde_json::{json, value::RawValue};

use crate::{dialect::Found, lookups, search::entries};
use footbridge_calls::{auth::Principal, call::Stages, catalogue::Visible};
use footbridge_core::catalogue::ListKind;

/// `getBridgeInfo`.
pub(super) fn info() -> Box<RawValue> {
    raw(&bridge_info("footbridge", env!("CARGO_PKG_VERSION")))
}

/// `listServers`: those that are starting get a moment, all at once.
pub(super) async fn servers(stages: &Stages, principal: &Principal, wait: Duration) -> Found {
    let rules = &principal.session().rules();
    let names = stages.resolver.servers(rules);
    let entries = names.iter().map(|name| async move {
        match stages.upstream.catalogues().visible(name, rules, wait).await {
            Ok(visible) if visible.has_catalogue() => Ok(server_entry(&visible)),
            Ok(visible) => lookups::through(stages, principal, visible.bytes(), move || server_entry(&visible)).await,
            Err(why) => Ok(ServerEntry {
                status: Some(if why.is_starting() { ServerStatus::Starting } else { ServerStatus::Unavailable }),
                reason: Some(why.to_string()),
                ..ServerEntry::new(name.to_string(), 0, Vec::new())
            }),
        }
    });
    Ok(raw(&ServerList { servers: try_join_all(entries).await? }))
}

fn server_entry(visible: &Visible) -> ServerEntry {
    let tools = visible.entries().tools();
    let count = tools.len() + visible.changed().len();
    // Of those that can be called.
    let examples = tools.take(EXAMPLES).map(|tool| tool.name().to_owned()).collect();
    ServerEntry {
        instructions: visible.instructions().map(ToOwned::to_owned),
        server_info: visible.implementation().cloned(),
        catalogue: Some(visible.catalogue().to_owned()),
        ..ServerEntry::new(visible.server().to_string(), count, examples)
    }
}

/// Lists something of one server.
pub(super) async fn of_server(
    stages: &Stages,
    principal: &Principal,
    server: &str,
    list: fn(&Visible) -> Found,
) -> Found {
    let visible = stages.resolver.visible(&principal.session().rules(), server).await?;
    lookups::through(stages, principal, visible.bytes(), move || list(&visible)).await?
}

/// The same of what is listed anew for it, since some servers say nothing when it changes.
pub(super) async fn of_server_now(
    stages: &Stages,
    principal: &Principal,
    server: &str,
    list: fn(&Visible) -> Found,
) -> Found {
    let visible = stages.resolver.listed_now(&principal.session().rules(), server).await?;
    lookups::through(stages, principal, visible.bytes(), move || list(&visible)).await?
}

/// `listTools`.
pub(super) fn tools(visible: &Visible) -> Found {
    let partial = visible.partial(ListKind::Tools)?;
    let (server, catalogue) = described(visible);
    Ok(raw(&ToolList { server, tools: entries(visible), catalogue: Some(catalogue), partial }))
}

/// `listTools` with `full`: all that `describeTool` says of each, and what would be decided about a call.
pub(super) fn full_tools(visible: &Visible) -> Found {
    let partial = visible.partial(ListKind::Tools)?;
    let mut decisions = BTreeMap::new();
    let mut tools = Vec::new();
    for entry in entries(visible) {
        let Some(tool) = visible.entries().tool(&entry.name) else {
            tools.push(raw(&json!({"name": entry.name, "description": entry.description})));
            continue;
        };
        if let Some(decision) = visible.decision(tool) {
            decisions.insert(entry.name, decision.as_str());
        }
        tools.push(tool.definition().to_owned());
    }
    let (server, catalogue) = described(visible);
    Ok(raw(&FullToolList { server, tools, decisions, catalogue, partial }))
}

/// What a listing is of, and what changes when it does.
fn described(visible: &Visible) -> (String, String) {
    (visible.server().to_string(), visible.catalogue().to_owned())
}

/// `describeTool`.
pub(super) async fn tool(stages: &Stages, principal: &Principal, server: &str, tool: &str) -> Found {
    let visible = stages.resolver.visible(&principal.session().rules(), server).await?;
    Ok(visible.tool(tool)?.definition().to_owned())
}

/// `listResources`.
pub(super) fn resources(visible: &Visible) -> Found {
    let partial = visible.partial(ListKind::Resources)?;
    let resources = visible.entries().resources().map(|(_, raw)| raw.to_owned()).collect();
    let (server, catalogue) = described(visible);
    Ok(raw(&ResourceList { server, resources, catalogue, partial }))
}

/// `listResourceTemplates`.
pub(super) fn templates(visible: &Visible) -> Found {
    let partial = visible.partial(ListKind::Templates)?;
    let templates = visible.entries().templates().map(|(_, raw)| raw.to_owned()).collect();
    let (server, catalogue) = described(visible);
    Ok(raw(&TemplateList { server, templates, catalogue, partial }))
}

/// `listPrompts`.
pub(super) fn prompts(visible: &Visible) -> Found {
    let partial = visible.partial(ListKind::Prompts)?;
    let prompts = visible.entries().prompts().map(|prompt| prompt.definition().to_owned()).collect();
    let (server, catalogue) = described(visible);
    Ok(raw(&PromptList { server, prompts, catalogue, partial }))
}
