//! Tools as listings show them, and tools by words, over what a session may see.
//!
//! A word is found where its letters stand, in upper or lower case. Tools are ordered by how many of the words their
//! name has, then by how many their description has, then by server and name: the same question has the same answer.

use std::{cmp::Reverse, collections::BTreeSet, time::Duration};

use footbridge_proto::wire::{FoundTool, ToolEntry};
use futures::future::join_all;

use footbridge_calls::cause::{Broken, Cause, Failure};
use footbridge_calls::{auth::Principal, call::Stages, catalogue::Visible};

/// How many words of a query are looked for, and of how many bytes it is read: each word goes over all descriptions.
const MAX_WORDS: usize = 16;
const MAX_QUERY: usize = 1024;

/// Where to search: in one server, or in all that are ready; those that are starting get a moment, all at once.
pub(crate) async fn within(
    stages: &Stages,
    principal: &Principal,
    server: Option<&str>,
    wait: Duration,
) -> Result<Vec<Visible>, Failure> {
    let rules = &principal.session().rules();
    if let Some(server) = server {
        return Ok(vec![stages.resolver.visible(rules, server).await?]);
    }
    let asked = stages
        .resolver
        .servers(rules)
        .into_iter()
        .map(|name| async move { stages.upstream.catalogues().visible(&name, rules, wait).await.ok() });
    Ok(join_all(asked).await.into_iter().flatten().collect())
}

/// The tools that have any of the words. It is looked for beside the workers, and one search of a session at a time:
/// there may be megabytes of descriptions.
pub(crate) async fn tools(
    principal: &Principal,
    query: String,
    within: Vec<Visible>,
    limit: usize,
) -> Result<Vec<FoundTool>, Failure> {
    let turn = principal.session().turn().await;
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        best(&query, &within, limit)
    });
    work.await.map_err(|_| Cause::Internal(Broken::Searching).into())
}

/// What stands for the description of a tool that is not what was pinned: nobody read the one that it has now.
const CHANGED: &str = "(unavailable: its definition changed, and the operator has not accepted the change)";

/// What a listing shows of the tools of a server, sorted by name.
pub(crate) fn entries(visible: &Visible) -> Vec<ToolEntry> {
    let usable = visible.entries().tools().map(|tool| ToolEntry {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        has_structured_output: tool.is_structured(),
    });
    let changed = visible.changed().map(|(name, tool)| ToolEntry {
        name: name.to_owned(),
        description: CHANGED.to_owned(),
        has_structured_output: tool.is_structured(),
    });
    let mut tools: Vec<ToolEntry> = usable.chain(changed).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

fn best(query: &str, within: &[Visible], limit: usize) -> Vec<FoundTool> {
    let query = query[..query.floor_char_boundary(MAX_QUERY)].to_lowercase();
    let words: BTreeSet<&str> = query.split_whitespace().take(MAX_WORDS).collect();
    let mut found = Vec::new();
    for visible in within {
        for tool in entries(visible) {
            let rank = rank(&words, &tool);
            if rank != (0, 0) {
                found.push((Reverse(rank), FoundTool { server: visible.server().to_string(), tool }));
            }
        }
    }
    // Servers and their tools are in the order of their names, and a stable sort leaves equal ones so.
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().take(limit).map(|(_, tool)| tool).collect()
}

/// How many words the name has, and how many the description.
fn rank(words: &BTreeSet<&str>, tool: &ToolEntry) -> (usize, usize) {
    let count = |text: &str| {
        let text = text.to_lowercase();
        words.iter().filter(|word| text.contains(**word)).count()
    };
    (count(&tool.name), count(&tool.description))
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::RawValue};

    use super::*;
    use std::sync::Arc;

    use footbridge_calls::catalogue::Vetted;
    use footbridge_core::{
        catalogue::Offered,
        gate::{Policy, SessionRules},
        limits::ServerLimits,
        names::Labels,
    };

    fn server(name: &str, tools: &[(&str, &str)]) -> Visible {
        let mut offered = Offered::default();
        for (name, description) in tools {
            let tool = json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
            let tool = RawValue::from_string(tool.to_string()).unwrap();
            offered.add_tool(&tool, &ServerLimits::default()).unwrap();
        }
        let rules = SessionRules::new(Policy::open(), &Labels::default());
        Vetted::without_pins(name.parse().unwrap(), &Arc::new(offered)).visible(&rules)
    }

    fn names(query: &str, limit: usize) -> Vec<String> {
        let within = [
            server("a", &[("list_files", "Lists a folder"), ("other", "Reads a FILE"), ("none", "")]),
            server("b", &[("Read_File", "Of a path"), ("write_file", "Not read")]),
        ];
        best(query, &within, limit).into_iter().map(|found| format!("{}/{}", found.server, found.tool.name)).collect()
    }

    #[test]
    fn names_come_before_descriptions_and_more_words_before_fewer() {
        assert_eq!(names("read FILE", 9), ["b/Read_File", "b/write_file", "a/list_files", "a/other"]);
        assert_eq!(names("file", 9), ["a/list_files", "b/Read_File", "b/write_file", "a/other"]);
        assert_eq!(names("file file\tfile", 2), ["a/list_files", "b/Read_File"]);
        assert_eq!(names("this path", 9), ["b/Read_File"]);
        assert!(names(" ", 9).is_empty() && names("zebra", 9).is_empty());
    }

    #[test]
    fn a_query_of_any_length_is_bounded() {
        let long = format!("{}é{}", "x".repeat(MAX_QUERY - 1), " file".repeat(100_000));
        assert!(names(&long, 9).is_empty(), "only its beginning is read");
        let many: String = (0..MAX_WORDS).map(|n| format!("w{n} ")).collect();
        assert!(names(&(many + "file"), 9).is_empty());
    }
}
