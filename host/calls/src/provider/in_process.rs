//! Tools that are functions of this process.
//!
//! Failure paths: arguments that are not of the handler's type, and errors of a handler, are results with `isError`;
//! a panic and a handler that does not end are ended by the stage in front, each alone.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    CallContext, NoAnswer, NotSent, Outcome, Outgoing, RawResult, ToolContext, ToolDefinition, ToolProvider,
    ToolResult, Unavailable,
};
use crate::request::OutgoingRequest;
use footbridge_core::names::{BadServerName, ServerName};
use footbridge_core::{
    budget::{Budget, UNCOUNTED_BYTES},
    catalogue::{BadEntry, Offered},
    limits::ServerLimits,
    schema::BadSchema,
};

/// Calls that run at once, unless [`InProcessBuilder::at_once`] says otherwise.
const AT_ONCE: usize = 32;
/// How long a call waits for its place before it is told `busy`.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of large arguments that handlers hold at a time: as values they cost up to 35 times as much. More than one
/// session can hold on one server, so that none keeps the others out.
const ARGUMENT_BYTES: usize = 8 * 1024 * 1024;

type Handler = Arc<dyn Fn(&RawValue, ToolContext) -> BoxFuture<'static, ToolResult> + Send + Sync>;

/// One server whose tools are functions of this process.
///
/// ```
/// use footbridge_calls::provider::{InProcess, ToolContext, ToolDefinition, ToolResult};
/// use serde_json::{Value, json};
///
/// let weather = InProcess::new("weather")
///     .tool(
///         ToolDefinition::new("get_weather").description("The weather in a city").input_schema(json!({
///             "type": "object",
///             "properties": {"city": {"type": "string"}},
///             "required": ["city"]
///         })),
///         |arguments: Value, _context: ToolContext| async move {
///             ToolResult::json(json!({"city": arguments["city"], "celsius": 21}))
///         },
///     )
///     .build()?;
/// # Ok::<(), footbridge_calls::provider::BadTools>(())
/// ```
pub struct InProcess {
    names: Arc<[ServerName]>,
    catalogue: Arc<Offered>,
    handlers: BTreeMap<String, (Arc<str>, Handler)>,
    places: Semaphore,
    arguments: Budget,
}

/// Collects the tools of an [`InProcess`].
pub struct InProcessBuilder {
    name: String,
    tools: Vec<(ToolDefinition, Handler)>,
    at_once: usize,
}

/// Why tools cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BadTools {
    /// The server's name is none.
    #[error("the server cannot be called {0:?}: {1}")]
    Name(String, BadServerName),
    /// A definition that guests could not use.
    #[error("tool {0:?} cannot be served: {1}")]
    Tool(String, BadEntry),
    /// An input schema that arguments cannot be checked against.
    #[error("tool {0:?} has an input schema that cannot be used: {1}")]
    Schema(String, BadSchema),
    /// A definition that is no JSON.
    #[error("tool {0:?} cannot be written as JSON: {1}")]
    Json(String, serde_json::Error),
}

impl InProcess {
    /// Starts to put a server of this name together.
    #[expect(clippy::new_ret_no_self, reason = "a server is only made once its tools were checked")]
    pub fn new(name: impl Into<String>) -> InProcessBuilder {
        InProcessBuilder { name: name.into(), tools: Vec::new(), at_once: AT_ONCE }
    }

    async fn run(&self, server: &ServerName, name: &str, arguments: &RawValue, context: CallContext) -> Outcome {
        let Some((tool, handler)) = self.handlers.get(name) else { return Outcome::not_offered(server) };
        let CallContext { cancel, events } = context;
        let bytes = arguments.get().len();
        let entered = async {
            let place = self.places.acquire().await.ok()?;
            let held = if bytes > UNCOUNTED_BYTES { Some(self.arguments.wait(bytes).await.ok()?) } else { None };
            Some((place, held))
        };
        let _entered = tokio::select! {
            biased;
            () = cancel.cancelled() => return Outcome::NotSent(NotSent::Cancelled),
            entered = timeout(PATIENCE, entered) => match entered {
                Ok(Some(entered)) => entered,
                _ => return Outcome::NotSent(NotSent::Busy),
            },
        };
        let result = handler(arguments, ToolContext { cancel, events, tool: Arc::clone(tool) }).await;
        match serde_json::value::to_raw_value(&result) {
            Ok(text) => Outcome::Result(RawResult { text, held: None }),
            Err(_) => Outcome::Unknown(NoAnswer::Unusable),
        }
    }
}

impl InProcessBuilder {
    /// Adds a tool. Its handler gets the arguments as an `A`, such as [`serde_json::Value`] or a type of its own, and
    /// gives a [`ToolResult`] or a `Result` of one. It runs on the harness's runtime: work that blocks goes to
    /// `tokio::task::spawn_blocking`.
    #[must_use]
    pub fn tool<A, F, Fut>(mut self, definition: ToolDefinition, handler: F) -> Self
    where
        A: DeserializeOwned,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Into<ToolResult>> + Send + 'static,
    {
        let handler = move |arguments: &RawValue, context| match serde_json::from_str(arguments.get()) {
            Ok(arguments) => handler(arguments, context).map(Into::into).boxed(),
            Err(error) => {
                let text = format!("The arguments are not what this tool takes: {error}");
                std::future::ready(ToolResult::error(text)).boxed()
            }
        };
        self.tools.push((definition, Arc::new(handler)));
        self
    }

    /// How many calls run at once; 32 if it is not said. More wait for a second and are told `busy`.
    #[must_use]
    pub fn at_once(mut self, calls: usize) -> Self {
        self.at_once = calls.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Checks names, definitions and schemas, and makes the server.
    ///
    /// # Errors
    /// [`BadTools`], for the first that is wrong.
    pub fn build(self) -> Result<InProcess, BadTools> {
        let name: ServerName = self.name.parse().map_err(|bad| BadTools::Name(self.name.clone(), bad))?;
        let (mut catalogue, mut handlers) = (Offered::default(), BTreeMap::new());
        for (definition, handler) in self.tools {
            let tool = definition.name().to_owned();
            let raw = definition.to_raw().map_err(|error| BadTools::Json(tool.clone(), error))?;
            catalogue.add_tool(&raw, &ServerLimits::default()).map_err(|bad| BadTools::Tool(tool.clone(), bad))?;
            if let Some(Err(bad)) = catalogue.entries().tool(&tool).map(|tool| tool.compile_schema()) {
                return Err(BadTools::Schema(tool, bad));
            }
            handlers.insert(tool.clone(), (tool.into(), handler));
        }
        Ok(InProcess {
            names: [name].into(),
            catalogue: Arc::new(catalogue),
            handlers,
            places: Semaphore::new(self.at_once),
            arguments: Budget::new(ARGUMENT_BYTES),
        })
    }
}

impl ToolProvider for InProcess {
    fn servers(&self) -> Arc<[ServerName]> {
        Arc::clone(&self.names)
    }

    fn catalogue<'a>(
        &'a self,
        server: &'a ServerName,
        _wait: Duration,
    ) -> BoxFuture<'a, Result<Arc<Offered>, Unavailable>> {
        let known = self.names.contains(server);
        let missing = || Unavailable::because(format!("Server \"{server}\" is not available: there is none"));
        std::future::ready(if known { Ok(Arc::clone(&self.catalogue)) } else { Err(missing()) }).boxed()
    }

    fn offered_now(&self, server: &ServerName) -> Option<Arc<Offered>> {
        self.names.contains(server).then(|| Arc::clone(&self.catalogue))
    }

    fn call(&self, outgoing: Outgoing, context: CallContext) -> BoxFuture<'_, Outcome> {
        async move {
            let (server, request) = outgoing.into_parts();
            match request {
                OutgoingRequest::CallTool { name, arguments, .. } => {
                    self.run(&server, &name, &arguments, context).await
                }
                _ => Outcome::not_offered(&server),
            }
        }
        .boxed()
    }
}
