//! What a bridge can be asked for, by name: each is one request and one answer.

use footbridge_proto::wire::method;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::to_raw_value};

use crate::{
    answers::{
        CallResult, Completion, Content, FilledPrompt, FoundToolSummary, ListedResources, ListedServers,
        ListedTemplates, ListedTools, PromptSummary, ResourceSummary, ServerSummary, ToolDescription, ToolSummary,
    },
    client::{CallParams, Client, parse_result},
    error::ClientError,
    events::Event,
};

impl Client {
    /// The servers that this session sees.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn servers(&mut self) -> Result<Vec<ServerSummary>, ClientError> {
        self.request_as::<ListedServers>(method::LIST_SERVERS, &json!({})).map(|list| list.servers)
    }

    /// The tools of a server.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn tools(&mut self, server: &str) -> Result<Vec<ToolSummary>, ClientError> {
        self.request_as::<ListedTools>(method::LIST_TOOLS, &json!({ "server": server })).map(|list| list.tools)
    }

    /// A tool in full, with its schemas.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn describe(&mut self, server: &str, tool: &str) -> Result<ToolDescription, ClientError> {
        self.request_as(method::DESCRIBE_TOOL, &json!({ "server": server, "tool": tool }))
    }

    /// Calls a tool, once. The arguments are anything that is a JSON object; a [`serde_json::value::RawValue`] is sent
    /// as it is written, numbers of any size included.
    ///
    /// # Errors
    /// [`ClientError`]; its [`ClientError::may_have_happened`] says whether the call may be repeated. A tool that
    /// reports an error is a result, see [`CallResult::is_error`].
    pub fn call(
        &mut self,
        server: &str,
        tool: &str,
        arguments: &(impl Serialize + ?Sized),
    ) -> Result<CallResult, ClientError> {
        let arguments = to_raw_value(arguments).map_err(ClientError::Params)?;
        self.request_as(method::CALL_TOOL, &CallParams { server, tool, arguments: &arguments })
    }

    /// Calls a tool, once, and hears of it before it is done: progress, and a person who is asked. The timeout measures
    /// silence then, so that a call may take as long as the bridge lets it. Bridges that tell nothing are taken too.
    ///
    /// ```no_run
    /// # use footbridge_guest::{Client, Event};
    /// # let mut client = Client::from_env()?;
    /// let result = client.call_watched("demo", "count_slowly", &serde_json::json!({"n": 60}), |event| match event {
    ///     Event::Progress(step) => eprintln!("{} of {:?}", step.progress, step.total),
    ///     Event::Approval(asked) => eprintln!("{} until {:?}", asked.state, asked.expires_at),
    ///     _ => {}
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn call_watched(
        &mut self,
        server: &str,
        tool: &str,
        arguments: &(impl Serialize + ?Sized),
        mut watch: impl FnMut(Event),
    ) -> Result<CallResult, ClientError> {
        let arguments = to_raw_value(arguments).map_err(ClientError::Params)?;
        let params = CallParams { server, tool, arguments: &arguments };
        let raw = self.request_watched(method::CALL_TOOL, &params, &mut watch)?;
        parse_result(method::CALL_TOOL, &raw)
    }

    /// The resources of a server.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn resources(&mut self, server: &str) -> Result<Vec<ResourceSummary>, ClientError> {
        let params = json!({ "server": server });
        self.request_as::<ListedResources>(method::LIST_RESOURCES, &params).map(|list| list.resources)
    }

    /// The resource templates of a server.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn templates(&mut self, server: &str) -> Result<Vec<ResourceSummary>, ClientError> {
        let params = json!({ "server": server });
        self.request_as::<ListedTemplates>(method::LIST_RESOURCE_TEMPLATES, &params).map(|list| list.templates)
    }

    /// Reads a resource, and gives its parts.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn read(&mut self, server: &str, uri: &str) -> Result<Vec<Content>, ClientError> {
        #[derive(Deserialize)]
        struct Parts {
            contents: Vec<Content>,
        }
        let params = json!({ "server": server, "uri": uri });
        self.request_as::<Parts>(method::READ_RESOURCE, &params).map(|parts| parts.contents)
    }

    /// Tools of all servers, or of one, whose name or description has any of these words, the best match first.
    ///
    /// # Errors
    /// [`ClientError`]; bridges other than Footbridge do not know the method. So for the three below.
    pub fn search(&mut self, query: &str, server: Option<&str>) -> Result<Vec<FoundToolSummary>, ClientError> {
        #[derive(Deserialize)]
        struct Found {
            tools: Vec<FoundToolSummary>,
        }
        let mut params = json!({ "query": query });
        if let Some(server) = server {
            params["server"] = server.into();
        }
        self.request_as::<Found>(method::SEARCH_TOOLS, &params).map(|found| found.tools)
    }

    /// The prompts of a server.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn prompts(&mut self, server: &str) -> Result<Vec<PromptSummary>, ClientError> {
        #[derive(Deserialize)]
        struct List {
            prompts: Vec<PromptSummary>,
        }
        self.request_as::<List>(method::LIST_PROMPTS, &json!({ "server": server })).map(|list| list.prompts)
    }

    /// Gets a prompt, filled in with these arguments: an object of strings. It is a call, as [`Self::call`] is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn prompt(
        &mut self,
        server: &str,
        prompt: &str,
        arguments: &(impl Serialize + ?Sized),
    ) -> Result<FilledPrompt, ClientError> {
        let arguments = to_raw_value(arguments).map_err(ClientError::Params)?;
        self.request_as(method::GET_PROMPT, &json!({ "server": server, "prompt": prompt, "arguments": arguments }))
    }

    /// What the value of an argument may go on as. `about` is a `ref` of MCP, such as
    /// `{"type": "ref/prompt", "name": NAME}` or `{"type": "ref/resource", "uri": TEMPLATE}`, and `argument` the name
    /// and the value so far. It is a call, as [`Self::call`] is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn complete(
        &mut self,
        server: &str,
        about: &(impl Serialize + ?Sized),
        (name, value): (&str, &str),
    ) -> Result<Completion, ClientError> {
        #[derive(Deserialize)]
        struct Completed {
            completion: Completion,
        }
        let about = to_raw_value(about).map_err(ClientError::Params)?;
        let argument = json!({ "name": name, "value": value });
        let params = json!({ "server": server, "ref": about, "argument": argument });
        self.request_as::<Completed>(method::COMPLETE, &params).map(|completed| completed.completion)
    }
}
