//! MCP over HTTP: `/mcp` is all servers as one, `/mcp/SERVER` one of them.
//!
//! `endpoint` is what a path names, `revision` which revision of MCP is spoken and what it demands of a request,
//! `request` reads messages, `clients` knows who has initialized, `names` names tools of all servers as one, `route`
//! finds the server that something is of, `listings` answers from the catalogue, in the `client_shape` that strict
//! clients take, `answers` writes what comes of a request, `refusals` says why nothing does, `changes` tells of listings
//! that changed, `tasks` are calls that are asked for later, `related` says of which of them a result is, and
//! `search_mode` has the three tools.
//!
//! It refuses to know connections, tokens, tasks and streams: what it reads is carried out by what all dialects share.
//! Nothing that a client declares is asked of it: no sampling, no roots, no elicitation. Who is asked is the operator's
//! matter.

mod answers;
mod changes;
mod client_shape;
mod clients;
mod cursor;
mod endpoint;
mod listings;
mod names;
mod one_hop;
mod refusals;
mod related;
mod request;
mod revision;
mod route;
mod search_mode;
mod tasks;

use std::{sync::Arc, time::Duration};

use footbridge_proto::{
    rpc::{ErrorCode, ErrorObject, IncomingMessage, raw},
    wire::TELLS_APPROVALS,
};
use futures::StreamExt as _;
use http::{Method, Response, StatusCode, request::Parts};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    dialect::{Action, Asked, CallAction, CallKey, Dialect, Keep, ReadRequest},
    http::{
        head,
        refusal::Refusal,
        response::{self, Pieces, empty},
    },
    json_rpc::{self, Envelope, RpcAnswer, envelope_error},
    kept_calls::KeptCalls,
};
use answers::{McpEncoder, Shape};
use clients::{Clients, McpClient};
use endpoint::{Endpoint, NoEndpoint, Viewer};
use footbridge_calls::{auth::Principal, meta::CallMeta, request::repeated, session::Session};
use refusals::Sought;
use request::{McpCall, Message, Params, Wanted};
use revision::{BadHead, Revision};
use search_mode::Searched;

/// What a client that initialized shows with each request.
const SESSION: &str = "mcp-session-id";

/// MCP.
pub(crate) struct Mcp {
    clients: Arc<Clients>,
    /// Calls that are tasks.
    kept: KeptCalls,
    /// How long what is about all servers waits for those that are starting.
    list_wait: Duration,
}

impl Mcp {
    /// Nobody has initialized yet.
    pub(crate) fn new(list_wait: Duration) -> Self {
        Self { clients: Arc::default(), kept: KeptCalls::default(), list_wait }
    }

    fn post(&self, asked: Asked<'_>, endpoint: Endpoint) -> ReadRequest {
        let Envelope { id, method, params } = json_rpc::read(asked.body, asked.depth);
        let answer = RpcAnswer { id };
        let method = match method {
            Ok(method) => method,
            // We ask clients nothing, so an answer of theirs is about nothing.
            Err(_) if is_answer(asked.body) => return ReadRequest::Answered(empty(StatusCode::ACCEPTED)),
            Err(error) => return ReadRequest::Answered(answer.error(StatusCode::BAD_REQUEST, &error)),
        };
        let params = match Params::read(params) {
            Ok(params) => params,
            Err(error) => return ReadRequest::Answered(answer.error(StatusCode::OK, &error)),
        };
        if method == "initialize" && answer.id.is_some() && !revision::is_without_handshake(asked.head) {
            return self.initialize(asked, endpoint, &params, answer);
        }
        let client = match revision::of(asked.head, &method, &params) {
            Ok(Some(revision)) => McpClient::stateless(revision, &params),
            Ok(None) => match self.client(asked) {
                Ok(client) => client,
                Err(status) => return ReadRequest::Answered(answer.error(status, &clients::unknown(status))),
            },
            Err(BadHead(error)) => return ReadRequest::Answered(answer.error(StatusCode::BAD_REQUEST, &error)),
        };
        let key = |id: &RawValue| CallKey {
            session: asked.session.serial(),
            client: Arc::clone(&client.id),
            id: id.get().to_owned(),
        };
        let Some(id) = &answer.id else {
            let accepted = empty(StatusCode::ACCEPTED);
            return match (method.as_str(), params.request_id) {
                ("notifications/cancelled", Some(id)) => ReadRequest::Cancels(key(id), accepted),
                _ => ReadRequest::Answered(accepted),
            };
        };
        // A client without a handshake has no id, so that those of its requests may be somebody else's too.
        let key = client.revision.has_handshake().then(|| key(id));
        let approvals = asked.head.headers.contains_key(TELLS_APPROVALS);
        let token = params.progress_token();
        let told = Told { endpoint, client, token, approvals, key, kept: None, meta: None, answer };
        self.request(asked, &method, &params, told)
    }

    /// A request of a client that is known.
    fn request(&self, asked: Asked<'_>, method: &str, params: &Params<'_>, told: Told) -> ReadRequest {
        let revision = told.client.revision;
        let refused = |answer: &RpcAnswer, error: &ErrorObject| {
            ReadRequest::Answered(answer.error(revision.status_of(error), error))
        };
        if let Some(message) = request::about_task(method, params).filter(|_| revision.has_tasks()) {
            return match message {
                Ok(message) => tasks::answer(&self.kept, asked, &told.client, message, told.answer),
                Err(error) => refused(&told.answer, &error),
            };
        }
        let read = request::read(method, params, revision.has_handshake());
        match read.and_then(|message| Ok((self.extras(&message, &told.client, params)?, message))) {
            Ok(((kept, meta), message)) => {
                if let Message::SetLevel(level) = &message {
                    self.clients.set_level(asked.session, &told.client.id, *level);
                }
                Told { kept, meta, ..told }.message(message, self.list_wait)
            }
            Err(error) => refused(&told.answer, &error),
        }
    }

    /// What is said with a call: how it is kept, if it is to be a task, and what goes to its server besides.
    fn extras(
        &self,
        message: &Message,
        client: &McpClient,
        params: &Params<'_>,
    ) -> Result<(Option<Keep>, Option<CallMeta>), ErrorObject> {
        let Message::Call(call) = message else { return Ok((None, None)) };
        let may_be_task = client.revision.has_tasks() && matches!(call, McpCall::Tool { .. });
        let kept = params.task.filter(|_| may_be_task).map(|task| {
            let (calls, client, time) = (self.kept.clone(), Arc::clone(&client.id), tasks::time(task)?);
            Ok(Keep { calls, client, time, told: tasks::created })
        });
        Ok((kept.transpose()?, params.call_meta()?))
    }

    /// Whoever is told of its endpoint is a client from then on; one that is not takes no place.
    fn initialize(&self, asked: Asked<'_>, endpoint: Endpoint, params: &Params<'_>, answer: RpcAnswer) -> ReadRequest {
        let revision = Revision::negotiated(params.protocol_version().as_deref());
        let Some(client) = McpClient::to_be_known(revision) else {
            let error = envelope_error(ErrorCode::Internal, "The system has no random bytes");
            return ReadRequest::Answered(answer.error(StatusCode::OK, &error));
        };
        let encoder = McpEncoder::new(answer, &client, Shape::Initialized(client.id.clone()));
        let (wait, clients, session) = (self.list_wait, Arc::clone(&self.clients), Arc::clone(asked.session));
        let look_up = Action::LookUp(Box::new(move |stages, principal| {
            Box::pin(async move {
                let viewer = Viewer { stages: &stages, principal: &principal, endpoint: &endpoint, wait };
                let told = listings::initialized(viewer, revision).await?;
                clients.add(&session, client);
                Ok(told)
            })
        }));
        ReadRequest::Asked { action: look_up, encoder: Box::new(encoder) }
    }

    /// The client that a request is of: 400 where it shows none, 404 where there is no such.
    fn client(&self, asked: Asked<'_>) -> Result<McpClient, StatusCode> {
        let shown = asked.head.headers.get(SESSION).and_then(|value| value.to_str().ok());
        self.clients.find(asked.session, shown.ok_or(StatusCode::BAD_REQUEST)?).ok_or(StatusCode::NOT_FOUND)
    }

    /// A stream of what changes, for a client that initialized.
    fn get(&self, asked: Asked<'_>, endpoint: Endpoint) -> ReadRequest {
        let answer = RpcAnswer { id: None };
        match self.client(asked) {
            Ok(client) => {
                let (clients, id) = (Arc::clone(&self.clients), Arc::clone(&client.id));
                // A client that asks again has lost the one before: no message comes twice. That one ends once this one is
                // there; where this one is over a limit, it goes on.
                let until = move |session: &Session| clients.streams(session, &id);
                listening(endpoint, Wanted::all(), until, McpEncoder::new(answer, &client, Shape::Plain))
            }
            Err(status) => ReadRequest::Answered(answer.error(status, &clients::unknown(status))),
        }
    }

    fn delete(&self, asked: Asked<'_>) -> ReadRequest {
        let status = match self.client(asked) {
            Ok(client) => {
                self.clients.remove(asked.session, &client.id);
                self.kept.forget(asked.session, &client.id);
                return ReadRequest::Answered(empty(StatusCode::NO_CONTENT));
            }
            Err(status) => status,
        };
        ReadRequest::Answered(RpcAnswer { id: None }.error(status, &clients::unknown(status)))
    }
}

/// What goes with a request.
struct Told {
    endpoint: Endpoint,
    client: McpClient,
    /// What progress is told by.
    token: Option<Box<RawValue>>,
    /// Whether its client asks to be told of approvals besides.
    approvals: bool,
    /// What a call is ended by.
    key: Option<CallKey>,
    /// How a call is kept, where it is to be a task.
    kept: Option<Keep>,
    /// What goes to the server with a call.
    meta: Option<CallMeta>,
    answer: RpcAnswer,
}

impl Told {
    /// What is done for a request.
    fn message(self, message: Message, wait: Duration) -> ReadRequest {
        let Self { endpoint, client, token, approvals, key, kept, meta, answer } = self;
        match message {
            Message::Ping | Message::SetLevel(_) => {
                let encoder = McpEncoder::new(answer, &client, Shape::Plain);
                ReadRequest::Answered(encoder.result(raw(&serde_json::json!({}))))
            }
            Message::List(listing) => {
                let revision = client.revision;
                let look_up = Action::LookUp(Box::new(move |stages, principal| {
                    Box::pin(async move {
                        let viewer = Viewer { stages: &stages, principal: &principal, endpoint: &endpoint, wait };
                        listings::list(viewer, listing, revision).await
                    })
                }));
                let encoder = McpEncoder::new(answer, &client, Shape::Listed);
                ReadRequest::Asked { action: look_up, encoder: Box::new(encoder) }
            }
            Message::Listen(wanted) => {
                let wanted = Wanted { subscription: answer.id.clone(), ..wanted };
                listening(
                    endpoint,
                    wanted,
                    |_| CancellationToken::new(),
                    McpEncoder::new(answer, &client, Shape::Plain),
                )
            }
            Message::Call(McpCall::Tool { name, arguments }) if endpoint.search => {
                match search_mode::read(&name, arguments.as_deref(), endpoint.clone(), wait) {
                    Ok(Searched::Call(call)) => {
                        let endpoint = Endpoint { search: false, ..endpoint };
                        let told = Self { endpoint, client, token, approvals, key, kept, meta, answer };
                        told.message(Message::Call(call), wait)
                    }
                    Ok(Searched::LookUp(_)) if kept.is_some() => {
                        ReadRequest::Answered(answer.error(StatusCode::OK, &tasks::not_one(&name)))
                    }
                    Ok(Searched::LookUp(look_up)) => {
                        let encoder = McpEncoder::new(answer, &client, Shape::Tool);
                        ReadRequest::Asked { action: Action::LookUp(look_up), encoder: Box::new(encoder) }
                    }
                    Err(error) => ReadRequest::Answered(answer.error(StatusCode::OK, &error)),
                }
            }
            Message::Call(call) => {
                let shape = if kept.is_some() { Shape::Plain } else { Shape::of(&call) };
                let encoder = McpEncoder::new(answer, &client, shape).of_call(Sought::by(&call));
                let called = route::call(endpoint, call, wait, key, token.is_some());
                let action = Action::Call(CallAction { kept, meta, logs: client.level, ..called });
                ReadRequest::Asked { action, encoder: Box::new(encoder.telling(token, approvals)) }
            }
        }
    }
}

impl Dialect for Mcp {
    fn has_path(&self, path: &str) -> bool {
        endpoint::is_ours(path)
    }

    fn check_method(&self, method: &Method) -> Result<(), Refusal> {
        if [Method::POST, Method::GET, Method::DELETE].contains(method) { Ok(()) } else { Err(Refusal::NotPost) }
    }

    fn methods(&self) -> &'static str {
        "POST, GET, DELETE"
    }

    fn check_body(&self, head: &Parts) -> Result<(), Refusal> {
        if head.method == Method::POST { head::check_json(&head.headers) } else { Ok(()) }
    }

    fn read(&self, asked: Asked<'_>) -> ReadRequest {
        let endpoint = match Endpoint::of(asked.head) {
            Ok(endpoint) => endpoint,
            Err(NoEndpoint::Path) => return ReadRequest::Answered(self.refuse(Refusal::NotFound)),
            Err(NoEndpoint::Mode(mode)) => {
                let message = format!("There is no mode \"{}\": mode=search, or no mode", repeated(&mode));
                let error = envelope_error(ErrorCode::InvalidRequest, message);
                return ReadRequest::Answered(RpcAnswer { id: None }.error(StatusCode::BAD_REQUEST, &error));
            }
        };
        match asked.head.method {
            Method::DELETE => self.delete(asked),
            Method::GET => self.get(asked, endpoint),
            _ => self.post(asked, endpoint),
        }
    }

    fn refuse(&self, refusal: Refusal) -> Response<Pieces> {
        match refusals::of_refusal(refusal) {
            Some(error) => RpcAnswer { id: None }.error(refusal.status(), &error),
            None => response::refused(refusal),
        }
    }
}

fn listening(
    endpoint: Endpoint,
    wanted: Wanted,
    until: impl FnOnce(&Session) -> CancellationToken + Send + 'static,
    encoder: McpEncoder,
) -> ReadRequest {
    let listen = Box::new(move |stages, principal: Principal| {
        let until = until(principal.session());
        changes::told(stages, principal, endpoint, wanted).take_until(until.cancelled_owned()).boxed()
    });
    ReadRequest::Asked { action: Action::Listen(listen), encoder: Box::new(encoder) }
}

/// Whether a body is an answer to a request.
fn is_answer(body: &[u8]) -> bool {
    let message = serde_json::from_slice::<IncomingMessage<'_>>(body);
    message.is_ok_and(|message| message.method.is_none() && (message.result.is_some() || message.error.is_some()))
}
