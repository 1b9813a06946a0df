//! Answers from the harness's own catalogue: nothing is sent to a server for them.

use std::{collections::BTreeMap, time::Duration};

use footbridge_proto::{
    approval::ApprovalStatus,
    rpc::raw,
    wire::{
        ApprovalState, EXAMPLES, FullToolList, PromptList, ResourceList, ServerEntry, ServerList, ServerStatus,
        TemplateList, ToolList, bridge_info,
    },
};
use futures::future::join_all;
use serde_json::{json, value::RawValue};

use crate::{
    dialect::Found,
    search::{decision, entries},
};
use footbridge_calls::{auth::Principal, call::Stages, catalogue::Visible, request::repeated};
use footbridge_core::catalogue::ListKind;

/// `getBridgeInfo`.
pub(super) fn info() -> Box<RawValue> {
    raw(&bridge_info("footbridge", env!("CARGO_PKG_VERSION")))
}

/// `listServers`: those that are starting get a moment, all at once.
pub(super) async fn servers(stages: &Stages, principal: &Principal, wait: Duration) -> Box<RawValue> {
    let rules = &principal.session().rules();
    let names = stages.resolver.servers(rules);
    let entries = names.iter().map(|name| async move {
        match stages.upstream.catalogues().visible(name, rules, wait).await {
            Ok(visible) => server_entry(&visible),
            Err(why) => ServerEntry {
                name: name.to_string(),
                tool_count: 0,
                examples: Vec::new(),
                status: Some(if why.is_starting() { ServerStatus::Starting } else { ServerStatus::Unavailable }),
                reason: Some(why.to_string()),
            },
        }
    });
    raw(&ServerList { servers: join_all(entries).await })
}

fn server_entry(visible: &Visible) -> ServerEntry {
    let tools = visible.entries().tools();
    ServerEntry {
        name: visible.server().to_string(),
        tool_count: tools.len() + visible.changed().len(),
        examples: tools.take(EXAMPLES).map(|tool| tool.name().to_owned()).collect(),
        status: None,
        reason: None,
    }
}

/// `listTools`.
pub(super) async fn tools(stages: &Stages, principal: &Principal, server: &str) -> Found {
    let visible = stages.resolver.visible(&principal.session().rules(), server).await?;
    let partial = visible.partial(ListKind::Tools)?;
    Ok(raw(&ToolList { server: visible.server().to_string(), tools: entries(&visible), partial }))
}

/// `listTools` with `full`: all that `describeTool` says of each, and what would be decided about a call.
pub(super) async fn full_tools(stages: &Stages, principal: &Principal, server: &str) -> Found {
    let rules = &principal.session().rules();
    let visible = stages.resolver.visible(rules, server).await?;
    let partial = visible.partial(ListKind::Tools)?;
    let mut decisions = BTreeMap::new();
    let mut tools = Vec::new();
    for entry in entries(&visible) {
        let Some(tool) = visible.entries().tool(&entry.name) else {
            tools.push(raw(&json!({"name": entry.name, "description": entry.description})));
            continue;
        };
        if let Some(decision) = decision(rules, server, tool) {
            decisions.insert(entry.name, decision);
        }
        tools.push(tool.definition().to_owned());
    }
    Ok(raw(&FullToolList { server: visible.server().to_string(), tools, decisions, partial }))
}

/// `describeTool`.
pub(super) async fn tool(stages: &Stages, principal: &Principal, server: &str, tool: &str) -> Found {
    let visible = stages.resolver.visible(&principal.session().rules(), server).await?;
    Ok(visible.tool(tool)?.definition().to_owned())
}

/// `listResources`.
pub(super) async fn resources(stages: &Stages, principal: &Principal, server: &str) -> Found {
    let visible = stages.resolver.listed_now(&principal.session().rules(), server).await?;
    let partial = visible.partial(ListKind::Resources)?;
    let resources = visible.entries().resources().map(|(_, raw)| raw.to_owned()).collect();
    Ok(raw(&ResourceList { server: visible.server().to_string(), resources, partial }))
}

/// `listResourceTemplates`.
pub(super) async fn templates(stages: &Stages, principal: &Principal, server: &str) -> Found {
    let visible = stages.resolver.listed_now(&principal.session().rules(), server).await?;
    let partial = visible.partial(ListKind::Templates)?;
    let templates = visible.entries().templates().map(|(_, raw)| raw.to_owned()).collect();
    Ok(raw(&TemplateList { server: visible.server().to_string(), templates, partial }))
}

/// `listPrompts`.
pub(super) async fn prompts(stages: &Stages, principal: &Principal, server: &str) -> Found {
    let visible = stages.resolver.listed_now(&principal.session().rules(), server).await?;
    let partial = visible.partial(ListKind::Prompts)?;
    let prompts = visible.entries().prompts().map(|prompt| prompt.definition().to_owned()).collect();
    Ok(raw(&PromptList { server: visible.server().to_string(), prompts, partial }))
}

/// Longest time that `awaitApproval` waits: clients give up after 30 s, and can ask again.
const AWAITED: Duration = Duration::from_secs(20);

/// `awaitApproval`: waits for an answer and says the state. It runs nothing.
pub(super) async fn approval(stages: &Stages, principal: &Principal, id: &str) -> Box<RawValue> {
    let unknown = || ApprovalState { id: repeated(id).into_owned(), state: ApprovalStatus::Unknown, expires_at: None };
    let Ok(known) = id.parse() else { return raw(&unknown()) };
    let told = match stages.approvals.state(principal.session(), known, AWAITED).await {
        Some((state, expires_at)) => ApprovalState { id: known.to_string(), state: state.status(), expires_at },
        None => unknown(),
    };
    raw(&told)
}
