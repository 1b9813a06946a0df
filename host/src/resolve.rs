//! From names to a definition: the stage that turns a request into a call that could be made.
//!
//! Names are matched exactly, against what the session may see. What cannot be resolved is no early return to the
//! guest: it is an [`Unresolved`], which only the audit stage turns into a reply.

use std::{borrow::Cow, sync::Arc};

use footbridge_proto::{
    json::{self, MAX_ARGUMENT_DEPTH},
    rpc::{ErrorObject, Reason},
};
use serde_json::{Value, value::RawValue};

use crate::{
    auth::Principal,
    budget::{Budget, Held},
    catalogue::{Catalogue, Tool},
    digest::Digest,
    limits::CallLimits,
    provider::{OutgoingRequest, ServerName, Upstream},
    schema::Check,
};

/// What a guest asked to be sent to a server, as it wrote it.
#[derive(Debug)]
pub struct CallRequest {
    /// The server's name.
    pub server: String,
    /// What is asked of it.
    pub target: Target,
    /// The arguments as they were written; checked JSON.
    pub arguments: Option<Box<RawValue>>,
    /// Their part of the budget.
    pub held: Option<Held>,
}

/// Every kind of call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `callTool` with a tool's name.
    Tool(String),
    /// `readResource` with a URI.
    Resource(String),
}

impl Target {
    /// The word for it in records.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
        }
    }

    /// The tool's name or the resource's URI.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Resource(name) => name,
        }
    }
}

/// A call whose names and arguments were found good. Only this stage makes one.
#[derive(Debug)]
pub struct ResolvedCall {
    principal: Principal,
    server: ServerName,
    request: OutgoingRequest,
    arguments: Digest,
    argument_bytes: usize,
    definition: Option<Digest>,
}

impl ResolvedCall {
    /// Who asks.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The server it goes to.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// What would be sent.
    #[must_use]
    pub fn request(&self) -> &OutgoingRequest {
        &self.request
    }

    /// Digest and length of the arguments' canonical text.
    #[must_use]
    pub fn arguments(&self) -> (Digest, usize) {
        (self.arguments, self.argument_bytes)
    }

    /// Digest of the tool's definition; resources have none.
    #[must_use]
    pub fn definition(&self) -> Option<Digest> {
        self.definition
    }

    pub(crate) fn into_request(self) -> (ServerName, OutgoingRequest) {
        (self.server, self.request)
    }
}

/// A call that could not be resolved, and why.
#[derive(Debug)]
pub struct Unresolved {
    pub(crate) principal: Principal,
    pub(crate) server: String,
    pub(crate) target: Target,
    pub(crate) error: ErrorObject,
}

/// Characters of a guest's own word that an answer repeats; nobody needs a megabyte of it back.
const MAX_REPEATED: usize = 256;

/// A guest's own word, short enough to be repeated to it.
pub(crate) fn repeated(word: &str) -> Cow<'_, str> {
    match word.char_indices().nth(MAX_REPEATED) {
        Some((at, _)) => format!("{}...", &word[..at]).into(),
        None => word.into(),
    }
}

impl Unresolved {
    /// A call whose client left before it was resolved.
    #[must_use]
    pub fn left(principal: Principal, request: &CallRequest) -> Self {
        let error = ErrorObject::new(Reason::Cancelled, "The call was cancelled before it was sent");
        Self { principal, server: request.server.clone(), target: request.target.clone(), error }
    }
}

/// What this stage looks things up in, and by which limits.
#[derive(Debug, Clone)]
pub struct Resolver {
    upstream: Upstream,
    limits: CallLimits,
    parsing: Budget,
}

impl Resolver {
    /// A resolver over what is upstream; `parsed_bytes` is how many bytes of arguments are values at a time.
    #[must_use]
    pub fn new(upstream: Upstream, limits: CallLimits, parsed_bytes: usize) -> Self {
        Self { upstream, limits, parsing: Budget::new(parsed_bytes) }
    }

    /// Finds what a request names, and checks its arguments.
    ///
    /// # Errors
    /// [`Unresolved`], for the audit stage.
    pub async fn resolve(&self, principal: Principal, request: CallRequest) -> Result<ResolvedCall, Box<Unresolved>> {
        match self.find(&principal, &request).await {
            Ok(found) => Ok(ResolvedCall {
                principal,
                server: found.server,
                request: found.request,
                arguments: found.arguments,
                argument_bytes: found.argument_bytes,
                definition: found.definition,
            }),
            Err(error) => {
                let CallRequest { server, target, .. } = request;
                Err(Box::new(Unresolved { principal, server, target, error }))
            }
        }
    }

    async fn find(&self, principal: &Principal, request: &CallRequest) -> Result<Found, ErrorObject> {
        let (server, catalogue) = self.catalogue(principal, &request.server).await?;
        match &request.target {
            Target::Resource(uri) if !offers_resources(&catalogue) => Err(no_such_resource(&server, uri)),
            Target::Resource(uri) => Ok(Found {
                server,
                arguments: Digest::of(uri),
                argument_bytes: uri.len(),
                request: OutgoingRequest::ReadResource { uri: uri.clone() },
                definition: None,
            }),
            Target::Tool(name) => {
                let tool = find_tool(&catalogue, &server, name)?;
                self.check_arguments(principal, server, tool, request.arguments.as_deref()).await
            }
        }
    }

    /// The catalogue of a server that this principal may see.
    ///
    /// # Errors
    /// The answer for the guest: no such server, or it does not run.
    pub async fn catalogue(
        &self,
        _principal: &Principal,
        server: &str,
    ) -> Result<(ServerName, Arc<Catalogue>), ErrorObject> {
        let names = self.upstream.servers();
        let known = names.iter().find(|name| name.as_str() == server).cloned();
        let name = known.ok_or_else(|| no_such_server(&names, server))?;
        match self.upstream.catalogue(&name, self.limits.server_wait).await {
            Ok(catalogue) => Ok((name, catalogue)),
            Err(why) => Err(ErrorObject::new(Reason::ServerUnavailable, why.to_string())),
        }
    }

    /// Whether the tool of a call is still the one that it was resolved to.
    pub async fn is_unchanged(&self, call: &ResolvedCall) -> bool {
        let Some(definition) = call.definition() else { return true };
        let (_, name) = call.request().named();
        let now = self.upstream.catalogue(call.server(), self.limits.server_wait).await;
        // Of a server that is not there nothing can be said; the call ends where it would be sent.
        now.map_or(true, |now| now.tool(name).is_some_and(|tool| tool.digest() == definition))
    }

    async fn check_arguments(
        &self,
        principal: &Principal,
        server: ServerName,
        tool: &Arc<Tool>,
        arguments: Option<&RawValue>,
    ) -> Result<Found, ErrorObject> {
        let label = format!("{server}/{}", tool.name());
        let text = arguments.map_or("{}", |raw| if raw.get() == "null" { "{}" } else { raw.get() });
        if text.len() <= QUICK {
            // There are no more of these at a time than workers, so they need not wait for the large ones.
            return checked(server, tool, &label, text);
        }
        let _own = principal.session().turn().await;
        let _parsed =
            self.parsing.wait(text.len()).await.map_err(|_| {
                ErrorObject::new(Reason::TooLarge, format!("Arguments for \"{label}\" are over the limit"))
            })?;
        let (tool, text) = (Arc::clone(tool), text.to_owned());
        let work = tokio::task::spawn_blocking(move || checked(server, &tool, &label, &text));
        work.await.unwrap_or_else(|_| Err(ErrorObject::new(Reason::Internal, "The arguments could not be checked")))
    }
}

fn no_such_server(names: &[ServerName], server: &str) -> ErrorObject {
    let names: Vec<&str> = names.iter().map(ServerName::as_str).collect();
    let connected = if names.is_empty() { "(none)".to_owned() } else { names.join(", ") };
    let server = repeated(server);
    ErrorObject::new(Reason::UnknownServer, format!("Server \"{server}\" not found. Connected: {connected}"))
}

/// Text of a guest up to this many bytes is read at once; a larger one beside the workers of the runtime: one that is
/// busy for long keeps every other guest waiting, and their time limits too.
pub(crate) const QUICK: usize = 16 * 1024;

/// Checks arguments against what the tool says of them.
fn checked(server: ServerName, tool: &Tool, label: &str, text: &str) -> Result<Found, ErrorObject> {
    let value = parse_arguments(label, text)?;
    let schema = tool.input_schema().map_err(|bad| {
        let message = format!("Tool \"{}\" on server \"{server}\" has an invalid input schema: {bad}", tool.name());
        ErrorObject::new(Reason::InvalidSchema, message)
    })?;
    match schema.check(&value) {
        Check::Fits => {}
        Check::Violations(found) => {
            let message = format!("Arguments do not match the input schema for \"{label}\"");
            return Err(ErrorObject::new(Reason::InvalidArguments, message).with("validationErrors", found));
        }
        Check::TooCostly => {
            let message = format!("Checking these arguments for \"{label}\" against its schema would cost too much");
            return Err(ErrorObject::new(Reason::InvalidArguments, message));
        }
    }
    let broken = |_| ErrorObject::new(Reason::Internal, "The arguments could not be written");
    let canonical = RawValue::from_string(value.to_string()).map_err(broken)?;
    Ok(Found {
        arguments: Digest::of(canonical.get()),
        argument_bytes: canonical.get().len(),
        definition: Some(tool.digest()),
        request: OutgoingRequest::CallTool {
            name: tool.name().to_owned(),
            definition: tool.digest(),
            arguments: canonical,
            in_headers: tool.is_promoted(),
        },
        server,
    })
}

struct Found {
    server: ServerName,
    request: OutgoingRequest,
    arguments: Digest,
    argument_bytes: usize,
    definition: Option<Digest>,
}

/// Names of tools that an answer about an unknown one lists: they come from a server, and could be megabytes.
const MAX_DISCOVERED: usize = 100;

/// The tool with exactly this name.
///
/// # Errors
/// The answer for the guest.
pub fn find_tool<'c>(catalogue: &'c Catalogue, server: &ServerName, name: &str) -> Result<&'c Arc<Tool>, ErrorObject> {
    if let Some(tool) = catalogue.tool(name) {
        return Ok(tool);
    }
    let name = repeated(name);
    let discovered: Vec<&str> = catalogue.tools().map(|t| t.name()).take(MAX_DISCOVERED).collect();
    Err(ErrorObject::new(Reason::UnknownTool, format!("Tool \"{name}\" not found on server \"{server}\""))
        .with("server", server.as_str())
        .with("tool", name.as_ref())
        .with("discoveredTools", discovered))
}

/// A server may serve more than it lists, by its templates or unlisted, so only one that lists nothing is ruled out.
fn offers_resources(catalogue: &Catalogue) -> bool {
    catalogue.resources().len() + catalogue.templates().len() > 0
}

/// The answer for a resource that a server does not have.
#[must_use]
pub fn no_such_resource(server: &ServerName, uri: &str) -> ErrorObject {
    ErrorObject::new(
        Reason::UnknownResource,
        format!("Resource \"{}\" not found on server \"{server}\"", repeated(uri)),
    )
}

/// Arguments as a value with its members sorted, so that its text is the canonical one.
fn parse_arguments(label: &str, text: &str) -> Result<Value, ErrorObject> {
    let invalid = |message: String| ErrorObject::new(Reason::InvalidArguments, message);
    let not_object = || invalid(format!("Invalid arguments for \"{label}\": an object is required"));
    if !text.starts_with('{') {
        return Err(not_object());
    }
    if json::depth(text) > MAX_ARGUMENT_DEPTH {
        return Err(invalid(format!(
            "Invalid arguments for \"{label}\": an object is required, nested at most {MAX_ARGUMENT_DEPTH} deep"
        )));
    }
    if let Some(number) = json::inexact_number(text) {
        let shown: String = number.chars().take(60).collect();
        return Err(invalid(format!("Invalid arguments for \"{label}\": the number {shown} would not keep its value")));
    }
    let mut value: Value = serde_json::from_str(text).map_err(|_| not_object())?;
    json::sort_members(&mut value);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_their_canonical_text() {
        let value = parse_arguments("s/t", r#"{ "b": [1, {"y":2,"x":1}], "a": 1e2 }"#).unwrap();
        assert_eq!(value.to_string(), r#"{"a":100.0,"b":[1,{"x":1,"y":2}]}"#);
    }

    #[test]
    fn arguments_that_would_change_or_are_no_object_are_named() {
        for (text, part) in [
            ("[]", "an object is required"),
            ("7", "an object is required"),
            (r#"{"n":18446744073709551616}"#, "the number 18446744073709551616"),
            (&format!(r#"{{"a":{}1{}}}"#, "[".repeat(64), "]".repeat(64)), "at most 64 deep"),
        ] {
            let error = parse_arguments("s/t", text).unwrap_err();
            assert!(error.message.contains(part), "{}", error.message);
            assert_eq!((error.code, error.reason()), (-32602, Some(Reason::InvalidArguments)));
        }
    }
}
