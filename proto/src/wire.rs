//! Methods, sizes and answers of the bridge, as `tool-cli-bridge` 1.0 has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use crate::approval::ApprovalStatus;

/// Largest request body that a bridge takes unless its session has another limit, bytes.
pub const MAX_REQUEST_BYTES: usize = 1_048_576;

/// The most that this limit can be. A client sends no more, and below it the bridge decides.
pub const MOST_REQUEST_BYTES: usize = 16 * 1_048_576;

/// The header by which a client of MCP asks to be told which approval a call of its waits for, as events that other clients
/// pass over.
pub const TELLS_APPROVALS: &str = "footbridge-approvals";

/// Method names.
pub mod method {
    /// Protocol, version and abilities.
    pub const GET_BRIDGE_INFO: &str = "getBridgeInfo";
    /// Step one: which servers.
    pub const LIST_SERVERS: &str = "listServers";
    /// Step two: which tools of a server.
    pub const LIST_TOOLS: &str = "listTools";
    /// Step three: a tool in full.
    pub const DESCRIBE_TOOL: &str = "describeTool";
    /// Step four: the call.
    pub const CALL_TOOL: &str = "callTool";
    /// Resources of a server.
    pub const LIST_RESOURCES: &str = "listResources";
    /// Resource templates of a server.
    pub const LIST_RESOURCE_TEMPLATES: &str = "listResourceTemplates";
    /// A resource's contents.
    pub const READ_RESOURCE: &str = "readResource";

    /// Waits for a person's answer to a call that needs one. Ours.
    pub const AWAIT_APPROVAL: &str = "awaitApproval";

    /// What the gate would say of a call, without making it. Ours: other bridges do not have it.
    pub const CHECK_CALL: &str = "checkCall";

    /// Tools of all servers by words. Ours.
    pub const SEARCH_TOOLS: &str = "searchTools";

    /// Prompts of a server. Ours.
    pub const LIST_PROMPTS: &str = "listPrompts";

    /// A prompt, filled in. Ours.
    pub const GET_PROMPT: &str = "getPrompt";

    /// Completions of a prompt's argument, or of a part of a resource template. Ours.
    pub const COMPLETE: &str = "complete";

    /// All of them, in the order `getBridgeInfo` lists them.
    pub const ALL: [&str; 14] = [
        GET_BRIDGE_INFO,
        LIST_SERVERS,
        LIST_TOOLS,
        DESCRIBE_TOOL,
        CALL_TOOL,
        LIST_RESOURCES,
        LIST_RESOURCE_TEMPLATES,
        READ_RESOURCE,
        AWAIT_APPROVAL,
        CHECK_CALL,
        SEARCH_TOOLS,
        LIST_PROMPTS,
        GET_PROMPT,
        COMPLETE,
    ];
}

/// Name of the protocol in `getBridgeInfo`.
pub(crate) const PROTOCOL_NAME: &str = "tool-cli-bridge";
/// Major version of the protocol; a client refuses any other.
pub(crate) const PROTOCOL_MAJOR: u64 = 1;
/// Version of the protocol.
pub(crate) const PROTOCOL_VERSION: &str = "1.0";

/// JSON Schema dialects that arguments are checked in; the first is the default.
pub const SCHEMA_DIALECTS: [&str; 3] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
];

/// What a tool without a description shows instead.
pub const NO_DESCRIPTION: &str = "(no description)";

/// How many tool names `listServers` gives as examples.
pub const EXAMPLES: usize = 3;

/// The result of `getBridgeInfo` for an implementation of this name and version.
#[must_use]
pub fn bridge_info(name: &str, version: &str) -> Value {
    json!({
        "bridgeProtocol": {"name": PROTOCOL_NAME, "major": PROTOCOL_MAJOR, "version": PROTOCOL_VERSION},
        "serverImplementation": {"name": name, "version": version},
        "operations": method::ALL,
        "capabilities": {
            "authentication": {"required": true, "scheme": "bearer"},
            "tools": {
                "discovery": true,
                "calls": true,
                "inputSchemaValidation": true,
                "jsonSchemaDialect": SCHEMA_DIALECTS[0],
                "supportedJsonSchemaDialects": SCHEMA_DIALECTS,
            },
            "resources": {"list": true, "templates": true, "read": true},
            "cancellation": {"providerAbortSignal": true},
            "footbridge": {
                "streaming": true,
                "checkCall": true,
                "searchTools": true,
                "prompts": {"list": true, "get": true},
                "completions": true,
            },
        },
    })
}

/// One server in `listServers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerEntry {
    /// Its name.
    pub name: String,
    /// How many tools it has.
    pub tool_count: usize,
    /// Up to [`EXAMPLES`] of their names.
    pub examples: Vec<String>,
    /// Why it cannot be used right now; absent when it can. Older clients ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ServerStatus>,
    /// The same in words, with what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the server says of itself to whoever uses it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Which program the server says that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Implementation>,
    /// As in [`ToolList::catalogue`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<String>,
}

impl ServerEntry {
    /// One of which no more is known than its name and its tools.
    #[must_use]
    pub fn new(name: String, tool_count: usize, examples: Vec<String>) -> Self {
        let (status, reason, instructions, server_info, catalogue) = (None, None, None, None, None);
        Self { name, tool_count, examples, status, reason, instructions, server_info, catalogue }
    }
}

/// Which program a server says that it is: of `serverInfo` of MCP, what names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Implementation {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    pub version: String,
}

/// Why a listed server cannot be used right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerStatus {
    /// It has not answered its first request yet.
    Starting,
    /// It does not run, and cannot be reached.
    Unavailable,
}

/// Result of `listServers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerList {
    /// Sorted by name.
    pub servers: Vec<ServerEntry>,
}

/// One tool in `listTools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolEntry {
    /// Its name.
    pub name: String,
    /// Its description, or [`NO_DESCRIPTION`].
    pub description: String,
    /// Whether its results are structured JSON.
    #[serde(default)]
    pub has_structured_output: bool,
}

/// Result of `listTools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolList {
    /// The server asked for.
    pub server: String,
    /// Sorted by name.
    pub tools: Vec<ToolEntry>,
    /// A text that changes when what the session sees of the server does, so that a client can keep a copy. It is the same
    /// in all listings of the server; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<String>,
    /// What is missing from it, a line each; absent where nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
}

/// Result of `listTools` with `full`.
#[derive(Debug, Serialize)]
pub struct FullToolList {
    /// The server asked for.
    pub server: String,
    /// Sorted by name, each as `describeTool` says it. One that cannot be described has a name and a description alone.
    pub tools: Vec<Box<RawValue>>,
    /// Those that are not simply allowed, by name: `ask` where a person may have to be asked, and `deny`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub decisions: BTreeMap<String, &'static str>,
    /// As in [`ToolList::catalogue`].
    pub catalogue: String,
    /// What is missing from it, a line each; absent where nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
}

/// How many tools `searchTools` gives where the client does not say.
pub const SEARCH_LIMIT: usize = 20;
/// How many tools `searchTools` gives at most; a larger limit counts as this one.
pub const MAX_SEARCH_LIMIT: usize = 100;

/// One tool in `searchTools`.
#[derive(Debug, Serialize)]
pub struct FoundTool {
    /// The server that has it.
    pub server: String,
    /// What `listTools` shows of it.
    #[serde(flatten)]
    pub tool: ToolEntry,
    /// With `full`: what `describeTool` says of it, where it can be described.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<RawValue>>,
    /// With `full`: as in [`FullToolList::decisions`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
}

/// Result of `searchTools`.
#[derive(Debug, Serialize)]
pub struct FoundTools {
    /// The best match first.
    pub tools: Vec<FoundTool>,
}

/// Result of `checkCall`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedCall {
    /// `allow`, `ask` or `deny`.
    pub decision: String,
    /// The policy, where it says that guests may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The rule that decides, where one matches and guests may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// Result of `listResources`.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResourceList {
    /// The server asked for.
    pub server: String,
    /// Sorted by uri, each as the server gave it.
    pub resources: Vec<Box<RawValue>>,
    /// As in [`ToolList::catalogue`].
    pub catalogue: String,
    /// What is missing from it, a line each; absent where nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
}

/// Result of `listResourceTemplates`.
#[derive(Debug, Serialize, Deserialize)]
pub struct TemplateList {
    /// The server asked for.
    pub server: String,
    /// Sorted by uriTemplate, each as the server gave it.
    pub templates: Vec<Box<RawValue>>,
    /// As in [`ToolList::catalogue`].
    pub catalogue: String,
    /// What is missing from it, a line each; absent where nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
}

/// Result of `listPrompts`.
#[derive(Debug, Serialize, Deserialize)]
pub struct PromptList {
    /// The server asked for.
    pub server: String,
    /// Sorted by name, each as the server gave it.
    pub prompts: Vec<Box<RawValue>>,
    /// As in [`ToolList::catalogue`].
    pub catalogue: String,
    /// What is missing from it, a line each; absent where nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
}

/// Result of `awaitApproval`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalState {
    /// The approval.
    pub id: String,
    /// How it is.
    pub state: ApprovalStatus,
    /// When a pending or granted one ends by itself, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether all of one is in the other, with the beginning of each list.
    fn has(all: &Value, part: &Value) -> bool {
        match (all, part) {
            (Value::Object(all), Value::Object(part)) => {
                part.iter().all(|(name, part)| all.get(name).is_some_and(|all| has(all, part)))
            }
            (Value::Array(all), Value::Array(part)) => all.starts_with(part),
            (all, part) => all == part,
        }
    }

    #[test]
    fn a_bridge_says_all_that_public_clients_look_for() {
        let looked_for = json!({
            "bridgeProtocol": {"name": "tool-cli-bridge", "major": 1, "version": "1.0"},
            "serverImplementation": {"name": "x", "version": "1.2.3"},
            "operations": [
                "getBridgeInfo", "listServers", "listTools", "describeTool", "callTool", "listResources",
                "listResourceTemplates", "readResource",
            ],
            "capabilities": {
                "authentication": {"required": true, "scheme": "bearer"},
                "tools": {
                    "discovery": true,
                    "calls": true,
                    "inputSchemaValidation": true,
                    "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
                    "supportedJsonSchemaDialects": [
                        "https://json-schema.org/draft/2020-12/schema",
                        "https://json-schema.org/draft/2019-09/schema",
                        "http://json-schema.org/draft-07/schema#",
                    ],
                },
                "resources": {"list": true, "templates": true, "read": true},
                "cancellation": {"providerAbortSignal": true},
            },
        });
        let said = bridge_info("x", "1.2.3");
        assert!(has(&said, &looked_for), "{said:#}");
        assert!(!has(&looked_for, &said), "our own abilities are beside these");
    }
}
