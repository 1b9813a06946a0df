//! From names to a definition: the stage that turns a request into a call that could be made.
//!
//! Names are matched exactly, against what the session may see. What cannot be resolved is no early return to the
//! guest: it is an [`Unresolved`], which only the record turns into a reply.

mod arguments;
mod completion;
mod prompt;
mod service;

use std::sync::Arc;

use crate::cause::Cause;
use crate::meta::CallMeta;
use crate::request::{CallRequest, Target};
use crate::{
    auth::Principal,
    catalogue::{Visible, no_such_resource},
    catalogues::Catalogues,
    low_threads::LowThreads,
    request::OutgoingRequest,
    session::{OverLimit, Place},
};
pub use arguments::tested;
use arguments::{ArgumentChecks, WrittenArguments, checked, heavy, text_of};
use footbridge_core::{
    budget::Budget,
    catalogue::Tool,
    digest::Digest,
    gate::{Effects, SessionRules, Subject, Tested},
    limits::CallLimits,
    names::ServerName,
    schema::KeptSchemas,
};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

/// A call whose names and arguments were found good. Only this stage makes one.
#[derive(Debug)]
pub(crate) struct ResolvedCall {
    principal: Principal,
    server: ServerName,
    request: OutgoingRequest,
    arguments: Digest,
    argument_bytes: usize,
    rules: Arc<SessionRules>,
    effects: Effects,
    tested: Tested,
    tool: Option<Arc<Tool>>,
    meta: Option<CallMeta>,
}

impl ResolvedCall {
    /// Who asks.
    #[must_use]
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The server it goes to.
    #[must_use]
    pub(crate) fn server(&self) -> &ServerName {
        &self.server
    }

    /// What would be sent.
    #[must_use]
    pub(crate) fn request(&self) -> &OutgoingRequest {
        &self.request
    }

    /// Digest and length of the arguments' canonical text.
    #[must_use]
    pub(crate) fn arguments(&self) -> (Digest, usize) {
        (self.arguments, self.argument_bytes)
    }

    /// What its guest says besides, of which nothing is decided.
    #[must_use]
    pub(crate) fn meta(&self) -> Option<&CallMeta> {
        self.meta.as_ref()
    }

    pub(crate) fn drop_meta(&mut self) {
        self.meta = None;
    }

    /// Bytes of its guest's that leave with it.
    #[must_use]
    pub(crate) fn leaving_bytes(&self) -> usize {
        self.argument_bytes + self.meta.as_ref().map_or(0, |meta| meta.text().get().len())
    }

    /// Digest of the tool's definition; nothing else has one.
    #[must_use]
    pub(crate) fn definition(&self) -> Option<Digest> {
        self.request.definition()
    }

    /// The session's rules that its names were looked up with, and that decide about it.
    #[must_use]
    pub(crate) fn rules(&self) -> &SessionRules {
        &self.rules
    }

    /// Whether the rules of its session say what they said, and it has the service that is asked: a reload may have come in
    /// between.
    #[must_use]
    pub(crate) fn is_by_current_rules(&self) -> bool {
        let session = self.principal.session();
        let has_service = || match &self.request {
            OutgoingRequest::Service(_) => session.service(self.server.as_str()).is_some(),
            _ => true,
        };
        self.rules.digest() == session.rules().digest() && has_service()
    }

    /// What it is about, for rules.
    #[must_use]
    pub(crate) fn subject(&self) -> Subject<'_> {
        match &self.request {
            OutgoingRequest::CallTool { name, .. } => Subject::tool(self.server.as_str(), name, self.effects),
            OutgoingRequest::ReadResource { uri } => Subject::resource(self.server.as_str(), uri),
            OutgoingRequest::GetPrompt { name, .. } => Subject::prompt(self.server.as_str(), name),
            OutgoingRequest::Complete { about, .. } => about.subject(self.server.as_str()),
            OutgoingRequest::Service(call) => {
                let path = call.path().as_written();
                Subject::http(self.server.as_str(), call.method(), path, self.effects)
            }
        }
    }

    /// What it can do.
    #[must_use]
    pub(crate) fn effects(&self) -> Effects {
        self.effects
    }

    /// What its server says that the tool does, and whether the operator says what effects it has. Nothing else than
    /// a tool has that.
    #[must_use]
    pub(crate) fn said_of_tool(&self) -> Option<(&str, bool)> {
        let tool = self.tool.as_ref()?;
        Some((tool.description(), self.rules.policy().labels(self.server.as_str(), tool.name())))
    }

    /// The rules whose conditions hold of its arguments.
    #[must_use]
    pub(crate) fn tested(&self) -> &Tested {
        &self.tested
    }

    /// Takes a place among what its session has in flight, for a call that gave its own away.
    pub(crate) async fn enter_again(&self) -> Result<Place, OverLimit> {
        let session = self.principal.session();
        match &self.request {
            OutgoingRequest::Service(call) => session.enter_service_again(call.is_tunnel()).await,
            _ => session.enter_again(Some(&self.server)).await,
        }
    }

    pub(crate) fn into_request(self) -> (ServerName, OutgoingRequest, Option<CallMeta>) {
        (self.server, self.request, self.meta)
    }
}

/// A call that could not be resolved, and why.
#[derive(Debug)]
pub(crate) struct Unresolved {
    pub(crate) principal: Principal,
    pub(crate) server: String,
    pub(crate) target: Target,
    pub(crate) cause: Cause,
}

impl Unresolved {
    /// A call whose client left before it was resolved.
    #[must_use]
    pub(crate) fn left(principal: Principal, request: &CallRequest) -> Self {
        Self { principal, server: request.server.clone(), target: request.target.clone(), cause: Cause::Cancelled }
    }
}

/// How many times as much as its text a value is reckoned to take in the limit of what is parsed at a time.
const AS_VALUE: usize = 36;

/// What this stage looks things up in, and by which limits.
#[derive(Debug, Clone)]
pub struct Resolver {
    catalogues: Catalogues,
    limits: CallLimits,
    parsing: Budget,
    threads: LowThreads,
    /// Compiled schemas of all servers.
    schemas: Arc<KeptSchemas>,
    /// Places for what may take long.
    at_once: Arc<Semaphore>,
}

impl Resolver {
    /// A resolver over these catalogues; `parsed_bytes` is how many bytes of arguments are values at a time, where a value
    /// takes [`AS_VALUE`] times its text.
    #[must_use]
    pub fn new(catalogues: Catalogues, limits: CallLimits, parsed_bytes: usize) -> Self {
        // One processor is left for whatever is quick.
        let places = std::thread::available_parallelism().map_or(1, |n| n.get().saturating_sub(1).max(1));
        Self {
            catalogues,
            limits,
            parsing: Budget::new(parsed_bytes.saturating_mul(AS_VALUE)),
            threads: LowThreads::new(),
            schemas: Arc::default(),
            at_once: Arc::new(Semaphore::new(places)),
        }
    }

    /// Where what guests can make take long is done.
    #[must_use]
    pub fn threads(&self) -> &LowThreads {
        &self.threads
    }

    /// Finds what a request names, and checks its arguments.
    ///
    /// # Errors
    /// [`Unresolved`], for the record.
    pub(crate) async fn resolve(
        &self,
        principal: Principal,
        request: CallRequest,
    ) -> Result<ResolvedCall, Box<Unresolved>> {
        let rules = principal.session().rules();
        match self.find(&principal, &rules, &request).await {
            Ok(found) => Ok(ResolvedCall {
                principal,
                server: found.server,
                request: found.request,
                arguments: found.arguments,
                argument_bytes: found.argument_bytes,
                rules,
                effects: found.effects,
                tested: found.tested,
                tool: found.tool,
                meta: request.meta,
            }),
            Err(cause) => {
                let CallRequest { server, target, .. } = request;
                Err(Box::new(Unresolved { principal, server, target, cause }))
            }
        }
    }

    async fn find(
        &self,
        principal: &Principal,
        rules: &Arc<SessionRules>,
        request: &CallRequest,
    ) -> Result<Found, Cause> {
        let visible = self.visible(rules, &request.server).await?;
        let server = visible.server().clone();
        let text = text_of(request.arguments.as_deref());
        match &request.target {
            Target::Resource(uri) if !visible.may_have_resource(uri) => Err(no_such_resource(&server, uri)),
            Target::Resource(uri) => {
                let request = OutgoingRequest::ReadResource { uri: uri.clone() };
                Ok(Found::of(server, request, Effects::of_reading(), Tested::default()))
            }
            Target::Tool(name) => {
                let tool = Arc::clone(visible.tool(name)?);
                let (rules, depth) = (Arc::clone(rules), principal.session().limits().calls.argument_depth);
                let heavy = heavy(&self.schemas, &server, &tool, text);
                let written = WrittenArguments { server: server.clone(), name, text, heavy };
                let by = ArgumentChecks { depth, schemas: Arc::clone(&self.schemas) };
                let checking = Arc::clone(&tool);
                let read = move |text: &str| checked(&rules, server, &checking, &by, text);
                let found = self.read_arguments(principal, written, read).await?;
                Ok(Found { tool: Some(tool), ..found })
            }
            Target::Prompt(name) => {
                let prompt = Arc::clone(visible.prompt(name)?);
                let written = WrittenArguments { server: server.clone(), name, text, heavy: Heavy::No };
                let rules = Arc::clone(rules);
                let read = move |text: &str| prompt::checked(&rules, server, &prompt, text);
                self.read_arguments(principal, written, read).await
            }
            // Those go another way: a server has nothing of this kind.
            Target::Service(_) | Target::Tunnel(_) => {
                Err(Cause::UnknownServer { server: server.to_string(), known: self.servers(rules) })
            }
            Target::Completion(about) => {
                completion::find(&visible, rules, about)?;
                let written = WrittenArguments { server: server.clone(), name: about.name(), text, heavy: Heavy::No };
                let asked = about.clone();
                let read = move |text: &str| completion::checked(server, asked, text);
                self.read_arguments(principal, written, read).await
            }
        }
    }

    /// The servers that a session with these rules may know of, by name.
    #[must_use]
    pub fn servers(&self, rules: &SessionRules) -> Vec<ServerName> {
        self.catalogues.servers().iter().filter(|name| rules.shows_server(name.as_str())).cloned().collect()
    }

    /// The server of exactly this name, where a session with these rules may know of it.
    #[must_use]
    pub fn server(&self, rules: &SessionRules, name: &str) -> Option<ServerName> {
        let found = self.catalogues.servers().iter().find(|server| server.as_str() == name).cloned();
        found.filter(|server| rules.shows_server(server.as_str()))
    }

    /// What a session with these rules may see of a server.
    ///
    /// # Errors
    /// There is no such server, or it does not run.
    pub async fn visible(&self, rules: &SessionRules, server: &str) -> Result<Visible, Cause> {
        let visible = self.catalogues.visible(&self.known(rules, server)?, rules, self.limits.server_wait).await;
        visible.map_err(|why| Cause::Unavailable(why.to_string()))
    }

    /// The same of this moment, see [`Catalogues::listed_now`].
    ///
    /// # Errors
    /// As [`Self::visible`].
    pub async fn listed_now(&self, rules: &SessionRules, server: &str) -> Result<Visible, Cause> {
        let visible = self.catalogues.listed_now(&self.known(rules, server)?, rules, self.limits.server_wait).await;
        visible.map_err(|why| Cause::Unavailable(why.to_string()))
    }

    fn known(&self, rules: &SessionRules, server: &str) -> Result<ServerName, Cause> {
        let unknown = || Cause::UnknownServer { server: server.to_owned(), known: self.servers(rules) };
        self.server(rules, server).ok_or_else(unknown)
    }

    /// Whether the tool of a call is still the one that it was resolved to.
    pub(crate) async fn is_unchanged(&self, call: &ResolvedCall) -> bool {
        if call.definition().is_none() {
            return true;
        }
        let now = self.catalogues.vetted(call.server(), self.limits.server_wait).await;
        // Of a server that is not there nothing can be said; the call ends where it would be sent.
        now.map_or(true, |now| call.request().is_current(|name| now.tool(name)))
    }
}

/// Text of a guest up to this many bytes is read at once; a larger one beside the workers of the runtime: one that is
/// busy for long keeps every other guest waiting, and their time limits too.
pub const QUICK: usize = 16 * 1024;

/// Whether reading arguments may take long whatever their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heavy {
    Yes,
    No,
}

/// What a request turned out to be.
#[derive(Debug)]
struct Found {
    server: ServerName,
    request: OutgoingRequest,
    arguments: Digest,
    argument_bytes: usize,
    /// What it can do.
    effects: Effects,
    /// The rules whose conditions hold of its arguments.
    tested: Tested,
    /// The tool that it calls.
    tool: Option<Arc<Tool>>,
}

impl Found {
    /// A request whose arguments are canonical: what is digested is what is sent. Of a resource it is its URI.
    fn of(server: ServerName, request: OutgoingRequest, effects: Effects, tested: Tested) -> Self {
        let text = request.arguments().map_or(request.subject(), RawValue::get);
        let (arguments, argument_bytes) = (Digest::of(text), text.len());
        Self { server, request, arguments, argument_bytes, effects, tested, tool: None }
    }
}
