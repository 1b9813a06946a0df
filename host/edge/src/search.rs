//! Tools as listings show them, and tools by words, over what a session may see.
//!
//! A word is found where its letters stand, in upper or lower case, and one in the plural where its singular stands. It
//! counts more the fewer tools have it, and more in a name than in a description; words that are in every sentence count
//! nothing. What has a word by its server's name alone is found where nothing has one itself. What says that it is
//! deprecated comes last. Ties are in the order of servers and names: the same question
//! has the same answer.

use std::{cmp::Reverse, collections::BTreeSet, time::Duration};

use footbridge_proto::wire::{FoundTool, ToolEntry};
use futures::future::join_all;

use crate::lookups;
use footbridge_calls::{auth::Principal, call::Stages, catalogue::Visible, cause::Failure};
use footbridge_core::gate::Decision;

/// How many words of a query are looked for, and of how many bytes it is read: each word goes over all descriptions.
const MAX_WORDS: usize = 16;
const MAX_QUERY: usize = 1024;
/// What a word counts in a name, where it counts one in a description.
const IN_NAME: u64 = 8;
/// Words that say nothing about a tool.
const STOP_WORDS: [&str; 24] = [
    "a", "an", "and", "can", "do", "for", "from", "how", "i", "in", "is", "it", "me", "my", "of", "on", "or", "that",
    "the", "this", "to", "tool", "what", "with",
];

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

/// What is looked for.
pub(crate) struct Sought {
    pub(crate) query: String,
    /// The most tools.
    pub(crate) limit: usize,
    /// Whether each comes with its definition.
    pub(crate) full: bool,
}

/// The tools that have any of the words. It is looked for beside the workers and behind them, and one search of a session at a
/// time: there may be megabytes of descriptions.
pub(crate) async fn tools(
    stages: &Stages,
    principal: &Principal,
    within: Vec<Visible>,
    sought: Sought,
) -> Result<Vec<FoundTool>, Failure> {
    let Sought { query, limit, full } = sought;
    let work = move || {
        let mut found = best(&query, &within, limit);
        if full {
            found.iter_mut().for_each(|tool| add_definition(tool, &within));
        }
        found
    };
    lookups::behind_others(stages, principal, work).await
}

/// What stands for the description of a tool that is not what was pinned: nobody read the one that it has now.
const CHANGED: &str = "(unavailable: its definition changed, and the operator has not accepted the change)";

/// What a listing shows of the tools of a server, sorted by name.
#[must_use]
pub fn entries(visible: &Visible) -> Vec<ToolEntry> {
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

fn add_definition(found: &mut FoundTool, within: &[Visible]) {
    let Some(visible) = within.iter().find(|visible| visible.server().as_str() == found.server) else { return };
    if let Some(tool) = visible.entries().tool(&found.tool.name) {
        found.definition = Some(tool.definition().to_owned());
        found.decision = visible.decision(tool).map(Decision::as_str);
    }
}

fn best(query: &str, within: &[Visible], limit: usize) -> Vec<FoundTool> {
    let query = query[..query.floor_char_boundary(MAX_QUERY)].to_lowercase();
    let all: BTreeSet<&str> = query.split_whitespace().take(MAX_WORDS).map(singular).collect();
    let mut words: Vec<&str> = all.iter().copied().filter(|word| !STOP_WORDS.contains(word)).collect();
    if words.is_empty() {
        words = all.into_iter().collect();
    }
    let listed = within.iter().flat_map(|visible| {
        let server = visible.server().to_string();
        entries(visible).into_iter().map(move |tool| (server.clone(), tool))
    });
    let mut tools: Vec<(Places, FoundTool)> = Vec::new();
    let (mut having, mut count) = (vec![0_u64; words.len()], 0);
    let mut are_own = false;
    for (server, tool) in listed {
        count += 1;
        let places = Places::of(&words, &server, &tool);
        if !places.is_empty() {
            having.iter_mut().enumerate().for_each(|(at, having)| *having += u64::from(places.has(at)));
            are_own |= places.are_own();
            tools.push((places, FoundTool { server, tool, definition: None, decision: None }));
        }
    }
    tools.retain(|(places, _)| !are_own || places.are_own());
    let worth: Vec<u64> = having.iter().map(|having| rarity(count, *having)).collect();
    // Servers and their tools are in the order of their names, and a stable sort leaves equal ones so.
    tools.sort_by_key(|(places, tool)| (is_deprecated(&tool.tool), Reverse(places.score(&worth))));
    tools.into_iter().take(limit).map(|(_, tool)| tool).collect()
}

/// A word as it stands in others: without the `s` that many of one thing have.
fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|one| one.len() >= 4 && !one.ends_with('s')).unwrap_or(word)
}

/// What a word counts that so many of all tools have: a thousand more for each time that these can be halved.
fn rarity(all: u64, having: u64) -> u64 {
    1000 + ((all as f64 / having.max(1) as f64).log2() * 1000.0) as u64
}

fn is_deprecated(tool: &ToolEntry) -> bool {
    tool.description.to_lowercase().contains("deprecated")
}

/// Which words a tool has, a bit each.
struct Places {
    name: u32,
    text: u32,
    server: u32,
}

impl Places {
    fn of(words: &[&str], server: &str, tool: &ToolEntry) -> Self {
        let having = |text: &str| {
            let text = text.to_lowercase();
            let found = words.iter().enumerate().filter(|(_, word)| text.contains(**word));
            found.fold(0, |bits, (at, _)| bits | 1 << at)
        };
        Self { name: having(&tool.name), text: having(&tool.description), server: having(server) }
    }

    fn is_empty(&self) -> bool {
        self.name | self.text | self.server == 0
    }

    /// Whether it has any itself, and not its server alone.
    fn are_own(&self) -> bool {
        self.name | self.text != 0
    }

    fn has(&self, at: usize) -> bool {
        (self.name | self.text | self.server) & (1 << at) != 0
    }

    fn score(&self, worth: &[u64]) -> u64 {
        let of = |bits: u32| {
            worth.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0).map(|(_, one)| one).sum::<u64>()
        };
        of(self.name) * IN_NAME + of(self.text | self.server)
    }
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
    fn rare_words_count_more_common_ones_nothing_and_deprecated_tools_come_last() {
        let mut tools: Vec<(String, String)> =
            (0..20).map(|n| (format!("get_item_{n:02}"), "Gets it".to_owned())).collect();
        tools.push(("close_issue".to_owned(), "Gets an issue closed".to_owned()));
        tools.push(("old_issue".to_owned(), "Deprecated: gets an issue".to_owned()));
        let tools: Vec<(&str, &str)> = tools.iter().map(|(name, text)| (&**name, &**text)).collect();
        let within = [server("a", &tools)];
        let best = |query: &str| best(query, &within, 2).into_iter().map(|found| found.tool.name).collect::<Vec<_>>();
        assert_eq!(best("item issues"), ["close_issue", "get_item_00"], "one of two tools, against one of twenty");
        assert_eq!(best("how to get the issue"), ["close_issue", "get_item_00"]);
        assert_eq!(best("old issue")[0], "close_issue", "deprecated ones are last, whatever they have");
    }

    #[test]
    fn a_server_s_name_is_no_reason_to_list_all_that_it_has() {
        let within = [
            server("files", &[("make_folder", "Makes one"), ("read_file", "Reads one")]),
            server("x", &[("other", "Of a file")]),
        ];
        let best = |query: &str| best(query, &within, 9).into_iter().map(|found| found.tool.name).collect::<Vec<_>>();
        assert_eq!(best("file"), ["read_file", "other"]);
        assert_eq!(best("files folder"), ["make_folder", "read_file", "other"]);
        let alone = [server("github", &[("b", ""), ("a", "")])];
        let found = super::best("github", &alone, 9).into_iter().map(|found| found.tool.name).collect::<Vec<_>>();
        assert_eq!(found, ["a", "b"], "where nothing has the word, its server does");
    }

    #[test]
    fn a_query_of_any_length_is_bounded() {
        let long = format!("{}é{}", "x".repeat(MAX_QUERY - 1), " file".repeat(100_000));
        assert!(names(&long, 9).is_empty(), "only its beginning is read");
        let many: String = (0..MAX_WORDS).map(|n| format!("w{n} ")).collect();
        assert!(names(&(many + "file"), 9).is_empty());
    }
}
