//! What a session of a harness that runs sees, for operators: the same lists that its guest is answered from.

use std::{sync::Arc, time::Duration};

use footbridge_proto::wire::ToolEntry;
use futures::future::join_all;
use serde_json::json;

use crate::control::wire::{ListTools, ListedServer, ListedTool, MAX_ANSWER, Refusal, RefusalKind};
use footbridge_calls::{call::Stages, catalogue::Visible, cause::Cause};
use footbridge_core::{catalogue::ListKind, gate::SessionRules, names::ServerName};
use footbridge_edge::{entries, error_of};
use footbridge_mcp::Servers;

/// What is around the lists of an answer, bytes, and more.
const ENVELOPE: usize = 1024;

/// What answers a session.
pub(super) struct SeenBySession {
    pub(super) rules: Arc<SessionRules>,
    pub(super) stages: Stages,
    /// How long servers that are starting are waited for: one alone, and in a list of all.
    pub(super) waits: (Duration, Duration),
    pub(super) servers: Option<Servers>,
}

impl SeenBySession {
    /// Its tools: names of all servers, or one server's with their definitions.
    pub(super) async fn tools(&self, asked: &ListTools) -> Result<Vec<ListedServer>, Refusal> {
        let listed = match &asked.server {
            Some(server) => vec![self.one(server, asked).await],
            None => self.all(asked).await,
        };
        // As they are written: a control character is six bytes then.
        let bytes = serde_json::to_string(&listed).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_ANSWER - ENVELOPE {
            let message = format!("these lists have {bytes} bytes, and no more than {MAX_ANSWER} go this way");
            return Err(Refusal::new(RefusalKind::Failed, message));
        }
        Ok(listed)
    }

    async fn all(&self, asked: &ListTools) -> Vec<ListedServer> {
        let names = self.stages.resolver.servers(&self.rules);
        let each = names.into_iter().map(|name| async move {
            self.listed(name.as_str(), self.visible(&name, self.waits.1, asked).await, |_, _| None)
        });
        join_all(each).await
    }

    async fn one(&self, name: &str, asked: &ListTools) -> ListedServer {
        let resolver = &self.stages.resolver;
        let visible = match resolver.server(&self.rules, name) {
            Some(server) => self.visible(&server, self.waits.0, asked).await,
            None => Err(Cause::UnknownServer { server: name.to_owned(), known: resolver.servers(&self.rules) }),
        };
        self.listed(name, visible, |visible, tool| {
            let known = visible.entries().tool(&tool.name).map(|known| known.definition().get().to_owned());
            // Of one that changed no more is shown to anybody but who looks at its pin.
            Some(known.unwrap_or_else(|| json!({"name": tool.name, "description": tool.description}).to_string()))
        })
    }

    async fn visible(&self, server: &ServerName, wait: Duration, asked: &ListTools) -> Result<Visible, Cause> {
        let catalogues = self.stages.upstream.catalogues();
        let visible = if asked.refresh {
            catalogues.listed_now(server, &self.rules, wait).await
        } else {
            catalogues.visible(server, &self.rules, wait).await
        };
        let visible = visible.map_err(|why| Cause::Unavailable(why.to_string()))?;
        // Nothing is there since nothing could be listed.
        visible.partial(ListKind::Tools).map(|_missing| visible)
    }

    fn listed(
        &self,
        name: &str,
        visible: Result<Visible, Cause>,
        definition: impl Fn(&Visible, &ToolEntry) -> Option<String>,
    ) -> ListedServer {
        let visible = match visible {
            Ok(visible) => visible,
            Err(cause) => {
                let because = self.last_error(name).filter(|_| matches!(cause, Cause::Unavailable(_)));
                let why = Some(error_of(&cause.into()).message);
                return ListedServer { name: name.to_owned(), why, because, tools: Vec::new() };
            }
        };
        let tool = |tool: ToolEntry| ListedTool {
            changed: visible.entries().tool(&tool.name).is_none(),
            definition: definition(&visible, &tool),
            name: tool.name,
            description: tool.description,
            has_structured_output: tool.has_structured_output,
        };
        let tools = entries(&visible).into_iter().map(tool).collect();
        ListedServer { name: name.to_owned(), why: None, because: None, tools }
    }

    fn last_error(&self, server: &str) -> Option<String> {
        let reports = self.servers.as_ref()?.report();
        reports.into_iter().find(|report| report.name.as_str() == server)?.last_error
    }
}
