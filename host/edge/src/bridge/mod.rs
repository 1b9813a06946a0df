//! The bridge: JSON-RPC over POST to `/` or `/rpc`, as `tool-cli` speaks it.
//!
//! `rpc` has every method, `listings` answers from the catalogue, `awaiting` waits for an approval, `answers` writes, and
//! `errors` says what a guest is told of what is refused before it is read.
//!
//! It refuses to know connections, tokens, tasks and streams: what it reads is carried out by what all dialects share.

mod answers;
mod awaiting;
mod errors;
mod listings;
mod rpc;

use std::{sync::Arc, time::Duration};

use footbridge_proto::{rpc::raw, wire::FoundTools};
use http::{Response, StatusCode};

use crate::{
    dialect::{Action, Asked, CallAction, Dialect, Found, ReadRequest},
    http::{
        accept::Accepts,
        refusal::Refusal,
        response::{self, Pieces},
    },
    json_rpc::RpcAnswer,
    search::{self, Sought},
};
use answers::RpcEncoder;
use footbridge_calls::{auth::Principal, call::Stages};
use rpc::{Listing, Parsed, Request};

/// The bridge's JSON-RPC.
pub(crate) struct Bridge {
    /// How long a listing of all servers waits for those that are starting.
    pub(crate) list_wait: Duration,
}

impl Dialect for Bridge {
    fn has_path(&self, path: &str) -> bool {
        matches!(path, "/" | "/rpc")
    }

    fn read(&self, asked: Asked<'_>) -> ReadRequest {
        let Parsed { id, request } = rpc::parse(asked.body, asked.depth);
        let answer = RpcAnswer { id };
        let action = match request {
            Ok(Request::Call(call)) => Action::Call(CallAction::of(call)),
            Ok(Request::Check(call)) => Action::Check(call),
            Ok(Request::List(Listing::AwaitApproval { id })) if Accepts::of(&asked.head.headers).events => {
                let encoder = RpcEncoder(answer.clone());
                Action::Listen(Box::new(move |stages, principal| awaiting::told(stages, principal, id, encoder)))
            }
            Ok(Request::List(listing)) => {
                let wait = self.list_wait;
                Action::LookUp(Box::new(move |stages, principal| Box::pin(list(stages, principal, listing, wait))))
            }
            Err(error) => return ReadRequest::Answered(answer.error(StatusCode::OK, &error)),
        };
        ReadRequest::Asked { action, encoder: Box::new(RpcEncoder(answer)) }
    }

    fn refuse(&self, refusal: Refusal) -> Response<Pieces> {
        let Some(error) = errors::of_refusal(refusal) else { return response::refused(refusal) };
        let status = match refusal {
            Refusal::Busy | Refusal::Unreadable => StatusCode::OK,
            _ => refusal.status(),
        };
        RpcAnswer { id: None }.error(status, &error)
    }
}

/// Answers a listing.
async fn list(stages: Arc<Stages>, principal: Principal, listing: Listing, wait: Duration) -> Found {
    let (stages, principal) = (&*stages, &principal);
    match listing {
        Listing::BridgeInfo => Ok(listings::info()),
        Listing::AwaitApproval { id } => Ok(awaiting::answered(stages, principal, &id).await),
        Listing::Servers => listings::servers(stages, principal, wait).await,
        Listing::Tools { server, full } => {
            let list = if full { listings::full_tools } else { listings::tools };
            listings::of_server(stages, principal, &server, list).await
        }
        Listing::Tool { server, tool } => listings::tool(stages, principal, &server, &tool).await,
        Listing::Resources { server } => listings::of_server_now(stages, principal, &server, listings::resources).await,
        Listing::Search { query, server, limit, full } => {
            let within = search::within(stages, principal, server.as_deref(), wait).await?;
            let tools = search::tools(stages, principal, within, Sought { query, limit, full }).await?;
            Ok(raw(&FoundTools { tools }))
        }
        Listing::Prompts { server } => listings::of_server_now(stages, principal, &server, listings::prompts).await,
        Listing::Templates { server } => listings::of_server_now(stages, principal, &server, listings::templates).await,
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    const BRIDGE: Bridge = Bridge { list_wait: Duration::ZERO };

    #[test]
    fn two_paths_are_the_bridges_and_take_posts_alone() {
        assert!(BRIDGE.has_path("/") && BRIDGE.has_path("/rpc"));
        for path in ["", "/x", "//", "/rpc/", "/./", "/../", "/mcp"] {
            assert!(!BRIDGE.has_path(path), "{path}");
        }
        assert_eq!(BRIDGE.check_method(&Method::POST), Ok(()));
        for method in [Method::GET, Method::DELETE, Method::OPTIONS] {
            assert_eq!(BRIDGE.check_method(&method), Err(Refusal::NotPost), "{method}");
        }
    }

    #[test]
    fn a_refusal_is_json_rpc_where_it_is_about_the_request_itself() {
        for (refusal, status, text) in [
            (Refusal::Token, 401, None),
            (Refusal::NotFound, 404, None),
            (Refusal::NotPost, 405, Some("Only POST accepted")),
            (Refusal::TooLarge, 413, Some("Request too large")),
            (Refusal::Busy, 200, Some("Too many bytes are held at once: try again in a moment")),
            (Refusal::Unreadable, 200, Some("The request could not be read")),
        ] {
            assert_eq!(BRIDGE.refuse(refusal).status().as_u16(), status, "{refusal:?}");
            assert_eq!(errors::of_refusal(refusal).map(|error| error.message).as_deref(), text, "{refusal:?}");
        }
    }
}
